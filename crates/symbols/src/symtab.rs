//! Symbols that name code, from the symbol tables of one image, and which of several names to prefer.
//!
//! `.symtab` has everything, `.dynsym` what the object exports or imports; a stripped object has the latter
//! only. An address often has several names (`__write`, `write`, `__GI___write`): [`Rank`] orders them.

use std::cmp::Reverse;

use object::LittleEndian as LE;
use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{SectionHeader, Sym, SymbolTable};

use crate::address::AddrRange;
use crate::elf::Image;

/// The symbols that name code, by address, the best of an address first.
#[derive(Default)]
pub(crate) struct Symbols<'a> {
    tables: Vec<SymbolTable<'a, FileHeader64<LE>>>,
    all: Vec<Symbol>,
}

/// One candidate name for one address. Libraries have tens of thousands and a run asks for a few of them, so what is
/// not needed for finding one stays in the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol {
    pub(crate) start: u64,
    place: u32,
    table: u8,
    rank: Rank,
}

/// How good a name is, best last. In order: a declared function beats a bare label; an exported name (global
/// or weak alike: `write` is weak, `__write` global) beats a local one; fewer leading underscores beat more;
/// unversioned beats versioned; a known size beats none.
///
/// Bits 11 to 0: function, exported, underscores (8, inverted), unversioned, sized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(u16);

impl Rank {
    const FUNCTION: u16 = 1 << 11;

    fn of(symbol: &Sym64<LE>, function: bool, name: &[u8]) -> Rank {
        let underscores = name.iter().take_while(|b| **b == b'_').count().min(255) as u16;
        // Names are short: looking at all of a name is faster than stopping in it.
        let versioned = name.iter().fold(false, |found, b| found | (*b == b'@'));
        let bit = |is: bool, place: u32| u16::from(is) << place;
        Rank(
            if function { Rank::FUNCTION } else { 0 }
                | bit(!symbol.is_local(), 10)
                | (255 - underscores) << 2
                | bit(!versioned, 1)
                | bit(symbol.st_size(LE) > 0, 0),
        )
    }
}

impl Symbol {
    /// Declared as one, not a bare label.
    pub(crate) fn is_function(&self) -> bool {
        self.rank.0 & Rank::FUNCTION != 0
    }
}

impl<'a> Symbols<'a> {
    /// The code symbols of both tables of each image, with what to add to addresses (for the debug file of a
    /// prelinked object). Problems are reported, not fatal.
    pub(crate) fn of<'i>(
        images: impl Iterator<Item = (&'i Image<'a>, u64)>,
        code: &[AddrRange],
        problems: &mut Vec<String>,
    ) -> Self
    where
        'a: 'i,
    {
        let mut symbols = Symbols::default();
        for (image, bias) in images {
            symbols.add(image, bias, code, problems);
        }
        symbols.put_in_order();
        symbols
    }

    fn add(&mut self, image: &Image<'a>, bias: u64, code: &[AddrRange], problems: &mut Vec<String>) {
        for kind in [elf::SHT_SYMTAB, elf::SHT_DYNSYM] {
            // A debug file keeps an empty (NOBITS) copy of sections that stay in the object: not a problem.
            let present = image.section_table().iter().any(|s| s.sh_type(LE) == kind);
            if !present {
                continue;
            }
            let table = match image.section_table().symbols(LE, image.data(), kind) {
                Ok(table) => table,
                Err(e) => {
                    problems.push(format!("symbol table unreadable: {e}"));
                    continue;
                }
            };
            let number = self.tables.len() as u8;
            self.all.reserve(table.len());
            for (symbol, place) in table.iter().zip(0..) {
                let function = match symbol.st_type() {
                    elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
                    elf::STT_NOTYPE => false,
                    _ => continue,
                };
                let start = symbol.st_value(LE).wrapping_add(bias);
                if symbol.is_undefined(LE) || symbol.is_absolute(LE) || !in_code(code, start) {
                    continue;
                }
                let Some(name) = symbol.name(LE, table.strings()).ok().filter(|n| !n.is_empty()) else {
                    continue;
                };
                if !function && (name.starts_with(b".L") || name.starts_with(b"$")) {
                    continue;
                }
                let rank = Rank::of(symbol, function, name);
                self.all.push(Symbol { start, place, table: number, rank });
            }
            self.tables.push(table);
        }
    }

    /// By address, then rank, name and size; without repetitions. Names are looked at where all else is the same:
    /// what a library exports stands in both tables.
    fn put_in_order(&mut self) {
        let mut all = std::mem::take(&mut self.all);
        all.sort_unstable_by_key(|symbol| (symbol.start, Reverse(symbol.rank)));
        let mut alike: Vec<(&[u8], u64, Symbol)> = Vec::new();
        let (mut from, mut kept) = (0, 0);
        while let Some(first) = all.get(from) {
            let key = (first.start, first.rank);
            let until = from + all[from..].iter().take_while(|s| (s.start, s.rank) == key).count();
            if until - from == 1 {
                all[kept] = all[from];
                kept += 1;
            } else {
                alike.clear();
                alike.extend(all[from..until].iter().map(|s| (self.name(s), self.size(s), *s)));
                alike.sort_unstable_by_key(|&(name, size, _)| (name, size));
                alike.dedup_by_key(|&mut (name, size, _)| (name, size));
                for (symbol, (.., found)) in all[kept..].iter_mut().zip(&alike) {
                    *symbol = *found;
                }
                kept += alike.len();
            }
            from = until;
        }
        all.truncate(kept);
        self.all = all;
    }

    pub(crate) fn name(&self, symbol: &Symbol) -> &'a [u8] {
        let strings = self.tables[symbol.table as usize].strings();
        self.in_file(symbol).name(LE, strings).unwrap_or_default()
    }

    pub(crate) fn size(&self, symbol: &Symbol) -> u64 {
        self.in_file(symbol).st_size(LE)
    }

    /// By its place in the order.
    pub(crate) fn get(&self, place: u32) -> &Symbol {
        &self.all[place as usize]
    }

    /// The symbols of each address, best first, and the place of the first one in the order.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (u32, &[Symbol])> {
        let mut next = 0;
        self.all.chunk_by(|a, b| a.start == b.start).map(move |group| {
            let first = next;
            next += group.len() as u32;
            (first, group)
        })
    }

    /// The names of an address, best first.
    pub(crate) fn at(&self, start: u64) -> impl Iterator<Item = &'a [u8]> + '_ {
        let first = self.all.partition_point(|s| s.start < start);
        self.all[first..].iter().take_while(move |s| s.start == start).map(|s| self.name(s))
    }

    fn in_file(&self, symbol: &Symbol) -> &'a Sym64<LE> {
        &self.tables[symbol.table as usize].symbols()[symbol.place as usize]
    }
}

/// Whether an address lies in one of the sorted ranges.
pub(crate) fn in_code(code: &[AddrRange], addr: u64) -> bool {
    code_around(code, addr).is_some()
}

/// The range of code that holds an address.
pub(crate) fn code_around(code: &[AddrRange], addr: u64) -> Option<AddrRange> {
    let after = code.partition_point(|range| range.start.0 <= addr);
    // Sections do not overlap in linked files; damaged ones may, and then lose a few symbols.
    let range = code[..after].last()?;
    (addr < range.end.0).then_some(*range)
}
