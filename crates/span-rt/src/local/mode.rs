//! What is asked for, and how large things are.

use crate::env::{Cost, settings};
use crate::sites;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use spandag::Scale;
/// In ticks, about 20 µs; in instructions, about as much.
const HEAVY_TICKS: u64 = 50_000;

/// See [`burden`].
pub(super) static BURDEN: AtomicU64 = AtomicU64::new(0);
static WHOLE: AtomicBool = AtomicBool::new(false);
static MODE: AtomicU8 = AtomicU8::new(Mode::Full as u8);
/// See [`scale`].
pub(super) static HEAVY: AtomicU64 = AtomicU64::new(HEAVY_TICKS);

/// What forks have to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Strands are compared with other runs, or instructions counted and calls told of.
    Full,
    /// Neither, and call sites are asked for: what most runs are.
    Timed,
    /// Neither, and nothing is kept but lengths.
    Plain,
}

/// Looks at the settings. To be called before the first task.
pub fn choose() {
    WHOLE.store(settings().whole, Ordering::Relaxed);
    let one_run = settings().cost != Cost::Instructions && settings().strands.is_none();
    let mode = match (one_run, settings().whole) {
        (true, false) => Mode::Timed,
        (true, true) => Mode::Plain,
        _ => Mode::Full,
    };
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// What forks have to do.
#[inline(always)]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        1 => Mode::Timed,
        2 => Mode::Plain,
        _ => Mode::Full,
    }
}

/// Whether only the program as a whole is asked for, and no call sites.
#[inline(always)]
pub fn is_whole() -> bool {
    WHOLE.load(Ordering::Relaxed)
}

/// How large things are now.
#[inline]
pub fn scale() -> Scale {
    if WHOLE.load(Ordering::Relaxed) {
        return Scale::WHOLE;
    }
    Scale { sites: sites::COUNT.load(Ordering::Relaxed), heavy: HEAVY.load(Ordering::Relaxed) }
}

/// Paths shorter than this are not followed in detail, when there are few sites.
pub fn heavy() -> u64 {
    settings().heavy.unwrap_or(if settings().cost == Cost::Units { 0 } else { HEAVY_TICKS })
}

/// There are more sites: paths must be longer to be followed in detail.
pub(crate) fn rescale(sites: usize) {
    HEAVY.store(heavy().saturating_mul(1 + sites as u64 / 16), Ordering::Relaxed);
}

/// What a fork costs, in the unit of costs.
#[inline]
pub fn burden() -> u64 {
    BURDEN.load(Ordering::Relaxed)
}
