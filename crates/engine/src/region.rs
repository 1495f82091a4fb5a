//! Which parts of the address space the program may execute, read and write.
//!
//! Seeded from `/proc/self/maps` before the first instruction and kept up to date by the hooks of the memory
//! system calls. The translator asks it before it reads a byte of code, so a jump to nowhere becomes the
//! program's own SIGSEGV rather than a fault of the engine. The engine's own mappings are not in it.

use crate::sys::{self, mm};
use alloc::vec::Vec;
use core::cell::Cell;

/// A range of addresses with one protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The protection that the program asked for.
    pub prot: u8,
    /// The file behind it, if it may have others.
    pub backing: Option<Backing>,
}

/// The memory behind a region, which other regions may show too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backing {
    /// Device and inode; for shared memory without a name, a number of our own.
    pub file: (u64, u64),
    /// Where the file's first byte would lie: the same for all parts of one mapping.
    pub base: u64,
    /// Stores go to the file.
    pub shared: bool,
}

impl Region {
    /// Do stores to it change what other regions show?
    fn writes_through(&self) -> Option<Backing> {
        self.backing.filter(|b| b.shared && u64::from(self.prot) & mm::PROT_WRITE != 0)
    }
}

/// The map, sorted by address, without overlaps.
#[derive(Debug, Default)]
pub struct Regions {
    list: Vec<Region>,
    /// Where the last one was found.
    last: Cell<usize>,
    /// Has there ever been a region through which others can be written to?
    pub writes_through: bool,
}

impl Regions {
    /// Index of the first region that ends after `pc`.
    fn find(&self, pc: u64) -> usize {
        // (Most questions are about the region of the last one.)
        let last = self.last.get();
        if self.list.get(last).is_some_and(|r| r.start <= pc && pc < r.end) {
            return last;
        }
        let i = self.list.partition_point(|r| r.end <= pc);
        self.last.set(i);
        i
    }

    /// The region that holds `pc`.
    pub fn get(&self, pc: u64) -> Option<&Region> {
        self.list.get(self.find(pc)).filter(|r| r.start <= pc)
    }

    /// End of the executable bytes that start at `pc`; `None` if `pc` is not executable.
    pub fn executable_end(&self, pc: u64) -> Option<u64> {
        let mut i = self.find(pc);
        let mut end = None;
        let mut at = pc;
        while let Some(r) = self.list.get(i) {
            if r.start > at || u64::from(r.prot) & mm::PROT_EXEC == 0 {
                break;
            }
            end = Some(r.end);
            at = r.end;
            i += 1;
            if at - pc > 4096 {
                break;
            }
        }
        end
    }

    /// The program's bytes at `pc`, at most `max` of them; empty if it may not execute there.
    ///
    /// # Safety
    /// The result must be dropped before the program can unmap it: the caller holds the engine lock, under
    /// which all changes of mappings are made.
    pub unsafe fn code(&self, pc: u64, max: usize) -> &[u8] {
        let Some(end) = self.executable_end(pc) else { return &[] };
        let len = ((end - pc) as usize).min(max);
        // SAFETY: the range is mapped and executable, hence readable on x86 (protection keys aside).
        unsafe { core::slice::from_raw_parts(pc as *const u8, len) }
    }

    /// Forgets a range.
    pub fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let first = self.find(start);
        let mut last = first;
        let mut keep: [Option<Region>; 2] = [None, None];
        while let Some(r) = self.list.get(last) {
            if r.start >= end {
                break;
            }
            if r.start < start {
                keep[0] = Some(Region { end: start, ..*r });
            }
            if r.end > end {
                keep[1] = Some(Region { start: end, ..*r });
            }
            last += 1;
        }
        self.list.splice(first..last, keep.into_iter().flatten());
    }

    /// Notes a mapping, replacing what was there.
    pub fn insert(&mut self, r: Region) {
        if r.start >= r.end {
            return;
        }
        self.remove(r.start, r.end);
        self.writes_through |= r.writes_through().is_some();
        let i = self.find(r.start);
        // Merge with equal neighbours, so that heaps that grow page by page stay one entry.
        let mut r = r;
        let mut from = i;
        let mut to = i;
        if i > 0 && self.list[i - 1].end == r.start && same_kind(&self.list[i - 1], &r) {
            from = i - 1;
            r.start = self.list[from].start;
        }
        if self.list.get(i).is_some_and(|n| n.start == r.end && same_kind(n, &r)) {
            r.end = self.list[i].end;
            to = i + 1;
        }
        self.list.splice(from..to, core::iter::once(r));
    }

    /// Changes the protection of what is mapped in a range.
    pub fn protect(&mut self, start: u64, end: u64, prot: u8) {
        let mut i = self.find(start);
        let mut found: Vec<Region> = Vec::new();
        while let Some(r) = self.list.get(i) {
            if r.start >= end {
                break;
            }
            found.push(Region { start: r.start.max(start), end: r.end.min(end), prot, ..*r });
            i += 1;
        }
        for r in found {
            self.insert(r);
        }
    }

    /// Notes that a whole range has this protection: what was not known to be mapped is (the heap, a stack).
    pub fn protect_all(&mut self, start: u64, end: u64, prot: u8) {
        self.protect(start, end, prot);
        let mut at = start;
        while at < end {
            match self.list.get(self.find(at)).copied() {
                Some(r) if r.start <= at => at = r.end,
                next => {
                    let gap_end = next.map_or(end, |r| r.start.min(end));
                    self.insert(Region { start: at, end: gap_end, prot, backing: None });
                    at = gap_end;
                }
            }
        }
    }

    /// Other addresses through which the page of code at `page` can be written to.
    pub fn aliases(&self, page: u64) -> Vec<u64> {
        let Some(b) = self.get(page).and_then(|r| r.backing).filter(|_| self.writes_through) else {
            return Vec::new();
        };
        let shows = |r: &Region| {
            let other = r.writes_through().filter(|o| o.file == b.file)?;
            let at = page.wrapping_sub(b.base).wrapping_add(other.base);
            (r.start <= at && at < r.end && at != page).then_some(at)
        };
        self.list.iter().filter_map(shows).collect()
    }

    /// Regions of code that the regions in `start..end` can write to.
    pub fn written_through(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let here = |r: &&Region| r.start < end && start < r.end;
        let files: Vec<(u64, u64)> =
            self.list.iter().filter(here).filter_map(|r| r.writes_through().map(|b| b.file)).collect();
        let is_code = |r: &&Region| u64::from(r.prot) & mm::PROT_EXEC != 0;
        let shows = |r: &&Region| r.backing.is_some_and(|b| files.contains(&b.file));
        self.list.iter().filter(is_code).filter(shows).map(|r| (r.start, r.end)).collect()
    }

    /// All regions.
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.list.iter()
    }

    /// Is nothing of the program's mapped in this range?
    pub fn is_free(&self, start: u64, end: u64) -> bool {
        self.list.get(self.find(start)).is_none_or(|r| r.start >= end)
    }

    /// Reads `/proc/self/maps`, leaving out ranges that belong to the engine.
    pub fn read_own(&mut self, engine: &[(u64, u64)]) {
        let mut text: Vec<u8> = Vec::new();
        read_file(b"/proc/self/maps\0", &mut text);
        for line in text.split(|b| *b == b'\n') {
            if let Some(r) = parse_line(line)
                && !engine.iter().any(|(s, e)| r.start >= *s && r.end <= *e)
                && r.start < 1 << 63
            {
                self.insert(r);
            }
        }
    }
}

fn same_kind(a: &Region, b: &Region) -> bool {
    a.prot == b.prot && a.backing == b.backing
}

/// Appends the contents of a file; does nothing if it cannot be read.
pub fn read_file(path_with_nul: &[u8], out: &mut Vec<u8>) {
    // SAFETY: the path ends with a nul byte, as the name says.
    let fd = unsafe { sys::call(sys::nr::OPEN, [path_with_nul.as_ptr() as u64, 0x80000, 0, 0, 0, 0]) };
    if sys::failed(fd) {
        return;
    }
    loop {
        let used = out.len();
        out.resize(used + 16384, 0);
        // SAFETY: reads into the part of `out` that was just made.
        let n =
            unsafe { sys::call(sys::nr::READ, [fd as u64, out[used..].as_mut_ptr() as u64, 16384, 0, 0, 0]) };
        out.truncate(used + n.max(0) as usize);
        if n <= 0 {
            break;
        }
    }
    // SAFETY: our own descriptor.
    unsafe { sys::call(sys::nr::CLOSE, [fd as u64, 0, 0, 0, 0, 0]) };
}

/// Parses `start-end perms ...`.
fn parse_line(line: &[u8]) -> Option<Region> {
    let mut fields = line.split(|b| *b == b' ');
    let mut range = fields.next()?.split(|b| *b == b'-');
    let start = hex(range.next()?)?;
    let end = hex(range.next()?)?;
    let perms = fields.next()?;
    let mut prot = 0;
    for (i, bit) in [(0, mm::PROT_READ), (1, mm::PROT_WRITE), (2, mm::PROT_EXEC)] {
        if *perms.get(i)? != b'-' {
            prot |= bit as u8;
        }
    }
    Some(Region { start, end, prot, backing: None })
}

fn hex(digits: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(list: &[(u64, u64, u8)]) -> Regions {
        let mut m = Regions::default();
        for &(start, end, prot) in list {
            m.insert(Region { start, end, prot, backing: None });
        }
        m
    }

    fn list(m: &Regions) -> Vec<(u64, u64, u8)> {
        m.iter().map(|r| (r.start, r.end, r.prot)).collect()
    }

    #[test]
    fn inserting_splits_and_merges() {
        let mut m = map(&[(0x1000, 0x5000, 1)]);
        m.insert(Region { start: 0x2000, end: 0x3000, prot: 5, backing: None });
        assert_eq!(list(&m), [(0x1000, 0x2000, 1), (0x2000, 0x3000, 5), (0x3000, 0x5000, 1)]);
        m.protect(0x2000, 0x3000, 1);
        assert_eq!(list(&m), [(0x1000, 0x5000, 1)]);
        m.remove(0x1000, 0x2000);
        m.remove(0x3000, 0x4000);
        assert_eq!(list(&m), [(0x2000, 0x3000, 1), (0x4000, 0x5000, 1)]);
    }

    #[test]
    fn protect_touches_only_what_is_mapped() {
        let mut m = map(&[(0x1000, 0x2000, 1), (0x3000, 0x4000, 3)]);
        m.protect(0x0, 0x3800, 5);
        assert_eq!(list(&m), [(0x1000, 0x2000, 5), (0x3000, 0x3800, 5), (0x3800, 0x4000, 3)]);
        assert_eq!(m.executable_end(0x1800), Some(0x2000));
        assert_eq!(m.executable_end(0x2800), None);
    }

    #[test]
    fn what_can_be_written_elsewhere_is_found() {
        let backing = |base, shared| Some(Backing { file: (1, 2), base, shared });
        let mut m = Regions::default();
        m.insert(Region { start: 0x5000, end: 0x8000, prot: 5, backing: backing(0x4000, true) });
        assert_eq!(m.aliases(0x6000), [] as [u64; 0]);
        m.insert(Region { start: 0x10000, end: 0x13000, prot: 3, backing: backing(0x10000, true) });
        assert_eq!(m.aliases(0x6000), [0x12000]);
        assert_eq!(m.aliases(0x7000), [] as [u64; 0], "the other mapping is shorter");
        assert_eq!(m.written_through(0x10000, 0x11000), [(0x5000, 0x8000)]);
        m.insert(Region { start: 0x10000, end: 0x13000, prot: 3, backing: backing(0x10000, false) });
        assert_eq!(m.aliases(0x6000), [] as [u64; 0], "private copies change nothing");
    }

    #[test]
    fn protecting_all_fills_gaps() {
        let mut m = map(&[(0x2000, 0x3000, 1)]);
        m.protect_all(0x1000, 0x4000, 7);
        assert_eq!(list(&m), [(0x1000, 0x4000, 7)]);
    }

    #[test]
    fn maps_lines_parse() {
        let r = parse_line(b"7f0000001000-7f0000003000 r-xp 00000000 08:01 42   /lib/x.so").unwrap();
        assert_eq!(r, Region { start: 0x7f0000001000, end: 0x7f0000003000, prot: 5, backing: None });
        assert_eq!(parse_line(b"garbage"), None);
    }
}
