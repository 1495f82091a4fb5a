//! Where strands start and end: the clock is read, and what passed is told to the task.

use super::{Local, Running, start};
use crate::{calls, clock, repeat, samples, sites};

impl Local {
    /// The strand that runs ends: the task that it belongs to. A thread that the program started itself gets a
    /// task of its own.
    #[inline]
    pub fn pause(&self) -> *mut Running {
        self.pause_as(false)
    }

    /// The same, because the task forks and will wait: calls that it is in are invocations whose children these are.
    #[inline]
    pub fn pause_to_fork(&self) -> *mut Running {
        self.pause_as(true)
    }

    #[inline(always)]
    fn pause_as(&self, forks: bool) -> *mut Running {
        if !self.fresh.get().is_null() {
            self.make_now();
        }
        let current = self.current.get();
        if current.is_null() {
            return self.adopt();
        }
        self.strand.set(0);
        let (cost, now) = self.clock.end(self.begun.get());
        let mut cost = self.sharing.settle(cost);
        self.begun.set(now);
        // SAFETY: the current task's frame is below us on this stack, and only this thread uses it.
        let running = unsafe { &mut *current };
        // SAFETY: the log of this thread, or of nobody; whoever samples us writes only while a strand runs.
        let sampled = unsafe { (&raw const (*self.samples.get()).taken).read_volatile() };
        if sampled != 0 {
            cost = cost.saturating_sub(sampled * samples::cost());
        }
        self.earn(cost);
        let cost = if repeat::is_on() { running.repeated(cost) } else { cost };
        if calls::is_on() {
            self.take_calls(running, cost, now, forks);
            return current;
        }
        if running.is_followed {
            self.follow_calls(running, cost, forks);
        } else {
            running.task.strand(cost);
        }
        if sampled != 0 {
            self.take_samples(running, cost);
        }
        current
    }

    /// When the strand that was paused last ended.
    #[inline]
    pub fn paused_at(&self) -> u64 {
        self.begun.get()
    }

    #[cold]
    pub(super) fn adopt(&self) -> *mut Running {
        start();
        let current = self.current.get();
        if !current.is_null() {
            return current; // this was the main thread's first
        }
        let mut root = Box::new(Running::followed(sites::root(), self.stack_top));
        root.task.on(self.arena());
        let root = Box::into_raw(root);
        self.own_root.set(root);
        self.resume(root);
        root
    }

    /// A strand of `running` starts now.
    #[inline]
    pub fn resume(&self, running: *mut Running) {
        // Whatever ended here before is no longer what the next strand follows.
        self.tag.set(0);
        self.current.set(running);
        self.sharing.forget();
        self.begun.set(self.clock.begin());
        self.strand_runs(running);
    }

    /// Samples are taken from here on.
    #[inline(always)]
    fn strand_runs(&self, running: *mut Running) {
        // SAFETY: the task that this thread runs now; only this thread uses it.
        let running = unsafe { &*running };
        self.strand.set(self.strand_base(running) as u64);
        if calls::is_on() {
            self.watch_calls(running);
        }
    }

    /// The strand that runs ends, if one does.
    pub fn pause_current(&self) {
        if !self.current.get().is_null() {
            self.pause();
        }
    }

    /// The task that was paused goes on.
    pub fn resume_current(&self) {
        let current = self.current.get();
        if !current.is_null() {
            self.resume(current);
        }
    }

    /// Does something of ours in the middle of a strand. Calls that it is in go on: it is about to fork.
    pub fn aside<R>(&self, ours: impl FnOnce() -> R) -> R {
        if !self.current.get().is_null() {
            self.pause_to_fork();
        }
        let result = ours();
        self.resume_current();
        result
    }

    /// A strand of `running` started when the last task of `tag` ended on this thread, or starts now. Whether it was
    /// the former.
    #[inline]
    pub fn resume_after(&self, running: *mut Running, tag: usize) -> bool {
        self.current.set(running);
        let follows = self.tag.get() == tag;
        // Between the two, the runtime may have woken a worker, which takes microseconds. That is a part of the fork's
        // cost and hardly ever worth a reading of the clock, but here it is: where runs are compared, and counted.
        let handed_over = follows && !clock::is_counted() && !repeat::is_on();
        self.begun.set(if handed_over { self.stamp.get() } else { self.clock.begin() });
        self.tag.set(0);
        self.strand_runs(running);
        follows
    }

    /// Says that the strand which starts next on this thread under the name `tag` starts at `stamp`.
    #[inline]
    pub fn hand_over(&self, tag: usize, stamp: u64) {
        self.tag.set(tag);
        self.stamp.set(stamp);
    }
}
