//! Strands and forks in [`Mode::Timed`](super::Mode::Timed): what most runs are, with as little as can be done for each.
//!
//! One reading of the clock ends a strand and begins the next, unless something has happened in between. Forks are looked up
//! with the sums of what ended there on this thread ([`Tally`]).

use super::{FORK_SLOTS, Local, Running, scale};
use crate::{clock, samples};
use core::cell::Cell;
use spandag::task::{Light, Outcome, Tally, Task};
use spandag::{Context, Entry, Site};
use std::sync::PoisonError;

/// What tells forks apart: what was forked, in which context.
pub type ForkKey = (usize, usize, Context);

/// A fork of light tasks that was looked up.
pub(super) struct LightFork {
    key: Cell<ForkKey>,
    sides: Cell<&'static [Tally; 2]>,
}

impl LightFork {
    pub(super) const fn none() -> LightFork {
        const fn nothing() -> Tally {
            Tally::new(0, Entry { context: 0, top_site: false, top_caller: false })
        }
        static NOTHING: [Tally; 2] = [nothing(), nothing()];
        LightFork { key: Cell::new((0, 0, 0)), sides: Cell::new(&NOTHING) }
    }

    pub(super) fn forget(&self) {
        self.key.set((0, 0, 0));
    }
}

impl Local {
    /// As [`pause`](Self::pause), in [`Mode::Timed`]. The next strand that starts under the name `tag` on this thread starts
    /// where this one ended.
    #[inline(always)]
    pub fn pause_timed(&self, tag: usize) -> *mut Running {
        let current = self.current.get();
        if current.is_null() {
            return self.adopt();
        }
        let cost = self.cost_timed(current, tag);
        // SAFETY: as in `pause`.
        unsafe { &mut *current }.task.strand(cost);
        current
    }

    /// What the strand of `current` costs that ends.
    #[inline(always)]
    fn cost_timed(&self, current: *mut Running, tag: usize) -> u64 {
        self.strand.set(0);
        self.tag.set(tag);
        let now = clock::tsc();
        // SAFETY: a word of this thread's, or one that is never written.
        if unsafe { self.calm.get().read_volatile() } == 0 {
            return self.cost_closely(current);
        }
        let cost = now.wrapping_sub(self.begun.get()).wrapping_sub(self.hook.get());
        self.begun.set(now);
        cost.cast_signed().max(0).cast_unsigned()
    }

    /// The same where something has happened: the thread was preempted, or got a signal, as for a sample.
    #[cold]
    #[inline(never)]
    fn cost_closely(&self, current: *mut Running) -> u64 {
        let (cost, now) = self.clock.end(self.begun.get());
        self.begun.set(now);
        // SAFETY: as in `pause`.
        let sampled = unsafe { (&raw const (*self.samples.get()).taken).read_volatile() };
        if sampled == 0 {
            return cost;
        }
        let cost = cost.saturating_sub(sampled * samples::cost());
        // SAFETY: as in `pause`.
        let running = unsafe { &mut *current };
        running.task.strand(cost);
        self.take_samples(running, cost);
        0 // it was told
    }

    /// A strand of `running` starts, as said by [`pause_timed`](Self::pause_timed), or now. Whether it was the former.
    #[inline(always)]
    pub fn resume_timed(&self, running: *mut Running, base: usize, tag: usize) -> bool {
        self.current.set(running);
        let follows = self.tag.get() == tag;
        if !follows {
            self.begin_anew();
        }
        self.tag.set(0);
        self.strand.set(base as u64);
        follows
    }

    #[cold]
    #[inline(never)]
    fn begin_anew(&self) {
        self.begun.set(self.clock.begin());
    }

    /// The current task ends, on the thread of who waits for it, and directly after what came before it.
    #[inline(always)]
    pub fn end_light(&self, running: &mut Running, tag: usize, tally: &Tally, out: &mut Light) {
        let cost = self.cost_timed(running, tag);
        self.current.set(core::ptr::null_mut());
        if !running.task.finish_light(cost, tally, self.heavy.get(), out) {
            self.end_heavy(&mut running.task, cost, out);
        }
    }

    #[cold]
    #[inline(never)]
    fn end_heavy(&self, task: &mut Task, cost: u64, out: &mut Light) {
        task.strand(cost);
        let mut outcome = Outcome::default();
        self.end(task, &mut outcome);
        *out = outcome.into();
        self.begin_anew(); // what this took is ours
    }

    /// The current task ends, wherever it was started.
    #[cold]
    #[inline(never)]
    pub fn end_stolen(&self, running: &mut Running, tag: usize, out: &mut Light) {
        let cost = self.cost_timed(running, tag);
        running.task.strand(cost);
        let outcome: Outcome = self.end_apart(&mut running.task).into();
        self.count_forks(1);
        *out = outcome.into();
        self.begin_anew(); // as above
    }

    /// The children of a task that waits have ended: see [`Task::join_light`].
    #[inline(always)]
    pub fn join_light(&self, task: &mut Task, sides: (&mut Light, &mut Light), tallies: &[Tally; 2]) {
        if task.join_light(sides, tallies, self.burden.get(), scale, self.arena()) {
            self.begin_anew(); // what this took is ours
        }
    }

    /// The two sides of the fork of that key, if that was the last one that was looked up.
    #[inline(always)]
    pub fn last_sides(&self, key: ForkKey) -> Option<&'static [Tally; 2]> {
        (self.last.key.get() == key).then(|| self.last.sides.get())
    }

    /// The two sides of the fork of that key, looked up before or found: a site and what it means to invoke it here.
    pub fn sides(&self, key: ForkKey, find: impl FnOnce() -> [(Site, Entry); 2]) -> &'static [Tally; 2] {
        let slot = &self.light[(key.0 >> 3 ^ key.1 ^ (key.2 as usize).wrapping_mul(7)) % FORK_SLOTS];
        let sides = if slot.key.get() == key { slot.sides.get() } else { self.new_sides(key, find) };
        for slot in [slot, &self.last] {
            slot.key.set(key);
            slot.sides.set(sides);
        }
        sides
    }

    #[cold]
    #[inline(never)]
    fn new_sides(&self, key: ForkKey, find: impl FnOnce() -> [(Site, Entry); 2]) -> &'static [Tally; 2] {
        self.refresh();
        let known = || self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sides) = known().get(&key) {
            return sides;
        }
        // Sums that outlive their thread, as its books do.
        let sides = Box::leak(Box::new(find().map(|(site, entry)| Tally::new(site, entry))));
        known().insert(key, sides);
        sides
    }
}
