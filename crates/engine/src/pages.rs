//! Which blocks were made from which pages, for flushing.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

/// log2 of the page size.
pub const PAGE_SHIFT: u32 = 12;

/// Collects the distinct pages of some instructions, (address, length) each. Superblocks follow jumps, so they are
/// few but may lie far apart.
pub fn distinct(insns: impl Iterator<Item = (u64, usize)>, out: &mut Vec<u64>) {
    out.clear();
    let mut last = u64::MAX;
    for (pc, len) in insns {
        let pages = [pc & !0xfff, (pc + len.max(1) as u64 - 1) & !0xfff];
        if pages == [last; 2] {
            continue;
        }
        for page in pages {
            if !out.contains(&page) {
                out.push(page);
            }
        }
        last = pages[1];
    }
}

/// Pages whose blocks are collected before they are put away.
const RECENT: usize = 16;

/// Blocks by page of program code.
#[derive(Default)]
pub struct Pages {
    map: BTreeMap<u64, Vec<u32>>,
    /// Blocks of pages that were noted lately, not yet in `map`, by the pages' last bits.
    recent: [(u64, Vec<u32>); RECENT],
    protected: BTreeSet<u64>,
    /// Pages of code by the other addresses at which they can be written to, which lost write permission for them.
    aliases: BTreeMap<u64, Vec<u64>>,
}

impl Pages {
    /// Block `id` was made from bytes of this page.
    pub fn note(&mut self, page: u64, id: u32) {
        let i = (page >> PAGE_SHIFT) as usize % RECENT;
        if self.recent[i].0 != page {
            self.settle(i);
            self.recent[i].0 = page;
        }
        self.recent[i].1.push(id);
    }

    /// Moves what is in one place of `recent` to its own.
    fn settle(&mut self, i: usize) {
        let (page, ids) = &mut self.recent[i];
        if !ids.is_empty() {
            self.map.entry(*page >> PAGE_SHIFT).or_default().append(ids);
        }
    }

    fn settle_all(&mut self) {
        (0..RECENT).for_each(|i| self.settle(i));
    }

    /// Takes out all blocks of pages that touch `start..end`.
    pub fn take(&mut self, start: u64, end: u64) -> Vec<u32> {
        self.settle_all();
        let mut ids = Vec::new();
        let range = start >> PAGE_SHIFT..(end + 0xfff) >> PAGE_SHIFT;
        while let Some((&page, _)) = self.map.range(range.clone()).next() {
            ids.extend(self.map.remove(&page).unwrap_or_default());
            self.protected.remove(&(page << PAGE_SHIFT));
        }
        ids
    }

    /// Notes that write permission is taken from a page; false if it was already.
    pub fn protect(&mut self, page: u64) -> bool {
        self.protected.insert(page)
    }

    /// Notes that `alias` shows the page of code `page`; true if write permission is still to be taken from it.
    pub fn protect_alias(&mut self, alias: u64, page: u64) -> bool {
        let pages = self.aliases.entry(alias).or_default();
        if !pages.contains(&page) {
            pages.push(page);
        }
        self.protected.insert(alias)
    }

    /// The pages of code that can be written to at `page`; it has its permission again.
    pub fn take_aliased(&mut self, page: u64) -> Vec<u64> {
        let pages = self.aliases.remove(&page).unwrap_or_default();
        if !pages.is_empty() {
            self.protected.remove(&page);
        }
        pages
    }

    /// Has write permission been taken from this page?
    pub fn is_protected(&self, page: u64) -> bool {
        self.protected.contains(&page)
    }

    /// All pages without the write permission that the program asked for.
    pub fn protected(&self) -> impl Iterator<Item = u64> {
        self.protected.iter().copied()
    }

    /// All pages have the permission that the program asked for again.
    pub fn open_all(&mut self) {
        self.protected.clear();
        self.aliases.clear();
    }

    /// Has any block been made from a page in this range?
    pub fn any(&mut self, start: u64, end: u64) -> bool {
        self.settle_all();
        self.map.range(start >> PAGE_SHIFT..(end + 0xfff) >> PAGE_SHIFT).next().is_some()
    }
}
