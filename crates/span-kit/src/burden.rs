//! What it costs on this machine to hand a task to another processor.
//!
//! Measured with the real scheduler: one side of a join waits until another thread has taken the other side. What
//! passes between the fork and the start of the stolen task, and between its end and the return of the join, is what a
//! fork costs when it is used. Burdened spans charge it to every fork. Where costs are instructions, it is as many as this
//! processor executes meanwhile; that is measured once per machine and kept, because two runs in instructions agree.
//!
//! A fork that nobody takes costs more as well when there are others who might: they look at the queue that it goes to. That
//! is why the smallest tasks fall short of the speedup that their work and span promise ([`Forks`]).

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use rayon_core::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};

use crate::sources;

/// When it cannot be measured: what other tools assume.
const DEFAULT_NS: u64 = 5_000;
const ROUNDS: usize = 200;
const PATIENCE: Duration = Duration::from_millis(1);
const BUDGET: Duration = Duration::from_millis(60);

/// The burden in nanoseconds: the lowest tenth of stolen joins, so that a busy machine does not count.
pub fn measure() -> u64 {
    let Ok(pool) = ThreadPoolBuilder::new().num_threads(2).build() else { return DEFAULT_NS };
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

/// What forks cost with one worker and with two, in thousandths of a nanosecond of processor time, as seen now and then.
#[derive(Debug, Default)]
pub struct Forks {
    alone: Vec<i64>,
    together: Vec<i64>,
}

impl Forks {
    /// Looks: in each of some rounds two processors work off the same tree of forks, each alone and then together. Workers
    /// are bound to their processors: left alone, two that wake up share one for the length of a round or more. Where there
    /// is one processor, nothing is seen.
    pub fn observe(&mut self) {
        const DEPTH: u64 = 25;
        const ROUNDS: usize = 15;
        const BUDGET: Duration = Duration::from_millis(100);
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(0)) else { return };
        let mut processors = (0..CpuSet::count()).filter(|&n| allowed.is_set(n) == Ok(true));
        let (Some(a), Some(b)) = (processors.next(), processors.next()) else { return };
        let (Ok(first), Ok(second), Ok(both)) = (bound_to(vec![a]), bound_to(vec![b]), bound_to(vec![a, b]))
        else {
            return;
        };
        let started = Instant::now();
        for _ in (0..ROUNDS).take_while(|_| started.elapsed() < BUDGET) {
            self.alone.extend(fork_ps(&first, DEPTH));
            self.alone.extend(fork_ps(&second, DEPTH));
            self.together.extend(fork_ps(&both, DEPTH));
        }
    }

    /// What a fork costs more with two workers than with one, in thousandths of a nanosecond, as a bound needs it: the
    /// highest tenth of what was seen with two, over the lowest quarter of what was seen with one.
    pub fn extra_ps(&mut self) -> u64 {
        self.alone.sort_unstable();
        self.together.sort_unstable();
        let alone = self.alone.get(self.alone.len() / 4).copied().unwrap_or_default();
        let together = self.together.get(self.together.len() * 9 / 10).copied().unwrap_or_default();
        (together - alone).max(0).unsigned_abs()
    }
}

/// A pool with a worker on each of these processors.
fn bound_to(processors: Vec<usize>) -> Result<ThreadPool, ThreadPoolBuildError> {
    let workers = processors.len();
    let bind = move |worker: usize| {
        let mut only = CpuSet::new();
        // If it is refused, the worker runs where it may: the quartile is a little less sure.
        if processors.get(worker).is_some_and(|&n| only.set(n).is_ok()) {
            let _ = sched_setaffinity(Pid::from_raw(0), &only);
        }
    };
    ThreadPoolBuilder::new().num_threads(workers).start_handler(bind).build()
}

/// The processor time that a fork takes in this pool.
fn fork_ps(pool: &ThreadPool, depth: u64) -> Option<i64> {
    let used = || Some(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?));
    pool.install(|| {
        fork_down(depth - 6); // all are awake
        let before = used()?;
        let forks = fork_down(depth);
        i64::try_from(((used()? - before) * 1000).as_nanos() / u128::from(forks.max(1))).ok()
    })
}

/// A tree of forks that do nothing else, uneven as Fibonacci's numbers are; how many.
fn fork_down(depth: u64) -> u64 {
    if depth < 2 {
        return 0;
    }
    let (a, b) = rayon_core::join(|| fork_down(depth - 1), || fork_down(depth - 2));
    a + b + 1
}

/// The burden in instructions, measured when it is first asked for on this machine.
pub fn instructions() -> u64 {
    kept("burden", || in_instructions((0..3).map(|_| measure()).min().unwrap_or(DEFAULT_NS)))
}

/// [`Forks::extra_ps`] in thousandths of an instruction, likewise.
pub fn fork_extra_instructions() -> u64 {
    kept("fork-extra", || {
        let mut forks = Forks::default();
        forks.observe();
        in_instructions(forks.extra_ps())
    })
}

/// What is kept under this name for this machine, or what is measured now.
fn kept(name: &str, measure: impl FnOnce() -> u64) -> u64 {
    let file = sources::folder().join(format!("{name}-{:016x}", machine()));
    let kept = || fs::read_to_string(&file).ok()?.trim().parse().ok();
    if let Some(known) = kept() {
        return known;
    }
    let new = measure();
    // Whoever is first wins, and all others take that. Where nothing can be kept, runs may differ in it.
    let draft = sources::draft(name);
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

    #[test]
    fn the_tree_of_forks_is_fibonacci_s() {
        // fib(n + 1) - 1 of them.
        assert_eq!([0, 1, 2, 3, 10].map(super::fork_down), [0, 0, 1, 2, 88]);
        let mut forks = super::Forks { alone: vec![9, 8, 11, 30], together: vec![9, 14, 10, 12] };
        assert_eq!(forks.extra_ps(), 5);
        assert_eq!(super::Forks { alone: vec![9], together: vec![8] }.extra_ps(), 0);
        assert_eq!(super::Forks::default().extra_ps(), 0, "one processor");
    }
}
