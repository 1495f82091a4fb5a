//! The shadow stack of one thread: pending activations with their stamps, sizes so far and costs.
//!
//! # What a frame counts
//! A read is *first* for the top activation Y if the cell's stamp is below Y's. Let X be Y's caller.
//! - *Near*: the stamp is at or above X's, so X (or a callee of X that has returned) accessed the cell
//!   already. The read counts for Y alone: one increment of `own`, nothing to pass on. Most first reads are
//!   near, and counting them needs neither a search nor a frame.
//! - *Far*: the stamp is below X's. The read counts for Y and for every ancestor entered after the cell's
//!   last access. `own` as before; and `far` of X gains 1, `far` of the youngest activation at or below the
//!   stamp loses 1, and a return adds `far` of the callee to the caller's.
//!
//! So the size of an activation is `own + far` when it returns. (With the partial sizes r(i) of the paper:
//! far(i) = r(i) + near reads made by direct callees, own apart; summing up a path gives the same.)
//!
//! # Rare facts are kept apart
//! Induced reads and what makes rms differ from trms live in a parallel `cold` array that calls never touch:
//! an entry is valid if it carries the stamp of its frame. `cold_top` is the height of the youngest frame
//! with a valid entry; a return compares its height with it, and only then has more to do.

use alloc::vec::Vec;

use crate::record::Record;
use crate::{Induced, Routine};

/// The stamp of a root activation. 0 means "no stamp".
pub const ROOT_STAMP: u32 = 1;

/// A pending activation.
#[derive(Debug, Clone, Copy)]
pub struct Frame<const N: usize> {
    /// Number of the call that made it: grows along the stack.
    pub stamp: u32,
    /// Whose activation.
    pub routine: Routine,
    /// Stack pointer before the call.
    pub sp: u64,
    /// First reads of its own, saved while a callee runs.
    pub own: u64,
    /// What ancestors-to-be of first reads gain or lose: see the module.
    pub far: i64,
    /// Costs of the thread when it was entered.
    pub entered: [u64; N],
    /// Costs of finished callees.
    pub callees: [u64; N],
    /// It is a signal handler: returns and unwinding stop here.
    pub handler: bool,
    /// Its accesses are deleted.
    pub folded: bool,
}

/// What few frames have: see the module.
#[derive(Debug, Clone, Copy, Default)]
struct Cold {
    stamp: u32,
    /// Induced reads, those of returned callees included.
    induced: Induced,
    induced_self: Induced,
    /// rms minus trms, as a partial sum like `far`.
    rms_less: i64,
}

/// The shadow stack; never empty while its thread lives.
#[derive(Debug)]
pub struct Stack<const N: usize> {
    frames: Vec<Frame<N>>,
    cold: Vec<Cold>,
    cold_top: usize,
    /// Stamp given last.
    counter: u32,
    /// Largest stamp.
    limit: u32,
    /// First reads by the top activation itself. A register in emitted code.
    own: u64,
    /// The stamp of the top frame. A register or a thread-local word in emitted code.
    top: u32,
    /// The stamp of the frame below it; `ROOT_STAMP` for the root. A thread-local word in emitted code.
    caller: u32,
    /// Costs of the thread so far. A register each in emitted code.
    pub cost: [u64; N],
}

impl<const N: usize> Stack<N> {
    /// A stack that holds a root activation, for stamps of `bits` bits (2 to 32).
    pub fn new(root: Routine, bits: u32) -> Stack<N> {
        let mut stack = Stack {
            frames: Vec::new(),
            cold: Vec::new(),
            cold_top: 0,
            counter: ROOT_STAMP - 1,
            limit: u32::MAX >> (32 - bits.clamp(2, 32)),
            own: 0,
            top: ROOT_STAMP,
            caller: ROOT_STAMP,
            cost: [0; N],
        };
        stack.push(root, u64::MAX, false, false);
        stack
    }

    /// The stamp of the top activation.
    #[inline]
    pub fn top_stamp(&self) -> u32 {
        self.top
    }

    /// The pending activations, root first.
    pub fn frames(&self) -> &[Frame<N>] {
        &self.frames
    }

    /// Whether the next call finds no stamp: renumber first.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.counter >= self.limit
    }

    /// Whether the top activation is folded.
    #[inline]
    pub fn is_folded(&self) -> bool {
        self.frames.last().is_some_and(|top| top.folded)
    }

    /// Whether the top activation may return: it is neither the root nor a handler.
    pub fn may_leave(&self) -> bool {
        self.frames.len() > 1 && self.frames.last().is_some_and(|top| !top.handler)
    }

    /// Enters an activation. Must not be called when [`Stack::is_full`].
    #[inline]
    pub fn push(&mut self, routine: Routine, sp: u64, handler: bool, folded: bool) {
        if let Some(caller) = self.frames.last_mut() {
            caller.own = self.own;
            self.caller = self.top;
        }
        self.counter += 1;
        self.top = self.counter;
        self.own = 0;
        let inherited = !handler && self.is_folded();
        self.frames.push(Frame {
            stamp: self.top,
            routine,
            sp,
            own: 0,
            far: 0,
            entered: self.cost,
            callees: [0; N],
            handler,
            folded: folded || inherited,
        });
    }

    /// Leaves the top activation; `None` if there is none.
    #[inline]
    pub fn pop(&mut self) -> Option<Record<N>> {
        let height = self.frames.len();
        let frame = self.frames.pop()?;
        let mut record = Record {
            routine: frame.routine,
            stamp: frame.stamp,
            size: self.own.wrapping_add_signed(frame.far),
            cost: ::core::array::from_fn(|i| self.cost[i] - frame.entered[i]),
            cost_self: [0; N],
            rare: None,
        };
        record.cost_self = ::core::array::from_fn(|i| record.cost[i] - frame.callees[i]);
        if let Some(caller) = self.frames.last_mut() {
            caller.far += frame.far;
            for i in 0..N {
                caller.callees[i] += record.cost[i];
            }
            self.own = caller.own;
            self.top = caller.stamp;
        }
        self.caller = self.frames.iter().rev().nth(1).map_or(ROOT_STAMP, |frame| frame.stamp);
        if height == self.cold_top {
            self.pop_cold(height, &mut record);
        }
        Some(record)
    }

    #[cold]
    fn pop_cold(&mut self, height: usize, record: &mut Record<N>) {
        let cold = self.cold[height - 1];
        record.rare = Some(crate::record::Rare {
            rms: record.size.wrapping_add_signed(cold.rms_less),
            induced: cold.induced,
            induced_self: cold.induced_self,
        });
        self.cold_top = height - 1;
        if let Some(caller) = self.cold_of(height.wrapping_sub(2)) {
            caller.induced.add(cold.induced);
            caller.rms_less += cold.rms_less;
        }
    }

    /// The valid cold entry of the frame with this index; `None` if there is no such frame.
    fn cold_of(&mut self, index: usize) -> Option<&mut Cold> {
        let stamp = self.frames.get(index)?.stamp;
        if self.cold.len() <= index {
            self.cold.resize(index + 1, Cold::default());
        }
        let stale = self.cold[index].stamp != stamp;
        if stale {
            self.cold[index] = Cold { stamp, ..Cold::default() };
        }
        self.cold_top = self.cold_top.max(index + 1);
        Some(&mut self.cold[index])
    }

    /// How a read of a cell with this stamp counts, if it is a first read.
    #[inline]
    pub fn reach(&self, stamp: u32) -> Reach {
        if stamp >= self.top {
            Reach::Again
        } else if stamp >= self.caller {
            Reach::Near
        } else {
            Reach::Far
        }
    }

    /// Counts `cells` near first reads. Far ones are counted here too, and then by [`Stack::far_read`].
    #[inline]
    pub fn first_read(&mut self, cells: u64) {
        self.own += cells;
    }

    /// Counts what callers gain by `cells` far first reads of cells with this stamp.
    pub fn far_read(&mut self, stamp: u32, cells: u64) {
        let Some(caller) = self.frames.len().checked_sub(2) else { return };
        self.frames[caller].far += cells as i64;
        if stamp == 0 {
            return;
        }
        // Linear from the top: the answer is close in practice, and a binary search mispredicts.
        if let Some(reader) = self.frames[..caller].iter_mut().rev().find(|frame| frame.stamp <= stamp) {
            reader.far -= cells as i64;
        }
    }

    /// Notes that the first read just counted was induced. `lost` is the stamp that the cell had before it
    /// was invalidated, 0 if none: by it, and by older ones, the read is no first read for the rms.
    pub fn induced_read(&mut self, induced: Induced, lost: u32) {
        let top = self.frames.len() - 1;
        if let Some(cold) = self.cold_of(top) {
            cold.induced.add(induced);
            cold.induced_self.add(induced);
        }
        if lost != 0
            && let Some(reader) = self.frames.iter().rposition(|frame| frame.stamp <= lost)
            && let Some(cold) = self.cold_of(reader)
        {
            cold.rms_less -= 1;
        }
    }

    /// Gives the pending activations the stamps from [`ROOT_STAMP`] on. Returns the old ones, ascending: a
    /// cell stamp `s` must become the number of old stamps that are at most `s` (see [`crate::renumber`]).
    pub fn renumber(&mut self) -> Vec<u32> {
        let old: Vec<u32> = self.frames.iter().map(|frame| frame.stamp).collect();
        for (index, frame) in self.frames.iter_mut().enumerate() {
            let stamp = ROOT_STAMP + index as u32;
            if let Some(cold) = self.cold.get_mut(index) {
                // Stamp 0 is no frame's: the entry of another activation never becomes this one's.
                cold.stamp = if cold.stamp == frame.stamp { stamp } else { 0 };
            }
            frame.stamp = stamp;
        }
        for cold in self.cold.iter_mut().skip(old.len()) {
            cold.stamp = 0;
        }
        self.counter = old.len() as u32;
        self.top = self.counter;
        self.caller = (self.counter - 1).max(ROOT_STAMP);
        old
    }
}

/// What a read is to the top activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// No first read.
    Again,
    /// A first read of a cell that the caller knows.
    Near,
    /// A first read of a cell that the caller does not know.
    Far,
}
