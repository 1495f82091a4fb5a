//! Values on address ranges that may overlap, looked up by address.
//!
//! Ranges are sorted by start; each knows the range below it on the stack of ranges open at its start. A range
//! that holds an address also holds every start between its own and that address, so all ranges that hold the
//! address lie on the chain from the last start at or before it. Disjoint ranges cost one binary search.

#[derive(Debug)]
pub(crate) struct RangeIndex<T> {
    items: Vec<Item<T>>,
}

#[derive(Debug)]
struct Item<T> {
    start: u64,
    end: u64,
    outer: Option<u32>,
    value: T,
}

impl<T> RangeIndex<T> {
    /// Empty ranges are dropped. Of equal ranges the later one in `ranges` is found first.
    pub(crate) fn new(ranges: impl IntoIterator<Item = (u64, u64, T)>) -> Self {
        let mut items: Vec<Item<T>> = ranges
            .into_iter()
            .filter(|(start, end, _)| start < end)
            .map(|(start, end, value)| Item { start, end, outer: None, value })
            .collect();
        items.sort_by_key(|item| (item.start, std::cmp::Reverse(item.end)));
        let outer = outer(items.iter().map(|item| (item.start, item.end)));
        items.iter_mut().zip(outer).for_each(|(item, outer)| item.outer = outer);
        RangeIndex { items }
    }

    /// The values whose range holds the address, innermost (latest start) first.
    pub(crate) fn at(&self, addr: u64) -> impl Iterator<Item = (u64, u64, &T)> {
        let after = self.items.partition_point(|item| item.start <= addr);
        let first = self.items[..after].last();
        std::iter::successors(first, |item| item.outer.map(|o| &self.items[o as usize]))
            .filter(move |item| addr < item.end)
            .map(|item| (item.start, item.end, &item.value))
    }

    /// The values whose range has an address in `start..end`, by start.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, &T)> {
        let mut before: Vec<_> = self.at(start).filter(|(s, _, _)| *s < start).collect();
        before.reverse();
        let first = self.items.partition_point(|item| item.start < start);
        let inside = self.items[first..].iter().take_while(move |item| item.start < end);
        before.into_iter().chain(inside.map(|item| (item.start, item.end, &item.value)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64, &T)> {
        self.items.iter().map(|item| (item.start, item.end, &item.value))
    }
}

/// For each of some ranges, by start, the number of the one below it on the stack of ranges open at its start.
pub(crate) fn outer(ranges: impl Iterator<Item = (u64, u64)>) -> Vec<Option<u32>> {
    let mut open: Vec<(u64, u32)> = Vec::new();
    let below = ranges.zip(0..).map(|((start, end), i)| {
        while open.last().is_some_and(|(end, _)| *end <= start) {
            open.pop();
        }
        let below = open.last().map(|(_, i)| *i);
        open.push((end, i));
        below
    });
    below.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_scan_finds(
            ranges in prop::collection::vec((0u64..60, 0u64..20), 0..30),
            probe in 0u64..90,
            width in 1u64..30,
        ) {
            let ranges: Vec<_> = ranges.iter().enumerate().map(|(i, (s, l))| (*s, s + l, i)).collect();
            let index = RangeIndex::new(ranges.clone());
            let sorted = |mut v: Vec<usize>| { v.sort_unstable(); v };
            let found = sorted(index.at(probe).map(|(_, _, i)| *i).collect());
            let want = sorted(ranges.iter().filter(|r| r.0 <= probe && probe < r.1).map(|r| r.2).collect());
            prop_assert_eq!(found, want);
            let found = sorted(index.within(probe, probe + width).map(|(_, _, i)| *i).collect());
            let overlaps = |r: &&(u64, u64, usize)| r.0 < r.1 && r.0 < probe + width && probe < r.1;
            prop_assert_eq!(found, sorted(ranges.iter().filter(overlaps).map(|r| r.2).collect()));
            let starts: Vec<u64> = index.at(probe).map(|(s, _, _)| s).collect();
            prop_assert!(starts.is_sorted_by(|a, b| a >= b), "innermost first");
        }
    }
}
