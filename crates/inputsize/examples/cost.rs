//! What the algorithm costs outside emitted code, in nanoseconds: `cargo run --release --example cost`.
//!
//! - records: adding them to tables, for a recursion (few distinct outcomes) and for a mix of 400 routines
//!   with scattered sizes and costs;
//! - accesses: the Rust form of the inline sequences and slow paths on flat memory, for a mix as measured in
//!   sqlite3 (see `docs/input-size.md`): 30 accesses per call, 5 first reads per call, 43 % of them far.
//!
//! Times are CPU times, so that other programs disturb little. Run it several times and take the smallest.

use std::cell::RefCell;
use std::hint::black_box;

use inputsize::core::shadow::{Mark, Page, Shadow, Sharers, Slot};
use inputsize::core::stack::Stack;
use inputsize::core::thread::{Config, Sink, Thread};
use inputsize::ingest::Ingest;
use inputsize::record::Record;
use inputsize::{Cell, CellSize, Metric};

/// Records per batch: 512 KB with one cost.
const BATCH: usize = 16 * 1024;

fn main() {
    let mut recursion = Vec::new();
    fibonacci(24, &mut 0, &mut recursion);
    report("records of a recursion", &recursion);
    let mut random = Random(1);
    let mixed: Vec<Record<1>> = (0..400_000)
        .map(|i| {
            let routine = random.below(20) * random.below(20);
            let size = u64::from(random.below(4) * random.below(30));
            let cost = 20 + size * 3 + u64::from(random.below(8));
            Record { routine, stamp: i + 1, size, cost: [cost], cost_self: [cost / 2], rare: None }
        })
        .collect();
    report("records of a mix", &mixed);
    for metric in [Metric::Rms, Metric::Trms] {
        accesses(metric);
    }
}

/// CPU time of this thread so far, as the kernel's scheduler counts it.
fn cpu_ns() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(f64::NAN)
}

fn report(name: &str, records: &[Record<1>]) {
    let mut ingest = Ingest::<1>::new(Metric::Rms);
    let batches: Vec<Vec<u64>> = records
        .chunks(BATCH)
        .map(|chunk| {
            let mut words = Vec::new();
            chunk.iter().for_each(|record| record.write(&mut words));
            words
        })
        .collect();
    let rounds = 20;
    let start = cpu_ns();
    for _ in 0..rounds {
        for words in &batches {
            ingest.add(black_box(words), 0, |_| (0, 0));
        }
    }
    let ns = (cpu_ns() - start) / (rounds * records.len()) as f64;
    ingest.finish();
    let points: usize = ingest.table.routines().map(|routine| ingest.table.points(routine).count()).sum();
    println!("{name:24} {ns:6.2} ns/record   {points} points");
}

fn fibonacci(n: u64, counter: &mut u32, out: &mut Vec<Record<1>>) -> u64 {
    *counter += 1;
    let stamp = *counter;
    let cost = if n < 2 { 2 } else { 4 + fibonacci(n - 1, counter, out) + fibonacci(n - 2, counter, out) };
    let cost_self = if n < 2 { 2 } else { 4 };
    out.push(Record { routine: 1, stamp, size: 1, cost: [cost], cost_self: [cost_self], rare: None });
    cost
}

struct Random(u32);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 10) % end
    }
}

/// Flat shadow memory of one thread.
struct Flat {
    stamps: RefCell<Vec<u32>>,
    marks: RefCell<Vec<u8>>,
}

impl Shadow for Flat {
    fn slots(&self) -> Slot {
        1
    }
    #[inline]
    fn stamp(&self, _: Slot, cell: Cell) -> u32 {
        self.stamps.borrow()[cell.0 as usize]
    }
    #[inline]
    fn set_stamp(&self, _: Slot, cell: Cell, stamp: u32) {
        self.stamps.borrow_mut()[cell.0 as usize] = stamp;
    }
    fn replace_stamp(&self, slot: Slot, cell: Cell, old: u32, new: u32) {
        if self.stamp(slot, cell) == old {
            self.set_stamp(slot, cell, new);
        }
    }
    fn lost(&self, _: Slot, _: Cell) -> u32 {
        0
    }
    fn set_lost(&self, _: Slot, _: Cell, _: u32) {}
    #[inline]
    fn mark(&self, cell: Cell) -> Mark {
        Mark(self.marks.borrow()[cell.0 as usize])
    }
    fn set_mark(&self, cell: Cell, mark: Mark) {
        self.marks.borrow_mut()[cell.0 as usize] = mark.0;
    }
    fn sharers(&self, _: Page) -> Sharers {
        Sharers(1)
    }
    fn share(&self, _: Page, _: Sharers) {}
    fn each_stamped(&self, _: Slot, each: &mut dyn FnMut(Cell)) {
        (0..self.stamps.borrow().len() as u64).map(Cell).for_each(each);
    }
    fn release(&self, _: Slot) {}
}

struct Count(u64);

impl Sink<1> for Count {
    fn finished(&mut self, record: Record<1>) {
        self.0 += record.size;
    }
    fn before_renumbering(&mut self, _: &Stack<1>) {}
}

/// A chain of 8 activations, each with 64 cells of its own; leaves are called in a loop and read a few cells
/// of their caller, of activations further down, and their own.
fn accesses(metric: Metric) {
    let cells = 1 << 16;
    let shadow = Flat { stamps: RefCell::new(vec![0; cells]), marks: RefCell::new(vec![0; cells]) };
    let config = Config { metric, cell_size: CellSize::FOUR, stamp_bits: 32 };
    let mut thread = Thread::<1>::start(config, 0, 0);
    let mut count = Count(0);
    for depth in 0..8 {
        thread.call(&shadow, &mut count, 1, 1000 - depth, false);
        for cell in 0..64 {
            thread.write_cell(&shadow, Cell(depth * 64 + cell));
        }
    }
    let mut random = Random(7);
    let plan: Vec<(u64, u64)> = (0..4096)
        .map(|_| {
            let near = 7 * 64 + u64::from(random.below(64));
            (near, u64::from(random.below(7)) * 64 + u64::from(random.below(64)))
        })
        .collect();
    let (mut calls, mut events) = (0u64, 0u64);
    let start = cpu_ns();
    for round in 0..400u64 {
        for (i, &(near, far)) in plan.iter().enumerate() {
            thread.call(&shadow, &mut count, 2, 900, false);
            for cell in 0..5 {
                thread.write_cell(&shadow, Cell(1024 + cell * 2));
                thread.write_cell(&shadow, Cell(1025 + cell * 2));
            }
            for k in 0..4 {
                thread.read_cell(&shadow, Cell(near));
                thread.read_cell(&shadow, Cell((near + 1) % 512));
                thread.read_cell(&shadow, Cell((near + 2) % 512));
                thread.read_cell(&shadow, Cell(far));
                thread.read_cell(&shadow, Cell(2048 + (i as u64 * 8 + round + k / 4) % 32768));
            }
            thread.ret(&mut count);
            calls += 1;
            events += 30;
        }
    }
    let ns = cpu_ns() - start;
    println!(
        "{metric:?} accesses in Rust     {:6.2} ns/access   {:.1} ns/call with 30 accesses, {:.1} first reads",
        ns / events as f64,
        ns / calls as f64,
        count.0 as f64 / calls as f64
    );
}
