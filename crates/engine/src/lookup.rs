//! The table behind indirect branches.
//!
//! 65,536 cache addresses in the low 2 GB, where one 32-bit displacement reaches them from any code, shared by
//! all threads. The index is the low half of `crc32(0, pc)`, computed without touching flags. An entry is
//! just a destination: the *destination* compares the target in r11 with its own program address and goes on to
//! the next entry of the same slot, and at last to the engine, when they differ. So an entry is one atomic word, and
//! a stale or foreign one is harmless. The comparison touches no flags: they may be live where the branch really goes.

use crate::region::Regions;
use crate::sys::{self, mm};

/// Entries.
pub const ENTRIES: u64 = 1 << 16;
/// Bytes of the system call table, one per low half of `rax`.
pub const SYSCALLS: u64 = 1 << 16;

/// Index of the first entry of the table for calls, behind the other two tables.
const CALLS_FIRST: u64 = ENTRIES + SYSCALLS / 8;

fn bytes(calls: bool) -> u64 {
    (CALLS_FIRST + if calls { ENTRIES } else { 0 }) * 8
}

/// Tables in low memory.
pub struct LowTables {
    base: u64,
    miss: u64,
    call_miss: Option<u64>,
}

impl LowTables {
    /// Finds room and fills the table with `miss`, and another one for calls, where they are told from jumps, with
    /// `call_miss`. `None`: nothing free below 2 GB.
    pub fn new(regions: &Regions, miss: u64, call_miss: Option<u64>) -> Option<LowTables> {
        let bytes = bytes(call_miss.is_some());
        let base = (1..96u64).map(|k| 0x7f00_0000 - k * (16 << 20)).find_map(|base| {
            if !regions.is_free(base, base + bytes) {
                return None;
            }
            // (Every entry is written below.)
            let how = mm::MAP_FIXED_NOREPLACE | mm::MAP_POPULATE;
            sys::map_anonymous(base, bytes, mm::RW, how).filter(|got| *got == base)
        })?;
        let t = LowTables { base, miss, call_miss };
        for i in 0..ENTRIES {
            t.write(i, miss);
        }
        if let Some(call_miss) = call_miss {
            for i in 0..ENTRIES {
                t.write(CALLS_FIRST + i, call_miss);
            }
        }
        Some(t)
    }

    /// Empty ones of the same kind.
    pub fn another(&self, regions: &Regions) -> Option<LowTables> {
        LowTables::new(regions, self.miss, self.call_miss)
    }

    /// Address of the branch table.
    pub fn branches(&self) -> u32 {
        self.base as u32
    }

    /// Address of the system call table.
    pub fn syscalls(&self) -> u32 {
        (self.base + ENTRIES * 8) as u32
    }

    /// Address of the table for calls.
    pub fn calls(&self) -> u32 {
        (self.base + CALLS_FIRST * 8) as u32
    }

    /// The range, which is not the program's.
    pub fn range(&self) -> (u64, u64) {
        (self.base, self.base + bytes(self.call_miss.is_some()))
    }

    /// Calls of `pc` now go to `entry`.
    pub fn set_call(&self, pc: u64, entry: u64) {
        self.write(CALLS_FIRST + index(pc), entry);
    }

    /// Where calls of `pc` go now.
    pub fn get_call(&self, pc: u64) -> u64 {
        // SAFETY: inside the table, which exists where calls are told from jumps.
        unsafe { ((self.base + (CALLS_FIRST + index(pc)) * 8) as *const u64).read_volatile() }
    }

    fn write(&self, index: u64, to: u64) {
        // SAFETY: inside the table, which is ours; one aligned store, so that readers see old or new.
        unsafe { ((self.base + index * 8) as *mut u64).write_volatile(to) };
    }

    /// Branches to `pc` now go to `entry`.
    pub fn set(&self, pc: u64, entry: u64) {
        self.write(index(pc), entry);
    }

    /// Where branches to `pc` go now.
    pub fn get(&self, pc: u64) -> u64 {
        // SAFETY: inside the table.
        unsafe { ((self.base + index(pc) * 8) as *const u64).read_volatile() }
    }

    /// System call `n` is looked at (or not).
    pub fn hook(&self, n: u64, on: bool) {
        // SAFETY: `n` is masked to the table's length.
        unsafe { ((u64::from(self.syscalls()) + (n & 0xffff)) as *mut u8).write_volatile(u8::from(on)) };
    }
}

impl Drop for LowTables {
    fn drop(&mut self) {
        let (start, end) = self.range();
        // SAFETY: our own mapping; no code that uses the tables is left.
        unsafe { sys::call(sys::nr::MUNMAP, [start, end - start, 0, 0, 0, 0]) };
    }
}

/// Index of `pc`.
pub fn index(pc: u64) -> u64 {
    let mut crc = 0u64;
    // SAFETY: SSE4.2 is checked at start.
    unsafe { core::arch::asm!("crc32 {0}, {1}", inout(reg) crc, in(reg) pc, options(pure, nomem, nostack)) };
    crc & 0xffff
}
