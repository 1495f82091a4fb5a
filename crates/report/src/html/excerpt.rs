//! The source lines around a routine, for the routines that rank first.
//!
//! Files are asked for once each. Limits keep a page small whatever the sources are: a generated file of one
//! line of ten megabytes gives a short excerpt like any other.

use std::collections::HashMap;

use serde::Serialize;

/// Lines before and after the routine's own, unless another number is asked for.
const CONTEXT_LINES: u32 = 15;
/// Characters of a line that are kept.
const LINE_CHARS_MAX: usize = 240;
/// Routines, in order of rank, that get an excerpt.
pub const ROUTINES_MAX: usize = 300;

/// Source lines around one routine.
#[derive(Serialize)]
pub struct Excerpt {
    /// Position of the routine in the table.
    pub routine: usize,
    /// Number of the first line.
    pub start: u32,
    /// The lines.
    pub lines: Vec<String>,
}

/// Cuts excerpts, each file read once.
pub struct Excerpts<'a> {
    sources: &'a dyn Fn(&str) -> Option<String>,
    files: HashMap<String, Option<String>>,
    context: u32,
}

impl<'a> Excerpts<'a> {
    /// Reads files with `sources`.
    pub fn new(sources: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Excerpts { sources, files: HashMap::new(), context: CONTEXT_LINES }
    }

    /// With so many lines before and after.
    pub fn with_context(self, context: u32) -> Self {
        Excerpts { context, ..self }
    }

    /// The neighbourhood of `file:line`; `None` when the file cannot be read or is shorter than that.
    pub fn around(&mut self, routine: usize, file: &str, line: u32) -> Option<Excerpt> {
        if file.is_empty() || line == 0 {
            return None;
        }
        let text = self.files.entry(file.to_owned()).or_insert_with(|| (self.sources)(file)).as_deref()?;
        let start = line.saturating_sub(self.context).max(1);
        let wanted = (line - start + 1 + self.context) as usize;
        let lines: Vec<String> = text
            .lines()
            .skip(start as usize - 1)
            .take(wanted)
            .map(|l| l.chars().take(LINE_CHARS_MAX).collect())
            .collect();
        (lines.len() > (line - start) as usize).then_some(Excerpt { routine, start, lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifteen_lines_each_way_where_there_are_any() {
        let text: String = (1..=100).map(|i| format!("line {i}\n")).collect();
        let sources = |file: &str| (file == "a.c").then(|| text.clone());
        let mut excerpts = Excerpts::new(&sources);
        let middle = excerpts.around(0, "a.c", 50).unwrap();
        assert_eq!((middle.start, middle.lines.len()), (35, 31));
        assert_eq!(middle.lines[15], "line 50");
        let first = excerpts.around(0, "a.c", 3).unwrap();
        assert_eq!((first.start, first.lines.len()), (1, 18));
        let last = excerpts.around(0, "a.c", 100).unwrap();
        assert_eq!((last.start, last.lines.len()), (85, 16));
        assert!(excerpts.around(0, "a.c", 101).is_none());
        assert!(excerpts.around(0, "b.c", 1).is_none());
        assert!(excerpts.around(0, "a.c", 0).is_none());
    }

    #[test]
    fn a_file_is_read_once_and_long_lines_are_cut() {
        let reads = std::cell::Cell::new(0);
        let sources = |_: &str| {
            reads.set(reads.get() + 1);
            Some("é".repeat(10_000))
        };
        let mut excerpts = Excerpts::new(&sources);
        assert_eq!(excerpts.around(0, "a.c", 1).unwrap().lines[0].chars().count(), LINE_CHARS_MAX);
        assert!(excerpts.around(1, "a.c", 1).is_some());
        assert_eq!(reads.get(), 1);
    }
}
