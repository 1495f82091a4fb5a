//! Work and span: how parallel a run was, in all and per call site.
//!
//! Canonical form, which [`Span::validate`] checks and [`Span::normalize`] brings about: sites strictly ordered by
//! (file, line, function, callee, kind); steps of the critical path refer to sites by their place in that order.

use crate::canon::Invalid;

/// Which parallel runtime the program used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Model {
    /// None that was seen: one strand.
    #[default]
    Serial,
    /// Rust's rayon.
    Rayon,
    /// OpenMP.
    OpenMp,
    /// Cilk.
    Cilk,
}

/// What costs are counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Ns,
    /// Executed instructions.
    Instructions,
    /// What the program itself reported.
    Units,
}

/// How a site invokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SiteKind {
    /// Its caller waits.
    #[default]
    Call,
    /// In parallel with its caller or a sibling.
    Spawn,
    /// Iterations in parallel.
    Loop,
    /// A call that is known from samples: its counts are numbers of samples.
    Sampled,
}

/// Sums over a set of invocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    /// How many.
    pub count: u64,
    /// Their work.
    pub work: u64,
    /// Their spans.
    pub span: u64,
}

/// Three measurements of a site, each right for recursion in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measures {
    /// Invocations not nested in another one of the same site.
    pub site: Measure,
    /// Invocations from a caller that is not nested in itself.
    pub caller: Measure,
    /// All invocations, without what they invoked.
    pub local: Measure,
}

/// One call site.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Site {
    /// Source file, empty when not known.
    pub file: String,
    /// Source line, 0 when not known.
    pub line: u32,
    /// The function that contains it.
    pub function: String,
    /// What it invokes.
    pub callee: String,
    /// How.
    pub kind: SiteKind,
    /// Over all invocations.
    pub on_work: Measures,
    /// Over those on the critical path.
    pub on_span: Measures,
    /// The program's span if the site's own code were 2, 10 and infinitely many times faster.
    pub faster: [u64; 3],
}

/// A piece of the critical path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Step {
    /// The site that most of it belongs to.
    pub site: u64,
    /// Its length.
    pub span: u64,
    /// The part that belongs to the site itself.
    pub own: u64,
    /// Strands in it.
    pub strands: u64,
}

/// Native runs with a number of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Processors that the program could use.
    pub processors: u64,
    /// How long they took: the median.
    pub wall_ns: u64,
    /// The shortest and the longest.
    pub range_ns: (u64, u64),
    /// How many there were; 0 if that is not known.
    pub runs: u64,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// The parallel runtime.
    pub model: Model,
    /// What costs are in.
    pub unit: Unit,
    /// Cost of everything.
    pub work: u64,
    /// Cost of the longest path of dependencies.
    pub span: u64,
    /// The same when each fork costs `burden` on both branches.
    pub burdened_span: u64,
    /// What handing a task to another processor costs.
    pub burden: u64,
    /// What a fork costs more with two workers than with one, in thousandths of the unit; 0 if that is not known.
    pub fork_extra_milli: u64,
    /// Forks.
    pub spawns: u64,
    /// Threads that took part.
    pub threads: u64,
    /// Strands from which time lost to preemption was taken off.
    pub repaired: u64,
    /// Call sites.
    pub sites: Vec<Site>,
    /// The critical path from start to end.
    pub path: Vec<Step>,
    /// Native runs, ascending in processors.
    pub measured: Vec<Measured>,
}

impl Site {
    fn order(&self) -> (&str, u32, &str, &str, SiteKind) {
        (&self.file, self.line, &self.function, &self.callee, self.kind)
    }
}

impl Measure {
    fn absorb(&mut self, other: &Measure) {
        self.count = self.count.saturating_add(other.count);
        self.work = self.work.saturating_add(other.work);
        self.span = self.span.saturating_add(other.span);
    }

    /// Work over span; 1 when there is no span.
    pub fn parallelism(&self) -> f64 {
        if self.span == 0 { 1.0 } else { self.work as f64 / self.span as f64 }
    }
}

impl Measures {
    fn absorb(&mut self, other: &Measures) {
        self.site.absorb(&other.site);
        self.caller.absorb(&other.caller);
        self.local.absorb(&other.local);
    }
}

impl Span {
    /// Work over span; 1 when there is no span.
    pub fn parallelism(&self) -> f64 {
        Measure { count: 1, work: self.work, span: self.span }.parallelism()
    }

    /// Work over burdened span.
    pub fn burdened_parallelism(&self) -> f64 {
        Measure { count: 1, work: self.work, span: self.burdened_span }.parallelism()
    }

    /// Checks the canonical form.
    pub fn validate(&self) -> Result<(), Invalid> {
        if !self.sites.is_sorted_by(|a, b| a.order() < b.order()) {
            return Err(Invalid::Whole("call sites must be strictly ordered by place and name"));
        }
        if self.path.iter().any(|s| usize::try_from(s.site).map_or(true, |s| s >= self.sites.len())) {
            return Err(Invalid::Whole("the critical path must refer to sites that exist"));
        }
        if !self.measured.is_sorted_by(|a, b| a.processors < b.processors) {
            return Err(Invalid::Whole("native runs must be strictly ascending in processors"));
        }
        Ok(())
    }

    /// Leaves out sites that were looked up and never invoked: they say nothing.
    pub fn drop_uninvoked(&mut self) {
        let mut says = vec![false; self.sites.len()];
        for (says, site) in says.iter_mut().zip(&self.sites) {
            *says = [site.on_work, site.on_span].iter().any(|m| *m != Measures::default());
        }
        for step in &self.path {
            if let Some(says) = usize::try_from(step.site).ok().and_then(|s| says.get_mut(s)) {
                *says = true;
            }
        }
        let (mut kept, mut places) = (0, Vec::with_capacity(says.len()));
        for says in &says {
            places.push(kept);
            kept += u64::from(*says);
        }
        for step in &mut self.path {
            step.site = usize::try_from(step.site).ok().and_then(|s| places.get(s)).copied().unwrap_or(kept);
        }
        let mut says = says.iter();
        self.sites.retain(|_| says.next().is_some_and(|says| *says));
    }

    /// Brings it into canonical form: sorts, and adds what has the same identity.
    pub fn normalize(&mut self) {
        let mut order: Vec<usize> = (0..self.sites.len()).collect();
        order.sort_by(|&a, &b| self.sites[a].order().cmp(&self.sites[b].order()));
        let mut places = vec![0; self.sites.len()];
        let mut sites: Vec<Site> = Vec::new();
        for old in order {
            let site = &self.sites[old];
            match sites.last_mut() {
                Some(last) if last.order() == site.order() => {
                    last.on_work.absorb(&site.on_work);
                    last.on_span.absorb(&site.on_span);
                    for (kept, other) in last.faster.iter_mut().zip(site.faster) {
                        *kept = kept.saturating_sub(self.span.saturating_sub(other));
                    }
                }
                _ => sites.push(site.clone()),
            }
            places[old] = sites.len() as u64 - 1;
        }
        self.sites = sites;
        self.path.retain_mut(|step| {
            let place = usize::try_from(step.site).ok().and_then(|s| places.get(s));
            step.site = place.copied().unwrap_or_default();
            place.is_some()
        });
        self.measured.sort_by_key(|m| m.processors);
        self.measured.dedup_by_key(|m| m.processors);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_of_one_line_are_one_and_the_path_follows() {
        let site = |line, count| Site {
            line,
            faster: [90, 80, 70],
            on_work: Measures { site: Measure { count, work: 1, span: 1 }, ..Measures::default() },
            ..Site::default()
        };
        let mut span = Span {
            span: 100,
            sites: vec![site(9, 1), site(3, 2), site(9, 4)],
            path: vec![Step { site: 2, ..Step::default() }, Step { site: 1, ..Step::default() }],
            ..Span::default()
        };
        assert!(span.validate().is_err());
        span.normalize();
        assert_eq!(span.validate(), Ok(()));
        let counts: Vec<_> = span.sites.iter().map(|s| (s.line, s.on_work.site.count)).collect();
        assert_eq!(counts, [(3, 2), (9, 5)]);
        assert_eq!(span.path.iter().map(|s| s.site).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(span.sites[1].faster, [80, 60, 40], "what both save");
    }

    #[test]
    fn sites_that_say_nothing_go_and_the_path_follows() {
        let site = |line, count| Site {
            line,
            on_work: Measures { site: Measure { count, work: 1, span: 1 }, ..Measures::default() },
            ..Site::default()
        };
        let silent = |line| Site { line, ..Site::default() };
        let mut span = Span {
            sites: vec![silent(1), site(2, 1), silent(3), silent(4), site(5, 1)],
            path: [4, 3, 1, 9].map(|site| Step { site, ..Step::default() }).to_vec(),
            ..Span::default()
        };
        span.drop_uninvoked();
        assert_eq!(span.sites.iter().map(|s| s.line).collect::<Vec<_>>(), [2, 4, 5]);
        assert_eq!(span.path.iter().map(|s| s.site).collect::<Vec<_>>(), [2, 1, 0, 3], "3 is none, as 9 was");
    }
}
