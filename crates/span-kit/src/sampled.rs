//! Calls known from samples: what a site's own strands cost, divided among the calls that they were in.
//!
//! The record has, for every task site, how many samples its strands had and in which calls they were, over the whole run
//! and on the longest path. Most strands are shorter than the time between two samples, so it is not the sampled strands
//! alone that are divided but all own time of the site:
//! ```text
//! own(call in site) = own(site) · samples in the call / samples of the site
//! ```
//! on work, and with the samples on the longest path on span; if the path has too few, those of the run have to do. Nothing
//! is added or lost: what the calls get, the site has less. What the record itself gave to calls says only where on paths
//! they lie, for the what-if: its answers are scaled to what the calls really have.

use profile::span::{Measure, Site, SiteKind};
use spandag::detail::{FACTORS, divided};
use spandag::dump::{Kind, Place};
use std::collections::BTreeMap;

/// Fewer samples of a site say nothing: its time stays its own.
const SAMPLES_MIN: u64 = 10;

/// Divides. `sites` are in the order of `places`, and costs as the record has them; `span` is the program's.
pub fn divide(places: &[Place], sites: &mut [Site], span: u64) {
    let mut tasks: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (n, place) in places.iter().enumerate().take(sites.len()) {
        if let Kind::Sampled(task) = place.kind {
            tasks.entry(task as usize).or_default().push(n);
        }
    }
    for (task, calls) in tasks {
        if task < sites.len() {
            Task { task, calls: &calls, places, span }.divide(sites);
        }
    }
}

struct Task<'a> {
    task: usize,
    /// Sites of calls, and of the task's own code.
    calls: &'a [usize],
    places: &'a [Place],
    span: u64,
}

/// A sum, in proportion.
fn part(of: u64, samples: u64, all: u64) -> u64 {
    (u128::from(of) * u128::from(samples) / u128::from(all.max(1))) as u64
}

impl Task<'_> {
    fn divide(&self, sites: &mut [Site]) {
        let before: BTreeMap<usize, u64> =
            self.calls.iter().chain([&self.task]).map(|&n| (n, sites[n].on_span.local.span)).collect();
        let own = |s: &Site| s.on_work.local.count;
        let all: u64 = self.calls.iter().map(|&n| own(&sites[n])).sum();
        let on_span: u64 = self.calls.iter().map(|&n| sites[n].on_span.local.count).sum();
        if all < SAMPLES_MIN {
            return self.give_back(sites);
        }
        // Samples by site: in the site's own code, and in all of it.
        let by_work: Vec<[u64; 2]> =
            self.calls.iter().map(|&n| [own(&sites[n]), sites[n].on_work.site.count]).collect();
        let (by_span, all_on_span) = if on_span < SAMPLES_MIN {
            (by_work.clone(), all)
        } else {
            let of = |&n: &usize| [sites[n].on_span.local.count, sites[n].on_span.site.count];
            (self.calls.iter().map(of).collect(), on_span)
        };
        for (path, samples, all) in [(false, by_work, all), (true, by_span, all_on_span)] {
            let of = |s: &mut Site| if path { s.on_span } else { s.on_work };
            let mut whole = Measure::default();
            for n in self.calls.iter().chain([&self.task]) {
                let local = of(&mut sites[*n]).local;
                (whole.work, whole.span) = (whole.work + local.work, whole.span + local.span);
            }
            let mut left = whole;
            for (&n, [own, inside]) in self.calls.iter().zip(samples) {
                let site = &mut sites[n];
                let measures = if path { &mut site.on_span } else { &mut site.on_work };
                let scaled = |m: Measure, k: u64| Measure {
                    work: part(whole.work, k, all),
                    span: part(whole.span, k, all),
                    ..m
                };
                if self.places[n].stack.is_empty() {
                    measures.local = Measure::default(); // the task's own code: stays with the task
                    continue;
                }
                measures.local = scaled(measures.local, own);
                measures.site = scaled(measures.site, inside);
                measures.caller = scaled(measures.caller, inside);
                left.work -= measures.local.work;
                left.span -= measures.local.span;
            }
            let task = &mut sites[self.task];
            let measures = if path { &mut task.on_span } else { &mut task.on_work };
            (measures.local.work, measures.local.span) = (left.work, left.span);
        }
        for (n, before) in before {
            let now = sites[n].on_span.local.span;
            for (faster, k) in sites[n].faster.iter_mut().zip(FACTORS) {
                let saved = self.span.saturating_sub(*faster);
                let saved = if before == 0 { now - divided(now, k) } else { part(now, saved, before) };
                *faster = self.span.saturating_sub(saved);
            }
            if n != self.task {
                sites[n].kind = SiteKind::Sampled;
            }
        }
    }

    /// Too few samples: the site keeps all.
    fn give_back(&self, sites: &mut [Site]) {
        let mut given = [Measure::default(); 2];
        let mut saved = [0; FACTORS.len()];
        for &n in self.calls {
            for (sum, m) in given.iter_mut().zip([sites[n].on_work.local, sites[n].on_span.local]) {
                (sum.work, sum.span) = (sum.work + m.work, sum.span + m.span);
            }
            for (saved, faster) in saved.iter_mut().zip(sites[n].faster) {
                *saved += self.span.saturating_sub(faster);
            }
            let kind = SiteKind::Sampled;
            sites[n] = Site { kind, faster: [self.span; FACTORS.len()], ..Site::default() };
        }
        let task = &mut sites[self.task];
        for (m, sum) in [&mut task.on_work.local, &mut task.on_span.local].into_iter().zip(given) {
            (m.work, m.span) = (m.work + sum.work, m.span + sum.span);
        }
        for (faster, saved) in task.faster.iter_mut().zip(saved) {
            *faster = faster.saturating_sub(saved);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::span::Measures;

    fn m(count: u64, cost: u64) -> Measure {
        Measure { count, work: cost, span: cost }
    }

    fn site(on_work: (Measure, Measure), on_span: (Measure, Measure), faster: [u64; 3]) -> Site {
        let of = |(site, local)| Measures { site, caller: site, local };
        Site { on_work: of(on_work), on_span: of(on_span), faster, ..Site::default() }
    }

    fn places() -> Vec<Place> {
        let sampled =
            |stack: &[u64]| Place { kind: Kind::Sampled(1), stack: stack.to_vec(), ..Place::default() };
        vec![Place::default(), Place::default(), sampled(&[]), sampled(&[10]), sampled(&[20])]
    }

    /// Site 1 has strands of 8000, of which 1000 are on the span; 75 samples were in call 3 and, inside it, 25 in call 4.
    fn sites(scale: u64) -> Vec<Site> {
        let none = m(0, 0);
        vec![
            site((m(1, 9000), m(1, 1000)), (m(1, 2000), m(1, 1000)), [1500, 1100, 1000]),
            site((m(8, 8000), m(8, 7600)), (m(1, 1000), m(1, 900)), [1550, 1190, 1100]),
            site((none, m(25 * scale, 0)), (none, m(5 * scale, 0)), [2000; 3]),
            site(
                (m(75 * scale, 300), m(50 * scale, 200)),
                (m(15 * scale, 100), m(10 * scale, 60)),
                [1970, 1946, 1940],
            ),
            site(
                (m(25 * scale, 200), m(25 * scale, 200)),
                (m(5 * scale, 40), m(5 * scale, 40)),
                [1980, 1964, 1960],
            ),
        ]
    }

    #[test]
    fn all_own_time_of_a_site_is_divided_by_its_samples() {
        let (places, mut sites) = (places(), sites(1));
        divide(&places, &mut sites, 2000);
        let own = |s: &Site| (s.on_work.local.work, s.on_span.local.span);
        assert_eq!(
            sites.iter().map(own).collect::<Vec<_>>(),
            [(1000, 1000), (2000, 250), (0, 0), (4000, 500), (2000, 250)]
        );
        assert_eq!(
            (sites[3].on_work.site, sites[3].on_span.site.span),
            (m(75, 6000), 750),
            "with what it calls"
        );
        assert_eq!(sites[3].kind, SiteKind::Sampled);
        // 60 on the path shortened it by 60 if infinitely fast; it is really 500.
        assert_eq!(sites[3].faster, [1750, 1550, 1500]);
        assert_eq!(sites[1].faster[2], 2000 - 250);
    }

    #[test]
    fn few_samples_say_nothing() {
        let (places, mut sites) = (places(), sites(1));
        for site in &mut sites[2..] {
            site.on_work.local.count = 1;
        }
        divide(&places, &mut sites, 2000);
        assert_eq!((sites[1].on_work.local, sites[1].on_span.local), (m(8, 8000), m(1, 1000)));
        assert_eq!(sites[1].faster, [1500, 1100, 1000]);
        assert!(sites[2..].iter().all(|s| s.on_work == Measures::default()));
    }

    #[test]
    fn nothing_is_lost_by_rounding() {
        for scale in [3, 7] {
            let (places, mut sites) = (places(), sites(scale));
            sites[1].on_work.local.work += 13;
            sites[1].on_span.local.span += 11;
            divide(&places, &mut sites, 2011);
            let sum = |f: fn(&Site) -> u64| sites.iter().map(f).sum::<u64>();
            assert_eq!((sum(|s| s.on_work.local.work), sum(|s| s.on_span.local.span)), (9013, 2011));
        }
    }
}
