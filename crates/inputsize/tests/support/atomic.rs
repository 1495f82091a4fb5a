//! Shadow memory of a few cells in atomics: real ones, or those of loom, as the test that
//! includes this names them in its `atomics`.

use super::atomics::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use inputsize::Cell;
use inputsize::core::shadow::{Mark, PAGE_CELLS, Page, Shadow, Sharers, Slot};

/// Cells from 0 on, on the pages that they need.
pub struct AtomicShadow {
    stamps: Vec<Vec<AtomicU32>>,
    lost: Vec<Vec<AtomicU32>>,
    marks: Vec<AtomicU8>,
    sharers: Vec<AtomicU64>,
}

impl AtomicShadow {
    pub fn new(slots: Slot, cells: u64) -> AtomicShadow {
        let words = || (0..cells).map(|_| AtomicU32::new(0)).collect::<Vec<_>>();
        AtomicShadow {
            stamps: (0..slots).map(|_| words()).collect(),
            lost: (0..slots).map(|_| words()).collect(),
            marks: (0..cells).map(|_| AtomicU8::new(0)).collect(),
            sharers: (0..cells.div_ceil(PAGE_CELLS)).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Shadow for AtomicShadow {
    fn slots(&self) -> Slot {
        self.stamps.len()
    }
    fn stamp(&self, slot: Slot, cell: Cell) -> u32 {
        self.stamps[slot][cell.0 as usize].load(Relaxed)
    }
    fn set_stamp(&self, slot: Slot, cell: Cell, stamp: u32) {
        let word = &self.stamps[slot][cell.0 as usize];
        if stamp == 0 {
            // An invalidation, perhaps against the owner's compare-and-swap. A plain store would do: but loom
            // does not order plain stores of one thread with the compare-and-swap of another, as C++ does.
            word.swap(0, Relaxed);
        } else {
            word.store(stamp, Relaxed);
        }
    }
    fn replace_stamp(&self, slot: Slot, cell: Cell, old: u32, new: u32) {
        // It fails only where another thread invalidated the stamp, and then there is nothing to replace.
        let _ = self.stamps[slot][cell.0 as usize].compare_exchange(old, new, Relaxed, Relaxed);
    }
    fn lost(&self, slot: Slot, cell: Cell) -> u32 {
        self.lost[slot][cell.0 as usize].load(Relaxed)
    }
    fn set_lost(&self, slot: Slot, cell: Cell, stamp: u32) {
        self.lost[slot][cell.0 as usize].store(stamp, Relaxed);
    }
    fn mark(&self, cell: Cell) -> Mark {
        Mark(self.marks[cell.0 as usize].load(Relaxed))
    }
    fn set_mark(&self, cell: Cell, mark: Mark) {
        self.marks[cell.0 as usize].store(mark.0, Relaxed);
    }
    fn sharers(&self, page: Page) -> Sharers {
        Sharers(self.sharers[page.0 as usize].load(Relaxed))
    }
    fn share(&self, page: Page, sharers: Sharers) {
        self.sharers[page.0 as usize].fetch_or(sharers.0, Relaxed);
    }
    fn each_stamped(&self, slot: Slot, each: &mut dyn FnMut(Cell)) {
        (0..self.stamps[slot].len() as u64).map(Cell).for_each(each);
    }
    fn release(&self, slot: Slot) {
        self.stamps[slot].iter().chain(&self.lost[slot]).for_each(|stamp| stamp.store(0, Relaxed));
    }
}
