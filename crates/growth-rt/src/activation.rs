//! One thread's pending activations: what emitted code does at calls and returns, written out in Rust, and what it
//! leaves to slow paths.
//!
//! Frames lie in the thread's slab and are written by emitted code; the algorithm is `inputsize::core::stack`, on raw
//! memory. Below the root is a sentinel: it ends searches and takes what the root passes on.
//!
//! # Which activations are over
//! A frame holds the address of its return address. At a call or a tail call to a routine whose return address is at
//! `sp`, frames at or below `sp` are over: they returned in ways that nobody saw (longjmp, exceptions, a tail call, the
//! binder of the dynamic linker). At a return from `sp` likewise those below it, then the one at it. A return below
//! the top frame is none of an activation and is ignored.
//!
//! # Rare facts
//! Frames that need more than that at their end (induced reads, the outermost folded work, handlers) are chained from
//! [`Hot::cold`], youngest first. A return compares its frame with that one word.

mod ranges;

use crate::alike::AlikeTable;
use crate::cost::ticks;
use crate::ingest::Ingest;
use crate::layout::*;
use crate::process::Process;
use alloc::vec::Vec;
use inputsize::Cell;
use inputsize::core::coherence::{self, Origin};
use inputsize::core::shadow::{Mark, Shadow, Slot};
use inputsize::renumber::rank;
use wire::growth::{
    ALIKE_OFFSET, Alike, Cost, HOT_OFFSET, Hot, LOG_BYTES, LOG_OFFSET, LOG_SLACK_BYTES, Metric, RARE, Rare,
    Thread,
};

/// The index of a thread that is not counted: the child of a vfork, which runs in its parent's memory.
const UNCOUNTED: u32 = u32::MAX >> 1;

/// A thread's own state. Emitted code shares [`Hot`] and the frames with it, in the same thread.
pub struct Local {
    /// The process.
    pub process: &'static Process,
    hot: *mut Hot,
    slab: u64,
    slot: Slot,
    thread: u32,
    tid: u32,
    ingest: Ingest,
    /// The stamp of the root.
    first_stamp: u32,
    /// The stamp given last when the buffer was emptied.
    drained: u32,
}

impl Local {
    /// Prepares the slab of a thread that is about to start at `root`. `None` when there is no memory.
    pub fn start(process: &'static Process, slab: u64, tid: u32, root: u32, counts: bool) -> Option<Local> {
        let slot = process.slot_of(slab);
        if !process.map.take(slot) || !process.map_window(slot, slab) {
            return None;
        }
        let thread = if counts { process.shared.add_thread(tid, slot as u32) } else { UNCOUNTED };
        let hot = (slab + HOT_OFFSET) as *mut Hot;
        let first_stamp = if process.stamp_bits >= 32 { 1 } else { u32::MAX - (1 << process.stamp_bits) + 2 };
        let mark = Mark::exclusive(slot);
        let me = if slot < Mark::SLOTS { mark.0 } else { FOLDED_MARK as u8 };
        let me = u64::from(me) * 0x0101_0101_0101_0101;
        let log = slab + HOT_OFFSET + LOG_OFFSET;
        let mask = process.map.mask();
        let sentinel = slab + SENTINEL;
        let root_frame = sentinel + 64;
        let value = Hot {
            ssp: root_frame,
            counter: both(first_stamp),
            log,
            log_end: log + LOG_BYTES - LOG_SLACK_BYTES,
            mask,
            mask_on: mask,
            marks: process.map.marks(),
            sharers: process.map.sharers_base(),
            my_bit: 1 << slot.min(63),
            // Bit 63 stands for several.
            only_me: if slot < 63 { 1 << slot } else { u64::MAX },
            me,
            me_on: me,
            one: ONE,
            alive: u64::MAX,
            thread: thread.into(),
            sentinel,
            stolen: if process.cost == Cost::Time { ticks() } else { 0 },
            ..Hot::default()
        };
        let stamp = both(first_stamp);
        let frame = Frame { stamp, sp: u64::MAX, routine: root, top: stamp, ..Frame::default() };
        let below = Frame { stamp: both(1), ..Frame::default() };
        // SAFETY: the window and the frames of this slab were just mapped, and its thread does not run yet.
        unsafe {
            hot.write(value);
            (1..=CALLERS_NEAR as usize).for_each(|n| (sentinel as *mut Frame).sub(n).write(below));
            (sentinel as *mut Frame).write(frame);
            (root_frame as *mut Frame).write(frame);
        }
        let alike = (slab + HOT_OFFSET + ALIKE_OFFSET) as *mut Alike;
        // SAFETY: part of the window that was just mapped, which is this thread's while it lives.
        let alike = unsafe { AlikeTable::new(alike) };
        let ingest = Ingest::new(process.shared.points(), thread, process.metric == Metric::Both, alike);
        let drained = first_stamp;
        let local = Local { process, hot, slab, slot, thread, tid, ingest, first_stamp, drained };
        local.tell_alike();
        Some(local)
    }

    /// Does some of the profiler's own work: where costs are time, what it takes is not the program's.
    pub fn own_work<R>(&mut self, work: impl FnOnce(&mut Local) -> R) -> R {
        if self.process.cost != Cost::Time {
            return work(self);
        }
        let start = ticks();
        let result = work(self);
        self.hot().stolen += ticks().wrapping_sub(start);
        result
    }

    /// The words that emitted code works with.
    #[expect(clippy::mut_from_ref, reason = "raw memory shared with emitted code of the same thread")]
    pub fn hot(&self) -> &mut Hot {
        // SAFETY: mapped by `start`; only this thread writes it, and no reference is kept across calls.
        unsafe { &mut *self.hot }
    }

    fn top(&self) -> *mut Frame {
        self.hot().ssp as *mut Frame
    }

    #[expect(clippy::mut_from_ref, reason = "raw memory shared with emitted code of the same thread")]
    fn frame(&self, at: *mut Frame) -> &mut Frame {
        // SAFETY: addresses of frames come from `ssp` and the chain, hence lie between the sentinel and the top.
        unsafe { &mut *at }
    }

    #[expect(clippy::mut_from_ref, reason = "as above")]
    fn facts(&self, at: *mut Frame) -> &mut Facts {
        // SAFETY: every frame has its facts at a fixed distance, in memory that `start` mapped.
        unsafe { &mut *facts_of(at) }
    }

    /// The word that says whether an activation of a routine is pending.
    #[expect(clippy::mut_from_ref, reason = "as above")]
    fn nest(&self, routine: u32) -> &mut u32 {
        // SAFETY: numbers of routines are below `ROUTINES_MAX`, and `take` mapped a word for each.
        unsafe { &mut *((self.slab + NEST) as *mut u32).add((routine & (RARE - 1)) as usize) }
    }

    /// Tells emitted code and the collector how large the table of alike activations is.
    fn tell_alike(&self) {
        let alike = self.ingest.alike();
        self.hot().alike = alike.entries() as u64;
        self.hot().alike_mask = alike.mask();
    }

    fn root(&self) -> *mut Frame {
        (self.slab + SENTINEL + 64) as *mut Frame
    }

    /// The youngest frame up to `last` that is not younger than a stamp; the sentinel if there is none.
    fn owner(&self, last: *mut Frame, stamp: u32) -> *mut Frame {
        let sentinel = (self.slab + SENTINEL) as *mut Frame;
        let frames = (last as u64 - sentinel as u64) / 64 + 1;
        // SAFETY: frames from the sentinel up to `last`, which is the top or below it; nobody else writes them.
        let pending = unsafe { core::slice::from_raw_parts(sentinel, frames as usize) };
        let older = pending.partition_point(|f| f.stamp as u32 <= stamp);
        // SAFETY: at most `last`.
        unsafe { sentinel.add(older.saturating_sub(1)) }
    }

    /// Whether accesses are deleted now.
    pub fn is_folded(&self) -> bool {
        self.hot().mask == 0
    }

    /// Whether the top activation may end by a return or by unwinding.
    fn may_leave(&self) -> bool {
        self.top() > self.root() && self.frame(self.top()).flags & flag::HANDLER == 0
    }

    /// Ends activations that are over when a return address lies at `sp`; the one at `sp` too if `inclusive`.
    fn unwind(&mut self, sp: u64, inclusive: bool) {
        while self.may_leave() {
            let at = self.frame(self.top()).sp;
            if at < sp || inclusive && at == sp {
                self.leave();
            } else {
                break;
            }
        }
    }

    /// A routine is entered by a call or a jump, with its return address at `sp`.
    pub fn enter(&mut self, routine: u32, sp: u64) {
        self.unwind(sp, true);
        self.push(routine, sp, 0);
    }

    /// A return from `sp`.
    pub fn ret(&mut self, sp: u64) {
        self.unwind(sp, true);
    }

    /// A signal handler starts.
    pub fn enter_handler(&mut self, routine: u32, sp: u64) {
        // Odd, so that no return matches it: the handler ends with its system call.
        self.push(routine & !FOLD, sp | 1, flag::HANDLER);
        let top = self.top();
        self.chain(top);
        self.facts(top).saved_mask = self.hot().mask;
        self.unfold();
    }

    /// A signal handler returned.
    pub fn leave_handler(&mut self) {
        let mut at = self.top();
        while at > self.root() && self.frame(at).flags & flag::HANDLER == 0 {
            // SAFETY: above the root.
            at = unsafe { at.sub(1) };
        }
        if at > self.root() {
            while self.top() >= at {
                self.leave();
            }
        }
    }

    /// Ends the thread: all activations, and what is buffered.
    pub fn end(&mut self) {
        self.end_activations();
        self.note_end(0);
        self.process.map.release(self.slot);
    }

    /// The process ends in this thread.
    pub fn end_process(&mut self) {
        self.end_activations();
        self.note_end(self.slot as u32 + 1);
    }

    fn note_end(&mut self, slot: u32) {
        if self.thread != UNCOUNTED {
            let cost = self.hot().cost;
            let (dropped, error) = self.ingest.finish();
            self.process.shared.losses(dropped, error);
            self.process.shared.set_thread(self.thread, Thread { tid: self.tid, slot, cost });
        }
    }

    /// Ends all pending activations as if they returned now, and adds up all records.
    pub fn end_activations(&mut self) {
        if self.process.cost == Cost::Time {
            self.hot().cost = ticks().wrapping_sub(self.hot().stolen);
        }
        while self.top() >= self.root() {
            self.leave();
        }
        self.drain();
        if self.thread != UNCOUNTED {
            self.ingest.flush();
        }
        // The sentinel becomes the root: whatever still runs has somewhere to be.
        let root = self.root();
        let hot = self.hot();
        hot.ssp = root as u64;
        self.frame(root).top = both(self.first_stamp);
        // Nothing of it may be recorded twice.
        self.frame(root).entered = hot.cost;
        self.frame(root).callees = 0;
        self.frame(root).own = 0;
    }

    fn push(&mut self, routine: u32, sp: u64, flags: u32) {
        let hot = self.hot();
        if hot.counter as u32 == u32::MAX {
            self.renumber();
        }
        let hot = self.hot();
        hot.counter = hot.counter.wrapping_add(ONE);
        hot.ssp += 64;
        let folds = routine & FOLD != 0 && hot.mask != 0;
        let nest = self.nest(routine);
        let nested = core::mem::replace(nest, NESTED);
        *self.frame(self.top()) = Frame {
            stamp: hot.counter,
            sp,
            own: 0,
            far: 0,
            entered: hot.cost,
            callees: 0,
            routine: nested | if folds { routine } else { routine & !FOLD },
            flags,
            top: hot.counter & hot.alive,
        };
        if folds {
            self.chain(self.top());
            self.fold();
        }
    }

    /// Accesses are deleted from now on: all of them are led to a few cells of nobody's. Those have no stamp, and what
    /// accesses compare with and store is none either, so none of them is a first read and they stay as they are.
    fn fold(&mut self) {
        let hot = self.hot();
        hot.mask = 0;
        hot.me = FOLDED_MARK;
        hot.alive = 0;
        self.frame(self.top()).top = 0;
    }

    fn unfold(&mut self) {
        let hot = self.hot();
        hot.mask = hot.mask_on;
        hot.me = hot.me_on;
        hot.alive = u64::MAX;
        let top = self.frame(self.top());
        top.top = top.stamp;
    }

    /// Ends the top activation: its record, and what its caller inherits.
    pub fn leave(&mut self) {
        if self.hot().log >= self.hot().log_end {
            self.drain();
        }
        let top = self.top();
        let frame = *self.frame(top);
        let hot = self.hot();
        // Folded work has no size; what handlers read meanwhile is the input of those below it.
        let folded = self.is_folded();
        let size = if folded { 0 } else { frame.own.wrapping_add_signed(frame.far) };
        let cost = hot.cost.wrapping_sub(frame.entered);
        // SAFETY: the frame below is the caller's, or the sentinel.
        let caller = unsafe { top.sub(1) };
        self.frame(caller).callees = self.frame(caller).callees.wrapping_add(cost);
        self.frame(caller).far += frame.far;
        let mut rare = None;
        if self.hot().cold == top as u64 {
            let facts = *self.facts(top);
            self.hot().cold = facts.older;
            if frame.routine & FOLD != 0 {
                self.unfold();
            }
            if frame.flags & flag::FACTS != 0 {
                let rms = if folded { 0 } else { size.wrapping_add_signed(facts.rms_less) };
                let ([a, b], [c, d]) = (facts.induced, facts.induced_self);
                rare = Some(Rare { rms, induced: [a, b, c, d] });
                let to = self.facts_for(caller);
                to.induced[0] += facts.induced[0];
                to.induced[1] += facts.induced[1];
                to.rms_less += facts.rms_less;
            }
            if frame.flags & flag::HANDLER != 0 && facts.saved_mask == 0 {
                self.fold();
                self.pass_below_fold(caller);
            }
        }
        let key = frame.routine & !FOLD;
        *self.nest(key) = key & NESTED;
        let alike = Alike::one(
            key | if rare.is_some() { RARE } else { 0 },
            size,
            cost,
            cost.wrapping_sub(frame.callees),
        );
        self.record(&alike.words());
        if let Some(rare) = rare {
            self.record(&rare.words());
        }
        self.hot().ssp = caller as u64;
    }

    /// A handler that interrupted folded work has ended. What it read is not the input of that work, whose youngest frame is
    /// `at`, but of those below.
    fn pass_below_fold(&mut self, mut at: *mut Frame) {
        let (mut far, mut rms_less, mut below_fold) = (0, 0, false);
        while !below_fold && at > self.root() {
            let frame = self.frame(at);
            far += core::mem::take(&mut frame.far);
            if frame.flags & flag::FACTS != 0 {
                rms_less += core::mem::take(&mut self.facts(at).rms_less);
            }
            below_fold = frame.routine & FOLD != 0;
            // SAFETY: above the root.
            at = unsafe { at.sub(1) };
        }
        self.frame(at).far += far;
        if rms_less != 0 {
            self.facts_for(at).rms_less += rms_less;
        }
    }

    fn record(&mut self, words: &[u64]) {
        let hot = self.hot();
        for &word in words {
            // SAFETY: `leave` drains in time, and the slack behind `log_end` holds the largest entry.
            unsafe { (hot.log as *mut u64).write(word) };
            hot.log += 8;
        }
    }

    /// Adds up what is in the buffer.
    pub fn drain(&mut self) {
        let start = self.slab + HOT_OFFSET + LOG_OFFSET;
        let hot = self.hot();
        let len = (hot.log - start) / 8;
        // SAFETY: emitted code and `record` wrote the words up to `log`; nothing else writes while we are here.
        let words = unsafe { core::slice::from_raw_parts(start as *const u64, len as usize) };
        let counter = hot.counter as u32;
        let begun = counter.wrapping_sub(core::mem::replace(&mut self.drained, counter));
        if self.thread != UNCOUNTED {
            self.ingest.add(words, begun.into());
            self.tell_alike();
        }
        self.hot().log = start;
    }

    /// Makes sure that the end of this frame is looked at.
    fn chain(&mut self, at: *mut Frame) {
        let hot = self.hot();
        if hot.cold < at as u64 {
            self.facts(at).older = hot.cold;
            hot.cold = at as u64;
            return;
        }
        let mut younger = hot.cold as *mut Frame;
        while younger != at && self.facts(younger).older > at as u64 {
            younger = self.facts(younger).older as *mut Frame;
        }
        if younger != at && self.facts(younger).older != at as u64 {
            self.facts(at).older = self.facts(younger).older;
            self.facts(younger).older = at as u64;
        }
    }

    /// The facts of a frame, empty ones if it had none.
    fn facts_for(&mut self, at: *mut Frame) -> &mut Facts {
        if self.frame(at).flags & flag::FACTS == 0 {
            self.chain(at);
            let Facts { saved_mask, older, .. } = *self.facts(at);
            *self.facts(at) = Facts { saved_mask, older, ..Facts::default() };
            self.frame(at).flags |= flag::FACTS;
        }
        self.facts(at)
    }

    /// A first read of a cell without a stamp, counted as the top's own already.
    pub fn far_first(&mut self, cell: Cell) {
        self.far(0, 1);
        self.first_stamp(cell);
    }

    /// What callers gain by far first reads of so many cells with this stamp.
    fn far(&mut self, stamp: u32, cells: i64) {
        // SAFETY: the top is the root or above it, and the sentinel lies below the root.
        let caller = unsafe { self.top().sub(1) };
        self.frame(caller).far += cells;
        if stamp == 0 || caller < self.root() {
            return;
        }
        // SAFETY: the caller is the root or above it.
        let owner = self.owner(unsafe { caller.sub(1) }, stamp);
        self.frame(owner).far -= cells;
    }

    /// The thread takes its first stamp of a cell by reading it: who wrote it? Its far read has been counted.
    pub fn first_stamp(&mut self, cell: Cell) {
        if self.process.metric == Metric::Rms {
            return;
        }
        let origin = coherence::before_first_stamp(&self.process.map, self.slot, cell);
        if origin == Origin::Initial {
            return;
        }
        let lost =
            if self.process.metric == Metric::Both { self.process.map.lost(self.slot, cell) } else { 0 };
        let induced = origin.induced();
        let top = self.top();
        let facts = self.facts_for(top);
        for (to, from) in [(0, induced.thread), (1, induced.external)] {
            facts.induced[to] += from;
            facts.induced_self[to] += from;
        }
        if lost != 0 {
            let owner = self.owner(top, lost).max(self.root());
            self.facts_for(owner).rms_less -= 1;
        }
    }

    /// Before a write of a cell: takes the stamps of others away, if there may be any.
    pub fn before_write(&mut self, cell: Cell) {
        if self.process.metric != Metric::Rms {
            let me = Mark::exclusive(self.slot);
            if self.process.map.mark(cell) != me || !me.is_exclusive() {
                let metric = self.process.inputsize_metric();
                coherence::before_foreign_write(&self.process.map, self.slot, cell, metric);
            }
        }
    }

    /// Gives the pending activations the first stamps again: see `inputsize::renumber`.
    fn renumber(&mut self) {
        let root = self.root();
        let height = (self.hot().ssp + 64 - root as u64) / 64;
        let mut old: Vec<u32> = Vec::with_capacity(height as usize);
        for index in 0..height {
            // SAFETY: `index` is below the height of the stack.
            let frame = self.frame(unsafe { root.add(index as usize) });
            old.push(frame.stamp as u32);
            frame.stamp = both(self.first_stamp + index as u32);
            frame.top = if frame.top == 0 { 0 } else { frame.stamp };
        }
        let base = self.first_stamp - 1;
        let map = &self.process.map;
        map.each_stamped(self.slot, &mut |cell| {
            let stamp = map.stamp(self.slot, cell);
            if stamp != 0 {
                map.replace_stamp(self.slot, cell, stamp, base + rank(&old, stamp));
            }
            let lost = map.lost(self.slot, cell);
            if lost != 0 {
                map.set_lost(self.slot, cell, base + rank(&old, lost));
            }
        });
        self.hot().counter = both(base + height as u32);
        self.drained = base + height as u32;
        self.process.shared.renumbered();
    }
}

/// A stamp in both halves.
fn both(stamp: u32) -> u64 {
    u64::from(stamp) << 32 | u64::from(stamp)
}
