//! The functions of an object, from everything that knows of any: symbol tables, linkage stubs, unwind
//! tables. Made for two questions: which function holds an address, and where do functions start.
//!
//! Each start address becomes one entry. Symbols with a size keep it. Labels without a type count only where
//! no declared function and no unwind range holds them (loop labels in assembly are not functions). Unwind
//! ranges that no symbol starts become entries without a name, `object+0xaddress`. The cold part of a split
//! function belongs to the function: a lookup in it finds the whole, and it is not listed as an entry.

use std::collections::HashMap;

use crate::address::{AddrRange, ObjectAddr};
use crate::elf::Image;
use crate::name::cold_part_of;
use crate::plt::{self, Stub, Target};
use crate::ranges::RangeIndex;
use crate::symtab::{self, Symbol};
use crate::unwind;

/// Where the knowledge of a function came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A symbol.
    Symbol,
    /// A linkage stub; its name is the callee's with `@plt` appended.
    Stub,
    /// An unwind table entry without a symbol.
    Unwind,
    /// The address at which the program starts, without a symbol.
    EntryPoint,
}

#[derive(Debug, Clone)]
pub(crate) struct Entry<'a> {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) name: Label<'a>,
    pub(crate) origin: Origin,
    /// The function of which this is the cold part.
    pub(crate) whole: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label<'a> {
    None,
    Symbol(&'a [u8]),
    Stub(&'a [u8]),
    /// Stub of a function picked at start-up by the resolver at this address.
    StubOf(u64),
}

pub(crate) struct FunctionTable<'a> {
    /// By start, no two the same.
    entries: Vec<Entry<'a>>,
    index: RangeIndex<u32>,
    symbols: Vec<Symbol<'a>>,
}

impl<'a> FunctionTable<'a> {
    /// From the object itself and further sources of symbols, with what to add to their addresses.
    pub(crate) fn build(own: &Image<'a>, others: &[(&Image<'a>, u64)], problems: &mut Vec<String>) -> Self {
        let code = own.code();
        let mut symbols = Vec::new();
        for (image, bias) in [(own, 0)].iter().chain(others) {
            symtab::collect(image, *bias, &code, &mut symbols, problems);
        }
        symbols.sort_unstable();
        symbols.dedup();
        let unwind = unwind::ranges(own, problems);
        let stubs = plt::stubs(own);

        let mut entries = named(&symbols, &unwind, &code);
        let mut starts = StartSet::new(&entries);
        add_stubs(&mut entries, &mut starts, &stubs);
        add_unnamed(&mut entries, &starts, &unwind, &code);
        let entry = own.entry().0;
        if symtab::in_code(&code, entry) && !entries.iter().any(|e| e.start <= entry && entry < e.end) {
            entries.push(Entry::new(entry, 0, Label::None, Origin::EntryPoint));
        }
        entries.sort_by_key(|e| e.start);
        close_open_ends(&mut entries, &code);
        link_cold_parts(&mut entries);
        let index = RangeIndex::new(entries.iter().zip(0..).map(|(e, i)| (e.start, e.end, i)));
        FunctionTable { entries, index, symbols }
    }

    /// The function that holds an address; a cold part's whole.
    pub(crate) fn at(&self, addr: u64) -> Option<&Entry<'a>> {
        let (_, _, i) = self.index.at(addr).next()?;
        let entry = &self.entries[*i as usize];
        Some(entry.whole.map_or(entry, |w| &self.entries[w as usize]))
    }

    /// Everything that can be entered, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.entries.iter().filter(|e| e.whole.is_none())
    }

    /// All symbols at an address, best first.
    pub(crate) fn aliases(&self, start: u64) -> impl Iterator<Item = &'a [u8]> + '_ {
        let first = self.symbols.partition_point(|s| s.start < start);
        self.symbols[first..].iter().take_while(move |s| s.start == start).map(|s| s.name)
    }
}

impl<'a> Entry<'a> {
    fn new(start: u64, end: u64, name: Label<'a>, origin: Origin) -> Self {
        Entry { start, end, name, origin, whole: None }
    }
}

/// Entries for the best symbol at each address. `end == 0` means not known yet.
fn named<'a>(symbols: &[Symbol<'a>], unwind: &[(u64, u64)], code: &[AddrRange]) -> Vec<Entry<'a>> {
    let mut entries: Vec<Entry<'a>> = Vec::new();
    // End of the furthest-reaching declared function so far.
    let mut declared_end = 0;
    for group in symbols.chunk_by(|a, b| a.start == b.start) {
        let best = &group[0];
        let start = best.start;
        let limit = symtab::code_around(code, start).map_or(start, |c| c.end.0);
        let fde = unwind_around(unwind, start);
        if !best.rank.0.function && (start < declared_end || fde.is_some_and(|(s, _)| s != start)) {
            continue;
        }
        let size = if best.size > 0 { best.size } else { group.iter().map(|s| s.size).max().unwrap_or(0) };
        let end = match fde {
            _ if size > 0 => start.saturating_add(size).min(limit),
            Some((s, e)) if s == start => e,
            _ => 0,
        };
        if best.rank.0.function {
            declared_end = declared_end.max(end);
        }
        entries.push(Entry::new(start, end, Label::Symbol(best.name), Origin::Symbol));
    }
    entries
}

/// Answers "is this address a start, or inside a declared function" while entries are still being added.
struct StartSet {
    starts: Vec<u64>,
    /// Largest end among the entries up to and including this one.
    reach: Vec<u64>,
}

impl StartSet {
    fn new(entries: &[Entry<'_>]) -> Self {
        let mut furthest = 0;
        let reach = entries.iter().map(|e| {
            furthest = furthest.max(e.end);
            furthest
        });
        StartSet { reach: reach.collect(), starts: entries.iter().map(|e| e.start).collect() }
    }

    fn covers(&self, addr: u64) -> bool {
        let after = self.starts.partition_point(|s| *s <= addr);
        after > 0 && (self.starts[after - 1] == addr || addr < self.reach[after - 1])
    }
}

fn add_stubs<'a>(entries: &mut Vec<Entry<'a>>, starts: &mut StartSet, stubs: &[Stub<'a>]) {
    let known = entries.len();
    for stub in stubs {
        if starts.covers(stub.start) {
            continue;
        }
        let name = match stub.target {
            Target::Symbol(name) => Label::Stub(name),
            Target::Resolver(at) => Label::StubOf(at),
        };
        entries.push(Entry::new(stub.start, stub.start.saturating_add(stub.size), name, Origin::Stub));
    }
    if entries.len() > known {
        entries.sort_by_key(|e| e.start);
        entries.dedup_by_key(|e| e.start);
        *starts = StartSet::new(entries);
    }
}

fn add_unnamed(entries: &mut Vec<Entry<'_>>, starts: &StartSet, unwind: &[(u64, u64)], code: &[AddrRange]) {
    for (start, end) in unwind {
        // GNU ld describes a whole `.plt` by one range: it starts at the header, before the first stub.
        let after = starts.starts.partition_point(|s| s < start);
        let holds_stub = starts
            .starts
            .get(after)
            .is_some_and(|s| s < end && entries.get(after).is_some_and(|e| e.origin == Origin::Stub));
        if !holds_stub && !starts.covers(*start) && symtab::in_code(code, *start) {
            entries.push(Entry::new(*start, *end, Label::None, Origin::Unwind));
        }
    }
}

/// Gives entries without a known end everything up to the next one, within their section.
fn close_open_ends(entries: &mut [Entry<'_>], code: &[AddrRange]) {
    let mut next = u64::MAX;
    for entry in entries.iter_mut().rev() {
        if entry.end <= entry.start {
            let limit = symtab::code_around(code, entry.start).map_or(entry.start, |c| c.end.0);
            entry.end = next.min(limit).max(entry.start.saturating_add(1));
        }
        next = entry.start;
    }
}

/// A cold part belongs to the function of that name if there is exactly one (static functions of several
/// files may share it; then the part stays on its own).
fn link_cold_parts(entries: &mut [Entry<'_>]) {
    let mut cold: Vec<(usize, String)> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        if let Label::Symbol(name) = entry.name
            && let Ok(name) = std::str::from_utf8(name)
            && let Some(whole) = cold_part_of(name)
        {
            cold.push((i, whole.to_owned()));
        }
    }
    if cold.is_empty() {
        return;
    }
    let mut by_name: HashMap<&[u8], Option<u32>> = HashMap::new();
    for (i, entry) in entries.iter().enumerate() {
        if let Label::Symbol(name) = entry.name {
            by_name.entry(name).and_modify(|e| *e = None).or_insert(Some(i as u32));
        }
    }
    let wholes: Vec<_> =
        cold.iter().map(|(i, name)| (*i, by_name.get(name.as_bytes()).copied().flatten())).collect();
    for (i, whole) in wholes {
        entries[i].whole = whole;
    }
}

fn unwind_around(unwind: &[(u64, u64)], addr: u64) -> Option<(u64, u64)> {
    let after = unwind.partition_point(|(start, _)| *start <= addr);
    unwind[..after].last().copied().filter(|(_, end)| addr < *end)
}

/// Bounds of an entry as addresses.
impl Entry<'_> {
    pub(crate) fn range(&self) -> AddrRange {
        AddrRange { start: ObjectAddr(self.start), end: ObjectAddr(self.end) }
    }
}
