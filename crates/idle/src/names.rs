//! From a note's address to frames: the function, what was inlined into it, and the loops around the address.
//!
//! ```text
//! address -> main (call) > loop at x.rs:10 > step (inline) > loop at x.rs:31
//! ```
//! A loop stands inside the innermost inlined function that its first instruction shares with the address. Frames are numbered as they are met; equal ones are one.

use std::collections::HashMap;
use std::sync::Arc;

use profile::idle::{Frame, FrameKind};
use rustc_hash::FxHashMap;
use symbols::{AddrRange, Loop, Object, ObjectAddr};

use crate::records::Loaded;

/// Whether a source file is of Rust's standard library.
fn is_standard(file: &str) -> bool {
    file.starts_with("/rustc/") || file.contains("/library/core/src/") || file.contains("/library/std/src/")
}

/// The path that a name lacks where debug information is of lines only: the crate, by the folder that cargo puts it
/// into, and the module, by its file. `None` for other files and for names that have a path.
///
/// ```text
/// .../registry/src/INDEX/rayon-core-1.13.0/src/join/mod.rs   join<..>   ->   rayon_core::join::join<..>
/// ```
fn qualified(name: &str, file: &str) -> Option<String> {
    let head = &name[..name.find('<').unwrap_or(name.len())];
    if head.contains("::") {
        return None;
    }
    let inside = match file.find("/registry/src/") {
        Some(at) => file[at + "/registry/src/".len()..].split_once('/')?.1,
        None => file.rsplit_once("/vendor/")?.1,
    };
    let (folder, module) = inside.split_once("/src/")?;
    // The version begins with the last hyphen before a digit.
    let is_version = |(i, _): &(usize, &str)| folder[i + 1..].starts_with(|c: char| c.is_ascii_digit());
    let end = folder.match_indices('-').find(is_version).map_or(folder.len(), |(i, _)| i);
    let mut path = folder[..end].replace('-', "_");
    for part in module.strip_suffix(".rs")?.split('/').filter(|p| !["mod", "lib", "main"].contains(p)) {
        path.push_str("::");
        path.push_str(part);
    }
    Some(format!("{path}::{name}"))
}

/// What a function is called, given its name and where it is declared.
fn full_name(name: String, file: &str, line: u32) -> String {
    if let Some(name) = qualified(&name, file) {
        return name;
    }
    // All closures of a program have the same few names: the place tells them apart.
    if !name.starts_with("{closure") || file.is_empty() || is_standard(file) {
        return name;
    }
    let file = file.rsplit('/').next().unwrap_or(file);
    if line == 0 { format!("{{closure}} in {file}") } else { format!("{{closure}} in {file}:{line}") }
}

/// Where an address is in the source.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// Frames, the outermost first.
    pub frames: Vec<u32>,
    /// Innermost function and the line that executes there.
    pub line: Option<(u32, u32)>,
}

/// Names addresses and numbers frames.
pub(crate) struct Names<'a> {
    program: &'a str,
    modules: HashMap<u32, Loaded>,
    objects: HashMap<String, Option<Arc<Object>>>,
    open: &'a dyn Fn(&str) -> Option<Arc<Object>>,
    places: FxHashMap<(u32, u64), Arc<Place>>,
    loops: HashMap<(String, u64), Arc<Vec<Loop>>>,
    pub frames: Vec<Frame>,
    numbers: HashMap<Frame, u32>,
}

impl<'a> Names<'a> {
    pub fn new(
        program: &'a str,
        modules: Vec<Loaded>,
        open: &'a dyn Fn(&str) -> Option<Arc<Object>>,
    ) -> Names<'a> {
        Names {
            program,
            modules: modules.into_iter().map(|m| (m.serial, m)).collect(),
            objects: HashMap::new(),
            open,
            places: FxHashMap::default(),
            loops: HashMap::new(),
            frames: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    /// What went wrong with the objects.
    pub fn problems(&self) -> Vec<String> {
        let mut all: Vec<String> = self.objects.values().flatten().flat_map(|o| o.problems()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Objects without debug information among those that hold samples' code: there lines and inlined functions
    /// are unknown.
    pub fn executable_has_debug_info(&self) -> bool {
        let path = self.program;
        self.objects.get(path).is_none_or(|o| o.as_ref().is_none_or(|o| o.has_debug_info()))
    }

    /// The number of a frame.
    pub fn number(&mut self, frame: Frame) -> u32 {
        // The place of a function is not part of what it is: an inlined one is met in many places.
        let key = match frame.kind {
            FrameKind::Call | FrameKind::Inline => Frame { file: String::new(), line: 0, ..frame.clone() },
            _ => frame.clone(),
        };
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let number = self.frames.len() as u32;
        self.frames.push(frame);
        self.numbers.insert(key, number);
        number
    }

    /// A frame that is no code.
    pub fn mark(&mut self, kind: FrameKind, name: &str) -> u32 {
        self.number(Frame { kind, name: name.to_owned(), ..Frame::default() })
    }

    /// What an address means. A return address is looked up by the call before it.
    pub fn place(&mut self, serial: u32, pc: u64, exact: bool) -> Arc<Place> {
        let pc = if exact { pc } else { pc.wrapping_sub(1) };
        if let Some(place) = self.places.get(&(serial, pc)) {
            return place.clone();
        }
        let place = Arc::new(self.resolve(serial, pc));
        self.places.insert((serial, pc), place.clone());
        place
    }

    fn resolve(&mut self, serial: u32, pc: u64) -> Place {
        let Some(module) = self.modules.get(&serial).cloned() else {
            let number = self.number(Frame { name: "[generated code]".into(), ..Frame::default() });
            return Place { frames: vec![number], line: None };
        };
        let path = if module.path.is_empty() { self.program.to_owned() } else { module.path.clone() };
        let open = self.open;
        let object = self.objects.entry(path.clone()).or_insert_with(|| open(&path)).clone();
        let Some(object) = object else {
            let file = path.rsplit('/').next().unwrap_or(&path).to_owned();
            let number = self.number(Frame { name: format!("[{file}]"), object: path, ..Frame::default() });
            return Place { frames: vec![number], line: None };
        };
        let addr = ObjectAddr(pc.wrapping_sub(module.bias));
        let function = object.function_at(addr);
        let resolved = object.resolve(addr);
        let mut place = Place::default();
        let loops = match &function {
            Some(f) if !resolved.0.is_empty() => self.loops_of(&path, &object, f.entry.0, f.size_bytes),
            _ => Arc::new(Vec::new()),
        };
        let around: Vec<&Loop> = loops.iter().filter(|l| l.contains(addr)).collect();
        // In which of the frames each loop stands, and where it is in the source: the innermost frame that its first
        // instruction shares with the address, by the same inlined calls. A loop over an iterator is in the program,
        // not in the iterator.
        let stand = |l: &Loop| {
            let header = object.resolve(l.header).0;
            let mut found = (0, l.location.as_ref().map(|at| (at.file.clone(), at.line)));
            for (i, (a, b)) in header.iter().zip(&resolved.0).enumerate() {
                if a.function != b.function {
                    break;
                }
                found.0 = i;
                if (&a.file, a.line) != (&b.file, b.line) {
                    break;
                }
            }
            if found.1.as_ref().is_none_or(|at| is_standard(&at.0)) {
                let own = |f: &symbols::Frame| f.file.as_deref().is_some_and(|file| !is_standard(file));
                match header.iter().take(found.0 + 1).rposition(own) {
                    Some(i) => found = (i, header[i].file.clone().zip(header[i].line)),
                    None => found.1 = None,
                }
            }
            found
        };
        let mut floor = 0;
        let mut loops_at: Vec<Vec<(Arc<str>, u32)>> = vec![Vec::new(); resolved.0.len().max(1)];
        for l in around {
            let (depth, at) = stand(l);
            // An inner loop is never outside of an outer one.
            floor = depth.max(floor);
            if let (Some(list), Some(at)) = (loops_at.get_mut(floor), at)
                && list.last() != Some(&at)
            {
                list.push(at);
            }
        }
        for (i, f) in resolved.0.iter().enumerate() {
            let declared = f.declared.clone();
            let name = match (&f.function, i, &function) {
                // The symbol says more than debug information does: the type and trait of a method.
                (_, 0, Some(function)) => function.name.readable().to_owned(),
                (Some(name), ..) => name.readable().to_owned(),
                (None, ..) => "[inlined]".into(),
            };
            let (file, line) = match (declared, i, &function) {
                (Some(at), ..) => (at.file.to_string(), at.line),
                (None, 0, Some(f)) => (f.file.as_deref().unwrap_or_default().to_owned(), f.line.unwrap_or(0)),
                _ => (f.file.as_deref().unwrap_or_default().to_owned(), 0),
            };
            let name = full_name(name, &file, line);
            let kind = if f.inlined { FrameKind::Inline } else { FrameKind::Call };
            let number = self.number(Frame { kind, name, object: path.clone(), file, line });
            place.frames.push(number);
            place.line = f.line.map(|line| (number, line));
            for (at, line) in &loops_at[i] {
                let file = at.rsplit('/').next().unwrap_or(at);
                let frame = Frame {
                    kind: FrameKind::Loop,
                    name: format!("loop at {file}:{line}"),
                    object: path.clone(),
                    file: at.to_string(),
                    line: *line,
                };
                let number = self.number(frame);
                place.frames.push(number);
            }
        }
        if place.frames.is_empty() {
            let name = match &function {
                Some(f) => f.name.readable().to_owned(),
                None => format!("[{}]", object.file_name()),
            };
            place.frames.push(self.number(Frame { name, object: path, ..Frame::default() }));
        }
        place
    }

    fn loops_of(&mut self, path: &str, object: &Object, entry: u64, bytes: u64) -> Arc<Vec<Loop>> {
        let key = (path.to_owned(), entry);
        if let Some(loops) = self.loops.get(&key) {
            return loops.clone();
        }
        // Without lines a loop has no name.
        let loops = if object.has_debug_info() {
            object.loops(AddrRange::new(entry, entry + bytes))
        } else {
            Vec::new()
        };
        let loops = Arc::new(loops);
        self.loops.insert(key, loops.clone());
        loops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_the_path_that_they_lack() {
        let cargo = "/home/u/.cargo/registry/src/index-0123/rayon-core-1.13.0/src/";
        for (name, file, full) in [
            ("join<a, b>", format!("{cargo}join/mod.rs"), "rayon_core::join::join<a, b>"),
            ("wait_until<L>", format!("{cargo}registry.rs"), "rayon_core::registry::wait_until<L>"),
            ("{closure#0}<u64>", format!("{cargo}lib.rs"), "rayon_core::{closure#0}<u64>"),
            ("a::b", format!("{cargo}lib.rs"), "a::b"),
            ("f", "/src/vendor/rayon/src/iter/mod.rs".into(), "rayon::iter::f"),
            ("f", "/home/u/x/src/main.rs".into(), "f"),
            ("{closure#2}", "/home/u/x/src/main.rs".into(), "{closure} in main.rs:7"),
            ("{closure#2}", "/rustc/1/library/core/src/a.rs".into(), "{closure#2}"),
        ] {
            assert_eq!(full_name(name.into(), &file, 7), full);
        }
    }
}
