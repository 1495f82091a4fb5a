//! What it costs on this machine to hand a task to another processor.
//!
//! Measured with the real scheduler: one side of a join waits until another thread has taken the other side. What
//! passes between the fork and the start of the stolen task, and between its end and the return of the join, is what a
//! fork costs when it is used. Burdened spans charge it to every fork. Where costs are instructions, it is as many as this
//! processor executes meanwhile; that is measured once per machine and kept, because two runs in instructions agree.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::sources;

/// When it cannot be measured: what other tools assume.
const DEFAULT_NS: u64 = 5_000;
const ROUNDS: usize = 200;
const PATIENCE: Duration = Duration::from_millis(1);
const BUDGET: Duration = Duration::from_millis(60);

/// The burden in nanoseconds: the lowest tenth of stolen joins, so that a busy machine does not count.
pub fn measure() -> u64 {
    let Ok(pool) = rayon_core::ThreadPoolBuilder::new().num_threads(2).build() else { return DEFAULT_NS };
    let mut costs = pool.install(|| {
        let started = Instant::now();
        let rounds = (0..ROUNDS).take_while(|_| started.elapsed() < BUDGET);
        rounds.filter_map(|_| stolen_join()).collect::<Vec<u64>>()
    });
    if costs.len() < 8 {
        return DEFAULT_NS;
    }
    costs.sort_unstable();
    costs[costs.len() / 10].max(100)
}

/// The burden in instructions, measured when it is first asked for on this machine.
pub fn instructions() -> u64 {
    let file = sources::folder().join(format!("burden-{:016x}", machine()));
    let kept = || fs::read_to_string(&file).ok()?.trim().parse().ok();
    if let Some(known) = kept() {
        return known;
    }
    let new = in_instructions((0..3).map(|_| measure()).min().unwrap_or(DEFAULT_NS));
    // Whoever is first wins, and all others take that. Where nothing can be kept, runs may differ in their burden.
    let draft = sources::draft("burden");
    if sources::write(&draft, new.to_string().as_bytes()).is_ok() {
        let _ = fs::hard_link(&draft, &file);
        let _ = fs::remove_file(&draft);
    }
    kept().unwrap_or(new)
}

/// Changes with the processor: its name and how many there are.
fn machine() -> u64 {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut hash = DefaultHasher::new();
    about.lines().filter(|line| line.starts_with("model name")).for_each(|line| line.hash(&mut hash));
    hash.finish()
}

/// How many instructions this processor executes in `ns` nanoseconds, at the pace of ordinary code: two of them per cycle.
fn in_instructions(ns: u64) -> u64 {
    const STEPS: u64 = 100_000;
    let best = (0..30).map(|_| pace(STEPS)).min().unwrap_or_default().as_nanos().max(1);
    (u128::from(ns) * u128::from(2 * STEPS) / best) as u64
}

/// How long a chain of that many additions takes, each of which needs the one before: a cycle each, on any processor.
fn pace(steps: u64) -> Duration {
    let start = Instant::now();
    let mut sum = 1u64;
    for step in 0..steps {
        // Nothing is known of the sum, so that the additions stay as they are.
        sum = std::hint::black_box(step).wrapping_add(sum);
    }
    std::hint::black_box(sum);
    start.elapsed()
}

/// What the hand-over of one task took, if it was handed over.
fn stolen_join() -> Option<u64> {
    let taken = AtomicBool::new(false);
    let forked = Instant::now();
    let (waited, (began, ended)) = rayon_core::join(
        || {
            while !taken.load(Ordering::Acquire) {
                if forked.elapsed() > PATIENCE {
                    return None;
                }
                std::hint::spin_loop();
            }
            Some(())
        },
        || {
            let began = Instant::now();
            taken.store(true, Ordering::Release);
            (began, Instant::now())
        },
    );
    waited?;
    let out = began.duration_since(forked);
    let back = ended.elapsed();
    Some((out + back).as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_neither_nothing_nor_forever() {
        let ns = super::measure();
        assert!((100..10_000_000).contains(&ns), "{ns}");
        // From a tenth to a hundred instructions per nanosecond: any processor, any load, any build.
        let instructions = super::in_instructions(1_000);
        assert!((100..100_000).contains(&instructions), "{instructions}");
    }
}
