//! What it costs on this machine to hand a task to another processor.
//!
//! Measured with the real scheduler: one side of a join waits until another thread has taken the other side. What
//! passes between the fork and the start of the stolen task, and between its end and the return of the join, is what a
//! fork costs when it is used. Burdened spans charge it to every fork.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
    }
}
