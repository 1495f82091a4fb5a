//! What a thread owes.
//!
//! ```text
//! global   delay that every thread must serve in this experiment
//! paid     of which this thread has served, or need not serve
//! debt     global - paid
//! ```
//! Three things make `paid` grow: a sample of the thread's own on the selected target (which makes `global` grow if
//! `paid` gets ahead of it), a pause, and being excused. A thread is excused from the delays of a time in which it
//! waited for another thread: whoever woke it had paid before, and the wait was longer for it.
//!
//! # More threads than cores
//! Waiting for a core that another thread of the program has is such a wait, too, if that thread keeps the core while
//! it pays. So then pauses are spun, and of the delays of an interval a thread is excused from the part that it
//! spent off its core. Two threads that share a core then pay each delay once between them, as they should: it is
//! the core that has to stand still. (With pauses that free the core, one thread's pause is the other one's gain and
//! nobody is delayed: predictions for the running thread come out too high.)
//!
//! What was overslept is kept as `excess` and taken off later pauses; it never makes `global` grow, or every late
//! wake-up would slow everybody down.

use crate::pause::{self, Paused};
use crate::points;
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::*};
use wire::causal::{Shared, ThreadCell, delay_ns, doing, epoch, pack};

/// One thread's account. Touched by its thread only, but for the shared cell, which the experimenter reads.
pub struct Ledger {
    cell: AtomicPtr<ThreadCell>,
    excess_ns: Cell<u64>,
    /// Core time used by pauses that no sample has been dropped for yet.
    spun_ns: Cell<u64>,
    /// `global` when the wait began.
    wait_global: Cell<u64>,
    /// Outputs of the process when the wait began.
    wait_outputs: Cell<u64>,
    wait_since_ns: Cell<u64>,
    /// State at the last sample.
    seen_global: Cell<u64>,
    seen_wall_ns: Cell<u64>,
    seen_cpu_ns: Cell<u64>,
    /// Time in waits and pauses since then: off-CPU time that is accounted for.
    explained_ns: Cell<u64>,
}

/// Outputs to other threads so far, and the last one's delay: who reads a pipe is woken by who writes it.
static OUTPUTS: AtomicU64 = AtomicU64::new(0);
static OUTPUT_GLOBAL: AtomicU64 = AtomicU64::new(0);

impl Ledger {
    /// For a slot; `cell` must be the slot's own for ever.
    pub const fn new(cell: *mut ThreadCell) -> Self {
        Self {
            cell: AtomicPtr::new(cell),
            excess_ns: Cell::new(0),
            spun_ns: Cell::new(0),
            wait_global: Cell::new(0),
            wait_outputs: Cell::new(0),
            wait_since_ns: Cell::new(0),
            seen_global: Cell::new(0),
            seen_wall_ns: Cell::new(0),
            seen_cpu_ns: Cell::new(0),
            explained_ns: Cell::new(0),
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

    /// A thread begins that owes what `paid` says it owes.
    pub fn begin(&self, shared: &Shared, paid: u64, tid: u32, cpu_ns: u64) {
        self.excess_ns.set(0);
        self.spun_ns.set(0);
        self.explained_ns.set(0);
        self.seen_global.set(shared.hot.global.load(Relaxed));
        self.seen_wall_ns.set(pause::now_ns());
        self.seen_cpu_ns.set(cpu_ns);
        self.set_paid(paid);
        self.cell().tid.store(tid, Relaxed);
        self.cell().doing.store(doing::RUNS, Release);
        shared.counts.running.fetch_add(1, Relaxed);
    }

    /// The thread ends.
    pub fn end(&self, shared: &Shared) {
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

    /// A sample of `ns` fell on the selected target: the others owe, not this thread.
    pub fn earn(&self, shared: &Shared, ns: u64) {
        let mut global = shared.hot.global.load(Relaxed);
        let paid = self.enter_epoch(global);
        let ours = pack(epoch(paid), delay_ns(paid) + ns);
        self.set_paid(ours);
        // `global` never falls within an epoch, and a new epoch makes ours void.
        while epoch(global) == epoch(ours) && global < ours {
            match shared.hot.global.compare_exchange_weak(global, ours, AcqRel, Relaxed) {
                Ok(_) => return points::delayed(shared, delay_ns(ours) - delay_ns(global)),
                Err(now) => global = now,
            }
        }
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
    pub fn pass_time(&self, shared: &Shared, cpu_ns: u64) -> (u64, u64) {
        let (wall, global) = (pause::now_ns(), shared.hot.global.load(Relaxed));
        let wall_passed = wall.saturating_sub(self.seen_wall_ns.replace(wall)).max(1);
        let cpu_passed = cpu_ns.saturating_sub(self.seen_cpu_ns.replace(cpu_ns));
        let explained = self.explained_ns.replace(0);
        let seen = self.seen_global.replace(global);
        let off_core = wall_passed.saturating_sub(cpu_passed).saturating_sub(explained);
        if !crowded(shared) && shared.credit_unexplained.load(Relaxed) == 0 {
            return (cpu_passed + off_core, cpu_passed);
        }
        let grown = if epoch(seen) == epoch(global) {
            delay_ns(global) - delay_ns(seen).min(delay_ns(global))
        } else {
            delay_ns(global)
        };
        let excused = (u128::from(grown) * u128::from(off_core) / u128::from(wall_passed)) as u64;
        self.excuse(global, excused);
        (cpu_passed, cpu_passed)
    }

    fn excuse(&self, global: u64, ns: u64) {
        let paid = self.enter_epoch(global);
        let more = delay_ns(paid) + ns;
        if more > delay_ns(paid) {
            self.set_paid(pack(epoch(global), more.min(delay_ns(global)).max(delay_ns(paid))));
        }
    }

    /// Serves all debts. Delays that grow meanwhile are served, too: the thread goes on once it owes nothing.
    pub fn settle(&self, shared: &Shared) {
        loop {
            let global = shared.hot.global.load(Acquire);
            let paid = self.enter_epoch(global);
            let debt = delay_ns(global).saturating_sub(delay_ns(paid));
            if debt == 0 {
                return;
            }
            let excess = self.excess_ns.get();
            let off = excess.min(debt);
            self.excess_ns.set(excess - off);
            if debt > off {
                let asked = debt - off;
                let Paused { took_ns, spun_ns } = pause::pause(shared, asked, global, crowded(shared));
                self.spun_ns.set(self.spun_ns.get() + spun_ns);
                self.excess_ns.set(self.excess_ns.get() + took_ns.saturating_sub(asked));
                self.explained_ns.set(self.explained_ns.get() + took_ns);
                self.cell().spun_ns.fetch_add(spun_ns, Relaxed);
            }
            self.set_paid(global);
        }
    }

    /// The thread, which owes nothing, is about to block.
    pub fn wait_begins(&self, shared: &Shared, for_thread: bool) {
        self.wait_global.set(shared.hot.global.load(Relaxed));
        self.wait_since_ns.set(pause::now_ns());
        self.wait_outputs.set(OUTPUTS.load(Relaxed));
        self.cell().doing.store(if for_thread { doing::WAITS } else { doing::AWAY }, Relaxed);
        shared.counts.running.fetch_sub(1, Relaxed);
    }

    /// It runs again. `woken`: by another thread.
    pub fn wait_ends(&self, shared: &Shared, woken: bool) {
        shared.counts.running.fetch_add(1, Relaxed);
        self.cell().doing.store(doing::RUNS, Relaxed);
        let waited = pause::now_ns().saturating_sub(self.wait_since_ns.get());
        self.explained_ns.set(self.explained_ns.get() + waited);
        if woken {
            self.excuse_since_wait(shared.hot.global.load(Acquire));
        }
    }

    /// How long the wait that has just ended took.
    pub fn waited_ns(&self) -> u64 {
        pause::now_ns().saturating_sub(self.wait_since_ns.get())
    }

    /// A reader was woken, perhaps by another thread's output: excused from what had accrued until then.
    pub fn excuse_reader(&self, shared: &Shared) {
        if OUTPUTS.load(Acquire) != self.wait_outputs.get() {
            let global = shared.hot.global.load(Relaxed);
            let last = OUTPUT_GLOBAL.load(Relaxed);
            if epoch(last) == epoch(global) {
                self.excuse_since_wait(last);
            }
        }
    }

    fn excuse_since_wait(&self, until: u64) {
        let since = self.wait_global.get();
        let grown = if epoch(since) == epoch(until) {
            delay_ns(until).saturating_sub(delay_ns(since))
        } else {
            // It slept through the start of the experiment.
            delay_ns(until)
        };
        self.excuse(until, grown);
    }
}

/// The calling thread, which owes nothing, is about to write what another one may read.
pub fn output(shared: &Shared) {
    OUTPUT_GLOBAL.store(shared.hot.global.load(Relaxed), Relaxed);
    OUTPUTS.fetch_add(1, Release);
}

/// Whether more threads want to run than there are cores.
fn crowded(shared: &Shared) -> bool {
    shared.counts.running.load(Relaxed) > shared.cores.load(Relaxed)
}
