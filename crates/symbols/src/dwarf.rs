//! DWARF, versions 2 to 5: from an address to lines and inlined functions.
//!
//! ```text
//! address → units whose ranges hold it → function → inlined calls → one frame each
//!                                      → line table row           → where the innermost frame is
//! ```
//! Each step is read when first needed and kept: unit list per object, functions and lines per unit, inlined
//! calls per function. Everything kept is immutable behind `OnceLock`, so threads share it without a lock.
//!
//! Why not `addr2line`, which does the same and serves as the reference in our tests: its state is not `Sync`;
//! it gives no declaration lines and no boundaries of inlined ranges, which the causal mode needs for "all
//! addresses of this line"; one damaged unit hides the others; and it recurses as deep as the file nests.
//!
//! What the linker dropped must not answer: its entries keep ranges that start at 0 (GNU ld) or 1, or -1
//! (lld). Such ranges would cover real code of small shared objects, so a range counts only if it starts in
//! executable sections.

pub(crate) mod declared;
pub(crate) mod inline;
pub(crate) mod lines;
pub(crate) mod split;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, RwLock};

use gimli::{AbbreviationsCacheStrategy, DebugInfoOffset, Dwarf, EndianSlice, LittleEndian, Unit, UnitType};

use crate::address::AddrRange;
use crate::bytes::{Arena, Files};
use crate::elf::Image;
use crate::frames::Frame;
use crate::problems::Problems;
use crate::ranges::RangeIndex;
use crate::symtab::in_code;
use declared::Declared;
use inline::{Bounds, Functions, Ref};
use lines::Lines;
use split::{SplitSource, SplitUnit};

pub(crate) type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Where code lies, in the addresses of the debug information.
pub(crate) struct Code(Vec<AddrRange>);

impl Code {
    pub(crate) fn holds(&self, addr: u64) -> bool {
        in_code(&self.0, addr)
    }
}

pub(crate) struct DebugInfo<'a> {
    dwarf: Dwarf<Slice<'a>>,
    /// What to add to addresses here to get those of the object.
    bias: u64,
    code: Code,
    /// By offset in `.debug_info`.
    units: Vec<UnitState<'a>>,
    ranges: RangeIndex<u32>,
    supplement: OnceLock<Vec<Unit<Slice<'a>>>>,
    declared: RwLock<HashMap<(usize, Ref), Arc<Declared>>>,
    split: SplitSource<'a>,
    problems: Arc<Problems>,
}

struct UnitState<'a> {
    unit: Unit<Slice<'a>>,
    split: OnceLock<Option<SplitUnit<'a>>>,
    lines: OnceLock<Lines>,
    functions: OnceLock<Functions>,
}

/// Where debug information is read from.
pub(crate) struct Source<'s, 'a> {
    pub(crate) image: &'s Image<'a>,
    /// The file that dwz moved shared parts to.
    pub(crate) supplement: Option<&'s Image<'a>>,
    pub(crate) bias: u64,
    pub(crate) code: Vec<AddrRange>,
    pub(crate) arena: &'a Arena,
    pub(crate) files: &'a dyn Files,
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) problems: Arc<Problems>,
}

pub(crate) fn empty<'a>() -> Slice<'a> {
    EndianSlice::new(&[], LittleEndian)
}

pub(crate) fn load_sections<'a>(
    image: &Image<'a>,
    arena: &'a Arena,
    name: impl Fn(gimli::SectionId) -> Option<&'static str>,
) -> Dwarf<Slice<'a>> {
    let section = |id| {
        let data = name(id).and_then(|name| image.debug_section(name, arena)).unwrap_or_default();
        Ok::<_, std::convert::Infallible>(EndianSlice::new(data, LittleEndian))
    };
    match Dwarf::load(section) {
        Ok(dwarf) => dwarf,
        Err(never) => match never {},
    }
}

impl<'a> DebugInfo<'a> {
    /// Lists the units and their ranges. Nothing when there is no debug information.
    pub(crate) fn load(source: Source<'_, 'a>) -> Option<Self> {
        let Source { image, supplement, bias, code, arena, files, paths, problems } = source;
        let mut dwarf = load_sections(image, arena, |id| Some(id.name()));
        if let Some(supplement) = supplement {
            dwarf.set_sup(load_sections(supplement, arena, |id| Some(id.name())));
        }
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let shifted =
            code.iter().map(|c| AddrRange::new(c.start.0.wrapping_sub(bias), c.end.0.wrapping_sub(bias)));
        let mut info = DebugInfo {
            code: Code(shifted.collect()),
            bias,
            units: Vec::new(),
            ranges: RangeIndex::new([]),
            supplement: OnceLock::new(),
            declared: RwLock::default(),
            split: SplitSource { arena, files, paths, package: OnceLock::new() },
            problems,
            dwarf,
        };
        info.list_units();
        (!info.units.is_empty()).then_some(info)
    }

    fn list_units(&mut self) {
        let mut listed: HashMap<DebugInfoOffset, Vec<(u64, u64)>> = HashMap::new();
        let mut sets = self.dwarf.debug_aranges.headers();
        while let Ok(Some(set)) = sets.next() {
            let list = listed.entry(set.debug_info_offset()).or_default();
            let mut entries = set.entries();
            while let Ok(Some(entry)) = entries.next() {
                list.push((entry.range().begin, entry.range().end));
            }
        }
        let mut ranges: Vec<(u64, u64, u32)> = Vec::new();
        let mut headers = self.dwarf.units();
        loop {
            let header = match headers.next() {
                Ok(Some(header)) => header,
                Ok(None) => break,
                Err(e) => {
                    self.problems
                        .add(format!("debug information unreadable after {} units: {e}", self.units.len()));
                    break;
                }
            };
            let (offset, kind) = (header.debug_info_offset(), header.type_());
            if matches!(kind, UnitType::Type { .. } | UnitType::SplitType { .. }) {
                continue;
            }
            let unit = match self.dwarf.unit(header) {
                Ok(unit) => unit,
                Err(e) => {
                    self.problems.add(format!("debug information of a unit unreadable: {e}"));
                    continue;
                }
            };
            let number = self.units.len() as u32;
            let state = UnitState {
                unit,
                split: OnceLock::new(),
                lines: OnceLock::new(),
                functions: OnceLock::new(),
            };
            if kind != UnitType::Partial {
                let listed = offset.and_then(|o| listed.remove(&o)).unwrap_or_default();
                let held = self.unit_ranges(&state, listed);
                ranges.extend(held.into_iter().map(|(start, end)| (start, end, number)));
            }
            self.units.push(state);
        }
        self.ranges = RangeIndex::new(ranges);
    }

    /// In order of trust: the unit's own list, `.debug_aranges`, its low and high address, its line table.
    fn unit_ranges(&self, state: &UnitState<'a>, listed: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
        let mut bounds = Bounds::default();
        if let Ok(mut entries) = state.unit.entries_raw(None)
            && let Ok(Some(abbreviation)) = entries.read_abbreviation()
        {
            for spec in abbreviation.attributes() {
                let Ok(attribute) = entries.read_attribute(*spec) else { break };
                bounds.note(attribute.name(), attribute.value());
            }
        }
        let mut ranges = if bounds.has_list() { Vec::new() } else { listed };
        ranges.retain(|(start, end)| start < end && self.code.holds(*start));
        if ranges.is_empty() {
            bounds.each(&self.dwarf, &state.unit, |start, end| {
                if self.code.holds(start) {
                    ranges.push((start, end));
                }
            });
        }
        if ranges.is_empty() {
            ranges.extend(self.lines(state).ranges());
        }
        ranges
    }

    /// The frames of an address of the object, outermost first.
    pub(crate) fn frames(&self, addr: u64) -> Vec<Frame> {
        let addr = addr.wrapping_sub(self.bias);
        for (_, _, number) in self.ranges.at(addr) {
            let frames = self.frames_in(*number as usize, addr);
            if !frames.is_empty() {
                return frames;
            }
        }
        Vec::new()
    }

    fn frames_in(&self, number: usize, addr: u64) -> Vec<Frame> {
        let Some(state) = self.units.get(number) else { return Vec::new() };
        let Some((dwarf, unit)) = self.dwarf_and_unit(number) else { return Vec::new() };
        let lines = self.lines(state);
        let mut frames = Vec::new();
        if let Some((_, _, function)) = self.functions(number).at(addr) {
            frames.push(self.frame(number, Ref::Unit(function.entry), false));
            for call in function.inlines(dwarf, unit).at(addr) {
                if let Some(caller) = frames.last_mut() {
                    // File numbers of a split unit are those of its skeleton's line table.
                    caller.file = lines.file(&self.dwarf, &state.unit, call.file);
                    caller.line = Some(call.line).filter(|l| *l > 0);
                    caller.column = Some(call.column).filter(|c| *c > 0);
                }
                frames.push(self.frame(number, call.origin, true));
            }
        }
        if let Some(row) = lines.at(addr) {
            if frames.is_empty() {
                frames.push(Frame::default());
            }
            if let Some(innermost) = frames.last_mut() {
                innermost.file = lines.file(&self.dwarf, &state.unit, row.file);
                innermost.line = Some(row.line).filter(|l| *l > 0);
                innermost.column = Some(row.column).filter(|c| *c > 0);
            }
        }
        frames
    }

    fn frame(&self, unit: usize, entry: Ref, inlined: bool) -> Frame {
        let declared = self.declared(unit, entry);
        Frame {
            function: declared.name.clone(),
            declared: declared.place.clone(),
            inlined,
            ..Frame::default()
        }
    }

    /// The called function at an address of the object: its bounds and itself.
    pub(crate) fn function(&self, addr: u64) -> Option<(AddrRange, Arc<Declared>)> {
        let own = addr.wrapping_sub(self.bias);
        self.ranges.at(own).find_map(|(_, _, number)| {
            let (start, end, function) = self.functions(*number as usize).at(own)?;
            let range = AddrRange::new(start.wrapping_add(self.bias), end.wrapping_add(self.bias));
            Some((range, self.declared(*number as usize, Ref::Unit(function.entry))))
        })
    }

    /// Where frames may change within `start..end`, both ends included.
    pub(crate) fn boundaries(&self, start: u64, end: u64) -> Vec<u64> {
        let mut cuts = BTreeSet::from([start, end]);
        let (low, high) = (start.wrapping_sub(self.bias), end.wrapping_sub(self.bias));
        for (unit_start, unit_end, number) in self.ranges.within(low, high) {
            cuts.extend([unit_start, unit_end].map(|a| a.wrapping_add(self.bias)));
            let number = *number as usize;
            let (Some(state), Some((dwarf, unit))) = (self.units.get(number), self.dwarf_and_unit(number))
            else {
                continue;
            };
            for (s, e, _) in self.lines(state).within(low, high) {
                cuts.extend([s, e].map(|a| a.wrapping_add(self.bias)));
            }
            for (s, e, function) in self.functions(number).within(low, high) {
                cuts.extend([s, e].map(|a| a.wrapping_add(self.bias)));
                let inner = function.inlines(dwarf, unit).boundaries(low, high);
                cuts.extend(inner.map(|a| a.wrapping_add(self.bias)));
            }
        }
        cuts.into_iter().filter(|cut| start <= *cut && *cut <= end).collect()
    }

    /// All code whose innermost line is `line` of a file that `wanted` accepts.
    pub(crate) fn code_of_line(&self, wanted: impl Fn(&str) -> bool, line: u32) -> Vec<AddrRange> {
        let mut found = Vec::new();
        for state in &self.units {
            let lines = self.lines(state);
            let files: Vec<bool> = (0..lines.file_count())
                .map(|i| lines.file(&self.dwarf, &state.unit, i).is_some_and(|f| wanted(&f)))
                .collect();
            if !files.contains(&true) {
                continue;
            }
            for (start, end, row) in lines.within(0, u64::MAX) {
                let file = usize::try_from(row.file).ok().and_then(|i| files.get(i));
                if row.line == line && file == Some(&true) {
                    found.push(AddrRange::new(start.wrapping_add(self.bias), end.wrapping_add(self.bias)));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn lines<'s>(&'s self, state: &'s UnitState<'a>) -> &'s Lines {
        state.lines.get_or_init(|| {
            let (lines, error) = Lines::parse(&state.unit, &self.code);
            if let Some(e) = error {
                self.problems.add(format!("line table damaged: {e}"));
            }
            lines
        })
    }

    fn functions(&self, number: usize) -> &Functions {
        self.units[number].functions.get_or_init(|| {
            let parsed =
                self.dwarf_and_unit(number).map(|(dwarf, unit)| Functions::parse(dwarf, unit, &self.code));
            let (functions, error) = parsed.unwrap_or_else(|| (Functions::none(), None));
            if let Some(e) = error {
                self.problems.add(format!("functions of a unit unreadable: {e}"));
            }
            functions
        })
    }

    /// The half of a unit that describes functions.
    fn dwarf_and_unit(&self, number: usize) -> Option<(&Dwarf<Slice<'a>>, &Unit<Slice<'a>>)> {
        let state = self.units.get(number)?;
        let split = state.split.get_or_init(|| {
            let id = state.unit.dwo_id?;
            self.split.load(&self.dwarf, &state.unit, id, &self.problems)
        });
        Some(split.as_ref().map_or((&self.dwarf, &state.unit), |s| (&s.dwarf, &s.unit)))
    }

    /// The half of a unit that stayed in the object.
    fn skeleton(&self, number: usize) -> Option<(&Dwarf<Slice<'a>>, &Unit<Slice<'a>>)> {
        self.units.get(number).map(|state| (&self.dwarf, &state.unit))
    }

    fn is_supplement(&self, dwarf: &Dwarf<Slice<'a>>) -> bool {
        self.dwarf.sup().is_some_and(|s| std::ptr::eq(s, dwarf))
    }

    fn unit_holding(&self, offset: DebugInfoOffset) -> Option<&Unit<Slice<'a>>> {
        let after =
            self.units.partition_point(|u| u.unit.header.debug_info_offset().is_some_and(|o| o <= offset));
        self.units[..after].last().map(|state| &state.unit)
    }

    fn supplement_holding(&self, offset: DebugInfoOffset) -> Option<(&Dwarf<Slice<'a>>, &Unit<Slice<'a>>)> {
        let dwarf = self.dwarf.sup()?;
        let units = self.supplement.get_or_init(|| {
            let mut units = Vec::new();
            let mut headers = dwarf.units();
            while let Ok(Some(header)) = headers.next() {
                units.extend(dwarf.unit(header).ok());
            }
            units
        });
        let after = units.partition_point(|u| u.header.debug_info_offset().is_some_and(|o| o <= offset));
        units[..after].last().map(|unit| (dwarf, unit))
    }
}
