//! One thread's side of the algorithm: what emitted code does inline, and what it calls out for.
//!
//! [`Thread::read_cell`] and [`Thread::write_cell`] are the inline sequences written out in Rust; everything
//! that they call is a slow path. [`crate::core`] shows the instructions.

use super::coherence;
use super::shadow::{Mark, Shadow, Slot};
use super::stack::{Reach, Stack};
use crate::record::Record;
use crate::renumber::renumber;
use crate::{Cell, CellSize, Metric, Routine};

/// What is fixed for a run.
#[derive(Debug, Clone, Copy)]
pub struct Config {
    /// What sizes count.
    pub metric: Metric,
    /// Size of a cell.
    pub cell_size: CellSize,
    /// Bits of a stamp, 2 to 32. Only tests want fewer than 32.
    pub stamp_bits: u32,
}

/// Where finished activations go.
pub trait Sink<const N: usize> {
    /// An activation has finished.
    fn finished(&mut self, record: Record<N>);
    /// Stamps are about to change: use up what is buffered. `pending` are the frames that remain.
    fn before_renumbering(&mut self, stack: &Stack<N>);
}

/// A thread.
#[derive(Debug)]
pub struct Thread<const N: usize> {
    config: Config,
    slot: Slot,
    me: Mark,
    /// Its shadow stack.
    pub stack: Stack<N>,
}

impl<const N: usize> Thread<N> {
    /// A thread in a slot that no living thread has, and whose stamps were released.
    pub fn start(config: Config, slot: Slot, root: Routine) -> Thread<N> {
        Thread { config, slot, me: Mark::exclusive(slot), stack: Stack::new(root, config.stamp_bits) }
    }

    /// Reads memory.
    pub fn read(&mut self, shadow: &impl Shadow, address: u64, size: u64) {
        if !self.stack.is_folded() {
            for cell in self.config.cell_size.touched(address, size) {
                self.read_cell(shadow, cell);
            }
        }
    }

    /// Writes memory.
    pub fn write(&mut self, shadow: &impl Shadow, address: u64, size: u64) {
        if !self.stack.is_folded() {
            for cell in self.config.cell_size.touched(address, size) {
                self.write_cell(shadow, cell);
            }
        }
    }

    /// A system call of this thread filled memory.
    pub fn kernel_write(&mut self, shadow: &impl Shadow, address: u64, size: u64) {
        if !self.stack.is_folded() && self.config.metric != Metric::Rms {
            for cell in self.config.cell_size.touched(address, size) {
                coherence::kernel_write(shadow, cell, self.config.metric);
            }
        }
    }

    /// Reads one cell.
    #[inline]
    pub fn read_cell(&mut self, shadow: &impl Shadow, cell: Cell) {
        let stamp = shadow.stamp(self.slot, cell);
        match self.stack.reach(stamp) {
            // Nothing to store: the stamp is already at or above the top's.
            Reach::Again => return,
            Reach::Near => self.stack.first_read(1),
            Reach::Far => {
                self.stack.first_read(1);
                self.far_read(shadow, cell, stamp);
            }
        }
        shadow.set_stamp(self.slot, cell, self.stack.top_stamp());
    }

    /// Writes one cell.
    #[inline]
    pub fn write_cell(&mut self, shadow: &impl Shadow, cell: Cell) {
        if self.config.metric != Metric::Rms && (shadow.mark(cell) != self.me || !self.me.is_exclusive()) {
            coherence::before_foreign_write(shadow, self.slot, cell, self.config.metric);
        }
        shadow.set_stamp(self.slot, cell, self.stack.top_stamp());
    }

    #[cold]
    fn far_read(&mut self, shadow: &impl Shadow, cell: Cell, stamp: u32) {
        self.stack.far_read(stamp, 1);
        if stamp == 0 && self.config.metric != Metric::Rms {
            let origin = coherence::before_first_stamp(shadow, self.slot, cell);
            if origin != coherence::Origin::Initial {
                let both = self.config.metric == Metric::Both;
                let lost = if both { shadow.lost(self.slot, cell) } else { 0 };
                self.stack.induced_read(origin.induced(), lost);
            }
        }
    }

    /// Calls a routine.
    pub fn call(
        &mut self,
        shadow: &impl Shadow,
        sink: &mut impl Sink<N>,
        routine: Routine,
        sp: u64,
        folded: bool,
    ) {
        self.enter(shadow, sink, routine, sp, false, folded);
    }

    /// Enters a signal handler.
    pub fn enter_handler(&mut self, shadow: &impl Shadow, sink: &mut impl Sink<N>, routine: Routine) {
        self.enter(shadow, sink, routine, 0, true, false);
    }

    fn enter(
        &mut self,
        shadow: &impl Shadow,
        sink: &mut impl Sink<N>,
        routine: Routine,
        sp: u64,
        handler: bool,
        folded: bool,
    ) {
        if self.stack.is_full() {
            sink.before_renumbering(&self.stack);
            renumber(&mut self.stack, shadow, self.slot);
        }
        self.stack.push(routine, sp, handler, folded);
    }

    /// Returns from the top activation, unless it is the root or a handler.
    pub fn ret(&mut self, sink: &mut impl Sink<N>) {
        if self.stack.may_leave() {
            self.leave(sink);
        }
    }

    /// Replaces the top activation by another one with the same caller.
    pub fn tail_call(
        &mut self,
        shadow: &impl Shadow,
        sink: &mut impl Sink<N>,
        routine: Routine,
        folded: bool,
    ) {
        if self.stack.may_leave() {
            let sp = self.stack.frames().last().map_or(0, |top| top.sp);
            self.leave(sink);
            self.enter(shadow, sink, routine, sp, false, folded);
        }
    }

    /// Ends the activations of this signal context that are dead at stack pointer `sp`.
    pub fn unwind(&mut self, sink: &mut impl Sink<N>, sp: u64) {
        while self.stack.may_leave() && self.stack.frames().last().is_some_and(|top| top.sp <= sp) {
            self.leave(sink);
        }
    }

    /// Ends the innermost handler and what it called.
    pub fn leave_handler(&mut self, sink: &mut impl Sink<N>) {
        if self.stack.frames().iter().any(|frame| frame.handler) {
            while self.stack.frames().last().is_some_and(|top| !top.handler) {
                self.leave(sink);
            }
            self.leave(sink);
        }
    }

    /// Ends the thread: all its activations, and its stamps.
    pub fn end(mut self, shadow: &impl Shadow, sink: &mut impl Sink<N>) {
        while self.leave(sink) {}
        shadow.release(self.slot);
    }

    fn leave(&mut self, sink: &mut impl Sink<N>) -> bool {
        let record = self.stack.pop();
        record.map(|record| sink.finished(record)).is_some()
    }
}
