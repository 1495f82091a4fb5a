//! Record buffers added to tables, newest record first.
//!
//! # Outermost activations without a counter per call
//! Whether an activation A of a routine is nested in another one, B, shows in two facts: B has a smaller
//! stamp (it was entered before A) and returns after A. Reading records backward, B comes first. So A is
//! outermost exactly if no record of its routine read so far, and no pending activation of it, has a smaller
//! stamp: one minimum per routine, and calls and returns keep no count of their own.

use alloc::vec::Vec;

use crate::Routine;

/// Tells outermost activations from nested ones, for the records of one thread.
#[derive(Debug, Default)]
pub struct Nesting {
    batch: u32,
    routines: Vec<Lowest>,
    /// The pending activations at the end of the last batch: (stamp, routine).
    pending: Vec<(u32, Routine)>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Lowest {
    /// The batch for which `stamp` holds.
    batch: u32,
    /// Smallest stamp among the records read in it.
    stamp: u32,
    /// Smallest stamp among pending activations; 0 if none is pending.
    pending: u32,
}

impl Nesting {
    /// Begins a batch of records, at whose end `height` activations are pending; `frame` gives (stamp,
    /// routine) of each, root first. Only those entered since the last batch are asked for, and a few more.
    pub fn begin(&mut self, height: usize, frame: impl Fn(usize) -> (u32, Routine)) {
        self.batch = self.batch.wrapping_add(1);
        if self.batch == 0 {
            // Once in 2^32 batches: what carries the number of a batch long gone must not count.
            self.routines.iter_mut().for_each(|lowest| lowest.batch = 0);
            self.batch = 1;
        }
        // An activation that is still pending is so with all below it: the unchanged ones are a prefix.
        let (mut same, mut end) = (0, height.min(self.pending.len()));
        while same < end {
            let middle = same + (end - same) / 2;
            if self.pending[middle] == frame(middle) {
                same = middle + 1;
            } else {
                end = middle;
            }
        }
        while self.pending.len() > same {
            if let Some((stamp, routine)) = self.pending.pop() {
                let lowest = self.routine(routine);
                if lowest.pending == stamp {
                    lowest.pending = 0;
                }
            }
        }
        for index in same..height {
            let (stamp, routine) = frame(index);
            self.pending.push((stamp, routine));
            let lowest = self.routine(routine);
            if lowest.pending == 0 {
                lowest.pending = stamp;
            }
        }
    }

    /// Whether the record was an outermost activation. Records must come newest first.
    #[inline]
    pub fn is_outermost(&mut self, routine: Routine, stamp: u32) -> bool {
        let batch = self.batch;
        let lowest = self.routine(routine);
        let mut low = if lowest.pending != 0 { lowest.pending } else { u32::MAX };
        if lowest.batch == batch {
            low = low.min(lowest.stamp);
        }
        // The last stamp of all can be that of a record, hence not `low > stamp`.
        let outermost = low >= stamp;
        if outermost {
            *lowest = Lowest { batch, stamp, ..*lowest };
        }
        outermost
    }

    /// Forgets the pending activations: their stamps are about to change.
    pub fn forget(&mut self) {
        self.begin(0, |_| (0, 0));
    }

    #[inline]
    fn routine(&mut self, routine: Routine) -> &mut Lowest {
        let index = routine as usize;
        if index >= self.routines.len() {
            self.routines.resize(index + 1, Lowest::default());
        }
        &mut self.routines[index]
    }
}
