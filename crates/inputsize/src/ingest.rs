//! Record buffers added to tables, newest record first.
//!
//! # Outermost activations without a counter per call
//! Whether an activation A of a routine is nested in another one, B, shows in two facts: B has a smaller
//! stamp (it was entered before A) and returns after A. Reading records backward, B comes first. So A is
//! outermost exactly if no record of its routine read so far, and no pending activation of it, has a smaller
//! stamp: one minimum per routine, and calls and returns keep no count of their own.
//!
//! # Alike activations first
//! Short routines return with the same size and costs again and again. A small direct-mapped cache counts
//! such repeats; the table is only touched when an entry is pushed out by another one.

use alloc::vec::Vec;

use crate::record::{Rare, Record};
use crate::table::{Alike, Table};
use crate::{Metric, Routine};

/// Entries of the cache of alike activations, 56 bytes each with one cost: measured best on records of sqlite3.
const CACHE: usize = 2048;

/// Adds the records of one thread to tables.
#[derive(Debug)]
pub struct Ingest<const N: usize> {
    metric: Metric,
    nesting: Nesting,
    cache: Vec<Alike<N>>,
    /// By the metric; by trms where both are computed.
    pub table: Table<N>,
    /// By rms, where both are computed.
    pub table_rms: Table<N>,
}

impl<const N: usize> Ingest<N> {
    /// With empty tables.
    pub fn new(metric: Metric) -> Ingest<N> {
        let empty = Alike { routine: 0, size: 0, cost: [0; N], cost_self: [0; N], calls: 0, outermost: 0 };
        Ingest {
            metric,
            nesting: Nesting::default(),
            cache: alloc::vec![empty; CACHE],
            table: Table::default(),
            table_rms: Table::default(),
        }
    }

    /// Adds a buffer of records, at whose end `height` activations are pending: see [`Nesting::begin`].
    pub fn add(&mut self, mut words: &[u64], height: usize, frame: impl Fn(usize) -> (u32, Routine)) {
        self.nesting.begin(height, frame);
        while let Some(record) = Record::<N>::read_last(&mut words) {
            let outermost = self.nesting.is_outermost(record.routine, record.stamp);
            match record.rare {
                None => self.count(&record, outermost),
                Some(rare) => self.add_rare(&record, rare, outermost),
            }
        }
    }

    /// Empties the cache into the tables. To be called before they are looked at.
    pub fn finish(&mut self) {
        for i in 0..CACHE {
            self.push_out(i);
        }
    }

    /// Forgets the stamps of pending activations: they are about to change.
    pub fn before_renumbering(&mut self) {
        self.nesting.forget();
    }

    #[inline]
    fn count(&mut self, record: &Record<N>, outermost: bool) {
        let mut mixed = u64::from(record.routine) << 32 ^ record.size;
        for cost in record.cost {
            mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ cost;
        }
        let at = (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % CACHE;
        let cached = &mut self.cache[at];
        let same = cached.routine == record.routine
            && cached.size == record.size
            && cached.cost == record.cost
            && cached.cost_self == record.cost_self;
        if !same {
            self.push_out(at);
            let Record { routine, size, cost, cost_self, .. } = *record;
            self.cache[at] = Alike { routine, size, cost, cost_self, calls: 0, outermost: 0 };
        }
        let cached = &mut self.cache[at];
        cached.calls += 1;
        cached.outermost += u64::from(outermost);
    }

    #[cold]
    fn add_rare(&mut self, record: &Record<N>, rare: Rare, outermost: bool) {
        let Record { routine, size, cost, cost_self, .. } = *record;
        let alike = Alike { routine, size, cost, cost_self, calls: 1, outermost: u64::from(outermost) };
        self.table.add(&alike);
        self.table.add_induced(routine, size, rare.induced, rare.induced_self);
        if self.metric == Metric::Both {
            self.table_rms.add(&Alike { size: rare.rms, ..alike });
        }
    }

    #[cold]
    fn push_out(&mut self, at: usize) {
        let alike = self.cache[at];
        if alike.calls > 0 {
            self.table.add(&alike);
            if self.metric == Metric::Both {
                self.table_rms.add(&alike);
            }
            self.cache[at].calls = 0;
        }
    }
}

/// Tells outermost activations from nested ones, for the records of one thread.
#[derive(Debug, Default)]
pub struct Nesting {
    routines: Vec<Lowest>,
    /// Routines whose `low` says more than `pending`, and room for more.
    touched: Vec<Routine>,
    /// How many they are.
    touches: usize,
    /// The pending activations at the end of the last batch: (stamp, routine).
    pending: Vec<(u32, Routine)>,
}

#[derive(Debug, Clone, Copy)]
struct Lowest {
    /// Smallest stamp among pending activations and the records of this batch that were read.
    low: u32,
    /// Smallest stamp among pending activations; [`NONE`] if none is pending.
    pending: u32,
}

/// No stamp is above it: an activation with the last stamp of all has no nested ones.
const NONE: u32 = u32::MAX;

impl Nesting {
    /// Begins a batch of records, at whose end `height` activations are pending; `frame` gives (stamp,
    /// routine) of each, root first. Only those entered since the last batch are asked for, and a few more.
    pub fn begin(&mut self, height: usize, frame: impl Fn(usize) -> (u32, Routine)) {
        for &routine in &self.touched[..self.touches] {
            let lowest = &mut self.routines[routine as usize];
            lowest.low = lowest.pending;
        }
        self.touches = 0;
        // An activation that is still pending is so with all below it: the unchanged ones are a prefix.
        let (mut same, mut end) = (0, height.min(self.pending.len()));
        while same < end {
            let middle = same + (end - same) / 2;
            if self.pending[middle] == frame(middle) {
                same = middle + 1;
            } else {
                end = middle;
            }
        }
        while self.pending.len() > same {
            if let Some((stamp, routine)) = self.pending.pop() {
                let lowest = self.routine(routine);
                if lowest.pending == stamp {
                    *lowest = Lowest { low: NONE, pending: NONE };
                }
            }
        }
        for index in same..height {
            let (stamp, routine) = frame(index);
            self.pending.push((stamp, routine));
            let lowest = self.routine(routine);
            if lowest.pending == NONE {
                *lowest = Lowest { low: stamp, pending: stamp };
            }
        }
    }

    /// Whether the record was an outermost activation. Records must come newest first.
    #[inline]
    pub fn is_outermost(&mut self, routine: Routine, stamp: u32) -> bool {
        let lowest = self.routine(routine);
        // The last stamp of all can be that of a record, hence not `low > stamp`.
        if lowest.low < stamp {
            return false;
        }
        let first = lowest.low == lowest.pending;
        lowest.low = stamp;
        // Noted in any case, and kept if it is the first time: no branch can tell which of many routines come again.
        if self.touches == self.touched.len() {
            self.make_room();
        }
        self.touched[self.touches] = routine;
        self.touches += usize::from(first);
        true
    }

    /// What [`Nesting::is_outermost`] looks at, if the routine is known: worth asking for ahead.
    #[inline]
    pub fn place(&self, routine: Routine) -> *const u8 {
        self.routines.as_ptr().wrapping_add(routine as usize).cast()
    }

    #[cold]
    fn make_room(&mut self) {
        self.touched.resize((2 * self.touches).max(1024), 0);
    }

    /// Forgets the pending activations: their stamps are about to change.
    pub fn forget(&mut self) {
        self.begin(0, |_| (0, 0));
    }

    #[inline]
    fn routine(&mut self, routine: Routine) -> &mut Lowest {
        let index = routine as usize;
        if index >= self.routines.len() {
            self.grow(index);
        }
        &mut self.routines[index]
    }

    #[cold]
    fn grow(&mut self, index: usize) {
        self.routines.resize(index + 1, Lowest { low: NONE, pending: NONE });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Induced;
    use std::collections::BTreeMap;

    /// A deterministic little program: recursive calls of three routines, records as they return.
    fn descend(
        state: &mut u32,
        depth: u32,
        counter: &mut u32,
        stack: &mut Vec<u32>,
        out: &mut Vec<(Record<1>, bool)>,
    ) {
        *state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345);
        let routine = *state >> 16 & 3;
        *counter += 1;
        let stamp = *counter;
        let outermost = !stack.contains(&routine);
        stack.push(routine);
        let callees = if depth == 0 { 0 } else { *state >> 20 & 3 };
        for _ in 0..callees {
            descend(state, depth - 1, counter, stack, out);
        }
        stack.pop();
        let rare = (*state >> 24 & 7 == 0).then(|| Rare {
            rms: u64::from(*state >> 28),
            induced: Induced { thread: 1, external: 2 },
            induced_self: Induced { thread: 1, external: 0 },
        });
        let size = u64::from(*state >> 26 & 15);
        out.push((Record { routine, stamp, size, cost: [size * 3 + 1], cost_self: [1], rare }, outermost));
    }

    #[test]
    fn tables_hold_what_the_records_say() {
        let (mut state, mut counter, mut out) = (1, 0, Vec::new());
        for _ in 0..200 {
            descend(&mut state, 7, &mut counter, &mut Vec::new(), &mut out);
        }
        assert!(out.len() > 1000);
        let mut ingest = Ingest::<1>::new(Metric::Both);
        // At the end of each batch the activations that return later and were entered before are pending.
        for (number, batch) in out.chunks(37).enumerate() {
            let mut words = Vec::new();
            batch.iter().for_each(|(record, _)| record.write(&mut words));
            let later = &out[out.len().min((number + 1) * 37)..];
            let last = batch.iter().map(|(record, _)| record.stamp).max().unwrap();
            let mut pending: Vec<(u32, Routine)> = later
                .iter()
                .map(|(record, _)| (record.stamp, record.routine))
                .filter(|&(stamp, _)| stamp < last)
                .collect();
            pending.sort_unstable();
            ingest.add(&words, pending.len(), |index| pending[index]);
        }
        ingest.finish();
        let mut expected: BTreeMap<(bool, Routine, u64), (u64, u64, u64)> = BTreeMap::new();
        for (record, outermost) in &out {
            let rms = record.rare.map_or(record.size, |rare| rare.rms);
            for (by_rms, size) in [(false, record.size), (true, rms)] {
                let point = expected.entry((by_rms, record.routine, size)).or_default();
                point.0 += 1;
                point.1 += if *outermost { record.cost[0] } else { 0 };
                point.2 += u64::from(record.rare.is_some() && !by_rms);
            }
        }
        let mut found = BTreeMap::new();
        for (by_rms, table) in [(false, &ingest.table), (true, &ingest.table_rms)] {
            for routine in table.routines() {
                for point in table.points(routine) {
                    let value = (point.calls, point.costs[0].real_sum, point.induced.thread);
                    found.insert((by_rms, routine, point.n), value);
                }
            }
        }
        assert_eq!(found, expected);
    }
}
