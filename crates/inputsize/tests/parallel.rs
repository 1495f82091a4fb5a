//! Threads that really run in parallel: on programs without data races the algorithm, unlocked, agrees with
//! the oracle on the recorded order.

#[path = "support/atomic.rs"]
mod atomic;
mod atomics {
    pub use std::sync::atomic::*;
}
mod support;

use std::sync::Mutex;

use atomic::AtomicShadow;
use inputsize::core::shadow::Shadow;
use inputsize::core::stack::Stack;
use inputsize::core::thread::{Config, Sink, Thread};
use inputsize::record::Record;
use inputsize::trace::{Event, Step};
use inputsize::{CellSize, Metric};
use support::{COSTS, oracle};

const CELLS: u64 = 3000;
const THREADS: u32 = 4;

#[derive(Default)]
struct Records(Vec<Record<COSTS>>);

impl Sink<COSTS> for Records {
    fn finished(&mut self, record: Record<COSTS>) {
        self.0.push(record);
    }
    fn before_renumbering(&mut self, _: &Stack<COSTS>) {}
}

/// One thread of the program: it keeps its own steps, and where in the locks' order they belong.
struct Worker<'a> {
    id: u32,
    thread: Thread<COSTS>,
    shadow: &'a AtomicShadow,
    records: Records,
    steps: Vec<(u64, Step)>,
    /// Time of the last lock: what follows without one has no order to others, and needs none.
    now: u64,
    random: u32,
}

impl Worker<'_> {
    fn random(&mut self, below: u32) -> u32 {
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.random >> 8) % below
    }

    fn step(&mut self, event: Event) {
        self.steps.push((self.now, Step { thread: self.id, event }));
        match event {
            Event::Read { address, size } => self.thread.read(self.shadow, address, size),
            Event::Write { address, size } => self.thread.write(self.shadow, address, size),
            Event::KernelWrite { address, size } => self.thread.kernel_write(self.shadow, address, size),
            Event::Call { routine, sp, folded } => {
                self.thread.call(self.shadow, &mut self.records, routine, sp, folded)
            }
            Event::Return => self.thread.ret(&mut self.records),
            _ => unreachable!("not used here"),
        }
    }

    fn access(&mut self, cell: u64) {
        let (address, size) = (cell * 4, 4);
        match self.random(8) {
            0..4 => self.step(Event::Read { address, size }),
            4..7 => self.step(Event::Write { address, size }),
            _ => self.step(Event::KernelWrite { address, size }),
        }
    }

    fn run(&mut self, clocks: &[Mutex<u64>], global: &std::sync::atomic::AtomicU64) {
        for _ in 0..3000 {
            match self.random(6) {
                0 => self.step(Event::Call { routine: 1, sp: 1, folded: false }),
                1 => self.step(Event::Return),
                // Cells of its own, between those of others on the same pages.
                2 | 3 => {
                    let cell = 1000 + u64::from(self.random(200)) * u64::from(THREADS) + u64::from(self.id);
                    self.access(cell);
                }
                // Cells under one of the locks.
                _ => {
                    let lock = self.random(clocks.len() as u32);
                    let guard = clocks[lock as usize].lock().unwrap();
                    // Taken while the lock is held: the numbers grow along every lock.
                    self.now = global.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                    for _ in 0..self.random(6) {
                        let cell = u64::from(lock) * 50 + u64::from(self.random(5));
                        self.access(cell);
                    }
                    drop(guard);
                }
            }
        }
    }
}

#[test]
fn race_free_programs_are_exact() {
    for (round, metric) in [Metric::Rms, Metric::Trms, Metric::Both].into_iter().cycle().take(12).enumerate()
    {
        let shadow = AtomicShadow::new(THREADS as usize, CELLS);
        let clocks: Vec<Mutex<u64>> = (0..5).map(|_| Mutex::new(0)).collect();
        let global = std::sync::atomic::AtomicU64::new(1);
        let config =
            Config { metric, cell_size: CellSize::FOUR, stamp_bits: if round % 2 == 0 { 32 } else { 11 } };
        let workers: Vec<Worker> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..THREADS)
                .map(|id| {
                    let (shadow, clocks, global) = (&shadow, &clocks, &global);
                    scope.spawn(move || {
                        let start = Step { thread: id, event: Event::ThreadStart { routine: 0 } };
                        let mut worker = Worker {
                            id,
                            thread: Thread::start(config, id as usize, 0),
                            shadow,
                            records: Records::default(),
                            steps: vec![(0, start)],
                            now: 0,
                            random: id * 77 + round as u32,
                        };
                        worker.run(clocks, global);
                        worker
                    })
                })
                .collect();
            handles.into_iter().map(|handle| handle.join().unwrap()).collect()
        });
        let mut steps: Vec<(u64, Step)> = Vec::new();
        let mut found = Vec::new();
        for mut worker in workers {
            let (id, mut records) = (worker.id, std::mem::take(&mut worker.records));
            worker.thread.end(&shadow, &mut records);
            assert_eq!(shadow.stamp(id as usize, inputsize::Cell(0)), 0, "released");
            steps.extend(worker.steps);
            steps.push((u64::MAX, Step { thread: id, event: Event::ThreadEnd }));
            found.push(records.0);
        }
        steps.sort_by_key(|(when, _)| *when);
        let steps: Vec<Step> = steps.into_iter().map(|(_, step)| step).collect();
        for (id, expected) in oracle(&steps, CellSize::FOUR) {
            let found = &found[id as usize];
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(&expected) {
                let size = if metric == Metric::Rms { expected.rms } else { expected.trms };
                assert_eq!(found.size, size, "{metric:?}, thread {id}");
                let induced = found.rare.map(|rare| (rare.induced, rare.induced_self)).unwrap_or_default();
                if metric != Metric::Rms {
                    assert_eq!(induced, (expected.induced, expected.induced_self), "{metric:?}, thread {id}");
                }
                if metric == Metric::Both {
                    assert_eq!(found.rare.map_or(found.size, |rare| rare.rms), expected.rms, "thread {id}");
                }
            }
        }
    }
}
