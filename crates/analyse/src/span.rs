//! What work and span mean: bounds on speedup, what a faster or more parallel site would gain, and whether tasks are
//! large enough to be worth handing over.

use profile::span::{Site, SiteKind, Span, Unit};

/// Greedy and work-stealing schedulers lose at most this many burdened spans; the coefficient that Cilkview found.
const SPAN_COEFFICIENT: f64 = 1.7;
/// Processor counts for which bounds are told.
pub const PROCESSORS: [u64; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];
/// A task should be this many times what handing it over costs.
const GRAIN: u64 = 10;

/// Bounds on the speedup with a number of processors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// How many.
    pub processors: u64,
    /// What a work-stealing scheduler should reach.
    pub lower: f64,
    /// What no scheduler can exceed.
    pub upper: f64,
}

/// The speedup with `processors`. At least, if forks cost what they do with two workers, which is more than with one.
pub fn bound(span: &Span, processors: u64) -> Bound {
    let (work, p) = (span.work.max(1) as f64, processors as f64);
    let crowded =
        if processors > 1 { span.spawns as f64 * span.fork_extra_milli as f64 / 1000.0 } else { 0.0 };
    let slow = (work + crowded) / p + (1.0 - 1.0 / p) * SPAN_COEFFICIENT * span.burdened_span as f64;
    Bound { processors, lower: work / slow, upper: p.min(span.parallelism()) }
}

/// The bounds for [`PROCESSORS`].
pub fn bounds(span: &Span) -> Vec<Bound> {
    PROCESSORS.iter().map(|&p| bound(span, p)).collect()
}

/// What a change of one site would do to the program, by factor 2, 10 and without limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WhatIf {
    /// Parallelism if the site's own code were that much faster.
    pub faster: [f64; 3],
    /// Parallelism if it were that much more parallel: the same work, a shorter span.
    pub parallel: [f64; 3],
    /// The span, in either case.
    pub span: [u64; 3],
}

/// The factors of [`WhatIf`]; 0 is without limit.
pub const FACTORS: [u64; 3] = [2, 10, 0];

/// What changing `site` would do.
pub fn what_if(span: &Span, site: &Site) -> WhatIf {
    let local = site.on_work.local.work;
    let ratio = |work: u64, span: u64| if span == 0 { 1.0 } else { work as f64 / span as f64 };
    let each = |f: &dyn Fn(usize) -> f64| [f(0), f(1), f(2)];
    WhatIf {
        faster: each(&|i| {
            let saved = local - local.checked_div(FACTORS[i]).unwrap_or(0);
            ratio(span.work.saturating_sub(saved), site.faster[i])
        }),
        parallel: each(&|i| ratio(span.work, site.faster[i])),
        span: site.faster,
    }
}

/// The share of the program's span that is the site's own code.
pub fn share(span: &Span, site: &Site) -> f64 {
    if span.span == 0 { 0.0 } else { site.on_span.local.span as f64 / span.span as f64 }
}

/// The sites, those that hold most of the span first.
pub fn ranked(span: &Span) -> Vec<&Site> {
    let mut sites: Vec<&Site> = span.sites.iter().collect();
    sites.sort_by_key(|s| std::cmp::Reverse((s.on_span.local.span, s.on_work.local.work)));
    sites
}

/// What to do about a site, if anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Advice {
    /// Its tasks are too small: mean own cost of a task, and the least that would be worth it.
    LargerTasks {
        /// Mean own cost now.
        mean: u64,
        /// Worth it from here.
        least: u64,
    },
    /// It is serial code that holds the span: its share, and the parallelism without it.
    Parallelize {
        /// Of the program's span.
        share: f64,
        /// Of the program, with the site's own span gone.
        parallelism: f64,
    },
}

/// What to do about `site`.
pub fn advice(span: &Span, site: &Site) -> Option<Advice> {
    let share = share(span, site);
    let gain = what_if(span, site).parallel[2];
    if share >= 0.1 && gain >= 1.2 * span.parallelism() {
        return Some(Advice::Parallelize { share, parallelism: gain });
    }
    let tasks = site.on_work.local;
    let mean = tasks.work.checked_div(tasks.count)?;
    let matters = tasks.work.saturating_add(tasks.count.saturating_mul(span.burden)) > span.work / 20;
    let forks = matches!(site.kind, SiteKind::Spawn | SiteKind::Loop);
    (forks && span.unit == Unit::Ns && matters && tasks.count > 16 && mean < span.burden)
        .then(|| Advice::LargerTasks { mean, least: span.burden * GRAIN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::span::{Measure, Measures};

    fn sample() -> Span {
        let local =
            |work, span| Measures { local: Measure { count: 100, work, span }, ..Measures::default() };
        let site = |line, work, on_span, faster, kind| Site {
            line,
            on_work: local(work, work),
            on_span: local(on_span, on_span),
            faster,
            kind,
            ..Site::default()
        };
        Span {
            work: 1000,
            span: 100,
            burdened_span: 120,
            burden: 9,
            sites: vec![
                site(1, 400, 80, [60, 28, 20], SiteKind::Call),
                site(2, 600, 20, [95, 92, 90], SiteKind::Spawn),
            ],
            ..Span::default()
        }
    }

    #[test]
    fn bounds_follow_work_and_span() {
        let span = sample();
        let one = bound(&span, 1);
        assert_eq!((one.lower, one.upper), (1.0, 1.0));
        assert_eq!(bound(&span, 64).upper, 10.0, "never more than the parallelism");
        let many = bounds(&span);
        assert!(many.windows(2).all(|w| w[0].lower <= w[1].lower && w[1].lower <= w[1].upper));
    }

    #[test]
    fn forks_cost_more_with_thieves_about() {
        let free = sample();
        let span = Span { spawns: 100, fork_extra_milli: 500, ..sample() };
        assert_eq!(bound(&span, 1), bound(&free, 1));
        // 1000 + 100 forks of 0.5 each on two processors, and half of 1.7 burdened spans.
        assert_eq!(bound(&span, 2).lower, 1000.0 / (1050.0 / 2.0 + 0.5 * 1.7 * 120.0));
        assert_eq!(bound(&span, 2).upper, bound(&free, 2).upper);
    }

    #[test]
    fn a_faster_site_has_less_work_and_a_parallel_one_has_not() {
        let span = sample();
        let w = what_if(&span, &span.sites[0]);
        assert_eq!(w.faster[0], 800.0 / 60.0);
        assert_eq!(w.faster[2], 600.0 / 20.0);
        assert_eq!(w.parallel[2], 1000.0 / 20.0);
    }

    #[test]
    fn the_serial_site_is_to_be_parallelized_and_the_small_tasks_to_be_larger() {
        let span = sample();
        assert_eq!(ranked(&span)[0].line, 1);
        assert_eq!(
            advice(&span, &span.sites[0]),
            Some(Advice::Parallelize { share: 0.8, parallelism: 50.0 })
        );
        assert_eq!(advice(&span, &span.sites[1]), Some(Advice::LargerTasks { mean: 6, least: 90 }));
    }
}
