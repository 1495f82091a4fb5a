//! What a client of the engine may see and add.
//!
//! A client is compiled into the same image as the engine (calls to it are static). It runs under the engine
//! lock, inside the program: no panics by design, no blocking, no memory but the engine's.

use crate::superblock::{Insn, Superblock};

/// Displacements from gs of two counters, for the iterations of a string instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringCounters {
    /// Loads, if each iteration does one.
    pub loads: Option<i32>,
    /// Stores, if each iteration does one.
    pub stores: Option<i32>,
    /// Loads of one iteration: 2 for `cmps`.
    pub loads_each: u16,
}

impl StringCounters {
    /// The counters that grow with each iteration, one mention for each access.
    pub fn each(&self) -> impl Iterator<Item = i32> + use<> {
        let loads = core::iter::repeat_n(self.loads, self.loads_each.into());
        loads.chain(core::iter::once(self.stores)).flatten()
    }
}

/// A client.
pub trait Client: Sized + 'static {
    /// A superblock was decoded and is about to be translated.
    fn block(&mut self, sb: &Superblock);

    /// The counter (a displacement from gs) that is to grow by one each time control passes along
    /// `sb.insns[..count]` from the start; `None` for no counting.
    fn path_counter(&mut self, sb: &Superblock, count: usize) -> Option<i32>;

    /// Counters for the iterations of a repeated string instruction; the repeat count is added to each.
    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters>;

    /// Control left `sb` before instruction `count` (a fault or a signal); `counted` says how many
    /// instructions of the path its counter has already been credited with.
    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>);

    /// A thread starts to use the slab at this address. `counts` is false for a vfork child.
    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool);

    /// A thread ends and leaves its slab.
    fn thread_end(&mut self, slab: u64, tid: u32);

    /// The process ends (or is about to be replaced by `exec`).
    fn process_end(&mut self);
}
