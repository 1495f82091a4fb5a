//! More threads than cores: since when, and what was earned on which core.
//!
//! Who waits for a core while a thread on that same core earns waits for that thread; it must be told apart from who
//! waits while one on another core does. So what is earned is also counted by core. Counts only ever grow, and only while
//! there have been more threads than cores: other programs pay nothing for it.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::causal::Shared;

const CORES: usize = 256;

/// When there were last known to be more threads than cores; 0 for never.
static LAST_NS: AtomicU64 = AtomicU64::new(0);
static EARNED_NS: [AtomicU64; CORES] = [const { AtomicU64::new(0) }; CORES];

/// What a thread remembers of a core: which, and what had been earned on it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    core: usize,
    earned_ns: u64,
}

impl Seen {
    pub const NOTHING: Self = Self { core: usize::MAX, earned_ns: 0 };
}

/// Whether more threads want to run than there are cores.
pub fn is_now(shared: &Shared) -> bool {
    shared.counts.running.load(Relaxed) > shared.cores.load(Relaxed)
}

/// Whether they did at some time since then.
pub fn was_since(shared: &Shared, since_ns: u64) -> bool {
    LAST_NS.load(Relaxed) >= since_ns.max(1) || is_now(shared)
}

/// A thread has stopped running; there were so many before.
pub fn one_less(shared: &Shared, before: u32, now_ns: u64) {
    if before > shared.cores.load(Relaxed) {
        LAST_NS.store(now_ns, Relaxed);
    }
}

/// The calling thread has earned so much.
#[inline]
pub fn earned(ns: u64) {
    if LAST_NS.load(Relaxed) != 0
        && let Some(place) = EARNED_NS.get(core())
    {
        place.fetch_add(ns, Relaxed);
    }
}

/// Looks at the calling thread's core: what others have earned there since `before`, if that was the same core.
pub fn look(before: &core::cell::Cell<Seen>) -> u64 {
    let core = core();
    let earned_ns = EARNED_NS.get(core).map_or(0, |place| place.load(Relaxed));
    let then = before.replace(Seen { core, earned_ns });
    if then.core == core { earned_ns.saturating_sub(then.earned_ns) } else { 0 }
}

fn core() -> usize {
    // SAFETY: no preconditions. Reads the thread's own word (or the vdso), whatever context this is.
    unsafe { libc::sched_getcpu() as usize }
}
