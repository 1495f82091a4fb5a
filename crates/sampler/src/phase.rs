//! Strikes that fall together with the kernel's own tick.
//!
//! The interrupt is the largest part of what a sample costs, above all in virtual machines, which are left for it. But a
//! core that works is interrupted by the kernel's tick anyway, and timers that expire together are served by one
//! interrupt. Ticks come at multiples of their period of `CLOCK_MONOTONIC` (Linux 6.4), so a clock of 1 kHz that strikes
//! at whole milliseconds gets each fourth strike for nothing where the tick has 250 Hz, and all of them where it has 1 kHz.
//!
//! ```text
//! Free    strikes fall anywhere; after some of them the clock is told to strike shortly before a multiple of its period
//! Near    that strike: waits for the multiple, then starts the clock with a whole period
//! Locked  the kernel keeps the phase from there on, exactly, until the thread is switched out
//! ```
//! Whether the phase was lost shows in how long after the multiple strikes are seen. That varies with the interrupts'
//! latency, so the least of several strikes is looked at; some in a row that are far off, as they mostly are after another
//! thread had the core, say it sooner. A thread that is often switched out is tried ever less often.
//!
//! What a sample stands for does not change: its CPU time is measured. Strikes at whole milliseconds are as blind to what
//! the program does in step with its milliseconds as any fixed period is.
//!
//! Pure: the caller reads the clock and does as it is told.

/// What to do with the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nothing.
    Go,
    /// It must strike next at this time, a period from now, more or less.
    At(u64),
    /// It must go on with whole periods.
    Whole,
    /// It must be started with whole periods at this time, which is near.
    StartAt(u64),
}

/// The state of one thread's clock.
#[derive(Clone, Copy, Debug)]
pub struct Phase {
    step: Step,
    /// Strikes in this step; of the window, if locked.
    strikes: u32,
    /// Strikes to wait for in `Free`.
    patience: u32,
    /// Windows in which the phase was kept.
    windows: u32,
    /// The least time after a multiple in the first window, and so far in this one.
    floor_ns: u64,
    least_ns: u64,
    /// Strikes in a row that were far off.
    far: u32,
    /// How long before the multiple the strike of `Near` is planned.
    lead_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Free,
    /// And the multiple that is waited for.
    Near(u64),
    Locked,
}

/// Strikes before the first attempt: short-lived threads are left alone.
const PATIENCE_FIRST: u32 = 8;
const PATIENCE_MIN: u32 = 16;
const PATIENCE_MAX: u32 = 4096;
/// Attempts in a row to strike before the multiple.
const TRIES_MAX: u32 = 3;
/// A strike this little before the multiple is too late.
const MARGIN_NS: u64 = 3_000;
const LEAD_MIN_NS: u64 = 10_000;
const LEAD_FIRST_NS: u64 = 30_000;
const LEAD_MAX_NS: u64 = 120_000;
const WINDOW: u32 = 16;
/// What the least time after a multiple may vary by, and the part of it that may be added.
const TOLERANCE_NS: u64 = 12_000;
/// Strikes in a row, this much later than those of the first window, that mean a lost phase.
const FAR_MAX: u32 = 3;
const FAR_NS: u64 = 100_000;
/// Windows after which an attempt has paid, and strikes to wait for before the next one if it has.
const WINDOWS_MIN: u32 = 4;
const PATIENCE_PAID: u32 = 4;
/// Longer periods cost little anyway; and where other programs want the cores, too, threads are switched at ticks, which is
/// better not to be in step with when samples are few.
const PERIOD_MAX_NS: u64 = 1_000_000;
/// Every how many strikes one must fall together with a tick at least.
const EVERY_MAX: u64 = 8;

impl Phase {
    /// Strikes fall anywhere.
    pub const fn new() -> Self {
        Self {
            step: Step::Free,
            strikes: 0,
            patience: PATIENCE_FIRST,
            windows: 0,
            floor_ns: 0,
            least_ns: u64::MAX,
            far: 0,
            lead_ns: LEAD_FIRST_NS,
        }
    }

    /// Whether it is worth the trouble for a period and the kernel's tick.
    pub fn pays(period_ns: u64, tick_ns: u64) -> bool {
        let (mut a, mut b) = (period_ns, tick_ns);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        // The least common multiple is tick / gcd periods long.
        let fits = (2 * LEAD_MAX_NS..=PERIOD_MAX_NS).contains(&period_ns);
        tick_ns != 0 && fits && tick_ns / a.max(1) <= EVERY_MAX
    }

    /// The clock has struck, seen at `wall_ns` of `CLOCK_MONOTONIC`.
    pub fn struck(&mut self, wall_ns: u64, period_ns: u64) -> Order {
        self.strikes += 1;
        match self.step {
            Step::Free if self.strikes < self.patience => Order::Go,
            Step::Free => {
                self.strikes = 0;
                self.approach(wall_ns, period_ns)
            }
            Step::Near(multiple) if wall_ns + MARGIN_NS < multiple => {
                let early_ns = multiple - wall_ns;
                if early_ns > self.lead_ns / 2 {
                    self.lead_ns = (self.lead_ns - self.lead_ns / 8).max(LEAD_MIN_NS);
                }
                *self =
                    Self { step: Step::Locked, strikes: 0, windows: 0, least_ns: u64::MAX, far: 0, ..*self };
                Order::StartAt(multiple)
            }
            Step::Near(_) => {
                self.lead_ns = (self.lead_ns + self.lead_ns / 2).min(LEAD_MAX_NS);
                if self.strikes < TRIES_MAX {
                    return self.approach(wall_ns, period_ns);
                }
                self.give_up();
                Order::Whole
            }
            Step::Locked => {
                let late_ns = wall_ns % period_ns;
                self.least_ns = self.least_ns.min(late_ns);
                let is_far = self.windows > 0 && late_ns > self.floor_ns + FAR_NS;
                self.far = if is_far { self.far + 1 } else { 0 };
                if self.far >= FAR_MAX {
                    self.lost();
                } else if self.strikes >= WINDOW {
                    self.judge();
                }
                Order::Go
            }
        }
    }

    /// Strike `lead_ns` before a multiple, a period from now, more or less.
    fn approach(&mut self, wall_ns: u64, period_ns: u64) -> Order {
        let earliest = wall_ns + period_ns / 2 + self.lead_ns;
        let multiple = earliest.next_multiple_of(period_ns);
        self.step = Step::Near(multiple);
        Order::At(multiple - self.lead_ns)
    }

    /// A window is over.
    fn judge(&mut self) {
        let least_ns = core::mem::replace(&mut self.least_ns, u64::MAX);
        self.strikes = 0;
        if self.windows == 0 {
            self.floor_ns = least_ns;
        }
        if least_ns.abs_diff(self.floor_ns) <= TOLERANCE_NS + self.floor_ns / 2
            && self.floor_ns <= LEAD_MAX_NS
        {
            self.windows = self.windows.saturating_add(1);
        } else {
            self.lost();
        }
    }

    /// The phase was lost: tried again soon if it had been kept for long.
    fn lost(&mut self) {
        if self.windows >= WINDOWS_MIN { self.free(PATIENCE_PAID) } else { self.give_up() }
    }

    /// Not worth the trouble, it seems.
    fn give_up(&mut self) {
        self.free((2 * self.patience).clamp(PATIENCE_MIN, PATIENCE_MAX));
    }

    fn free(&mut self, patience: u32) {
        self.step = Step::Free;
        self.strikes = 0;
        self.patience = patience;
    }
}

impl Default for Phase {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD_NS: u64 = 1_000_000;

    /// A clock as the kernel has it, whose strikes are seen with a latency.
    struct Simulation {
        phase: Phase,
        expires_ns: u64,
        random: u64,
        orders: u32,
    }

    impl Simulation {
        fn new() -> Self {
            Self { phase: Phase::new(), expires_ns: 123_456_789, random: 1, orders: 0 }
        }

        /// One strike, seen at least `latency_ns` after it; how far it was from a multiple.
        fn strike(&mut self, latency_ns: u64) -> u64 {
            self.random = self.random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let seen = self.expires_ns + latency_ns + (self.random >> 33) % (latency_ns / 2);
            let off = self.expires_ns % PERIOD_NS;
            self.expires_ns = match self.phase.struck(seen, PERIOD_NS) {
                Order::Go => self.expires_ns + PERIOD_NS,
                Order::At(then) => {
                    assert!((PERIOD_NS / 4..2 * PERIOD_NS).contains(&(then - seen)), "{}", then - seen);
                    self.orders += 1;
                    then
                }
                Order::Whole => {
                    self.orders += 1;
                    seen + PERIOD_NS
                }
                Order::StartAt(then) => {
                    assert!(then > seen && then - seen < LEAD_MAX_NS, "a short wait");
                    self.orders += 1;
                    then + PERIOD_NS
                }
            };
            off.min(PERIOD_NS - off)
        }
    }

    #[test]
    fn comes_into_step_and_stays() {
        for latency_ns in [1_000, 8_000, 25_000, 60_000] {
            let mut clock = Simulation::new();
            for _ in 0..100 {
                clock.strike(latency_ns);
            }
            let orders = clock.orders;
            for _ in 0..1000 {
                assert_eq!(clock.strike(latency_ns), 0, "latency {latency_ns}");
            }
            assert_eq!(clock.orders, orders, "what is in step is left alone");
        }
    }

    #[test]
    fn comes_back_soon_when_switched_out() {
        let mut clock = Simulation::new();
        for _ in 0..500 {
            clock.strike(8_000);
        }
        clock.expires_ns += 333_000;
        let strikes = (0..1000).take_while(|_| clock.strike(8_000) != 0).count();
        assert!(strikes <= (FAR_MAX + PATIENCE_PAID + TRIES_MAX) as usize, "{strikes} strikes");
        assert!(strikes >= FAR_MAX as usize, "it never was out of step");
        for _ in 0..100 {
            assert_eq!(clock.strike(8_000), 0, "and stays");
        }
    }

    #[test]
    fn gives_up_on_threads_that_never_stay() {
        let mut clock = Simulation::new();
        for i in 0..100_000u64 {
            clock.expires_ns += 50_000 + i % 7 * 90_000;
            clock.strike(8_000);
        }
        assert!(clock.orders < 100_000 / 400, "{} orders", clock.orders);
    }

    #[test]
    fn only_where_it_pays() {
        assert!(Phase::pays(1_000_000, 4_000_000));
        assert!(Phase::pays(1_000_000, 1_000_000));
        assert!(Phase::pays(500_000, 4_000_000));
        assert!(!Phase::pays(5_000_000, 1_000_000), "200 Hz");
        assert!(!Phase::pays(1_000_000, 3_333_333), "300 Hz");
        assert!(!Phase::pays(1_003_009, 4_000_000), "997 Hz");
        assert!(!Phase::pays(200_000, 4_000_000));
        assert!(!Phase::pays(1_000_000, 0));
    }
}
