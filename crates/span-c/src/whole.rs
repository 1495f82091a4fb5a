//! The hooks of [`cilk`](crate::cilk) when only the program as a whole is asked for: lengths, no call sites.
//!
//! Only boundaries of strands read the clock: a spawn, the end of a task, and waiting for children that there are. A call
//! is none. Where instructions are counted every hook still takes its own out.

use crate::main_thread::Main;
use span_rt::clock;
use spandag::serial::How;
use spandag::whole::Whole;

impl Main {
    /// The lengths, if that is all that is asked for.
    #[inline(always)]
    pub fn is_whole(&self) -> bool {
        self.whole.is_some()
    }

    /// A strand ends, `what` happens, and the next one starts.
    #[inline(always)]
    fn boundary(&mut self, what: impl FnOnce(&mut Whole)) {
        let cost = self.end_strand();
        if let Some(whole) = &mut self.whole {
            whole.strand(cost);
            what(whole);
        }
        if self.compares() || clock::is_counted() {
            self.restart();
        }
    }

    /// Something happens in the middle of a strand.
    #[inline(always)]
    fn within(&mut self, what: impl FnOnce(&mut Whole)) {
        if clock::is_counted() {
            return self.boundary(what);
        }
        if let Some(whole) = &mut self.whole {
            what(whole);
        }
    }

    /// A task starts.
    #[inline(always)]
    pub fn whole_spawn(&mut self) {
        self.spawned = true;
        self.boundary(|w| w.enter(How::Spawned));
    }

    /// An iteration of a loop starts: the counting since the one before belongs to it.
    #[inline(always)]
    pub fn whole_iteration(&mut self) {
        self.spawned = true;
        if clock::is_counted() {
            let cost = self.end_strand();
            if let Some(whole) = &mut self.whole {
                whole.enter(How::Iteration);
                whole.strand(cost);
            }
            return self.restart();
        }
        self.within(|w| w.enter(How::Iteration));
    }

    /// A task or an iteration ends.
    #[inline(always)]
    pub fn whole_end(&mut self) {
        self.boundary(Whole::leave);
    }

    /// A function that spawns, or a loop, begins.
    #[inline(always)]
    pub fn whole_begin(&mut self) {
        self.within(|w| w.enter(How::Called));
    }

    /// It returns, having waited for its children.
    #[inline(always)]
    pub fn whole_return(&mut self) {
        if self.whole.as_ref().is_some_and(Whole::has_children) {
            self.boundary(Whole::leave);
        } else {
            self.within(Whole::leave);
        }
    }

    /// Something that means nothing to the program as a whole.
    #[inline(always)]
    pub fn whole_aside(&mut self) {
        self.within(|_| ());
    }

    /// A loop ends. What passed since its last iteration is its own counting, which a parallel loop does by halving.
    #[inline(always)]
    pub fn whole_loop_end(&mut self) {
        if let Some(whole) = &mut self.whole {
            whole.leave();
        }
        self.restart();
    }

    /// The function waits for its children.
    #[inline(always)]
    pub fn whole_sync(&mut self) {
        if self.whole.as_ref().is_some_and(Whole::has_children) {
            self.boundary(Whole::sync);
        } else {
            self.whole_aside();
        }
    }
}
