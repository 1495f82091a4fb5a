//! The profile of one path: records by call site, with union in constant amortized time.
//!
//! A hybrid of a log and an array. Records go to the log until it holds as many as there are call sites (S);
//! then they move into an array of S records, and later ones go there directly. Each logged record pays two
//! tokens: one to be moved, one that stays with the array and pays for adding that array to another one. So
//! `update` and `union` take constant amortized time, and a profile takes O(S) space.
//!
//! Sites are discovered on the fly: an array shorter than S is treated as absent by `update`, and grows at the
//! next flush, which S more records have paid for.
//!
//! With [`FEW`] sites or less everything is constant: the log then has at most one record per site and there is
//! no array. That is what most programs are like.

use crate::record::Record;
use crate::{Site, line::Scale};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Up to this many sites, records are merged by looking at each.
pub const FEW: usize = 8;
/// Logs are chained, not copied, beyond this many records.
const CHUNK: usize = 16;

/// Records in no order; a site may have several.
#[derive(Debug, Clone)]
enum Log {
    Items(Vec<(Site, Record)>),
    Chain(Box<(Log, Log)>),
}

impl Default for Log {
    fn default() -> Self {
        Log::Items(Vec::new())
    }
}

/// Records by call site.
#[derive(Debug, Clone, Default)]
pub struct Prof {
    log: Log,
    logged: usize,
    array: Vec<Record>,
}

impl Prof {
    /// Nothing is known of any site.
    pub fn is_empty(&self) -> bool {
        self.logged == 0 && self.array.is_empty()
    }

    /// Adds `record` to what is known of `site`.
    #[inline]
    pub fn update(&mut self, site: Site, record: &Record, scale: Scale) {
        if scale.sites <= FEW
            && let Log::Items(items) = &mut self.log
        {
            match items.iter_mut().find(|(s, _)| *s == site) {
                Some((_, known)) => *known += record,
                None => {
                    items.push((site, *record));
                    self.logged += 1;
                }
            }
            return;
        }
        self.update_many(site, record, scale);
    }

    fn update_many(&mut self, site: Site, record: &Record, scale: Scale) {
        if self.array.len() >= scale.sites
            && let Some(known) = self.array.get_mut(site as usize)
        {
            *known += record;
            return;
        }
        self.logged += 1;
        match &mut self.log {
            Log::Items(items) if items.len() < CHUNK => items.push((site, *record)),
            log => {
                let one = Log::Items(Vec::from([(site, *record)]));
                *log = Log::Chain(Box::new((core::mem::take(log), one)));
            }
        }
        self.flush_if_full(scale);
    }

    /// Adds everything in `other`.
    pub fn union(&mut self, mut other: Prof, scale: Scale) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            *self = other;
            return;
        }
        if scale.sites <= FEW
            && let (Log::Items(_), Log::Items(items)) = (&self.log, &mut other.log)
        {
            for (site, record) in items.drain(..) {
                self.update(site, &record, scale);
            }
            other.logged = 0;
            return;
        }
        if self.array.len() < other.array.len() {
            core::mem::swap(&mut self.array, &mut other.array);
        }
        for (mine, theirs) in self.array.iter_mut().zip(&other.array) {
            *mine += theirs;
        }
        self.logged += other.logged;
        other.logged = 0;
        let theirs = core::mem::take(&mut other.log);
        match (&mut self.log, theirs) {
            (_, Log::Items(theirs)) if theirs.is_empty() => {}
            (Log::Items(mine), Log::Items(theirs)) if mine.len() + theirs.len() <= CHUNK => {
                mine.extend(theirs);
            }
            (mine, theirs) => *mine = Log::Chain(Box::new((core::mem::take(mine), theirs))),
        }
        self.flush_if_full(scale);
    }

    /// What is known of every site, by number.
    pub fn records(&self, sites: usize) -> Vec<Record> {
        let mut out = self.array.clone();
        out.resize(sites.max(out.len()), Record::default());
        self.for_each(|site, record| {
            if out.len() <= site as usize {
                out.resize(site as usize + 1, Record::default());
            }
            out[site as usize] += record;
        });
        out
    }

    fn for_each(&self, mut f: impl FnMut(Site, &Record)) {
        let mut todo = Vec::from([&self.log]);
        while let Some(log) = todo.pop() {
            match log {
                Log::Items(items) => items.iter().for_each(|(site, record)| f(*site, record)),
                Log::Chain(pair) => todo.extend([&pair.0, &pair.1]),
            }
        }
    }

    fn flush_if_full(&mut self, scale: Scale) {
        if self.logged >= scale.sites.max(CHUNK) {
            self.array = self.records(scale.sites);
            self.clear_log();
        }
    }

    /// Frees a chain without recursion: it may be as long as there are sites.
    fn clear_log(&mut self) {
        self.logged = 0;
        if let Log::Items(items) = &mut self.log {
            items.clear();
            return;
        }
        let mut todo = Vec::from([core::mem::take(&mut self.log)]);
        while let Some(log) = todo.pop() {
            if let Log::Chain(pair) = log {
                todo.extend([pair.0, pair.1]);
            }
        }
    }
}

impl Drop for Prof {
    fn drop(&mut self) {
        if matches!(self.log, Log::Chain(_)) {
            self.clear_log();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Measure;

    fn record(n: u64) -> Record {
        let m = Measure { count: 1, work: n, span: n / 2 };
        Record { site: m, caller: m, local: m }
    }

    #[test]
    fn sites_may_appear_at_any_time_and_sums_are_right() {
        // The same sequence of operations on profiles and on plain arrays, with a growing number of sites.
        let mut seed = 7_u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let mut profs: Vec<Prof> = (0..6).map(|_| Prof::default()).collect();
        let mut plain: Vec<Vec<Record>> = (0..6).map(|_| alloc::vec![Record::default(); 100]).collect();
        for step in 0..20_000_u64 {
            let scale = Scale { sites: (1 + step / 300).min(60) as usize, heavy: 0 };
            let (a, b) = (next(6) as usize, next(6) as usize);
            match next(8) {
                0 if a != b => {
                    let theirs = core::mem::take(&mut profs[b]);
                    profs[a].union(theirs, scale);
                    let theirs = core::mem::replace(&mut plain[b], alloc::vec![Record::default(); 100]);
                    plain[a].iter_mut().zip(&theirs).for_each(|(m, t)| *m += t);
                }
                1 if next(20) == 0 => {
                    profs[a] = Prof::default();
                    plain[a] = alloc::vec![Record::default(); 100];
                }
                _ => {
                    let site = next(scale.sites as u64) as u32;
                    let r = record(next(1000));
                    profs[a].update(site, &r, scale);
                    plain[a][site as usize] += &r;
                }
            }
            assert!(profs[a].logged <= 2 * scale.sites.max(CHUNK), "a log must stay of the order of S");
        }
        for (prof, plain) in profs.iter().zip(&plain) {
            assert_eq!(&prof.records(100), plain);
        }
    }

    #[test]
    fn a_very_long_chain_is_freed() {
        let scale = Scale { sites: 1_000_000, heavy: 0 };
        let mut prof = Prof::default();
        for i in 0..900_000 {
            prof.update(i, &record(1), scale);
        }
        assert_eq!(prof.records(0).iter().filter(|r| !r.is_empty()).count(), 900_000);
    }
}
