//! The hooks of [`cilk`](crate::cilk) when only the program as a whole is asked for: lengths, no call sites.
//!
//! Only boundaries of strands read the clock: a spawn, the end of a task, and waiting for children that there are. A call
//! is none. `near` says that nothing but straight code follows ([`straight`](crate::straight)). Where instructions are counted every hook still takes its own out.

use crate::main_thread::Main;
use span_rt::clock;
use spandag::serial::How;
use spandag::whole::Whole;

impl Main {
    /// A strand ends, `what` happens, and the next one starts.
    #[inline(always)]
    fn boundary(&mut self, near: bool, what: impl FnOnce(&mut Whole)) {
        let Some(cost) = self.straight.charge() else { return self.boundary_read(near, what) };
        if !near {
            self.straight.over();
        }
        self.whole.strand(cost);
        what(&mut self.whole);
    }

    /// Not inlined and last, so that a boundary without a reading needs no register to survive a call.
    #[inline(never)]
    fn boundary_read(&mut self, near: bool, what: impl FnOnce(&mut Whole)) {
        let cost = self.end_strand();
        self.straight.follows(near);
        self.whole.strand(cost);
        what(&mut self.whole);
        if self.anew {
            self.restart();
        }
    }

    /// Something happens in the middle of a strand.
    #[inline(always)]
    fn within(&mut self, near: bool, what: impl FnOnce(&mut Whole)) {
        if self.anew && clock::is_counted() {
            return self.boundary(false, what);
        }
        if !near {
            self.straight.over();
        }
        what(&mut self.whole);
    }

    /// A task starts.
    #[inline(always)]
    pub fn whole_spawn(&mut self, near: bool) {
        self.spawned = true;
        self.boundary(near, |w| w.enter(How::Spawned));
    }

    /// An iteration of a loop starts: the counting since the one before belongs to it.
    #[inline(always)]
    pub fn whole_iteration(&mut self) {
        self.spawned = true;
        if clock::is_counted() {
            let cost = self.cost(false);
            self.whole.enter(How::Iteration);
            self.whole.strand(cost);
            return self.restart();
        }
        self.within(false, |w| w.enter(How::Iteration));
    }

    /// A task or an iteration ends.
    #[inline(always)]
    pub fn whole_end(&mut self, near: bool) {
        self.boundary(near, Whole::leave);
    }

    /// A function that spawns, or a loop, begins.
    #[inline(always)]
    pub fn whole_begin(&mut self, near: bool) {
        self.within(near, |w| w.enter(How::Called));
    }

    /// It returns, having waited for its children.
    #[inline(always)]
    pub fn whole_return(&mut self, near: bool) {
        if self.whole.has_children() {
            self.boundary(near, Whole::leave);
        } else {
            self.within(near, Whole::leave);
        }
    }

    /// Something that means nothing to the program as a whole.
    #[inline(always)]
    pub fn whole_aside(&mut self, near: bool) {
        self.within(near, |_| ());
    }

    /// A loop ends. What passed since its last iteration is its own counting, which a parallel loop does by halving.
    #[inline(always)]
    pub fn whole_loop_end(&mut self) {
        self.whole.leave();
        self.restart();
    }

    /// The function waits for its children.
    #[inline(always)]
    pub fn whole_sync(&mut self, near: bool) {
        if self.whole.has_children() {
            self.boundary(near, Whole::sync);
        } else {
            self.whole_aside(near);
        }
    }
}
