//! Alike activations, counted before they become points: a small table in shared memory, found by hash, one entry to a
//! place. It begins small, so that a thread costs what it uses, and is made larger where many activations differ. Where
//! they often push each other out, two neighbours serve both places: a recursion's costs are many, and come again.

use wire::growth::{ALIKE_MAX, Alike};

/// Entries of a new table.
const ENTRIES_FIRST: u32 = 1024;

/// The table of a thread.
pub struct AlikeTable {
    entries: *mut Alike,
    /// 64 minus log2 of their number.
    shift: u32,
    /// Whether neighbours serve both places.
    paired: bool,
    /// Activations that were counted in the neighbour of their place, since [`AlikeTable::pair`].
    beside: usize,
}

impl AlikeTable {
    /// An empty one.
    ///
    /// # Safety
    /// `entries` is the address of `ALIKE_MAX` entries that nothing else writes while this exists.
    pub unsafe fn new(entries: *mut Alike) -> AlikeTable {
        const { assert!(ALIKE_MAX.is_power_of_two() && ENTRIES_FIRST as usize <= ALIKE_MAX) };
        let shift = u64::BITS - ENTRIES_FIRST.trailing_zeros();
        let mut table = AlikeTable { entries, shift, paired: false, beside: 0 };
        table.clear();
        table
    }

    /// How many entries there are.
    pub fn entries(&self) -> usize {
        1 << (u64::BITS - self.shift)
    }

    /// Where such activations are counted.
    #[inline]
    pub fn place(&self, routine: u32, n: u64, cost: u64) -> *const Alike {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        // The upper bits of the product are those that all of them have a say in.
        let mixed = (u64::from(routine) << 32 ^ n << 16 ^ cost).wrapping_mul(MIX);
        self.entries.wrapping_add((mixed >> self.shift) as usize)
    }

    /// Counts an activation among those that are alike. Returns its place if others are there, or none.
    #[inline(always)]
    pub fn count(
        &mut self,
        routine: u32,
        n: u64,
        cost: u64,
        own: u64,
        outermost: bool,
    ) -> Option<&mut Alike> {
        // SAFETY: inside the table, which is this thread's.
        let place = unsafe { &mut *self.place(routine, n, cost).cast_mut() };
        if add_alike(place, routine, n, cost, own, outermost) {
            return None;
        }
        if self.paired { self.count_beside(place, routine, n, cost, own, outermost) } else { Some(place) }
    }

    #[inline(never)]
    fn count_beside<'a>(
        &mut self,
        place: &'a mut Alike,
        routine: u32,
        n: u64,
        cost: u64,
        own: u64,
        outermost: bool,
    ) -> Option<&'a mut Alike> {
        // SAFETY: an entry of the table, and the other one of its pair: the table has an even number of them, and they
        // are this thread's.
        let other = unsafe {
            let number = core::ptr::from_mut(place).offset_from_unsigned(self.entries);
            &mut *self.entries.add(number ^ 1)
        };
        if add_alike(other, routine, n, cost, own, outermost) {
            self.beside += 1;
            return None;
        }
        // The one that was used longer ago makes room.
        core::mem::swap(place, other);
        Some(place)
    }

    /// From now on neighbours serve both places, or do not: asks with how many activations were counted in the
    /// neighbour of their place since the last time.
    pub fn pair(&mut self, paired: impl FnOnce(usize) -> bool) {
        self.paired = paired(core::mem::take(&mut self.beside));
    }

    /// Empties the entry with this number.
    pub fn take(&mut self, number: usize) -> Option<Alike> {
        assert!(number < self.entries());
        // SAFETY: inside the table, which is this thread's.
        let place = unsafe { &mut *self.entries.add(number) };
        (place.calls != 0).then(|| core::mem::take(place))
    }

    /// Whether it can be made larger.
    pub fn can_grow(&self) -> bool {
        self.entries() < ALIKE_MAX
    }

    /// Makes an empty table larger, if it can be.
    pub fn grow(&mut self) {
        if self.can_grow() {
            self.shift -= 1;
            self.clear();
        }
    }

    fn clear(&mut self) {
        for number in 0..self.entries() {
            // SAFETY: inside the table, which is this thread's.
            unsafe { self.entries.add(number).write(Alike::default()) };
        }
    }
}

/// Counts an activation if it is alike.
#[inline(always)]
fn add_alike(place: &mut Alike, routine: u32, n: u64, cost: u64, own: u64, outermost: bool) -> bool {
    // One branch for all four.
    let differs = place.cost ^ cost | place.n ^ n | place.routine ^ u64::from(routine) | place.own ^ own;
    if differs != 0 {
        return false;
    }
    place.calls += 1;
    place.outermost += u64::from(outermost);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn nothing_is_lost_when_others_need_the_place_or_the_table_grows() {
        let mut memory = alloc::vec![Alike::default(); ALIKE_MAX];
        // SAFETY: memory that outlives the table and that nothing else uses.
        let mut table = unsafe { AlikeTable::new(memory.as_mut_ptr()) };
        let mut expected: BTreeMap<[u64; 4], [u64; 2]> = BTreeMap::new();
        let mut found = expected.clone();
        let mut note = |out: Alike| {
            let counts = found.entry([out.routine, out.n, out.cost, out.own]).or_default();
            *counts = [counts[0] + out.calls, counts[1] + out.outermost];
        };
        for round in 0..4u64 {
            for i in 0..20_000 {
                // Some come again and again, most do not.
                let n = if i % 3 == 0 { 7 } else { i * i % 9973 };
                let outermost = i % 5 == 0;
                let one = [(i % 11), n, n + round, i % 2];
                let counts = expected.entry(one).or_default();
                *counts = [counts[0] + 1, counts[1] + u64::from(outermost)];
                if let Some(place) = table.count(one[0] as u32, one[1], one[2], one[3], outermost) {
                    if place.calls != 0 {
                        note(*place);
                    }
                    *place = Alike::one(one[0] as u32, one[1], one[2], one[3], outermost);
                }
            }
            (0..table.entries()).filter_map(|number| table.take(number)).for_each(&mut note);
            table.pair(|_| round % 2 == 0);
            table.grow();
        }
        assert_eq!(table.entries(), ALIKE_MAX, "it grows no further");
        assert_eq!(found, expected);
    }
}
