//! One thread's points, in shared memory: activations added up by (routine, size).
//!
//! Points lie in one array that all threads append to; the index that finds them is private. A routine keeps its
//! first [`POINTS_EXACT`] sizes exactly; with more, sizes are rounded to 8 significant bits. The collector may look
//! at any time: a point that is being moved is counted in neither place or in one, never in two.

use crate::shared::Points;
use alloc::vec::Vec;
use core::mem::offset_of;
use inputsize::table::{POINTS_EXACT, rounded};
use wire::growth::{Alike, Point, Stats};

/// Activations of a routine on inputs of one size, as one thread counts them.
pub struct Table {
    points: Points,
    /// What [`Point::thread`] is for this table.
    owner: u32,
    /// A power of two of places, at most half of them used.
    index: Vec<Place>,
    used: usize,
    /// By routine: its points, and whether their sizes are rounded.
    heads: Vec<Head>,
    /// Numbers of points that were emptied by rounding.
    free: Vec<u32>,
    /// Where an activation goes that finds no memory.
    dropped: u64,
    /// Largest relative size error, in millionths.
    size_error_ppm: u64,
}

/// Where a point is, found by hash.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The point's number plus 1; 0 for none.
    number_plus_1: u32,
    /// More of its hash: who looks for another point need not touch this one.
    tag: u32,
}

impl Place {
    fn number(self) -> Option<u32> {
        self.number_plus_1.checked_sub(1)
    }
}

#[derive(Clone, Copy, Default)]
struct Head {
    points: u32,
    rounded: bool,
}

impl Table {
    /// An empty one.
    pub fn new(points: Points, owner: u32) -> Table {
        Table {
            points,
            owner,
            index: alloc::vec![Place::default(); 256],
            used: 0,
            heads: Vec::new(),
            free: Vec::new(),
            dropped: 0,
            size_error_ppm: 0,
        }
    }

    /// Adds activations. Returns the number of their point, unless there is no room.
    pub fn add(&mut self, a: &Alike) -> Option<u32> {
        let routine = a.routine();
        let Some(number) = self.find(routine, a.n).or_else(|| self.entry(routine, a.n)) else {
            self.dropped += u64::from(a.calls);
            return None;
        };
        self.add_to(number, a);
        Some(number)
    }

    /// Adds activations to the point that [`Table::ask`] found for them, if it still is theirs.
    #[inline]
    pub fn add_asked(&mut self, asked: Option<u32>, a: &Alike) {
        match asked.filter(|&number| self.is(number, a.routine(), a.n)) {
            Some(number) => self.add_to(number, a),
            None => drop(self.add(a)),
        }
    }

    #[inline]
    fn add_to(&mut self, number: u32, a: &Alike) {
        let point = self.points.get(number);
        point.calls += u64::from(a.calls);
        point.cost.add(a.cost, a.calls.into());
        point.own.add(a.own, a.calls.into());
        point.real_sum = point.real_sum.saturating_add(a.cost.saturating_mul(a.outermost()));
    }

    /// Asks for the place in the index that [`Table::ask`] will look at.
    #[inline]
    pub fn prefetch_index(&self, routine: u32, n: u64) {
        prefetch(&raw const self.index[hash(routine, n).0 & (self.index.len() - 1)]);
    }

    /// Asks for the point of a size, and tells which one that probably is.
    #[inline]
    pub fn ask(&self, routine: u32, n: u64) -> Option<u32> {
        let number = self.candidates(routine, n).next()?;
        let point: *const Point = self.points.get(number);
        // (What adding touches, which may be three lines.)
        [0, 64, offset_of!(Point, real_sum)].into_iter().for_each(|at| prefetch(point.wrapping_byte_add(at)));
        Some(number)
    }

    /// The points with a size's hash.
    #[inline]
    fn candidates(&self, routine: u32, n: u64) -> impl Iterator<Item = u32> {
        let (at, tag) = hash(routine, n);
        let mask = self.index.len() - 1;
        let mut at = at & mask;
        core::iter::from_fn(move || {
            loop {
                let place = self.index[at];
                let number = place.number()?;
                at = (at + 1) & mask;
                if place.tag == tag {
                    return Some(number);
                }
            }
        })
    }

    /// Is this the point of a size?
    #[inline]
    fn is(&self, number: u32, routine: u32, n: u64) -> bool {
        let point = self.points.get(number);
        point.n == n && point.routine == routine + 1
    }

    /// Adds induced reads to a point: by other threads and by the kernel, in all and by the routine itself.
    pub fn add_induced(&mut self, number: u32, induced: [u64; 4]) {
        for (to, from) in self.points.get(number).induced.iter_mut().zip(induced) {
            *to = to.saturating_add(from);
        }
    }

    /// Activations that found no room, and the largest size error in millionths.
    pub fn losses(&self) -> (u64, u64) {
        (self.dropped, self.size_error_ppm)
    }

    /// The point of a size that the index does not hold as it is: rounded, or new.
    #[cold]
    fn entry(&mut self, routine: u32, size: u64) -> Option<u32> {
        if routine as usize >= self.heads.len() {
            self.heads.resize(routine as usize + 1, Head::default());
        }
        if self.heads[routine as usize].points >= POINTS_EXACT && !self.heads[routine as usize].rounded {
            self.round(routine);
        }
        let kept = self.kept(routine, size);
        if kept != size
            && let Some(found) = self.find(routine, kept)
        {
            return Some(found);
        }
        self.insert(routine, kept)
    }

    /// The size under which a size is kept; notes how far off that is.
    fn kept(&mut self, routine: u32, size: u64) -> u64 {
        if !self.heads[routine as usize].rounded {
            return size;
        }
        let kept = rounded(size);
        let error = (u128::from(kept.abs_diff(size)) * 1_000_000).div_ceil(u128::from(size.max(1)));
        self.size_error_ppm = self.size_error_ppm.max(error as u64);
        kept
    }

    fn find(&self, routine: u32, size: u64) -> Option<u32> {
        self.candidates(routine, size).find(|&number| self.is(number, routine, size))
    }

    fn insert(&mut self, routine: u32, size: u64) -> Option<u32> {
        if (self.used + 1) * 2 > self.index.len() {
            self.grow();
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => self.points.append()?,
        };
        let point = Point {
            routine: routine + 1,
            thread: self.owner,
            n: size,
            calls: 0,
            cost: Stats::EMPTY,
            own: Stats::EMPTY,
            real_sum: 0,
            induced: [0; 4],
        };
        *self.points.get(number) = point;
        self.heads[routine as usize].points += 1;
        self.used += 1;
        self.link(number);
        Some(number)
    }

    fn link(&mut self, number: u32) {
        let point = self.points.get(number);
        let mask = self.index.len() - 1;
        let (at, tag) = hash(point.routine - 1, point.n);
        let mut at = at & mask;
        while self.index[at].number().is_some() {
            at = (at + 1) & mask;
        }
        self.index[at] = Place { number_plus_1: number + 1, tag };
    }

    fn grow(&mut self) {
        let places = self.index.len() * 2;
        let old = core::mem::replace(&mut self.index, alloc::vec![Place::default(); places]);
        old.into_iter().filter_map(Place::number).for_each(|number| self.link(number));
    }

    /// Rounds all sizes of a routine from now on.
    fn round(&mut self, routine: u32) {
        self.heads[routine as usize] = Head { points: 0, rounded: true };
        let places = self.index.len();
        let old = core::mem::replace(&mut self.index, alloc::vec![Place::default(); places]);
        let mut moved = Vec::new();
        for number in old.into_iter().filter_map(Place::number) {
            if self.points.get(number).routine == routine + 1 {
                moved.push(number);
            } else {
                self.link(number);
            }
        }
        self.used -= moved.len();
        for number in moved {
            let point = *self.points.get(number);
            self.points.get(number).routine = 0;
            self.free.push(number);
            let kept = self.kept(routine, point.n);
            match self.find(routine, kept).or_else(|| self.insert(routine, kept)) {
                Some(to) => self.points.get(to).merge(&point),
                None => self.dropped += point.calls,
            }
        }
    }
}

/// Asks for a cache line.
#[inline]
pub fn prefetch<T>(at: *const T) {
    // SAFETY: a hint; it cannot fault.
    unsafe { core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(at.cast()) };
}

/// Where a size is looked for first, and the tag of its point.
#[inline]
fn hash(routine: u32, size: u64) -> (usize, u32) {
    let mixed = (u64::from(routine) << 40 ^ size).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 32) as usize, (mixed >> 28) as u32)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeMap;
    use wire::growth::NESTED;

    fn one(routine: u32, n: u64, cost: u64) -> Alike {
        let nested = if cost.is_multiple_of(2) { NESTED } else { 0 };
        Alike::one(routine | nested, n, cost, cost / 2)
    }

    #[test]
    fn alike_activations_add_up_like_single_ones() {
        let (points, _memory) = Points::for_tests(2);
        let (mut many, mut single) = (Table::new(points, 0), Table::new(points, 0));
        many.add(&Alike { calls: 990, ..one(1, 4, 1 << 40) });
        many.add(&Alike { calls: 10, ..Alike::one(1, 4, 1 << 40, 1 << 39) });
        for i in 0..1000 {
            let nested = if i < 10 { 0 } else { NESTED };
            single.add(&Alike::one(1 | nested, 4, 1 << 40, 1 << 39));
        }
        assert_eq!(*many.points.get(0), *single.points.get(1));
    }

    #[test]
    fn equal_sizes_become_one_point() {
        let (points, _memory) = Points::for_tests(16);
        let mut table = Table::new(points, 5);
        for cost in [5, 3, 8] {
            assert_eq!(table.add(&one(7, 100, cost)), Some(0));
        }
        assert_eq!(table.add(&one(7, 101, 1)), Some(1));
        table.add_induced(0, [2, 3, 1, 0]);
        let p = table.points.get(0);
        assert_eq!((p.routine, p.thread, p.n, p.calls), (8, 5, 100, 3));
        assert_eq!((p.cost.min, p.cost.max, p.cost.sum, p.cost.sumsq()), (3, 8, 16, 98));
        assert_eq!((p.own.min, p.own.max, p.own.sum, p.own.sumsq(), p.real_sum), (1, 4, 7, 21, 8));
        assert_eq!(p.induced, [2, 3, 1, 0]);
    }

    #[test]
    fn many_sizes_are_rounded_and_nothing_is_lost() {
        let (points, _memory) = Points::for_tests(20_000);
        let mut table = Table::new(points, 0);
        table.add(&one(2, 1_000_003, 1));
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        for i in 0..20_000 {
            table.add(&one(1, i * 3, i));
            *expected.entry(rounded(i * 3)).or_default() += 1;
        }
        let mut found = BTreeMap::new();
        let mut sum = 0;
        for number in 0..table.points.len() {
            let p = table.points.get(number);
            if p.routine == 2 {
                found.insert(p.n, p.calls);
                sum += p.cost.sum;
            } else if p.routine != 0 {
                assert_eq!((p.routine, p.n), (3, 1_000_003), "other routines stay exact");
            }
        }
        assert_eq!(found, expected);
        assert_eq!(sum, (0..20_000).sum());
        let (dropped, error) = table.losses();
        assert_eq!(dropped, 0);
        assert!((3000..=3910).contains(&error), "{error}");
    }

    #[test]
    fn a_full_array_drops_and_says_so() {
        let (points, _memory) = Points::for_tests(2);
        let mut table = Table::new(points, 0);
        assert!(table.add(&one(0, 1, 1)).is_some() && table.add(&one(0, 2, 1)).is_some());
        assert_eq!(table.add(&one(0, 3, 1)), None);
        assert!(table.add(&one(0, 2, 1)).is_some());
        assert_eq!(table.losses().0, 1);
    }
}
