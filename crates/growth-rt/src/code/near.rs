//! Where the shared routines are that were asked for last. Every access asks for two to four of them, with the registers
//! and the context of its superblock: what was asked with these lies together.

use super::Routine;
use alloc::vec;
use alloc::vec::Vec;
use engine::events::Emit;

/// Routines that have a place of their own; the others are looked up each time.
const PLACES: usize = 27;

/// What was asked for with one choice of registers in one context.
#[derive(Clone, Copy)]
struct Row {
    asked: u64,
    /// 0: not known.
    at: [u64; PLACES],
}

const ROWS: usize = 1024;
const EMPTY: Row = Row { asked: u64::MAX, at: [0; PLACES] };

/// The routines that were asked for last.
pub(super) struct Near {
    rows: Vec<Row>,
}

impl Near {
    pub(super) fn new() -> Near {
        Near { rows: vec![EMPTY; ROWS] }
    }

    /// The cache that they are in is no longer added to.
    pub(super) fn forget(&mut self) {
        self.rows.fill(EMPTY);
    }

    /// Where a routine is, if that is known.
    #[inline(always)]
    pub(super) fn get(&self, e: &Emit<'_>, routine: Routine) -> Option<u64> {
        let asked = asked(e);
        let row = &self.rows[row_of(asked)];
        let at = row.at[place_of(routine)?];
        (row.asked == asked && at != 0).then_some(at)
    }

    /// It is there.
    pub(super) fn set(&mut self, e: &Emit<'_>, routine: Routine, at: u64) {
        let Some(place) = place_of(routine) else { return };
        let asked = asked(e);
        let row = &mut self.rows[row_of(asked)];
        if row.asked != asked {
            *row = Row { asked, ..EMPTY };
        }
        row.at[place] = at;
    }
}

#[inline(always)]
fn asked(e: &Emit<'_>) -> u64 {
    let [s, x, r] = e.scratch;
    u64::from(e.context()) << 32 | u64::from(u32::from_le_bytes([s, x, r, 0]))
}

#[inline(always)]
fn row_of(asked: u64) -> usize {
    (asked.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ROWS.ilog2())) as usize % ROWS
}

#[inline(always)]
fn place_of(routine: Routine) -> Option<usize> {
    let log2 = |n: u32, max: u32| (n.is_power_of_two() && n <= max).then(|| n.ilog2() as usize);
    Some(match routine {
        Routine::Read(bytes) => log2(bytes, 64)?,
        Routine::Write(bytes) => 7 + log2(bytes, 64)?,
        Routine::Foreign(cells) => 14 + log2(cells.into(), 8)?,
        Routine::First(cells) => 18 + log2(cells.into(), 2)?,
        Routine::Mixed => 20,
        Routine::Enter => 21,
        Routine::Odd => 22,
        Routine::Leave => 23,
        Routine::Full => 24,
        Routine::Old(cells) => 25 + log2(cells.into(), 2)?,
        _ => return None,
    })
}
