//! The functions of an object, from everything that knows of any: symbol tables, linkage stubs, unwind
//! tables. Made for two questions: which function holds an address, and where do functions start.
//!
//! Each start address becomes one entry. Symbols with a size keep it. Labels without a type count only where
//! no declared function and no unwind range holds them (loop labels in assembly are not functions). Unwind
//! ranges that no symbol starts become entries without a name, `object+0xaddress`. The cold part of a split
//! function belongs to the function: a lookup in it finds the whole, and it is not listed as an entry.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::address::{AddrRange, ObjectAddr};
use crate::elf::Image;
use crate::name::cold_part_of;
use crate::plt::{self, Stub, Target};
use crate::ranges;
use crate::symtab::{self, Symbols};
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

/// Small, because compilers have tens of thousands of functions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) start: u64,
    pub(crate) end: u64,
    known: Known,
}

/// How an entry is known, and by which symbol or stub of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Symbol(u32),
    Stub(u32),
    Unwind,
    EntryPoint,
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
    entries: Vec<Entry>,
    /// For each entry the one below it on the stack of those open at its start, as in [`ranges`].
    outer: Vec<Option<u32>>,
    symbols: Symbols<'a>,
    stubs: Vec<Stub<'a>>,
    /// The functions of which entries are the cold parts; found when the first is asked for.
    wholes: OnceLock<HashMap<u32, u32>>,
}

impl<'a> FunctionTable<'a> {
    /// From the object itself and further sources of symbols, with what to add to their addresses.
    pub(crate) fn build(own: &Image<'a>, others: &[(&Image<'a>, u64)], problems: &mut Vec<String>) -> Self {
        let code = own.code();
        let images = std::iter::once((own, 0)).chain(others.iter().copied());
        let symbols = Symbols::of(images, &code, problems);
        let unwind = unwind::ranges(own, problems);
        let mut stubs = plt::stubs(own);
        stubs.sort_by_key(|stub| stub.start);

        let mut entries = named(&symbols, &unwind, &code);
        add_stubs(&mut entries, &stubs);
        add_unnamed(&mut entries, &unwind, &code);
        let entry = own.entry().0;
        // A label without a size has no end yet.
        let known = |e: &Entry| e.start == entry || e.start <= entry && entry < e.end;
        if symtab::in_code(&code, entry) && !entries.iter().any(known) {
            entries.push(Entry { start: entry, end: 0, known: Known::EntryPoint });
        }
        entries.sort_by_key(|e| e.start);
        close_open_ends(&mut entries, &code);
        let outer = ranges::outer(entries.iter().map(|e| (e.start, e.end)));
        FunctionTable { entries, outer, symbols, stubs, wholes: OnceLock::new() }
    }

    /// The function that holds an address; a cold part's whole.
    pub(crate) fn at(&self, addr: u64) -> Option<&Entry> {
        let mut i = self.entries.partition_point(|e| e.start <= addr).checked_sub(1)?;
        while self.entries[i].end <= addr {
            i = self.outer[i]? as usize;
        }
        if self.cold_part_of(&self.entries[i]).is_some()
            && let Some(whole) = self.wholes().get(&(i as u32))
        {
            i = *whole as usize;
        }
        Some(&self.entries[i])
    }

    /// Everything that can be entered, by address.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        let wholes = self.wholes();
        self.entries.iter().zip(0..).filter(|(_, i)| !wholes.contains_key(i)).map(|(e, _)| e)
    }

    /// What an entry is called.
    pub(crate) fn label(&self, entry: &Entry) -> Label<'a> {
        match entry.known {
            Known::Symbol(place) => Label::Symbol(self.symbols.name(self.symbols.get(place))),
            Known::Stub(place) => match self.stubs[place as usize].target {
                Target::Symbol(name) => Label::Stub(name),
                Target::Resolver(at) => Label::StubOf(at),
            },
            Known::Unwind | Known::EntryPoint => Label::None,
        }
    }

    /// All symbols at an address, best first.
    pub(crate) fn aliases(&self, start: u64) -> impl Iterator<Item = &'a [u8]> + '_ {
        self.symbols.at(start)
    }

    /// The name of the function of which an entry is the cold part.
    fn cold_part_of(&self, entry: &Entry) -> Option<&'a [u8]> {
        let Label::Symbol(name) = self.label(entry) else { return None };
        Some(cold_part_of(std::str::from_utf8(name).ok()?)?.as_bytes())
    }

    /// A cold part belongs to the function of that name if there is exactly one (static functions of several
    /// files may share it; then the part stays on its own).
    fn wholes(&self) -> &HashMap<u32, u32> {
        self.wholes.get_or_init(|| {
            let entries = || self.entries.iter().zip(0..);
            let cold: Vec<(u32, &[u8])> =
                entries().filter_map(|(e, i)| Some((i, self.cold_part_of(e)?))).collect();
            if cold.is_empty() {
                return HashMap::new();
            }
            let mut by_name: HashMap<&[u8], Option<u32>> = HashMap::new();
            for (entry, i) in entries() {
                if let Label::Symbol(name) = self.label(entry) {
                    by_name.entry(name).and_modify(|e| *e = None).or_insert(Some(i));
                }
            }
            cold.into_iter().filter_map(|(i, name)| Some((i, (*by_name.get(name)?)?))).collect()
        })
    }
}

impl Entry {
    /// Its bounds as addresses.
    pub(crate) fn range(&self) -> AddrRange {
        AddrRange { start: ObjectAddr(self.start), end: ObjectAddr(self.end) }
    }

    pub(crate) fn origin(&self) -> Origin {
        match self.known {
            Known::Symbol(_) => Origin::Symbol,
            Known::Stub(_) => Origin::Stub,
            Known::Unwind => Origin::Unwind,
            Known::EntryPoint => Origin::EntryPoint,
        }
    }
}

/// Entries for the best symbol at each address. `end == 0` means not known yet.
fn named(symbols: &Symbols<'_>, unwind: &[(u64, u64)], code: &[AddrRange]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    // End of the furthest-reaching declared function so far.
    let mut declared_end = 0;
    // How many unwind ranges start at or before the address.
    let mut begun = 0;
    for (place, group) in symbols.groups() {
        let best = &group[0];
        let start = best.start;
        let limit = symtab::code_around(code, start).map_or(start, |c| c.end.0);
        begun += unwind[begun..].iter().take_while(|(s, _)| *s <= start).count();
        let fde = unwind[..begun].last().copied().filter(|(_, end)| start < *end);
        if !best.is_function() && (start < declared_end || fde.is_some_and(|(s, _)| s != start)) {
            continue;
        }
        let size = match symbols.size(best) {
            0 => group.iter().map(|s| symbols.size(s)).max().unwrap_or(0),
            size => size,
        };
        let end = match fde {
            _ if size > 0 => start.saturating_add(size).min(limit),
            Some((s, e)) if s == start => e,
            _ => 0,
        };
        if best.is_function() {
            declared_end = declared_end.max(end);
        }
        entries.push(Entry { start, end, known: Known::Symbol(place) });
    }
    entries
}

/// Goes through entries by start, for addresses that only grow.
struct Sweep<'e> {
    entries: &'e [Entry],
    /// How many start before the address.
    before: usize,
    /// The largest end of those.
    reach: u64,
}

impl<'e> Sweep<'e> {
    fn new(entries: &'e [Entry]) -> Self {
        Sweep { entries, before: 0, reach: 0 }
    }

    /// The first entry that starts at or after the address.
    fn next(&mut self, addr: u64) -> Option<&'e Entry> {
        for entry in self.entries[self.before..].iter().take_while(|e| e.start < addr) {
            self.reach = self.reach.max(entry.end);
            self.before += 1;
        }
        self.entries.get(self.before)
    }

    /// Whether the address is a start or inside of an entry.
    fn covers(&mut self, addr: u64) -> bool {
        self.next(addr).is_some_and(|e| e.start == addr) || addr < self.reach
    }
}

/// `stubs` by start.
fn add_stubs(entries: &mut Vec<Entry>, stubs: &[Stub<'_>]) {
    let mut sweep = Sweep::new(entries);
    let found = stubs.iter().zip(0..).filter(|(stub, _)| !sweep.covers(stub.start));
    let added: Vec<Entry> = found
        .map(|(stub, place)| Entry {
            start: stub.start,
            end: stub.start.saturating_add(stub.size),
            known: Known::Stub(place),
        })
        .collect();
    if !added.is_empty() {
        entries.extend(added);
        entries.sort_by_key(|e| e.start);
        entries.dedup_by_key(|e| e.start);
    }
}

/// `unwind` by start. What is added stands at the end of `entries`.
fn add_unnamed(entries: &mut Vec<Entry>, unwind: &[(u64, u64)], code: &[AddrRange]) {
    let mut sweep = Sweep::new(entries);
    let mut added = Vec::new();
    for &(start, end) in unwind {
        // GNU ld describes a whole `.plt` by one range: it starts at the header, before the first stub.
        let next = sweep.next(start);
        let holds_stub = next.is_some_and(|e| e.start < end && matches!(e.known, Known::Stub(_)));
        if !holds_stub && !sweep.covers(start) && symtab::in_code(code, start) {
            added.push(Entry { start, end, known: Known::Unwind });
        }
    }
    entries.extend(added);
}

/// Gives entries without a known end everything up to the next one, within their section.
fn close_open_ends(entries: &mut [Entry], code: &[AddrRange]) {
    let mut next = u64::MAX;
    for entry in entries.iter_mut().rev() {
        if entry.end <= entry.start {
            let limit = symtab::code_around(code, entry.start).map_or(entry.start, |c| c.end.0);
            entry.end = next.min(limit).max(entry.start.saturating_add(1));
        }
        next = entry.start;
    }
}
