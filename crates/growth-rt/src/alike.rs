//! Alike activations, counted before they become points: a small table in shared memory that emitted code looks
//! into at each return (`code/leave.rs`). A hash leads to an entry; it and its neighbour, in one cache line, serve
//! both places. What neither has goes into the first of them, whose activations move to the neighbour, and those of the
//! neighbour to the buffer. The table begins small, so that a thread costs what it uses, and is made larger where many
//! activations differ.
//!
//! Emitted code alone looks for entries; here they are emptied.

use wire::growth::{ALIKE_MAX, Alike};

/// Entries of a new table.
const ENTRIES_FIRST: usize = 1024;

/// The table of a thread.
pub struct AlikeTable {
    entries: *mut Alike,
    count: usize,
}

impl AlikeTable {
    /// An empty one.
    ///
    /// # Safety
    /// `entries` is the address of `ALIKE_MAX` entries that nothing else writes while this exists, but emitted code of
    /// this thread.
    pub unsafe fn new(entries: *mut Alike) -> AlikeTable {
        const { assert!(ALIKE_MAX.is_power_of_two() && ENTRIES_FIRST <= ALIKE_MAX) };
        let mut table = AlikeTable { entries, count: ENTRIES_FIRST };
        table.clear();
        table
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        self.count
    }

    /// Which bits of a hash are an entry's offset.
    pub fn mask(&self) -> u64 {
        ((self.count - 1) * size_of::<Alike>()) as u64
    }

    /// Empties the entry with this number.
    pub fn take(&mut self, number: usize) -> Option<Alike> {
        assert!(number < self.count);
        // SAFETY: inside the table, which is this thread's; emitted code does not run meanwhile.
        let place = unsafe { &mut *self.entries.add(number) };
        (place.calls != 0).then(|| core::mem::take(place))
    }

    /// Whether it can be made larger.
    pub fn can_grow(&self) -> bool {
        self.count < ALIKE_MAX
    }

    /// Makes an empty table larger, if it can be.
    pub fn grow(&mut self) {
        if self.can_grow() {
            self.count *= 2;
            self.clear();
        }
    }

    fn clear(&mut self) {
        for number in 0..self.count {
            // SAFETY: inside the table, which is this thread's.
            unsafe { self.entries.add(number).write(Alike::NONE) };
        }
    }
}
