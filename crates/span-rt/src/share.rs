//! Readings of the clock that several short strands share.
//!
//! Strands of a few nanoseconds cost less than the reading that ends them. Where strands have been short for long, most
//! of them are charged what such strands have cost of late, and the next reading corrects the sum:
//! ```text
//! elapsed = Σ charged + what is left for the strand that ends with the reading
//! ```
//! So work stays what the clock says; which of a handful of neighbours a nanosecond belongs to is an estimate.
//!
//! Unlike a rewriter of sources we cannot know that a strand is straight code, only that all before it were. So a
//! strand may be long where none was expected. It is then found by the reading that follows a handful of strands later, and
//! counts for the strand that ends there: on work to the tick, on the span as if it had been one of its neighbours.
//! After such a surprise strands are read one by one for a while, and no more time is displaced than a small part of
//! all ([`DISPLACED`]; beside the first few that are very long): interrupts, which look the same, stay below it.
//!
//! # Rules
//! - A strand during which its thread was interrupted is never charged: whoever knows asks for a reading.
//! - Where nobody will read the clock before time passes that is no strand's, the strand is read: see
//!   [`Local`](crate::Local).

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Estimates are kept in fractions of a tick.
const FRACTION: u64 = 256;
/// Ticks up to which a strand is short: some 60 ns.
const SHORT: u64 = 200;
/// Ticks that are no inaccuracy any more: some 0.7 µs.
const SURPRISE: u64 = 2000;
/// Short strands in a row, at one kind of place, after which they share readings; and readings after a surprise.
const TRUST: u32 = 64;
/// The part of a thread's time, one in so many, that may be found where it was not expected. Then nobody shares until
/// enough other time has passed.
const DISPLACED: u64 = 8;
/// Ticks that may be at once: some 80 µs.
const DISPLACED_MIN: u64 = 200_000;
/// Strands that share a reading beside the one that ends with it, on average: first, and when all has gone well for a while.
/// How many exactly is random, so that it is not always the same ones that are read.
const SHARED_FIRST: u32 = 4;
const SHARED_MOST: u32 = 48;

/// What the end of a strand costs, in ticks, where the clock is not read. [`UNKNOWN`]: nobody shares.
pub static HOOK: AtomicU64 = AtomicU64::new(UNKNOWN);
/// See [`HOOK`].
pub const UNKNOWN: u64 = u64::MAX;

/// What strands have been like that end in one kind of place. Written by one thread.
#[derive(Debug, Default)]
pub struct Habit {
    /// What one is charged, in ticks, and 1 more; 0 while they do not share readings.
    each: AtomicU32,
    /// What one costs, in fractions of a tick.
    mean: AtomicU32,
    /// Short ones in a row.
    shorts: AtomicU32,
}

impl Habit {
    /// Nothing is known.
    pub const fn new() -> Self {
        let [each, mean, shorts] = [const { AtomicU32::new(0) }; 3];
        Self { each, mean, shorts }
    }

    /// What one is charged, if they share readings.
    #[inline(always)]
    fn each(&self) -> Option<u64> {
        u64::from(self.each.load(Ordering::Relaxed)).checked_sub(1)
    }

    /// One was read, and has cost that, if those that shared the reading have cost what they were charged. `random` decides
    /// between the two whole numbers next to what one costs.
    #[inline]
    fn learn(&self, ticks: i64, shared: u32, random: u32) {
        const F: i64 = FRACTION as i64;
        let (mean, shorts) =
            (i64::from(self.mean.load(Ordering::Relaxed)), self.shorts.load(Ordering::Relaxed));
        let strands = i64::from(shared) + 1;
        // An interrupt, or a cache that was cold, is not what such strands cost.
        let error = (ticks.saturating_mul(F) - mean).min(4 * strands * (mean + F));
        // They are all of one kind, or nearly: each has its part of the error.
        let mean = if shorts == 0 { error + mean } else { mean + error / (4 * strands).max(16) };
        let mean = mean.clamp(0, u32::MAX.into());
        let most = if shared == 0 { SHORT } else { SURPRISE };
        let is_short = ticks <= most as i64 && mean <= SHORT as i64 * F;
        let shorts = if is_short { shorts.saturating_add(1) } else { 0 };
        let each = if shorts >= TRUST { (mean + i64::from(random) % F) / F + 1 } else { 0 };
        self.mean.store(mean as u32, Ordering::Relaxed);
        self.shorts.store(shorts, Ordering::Relaxed);
        self.each.store(each as u32, Ordering::Relaxed);
    }
}

/// What a thread has charged since it read the clock.
#[derive(Debug)]
pub struct Sharing {
    /// Strands that may still be charged, of how many.
    left: Cell<u32>,
    group: Cell<u32>,
    /// What they were charged.
    charged: Cell<u64>,
    /// Charged, and not found on the clock at earlier readings.
    owed: Cell<u64>,
    /// What the end of a strand costs that does not read the clock.
    hook: Cell<u64>,
    on: Cell<bool>,
    /// Readings before strands share again, and how many will then.
    wait: Cell<u32>,
    most: Cell<u32>,
    /// Strands that shared.
    strands: Cell<u64>,
    /// Ticks that passed, and those that were found where they were not expected.
    passed: Cell<u64>,
    displaced: Cell<u64>,
    /// Strands that were longer than any before them, where they were not expected.
    very_long: Cell<u32>,
    random: Cell<u32>,
}

impl Sharing {
    /// Nothing is charged, and nothing will be before [`start`](Self::start).
    pub const fn new() -> Self {
        Self {
            left: Cell::new(0),
            group: Cell::new(0),
            charged: Cell::new(0),
            owed: Cell::new(0),
            hook: Cell::new(0),
            on: Cell::new(false),
            wait: Cell::new(0),
            most: Cell::new(SHARED_FIRST),
            strands: Cell::new(0),
            passed: Cell::new(0),
            displaced: Cell::new(0),
            very_long: Cell::new(0),
            random: Cell::new(1),
        }
    }

    /// Strands share readings from now on; the end of one costs `hook` ticks where the clock is not read.
    pub fn start(&self, hook: u64) {
        self.hook.set(hook);
        self.on.set(true);
    }

    /// The same, if what that costs is known.
    pub fn start_if_known(&self) {
        let hook = HOOK.load(Ordering::Relaxed);
        if hook != UNKNOWN {
            self.start(hook);
        }
    }

    /// How many did.
    pub fn strands(&self) -> u64 {
        self.strands.get()
    }

    /// A strand ends: what it is charged, if the clock need not be read.
    #[inline(always)]
    pub fn charge(&self, habit: &Habit) -> Option<u64> {
        let left = self.left.get().checked_sub(1)?;
        let each = habit.each()?;
        self.left.set(left);
        self.charged.set(self.charged.get() + each);
        Some(each)
    }

    /// Whether strands were charged since the clock was read.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.left.get() != self.group.get()
    }

    /// The clock was read, and `elapsed` ticks are the strands': what is left for the one that ends with it.
    pub fn settle(&self, elapsed: u64) -> u64 {
        self.corrected(elapsed).max(0).cast_unsigned()
    }

    /// The same for a strand of a place with a habit. The next ones may share.
    #[inline]
    pub fn read(&self, elapsed: u64, habit: &Habit) -> u64 {
        let owed = self.owed.get() as i64;
        let shared = self.group.get() - self.left.get();
        let left = self.corrected(elapsed);
        let surprise = left > SURPRISE as i64 && shared > 0 && habit.each().is_some();
        if surprise {
            self.wait.set(TRUST);
            self.most.set(SHARED_FIRST);
            // One that is very long may be the hypervisor's, and does not count in full; many are the program's.
            let most = DISPLACED_MIN << self.very_long.get();
            if left.unsigned_abs() > most {
                self.very_long.set((self.very_long.get() + 1).min(32));
            }
            self.displaced.set(self.displaced.get() + left.unsigned_abs().min(most));
        }
        self.next();
        habit.learn(left + owed, shared, self.random.get() >> 20);
        left.max(0).cast_unsigned()
    }

    /// What passed beyond what was charged; if that is less than nothing, it is owed.
    #[inline]
    fn corrected(&self, elapsed: u64) -> i64 {
        let shared = self.group.get() - self.left.get();
        let passed = elapsed.saturating_sub(u64::from(shared) * self.hook.get());
        let left = passed as i64 - (self.charged.get() + self.owed.get()) as i64;
        self.charged.set(0);
        self.owed.set(left.min(0).unsigned_abs());
        self.strands.set(self.strands.get() + u64::from(shared));
        self.passed.set(self.passed.get() + passed);
        self.left.set(0);
        self.group.set(0);
        left
    }

    #[inline]
    fn next(&self) {
        if self.wait.get() > 0 {
            return self.wait.set(self.wait.get() - 1);
        }
        if !self.on.get() || self.displaced.get() > DISPLACED_MIN + self.passed.get() / DISPLACED {
            return;
        }
        let random = self.random.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        self.random.set(random);
        let most = self.most.get();
        self.most.set((most + 1).min(SHARED_MOST));
        let group = most / 2 + ((u64::from(random) * u64::from(most)) >> 32) as u32;
        self.left.set(group);
        self.group.set(group);
    }

    /// The clock was set anew: what passed since it was read is nobody's.
    #[inline]
    pub fn forget(&self) {
        self.left.set(0);
        self.group.set(0);
        self.charged.set(0);
    }
}

impl Default for Sharing {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What strands of these lengths are charged in all, and the most that one of them is.
    fn run(sharing: &Sharing, habit: &Habit, lengths: impl Iterator<Item = u64>) -> (u64, u64) {
        let (mut since, mut all, mut most) = (0, 0, 0);
        for length in lengths {
            since += length;
            let cost = match sharing.charge(habit) {
                Some(cost) => cost,
                None => sharing.read(core::mem::take(&mut since), habit),
            };
            all += cost;
            most = most.max(cost);
        }
        (all + sharing.settle(since), most)
    }

    fn started() -> Sharing {
        let sharing = Sharing::new();
        sharing.start(0);
        sharing
    }

    #[test]
    fn the_sum_is_what_the_clock_showed() {
        let (sharing, habit) = (started(), Habit::new());
        let lengths = || (0..100_000u64).map(|n| 10 + n % 7);
        let (all, most) = run(&sharing, &habit, lengths());
        assert!(all.abs_diff(lengths().sum()) < 200, "{all}");
        assert!(most < 100, "each is charged about what it was: {most}");
        assert_ne!(habit.each(), None);
    }

    #[test]
    fn long_strands_are_read() {
        let (sharing, habit) = (started(), Habit::new());
        assert_eq!(run(&sharing, &habit, (0..1000).map(|_| 300)), (300_000, 300));
        assert_eq!(habit.each(), None);
        // Not one in eight is short.
        run(&sharing, &habit, (0..1000).map(|n| if n % 8 == 0 { 5000 } else { 10 }));
        assert_eq!(habit.each(), None);
    }

    #[test]
    fn nobody_shares_before_it_starts() {
        let (sharing, habit) = (Sharing::new(), Habit::new());
        run(&sharing, &habit, (0..1000).map(|_| 10));
        assert_eq!(sharing.charge(&habit), None);
    }

    /// One strand in a hundred is long, and all time is theirs: it is found where it was.
    #[test]
    fn little_time_is_displaced() {
        let (sharing, habit) = (started(), Habit::new());
        let (mut since, mut displaced, mut all) = (0, 0, 0);
        for n in 0..1_000_000u64 {
            let length = if n % 100 == 99 { 10_000 } else { 10 };
            since += length;
            all += length;
            if sharing.charge(&habit).is_some() {
                displaced += if length > 10 { length } else { 0 };
            } else {
                sharing.read(core::mem::take(&mut since), &habit);
            }
        }
        assert!(sharing.strands() > 0);
        assert!(displaced < all / DISPLACED + 2 * DISPLACED_MIN, "{displaced} of {all}");
    }
}
