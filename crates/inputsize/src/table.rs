//! Finished activations added up per (routine, size), bounded in number.
//!
//! An open-addressing index over entries that stand in chunks and never move. Memory is asked for when a
//! chunk is full or the index is half full, never otherwise; when there is none, activations are counted as
//! [`Table::dropped`] instead of taking the program down.
//!
//! # Bounded points
//! Up to [`POINTS_EXACT`] sizes of a routine are kept apart. One more, and all sizes of that routine are
//! rounded to 8 significant bits, to the middle of what rounds alike: at most 1/256 = 0.39 % off, exact below
//! 256, and at most [`POINTS_EXACT`] points up to sizes of 2^38 cells. [`Table::size_error`] says how far off
//! any size really was.

use alloc::vec::Vec;

use crate::{Induced, Routine};

/// Sizes of a routine that are kept apart.
pub const POINTS_EXACT: u32 = 4096;
/// Significant bits of rounded sizes.
const ROUNDED_BITS: u32 = 8;
/// Entries of a chunk.
const CHUNK: usize = 256;

/// One cost of the activations of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Cheapest activation.
    pub min: u64,
    /// Dearest activation.
    pub max: u64,
    /// Sum over activations.
    pub sum: u64,
    /// Sum of squares.
    pub sumsq: u128,
    /// Sum over outermost activations: a recursion counts once.
    pub real_sum: u64,
    /// Smallest cost without callees.
    pub self_min: u64,
    /// Largest cost without callees.
    pub self_max: u64,
    /// Sum of costs without callees.
    pub self_sum: u64,
    /// Sum of their squares.
    pub self_sumsq: u128,
}

/// The activations of a routine on inputs of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point<const N: usize> {
    /// Input size in cells.
    pub n: u64,
    /// Activations.
    pub calls: u64,
    /// Their costs.
    pub costs: [Stats; N],
    /// Their induced input, callees included.
    pub induced: Induced,
    /// Their induced input, read by themselves.
    pub induced_self: Induced,
}

/// Activations that are alike in everything that a table keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alike<const N: usize> {
    /// Whose.
    pub routine: Routine,
    /// Input size of each.
    pub size: u64,
    /// Costs of each.
    pub cost: [u64; N],
    /// Costs of each, without callees.
    pub cost_self: [u64; N],
    /// How many.
    pub calls: u64,
    /// How many of them outermost.
    pub outermost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry<const N: usize> {
    routine: Routine,
    /// Next entry of the same routine, plus 1.
    next: u32,
    point: Point<N>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Head {
    /// First entry, plus 1.
    first: u32,
    points: u32,
    rounded: bool,
}

/// The table.
#[derive(Debug)]
pub struct Table<const N: usize> {
    /// Entry numbers plus 1, 0 where free; a power of two of them.
    index: Vec<u32>,
    chunks: Vec<Vec<Entry<N>>>,
    /// Entries of merged points, to be used again.
    free: Vec<u32>,
    used: usize,
    heads: Vec<Head>,
    size_error: f64,
    dropped: u64,
}

impl<const N: usize> Default for Table<N> {
    fn default() -> Table<N> {
        Table {
            index: Vec::new(),
            chunks: Vec::new(),
            free: Vec::new(),
            used: 0,
            heads: Vec::new(),
            size_error: 0.0,
            dropped: 0,
        }
    }
}

impl<const N: usize> Table<N> {
    /// Adds activations.
    pub fn add(&mut self, alike: &Alike<N>) {
        let Some(entry) = self.entry(alike.routine, alike.size) else {
            self.dropped = self.dropped.saturating_add(alike.calls);
            return;
        };
        let point = &mut self.get_mut(entry).point;
        point.calls += alike.calls;
        for (i, stats) in point.costs.iter_mut().enumerate() {
            stats.add(alike.cost[i], alike.cost_self[i], alike.calls, alike.outermost);
        }
    }

    /// Adds the induced input of activations that were added before.
    pub fn add_induced(&mut self, routine: Routine, size: u64, induced: Induced, induced_self: Induced) {
        if let Some(entry) = self.entry(routine, size) {
            let point = &mut self.get_mut(entry).point;
            point.induced.add(induced);
            point.induced_self.add(induced_self);
        }
    }

    /// Adds all that another table holds.
    pub fn merge(&mut self, other: &Table<N>) {
        for routine in other.routines() {
            // What was rounded there must be rounded here, or one size would appear as two.
            if other.heads[routine as usize].rounded {
                self.round(routine);
            }
            for from in other.points(routine) {
                match self.entry(routine, from.n) {
                    Some(entry) => self.get_mut(entry).point.merge(from),
                    None => self.dropped = self.dropped.saturating_add(from.calls),
                }
            }
        }
        self.size_error = self.size_error.max(other.size_error);
        self.dropped = self.dropped.saturating_add(other.dropped);
    }

    /// The routines with points, ascending.
    pub fn routines(&self) -> impl Iterator<Item = Routine> {
        self.heads.iter().enumerate().filter(|(_, head)| head.points > 0).map(|(i, _)| i as Routine)
    }

    /// The points of a routine, in no order.
    pub fn points(&self, routine: Routine) -> impl Iterator<Item = &Point<N>> {
        let mut next = self.heads.get(routine as usize).map_or(0, |head| head.first);
        ::core::iter::from_fn(move || {
            let entry = self.get(next.checked_sub(1)?);
            next = entry.next;
            Some(&entry.point)
        })
    }

    /// Largest relative error of a size, 0 when all sizes are exact.
    pub fn size_error(&self) -> f64 {
        self.size_error
    }

    /// Activations that could not be kept for want of memory.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of the entry of a size, made if need be; `None` when there is no memory.
    fn entry(&mut self, routine: Routine, size: u64) -> Option<u32> {
        if routine as usize >= self.heads.len() {
            let more = routine as usize + 1 - self.heads.len();
            self.heads.try_reserve(more).ok()?;
            self.heads.resize(routine as usize + 1, Head::default());
        }
        let kept = self.kept(routine, size);
        if let Some(found) = self.find(routine, kept) {
            return Some(found);
        }
        if self.heads[routine as usize].points == POINTS_EXACT && !self.heads[routine as usize].rounded {
            self.round(routine);
        }
        let kept = self.kept(routine, size);
        self.find(routine, kept).or_else(|| self.insert(routine, kept))
    }

    /// The size under which a size is kept; notes how far off that is.
    fn kept(&mut self, routine: Routine, size: u64) -> u64 {
        if !self.heads[routine as usize].rounded {
            return size;
        }
        let kept = rounded(size);
        if kept != size {
            self.size_error = self.size_error.max(kept.abs_diff(size) as f64 / size as f64);
        }
        kept
    }

    fn find(&self, routine: Routine, size: u64) -> Option<u32> {
        let mask = self.index.len().checked_sub(1)?;
        let mut at = hash(routine, size) & mask;
        loop {
            let number = self.index[at].checked_sub(1)?;
            let entry = self.get(number);
            if entry.point.n == size && entry.routine == routine {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    fn insert(&mut self, routine: Routine, size: u64) -> Option<u32> {
        if (self.used + 1) * 2 > self.index.len() {
            self.rebuild((self.index.len() * 2).max(64))?;
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                if self.used.is_multiple_of(CHUNK) {
                    let mut chunk = Vec::new();
                    chunk.try_reserve_exact(CHUNK).ok()?;
                    self.chunks.try_reserve(1).ok()?;
                    self.chunks.push(chunk);
                }
                self.used as u32
            }
        };
        let head = &mut self.heads[routine as usize];
        let point = Point {
            n: size,
            calls: 0,
            costs: [Stats::EMPTY; N],
            induced: Induced::default(),
            induced_self: Induced::default(),
        };
        let entry = Entry { routine, next: head.first, point };
        head.first = number + 1;
        head.points += 1;
        match self.chunks[number as usize / CHUNK].get_mut(number as usize % CHUNK) {
            Some(place) => *place = entry,
            None => self.chunks[number as usize / CHUNK].push(entry),
        }
        self.used += 1;
        self.link(number);
        Some(number)
    }

    fn link(&mut self, number: u32) {
        let entry = self.get(number);
        let mask = self.index.len() - 1;
        let mut at = hash(entry.routine, entry.point.n) & mask;
        while self.index[at] != 0 {
            at = (at + 1) & mask;
        }
        self.index[at] = number + 1;
    }

    /// Makes the index anew, of `places` places.
    fn rebuild(&mut self, places: usize) -> Option<()> {
        let mut index = Vec::new();
        index.try_reserve_exact(places).ok()?;
        index.resize(places, 0);
        self.index = index;
        for routine in 0..self.heads.len() {
            let mut next = self.heads[routine].first;
            while let Some(number) = next.checked_sub(1) {
                next = self.get(number).next;
                self.link(number);
            }
        }
        Some(())
    }

    /// Rounds all sizes of a routine from now on.
    fn round(&mut self, routine: Routine) {
        if routine as usize >= self.heads.len() {
            self.heads.resize(routine as usize + 1, Head::default());
        }
        let head = ::core::mem::replace(
            &mut self.heads[routine as usize],
            Head { first: 0, points: 0, rounded: true },
        );
        let mut numbers = Vec::new();
        let mut next = head.first;
        while let Some(number) = next.checked_sub(1) {
            next = self.get(number).next;
            numbers.push(number);
        }
        let points: Vec<Point<N>> = numbers.iter().map(|&number| self.get(number).point).collect();
        // Taken out of the table, then put in again under their rounded sizes.
        self.used -= numbers.len();
        self.free.extend(numbers);
        if self.rebuild(self.index.len()).is_none() {
            return;
        }
        for point in points {
            let kept = self.kept(routine, point.n);
            match self.find(routine, kept).or_else(|| self.insert(routine, kept)) {
                Some(entry) => self.get_mut(entry).point.merge(&point),
                None => self.dropped = self.dropped.saturating_add(point.calls),
            }
        }
    }

    fn get(&self, number: u32) -> &Entry<N> {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }

    fn get_mut(&mut self, number: u32) -> &mut Entry<N> {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

impl Stats {
    const EMPTY: Stats = Stats {
        min: u64::MAX,
        max: 0,
        sum: 0,
        sumsq: 0,
        real_sum: 0,
        self_min: u64::MAX,
        self_max: 0,
        self_sum: 0,
        self_sumsq: 0,
    };

    fn add(&mut self, cost: u64, cost_self: u64, calls: u64, outermost: u64) {
        let square = |cost: u64| u128::from(cost) * u128::from(cost) * u128::from(calls);
        self.min = self.min.min(cost);
        self.max = self.max.max(cost);
        self.sum = self.sum.saturating_add(cost.saturating_mul(calls));
        self.sumsq = self.sumsq.saturating_add(square(cost));
        self.real_sum = self.real_sum.saturating_add(cost.saturating_mul(outermost));
        self.self_min = self.self_min.min(cost_self);
        self.self_max = self.self_max.max(cost_self);
        self.self_sum = self.self_sum.saturating_add(cost_self.saturating_mul(calls));
        self.self_sumsq = self.self_sumsq.saturating_add(square(cost_self));
    }

    fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sumsq = self.sumsq.saturating_add(other.sumsq);
        self.real_sum = self.real_sum.saturating_add(other.real_sum);
        self.self_min = self.self_min.min(other.self_min);
        self.self_max = self.self_max.max(other.self_max);
        self.self_sum = self.self_sum.saturating_add(other.self_sum);
        self.self_sumsq = self.self_sumsq.saturating_add(other.self_sumsq);
    }
}

impl<const N: usize> Point<N> {
    fn merge(&mut self, other: &Point<N>) {
        self.calls = self.calls.saturating_add(other.calls);
        for (to, from) in self.costs.iter_mut().zip(&other.costs) {
            to.merge(from);
        }
        self.induced.add(other.induced);
        self.induced_self.add(other.induced_self);
    }
}

/// The middle of the sizes that share the first [`ROUNDED_BITS`] significant bits with this one.
pub fn rounded(size: u64) -> u64 {
    let shift = (u64::BITS - size.leading_zeros()).saturating_sub(ROUNDED_BITS);
    if shift == 0 { size } else { (size >> shift << shift) + (1 << (shift - 1)) }
}

fn hash(routine: Routine, size: u64) -> usize {
    let mixed = (u64::from(routine) << 40 ^ size).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn one(routine: Routine, size: u64, cost: u64) -> Alike<1> {
        Alike { routine, size, cost: [cost], cost_self: [cost / 2], calls: 1, outermost: cost % 2 }
    }

    fn sizes(table: &Table<1>, routine: Routine) -> Vec<u64> {
        let mut sizes: Vec<u64> = table.points(routine).map(|point| point.n).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn equal_sizes_become_one_point() {
        let mut table = Table::<1>::default();
        for cost in [5, 3, 8] {
            table.add(&one(7, 100, cost));
        }
        table.add(&one(7, 101, 1));
        table.add_induced(7, 100, Induced { thread: 2, external: 3 }, Induced { thread: 1, external: 0 });
        assert_eq!(table.routines().collect::<Vec<_>>(), [7]);
        let point = *table.points(7).find(|point| point.n == 100).unwrap();
        let stats = point.costs[0];
        assert_eq!((point.calls, stats.min, stats.max, stats.sum, stats.sumsq), (3, 3, 8, 16, 98));
        assert_eq!(
            (stats.self_min, stats.self_max, stats.self_sum, stats.self_sumsq, stats.real_sum),
            (1, 4, 7, 21, 8)
        );
        assert_eq!(point.induced, Induced { thread: 2, external: 3 });
        assert_eq!(table.size_error(), 0.0);
    }

    #[test]
    fn alike_activations_add_up_like_single_ones() {
        let (mut many, mut single) = (Table::<1>::default(), Table::<1>::default());
        many.add(&Alike { calls: 1000, outermost: 10, ..one(1, 4, 9) });
        for i in 0..1000 {
            single.add(&Alike { outermost: u64::from(i < 10), ..one(1, 4, 9) });
        }
        assert!(many.points(1).eq(single.points(1)));
    }

    #[test]
    fn rounding_is_within_its_bound_and_stable() {
        for size in (0..3000).chain((12..64).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 12345])) {
            let kept = rounded(size);
            assert_eq!(rounded(kept), kept);
            assert!(kept.abs_diff(size) as f64 <= size as f64 / 256.0, "{size} kept as {kept}");
            if size < 256 {
                assert_eq!(kept, size);
            }
        }
    }

    #[test]
    fn many_sizes_are_rounded_and_nothing_is_lost() {
        let mut table = Table::<1>::default();
        let mut expected: BTreeMap<u64, u64> = BTreeMap::new();
        for i in 0..u64::from(POINTS_EXACT) {
            table.add(&one(1, i * 3, i));
        }
        assert_eq!((sizes(&table, 1).len(), table.size_error()), (POINTS_EXACT as usize, 0.0));
        table.add(&one(2, 1_000_003, 1));
        for i in u64::from(POINTS_EXACT)..20_000 {
            table.add(&one(1, i * 3, i));
        }
        for i in 0..20_000 {
            *expected.entry(rounded(i * 3)).or_default() += 1;
        }
        let found: BTreeMap<u64, u64> = table.points(1).map(|point| (point.n, point.calls)).collect();
        assert_eq!(found, expected);
        assert_eq!(table.points(1).map(|point| point.costs[0].sum).sum::<u64>(), (0..20_000).sum());
        assert!(table.size_error() > 0.003 && table.size_error() <= 0.004, "{}", table.size_error());
        assert_eq!(sizes(&table, 2), [1_000_003], "other routines stay exact");
        assert_eq!(table.dropped(), 0);
    }

    #[test]
    fn the_points_of_a_rounded_routine_are_bounded() {
        let mut table = Table::<1>::default();
        let mut size = 1u64;
        while size < 1 << 38 {
            table.add(&one(0, size, 1));
            size += 1 + size / 700;
        }
        assert!(sizes(&table, 0).len() <= POINTS_EXACT as usize);
    }

    #[test]
    fn merging_tables_equals_one_table() {
        let (mut all, mut left, mut right) =
            (Table::<1>::default(), Table::<1>::default(), Table::<1>::default());
        for i in 0..10_000u64 {
            let alike = one((i % 3) as Routine, i * i % 9973, i);
            all.add(&alike);
            if i % 2 == 0 { left.add(&alike) } else { right.add(&alike) }
        }
        // Many sizes of one routine on one side only.
        for i in 0..5000 {
            all.add(&one(9, 100 + i, i));
            right.add(&one(9, 100 + i, i));
        }
        all.add(&one(9, 777, 1));
        left.add(&one(9, 777, 1));
        left.merge(&right);
        for routine in [0, 1, 2, 9] {
            let sorted = |table: &Table<1>| {
                let mut points: Vec<Point<1>> = table.points(routine).copied().collect();
                points.sort_unstable_by_key(|point| point.n);
                points
            };
            assert_eq!(sorted(&left), sorted(&all), "routine {routine}");
        }
        assert_eq!(left.size_error(), all.size_error());
    }
}
