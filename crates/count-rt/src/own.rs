//! Code of the runtime inside the program: its instructions are not counted.
//!
//! The runtime names the ranges ([`wire::running::OWN`]) before it runs what lies in them, so every translation of such code
//! is made without them. Asked when code is translated, never when it runs.
//!
//! # Rules
//! As in `lib.rs`. The table is the runtime's memory, in order and never freed.

use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};
use engine::superblock::{Insn, Superblock};

static TABLE: AtomicU64 = AtomicU64::new(0);
static RANGES: AtomicU64 = AtomicU64::new(0);

/// Takes the runtime's ranges. A table is at least as long as the one before, so that the old number is good for both.
pub fn take_ranges(at: u64, ranges: u64) {
    TABLE.store(at, Ordering::Release);
    RANGES.store(ranges, Ordering::Release);
}

/// How many of the first `count` instructions are the program's.
pub fn others(sb: &Superblock, count: usize) -> u64 {
    let ranges = RANGES.load(Ordering::Acquire) as usize;
    if ranges == 0 {
        return count as u64;
    }
    let table = TABLE.load(Ordering::Acquire) as *const [u64; 2];
    // SAFETY: the runtime never frees the table, and has given its length.
    let table = unsafe { slice::from_raw_parts(table, ranges) };
    let is_own = |pc: u64| {
        let n = table.partition_point(|r| r[0] <= pc);
        n.checked_sub(1).is_some_and(|n| pc < table[n][1])
    };
    sb.insns.iter().take(count).map(Insn::pc).filter(|&pc| !is_own(pc)).count() as u64
}
