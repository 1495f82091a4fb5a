//! Names for procedure linkage stubs: `puts@plt`.
//!
//! Stubs have no symbols. What a stub is for is read from its code: a jump through a slot of the global
//! offset table, `ff 25 disp32` = `jmp *[rip + disp]`, and the dynamic relocation of that slot names the
//! function. The layouts of GNU ld, gold, lld and mold differ in headers, sizes and padding, but all jump this
//! way, so the jump is what is looked for. With IBT, GNU ld's lazy stubs instead push a relocation's index,
//! `f3 0f 1e fa 68 imm32`.

use std::collections::HashMap;

use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{Rela, SectionHeader, Sym};

use crate::elf::Image;

/// One stub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stub<'a> {
    pub(crate) start: u64,
    pub(crate) size: u64,
    pub(crate) target: Target<'a>,
}

/// What the stub jumps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target<'a> {
    /// A dynamic symbol.
    Symbol(&'a [u8]),
    /// What the resolver at this address picks (static programs).
    Resolver(u64),
}

const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

pub(crate) fn stubs<'a>(image: &Image<'a>) -> Vec<Stub<'a>> {
    let (slots, lazy) = relocations(image);
    if slots.is_empty() {
        return Vec::new();
    }
    let mut stubs = Vec::new();
    for (name, section) in image.sections() {
        if !matches!(name, b".plt" | b".plt.sec" | b".plt.got" | b".plt.bnd" | b".iplt") {
            continue;
        }
        let Ok(code) = section.data(LE, image.data()) else { continue };
        let base = section.sh_addr(LE);
        let entry_bytes = match section.sh_entsize(LE) {
            size @ (8 | 16 | 32) => size,
            _ if name == b".plt.got" => 8,
            _ => 16,
        };
        let mut add = |at: u64, target: Target<'a>| {
            let start = base.wrapping_add(at - at % entry_bytes);
            if stubs.last().is_none_or(|s: &Stub<'_>| s.start != start) {
                stubs.push(Stub { start, size: entry_bytes, target });
            }
        };
        for at in 0..code.len().saturating_sub(5) {
            let operand = |from: usize| code.get(from..from + 4).and_then(|b| b.try_into().ok());
            if code[at..].starts_with(&[0xff, 0x25]) {
                let Some(disp) = operand(at + 2).map(i32::from_le_bytes) else { continue };
                let next = base.wrapping_add(at as u64 + 6);
                if let Some(target) = slots.get(&next.wrapping_add_signed(disp.into())) {
                    add(at as u64, *target);
                }
            } else if at % 16 == 0 && code[at..].starts_with(&ENDBR64) && code.get(at + 4) == Some(&0x68) {
                let index = operand(at + 5).map(u32::from_le_bytes);
                if let Some(target) = index.and_then(|i| lazy.get(i as usize)) {
                    add(at as u64, *target);
                }
            }
        }
    }
    stubs
}

/// Slot address to target, and the targets of `.rela.plt` by index.
fn relocations<'a>(image: &Image<'a>) -> (HashMap<u64, Target<'a>>, Vec<Target<'a>>) {
    let (mut slots, mut lazy) = (HashMap::new(), Vec::new());
    let symbols = image.section_table().symbols(LE, image.data(), elf::SHT_DYNSYM).unwrap_or_default();
    for (name, section) in image.sections() {
        let Ok(Some((relocations, _))) = section.rela(LE, image.data()) else { continue };
        for relocation in relocations {
            let target = match relocation.r_type(LE, false).0 {
                // R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT
                6 | 7 => relocation.symbol(LE, false).and_then(|index| {
                    let name = symbols.symbol(index).ok()?.name(LE, symbols.strings()).ok()?;
                    Some(Target::Symbol(name)).filter(|_| !name.is_empty())
                }),
                // R_X86_64_IRELATIVE
                37 => Some(Target::Resolver(relocation.r_addend(LE) as u64)),
                _ => None,
            };
            if let Some(target) = target {
                slots.insert(relocation.r_offset(LE), target);
            }
            if name == b".rela.plt" {
                lazy.push(target.unwrap_or(Target::Symbol(b"?")));
            }
        }
    }
    (slots, lazy)
}
