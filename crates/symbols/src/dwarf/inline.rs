//! The functions of one unit and what was inlined into each.
//!
//! The first pass over a unit finds its functions with code. Only when an address falls into one is the
//! function's subtree read, and its inlined calls become disjoint pieces, each with its innermost call:
//! ```text
//!   calls, by depth        0: [----a----]        1:    [-b-]
//!   pieces                    [a][-b-][a]           chain of b: a, b (by parent)
//! ```
//! Pieces are painted outermost first, so an inner range overrides where it lies, and boundaries are exact.
//!
//! Subtrees are walked with an explicit stack: nesting depth comes from the file, and recursion on it would
//! overflow ours.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use gimli::{AttributeValue, DebugInfoOffset, Dwarf, Unit, UnitOffset, constants as dw};

use super::{Code, Slice};
use crate::ranges::RangeIndex;

/// A debug entry, as attributes refer to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Ref {
    /// In the same unit.
    Unit(UnitOffset),
    /// Anywhere in `.debug_info`.
    Info(DebugInfoOffset),
    /// In the file that dwz made.
    Supplement(DebugInfoOffset),
}

impl Ref {
    pub(crate) fn from_value(value: AttributeValue<Slice<'_>>) -> Option<Ref> {
        match value {
            AttributeValue::UnitRef(offset) => Some(Ref::Unit(offset)),
            AttributeValue::DebugInfoRef(offset) => Some(Ref::Info(offset)),
            AttributeValue::DebugInfoRefSup(offset) => Some(Ref::Supplement(offset)),
            _ => None,
        }
    }
}

pub(crate) struct Functions {
    index: RangeIndex<u32>,
    list: Vec<Function>,
}

pub(crate) struct Function {
    pub(crate) entry: UnitOffset,
    inlines: OnceLock<Inlines>,
}

#[derive(Default)]
pub(crate) struct Inlines {
    calls: Vec<InlinedCall>,
    /// Start of each piece and its innermost call; a piece ends where the next one starts.
    pieces: Vec<(u64, Option<u32>)>,
}

pub(crate) struct InlinedCall {
    pub(crate) origin: Ref,
    parent: Option<u32>,
    pub(crate) file: u64,
    /// 0: not known.
    pub(crate) line: u32,
    /// 0: not known.
    pub(crate) column: u32,
}

impl Functions {
    pub(crate) fn none() -> Functions {
        Functions { index: RangeIndex::new([]), list: Vec::new() }
    }

    pub(crate) fn parse(
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        code: &Code,
    ) -> (Functions, Option<gimli::Error>) {
        let (mut list, mut ranges) = (Vec::new(), Vec::new());
        let error = scan(dwarf, unit, code, &mut list, &mut ranges).err();
        (Functions { index: RangeIndex::new(ranges), list }, error)
    }

    /// The function that holds an address, with the bounds of the range that does.
    pub(crate) fn at(&self, addr: u64) -> Option<(u64, u64, &Function)> {
        let (start, end, i) = self.index.at(addr).next()?;
        Some((start, end, self.list.get(*i as usize)?))
    }

    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64, &Function)> {
        self.index.within(start, end).filter_map(|(s, e, i)| Some((s, e, self.list.get(*i as usize)?)))
    }
}

impl Function {
    /// What was inlined; after a damaged entry, what came before it.
    pub(crate) fn inlines(&self, dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>) -> &Inlines {
        self.inlines.get_or_init(|| {
            let (mut calls, mut ranges) = (Vec::new(), Vec::new());
            // An error ends the walk; the calls found so far are whole.
            let _ = walk(dwarf, unit, self.entry, &mut calls, &mut ranges);
            let pieces = paint(ranges);
            Inlines { calls, pieces }
        })
    }
}

impl Inlines {
    /// The calls that an address is in, outermost first.
    pub(crate) fn at(&self, addr: u64) -> Vec<&InlinedCall> {
        let after = self.pieces.partition_point(|(start, _)| *start <= addr);
        let innermost = self.pieces[..after].last().and_then(|(_, call)| *call);
        let call = |i: u32| self.calls.get(i as usize);
        // A parent comes before its children in `calls`, so chains end.
        let mut chain: Vec<_> =
            std::iter::successors(innermost.and_then(call), |c| c.parent.and_then(call)).collect();
        chain.reverse();
        chain
    }

    /// Where the innermost call changes within `start..end`.
    pub(crate) fn boundaries(&self, start: u64, end: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self.pieces.partition_point(|(s, _)| *s < start);
        self.pieces[first..].iter().map(|(s, _)| *s).take_while(move |s| *s < end)
    }
}

fn scan(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    code: &Code,
    list: &mut Vec<Function>,
    ranges: &mut Vec<(u64, u64, u32)>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let offset = entries.next_offset();
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        if abbreviation.tag() != dw::DW_TAG_subprogram {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut bounds = Bounds::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            bounds.note(attribute.name(), attribute.value());
        }
        let before = ranges.len();
        bounds.each(dwarf, unit, |start, end| {
            if code.holds(start) {
                ranges.push((start, end, list.len() as u32));
            }
        });
        if ranges.len() > before {
            list.push(Function { entry: offset, inlines: OnceLock::new() });
        }
    }
    Ok(())
}

/// Range, depth and call.
type Painted = (u64, u64, u32, u32);

fn walk(
    dwarf: &Dwarf<Slice<'_>>,
    unit: &Unit<Slice<'_>>,
    function: UnitOffset,
    calls: &mut Vec<InlinedCall>,
    ranges: &mut Vec<Painted>,
) -> gimli::Result<()> {
    let mut entries = unit.entries_raw(Some(function))?;
    let top = entries.next_depth();
    let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(()) };
    entries.skip_attributes(abbreviation.attributes())?;
    // Depth in the file and number of each inlined call around the current entry.
    let mut around: Vec<(isize, u32)> = Vec::new();
    // Depth of a nested function: its subtree is its own.
    let mut foreign: Option<isize> = None;
    while !entries.is_empty() && entries.next_depth() > top {
        let (offset, depth) = (entries.next_offset(), entries.next_depth());
        let Some(abbreviation) = entries.read_abbreviation()? else { continue };
        // At every entry, not only at calls: a lexical block after a call may hold the next one, deeper in
        // the file but not inside the first.
        while around.last().is_some_and(|(d, _)| *d >= depth) {
            around.pop();
        }
        if foreign.is_some_and(|f| depth <= f) {
            foreign = None;
        }
        if foreign.is_none() && abbreviation.tag() == dw::DW_TAG_subprogram {
            foreign = Some(depth);
        }
        if foreign.is_some() || abbreviation.tag() != dw::DW_TAG_inlined_subroutine {
            entries.skip_attributes(abbreviation.attributes())?;
            continue;
        }
        let mut call = InlinedCall {
            origin: Ref::Unit(offset),
            parent: around.last().map(|(_, call)| *call),
            file: 0,
            line: 0,
            column: 0,
        };
        let mut bounds = Bounds::default();
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            let small = || attribute.udata_value().and_then(|v| u32::try_from(v).ok()).unwrap_or(0);
            match attribute.name() {
                dw::DW_AT_abstract_origin => {
                    call.origin = Ref::from_value(attribute.value()).unwrap_or(call.origin);
                }
                dw::DW_AT_call_file => {
                    call.file = match attribute.value() {
                        AttributeValue::FileIndex(index) => index,
                        _ => u64::from(small()),
                    };
                }
                dw::DW_AT_call_line => call.line = small(),
                dw::DW_AT_call_column => call.column = small(),
                name => bounds.note(name, attribute.value()),
            }
        }
        let number = calls.len() as u32;
        bounds.each(dwarf, unit, |start, end| ranges.push((start, end, around.len() as u32, number)));
        around.push((depth, number));
        calls.push(call);
    }
    Ok(())
}

fn paint(mut ranges: Vec<Painted>) -> Vec<(u64, Option<u32>)> {
    ranges.sort_by_key(|(_, _, depth, _)| *depth);
    let mut pieces: BTreeMap<u64, Option<u32>> = BTreeMap::new();
    for (start, end, _, call) in ranges {
        let after = pieces.range(..=end).next_back().and_then(|(_, call)| *call);
        let covered: Vec<u64> = pieces.range(start..end).map(|(s, _)| *s).collect();
        for piece in covered {
            pieces.remove(&piece);
        }
        pieces.insert(start, Some(call));
        pieces.insert(end, after);
    }
    pieces.into_iter().collect()
}

/// The address attributes of an entry.
#[derive(Default)]
pub(super) struct Bounds<'a> {
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Bounds<'a> {
    pub(super) fn note(&mut self, name: gimli::DwAt, value: AttributeValue<Slice<'a>>) {
        match name {
            dw::DW_AT_low_pc => self.low = Some(value),
            dw::DW_AT_high_pc => self.high = Some(value),
            dw::DW_AT_ranges => self.ranges = Some(value),
            _ => {}
        }
    }

    pub(super) fn has_list(&self) -> bool {
        self.ranges.is_some()
    }

    /// Each range that is not empty, until the first that cannot be read.
    pub(super) fn each(
        &self,
        dwarf: &Dwarf<Slice<'a>>,
        unit: &Unit<Slice<'a>>,
        mut range: impl FnMut(u64, u64),
    ) {
        if let Some(list) = self.ranges {
            let Ok(Some(mut list)) = dwarf.attr_ranges(unit, list) else { return };
            while let Ok(Some(r)) = list.next() {
                if r.begin < r.end {
                    range(r.begin, r.end);
                }
            }
            return;
        }
        let address = |value| dwarf.attr_address(unit, value).ok().flatten();
        let Some(low) = self.low.and_then(address) else { return };
        let high = match self.high {
            Some(AttributeValue::Udata(size)) => low.wrapping_add(size),
            Some(value) => address(value).unwrap_or(low),
            None => low,
        };
        if low < high {
            range(low, high);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// The innermost call of every address is the deepest range that holds it, the later one of equals.
        #[test]
        fn painting_equals_a_scan(spec in prop::collection::vec((0u64..50, 1u64..20, 0u32..4), 0..20)) {
            let ranges: Vec<Painted> =
                spec.iter().enumerate().map(|(i, (s, l, d))| (*s, s + l, *d, i as u32)).collect();
            let pieces = paint(ranges.clone());
            for addr in 0..80 {
                let after = pieces.partition_point(|(s, _)| *s <= addr);
                let found = pieces[..after].last().and_then(|(_, call)| *call);
                let holding = ranges.iter().filter(|r| r.0 <= addr && addr < r.1);
                let want = holding.max_by_key(|r| (r.2, r.3)).map(|r| r.3);
                prop_assert_eq!(found, want, "at {}", addr);
            }
        }
    }
}
