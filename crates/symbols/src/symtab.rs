//! Symbols that name code, from the symbol tables of one image, and which of several names to prefer.
//!
//! `.symtab` has everything, `.dynsym` what the object exports or imports; a stripped object has the latter
//! only. An address often has several names (`__write`, `write`, `__GI___write`): [`Rank`] orders them.

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{SectionHeader, Sym};

use crate::address::AddrRange;
use crate::elf::Image;

/// One candidate name for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Symbol<'a> {
    pub(crate) start: u64,
    pub(crate) rank: std::cmp::Reverse<Rank>,
    pub(crate) name: &'a [u8],
    pub(crate) size: u64,
}

/// How good a name is, best last. In order: a declared function beats a bare label; an exported name (global
/// or weak alike: `write` is weak, `__write` global) beats a local one; fewer leading underscores beat more;
/// unversioned beats versioned; a known size beats none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub(crate) function: bool,
    exported: bool,
    underscores_fewer: u8,
    unversioned: bool,
    sized: bool,
}

/// Adds the code symbols of both tables; `bias` is added to addresses (for the debug file of a prelinked
/// object). Problems are reported, not fatal.
pub(crate) fn collect<'a>(
    image: &Image<'a>,
    bias: u64,
    code: &[AddrRange],
    out: &mut Vec<Symbol<'a>>,
    problems: &mut Vec<String>,
) {
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
        for symbol in table.iter() {
            let function = match symbol.st_type() {
                elf::STT_FUNC | elf::STT_GNU_IFUNC => true,
                elf::STT_NOTYPE => false,
                _ => continue,
            };
            if symbol.is_undefined(LE) || symbol.is_absolute(LE) {
                continue;
            }
            let start = symbol.st_value(LE).wrapping_add(bias);
            let Some(name) = symbol.name(LE, table.strings()).ok().filter(|n| !n.is_empty()) else {
                continue;
            };
            if !in_code(code, start) || !function && (name.starts_with(b".L") || name.starts_with(b"$")) {
                continue;
            }
            let underscores = name.iter().take_while(|b| **b == b'_').count().min(255) as u8;
            let rank = Rank {
                function,
                exported: !symbol.is_local(),
                underscores_fewer: 255 - underscores,
                unversioned: !name.contains(&b'@'),
                sized: symbol.st_size(LE) > 0,
            };
            out.push(Symbol { start, rank: std::cmp::Reverse(rank), name, size: symbol.st_size(LE) });
        }
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
