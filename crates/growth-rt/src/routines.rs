//! Which routines there are: numbers for addresses, the objects that hold them, and where routines begin.
//!
//! A routine is an address that is called, or jumped to if unwind tables say that a function begins there. Objects
//! are lines of `/proc/self/maps`, read when an address belongs to none that is known, and passed on as they are:
//! naming is the collector's work. When memory is unmapped its routines are forgotten, so that another library at the
//! same address gets new ones.

use crate::elf::Image;
use crate::layout::FOLD;
use crate::shared::Shared;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;
use engine::region::read_file;
use wire::growth::{Routine, fold, routine};

/// Routines by address.
pub struct Routines {
    shared: Shared,
    fold: u32,
    /// Numbers, with [`FOLD`] where accesses are deleted.
    known: BTreeMap<u64, u32>,
    /// Executable mappings, by end.
    modules: BTreeMap<u64, Module>,
    root: Option<u32>,
    /// The function that the last block or jump asked about was in.
    function: Range<u64>,
    /// Whether anything but its start was called.
    called_inside: bool,
    /// Code that was asked about last, and whether it is folded.
    asked: (Range<u64>, bool),
    /// Mappings without a file that code was generated in, by end.
    fileless: BTreeMap<u64, u64>,
}

struct Module {
    range: Range<u64>,
    /// Its line in the module table, plus 1.
    line: u32,
    /// Everything in it is the dynamic linker.
    linker: bool,
    image: Image,
}

impl Routines {
    /// None yet.
    pub fn new(shared: Shared, fold: u32) -> Routines {
        Routines {
            shared,
            fold,
            known: BTreeMap::new(),
            modules: BTreeMap::new(),
            root: None,
            function: 0..0,
            called_inside: false,
            asked: (0..0, false),
            fileless: BTreeMap::new(),
        }
    }

    /// The number of the routine at an address, with [`FOLD`].
    pub fn get(&mut self, address: u64) -> u32 {
        if let Some(&known) = self.known.get(&address) {
            return known;
        }
        let fold = self.fold;
        let (line, folded) = match self.module(address) {
            Some(m) => (
                m.line,
                fold & fold::LINKER != 0 && m.linker || fold & fold::ALLOC != 0 && m.image.allocates(address),
            ),
            None => (0, false),
        };
        let flags = if folded { routine::FOLDED } else { 0 };
        let number = self.shared.add_routine(Routine { address, module: line, flags });
        let number = number | if folded { FOLD } else { 0 };
        self.known.insert(address, number);
        self.called_inside |= self.function.contains(&address);
        number
    }

    /// Is the code at an address part of folded work whoever calls it: the linker, or an allocator's own body? Then its
    /// accesses are deleted in any case.
    pub fn is_folded(&mut self, address: u64) -> bool {
        if !self.asked.0.contains(&address) {
            self.asked = self.folded_around(address).unwrap_or((address..address + 1, false));
        }
        self.asked.1
    }

    /// Code around an address that is or is not folded.
    fn folded_around(&mut self, address: u64) -> Option<(Range<u64>, bool)> {
        let fold = self.fold;
        let m = self.module(address)?;
        if m.linker {
            return Some((m.range.clone(), fold & fold::LINKER != 0));
        }
        let function = m.image.function_around(address)?;
        let allocates = fold & fold::ALLOC != 0 && m.image.allocates(function.start);
        Some((function, allocates))
    }

    /// Whether a routine begins at an address.
    pub fn begins(&mut self, address: u64) -> bool {
        let inside = self.function.contains(&address) && address != self.function.start;
        if inside && !self.called_inside {
            return false;
        }
        if self.known.contains_key(&address) {
            return true;
        }
        if inside {
            return false;
        }
        let Some(m) = self.module(address) else { return false };
        let Some(function) = m.image.function_around(address) else { return false };
        let begins = function.start == address && m.image.is_plain_entry(address);
        self.be_in(function);
        begins
    }

    /// A routine that stands for the start of a thread.
    pub fn root(&mut self) -> u32 {
        match self.root {
            Some(root) => root,
            None => {
                let root = self.shared.add_routine(Routine { address: 0, module: 0, flags: routine::ROOT });
                *self.root.insert(root)
            }
        }
    }

    /// Whether a jump from `from` to `target` enters another routine.
    pub fn is_tail(&mut self, from: Option<u64>, target: u64) -> bool {
        // (Most jumps stay in their function.)
        if from.is_some_and(|from| self.function.contains(&from)) && self.function.contains(&target) {
            return false;
        }
        let Some(m) = self.module(target) else { return false };
        let around = from.and_then(|from| m.image.function_around(from).filter(|f| f.contains(&from)));
        let leaves = around.as_ref().is_none_or(|f| !f.contains(&target));
        let is_tail = leaves && m.image.is_plain_entry(target);
        if let Some(function) = around {
            self.be_in(function);
        }
        is_tail
    }

    /// What is asked next is mostly about the same function.
    fn be_in(&mut self, function: Range<u64>) {
        let inside = (function.start + 1).min(function.end)..function.end;
        self.called_inside = self.known.range(inside).next().is_some();
        self.function = function;
    }

    /// Memory was unmapped or mapped anew.
    pub fn forget(&mut self, start: u64, end: u64) {
        let fileless: Vec<(u64, u64)> = overlapping(&self.fileless, |&from| from, start, end);
        for (from, to) in fileless {
            self.fileless.remove(&to);
            for (from, to) in [(from, start), (end, to)] {
                if from < to {
                    self.fileless.insert(to, from);
                }
            }
        }
        let gone = overlapping(&self.modules, |m| m.range.start, start, end);
        if gone.is_empty() {
            return;
        }
        for (_, key) in gone {
            self.modules.remove(&key);
        }
        self.function = 0..0;
        self.asked = (0..0, false);
        let stale: Vec<u64> = self.known.range(start..end).map(|(&address, _)| address).collect();
        for address in stale {
            self.known.remove(&address);
        }
    }

    fn module(&mut self, address: u64) -> Option<&Module> {
        let end = match end_around(&self.modules, |m| m.range.start, address) {
            Some(end) => end,
            None if end_around(&self.fileless, |&start| start, address).is_some() => return None,
            None => {
                let around = self.read_maps(address);
                let end = end_around(&self.modules, |m| m.range.start, address);
                if end.is_none() {
                    // (It may have grown; those listed do not overlap.)
                    let within = overlapping(&self.fileless, |&from| from, around.start, around.end);
                    self.fileless.retain(|to, _| !within.iter().any(|piece| piece.1 == *to));
                    self.fileless.insert(around.end, around.start);
                }
                end?
            }
        };
        self.modules.get(&end)
    }

    /// Adds the executable mappings that are not known yet. Returns the mappings without a file around an address.
    fn read_maps(&mut self, address: u64) -> Range<u64> {
        let mut around = address..address + 1;
        let mut fileless = 0..0;
        let mut text = Vec::new();
        read_file(b"/proc/self/maps\0", &mut text);
        // The mapping of a file's first byte: its ELF header.
        let mut head: (&[u8], u64) = (b"", 0);
        for line in text.split(|&b| b == b'\n') {
            let Some(m) = Line::parse(line) else { continue };
            if m.path.is_empty() {
                let start = if fileless.end == m.start { fileless.start } else { m.start };
                fileless = start..m.end;
                if fileless.contains(&address) {
                    around = fileless.clone();
                }
            }
            if m.offset == 0 && !m.path.is_empty() {
                head = (m.path, m.start);
            }
            if !m.executable || m.path.is_empty() || m.path == b"[vsyscall]" {
                continue;
            }
            if self.modules.get(&m.end).is_some_and(|known| known.range.start == m.start) {
                continue;
            }
            let Some(number) = self.shared.add_module(line) else { break };
            let base = (head.0 == m.path).then_some(head.1);
            let linker = is_linker(m.path);
            let image = Image::new(m.path, base, m.start..m.end, self.fold & fold::ALLOC != 0 && !linker);
            self.modules.insert(m.end, Module { range: m.start..m.end, line: number + 1, linker, image });
        }
        around
    }
}

/// The end of the one of these ranges that holds an address; they are listed by their ends.
fn end_around<T>(ranges: &BTreeMap<u64, T>, start: impl Fn(&T) -> u64, address: u64) -> Option<u64> {
    ranges.range(address + 1..).next().filter(|(_, range)| start(range) <= address).map(|(&end, _)| end)
}

/// Starts and ends of those that overlap one.
fn overlapping<T>(
    ranges: &BTreeMap<u64, T>,
    start_of: impl Fn(&T) -> u64,
    start: u64,
    end: u64,
) -> Vec<(u64, u64)> {
    let after = ranges.range(start + 1..).map(|(&to, range)| (start_of(range), to));
    after.take_while(|&(from, _)| from < end).collect()
}

fn is_linker(path: &[u8]) -> bool {
    let name = path.rsplit(|&b| b == b'/').next().unwrap_or(path);
    name.starts_with(b"ld-linux")
        || name.starts_with(b"ld-musl")
        || name.starts_with(b"ld-2")
        || name == b"ld.so"
}

/// A line of `/proc/self/maps`.
struct Line<'a> {
    start: u64,
    end: u64,
    executable: bool,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Line<'a> {
    fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let mut fields = line.splitn(6, |&b| b == b' ');
        let mut range = fields.next()?.split(|&b| b == b'-');
        let hex = |digits: &[u8]| u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok();
        let (start, end) = (hex(range.next()?)?, hex(range.next()?)?);
        let permissions = fields.next()?;
        let offset = hex(fields.next()?)?;
        let (_device, _inode) = (fields.next()?, fields.next()?);
        let path = fields.next().unwrap_or(b"").trim_ascii_start();
        Some(Line { start, end, executable: permissions.get(2) == Some(&b'x'), offset, path })
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, end_around, is_linker, overlapping};
    use alloc::collections::BTreeMap;
    use alloc::vec;

    #[test]
    fn ranges_are_found_by_what_they_hold_and_touch() {
        // From 10 to 20 and from 30 to 40, listed by their ends.
        let ranges = BTreeMap::from([(20, 10), (40, 30)]);
        let holds = |address| end_around(&ranges, |&start| start, address);
        assert_eq!(
            [9, 10, 19, 20, 30, 39, 40].map(holds),
            [None, Some(20), Some(20), None, Some(40), Some(40), None]
        );
        let touched = |start, end| overlapping(&ranges, |&from| from, start, end);
        assert_eq!(touched(20, 30), vec![]);
        assert_eq!(touched(0, 11), vec![(10, 20)]);
        assert_eq!(touched(19, 31), vec![(10, 20), (30, 40)]);
        assert_eq!(touched(39, 100), vec![(30, 40)]);
    }

    #[test]
    fn lines_parse() {
        let text = b"7f00a000-7f00c000 r-xp 00002000 08:01 1234                       /usr/lib/lib foo.so";
        let line = Line::parse(text).unwrap();
        assert_eq!((line.start, line.end, line.offset), (0x7f00_a000, 0x7f00_c000, 0x2000));
        assert!(line.executable);
        assert_eq!(line.path, b"/usr/lib/lib foo.so");
        let line = Line::parse(b"7f000000-7f001000 rw-p 00000000 00:00 0 ").unwrap();
        assert!(!line.executable && line.path.is_empty());
    }

    #[test]
    fn linkers_are_known_by_their_names() {
        assert!(is_linker(b"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"));
        assert!(is_linker(b"/lib/ld-musl-x86_64.so.1"));
        assert!(!is_linker(b"/usr/bin/ld"));
        assert!(!is_linker(b"/usr/lib/libld.so"));
    }
}
