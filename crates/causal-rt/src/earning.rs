//! Earning: running the selected target makes the others owe.
//!
//! A sample says that the thread runs a target, and stands for a period of its time. Earning all of it at once would
//! make the others pause in lumps of a period. Where threads meet more often than that (at a barrier, in a queue) a lump
//! delays one meeting by a lot and the others not at all, and what is gained at the many is not lost at the one: a
//! target that sets the pace looks worthless. So a sample gives a *budget* of one period, which the thread spends
//! by running: it earns `speedup` for every nanosecond until the budget is spent, and everybody can tell at any time how
//! much that is ([`wire::causal::Earner`]). It earns nothing while it waits or pauses.
//!
//! Budgets are given and spent whatever is selected just now. An experiment on a target thus begins with the threads
//! that run it earning at once, and what is left of budgets when it ends is made up for by what was there at its start.

use crate::points;
use core::cell::Cell;
use core::sync::atomic::Ordering::*;
use wire::causal::{EARNERS_MAX, Shared, controlled, delay_ns, epoch, pack};

/// A budget holds no more than this many samples; further ones are earned at once.
const BUDGET_MAX_SAMPLES: u64 = 4;

/// One thread's earning. Touched by its thread only; others see the published [`wire::causal::Earner`].
pub struct Earning {
    target: Cell<u32>,
    budget_ns: Cell<u64>,
    /// Since when the budget is being spent; 0 while the thread waits.
    since_ns: Cell<u64>,
    /// Bit of the place where it is published; 0 for none.
    bit: Cell<u64>,
}

/// What is selected now, if the experiment of this epoch is alive: target and thousandths.
fn selected(shared: &Shared, of: u16, now_ns: u64) -> Option<(u32, u32)> {
    let (epoch, permille, target) = controlled(shared.hot.control.load(Acquire));
    (epoch == of && target != 0 && now_ns < shared.hot.until_ns.load(Relaxed))
        .then_some((target, u32::from(permille)))
}

impl Earning {
    pub const fn new() -> Self {
        Self {
            target: Cell::new(0),
            budget_ns: Cell::new(0),
            since_ns: Cell::new(0),
            bit: Cell::new(0),
        }
    }

    /// A thread begins.
    pub fn begin(&self, now_ns: u64) {
        self.target.set(0);
        self.budget_ns.set(0);
        self.since_ns.set(now_ns);
    }

    /// The bit of this thread among those that earn.
    #[inline(always)]
    pub fn bit(&self) -> u64 {
        self.bit.get()
    }

    /// Spends the budget until now and gives `paid` with what that has earned.
    pub fn collect(&self, shared: &Shared, paid: u64, now_ns: u64) -> u64 {
        let since = self.since_ns.get();
        if since == 0 || self.budget_ns.get() == 0 {
            self.since_ns.set(if since == 0 { 0 } else { now_ns });
            return paid;
        }
        let spent = now_ns.saturating_sub(since).min(self.budget_ns.get());
        self.budget_ns.set(self.budget_ns.get() - spent);
        self.since_ns.set(now_ns);
        let Some(permille) = self.earns(shared, paid, now_ns) else {
            self.withdraw(shared);
            return paid;
        };
        // What was spent before the experiment began has earned nothing in it.
        let began = since.max(shared.hot.since_ns.load(Relaxed));
        let counts = (since + spent).saturating_sub(began);
        let paid = pack(epoch(paid), delay_ns(paid) + counts * u64::from(permille) / 1000);
        raise(shared, paid);
        if self.budget_ns.get() == 0 {
            self.withdraw(shared);
        } else {
            self.publish(shared, paid, permille);
        }
        paid
    }

    /// A sample that stands for `ns` fell on a target; `collect` was called just before.
    pub fn sampled(&self, shared: &Shared, paid: u64, target: u32, ns: u64, now_ns: u64) -> u64 {
        let left = self.budget_ns.get();
        if left == 0 || self.target.get() == target {
            self.target.set(target);
            let budget = left + ns;
            let most = ns.saturating_mul(BUDGET_MAX_SAMPLES);
            self.budget_ns.set(budget.min(most));
            let Some(permille) = self.earns(shared, paid, now_ns) else { return paid };
            let earns = |ns: u64| ns * u64::from(permille) / 1000;
            let paid = pack(epoch(paid), delay_ns(paid) + earns(budget.saturating_sub(most)));
            raise(shared, paid);
            self.publish(shared, paid, permille);
            points::delayed(shared, earns(ns));
            return paid;
        }
        // A rest of the selected target is spent to the end; any other is of no use.
        if self.earns(shared, paid, now_ns).is_none() {
            self.target.set(target);
            self.budget_ns.set(ns);
            if let Some(permille) = self.earns(shared, paid, now_ns) {
                self.publish(shared, paid, permille);
                points::delayed(shared, ns * u64::from(permille) / 1000);
            }
        }
        paid
    }

    /// The thread stops running for a while; `collect` was called just before.
    pub fn stop(&self, shared: &Shared, paid: u64) {
        self.since_ns.set(0);
        if self.bit.get() != 0 {
            self.publish(shared, paid, 0);
        }
    }

    /// It runs again.
    pub fn go_on(&self, shared: &Shared, paid: u64, now_ns: u64) {
        self.since_ns.set(now_ns);
        if self.budget_ns.get() == 0 {
            return;
        }
        match self.earns(shared, paid, now_ns) {
            Some(permille) => self.publish(shared, paid, permille),
            None => self.withdraw(shared),
        }
    }

    /// The thread ends: the rest of its budget is earned at once.
    pub fn finish(&self, shared: &Shared, paid: u64, now_ns: u64) -> u64 {
        let mut paid = self.collect(shared, paid, now_ns);
        if let Some(permille) = self.earns(shared, paid, now_ns) {
            let rest = self.budget_ns.get() * u64::from(permille) / 1000;
            paid = pack(epoch(paid), delay_ns(paid) + rest);
            raise(shared, paid);
        }
        self.budget_ns.set(0);
        self.withdraw(shared);
        paid
    }

    /// How much the thread's budget earns, if its target is the selected one.
    fn earns(&self, shared: &Shared, paid: u64, now_ns: u64) -> Option<u32> {
        selected(shared, epoch(paid), now_ns).and_then(|(t, p)| (t == self.target.get()).then_some(p))
    }

    fn publish(&self, shared: &Shared, paid: u64, permille: u32) {
        if self.bit.get() == 0 {
            self.claim(shared);
        }
        let at = self.bit.get().trailing_zeros() as usize;
        if let Some(earner) = shared.earners.get(at) {
            earner.set(permille, paid, self.since_ns.get(), self.budget_ns.get());
        }
    }

    /// Finds a place. Without one the thread earns whenever it collects, unseen in between.
    fn claim(&self, shared: &Shared) {
        let earning = &shared.hot.earning;
        let mut used = earning.load(Relaxed);
        while used != u64::MAX {
            let bit = !used & used.wrapping_add(1);
            // An idle place has nothing to show: the words in it are of an earlier epoch or were raised to `global`.
            match earning.compare_exchange_weak(used, used | bit, AcqRel, Relaxed) {
                Ok(_) => return self.bit.set(bit),
                Err(now) => used = now,
            }
        }
    }

    fn withdraw(&self, shared: &Shared) {
        let bit = self.bit.replace(0);
        if bit != 0 {
            if let Some(earner) = shared.earners.get(bit.trailing_zeros() as usize) {
                earner.set(0, 0, 0, 0);
            }
            shared.hot.earning.fetch_and(!bit, AcqRel);
        }
    }
}

/// Makes `global` at least `ours`, which has been earned.
fn raise(shared: &Shared, ours: u64) {
    let mut global = shared.hot.global.load(Relaxed);
    // `global` never falls within an epoch, and a new epoch makes ours void.
    while epoch(global) == epoch(ours) && global < ours {
        match shared.hot.global.compare_exchange_weak(global, ours, AcqRel, Relaxed) {
            Ok(_) => return,
            Err(now) => global = now,
        }
    }
}

const _: () = assert!(EARNERS_MAX == u64::BITS as usize);
