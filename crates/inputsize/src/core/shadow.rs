//! Where stamps and marks are kept: the seam between the algorithm and raw memory.
//!
//! Per thread and cell a 32-bit stamp, 0 where there is none. Shared by all, per cell one byte, the *mark*
//! (who wrote last, and whether anybody else may hold a stamp), and per page a set of threads, the *sharers*
//! (who may hold stamps there).
//!
//! The host backs it with flat NORESERVE mappings that emitted code indexes directly; [`MapShadow`] backs
//! replays. All methods take `&self`: the memory is shared, and every access is a relaxed atomic of its own
//! width. Nothing more is needed on x86-64 (see `docs/input-size.md`, memory order); on a weaker machine
//! marks and sharers would need acquire loads and release stores.

use ::core::cell::RefCell;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Cell;

/// Number of a thread's place among those that live; a place is used again after its thread ended.
pub type Slot = usize;

/// Cells of a page of shadow memory: 4 KB of stamps.
pub const PAGE_CELLS: u64 = 1024;

/// The number of a page of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page(pub u64);

impl From<Cell> for Page {
    fn from(cell: Cell) -> Page {
        Page(cell.0 / PAGE_CELLS)
    }
}

/// Who wrote a cell last, and who may hold stamps of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(pub u8);

impl Mark {
    /// Nobody wrote it.
    pub const NEVER: Mark = Mark(0);
    /// A thread wrote it last; any thread may hold a stamp.
    pub const THREAD: Mark = Mark(254);
    /// The kernel wrote it last; any thread may hold a stamp.
    pub const KERNEL: Mark = Mark(255);
    /// Slots from this one on have no mark of their own: each of their writes takes the slow path.
    pub const SLOTS: Slot = 253;

    /// The thread in this slot wrote it last, and nobody else holds a stamp.
    pub fn exclusive(slot: Slot) -> Mark {
        if slot < Mark::SLOTS { Mark(slot as u8 + 1) } else { Mark::THREAD }
    }

    /// Whether one thread has it for itself.
    pub fn is_exclusive(self) -> bool {
        (1..=Mark::SLOTS as u8).contains(&self.0)
    }
}

/// A set of slots. Bit `s` stands for slot `s`, bit 63 for all slots from 63 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sharers(pub u64);

impl Sharers {
    /// The set with this slot.
    pub fn of(slot: Slot) -> Sharers {
        Sharers(1 << slot.min(63))
    }

    /// Whether all of `other` is in it.
    pub fn contains(self, other: Sharers) -> bool {
        self.0 & other.0 == other.0
    }

    /// The slots below `slots` that may be meant.
    pub fn slots(self, slots: Slot) -> impl Iterator<Item = Slot> {
        let mut bits = self.0 & (u64::MAX >> 1);
        let few = ::core::iter::from_fn(move || {
            let slot = bits.trailing_zeros() as Slot;
            bits &= bits.wrapping_sub(1);
            (slot < 64).then_some(slot)
        });
        let many = if self.0 >> 63 != 0 { 63..slots.max(63) } else { 0..0 };
        few.chain(many)
    }
}

/// Shadow memory.
pub trait Shadow {
    /// One more than the highest slot that was ever in use.
    fn slots(&self) -> Slot;

    /// The stamp that a thread holds of a cell; 0 if none.
    fn stamp(&self, slot: Slot, cell: Cell) -> u32;
    /// Sets a stamp.
    fn set_stamp(&self, slot: Slot, cell: Cell, stamp: u32);
    /// Sets a stamp unless another thread changed it meanwhile (to 0: it invalidated it).
    fn replace_stamp(&self, slot: Slot, cell: Cell, old: u32, new: u32);

    /// The stamp that was invalidated last, where both metrics are computed; valid while the stamp is 0.
    fn lost(&self, slot: Slot, cell: Cell) -> u32;
    /// Sets it.
    fn set_lost(&self, slot: Slot, cell: Cell, stamp: u32);

    /// The mark of a cell.
    fn mark(&self, cell: Cell) -> Mark;
    /// Sets a mark.
    fn set_mark(&self, cell: Cell, mark: Mark);

    /// Who may hold stamps on a page.
    fn sharers(&self, page: Page) -> Sharers;
    /// Adds to them, atomically.
    fn share(&self, page: Page, sharers: Sharers);

    /// Calls `each` with every cell of which a thread holds a stamp or lost one, and perhaps with others: a
    /// host goes through the resident pages.
    fn each_stamped(&self, slot: Slot, each: &mut dyn FnMut(Cell));
    /// Forgets all stamps of a thread that ended, and frees their memory.
    fn release(&self, slot: Slot);
}

/// Shadow memory in maps: for replays, where speed does not matter.
#[derive(Debug, Default)]
pub struct MapShadow {
    threads: RefCell<Vec<BTreeMap<Cell, Stamps>>>,
    marks: RefCell<BTreeMap<Cell, Mark>>,
    sharers: RefCell<BTreeMap<Page, Sharers>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Stamps {
    stamp: u32,
    lost: u32,
}

impl MapShadow {
    /// Cells of which this slot has stamps: what its thread costs.
    pub fn cells(&self, slot: Slot) -> usize {
        self.threads.borrow().get(slot).map_or(0, BTreeMap::len)
    }

    fn get(&self, slot: Slot, cell: Cell) -> Stamps {
        self.threads.borrow().get(slot).and_then(|cells| cells.get(&cell)).copied().unwrap_or_default()
    }

    fn change(&self, slot: Slot, cell: Cell, change: impl FnOnce(&mut Stamps)) {
        let mut threads = self.threads.borrow_mut();
        if threads.len() <= slot {
            threads.resize_with(slot + 1, BTreeMap::new);
        }
        let stamps = threads[slot].entry(cell).or_default();
        change(stamps);
        if (stamps.stamp, stamps.lost) == (0, 0) {
            threads[slot].remove(&cell);
        }
    }
}

impl Shadow for MapShadow {
    fn slots(&self) -> Slot {
        self.threads.borrow().len()
    }

    fn stamp(&self, slot: Slot, cell: Cell) -> u32 {
        self.get(slot, cell).stamp
    }

    fn set_stamp(&self, slot: Slot, cell: Cell, stamp: u32) {
        self.change(slot, cell, |stamps| stamps.stamp = stamp);
    }

    fn replace_stamp(&self, slot: Slot, cell: Cell, old: u32, new: u32) {
        self.change(slot, cell, |stamps| {
            if stamps.stamp == old {
                stamps.stamp = new;
            }
        });
    }

    fn lost(&self, slot: Slot, cell: Cell) -> u32 {
        self.get(slot, cell).lost
    }

    fn set_lost(&self, slot: Slot, cell: Cell, stamp: u32) {
        self.change(slot, cell, |stamps| stamps.lost = stamp);
    }

    fn mark(&self, cell: Cell) -> Mark {
        self.marks.borrow().get(&cell).copied().unwrap_or(Mark::NEVER)
    }

    fn set_mark(&self, cell: Cell, mark: Mark) {
        self.marks.borrow_mut().insert(cell, mark);
    }

    fn sharers(&self, page: Page) -> Sharers {
        self.sharers.borrow().get(&page).copied().unwrap_or_default()
    }

    fn share(&self, page: Page, sharers: Sharers) {
        self.sharers.borrow_mut().entry(page).or_default().0 |= sharers.0;
    }

    fn each_stamped(&self, slot: Slot, each: &mut dyn FnMut(Cell)) {
        let threads = self.threads.borrow();
        let cells: Vec<Cell> = threads.get(slot).map_or(Vec::new(), |cells| cells.keys().copied().collect());
        drop(threads);
        cells.into_iter().for_each(each);
    }

    fn release(&self, slot: Slot) {
        if let Some(cells) = self.threads.borrow_mut().get_mut(slot) {
            cells.clear();
        }
    }
}
