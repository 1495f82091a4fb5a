//! Strands that are too short to be timed one by one.
//!
//! Between two hooks of a function without loops and without calls that we do not see (fib) lie some nanoseconds, which is
//! less than the step of the clock, and a fifth of what reading it costs. The rewriter knows such functions, and their hooks
//! say that nothing but straight code follows. As long as that holds, one reading serves [`SHARED`] strands: each
//! is charged what such a strand has cost of late, and the reading corrects the sum.
//! ```text
//! elapsed = Σ charged + what is left for the strand that ends with the reading
//! ```
//! So work stays what the clock says, and no strand with a loop or a foreign call in it is ever estimated.

use span_rt::clock;

/// Strands that share a reading, beside the one that ends with it.
const SHARED: u64 = 31;
/// Estimates are kept in fractions of a tick.
pub const FRACTION: u64 = 256;

/// What has passed since the clock was read. The first three are also written by rewritten programs themselves.
#[derive(Default)]
#[repr(C)]
pub struct Straight {
    /// Strands that were charged without a reading.
    shared: u64,
    /// How many may be: 0 where other code than straight has run since.
    limit: u64,
    /// What one costs, in fractions of a tick.
    each: u64,
    /// Charged, and not found on the clock at earlier readings; in fractions of a tick.
    owed: u64,
    /// Less than a tick, for the next strand.
    spare: u64,
    /// What a hook costs that does not read the clock.
    hook: u64,
    /// How many strands may share a reading at all.
    most: u64,
}

impl Straight {
    /// Readings are not shared.
    pub const fn nothing() -> Self {
        Straight { shared: 0, limit: 0, each: 0, owed: 0, spare: 0, hook: 0, most: 0 }
    }

    /// Readings are shared from now on, and a hook without one costs `hook` ticks.
    pub fn start(&mut self, hook: u64) {
        *self = Straight { hook, most: SHARED, ..Straight::default() };
    }

    /// A strand ends: what it is charged, if the clock need not be read.
    #[inline(always)]
    pub fn charge(&mut self) -> Option<u64> {
        if self.shared >= self.limit {
            return None;
        }
        self.shared += 1;
        // Whole ticks are charged; what is left of a tick is charged with the next.
        let ticks = self.spare + self.each;
        self.spare = ticks % FRACTION;
        Some(ticks / FRACTION)
    }

    /// The clock was read and showed `elapsed` ticks: what is left of them.
    #[inline(always)]
    pub fn read(&mut self, elapsed: u64) -> u64 {
        if self.owed == 0 && self.shared == 0 {
            return elapsed;
        }
        let left = self.settle(elapsed).1 + self.spare;
        self.spare = left % FRACTION;
        left / FRACTION
    }

    /// The same in fractions of a tick: what passed, and what of it is left.
    pub fn settle(&mut self, elapsed: u64) -> (u64, u64) {
        let elapsed = elapsed.saturating_sub(self.shared * self.hook) * FRACTION;
        let charged = self.owed + self.shared * self.each;
        if self.limit > 0 {
            let mean = elapsed / (self.shared + 1);
            // An interrupt, or a cache that was cold, is no straight code.
            self.each = match self.each {
                0 => mean,
                each => (7 * each + mean.min(4 * each)).div_ceil(8),
            };
        }
        self.shared = 0;
        self.owed = charged.saturating_sub(elapsed);
        (elapsed, elapsed.saturating_sub(charged))
    }

    /// What follows is straight code, or not known to be.
    #[inline(always)]
    pub fn follows(&mut self, straight: bool) {
        self.limit = if straight { self.most } else { 0 };
    }

    /// Other code than straight has run, or will before the next hook.
    #[inline(always)]
    pub fn over(&mut self) {
        self.limit = 0;
    }

    /// The clock was set anew: what passed since the last reading is nobody's.
    pub fn forget(&mut self) {
        self.shared = 0;
    }
}

/// What a hook costs that does not read the clock: `elapsed` ticks were spent on `hooks` of them.
pub fn hook(elapsed: u64, hooks: u64) -> u64 {
    let readings = hooks / (SHARED + 1);
    let reading = clock::HOOK.load(core::sync::atomic::Ordering::Relaxed);
    elapsed.saturating_sub(readings * reading) / (hooks - readings).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_charges_is_what_the_clock_showed() {
        let mut s = Straight::default();
        s.start(3);
        let (mut shown, mut charged) = (0, 0);
        for round in 0..1000_u64 {
            s.follows(true);
            let mut strands = 0;
            while let Some(cost) = s.charge() {
                charged += cost;
                strands += 1;
            }
            assert_eq!(strands, SHARED);
            let elapsed = 40 + 60 * (round % 3);
            shown += elapsed.saturating_sub(3 * SHARED);
            charged += s.read(elapsed);
        }
        assert!(shown.abs_diff(charged) < 100, "{shown} {charged}");
    }

    #[test]
    fn what_is_not_straight_is_read() {
        let mut s = Straight::default();
        assert_eq!(s.charge(), None, "not before it starts");
        s.start(0);
        s.follows(true);
        assert!(s.charge().is_some());
        s.over();
        assert_eq!(s.charge(), None);
        assert_eq!(s.read(1000), 1000, "nothing was known of what such strands cost");
        s.follows(true);
        s.forget();
        assert!(s.charge().is_some());
    }
}
