//! Earning: running the selected target makes the others owe.
//!
//! A sample says that the thread runs a target, and stands for a period of its time. Earning all of it at once would
//! make the others pause in lumps of a period. Where threads meet more often than that (at a barrier, in a queue) a lump
//! delays one meeting by a lot and the others not at all, and what is gained at the many is not lost at the one: a
//! target that sets the pace looks worthless. So a thread earns *while* it runs:
//! ```text
//! rate     = share x (1 + balance / LEEWAY)       of its running time
//! balance  = samples on the target x period - what was earned
//! ```
//! `share` is how much of the current segment is the target's, as far as is known (see `habit`), and puts delays where
//! they belong in time; `balance` follows the samples and makes them right in amount. What is earned
//! by now can be told by everybody at any time ([`wire::causal::Earner`]). Nothing is earned while the thread waits
//! or pauses.

use crate::habit::{self, WHOLE, Who, mix};
use crate::{crowd, points};
use core::cell::Cell;
use core::sync::atomic::Ordering::*;
use wire::causal::{EARNERS_MAX, Shared, controlled, delay_ns, epoch, pack};

/// Periods by which earning may be ahead of samples or behind before it stops or doubles.
const LEEWAY_PERIODS: u64 = 12;
/// Periods by which earning may be behind: what is beyond is earned at once. Samples of a thread that others keep off
/// its core stand for more than it ran.
const BEHIND_PERIODS: u64 = 2;
/// Highest rate. More than its running time a thread earns only to make up for what it has not earned before.
const RATE_MAX: u64 = 2 * WHOLE;
/// Periods after which a thread that has not been heard of earns no more: it may be blocked where no hook sees it.
const HORIZON_PERIODS: u64 = 2;
/// Changes of segment in a period beyond which segments are not told apart: they are shorter than what telling costs.
const CHANGES_MAX: u32 = 400;
/// A thread with a smaller share of its samples on the target has nothing to do with it.
const SHARE_MIN: u64 = WHOLE / 200;
/// The one segment of a thread with too many, and the first one of any.
const FINE: u64 = 1;
const START: u64 = 2;

/// One thread's earning. Touched by its thread only; others see the published [`wire::causal::Earner`].
pub struct Earning {
    routine: Cell<u64>,
    serial: Cell<u64>,
    segment: Cell<u64>,
    changes: Cell<u32>,
    fine: Cell<bool>,
    /// Whether the thread has to do with the selected target at all.
    candidate: Cell<bool>,
    /// The experiment that the rest is about.
    epoch: Cell<u16>,
    balance_ns: Cell<i64>,
    /// Of [`WHOLE`].
    rate: Cell<u64>,
    /// Since when the thread earns at this rate; 0 while it waits.
    since_ns: Cell<u64>,
    /// Bit of the place where it is published; 0 for none.
    bit: Cell<u64>,
}

/// What is selected now, if the experiment of this epoch is alive: target and thousandths.
fn selected(shared: &Shared, of: u16, now_ns: u64) -> Option<(u32, u64)> {
    let (epoch, permille, target) = controlled(shared.hot.control.load(Acquire));
    (epoch == of && target != 0 && now_ns < shared.hot.until_ns.load(Relaxed))
        .then_some((target, u64::from(permille)))
}

impl Earning {
    pub const fn new() -> Self {
        Self {
            routine: Cell::new(0),
            serial: Cell::new(0),
            segment: Cell::new(START),
            changes: Cell::new(0),
            fine: Cell::new(false),
            candidate: Cell::new(false),
            epoch: Cell::new(0),
            balance_ns: Cell::new(0),
            rate: Cell::new(0),
            since_ns: Cell::new(0),
            bit: Cell::new(0),
        }
    }

    /// A thread begins. What the last one of the same kind was ahead or behind is its heir's.
    pub fn begin(&self, shared: &Shared, paid: u64, routine: usize, serial: u64, now_ns: u64) {
        if self.routine.replace(mix(routine as u64, START)) != mix(routine as u64, START) {
            self.balance_ns.set(0);
        }
        self.serial.set(mix(serial, FINE));
        self.segment.set(START);
        self.changes.set(0);
        self.fine.set(false);
        self.since_ns.set(now_ns);
        if self.epoch.replace(epoch(paid)) != epoch(paid) {
            self.balance_ns.set(0);
        }
        self.candidate.set(self.share_of(shared, habit::ANYWHERE, paid, now_ns) > SHARE_MIN);
        self.aim(shared, paid, now_ns);
    }

    /// In a forked child: the bit is one of the parent's memory.
    pub fn forget(&self) {
        self.bit.set(0);
        self.balance_ns.set(0);
    }

    /// The bit of this thread among those that earn.
    #[inline(always)]
    pub fn bit(&self) -> u64 {
        self.bit.get()
    }

    fn whose(&self) -> [Who; 2] {
        [Who(self.routine.get()), Who(self.serial.get())]
    }

    /// Another segment begins. Whether it may earn at another rate: then `collect` and `aim` must follow.
    #[inline(always)]
    pub fn enter(&self, event: u64, object: usize) -> bool {
        self.changes.set(self.changes.get().wrapping_add(1));
        if self.fine.get() {
            return false;
        }
        self.segment.set(mix(object as u64, event));
        self.candidate.get()
    }

    /// Takes what was earned until now: `paid` with it.
    pub fn collect(&self, shared: &Shared, paid: u64, now_ns: u64) -> u64 {
        if self.epoch.replace(epoch(paid)) != epoch(paid) {
            // A new experiment: what the thread has been doing since its start counts for it.
            self.balance_ns.set(0);
            self.candidate.set(self.share_of(shared, habit::ANYWHERE, paid, now_ns) > SHARE_MIN);
            self.rate.set(self.rate_now(shared, paid, now_ns));
        }
        let since = self.since_ns.get();
        if since == 0 {
            return paid;
        }
        self.since_ns.set(now_ns);
        let Some((_, permille)) = selected(shared, epoch(paid), now_ns) else {
            self.withdraw(shared);
            return paid;
        };
        let horizon = HORIZON_PERIODS * shared.period_ns.load(Relaxed);
        let ran = now_ns.saturating_sub(since.max(shared.hot.since_ns.load(Relaxed))).min(horizon);
        let earned = ran * self.rate.get() / WHOLE;
        self.balance_ns.set(self.balance_ns.get() - earned as i64);
        crowd::earned(earned * permille / 1000);
        let paid = pack(epoch(paid), delay_ns(paid) + earned * permille / 1000);
        raise(shared, paid);
        self.publish(shared, paid, permille);
        paid
    }

    /// A sample that stands for `ns` fell on a target, or on none (0): `paid` with what is earned at once. `collect` was
    /// called just before.
    pub fn sampled(&self, shared: &Shared, mut paid: u64, target: u32, ns: u64, now_ns: u64) -> u64 {
        habit::record(self.whose(), self.segment.get(), target);
        let fine = self.changes.replace(0) > CHANGES_MAX;
        if fine != self.fine.replace(fine) {
            self.segment.set(FINE);
        }
        if let Some((chosen, permille)) = selected(shared, epoch(paid), now_ns)
            && chosen == target
        {
            self.candidate.set(true);
            points::delayed(shared, ns * permille / 1000);
            let balance = self.balance_ns.get() + ns as i64;
            let most = (BEHIND_PERIODS * shared.period_ns.load(Relaxed)) as i64;
            self.balance_ns.set(balance.min(most));
            let beyond = (balance - most).max(0) as u64;
            paid = pack(epoch(paid), delay_ns(paid) + beyond * permille / 1000);
            raise(shared, paid);
        }
        self.aim(shared, paid, now_ns);
        paid
    }

    /// Sets the rate anew. `collect` was called just before.
    pub fn aim(&self, shared: &Shared, paid: u64, now_ns: u64) {
        self.rate.set(self.rate_now(shared, paid, now_ns));
        if let Some((_, permille)) = selected(shared, epoch(paid), now_ns) {
            self.publish(shared, paid, permille);
        }
    }

    fn rate_now(&self, shared: &Shared, paid: u64, now_ns: u64) -> u64 {
        if !self.candidate.get() {
            return 0; // it keeps its rate from segment to segment
        }
        let share = self.share_of(shared, self.segment.get(), paid, now_ns) as i64;
        let leeway = (LEEWAY_PERIODS * shared.period_ns.load(Relaxed)).max(1) as i64;
        let factor = WHOLE as i64 + self.balance_ns.get() * WHOLE as i64 / leeway;
        (share * factor / WHOLE as i64).clamp(0, RATE_MAX as i64) as u64
    }

    /// How much of a segment is the selected target's.
    fn share_of(&self, shared: &Shared, segment: u64, paid: u64, now_ns: u64) -> u64 {
        let Some((target, _)) = selected(shared, epoch(paid), now_ns) else { return 0 };
        let hits = shared.samples.get(target as usize).map_or(0, |n| n.load(Relaxed));
        let overall = hits * WHOLE / shared.counts.samples.load(Relaxed).max(1);
        habit::share(self.whose(), segment, target, overall.min(WHOLE))
    }

    /// The thread stops running for a while; `collect` was called just before.
    pub fn stop(&self, shared: &Shared) {
        self.since_ns.set(0);
        self.withdraw(shared);
    }

    /// It runs again.
    pub fn go_on(&self, shared: &Shared, paid: u64, now_ns: u64) {
        self.since_ns.set(now_ns);
        if self.epoch.get() == epoch(paid) {
            self.aim(shared, paid, now_ns);
        }
    }

    fn publish(&self, shared: &Shared, paid: u64, permille: u64) {
        if self.rate.get() == 0 || self.since_ns.get() == 0 {
            return self.withdraw(shared);
        }
        if self.bit.get() == 0 {
            self.claim(shared);
        }
        if let Some(earner) = shared.earners.get(self.bit.get().trailing_zeros() as usize) {
            let millionths = self.rate.get() * permille * 1000 / WHOLE;
            let horizon = HORIZON_PERIODS * shared.period_ns.load(Relaxed);
            earner.set(millionths as u32, paid, self.since_ns.get(), horizon);
        }
    }

    /// Finds a place. Without one the thread earns whenever it collects, unseen in between.
    fn claim(&self, shared: &Shared) {
        let earning = &shared.hot.earning;
        let mut used = earning.load(Relaxed);
        while used != u64::MAX {
            let bit = !used & used.wrapping_add(1);
            match earning.compare_exchange_weak(used, used | bit, AcqRel, Relaxed) {
                Ok(_) => return self.bit.set(bit),
                Err(now) => used = now,
            }
        }
    }

    /// Gives the place back; `global` holds what it showed, since `collect`.
    pub fn withdraw(&self, shared: &Shared) {
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
