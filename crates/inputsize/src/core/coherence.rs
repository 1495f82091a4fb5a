//! Who must learn that a cell was written: the slow paths that threads share.
//!
//! A directory protocol as between processor caches, with stamps in the place of cached lines:
//! *a thread that holds a stamp of a cell knows its value*. Whoever writes takes the stamps of others away.
//!
//! # Invariants (for cells without data races)
//! - I1. If thread t holds a stamp of a cell, t is among the sharers of its page.
//! - I2. If the mark of a cell is exclusive to slot t, no other slot holds a stamp of it.
//! - I3. If t holds a stamp of a cell, nobody else wrote the cell since t's last access.
//! - I4. The mark tells who wrote last: nobody, some thread, the kernel.
//!
//! So a write by t under the mark exclusive(t) needs nothing but t's own stamp (I2 keeps I3), and a read by t
//! of a cell of which t holds a stamp is not induced (I3). A read without a stamp is induced exactly if
//! somebody wrote the cell at all: had t itself written last, t would hold a stamp.
//!
//! A slot that is used again keeps its sharer bits and exclusive marks (I1 and I2 stay true, they bound who
//! *may* hold stamps) but none of its stamps.

use super::shadow::{Mark, Shadow, Sharers, Slot};
use crate::{Cell, CellSize, Induced, Metric};

/// What a read without a stamp is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Nobody wrote the cell: a plain first read.
    Initial,
    /// Another thread wrote it.
    Thread,
    /// The kernel wrote it.
    Kernel,
}

impl Origin {
    /// One read of this origin.
    pub fn induced(self) -> Induced {
        match self {
            Origin::Initial => Induced::default(),
            Origin::Thread => Induced { thread: 1, external: 0 },
            Origin::Kernel => Induced { thread: 0, external: 1 },
        }
    }
}

/// Before thread `slot` takes a stamp of a cell by reading it without one.
pub fn before_first_stamp(shadow: &impl Shadow, slot: Slot, cell: Cell) -> Origin {
    join(shadow, slot, cell);
    let mark = shadow.mark(cell);
    if mark.is_exclusive() && mark != Mark::exclusive(slot) {
        shadow.set_mark(cell, Mark::THREAD);
    }
    match mark {
        Mark::NEVER => Origin::Initial,
        Mark::KERNEL => Origin::Kernel,
        _ => Origin::Thread,
    }
}

/// Before thread `slot` writes a cell whose mark is not exclusive to it.
pub fn before_foreign_write(shadow: &impl Shadow, slot: Slot, cell: Cell, metric: Metric) {
    join(shadow, slot, cell);
    for other in shadow.sharers(cell.into()).slots(shadow.slots()) {
        if other != slot {
            invalidate(shadow, other, cell, metric);
        }
    }
    shadow.set_mark(cell, Mark::exclusive(slot));
}

/// After the kernel wrote a cell on behalf of any thread.
pub fn kernel_write(shadow: &impl Shadow, cell: Cell, metric: Metric) {
    for slot in shadow.sharers(cell.into()).slots(shadow.slots()) {
        invalidate(shadow, slot, cell, metric);
    }
    shadow.set_mark(cell, Mark::KERNEL);
}

/// When memory goes away or comes anew: the cells wholly inside have no past.
///
/// A host frees whole pages of stamps, marks and sharers instead of visiting their cells; that must happen
/// while no thread can access them, as between munmap's return and the next mmap.
pub fn reset(shadow: &impl Shadow, cell_size: CellSize, address: u64, size: u64) {
    for cell in cell_size.inside(address, size) {
        for slot in 0..shadow.slots() {
            if shadow.stamp(slot, cell) != 0 {
                shadow.set_stamp(slot, cell, 0);
            }
            if shadow.lost(slot, cell) != 0 {
                shadow.set_lost(slot, cell, 0);
            }
        }
        if shadow.mark(cell) != Mark::NEVER {
            shadow.set_mark(cell, Mark::NEVER);
        }
    }
}

fn join(shadow: &impl Shadow, slot: Slot, cell: Cell) {
    let own = Sharers::of(slot);
    if !shadow.sharers(cell.into()).contains(own) {
        shadow.share(cell.into(), own);
    }
}

fn invalidate(shadow: &impl Shadow, slot: Slot, cell: Cell, metric: Metric) {
    let stamp = shadow.stamp(slot, cell);
    if stamp != 0 {
        if metric == Metric::Both {
            shadow.set_lost(slot, cell, stamp);
        }
        shadow.set_stamp(slot, cell, 0);
    }
}
