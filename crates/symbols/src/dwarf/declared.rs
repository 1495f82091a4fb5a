//! Name and place of declaration of a function, gathered along the references between debug entries.
//!
//! A concrete instance refers to its abstract instance, which refers to its declaration in a class, perhaps
//! in another unit (link-time optimization) or another file (dwz). Each may hold any part of the answer. The
//! first linker name on the way wins, else the first plain name.

use std::sync::Arc;

use gimli::{AttributeValue, Dwarf, Unit, constants as dw};

use super::inline::Ref;
use super::lines::file_path;
use super::{DebugInfo, Slice};
use crate::frames::Location;
use crate::name::Name;

/// References form short chains; a damaged file may tie them into a loop.
const HOPS_MAX: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) name: Option<Name>,
    pub(crate) place: Option<Location>,
}

impl<'a> DebugInfo<'a> {
    /// What is known of a function, starting at an entry of a unit (its split half if it has one).
    pub(crate) fn declared(&self, unit: usize, entry: Ref) -> Arc<Declared> {
        // Entries of other units are the same seen from any.
        let key = (if matches!(entry, Ref::Unit(_)) { unit } else { usize::MAX }, entry);
        if let Some(known) = self.declared.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return known.clone();
        }
        let found = Arc::new(self.follow(unit, entry));
        let mut cache = self.declared.write().unwrap_or_else(|e| e.into_inner());
        cache.entry(key).or_insert(found).clone()
    }

    fn follow(&self, unit: usize, entry: Ref) -> Declared {
        let skeleton = self.skeleton(unit);
        let Some((dwarf, unit)) = self.dwarf_and_unit(unit) else { return Declared::default() };
        let mut at = Some((dwarf, unit, entry));
        let (mut linkage, mut plain, mut file, mut line) = (None, None, None, None);
        for _ in 0..HOPS_MAX {
            let Some((dwarf, unit, entry)) = at.take() else { break };
            let Some((dwarf, unit, offset)) = self.place(dwarf, unit, entry) else { break };
            let Ok(entry) = unit.entry(offset) else { break };
            for attribute in entry.attrs() {
                let value = attribute.value();
                let text = || dwarf.attr_string(unit, value).ok();
                match attribute.name() {
                    dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name if linkage.is_none() => {
                        linkage = text();
                    }
                    dw::DW_AT_name if plain.is_none() => plain = text(),
                    dw::DW_AT_decl_file if file.is_none() => {
                        let index = match value {
                            AttributeValue::FileIndex(index) => Some(index),
                            _ => attribute.udata_value(),
                        };
                        // A split unit has no line table: it numbers files as its skeleton does.
                        let split = dwarf.file_type == gimli::DwarfFileType::Dwo;
                        let table = skeleton.filter(|_| split).unwrap_or((dwarf, unit));
                        file = index.and_then(|index| file_path(table.0, table.1, index));
                    }
                    dw::DW_AT_decl_line if line.is_none() => {
                        line = attribute.udata_value().and_then(|l| u32::try_from(l).ok()).filter(|l| *l > 0);
                    }
                    dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                        at = Ref::from_value(value).map(|next| (dwarf, unit, next));
                    }
                    _ => {}
                }
            }
            if linkage.is_some() && file.is_some() && line.is_some() {
                break;
            }
        }
        let name = linkage.or(plain).map(|name| name.to_string_lossy()).filter(|name| !name.is_empty());
        Declared {
            name: name.map(|name| Name::from_mangled(&name)),
            place: file.zip(line).map(|(file, line)| Location { file: file.into(), line }),
        }
    }

    /// Where a reference found in `unit` points to.
    fn place<'s>(
        &'s self,
        dwarf: &'s Dwarf<Slice<'a>>,
        unit: &'s Unit<Slice<'a>>,
        entry: Ref,
    ) -> Option<(&'s Dwarf<Slice<'a>>, &'s Unit<Slice<'a>>, gimli::UnitOffset)> {
        match entry {
            Ref::Unit(offset) => Some((dwarf, unit, offset)),
            // Within a split file there is no index of units; such references do not occur in practice.
            Ref::Info(_) if dwarf.file_type == gimli::DwarfFileType::Dwo => None,
            Ref::Info(offset) if !self.is_supplement(dwarf) => {
                let found = self.unit_holding(offset)?;
                Some((&self.dwarf, found, offset.to_unit_offset(&found.header)?))
            }
            Ref::Info(offset) | Ref::Supplement(offset) => {
                let (dwarf, found) = self.supplement_holding(offset)?;
                Some((dwarf, found, offset.to_unit_offset(&found.header)?))
            }
        }
    }
}
