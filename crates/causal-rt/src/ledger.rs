//! What a thread owes.
//!
//! ```text
//! global   delay that every thread must serve in this experiment
//! paid     of which this thread has served, or need not serve
//! debt     global - paid
//! ```
//! Three things make `paid` grow: running the selected target (which makes `global` grow if `paid` gets ahead of it,
//! see `earning`), a pause, and being excused. A thread is excused from the delays of a time in which it
//! waited for another thread: whoever woke it had paid before, and the wait was longer for it. Being woken takes time,
//! too; delays of *that* time are owed, so the waker leaves word of what `global` was (see `woken`).
//!
//! # More threads than cores
//! Waiting for a core that another thread of the program has is such a wait, too, if that thread keeps the core while
//! it pays. So then pauses are spun, and of the delays of an interval a thread is excused from the part that it
//! spent off its core. Two threads that share a core then pay each delay once between them, as they should: it is
//! the core that has to stand still. What is earned on the core that a thread waits for is earned while it waits
//! (see `crowd`); of what is earned elsewhere it is excused in proportion. (With pauses that free the core, one thread's pause is the other one's gain and
//! nobody is delayed: predictions for the running thread come out too high.)
//!
//! # Put off its core by whom it woke
//! The kernel likes to run a woken thread on the core of who woke it, at once, even where another core is free: then the waker
//! is in the middle of its wake-up call until the other one blocks. That is a wait for that thread like any other.
//!
//! What was overslept is kept as `excess` and taken off later pauses; it never makes `global` grow, or every late
//! wake-up would slow everybody down.

use crate::earning::Earning;
use crate::pause::{self, Paused, now_ns};
use crate::{crowd, woken};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use preload::sys;
use wire::causal::{Shared, ThreadCell, delay_ns, doing, epoch, pack};

/// Smaller debts wait for more: a pause has a cost of its own.
const DEBT_MIN_NS: u64 = 1_000;

/// A wake-up call that took longer was left by the thread for another one.
const WAKE_MAX_NS: u64 = 100_000;

/// Events that segments begin with.
pub mod event {
    /// The thread has got what it waited for.
    pub const GOT: u64 = 3;
    /// It lets go, or wakes others.
    pub const GAVE: u64 = 4;
}

/// Where a debt is served.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a hook. A sample that falls due meanwhile is dropped by the handler.
    Hook,
    /// In the handler. A sample that falls due meanwhile strikes right afterwards, as if the program had run.
    Handler,
}

/// The time since a thread's last sample.
pub struct Passed {
    /// It ran or wanted to.
    pub wanted_ns: u64,
    /// Of which it ran.
    pub ran_ns: u64,
    /// It was off its core, in no wait or pause of ours.
    pub off_ns: u64,
    /// All of it.
    pub wall_ns: u64,
    /// Pauses that it had.
    pub pauses: u64,
}

/// Who a thread is.
pub struct Beginner {
    /// The kernel's number.
    pub tid: u32,
    /// A number that no other thread has had.
    pub serial: u64,
    /// Its start routine; 0 for the first thread.
    pub routine: usize,
}

/// One thread's account. Touched by its thread only, but for the shared cell, which the experimenter reads.
pub struct Ledger {
    cell: AtomicPtr<ThreadCell>,
    earning: Earning,
    excess_ns: Cell<u64>,
    /// Core time used by pauses in the handler that no sample has been dropped for yet.
    spun_ns: Cell<u64>,
    /// `global` when the wait began.
    wait_global: Cell<u64>,
    wait_mark: Cell<woken::Mark>,
    wait_since_ns: Cell<u64>,
    /// When a wake-up call began, and `global` then; 0 outside of one.
    wake_since_ns: Cell<u64>,
    wake_global: Cell<u64>,
    /// CPU time when a wait began in which the thread spins.
    spin_cpu_ns: Cell<u64>,
    /// State at the last sample.
    seen_global: Cell<u64>,
    seen_wall_ns: Cell<u64>,
    seen_cpu_ns: Cell<u64>,
    seen_core: Cell<crowd::Seen>,
    /// Time since then in waits and pauses: off-CPU time that is accounted for.
    explained_ns: Cell<u64>,
    /// Pauses since then.
    pauses: Cell<u64>,
    /// CPU time since then that pauses took.
    paused_cpu_ns: Cell<u64>,
}

impl Ledger {
    /// For a slot; `cell` must be the slot's own for ever.
    pub const fn new(cell: *mut ThreadCell) -> Self {
        Self {
            cell: AtomicPtr::new(cell),
            earning: Earning::new(),
            excess_ns: Cell::new(0),
            spun_ns: Cell::new(0),
            wait_global: Cell::new(0),
            wait_mark: Cell::new(woken::Mark::NONE),
            wait_since_ns: Cell::new(0),
            spin_cpu_ns: Cell::new(0),
            wake_since_ns: Cell::new(0),
            wake_global: Cell::new(0),
            seen_global: Cell::new(0),
            seen_wall_ns: Cell::new(0),
            seen_cpu_ns: Cell::new(0),
            seen_core: Cell::new(crowd::Seen::NOTHING),
            explained_ns: Cell::new(0),
            pauses: Cell::new(0),
            paused_cpu_ns: Cell::new(0),
        }
    }

    #[inline(always)]
    fn cell(&self) -> &ThreadCell {
        // SAFETY: a live cell in shared memory or in the slot itself (see `new`), made of atomics.
        unsafe { &*self.cell.load(Relaxed) }
    }

    /// Packed delay served so far.
    #[inline(always)]
    pub fn paid(&self) -> u64 {
        self.cell().paid.load(Relaxed)
    }

    #[inline(always)]
    fn set_paid(&self, packed: u64) {
        self.cell().paid.store(packed, Relaxed);
    }

    /// Whether the thread may owe something: a few loads, on the path of every lock.
    #[inline(always)]
    pub fn may_owe(&self, shared: &Shared) -> bool {
        let hot = &shared.hot;
        hot.global.load(Relaxed) != self.paid() || hot.earning.load(Relaxed) & !self.earning.bit() != 0
    }

    /// A thread begins that owes what `paid` says it owes.
    pub fn begin(&self, shared: &Shared, paid: u64, thread: Beginner, cpu_ns: u64) {
        let now = now_ns();
        self.excess_ns.set(0);
        self.wake_since_ns.set(0);
        self.spun_ns.set(0);
        self.explained_ns.set(0);
        self.paused_cpu_ns.set(0);
        self.seen_global.set(shared.global_at(now));
        self.seen_wall_ns.set(now);
        self.seen_cpu_ns.set(cpu_ns);
        self.seen_core.set(crowd::Seen::NOTHING);
        self.set_paid(paid);
        let paid = self.enter_epoch(shared.hot.global.load(Acquire));
        self.earning.begin(shared, paid, thread.routine, thread.serial, now);
        self.show_earner();
        self.cell().tid.store(thread.tid, Relaxed);
        self.cell().doing.store(doing::RUNS, Release);
        shared.counts.running.fetch_add(1, Relaxed);
    }

    /// In a forked child, before it begins: the parent's memory is not its own.
    pub fn forked(&self) {
        self.earning.forget();
    }

    /// The thread ends, after debts are served.
    pub fn end(&self, shared: &Shared) {
        self.settle(shared, Place::Hook);
        self.earning.stop(shared);
        self.show_earner();
        self.cell().doing.store(doing::NOTHING, Release);
        shared.counts.running.fetch_sub(1, Relaxed);
    }

    /// Brings `paid` into the epoch of `global`: in a new one nothing has been paid yet.
    #[inline]
    fn enter_epoch(&self, global: u64) -> u64 {
        let paid = self.paid();
        if epoch(paid) == epoch(global) {
            return paid;
        }
        let paid = pack(epoch(global), 0);
        self.set_paid(paid);
        paid
    }

    /// Takes what the thread has earned by running until now.
    fn collect(&self, shared: &Shared, now_ns: u64) {
        let paid = self.enter_epoch(shared.hot.global.load(Acquire));
        self.set_paid(self.earning.collect(shared, paid, now_ns));
        self.show_earner();
    }

    /// Lets the experimenter know where the thread's earning is published.
    fn show_earner(&self) {
        self.cell().earner.store(self.earning.bit(), Relaxed);
    }

    /// A sample that stands for `ns` fell on a target, or on none (0).
    pub fn sampled(&self, shared: &Shared, target: u32, ns: u64) {
        let now = now_ns();
        self.collect(shared, now);
        self.set_paid(self.earning.sampled(shared, self.paid(), target, ns, now));
        self.show_earner();
    }

    /// Another segment begins (see `habit`).
    #[inline(always)]
    pub fn enter_segment(&self, shared: &Shared, event: u64, object: usize) {
        if self.earning.enter(event, object) {
            self.turn(shared);
        }
    }

    #[cold]
    #[inline(never)]
    fn turn(&self, shared: &Shared) {
        let now = now_ns();
        self.collect(shared, now);
        self.earning.aim(shared, self.paid(), now);
        self.show_earner();
    }

    /// Whether core time of pauses makes up a whole period: then this sample stands for us, not the program.
    pub fn sample_is_ours(&self, period_ns: u64) -> bool {
        let spun = self.spun_ns.get();
        if spun < period_ns {
            return false;
        }
        self.spun_ns.set(spun - period_ns);
        true
    }

    /// At a sample: time since the last one that the thread ran or wanted to, and of which it ran.
    ///
    /// The thread is excused from delays of the time that it spent waiting for a core (or, where the
    /// experimenter says so, waiting in ways that no hook sees).
    ///
    /// With a core for each of the program's threads, time off the core is the fault of other programs. Code that took
    /// half the CPU time would have to wait for cores half as long, too, so such time counts for the sampled code.
    pub fn pass_time(&self, shared: &Shared, cpu_ns: u64) -> Passed {
        let wall = now_ns();
        let global = shared.global_at(wall);
        let seen_wall = self.seen_wall_ns.replace(wall);
        let wall_passed = wall.saturating_sub(seen_wall).max(1);
        let cpu_passed = cpu_ns.saturating_sub(self.seen_cpu_ns.replace(cpu_ns));
        let cpu_passed = cpu_passed.saturating_sub(self.paused_cpu_ns.replace(0));
        let explained = self.explained_ns.replace(0);
        let pauses = self.pauses.replace(0);
        let seen = self.seen_global.replace(global);
        let off_core = wall_passed.saturating_sub(cpu_passed).saturating_sub(explained);
        let passed = |wanted_ns| Passed {
            wanted_ns,
            ran_ns: cpu_passed,
            off_ns: off_core,
            wall_ns: wall_passed,
            pauses,
        };
        let crowded = crowd::was_since(shared, seen_wall);
        if !crowded && shared.credit_unexplained.load(Relaxed) == 0 {
            return passed(cpu_passed + off_core);
        }
        let grown = if epoch(seen) == epoch(global) {
            delay_ns(global) - delay_ns(seen).min(delay_ns(global))
        } else {
            delay_ns(global)
        };
        // All of what was earned on this core, since the thread was off it then; its share of what was earned elsewhere.
        let here = if crowded { crowd::look(&self.seen_core).min(grown) } else { 0 };
        let elsewhere = u128::from(grown - here) * u128::from(off_core) / u128::from(wall_passed);
        let excused = here + elsewhere as u64;
        self.excuse(global, excused);
        passed(cpu_passed)
    }

    fn excuse(&self, global: u64, ns: u64) {
        let paid = self.enter_epoch(global);
        let more = delay_ns(paid) + ns;
        if more > delay_ns(paid) {
            self.set_paid(pack(epoch(global), more.min(delay_ns(global)).max(delay_ns(paid))));
        }
    }

    /// Serves all debts. Delays that grow meanwhile are served, too: the thread goes on once it owes nothing.
    pub fn settle(&self, shared: &Shared, place: Place) {
        let mut now = now_ns();
        self.collect(shared, now);
        let mut paused = false;
        loop {
            let global = shared.global_at(now);
            let paid = self.enter_epoch(global);
            let debt = delay_ns(global).saturating_sub(delay_ns(paid));
            if debt < DEBT_MIN_NS {
                break;
            }
            if !paused {
                paused = true;
                self.earning.stop(shared);
                if place == Place::Hook && crowd::was_since(shared, self.seen_wall_ns.get()) {
                    // What it need not serve is known at samples only, and it may have come here before its next one.
                    self.pass_time(shared, sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID));
                    continue;
                }
            }
            let excess = self.excess_ns.get();
            let off = excess.min(debt);
            self.excess_ns.set(excess - off);
            if debt > off {
                let asked = debt - off;
                let Paused { took_ns, spun_ns } = pause::pause(shared, asked, global, crowd::is_now(shared));
                if place == Place::Handler {
                    self.spun_ns.set(self.spun_ns.get() + spun_ns);
                }
                self.excess_ns.set(self.excess_ns.get() + took_ns.saturating_sub(asked));
                self.explained_ns.set(self.explained_ns.get() + took_ns);
                self.pauses.set(self.pauses.get() + 1);
                self.paused_cpu_ns.set(self.paused_cpu_ns.get() + spun_ns);
                self.cell().spun_ns.fetch_add(spun_ns, Relaxed);
            }
            self.set_paid(global);
            now = now_ns();
        }
        if paused {
            self.earning.go_on(shared, self.paid(), now);
            self.show_earner();
        }
    }

    /// The thread, which owes nothing, is about to wake others; `global` is what everybody owes.
    pub fn wake_begins(&self, global: u64, now_ns: u64) {
        self.wake_since_ns.set(now_ns);
        self.wake_global.set(global);
    }

    /// It is about to do what wakes nobody.
    #[inline(always)]
    pub fn wakes_nobody(&self) {
        self.wake_since_ns.set(0);
    }

    /// It has woken them.
    #[inline(always)]
    pub fn wake_ends(&self, shared: &Shared) {
        let since = self.wake_since_ns.get();
        if since != 0 {
            self.wake_ended(shared, since);
        }
    }

    fn wake_ended(&self, shared: &Shared, since_ns: u64) {
        self.wake_since_ns.set(0);
        let now = now_ns();
        let took = now.saturating_sub(since_ns);
        if took < WAKE_MAX_NS {
            return;
        }
        self.explained_ns.set(self.explained_ns.get() + took);
        let global = shared.global_at(now);
        self.excuse_since(self.wake_global.get(), global);
        self.earning.go_on(shared, self.enter_epoch(global), now);
        self.show_earner();
    }

    /// The thread, which owes nothing, is about to block.
    pub fn wait_begins(&self, shared: &Shared, for_thread: bool) {
        let now = now_ns();
        self.wake_since_ns.set(0);
        self.collect(shared, now);
        self.earning.stop(shared);
        self.wait_global.set(shared.global_at(now));
        self.wait_since_ns.set(now);
        self.wait_mark.set(woken::mark());
        if for_thread {
            self.cell().doing.store(doing::WAITS, Relaxed);
            shared.counts.waiting.fetch_add(1, SeqCst);
        } else {
            self.cell().doing.store(doing::AWAY, Relaxed);
        }
        crowd::one_less(shared, shared.counts.running.fetch_sub(1, Relaxed), now);
    }

    /// It runs again. `by`: what another thread woke it by.
    pub fn wait_ends(&self, shared: &Shared, object: usize, for_thread: bool, by: woken::By) {
        let now = now_ns();
        shared.counts.running.fetch_add(1, Relaxed);
        if for_thread {
            shared.counts.waiting.fetch_sub(1, Relaxed);
        }
        self.cell().doing.store(doing::RUNS, Relaxed);
        let waited = now.saturating_sub(self.wait_since_ns.get());
        self.explained_ns.set(self.explained_ns.get() + waited);
        let global = shared.global_at(now);
        if let Some(until) = woken::until(by, self.wait_mark.get(), self.wait_global.get(), global, waited) {
            self.excuse_since(self.wait_global.get(), until);
        }
        self.earning.enter(event::GOT, object);
        self.earning.go_on(shared, self.enter_epoch(global), now);
        self.show_earner();
        if crowd::was_since(shared, self.seen_wall_ns.get()) {
            // Delays of the wait are settled: the time that is looked at next begins here.
            self.seen_wall_ns.set(now);
            self.seen_global.set(global);
            self.seen_cpu_ns.set(sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID));
            self.explained_ns.set(0);
            self.paused_cpu_ns.set(0);
            crowd::look(&self.seen_core);
        }
    }

    /// A wait has begun in which the thread may spin.
    pub fn spin_begins(&self) {
        self.spin_cpu_ns.set(sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID));
    }

    /// It is about to end: the CPU time that it took is not the program's work.
    pub fn spin_ends(&self) {
        let spun = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.spin_cpu_ns.get());
        self.paused_cpu_ns.set(self.paused_cpu_ns.get() + spun);
        self.cell().spun_ns.fetch_add(spun, Relaxed);
    }

    fn excuse_since(&self, since: u64, until: u64) {
        let grown = if epoch(since) == epoch(until) {
            delay_ns(until).saturating_sub(delay_ns(since))
        } else {
            // It slept through the start of the experiment.
            delay_ns(until)
        };
        self.excuse(until, grown);
    }
}
