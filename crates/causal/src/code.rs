//! From addresses that samples met to targets.
//!
//! Nothing is prepared in advance. When a sample falls on code that has no name yet, the runtime reports the address;
//! the function around it is cut into pieces of one meaning each, every piece is folded into the innermost frame in
//! scope, and the runtime gets a new table. A function is resolved once, so only its first samples are lost,
//! and a program with huge debug information starts as fast as one without.
//!
//! Code of libraries out of scope becomes one piece per mapping.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::*;

use profile::causal::{By, Target};
use symbols::maps::{self, Backing, Mapping};
use symbols::scope::{Library, Pattern};
use symbols::{AddrRange, FileOffset, Frame, Frames, Object, ObjectAddr, Scope};
use wire::causal::{OUT_OF_SCOPE, PIECES_MAX, Shared, TARGETS_MAX, UNKNOWN};

/// Folders whose libraries are out of scope unless a pattern asks for them.
const SYSTEM_FOLDERS: [&str; 6] =
    ["/usr/lib/", "/lib/", "/usr/lib64/", "/lib64/", "/usr/local/lib/", "/memfd:farsight"];

/// The code of one process, as far as samples have met it.
pub struct Code {
    pid: u32,
    by: By,
    scope: Scope,
    main: PathBuf,
    here: Option<PathBuf>,
    mappings: Vec<Mapping>,
    objects: HashMap<PathBuf, Option<Arc<Known>>>,
    /// Start -> (end, target); no two overlap.
    pieces: BTreeMap<u64, (u64, u32)>,
    targets: Vec<Target>,
    numbers: HashMap<String, u32>,
    changed: bool,
    unloads: u32,
    /// What could not be read, and what is missing.
    problems: Vec<String>,
    lines_missing: bool,
    full: bool,
}

struct Known {
    object: Object,
    entries: Vec<AddrRange>,
}

impl Code {
    /// Of a process whose executable is `main`.
    pub fn new(pid: u32, main: &Path, by: By, scope: Scope) -> Self {
        Code {
            pid,
            by,
            scope,
            main: fs::canonicalize(main).unwrap_or_else(|_| main.to_owned()),
            here: std::env::current_dir().ok(),
            mappings: Vec::new(),
            objects: HashMap::new(),
            pieces: BTreeMap::new(),
            targets: Vec::new(),
            numbers: HashMap::new(),
            changed: false,
            unloads: 0,
            problems: Vec::new(),
            lines_missing: false,
            full: false,
        }
    }

    /// Targets by number minus one; their samples are read from the shared memory at the end.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// What is missing or could not be read.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether the executable has no line information although lines were asked for.
    pub fn lines_missing(&self) -> bool {
        self.lines_missing
    }

    /// Names the addresses that the runtime has reported, and gives it a new table if that changed anything.
    pub fn serve(&mut self, shared: &Shared) {
        let unloads = shared.counts.unloads.load(Acquire);
        if unloads != self.unloads {
            // Another library may lie there soon. What is still loaded is met again.
            self.unloads = unloads;
            self.pieces.clear();
            self.mappings.clear();
            self.changed = true;
        }
        for place in &shared.misses {
            if place.load(Relaxed) != 0 {
                let address = place.swap(0, Relaxed);
                self.meet(address);
            }
        }
        if self.changed {
            self.publish(shared);
        }
    }

    fn publish(&mut self, shared: &Shared) {
        let version = shared.tables_version.load(Relaxed);
        let table = &shared.tables[(version as usize + 1) & 1];
        let mut len = 0;
        let mut end_before = 0;
        let mut put = |start: u64, target: u32| {
            if len < PIECES_MAX {
                table.starts[len].store(start, Relaxed);
                table.targets[len].store(target, Relaxed);
                len += 1;
            }
        };
        for (&start, &(end, target)) in &self.pieces {
            if start > end_before {
                put(end_before, UNKNOWN);
            }
            put(start, target);
            end_before = end;
        }
        put(end_before, UNKNOWN);
        if len == PIECES_MAX && !self.full {
            self.full = true;
            self.problems.push("the program's code has too many pieces: part of it was left out".into());
        }
        table.len.store(len as u32, Relaxed);
        shared.tables_version.store(version + 1, Release);
        self.changed = false;
    }

    /// Makes the pieces around an address.
    fn meet(&mut self, address: u64) {
        let known = |pieces: &BTreeMap<u64, (u64, u32)>| {
            pieces.range(..=address).next_back().is_some_and(|(_, &(end, _))| address < end)
        };
        if known(&self.pieces) {
            return;
        }
        let Some(mapping) = self.mapping(address) else {
            // Generated code: nobody knows what it is.
            let page = address & !4095;
            return self.put(page, page + 4096, OUT_OF_SCOPE);
        };
        let (start, end) = (mapping.start.0, mapping.end.0);
        let Some((path, known)) = self.object_of(&mapping) else {
            return self.put(start, end, OUT_OF_SCOPE);
        };
        let offset = FileOffset(address - start + mapping.offset.0);
        let Some(at) = known.object.segments().address_of(offset, true) else {
            return self.put(start, end, OUT_OF_SCOPE);
        };
        let bias = address.wrapping_sub(at.0);
        let library = Library { path: &path.to_string_lossy(), is_main: path == self.main };
        let range = known.range_around(at);
        for span in known.object.spans(range) {
            let target = self.target(&span.frames, library);
            let from = span.range.start.0.wrapping_add(bias).max(start);
            let to = span.range.end.0.wrapping_add(bias).min(end);
            self.put(from, to, target);
        }
    }

    fn put(&mut self, start: u64, end: u64, target: u32) {
        if start >= end {
            return;
        }
        // Ranges of entries may overlap in odd objects: what came first stays.
        let before = self.pieces.range(..=start).next_back().map_or(0, |(_, &(end, _))| end);
        let start = start.max(before);
        let end = self.pieces.range(start..).next().map_or(end, |(&next, _)| end.min(next));
        if start < end {
            self.pieces.insert(start, (end, target));
            self.changed = true;
        }
    }

    fn mapping(&mut self, address: u64) -> Option<Mapping> {
        let find =
            |mappings: &[Mapping]| mappings.iter().find(|m| (m.start.0..m.end.0).contains(&address)).cloned();
        find(&self.mappings).or_else(|| {
            self.read_maps();
            find(&self.mappings)
        })
    }

    fn read_maps(&mut self) {
        let text = fs::read(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
        self.mappings = maps::parse(&String::from_utf8_lossy(&text)).0;
        self.mappings.retain(|m| m.executable);
    }

    /// The object behind a mapping, if any of its code can be in scope.
    fn object_of(&mut self, mapping: &Mapping) -> Option<(PathBuf, Arc<Known>)> {
        let Backing::File { path, .. } = &mapping.backing else { return None };
        let path = path.clone();
        if !self.may_be_in_scope(&path) {
            return None;
        }
        self.object(&path).map(|known| (path, known))
    }

    fn object(&mut self, path: &Path) -> Option<Arc<Known>> {
        if let Some(known) = self.objects.get(path) {
            return known.clone();
        }
        let opened = match symbols::fs::open(path) {
            Ok(object) => {
                if path == self.main && self.by == By::Line && !object.has_debug_info() {
                    self.lines_missing = true;
                }
                let mut entries: Vec<AddrRange> = object.entries().into_iter().map(|(r, _)| r).collect();
                entries.sort_unstable_by_key(|r| r.start);
                Some(Arc::new(Known { object, entries }))
            }
            Err(error) => {
                self.problems.push(error.to_string());
                None
            }
        };
        self.objects.insert(path.to_owned(), opened.clone());
        opened
    }

    fn may_be_in_scope(&self, path: &Path) -> bool {
        let text = path.to_string_lossy();
        let library = Library { path: &text, is_main: path == self.main };
        let patterns: Vec<&Pattern> =
            self.scope.include.iter().filter(|p| matches!(p, Pattern::Library(_))).collect();
        if !patterns.is_empty() {
            let only = Scope { include: patterns.into_iter().cloned().collect(), exclude: Vec::new() };
            return only.contains(&Frame::default(), library);
        }
        library.is_main || !SYSTEM_FOLDERS.iter().any(|folder| text.starts_with(folder))
    }

    fn target(&mut self, frames: &Frames, library: Library<'_>) -> u32 {
        let frame = match self.by {
            By::Line => self.scope.fold(frames, library),
            By::Function => {
                frames.iter().rev().find(|f| f.function.is_some() && self.scope.contains(f, library))
            }
        };
        let Some(frame) = frame else { return OUT_OF_SCOPE };
        let function = frame.function.as_ref().map(|n| n.readable().to_owned()).unwrap_or_default();
        let file = frame.file.as_deref().map(|f| self.shown(f)).unwrap_or_default();
        let (name, line) = match self.by {
            By::Line => (format!("{file}:{}", frame.line.unwrap_or(0)), frame.line.unwrap_or(0)),
            By::Function => (function.clone(), frame.declared.as_ref().map_or(0, |d| d.line)),
        };
        // A line is one target, whatever instances of a generic function it is compiled into; a function likewise.
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        if self.targets.len() + 1 >= TARGETS_MAX {
            return OUT_OF_SCOPE;
        }
        let number = self.targets.len() as u32 + 1;
        self.numbers.insert(name.clone(), number);
        self.targets.push(Target { name, function, file, line, samples: 0 });
        number
    }

    /// A path as users know it: below the current folder, relative to it.
    fn shown(&self, file: &str) -> String {
        match self.here.as_deref().and_then(|here| Path::new(file).strip_prefix(here).ok()) {
            Some(relative) => relative.to_string_lossy().into_owned(),
            None => file.to_owned(),
        }
    }

    /// Where in the process the code of `file:line` or of a function begins: address, file and offset in it.
    pub fn find(&mut self, wanted: &Wanted) -> Vec<(u64, PathBuf, u64)> {
        self.read_maps();
        let mappings = self.mappings.clone();
        let mut found = Vec::new();
        for mapping in &mappings {
            let Backing::File { path, .. } = &mapping.backing else { continue };
            if path != &self.main && !self.may_be_in_scope(path) {
                continue;
            }
            let Some(known) = self.object(&path.clone()) else { continue };
            for at in wanted.starts(&known.object, &known.entries) {
                let Some(offset) = known.object.segments().offset_of(at) else { continue };
                let into = offset.0.wrapping_sub(mapping.offset.0);
                if into < mapping.end.0 - mapping.start.0 {
                    found.push((mapping.start.0 + into, path.clone(), offset.0));
                }
            }
        }
        found
    }
}

/// A place in the program that the command line names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A line.
    Line {
        /// The end of its file's path.
        file: String,
        /// From 1.
        line: u32,
    },
    /// A function's entry.
    Function(String),
}

impl Wanted {
    /// `file:line`, or else a function.
    pub fn parse(text: &str) -> Wanted {
        match text.rsplit_once(':') {
            Some((file, line)) if !file.is_empty() && !file.ends_with(':') => match line.parse() {
                Ok(line) => Wanted::Line { file: file.into(), line },
                Err(_) => Wanted::Function(text.into()),
            },
            _ => Wanted::Function(text.into()),
        }
    }

    /// First instructions: of a function its entry; of a line the first one in each function that has code of it.
    fn starts(&self, object: &Object, entries: &[AddrRange]) -> Vec<ObjectAddr> {
        match self {
            Wanted::Function(name) => object.functions_named(name).iter().map(|f| f.entry).collect(),
            Wanted::Line { file, line } => {
                let is_it = |path: &str| path == file || path.ends_with(&format!("/{file}"));
                let mut by_function: BTreeMap<u64, ObjectAddr> = BTreeMap::new();
                for range in object.code_of_line(is_it, *line) {
                    let at = entries.partition_point(|e| e.start <= range.start);
                    let function = at.checked_sub(1).map_or(0, |i| entries[i].start.0);
                    let first = by_function.entry(function).or_insert(range.start);
                    *first = (*first).min(range.start);
                }
                by_function.into_values().collect()
            }
        }
    }
}

impl Known {
    /// The function around an address, or a small piece of code that belongs to none.
    fn range_around(&self, at: ObjectAddr) -> AddrRange {
        const LONE_BYTES: u64 = 16;
        let next = self.entries.partition_point(|e| e.start <= at);
        let before = next.checked_sub(1).map(|i| self.entries[i]);
        match before {
            Some(range) if at < range.end => range,
            _ => AddrRange::new(at.0 & !(LONE_BYTES - 1), (at.0 & !(LONE_BYTES - 1)) + LONE_BYTES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_on_the_command_line() {
        let line = |file: &str, line| Wanted::Line { file: file.into(), line };
        assert_eq!(Wanted::parse("main.c:12"), line("main.c", 12));
        assert_eq!(Wanted::parse("/a/b c.rs:7"), line("/a/b c.rs", 7));
        assert_eq!(Wanted::parse("parse"), Wanted::Function("parse".into()));
        assert_eq!(Wanted::parse("app::parse"), Wanted::Function("app::parse".into()));
        assert_eq!(Wanted::parse("app::12"), Wanted::Function("app::12".into()));
    }
}
