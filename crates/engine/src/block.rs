//! What is known about translated blocks: where they are, how they leave, who links to them.
//!
//! Blocks and exits are named by index. A block that was flushed keeps its index and memory (a thread may
//! still stand in it) but leaves the address table and all links. All under the engine lock.

use crate::prefault::Prefault;
use crate::sys;
use alloc::vec;
use alloc::vec::Vec;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// No block, no exit.
pub const NONE: u32 = u32::MAX;

/// Blocks and exits that fit before their lists have to move. Only address space is taken until they are used, and
/// growing by copying costs more page faults than all the rest of translation.
const BLOCKS_RESERVED: usize = if cfg!(test) { 0 } else { 1 << 21 };
const EXITS_RESERVED: usize = if cfg!(test) { 0 } else { 1 << 22 };

/// How an exit is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// A jump whose displacement is patched.
    Jump,
    /// A nop before the target block, which follows in memory; becomes a jump to leave the link.
    Junction,
    /// A jump to the one place where a call instruction is made, see `callret.rs`.
    CallSite,
    /// A jump to the entrance of a routine that is called, see `entrance.rs`.
    Call,
    /// A cached indirect branch that has not met its target yet.
    Cached,
    /// A system call site; `site` is the cache address after it.
    Syscall,
    /// A conditional jump whose taken side is counted, see `counted.rs`. It leads to its stub, or to code that counts.
    Counted,
}

/// One way out of a block.
#[derive(Debug, Clone, Copy)]
pub struct Exit {
    /// The block that it leaves; `NONE` for an entry of the branch table, which belongs to an address.
    pub from: u32,
    /// How it is written.
    pub kind: ExitKind,
    /// Program address that it goes to.
    pub target: u64,
    /// Address of its displacement.
    pub site: u64,
    /// Its stub, 0 when not yet made.
    pub stub: u64,
    /// The block that it is linked to.
    pub to: u32,
    /// Next exit linked to the same block.
    pub next_incoming: u32,
    /// Registers that are lent to the client where it leaves, as bits.
    pub lent: u16,
    /// For [`ExitKind::Counted`]: the client's name for the path.
    pub path: u32,
}

impl Exit {
    /// An exit that is not linked, with no registers lent.
    pub fn new(from: u32, kind: ExitKind, target: u64, site: u64) -> Exit {
        Exit { from, kind, target, site, stub: 0, to: NONE, next_incoming: NONE, lent: 0, path: 0 }
    }
}

/// One translated superblock.
#[derive(Debug, Clone, Copy)]
pub struct Block {
    /// Program address.
    pub pc: u64,
    /// Cache address: all registers are the program's.
    pub entry: u64,
    /// Cache address for those who come with the block's own registers lent already.
    pub warm: u64,
    /// Start of its hot code, from which mapped addresses are counted.
    pub base: u64,
    /// End of its hot code.
    pub hot_end: u64,
    /// First exit linked to it.
    pub incoming: u32,
    /// First of its exits.
    pub exits: u32,
    /// Their number.
    pub exit_count: u16,
    /// Which arena.
    pub arena: u16,
    /// Before which instruction its counter is bumped.
    pub bump: u8,
    /// Its address map.
    pub map: u32,
    /// Registers lent to the client, as bits.
    pub borrowed: u16,
    /// False once flushed.
    pub live: bool,
    /// Hash of the bytes that it was made from, if the program may write them; 0 otherwise.
    pub source: u64,
}

/// Brings what lies at an address nearer, for a use that comes soon. Any address will do.
#[inline]
pub fn prefetch(at: u64) {
    // SAFETY: a hint, which never faults; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at as *const i8) };
}

/// A table from program address to block. The blocks themselves are in the list that is passed in.
struct Table {
    /// Low half of the address, and the block.
    slots: Vec<(u32, u32)>,
    used: usize,
}

/// log2 of the slots that a table starts with, and by which it grows.
const SLOTS_SHIFT: u32 = if cfg!(test) { 8 } else { 13 };
const GROWTH_SHIFT: u32 = 2;

/// No block any more, but longer probes pass here.
const GONE: u32 = NONE - 1;

/// Empty slots for a table that grows. All of them are written at once: their pages are made present together, see
/// `prefault.rs`.
fn slots(n: usize) -> Vec<(u32, u32)> {
    let mut slots = Vec::with_capacity(n);
    let bytes = n * size_of::<(u32, u32)>();
    if !cfg!(test) && slots.as_ptr() as usize & 0xfff == 0 {
        sys::populate(slots.as_ptr() as u64, bytes as u64);
    }
    slots.resize(n, (0, NONE));
    slots
}

impl Table {
    fn new() -> Table {
        Table { slots: vec![(0, NONE); 1 << SLOTS_SHIFT], used: 0 }
    }

    /// Where probing for `pc` starts. Scattered, although what is looked up lies mostly near what was looked up last: with
    /// the addresses of a cache line of code in a cache line of the table a search took four steps instead of 1.4. That
    /// each is a cache miss does not matter, as they are known in advance ([`Table::prefetch`]).
    fn start(&self, pc: u64) -> usize {
        (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (self.slots.len() - 1)
    }

    /// Brings the place of `pc` nearer, for a search that comes soon.
    fn prefetch(&self, pc: u64) {
        prefetch(&raw const self.slots[self.start(pc)] as u64);
    }

    /// The slot of `pc`, or the empty one that ends the search.
    fn slot(&self, list: &[Block], pc: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut i = self.start(pc);
        loop {
            let (key, id) = self.slots[i];
            if id == NONE || key == pc as u32 && id != GONE && list[id as usize].pc == pc {
                return i;
            }
            i = (i + 1) & mask;
        }
    }

    fn find(&self, list: &[Block], pc: u64) -> Option<u32> {
        let id = self.slots[self.slot(list, pc)].1;
        (id != NONE).then_some(id)
    }

    fn set(&mut self, list: &[Block], pc: u64, id: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            let old = core::mem::take(&mut self.slots);
            self.slots = slots(old.len() << GROWTH_SHIFT);
            self.used = 0;
            const AHEAD: usize = 48;
            for (i, (_, id)) in old.iter().copied().enumerate().filter(|(_, s)| s.1 < GONE) {
                // (The blocks lie all over their list.)
                if let Some(block) = old.get(i + AHEAD).and_then(|s| list.get(s.1 as usize)) {
                    prefetch(&raw const block.pc as u64);
                }
                self.set(list, list[id as usize].pc, id);
            }
        }
        let i = self.slot(list, pc);
        if self.slots[i].1 == NONE {
            self.used += 1;
        }
        self.slots[i] = (pc as u32, id);
    }

    fn unset(&mut self, list: &[Block], pc: u64) {
        let i = self.slot(list, pc);
        if self.slots[i].1 != NONE {
            self.slots[i].1 = GONE;
        }
    }
}

/// All blocks and exits, and the tables from program address to block.
pub struct Blocks {
    /// By index.
    pub list: Vec<Block>,
    /// By index.
    pub exits: Vec<Exit>,
    /// Number of blocks in the list that are not live.
    pub dead: usize,
    table: Table,
    calls: Table,
    entrances: Table,
    prefault: [Prefault; 2],
}

impl Default for Blocks {
    fn default() -> Self {
        Blocks {
            list: Vec::with_capacity(BLOCKS_RESERVED),
            exits: Vec::with_capacity(EXITS_RESERVED),
            dead: 0,
            table: Table::new(),
            calls: Table::new(),
            entrances: Table::new(),
            prefault: Default::default(),
        }
    }
}

impl Blocks {
    /// Before more are made: see `prefault.rs`.
    pub fn keep_ahead(&mut self) {
        self.prefault[0].keep_ahead(&self.list);
        self.prefault[1].keep_ahead(&self.exits);
    }

    /// The block at `pc` will be looked up soon.
    pub fn prefetch_at(&self, pc: u64) {
        self.table.prefetch(pc);
    }

    /// The call at `pc` and the entrance of its callee, if that is known, will be looked up soon.
    pub fn prefetch_call(&self, pc: u64, callee: Option<u64>) {
        self.calls.prefetch(pc);
        callee.into_iter().for_each(|callee| self.entrances.prefetch(callee));
    }

    /// The live block at `pc`.
    pub fn find(&self, pc: u64) -> Option<u32> {
        self.table.find(&self.list, pc)
    }

    /// Makes `id`, which is in the list, the block at its address `pc`.
    pub fn set(&mut self, pc: u64, id: u32) {
        self.table.set(&self.list, pc, id);
    }

    /// Takes the block at `pc` out of the table.
    pub fn unset(&mut self, pc: u64) {
        self.table.unset(&self.list, pc);
    }

    /// The place where the call instruction at `pc` is made, live or not.
    pub fn find_call(&self, pc: u64) -> Option<u32> {
        self.calls.find(&self.list, pc)
    }

    /// Makes `id`, which is in the list, the place of the call instruction at its address `pc`.
    pub fn set_call(&mut self, pc: u64, id: u32) {
        self.calls.set(&self.list, pc, id);
    }

    /// The live entrance of the routine at `pc`.
    pub fn find_entrance(&self, pc: u64) -> Option<u32> {
        self.entrances.find(&self.list, pc).filter(|&id| self.list[id as usize].live)
    }

    /// Makes `id`, which is in the list, the entrance of the routine at its address `pc`.
    pub fn set_entrance(&mut self, pc: u64, id: u32) {
        self.entrances.set(&self.list, pc, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(pc: u64) -> Block {
        Block {
            pc,
            entry: 0,
            warm: 0,
            base: 0,
            hot_end: 0,
            incoming: NONE,
            exits: 0,
            exit_count: 0,
            arena: 0,
            bump: 0,
            map: 0,
            borrowed: 0,
            live: true,
            source: 0,
        }
    }

    #[test]
    fn the_table_finds_what_was_set_and_not_what_was_unset() {
        // Every other address has the low half of its neighbour.
        let pc = |i: u64| ((i & !1) * 7) | ((i & 1) << 32);
        let mut b = Blocks::default();
        for i in 0..20_000u64 {
            b.list.push(block(pc(i)));
            b.set(pc(i), i as u32);
        }
        for i in 0..20_000u64 {
            assert_eq!(b.find(pc(i)), Some(i as u32));
            if i % 3 == 0 {
                b.unset(pc(i));
            }
        }
        for i in 0..20_000u64 {
            assert_eq!(b.find(pc(i)), (i % 3 != 0).then_some(i as u32));
        }
        b.list.push(block(pc(3)));
        b.set(pc(3), 20_000);
        assert_eq!(b.find(pc(3)), Some(20_000));
        b.list.push(block(pc(4)));
        b.set(pc(4), 20_001);
        assert_eq!(b.find(pc(4)), Some(20_001));
    }
}
