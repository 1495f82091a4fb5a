//! Names for the functions that a running program asks about.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use launch::answers::{Answer, Question};
use launch::counts::FunctionCounts;
use profile::Function;
use symbols::{Epoch, Options, ProcessAddr, ProcessMap, Symbolizer};

/// Numbers functions as they are asked about, from 1 on.
pub struct Names {
    symbolizer: Symbolizer,
    map: ProcessMap,
    /// The process and the generation of its memory that `map` shows.
    shown: Option<(i32, u64)>,
    numbers: HashMap<(String, u64), u32>,
    functions: Vec<Function>,
}

impl Names {
    /// Without any function yet.
    pub fn new() -> Names {
        Names {
            symbolizer: Symbolizer::new(Arc::new(symbols::fs::Disk), Options::default()),
            map: ProcessMap::default(),
            shown: None,
            numbers: HashMap::new(),
            functions: vec![Function {
                name: "[unknown]".into(),
                mangled: "[unknown]".into(),
                ..Function::default()
            }],
        }
    }

    /// Which function holds the address.
    pub fn answer(&mut self, q: Question) -> Answer {
        let addr = ProcessAddr(q.address);
        if self.shown != Some((q.pid, q.generation)) || self.map.at(addr, Epoch::START).is_none() {
            let text = fs::read_to_string(format!("/proc/{}/maps", q.pid)).unwrap_or_default();
            self.map = ProcessMap::from_maps_text(&text).0;
            self.shown = Some((q.pid, q.generation));
        }
        let alone = |function| Answer { function, start: q.address, end: q.address + 1, entry: 0 };
        let Some(mapping) = self.map.at(addr, Epoch::START).cloned() else {
            return alone(self.number("", 0, || ("[unknown]".into(), None)));
        };
        let place = Symbolizer::place_name(&mapping);
        let Some(located) = self.symbolizer.locate(&self.map, addr, Epoch::START) else {
            // Code that no file holds (a just-in-time compiler's): one function for each mapping.
            let function = self.number(&place, mapping.start.0, || (place.clone(), None));
            return Answer { function, start: mapping.start.0, end: mapping.end.0, entry: 0 };
        };
        let Some(found) = located.function() else {
            return alone(self.number(&place, u64::MAX, || (format!("[{place}]"), None)));
        };
        let function = self.number(&place, found.entry.0, || (String::new(), Some(found.clone())));
        // From an address of the object to one of the process.
        let bias = q.address.wrapping_sub(located.addr.0);
        let entry = found.entry.0.wrapping_add(bias);
        let end = entry.saturating_add(found.size_bytes);
        if (entry..end).contains(&q.address) && mapping.start.0 <= entry && end <= mapping.end.0 {
            Answer { function, start: entry, end, entry }
        } else {
            Answer { entry, ..alone(function) }
        }
    }

    fn number(
        &mut self,
        object: &str,
        key: u64,
        made: impl FnOnce() -> (String, Option<Arc<symbols::Function>>),
    ) -> u32 {
        if let Some(&number) = self.numbers.get(&(object.to_owned(), key)) {
            return number;
        }
        let number = self.functions.len() as u32;
        let mut f = Function { object: object.to_owned(), ..Function::default() };
        match made() {
            (_, Some(found)) => {
                f.name = found.name.readable().to_owned();
                f.mangled = found.name.mangled().to_owned();
                f.address = Some(found.entry.0);
                f.file = found.file.as_deref().unwrap_or_default().to_owned();
                f.line = found.line.unwrap_or(0);
            }
            (name, None) => {
                f.mangled.clone_from(&name);
                f.name = name;
            }
        }
        self.functions.push(f);
        self.numbers.insert((object.to_owned(), key), number);
        number
    }

    /// How many numbers have been given, 0 included.
    pub fn count(&self) -> usize {
        self.functions.len()
    }

    /// The functions with what they executed; those that executed nothing are left out.
    pub fn functions(&self, counts: &[FunctionCounts]) -> Vec<Function> {
        let named = self.functions.iter().cloned().zip(counts);
        named
            .filter(|(_, c)| c.own != 0 || c.calls != 0)
            .map(|(f, c)| Function {
                calls: c.calls,
                instructions_self: c.own,
                instructions_total: c.total,
                ..f
            })
            .collect()
    }

    /// What symbols could not be read.
    pub fn problems(&self) -> Vec<String> {
        // The kernel's own library has no file, and debug files that are not installed only cost lines: function
        // names and boundaries come from the symbol tables and unwind tables, so neither is a loss here.
        let matters = |p: &String| !p.starts_with("[vdso]") && !p.starts_with("debug file ");
        self.symbolizer.problems().into_iter().filter(matters).collect()
    }
}
