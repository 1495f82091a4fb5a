//! Strands and forks in [`Mode::Timed`](super::Mode::Timed): what most runs are, with as little as can be done for each.
//!
//! One reading of the clock ends a strand and begins the next, unless something has happened in between; short strands share
//! readings ([`share`](crate::share)). Forks are looked up with the sums of what ended there on this thread ([`Tally`]).

use super::{FORK_SLOTS, Local, Running, scale};
use crate::share::Habit;
use crate::{clock, samples};
use core::cell::Cell;
use core::mem::MaybeUninit;
use spandag::task::{Light, Outcome, Tally, Task};
use spandag::{Context, Cost, Entry, Site};
use std::sync::PoisonError;

/// What tells forks apart: what was forked, in which context.
pub type ForkKey = (usize, usize, Context);

/// What a side of a fork is made of when it turns out to be needed: most end without having forked or been sampled.
pub struct Fresh {
    /// Where it starts on the program's path.
    pub start: (Cost, Cost),
    /// What kind of operation it belongs to.
    pub kind: (usize, usize),
}

/// A place that forks light tasks, in one context, as one thread knows it.
pub struct Place {
    /// What is invoked.
    pub sides: [Tally; 2],
    /// Strands that end there: with the fork, with its first side and with its second one.
    pub habits: [Habit; 3],
}

impl Place {
    const fn new(sides: [Tally; 2]) -> Self {
        Self { sides, habits: [const { Habit::new() }; 3] }
    }
}

/// A fork of light tasks that was looked up.
pub(super) struct LightFork {
    key: Cell<ForkKey>,
    place: Cell<&'static Place>,
}

impl LightFork {
    pub(super) const fn none() -> LightFork {
        const fn nothing() -> Tally {
            Tally::new(0, Entry { context: 0, top_site: false, top_caller: false })
        }
        static NOTHING: Place = Place::new([nothing(), nothing()]);
        LightFork { key: Cell::new((0, 0, 0)), place: Cell::new(&NOTHING) }
    }

    pub(super) fn forget(&self) {
        self.key.set((0, 0, 0));
    }
}

impl Local {
    /// The task that runs on this thread. A thread that the program started itself gets one of its own.
    #[inline(always)]
    pub fn current(&self) -> *mut Running {
        if !self.fresh.get().is_null() {
            self.make();
        }
        let current = self.current.get();
        if current.is_null() { self.adopt() } else { current }
    }

    /// A task starts that follows on what came before it, as said by [`pause_timed`](Self::pause_timed), if that is so. It
    /// is made in `running` when somebody asks for it, out of what stays where it is until then.
    #[inline(always)]
    pub fn start_timed(
        &self,
        running: &mut MaybeUninit<Running>,
        tag: usize,
        fresh: &Fresh,
        tally: &'static Tally,
    ) -> bool {
        let base = core::ptr::from_ref(running) as usize + size_of::<Running>();
        let follows = self.resume_timed(running.as_mut_ptr(), base, tag);
        self.fresh_tally.set(tally);
        self.fresh.set(fresh);
        follows
    }

    /// Makes the current task.
    #[inline(always)]
    pub(super) fn make(&self) {
        let current = self.current.get();
        // SAFETY: see `start_timed`: both are there as long as the task has not ended, and this is not null.
        let (fresh, tally) = unsafe { (&*self.fresh.get(), &*self.fresh_tally.get()) };
        let base = current as usize + size_of::<Running>();
        let mut running = Running::new(Task::at(tally.site, tally.entry, fresh.start), base, fresh.kind);
        running.task.on(self.arena());
        running.is_followed = self.may_follow();
        // SAFETY: a place for it, which nobody has written to.
        unsafe { current.write(running) };
        self.fresh.set(core::ptr::null());
    }

    #[cold]
    #[inline(never)]
    pub(super) fn make_now(&self) {
        self.make();
    }

    /// As [`pause`](Self::pause), in [`Mode::Timed`], where [`current`](Self::current) has said that there is a task. The
    /// next strand that starts under the name `tag` on this thread starts where this one ended. Without a habit, the
    /// clock is read.
    #[inline(always)]
    pub fn pause_timed(&self, tag: usize, habit: Option<&Habit>) {
        let current = self.current.get();
        let cost = self.cost_timed(current, tag, habit);
        // SAFETY: as in `pause`.
        unsafe { &mut *current }.task.strand(cost);
    }

    /// What the strand of `current` costs that ends.
    #[inline(always)]
    pub(super) fn cost_timed(&self, current: *mut Running, tag: usize, habit: Option<&Habit>) -> u64 {
        self.strand.set(0);
        self.tag.set(tag);
        self.cost_shared(habit, |habit| self.cost_read(current, habit))
    }

    /// What the strand that ends is charged, or what `read` says.
    #[inline(always)]
    pub(super) fn cost_shared(&self, habit: Option<&Habit>, read: impl FnOnce(Option<&Habit>) -> u64) -> u64 {
        // SAFETY: a word of this thread's, or one that is never written.
        let calm = unsafe { self.calm.get().read_volatile() } != 0;
        match habit.filter(|_| calm).and_then(|habit| self.sharing.charge(habit)) {
            Some(cost) => cost,
            None => read(habit),
        }
    }

    /// The same by the clock.
    #[inline(never)]
    fn cost_read(&self, current: *mut Running, habit: Option<&Habit>) -> u64 {
        let now = clock::tsc();
        // After the clock: see `crate::clock`.
        // SAFETY: as above.
        if unsafe { self.calm.get().read_volatile() } == 0 {
            return self.cost_closely(current);
        }
        let cost = now.wrapping_sub(self.begun.get()).wrapping_sub(self.hook.get());
        self.begun.set(now);
        let cost = cost.cast_signed().max(0).cast_unsigned();
        self.earn(cost);
        match habit {
            Some(habit) => self.sharing.read(cost, habit),
            None => self.sharing.settle(cost),
        }
    }

    /// The same where something has happened: the thread was preempted, or got a signal, as for a sample.
    #[cold]
    #[inline(never)]
    fn cost_closely(&self, current: *mut Running) -> u64 {
        let (cost, now) = self.clock.end(self.begun.get());
        self.begun.set(now);
        let cost = self.sharing.settle(cost);
        // SAFETY: as in `pause`.
        let sampled = unsafe { (&raw const (*self.samples.get()).taken).read_volatile() };
        if sampled == 0 {
            return cost;
        }
        let cost = cost.saturating_sub(sampled * samples::cost());
        if !self.fresh.get().is_null() {
            self.make_now();
        }
        // SAFETY: as in `pause`.
        let running = unsafe { &mut *current };
        // It ends: one that is followed does not fork here.
        self.all_calls_return(running);
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
        self.strand.set(base as u64);
        follows
    }

    /// The strand starts only now: what was done since the last one ended is ours.
    #[cold]
    #[inline(never)]
    pub fn begin_anew(&self) {
        self.sharing.forget();
        self.begun.set(self.clock.begin());
    }

    /// The task that [started](Self::start_timed) in `running` unwinds: what it measured is lost.
    #[cold]
    #[inline(never)]
    pub fn lose_timed(&self, running: &mut MaybeUninit<Running>) {
        let is_made = self.fresh.get().is_null();
        self.leave();
        if is_made {
            // SAFETY: whatever ran on this stack since has said so when it returned or unwound, so that this is the
            // current task again; and it was made.
            let running = unsafe { running.assume_init_mut() };
            running.lose(self.arena());
            // SAFETY: as above; nobody uses it any more.
            unsafe { core::ptr::drop_in_place(running) };
        }
    }

    /// The task that [started](Self::start_timed) in `running` ends, on the thread of who waits for it, and directly after
    /// what came before it. Whether what it leaves in `out` owns memory.
    #[inline(always)]
    pub fn end_light(
        &self,
        running: &mut MaybeUninit<Running>,
        tag: usize,
        tally: &Tally,
        habit: Option<&Habit>,
        out: &mut MaybeUninit<Light>,
    ) -> bool {
        let cost = self.cost_timed(running.as_mut_ptr(), tag, habit);
        if !self.fresh.get().is_null() {
            if let Some(light) = Light::of_strand(cost, tally, self.heavy.get()) {
                self.fresh.set(core::ptr::null());
                self.current.set(core::ptr::null_mut());
                out.write(light);
                return false;
            }
            self.make_now();
        }
        self.current.set(core::ptr::null_mut());
        // SAFETY: it was made.
        let running = unsafe { running.assume_init_mut() };
        // One that is followed is never light.
        let heavy = if running.is_followed { 0 } else { self.heavy.get() };
        if let Some(light) = running.task.finish_light(cost, tally, heavy) {
            out.write(light);
            return false;
        }
        self.end_heavy(running, cost, out);
        true
    }

    #[cold]
    #[inline(never)]
    fn end_heavy(&self, running: &mut Running, cost: u64, out: &mut MaybeUninit<Light>) {
        let cost = cost + self.left_over();
        self.all_calls_return(running);
        running.task.strand(cost);
        let mut outcome = Outcome::default();
        self.end(&mut running.task, &mut outcome);
        drop(running.callers.take());
        out.write(outcome.into());
        self.begin_anew(); // what this took is ours
    }

    /// The current task ends, wherever it was started.
    #[cold]
    #[inline(never)]
    pub fn end_stolen(&self, running: &mut MaybeUninit<Running>, tag: usize, out: &mut MaybeUninit<Light>) {
        if !self.fresh.get().is_null() {
            self.make_now();
        }
        // SAFETY: it was made.
        let running = unsafe { running.assume_init_mut() };
        let cost = self.cost_timed(running, tag, None);
        self.all_calls_return(running);
        running.task.strand(cost);
        drop(running.callers.take());
        let outcome: Outcome = self.end_apart(&mut running.task).into();
        self.count_forks(1);
        out.write(outcome.into());
        self.begin_anew(); // as above
    }

    /// The children of a task that waits have ended: see [`Task::join_light`].
    #[inline(always)]
    pub fn join_light(&self, task: &mut Task, sides: (&mut Light, &mut Light), tallies: &[Tally; 2]) {
        // What was charged is settled before it takes long.
        let mut left_over = 0;
        let scale = || {
            left_over = self.left_over();
            scale()
        };
        if task.join_light(sides, tallies, self.burden.get(), scale, self.arena()) {
            task.strand(left_over);
            self.begin_anew(); // what this took is ours
        }
    }

    /// What has passed since the clock was read, beyond what strands were charged.
    #[cold]
    #[inline(never)]
    pub(super) fn left_over(&self) -> u64 {
        if !self.sharing.is_open() {
            return 0;
        }
        let (cost, now) = self.clock.end(self.begun.get());
        self.begun.set(now);
        self.sharing.settle(cost)
    }

    /// The place of that key, if that was the last one that was looked up.
    #[inline(always)]
    pub fn last_place(&self, key: ForkKey) -> Option<&'static Place> {
        (self.last.key.get() == key).then(|| self.last.place.get())
    }

    /// The place of that key, looked up before or found: for each side a site and what it means to invoke it here.
    pub fn place(&self, key: ForkKey, find: impl FnOnce() -> [(Site, Entry); 2]) -> &'static Place {
        let slot = &self.light[(key.0 >> 3 ^ key.1 ^ (key.2 as usize).wrapping_mul(7)) % FORK_SLOTS];
        let place = if slot.key.get() == key { slot.place.get() } else { self.new_place(key, find) };
        for slot in [slot, &self.last] {
            slot.key.set(key);
            slot.place.set(place);
        }
        place
    }

    #[cold]
    #[inline(never)]
    fn new_place(&self, key: ForkKey, find: impl FnOnce() -> [(Site, Entry); 2]) -> &'static Place {
        self.refresh();
        let known = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = known().get(&key) {
            return place;
        }
        // Sums that outlive their thread, as its books do.
        let sides = find().map(|(site, entry)| Tally::new(site, entry));
        let place = Box::leak(Box::new(Place::new(sides)));
        known().insert(key, place);
        self.begin_anew(); // what this took is ours
        place
    }
}
