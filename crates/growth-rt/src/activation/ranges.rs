//! Accesses of many cells at once: repeated string instructions, buffers of system calls.
//!
//! Cells next to each other mostly have one history: who wrote a buffer wrote all of it. So what is decided for a cell
//! is decided for the run of cells with the same stamp or mark that it begins. The result is that of the cells one by
//! one; `tests/ranges.rs` compares.
//!
//! Two stamps or eight marks are loaded and stored at once, as emitted code does. Other threads may take stamps away
//! meanwhile (they become 0), but nobody else gives them.

use super::{Local, both};
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use inputsize::Cell;
use inputsize::core::shadow::{Mark, PAGE_CELLS, Page, Shadow, Sharers};
use wire::growth::Metric;

impl Local {
    /// A read of a range that is not checked inline.
    pub fn read(&mut self, address: u64, bytes: u64) {
        if !self.is_folded() {
            for (first, cells) in self.process.map.touched(address, bytes) {
                self.read_piece(first, cells);
            }
        }
    }

    /// A write likewise.
    pub fn write(&mut self, address: u64, bytes: u64) {
        if !self.is_folded() {
            let now = self.frame(self.top()).top as u32;
            for (first, cells) in self.process.map.touched(address, bytes) {
                if self.process.metric != Metric::Rms {
                    self.own_marks(first, cells);
                }
                fill(self.process.map.stamps(self.slot, first, cells), now);
            }
        }
    }

    /// The kernel wrote on behalf of this thread.
    pub fn kernel_write(&mut self, address: u64, bytes: u64) {
        if !self.is_folded() && self.process.metric != Metric::Rms {
            for (first, cells) in self.process.map.touched(address, bytes) {
                on_pages(first, cells, |first, cells| self.kernel_writes(first, cells));
            }
        }
    }

    fn read_piece(&mut self, first: u64, cells: u64) {
        let stamps = self.process.map.stamps(self.slot, first, cells);
        let now = self.frame(self.top()).top as u32;
        let mut at = 0;
        loop {
            at += known(&stamps[at..], now);
            let Some(old) = stamps.get(at).map(|stamp| stamp.load(Relaxed)) else { break };
            let run = replace(&stamps[at..], old, now);
            self.first_reads(first + at as u64, run as u64, old);
            at += run;
        }
    }

    /// First reads of cells that had the same stamp, and have the top's now.
    fn first_reads(&mut self, first: u64, cells: u64, stamp: u32) {
        let top = self.top();
        self.frame(top).own += cells;
        // SAFETY: the top is the root or above it, and the sentinel lies below the root.
        let near = stamp >= self.frame(unsafe { top.sub(1) }).stamp as u32;
        if near {
            return;
        }
        self.far(stamp, cells as i64);
        if stamp == 0 && self.process.metric != Metric::Rms {
            (first..first + cells).for_each(|cell| self.first_stamp(Cell(cell)));
        }
    }

    /// Before a write: the marks become the thread's own, and others lose their stamps.
    fn own_marks(&mut self, first: u64, cells: u64) {
        let me = Mark::exclusive(self.slot);
        let marks = self.process.map.marks_of(first, cells);
        let mut at = 0;
        while at < marks.len() {
            if me.is_exclusive() {
                at += marked(&marks[at..], me);
            }
            if at < marks.len() {
                at += self.own_some(first + at as u64, &marks[at..]);
            }
        }
    }

    /// The same for the first of these marks, which is not the thread's own, and those behind it that can be decided
    /// with it. Returns how many.
    fn own_some(&mut self, first: u64, marks: &[AtomicU8]) -> usize {
        let map = &self.process.map;
        let (page, own) = (Page::from(Cell(first)), Sharers::of(self.slot));
        // Bit 63 stands for several.
        if self.slot >= 63 || map.sharers(page) != own {
            self.before_write(Cell(first));
            return 1;
        }
        // Nobody else holds stamps on the page.
        let rest = marks.len().min((PAGE_CELLS - first % PAGE_CELLS) as usize);
        mark(&marks[..rest], Mark::exclusive(self.slot));
        rest
    }

    /// The kernel wrote cells of one page.
    fn kernel_writes(&self, first: u64, cells: u64) {
        let map = &self.process.map;
        for slot in map.sharers(Cell(first).into()).slots(map.slots()) {
            let stamps = map.stamps(slot, first, cells);
            let mut at = 0;
            loop {
                at += same(&stamps[at..], 0);
                let Some(stamp) = stamps.get(at) else { break };
                let lost = stamp.load(Relaxed);
                if lost != 0 {
                    map.set_lost(slot, Cell(first + at as u64), lost);
                    stamp.store(0, Relaxed);
                }
                at += 1;
            }
        }
        mark(map.marks_of(first, cells), Mark::KERNEL);
    }
}

/// Calls `each` with the parts of a piece on the pages of the shadow that it touches.
fn on_pages(first: u64, cells: u64, mut each: impl FnMut(u64, u64)) {
    let (mut at, end) = (first, first + cells);
    while at < end {
        let stop = end.min((at / PAGE_CELLS + 1) * PAGE_CELLS);
        each(at, stop - at);
        at = stop;
    }
}

/// How many of the first stamps are `now` or newer.
fn known(stamps: &[AtomicU32], now: u32) -> usize {
    let all = both(now);
    let one = |stamp: &AtomicU32| stamp.load(Relaxed) >= now;
    prefix(stamps, one, |pair| {
        let pair = pair.load(Relaxed);
        pair == all || pair as u32 >= now && (pair >> 32) as u32 >= now
    })
}

/// How many of the first stamps are this one.
fn same(stamps: &[AtomicU32], stamp: u32) -> usize {
    let all = both(stamp);
    prefix(stamps, |one| one.load(Relaxed) == stamp, |pair| pair.load(Relaxed) == all)
}

/// Makes the first stamps `now`, as long as they are `old`. Returns how many; one at least, as the first one was `old`.
fn replace(stamps: &[AtomicU32], old: u32, now: u32) -> usize {
    let (all_old, all_now) = (both(old), both(now));
    let one = |stamp: &AtomicU32| {
        let is_old = stamp.load(Relaxed) == old;
        if is_old {
            stamp.store(now, Relaxed);
        }
        is_old
    };
    let replaced = prefix(stamps, one, |pair| {
        let is_old = pair.load(Relaxed) == all_old;
        if is_old {
            pair.store(all_now, Relaxed);
        }
        is_old
    });
    replaced.max(1)
}

/// Makes all stamps this one.
fn fill(stamps: &[AtomicU32], stamp: u32) {
    let all = both(stamp);
    let (odd, pairs, rest) = in_pairs(stamps);
    odd.iter().chain(rest).for_each(|one| one.store(stamp, Relaxed));
    pairs.iter().for_each(|pair| pair.store(all, Relaxed));
}

/// How many of the first stamps do, one by one or in pairs.
fn prefix(stamps: &[AtomicU32], one: impl Fn(&AtomicU32) -> bool, two: impl Fn(&AtomicU64) -> bool) -> usize {
    let (odd, pairs, _) = in_pairs(stamps);
    if !odd.iter().all(&one) {
        return 0;
    }
    let at = odd.len() + 2 * pairs.iter().take_while(|pair| two(pair)).count();
    // What is left is a single one, or begins with a pair of which one at most does.
    at + stamps[at..].iter().take(2).take_while(|stamp| one(stamp)).count()
}

fn in_pairs(stamps: &[AtomicU32]) -> (&[AtomicU32], &[AtomicU64], &[AtomicU32]) {
    // SAFETY: numbers that may change at any time, as both types say.
    unsafe { stamps.align_to() }
}

fn in_eights(marks: &[AtomicU8]) -> (&[AtomicU8], &[AtomicU64], &[AtomicU8]) {
    // SAFETY: as above.
    unsafe { marks.align_to() }
}

/// How many of the first marks are this one.
fn marked(marks: &[AtomicU8], mark: Mark) -> usize {
    let all = eight(mark);
    let one = |found: &&AtomicU8| found.load(Relaxed) == mark.0;
    let (odd, eights, _) = in_eights(marks);
    let n = odd.iter().take_while(one).count();
    if n < odd.len() {
        return n;
    }
    let at = n + 8 * eights.iter().take_while(|found| found.load(Relaxed) == all).count();
    at + marks[at..].iter().take_while(one).count()
}

/// Makes all marks this one.
fn mark(marks: &[AtomicU8], mark: Mark) {
    let all = eight(mark);
    let (odd, eights, rest) = in_eights(marks);
    odd.iter().chain(rest).for_each(|one| one.store(mark.0, Relaxed));
    eights.iter().for_each(|some| some.store(all, Relaxed));
}

/// A mark in all eight bytes.
fn eight(mark: Mark) -> u64 {
    u64::from(mark.0) * 0x0101_0101_0101_0101
}
