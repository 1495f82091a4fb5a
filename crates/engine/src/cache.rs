//! Memory for translated code.
//!
//! One arena serves all program code within reach of 32-bit displacements from it, so that RIP-relative
//! operands can be copied. It holds two streams: *hot* (what runs) and *cold* (exit stubs, constants). A
//! position in a stream is only ever advanced, so that a thread may stand anywhere in old code; a cache is freed as a
//! whole (`generation.rs`). Each arena remembers which block each of its addresses belongs to.

use crate::block::NONE;
use crate::emit::Asm;
use crate::prefault::Prefault;
use crate::region::Regions;
use crate::state::off;
use crate::sys::{self, mm};
use alloc::vec::Vec;

/// Arena sizes tried, largest first: half for each stream.
const SIZES: [u64; 3] = [256 << 20, 64 << 20, 32 << 20];
/// How far an arena may lie from the code that it serves: displacements reach 2 GB, and modules have data.
const REACH: u64 = (2 << 30) - (256 << 20);

/// Pieces that fit before an index has to move: address space only, see `block.rs`.
const PIECES_RESERVED: usize = if cfg!(test) { 0 } else { 1 << 21 };

/// One code arena.
pub struct Arena {
    /// First byte.
    pub base: u64,
    /// Length.
    pub bytes: u64,
    /// Next byte of the hot stream.
    pub hot: u64,
    /// Next byte of the cold stream.
    pub cold: u64,
    /// Code that enters the engine for an exit.
    pub to_exit: u64,
    /// Code that enters the engine for an indirect branch.
    pub to_indirect: u64,
    /// Code that handles a return which landed wrongly.
    pub to_return_miss: u64,
    /// Code that enters the engine for a system call.
    pub to_syscall: u64,
    /// Code that enters the engine for a cached indirect branch.
    pub to_cached: u64,
    /// Code that enters the engine for a system call that returned EFAULT.
    pub to_efault: u64,
    /// (start, block) of hot pieces, ascending.
    hot_index: Vec<(u64, u32)>,
    /// (start, block) of cold pieces, ascending.
    cold_index: Vec<(u64, u32)>,
    prefault: [Prefault; 4],
    /// Bytes of the cold stream that are kept for the stubs of exits that have none yet.
    reserve: u64,
}

/// The longest stub of an exit: three registers are given back, and the engine entered.
const STUB_BYTES_MAX: u64 = 48;

/// How much of each stream has small pages; huge ones come behind. Clearing a huge page costs more than running a small
/// program's whole code.
const SMALL_PAGES_BYTES: u64 = 2 << 20;

impl Arena {
    /// Before more pieces are made: see `prefault.rs`.
    pub fn keep_ahead(&mut self) {
        self.prefault[0].keep_ahead(&self.hot_index);
        self.prefault[1].keep_ahead(&self.cold_index);
        let small = SMALL_PAGES_BYTES as usize;
        let streams = [(self.base, self.hot), (self.cold_base(), self.cold)];
        for (prefault, (base, next)) in self.prefault[2..].iter_mut().zip(streams) {
            let used = (next - base) as usize;
            if used < small {
                prefault.keep(base as usize, used, small);
            }
        }
    }

    fn cold_base(&self) -> u64 {
        self.base + self.bytes / 2
    }

    /// One past the last byte of the hot stream.
    pub fn hot_end(&self) -> u64 {
        self.cold_base()
    }

    /// One past the last byte of the cold stream.
    pub fn cold_end(&self) -> u64 {
        self.base + self.bytes
    }

    /// Is `at` in this arena?
    pub fn contains(&self, at: u64) -> bool {
        at.wrapping_sub(self.base) < self.bytes
    }

    /// Can code at `pc` be served?
    fn reaches(&self, pc: u64) -> bool {
        pc.abs_diff(self.base) < REACH && pc.abs_diff(self.base + self.bytes) < REACH
    }

    /// Notes that the streams from `hot` and `cold` on belong to `block`.
    pub fn note(&mut self, hot: u64, cold: u64, block: u32) {
        self.hot_index.push((hot, block));
        self.note_cold(cold, block);
    }

    /// Notes that the cold stream from `cold` on belongs to `block`.
    pub fn note_cold(&mut self, cold: u64, block: u32) {
        if self.cold_index.last().is_some_and(|l| l.0 == cold) {
            self.cold_index.pop();
        }
        self.cold_index.push((cold, block));
    }

    /// The block that `at` belongs to.
    pub fn block_at(&self, at: u64) -> Option<u32> {
        let index = if at < self.cold_base() { &self.hot_index } else { &self.cold_index };
        let i = index.partition_point(|e| e.0 <= at);
        i.checked_sub(1).map(|i| index[i].1)
    }

    /// Room for a block of any size in both streams?
    pub fn has_room(&self) -> bool {
        const BLOCK_BYTES_MAX: u64 = 256 << 10;
        self.hot + BLOCK_BYTES_MAX < self.hot_end()
            && self.cold + BLOCK_BYTES_MAX + self.reserve < self.cold_end()
    }
}

/// All arenas.
#[derive(Default)]
pub struct Cache {
    arenas: Vec<Arena>,
}

impl Cache {
    /// The arena that holds the cache address `at`.
    pub fn arena_of(&self, at: u64) -> Option<usize> {
        self.arenas.iter().position(|a| a.contains(at))
    }

    /// By index.
    pub fn arena(&mut self, i: usize) -> &mut Arena {
        &mut self.arenas[i]
    }

    /// Bytes of code in all of them.
    pub fn used_bytes(&self) -> u64 {
        self.arenas.iter().map(|a| a.hot - a.base + a.cold - a.cold_base()).sum()
    }

    /// Keeps room for the stubs of so many exits in each arena, for when all links are cut.
    pub fn reserve_stubs(&mut self, exits: usize) {
        for a in &mut self.arenas {
            a.reserve = exits as u64 * STUB_BYTES_MAX;
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arena> {
        self.arenas.iter()
    }

    /// The block that the cache address `at` belongs to.
    pub fn block_at(&self, at: u64) -> Option<u32> {
        self.arenas.iter().find(|a| a.contains(at))?.block_at(at).filter(|b| *b != NONE)
    }

    /// An arena with room that serves code at `pc`; makes one if there is none. `None`: no address space.
    pub fn arena_for(&mut self, pc: u64, regions: &Regions) -> Option<usize> {
        if let Some(i) = self.arenas.iter().position(|a| a.reaches(pc) && a.has_room()) {
            return Some(i);
        }
        let arena = SIZES.iter().find_map(|&bytes| place(pc, bytes, regions).map(|base| (base, bytes)));
        // Nothing near: RIP-relative operands then go through a register.
        let (base, bytes) = match arena {
            Some(a) => a,
            None => {
                let last = self.arenas.iter().position(|a| a.has_room());
                if last.is_some() {
                    return last;
                }
                let bytes = SIZES[1];
                (sys::map_anonymous(0, bytes, mm::RWX, 0)?, bytes)
            }
        };
        sys::no_dump(base, bytes);
        for stream in [base, base + bytes / 2] {
            sys::huge_pages(stream + SMALL_PAGES_BYTES, bytes / 2 - SMALL_PAGES_BYTES);
        }
        self.arenas.push(new_arena(base, bytes));
        Some(self.arenas.len() - 1)
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for a in &self.arenas {
            // SAFETY: our own mapping, in which no thread stands: see `generation.rs`.
            unsafe { sys::call(sys::nr::MUNMAP, [a.base, a.bytes, 0, 0, 0, 0]) };
        }
    }
}

fn place(pc: u64, bytes: u64, regions: &Regions) -> Option<u64> {
    const STEP: u64 = 32 << 20;
    let near = pc & !(STEP - 1);
    // Below the code by preference, with room for the libraries that will be mapped next to it: the kernel
    // hands out addresses downwards, and heaps grow upwards.
    let below = (16..48).chain(4..16).map(|k| near.wrapping_sub(k * STEP).wrapping_sub(bytes));
    let above = (16..44).chain(2..16).map(|k| near + k * STEP);
    below.chain(above).filter(|b| *b >= 0x1000_0000 && *b < (1 << 47) - bytes).find_map(|base| {
        let fits = base.abs_diff(pc) < REACH && (base + bytes).abs_diff(pc) < REACH;
        if !fits || !regions.is_free(base, base + bytes) {
            return None;
        }
        sys::map_anonymous(base, bytes, mm::RWX, mm::MAP_FIXED_NOREPLACE).filter(|got| *got == base)
    })
}

fn new_arena(base: u64, bytes: u64) -> Arena {
    // SAFETY: fresh memory of ours.
    let mut a = unsafe { Asm::new(base, base + 4096) };
    let mut entry = |disp| {
        a.align(16);
        let at = a.here();
        a.jmp_gs(disp);
        at
    };
    let to_exit = entry(off::ENTER_EXIT);
    let to_indirect = entry(off::ENTER_INDIRECT);
    let to_return_miss = entry(off::RETURN_MISS);
    let to_syscall = entry(off::ENTER_SYSCALL);
    let to_cached = entry(off::ENTER_CACHED);
    let to_efault = entry(off::ENTER_EFAULT);
    let hot = a.here().next_multiple_of(64);
    Arena {
        base,
        bytes,
        hot,
        cold: base + bytes / 2,
        to_exit,
        to_indirect,
        to_return_miss,
        to_syscall,
        to_cached,
        to_efault,
        hot_index: Vec::with_capacity(PIECES_RESERVED),
        cold_index: Vec::with_capacity(PIECES_RESERVED),
        prefault: Default::default(),
        reserve: 0,
    }
}
