//! What is worth keeping only of long paths: the list of their strands, and how long they would be if one site
//! were faster.
//!
//! A path is "heavy" once it is long enough to pay for work of the order of the number of sites; see
//! [`crate::Scale`]. From then on, `faster[s][k]` is the length of the longest path *of the program in which the
//! own code of site s is `FACTORS[k]` times faster*: at every join of heavy paths the maximum is taken again for
//! each s and k, so a path that is not the longest now, but would be then, is not forgotten. Inside light
//! subcomputations the longest path stays the longest one; that is exact where all paths through them pass
//! the same sites, and off by less than the weight limit per join otherwise.

use crate::record::Record;
use crate::{Cost, Site};
use alloc::vec::Vec;

/// How many times faster a site is imagined to be; 0 stands for infinitely.
pub const FACTORS: [u64; 3] = [2, 10, 0];
/// A path is told in at most this many steps.
pub const STEPS_MAX: usize = 64;

/// A piece of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// The site whose own strands make up most of it.
    pub site: Site,
    /// Its length.
    pub span: Cost,
    /// The part of it that belongs to `site`.
    pub own: Cost,
    /// How many pieces were put together.
    pub strands: u64,
}

/// What is known of a heavy path.
#[derive(Debug, Clone, Default)]
pub struct Detail {
    /// Length of the path.
    pub span: Cost,
    /// By site and factor; sites beyond its end do not shorten the path.
    faster: Vec<[Cost; FACTORS.len()]>,
    /// The path from its start to its end.
    pub steps: Vec<Step>,
}

/// `cost` if it were `factor` times faster.
pub fn divided(cost: Cost, factor: u64) -> Cost {
    cost.checked_div(factor).unwrap_or(0)
}

impl Detail {
    /// Of a path of which only the records are known, and the strands of its own site that have none yet.
    pub fn new(span: Cost, records: &[Record], own: Site, own_span: Cost) -> Self {
        let mut steps = Vec::new();
        let mut faster = Vec::with_capacity(records.len().max(own as usize + 1));
        let mut main = Step { site: own, span, own: own_span, strands: 1 };
        for site in 0..records.len().max(own as usize + 1) {
            let mut local = records.get(site).map_or(0, |r| r.local.span);
            let count = records.get(site).map_or(0, |r| r.local.count);
            if site == own as usize {
                local += own_span;
            }
            main.strands += count;
            if local > main.own || (local == main.own && site == own as usize) {
                (main.site, main.own) = (site as Site, local);
            }
            faster.push(FACTORS.map(|k| (span + divided(local, k)).saturating_sub(local)));
        }
        if span > 0 {
            steps.push(main);
        }
        Self { span, faster, steps }
    }

    /// The length of the path if `site` were faster by each of [`FACTORS`].
    pub fn faster(&self, site: Site) -> [Cost; FACTORS.len()] {
        self.faster.get(site as usize).copied().unwrap_or([self.span; FACTORS.len()])
    }

    /// Adds a strand of `own` at the end.
    pub fn strand(&mut self, own: Site, span: Cost) {
        if span == 0 {
            return;
        }
        self.reach(own as usize + 1);
        self.faster.iter_mut().flatten().for_each(|f| *f += span);
        for (f, k) in self.faster[own as usize].iter_mut().zip(FACTORS) {
            *f = *f - span + divided(span, k);
        }
        self.span += span;
        self.push(Step { site: own, span, own: span, strands: 1 });
    }

    /// Adds a path at the end.
    pub fn append(&mut self, other: &Detail) {
        self.reach(other.faster.len());
        for (site, mine) in self.faster.iter_mut().enumerate() {
            let theirs = other.faster(site as Site);
            mine.iter_mut().zip(theirs).for_each(|(m, t)| *m += t);
        }
        self.span += other.span;
        for &step in &other.steps {
            self.push(step);
        }
    }

    /// Another path joins this one here, having started `before` earlier (if given) relative to this path's
    /// start; this one stays the longest, but need not be if a site were faster.
    pub fn rival(&mut self, other: &Detail, before: Option<&Detail>) {
        self.reach(other.faster.len().max(before.map_or(0, |b| b.faster.len())));
        for site in 0..self.faster.len() {
            let mut theirs = other.faster(site as Site);
            if let Some(before) = before {
                theirs.iter_mut().zip(before.faster(site as Site)).for_each(|(t, b)| *t += b);
            }
            self.faster[site].iter_mut().zip(theirs).for_each(|(m, t)| *m = (*m).max(t));
        }
    }

    /// As [`rival`](Self::rival), for a path that started `before` *later*: what it lacks is taken off.
    pub fn rival_after(&mut self, other: &Detail, before: &Detail) {
        self.reach(other.faster.len().max(before.faster.len()));
        for site in 0..self.faster.len() {
            let theirs = other.faster(site as Site);
            let lacks = before.faster(site as Site);
            for k in 0..FACTORS.len() {
                self.faster[site][k] = self.faster[site][k].max(theirs[k].saturating_sub(lacks[k]));
            }
        }
    }

    fn reach(&mut self, sites: usize) {
        if self.faster.len() < sites {
            self.faster.resize(sites, [self.span; FACTORS.len()]);
        }
    }

    fn push(&mut self, step: Step) {
        match self.steps.last_mut() {
            Some(last) if last.site == step.site => {
                last.span += step.span;
                last.own += step.own;
                last.strands += step.strands;
            }
            _ => self.steps.push(step),
        }
        if self.steps.len() > STEPS_MAX {
            self.shorten();
        }
    }

    /// Puts together the two neighbours that are the least to see.
    fn shorten(&mut self) {
        let sum = |i: usize| self.steps[i].span + self.steps[i + 1].span;
        let Some(at) = (0..self.steps.len() - 1).min_by_key(|&i| sum(i)) else { return };
        let b = self.steps.remove(at + 1);
        let a = &mut self.steps[at];
        let merged = if a.own >= b.own { *a } else { b };
        *a = Step { span: a.span + b.span, strands: a.strands + b.strands, ..merged };
    }
}
