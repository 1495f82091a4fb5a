//! The line table of one unit: which line each instruction came from.

use std::sync::{Arc, OnceLock};

use gimli::{ColumnType, Dwarf, Unit};

use super::{Code, Slice};
use crate::frames::clean_path;
use crate::ranges::RangeIndex;

/// What holds from `address` to the next row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) address: u64,
    pub(crate) file: u64,
    /// 0: no line.
    pub(crate) line: u32,
    /// 0: no column.
    pub(crate) column: u32,
}

pub(crate) struct Lines {
    sequences: RangeIndex<Box<[Row]>>,
    files: Box<[OnceLock<Option<Arc<str>>>]>,
}

impl Lines {
    /// Runs the line program. Sequences outside the code (of functions that the linker dropped) are left out.
    /// After an error the sequences before it are used.
    pub(crate) fn parse(unit: &Unit<Slice<'_>>, code: &Code) -> (Lines, Option<gimli::Error>) {
        let none = || Lines { sequences: RangeIndex::new([]), files: Box::default() };
        let Some(program) = unit.line_program.clone() else { return (none(), None) };
        let file_count = program.header().file_names().len() + 1;
        let mut sequences = Vec::new();
        let mut open: Vec<Row> = Vec::new();
        let mut rows = program.rows();
        let error = loop {
            let row = match rows.next_row() {
                Ok(Some((_, row))) => row,
                Ok(None) => break None,
                Err(e) => break Some(e),
            };
            if row.end_sequence() {
                let rows = std::mem::take(&mut open);
                if let Some(start) = rows.first().map(|r| r.address)
                    && code.holds(start)
                {
                    sequences.push((start, row.address(), rows.into_boxed_slice()));
                }
                continue;
            }
            let new = Row {
                address: row.address(),
                file: row.file_index(),
                line: row.line().map_or(0, |l| u32::try_from(l.get()).unwrap_or(0)),
                column: match row.column() {
                    ColumnType::LeftEdge => 0,
                    ColumnType::Column(c) => u32::try_from(c.get()).unwrap_or(0),
                },
            };
            match open.last_mut() {
                // Several rows at one address are views for a debugger; the last one describes the code.
                Some(last) if last.address == new.address => *last = new,
                // The machine never goes back within a sequence; gimli drops rows that would.
                Some(last) if last.address > new.address => {}
                _ => open.push(new),
            }
        };
        let files = (0..file_count).map(|_| OnceLock::new()).collect();
        (Lines { sequences: RangeIndex::new(sequences), files }, error)
    }

    pub(crate) fn at(&self, addr: u64) -> Option<Row> {
        let (_, _, rows) = self.sequences.at(addr).next()?;
        let after = rows.partition_point(|row| row.address <= addr);
        rows[..after].last().copied()
    }

    /// Start, end and row of every piece in `start..end`.
    pub(crate) fn within(&self, start: u64, end: u64) -> Vec<(u64, u64, Row)> {
        let mut pieces = Vec::new();
        for (_, sequence_end, rows) in self.sequences.within(start, end) {
            let first = rows.partition_point(|row| row.address <= start).saturating_sub(1);
            for (i, row) in rows.iter().enumerate().skip(first).take_while(|(_, row)| row.address < end) {
                let next = rows.get(i + 1).map_or(sequence_end, |next| next.address);
                if row.address.max(start) < next.min(end) {
                    pieces.push((row.address.max(start), next.min(end), *row));
                }
            }
        }
        pieces
    }

    /// The address ranges of all sequences.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.sequences.iter().map(|(start, end, _)| (start, end))
    }

    /// The path of a file of this table.
    pub(crate) fn file(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        unit: &Unit<Slice<'_>>,
        index: u64,
    ) -> Option<Arc<str>> {
        let slot = self.files.get(usize::try_from(index).ok()?)?;
        slot.get_or_init(|| file_path(dwarf, unit, index).map(Into::into)).clone()
    }

    pub(crate) fn file_count(&self) -> u64 {
        self.files.len() as u64
    }
}

/// Path of a file by its number in a unit's line table: compilation folder, include folder, name, each of
/// which replaces what came before if it is absolute.
pub(crate) fn file_path(dwarf: &Dwarf<Slice<'_>>, unit: &Unit<Slice<'_>>, index: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(index)?;
    let text = |value| Some(dwarf.attr_string(unit, value).ok()?.to_string_lossy().into_owned());
    let mut path = unit.comp_dir.map(|d| d.to_string_lossy().into_owned()).unwrap_or_default();
    // Folder 0 is the compilation folder.
    if file.directory_index() != 0
        && let Some(folder) = file.directory(header).and_then(text)
    {
        push(&mut path, &folder);
    }
    push(&mut path, &text(file.path_name())?);
    Some(clean_path(&path))
}

fn push(path: &mut String, part: &str) {
    if part.starts_with('/') {
        path.clear();
    } else if !path.is_empty() && !path.ends_with('/') {
        path.push('/');
    }
    path.push_str(part);
}
