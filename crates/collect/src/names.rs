//! Names for the routines of a run: from the lines of its memory map to objects, functions and source lines.

use std::sync::Arc;

use profile::Routine;
use symbols::fs::Disk;
use symbols::maps::{self, Backing};
use symbols::{Epoch, Options, ProcessAddr, ProcessMap, Symbolizer};

/// Names addresses. A module's line number is the time from which it was there.
pub(crate) struct Names {
    symbolizer: Symbolizer,
    map: ProcessMap,
    problems: Vec<String>,
}

impl Names {
    /// For these lines of the module table.
    pub fn new(lines: &str) -> Names {
        let mut map = ProcessMap::default();
        let mut problems = Vec::new();
        for (number, line) in lines.lines().enumerate() {
            let (found, rejected) = maps::parse(line);
            found.into_iter().for_each(|mapping| map.map(Epoch(number as u64 + 1), mapping));
            problems.extend(rejected.iter().map(|line| format!("the memory map has the line {line:?}")));
        }
        // Reading libc's debug file takes longer than a short program runs.
        let options = Options { system_lines: false, ..Options::default() };
        Names { symbolizer: Symbolizer::new(Arc::new(Disk), options), map, problems }
    }

    /// The routine at an address that belongs to module `module` (its line plus 1; 0: whatever was there last).
    pub fn routine(&self, address: u64, module: u32) -> Routine {
        let when = if module == 0 { Epoch(u64::MAX - 1) } else { Epoch(module.into()) };
        let at = ProcessAddr(address);
        if let Some(located) = self.symbolizer.locate(&self.map, at, when) {
            let mut routine = Routine {
                object: located.object.path().display().to_string(),
                address: Some(located.addr.0),
                ..Routine::default()
            };
            let fallback = || format!("{}+{:#x}", located.object.file_name(), located.addr.0);
            match located.function() {
                None => routine.name = fallback(),
                Some(function) => {
                    let into = located.addr.0.wrapping_sub(function.entry.0);
                    let suffix = if into == 0 { String::new() } else { format!("+{into:#x}") };
                    routine.name = format!("{}{suffix}", function.name.readable());
                    routine.mangled = format!("{}{suffix}", function.name.mangled());
                    routine.file = function.file.as_ref().map_or(String::new(), |file| file.to_string());
                    routine.line = function.line.unwrap_or(0);
                }
            }
            if routine.mangled.is_empty() {
                routine.mangled.clone_from(&routine.name);
            }
            return routine;
        }
        let (object, base) = match self.map.at(at, when) {
            Some(mapping) => match &mapping.backing {
                Backing::File { path, .. } => {
                    (path.display().to_string(), mapping.start.0 - mapping.offset.0)
                }
                _ => (Symbolizer::place_name(mapping), mapping.start.0),
            },
            None => ("[generated]".to_owned(), 0),
        };
        let short = object.rsplit('/').next().unwrap_or(&object);
        let offset = address.wrapping_sub(base);
        let name = format!("{short}+{offset:#x}");
        Routine { mangled: name.clone(), name, object, address: Some(offset), ..Routine::default() }
    }

    /// What could not be read. That an object has no debug file is no problem of a run: most have none.
    pub fn problems(&self) -> Vec<String> {
        let mut all = self.problems.clone();
        all.extend(self.symbolizer.problems().into_iter().filter(|p| !p.starts_with("debug file ")));
        all
    }
}
