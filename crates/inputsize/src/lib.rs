//! How large the input of every routine activation was, what the activation cost, and both added up.
//!
//! The metrics are those of Coppa, Demetrescu and Finocchi: *read memory size* ("Input-Sensitive Profiling",
//! PLDI 2012) and *threaded read memory size* ("Multithreaded Input-Sensitive Profiling", 2013). The
//! algorithm is ours: one private stamp map per thread, writes that invalidate the stamps of others, no
//! counter that two threads share. `docs/input-size.md` explains and proves it.
//!
//! | module | holds |
//! |---|---|
//! | [`trace`] | what a program did, as a totally ordered list of steps; text and binary form |
//! | [`naive`] | the definitions as sets, obviously right and slow: the oracle |
//! | [`core`] | the algorithm that the instrumented program runs |
//! | [`renumber`] | what happens when a thread runs out of stamps |
//! | [`record`] | what a return leaves behind: 32 bytes |
//! | [`ingest`], [`table`] | records added up per (routine, size), bounded in number |
//!
//! # Design constraints
//! - `no_std`: it runs inside the profiled program. Memory comes from the global allocator, which the host
//!   must make independent of the program's own; nothing here allocates per access, and per activation only
//!   when a vector grows.
//! - No `unsafe`: raw shadow memory lives behind the traits of [`core::shadow`], in the host.
//! - Nothing here reads a clock, takes a lock or makes a system call.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod core;
pub mod ingest;
pub mod naive;
pub mod record;
pub mod renumber;
pub mod table;
pub mod trace;

/// Number of a routine; the host gives them out densely from 0.
pub type Routine = u32;

/// Number of a memory cell: address divided by the size of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell(pub u64);

/// Size of a memory cell, a power of two from 1 to 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellSize {
    shift: u32,
}

impl CellSize {
    /// The default of the papers: 4 bytes.
    pub const FOUR: CellSize = CellSize { shift: 2 };

    /// The size of `bytes` bytes; `None` unless that is 1, 2, 4, 8 or 16.
    pub fn from_bytes(bytes: u32) -> Option<CellSize> {
        (bytes.is_power_of_two() && bytes <= 16).then(|| CellSize { shift: bytes.trailing_zeros() })
    }

    /// Bytes of one cell.
    pub fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// The cells that `size` bytes at `address` touch; none when `size` is 0.
    pub fn touched(self, address: u64, size: u64) -> impl Iterator<Item = Cell> + use<> {
        let first = address >> self.shift;
        let end = if size == 0 { first } else { (address.saturating_add(size - 1) >> self.shift) + 1 };
        (first..end).map(Cell)
    }

    /// The cells that lie wholly inside `size` bytes at `address`.
    pub fn inside(self, address: u64, size: u64) -> impl Iterator<Item = Cell> + use<> {
        let first = address.saturating_add(u64::from(self.bytes()) - 1) >> self.shift;
        let end = address.saturating_add(size) >> self.shift;
        (first..end.max(first)).map(Cell)
    }
}

/// What the size of an input counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    /// Distinct cells first accessed with a read; what other threads and the kernel write is ignored.
    Rms,
    /// Also every read of a cell that another thread or the kernel wrote since this thread last accessed it.
    Trms,
    /// Both in one run.
    Both,
}

/// One finished activation of a routine, with `N` costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activation<const N: usize> {
    /// Which routine.
    pub routine: Routine,
    /// Read memory size; meaningful unless the metric was [`Metric::Trms`].
    pub rms: u64,
    /// Threaded read memory size; meaningful unless the metric was [`Metric::Rms`].
    pub trms: u64,
    /// The part of `trms` that other threads wrote or the kernel did.
    pub induced: Induced,
    /// The part of `induced` that the routine read itself, not through a callee.
    pub induced_self: Induced,
    /// Costs with those of callees.
    pub cost: [u64; N],
    /// Costs without those of callees.
    pub cost_self: [u64; N],
    /// Whether no other activation of the routine was pending in the thread.
    pub outermost: bool,
}

/// Induced first reads by who wrote the cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Induced {
    /// Another thread.
    pub thread: u64,
    /// The kernel, on behalf of any thread.
    pub external: u64,
}

impl Induced {
    /// Adds `other` to this.
    pub fn add(&mut self, other: Induced) {
        self.thread += other.thread;
        self.external += other.external;
    }

    /// Whether there is none.
    pub fn is_zero(self) -> bool {
        self == Induced::default()
    }
}
