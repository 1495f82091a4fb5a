//! The canonical form of a growth profile: checking it, and bringing data into it.
//!
//! Canonical means: routines ordered and unique, points strictly ascending in size with at least one activation
//! each, thread lists ascending. Two profiles that hold the same facts are then equal values, and the file needs
//! to store no order. Normalizing adds what belongs together and drops only what holds no activation; its
//! result depends on the facts, never on the order in which they came.

use std::cmp::Ordering;
use std::collections::HashSet;

use crate::growth::{Growth, Point, Routine, ThreadPoints};

/// Why a growth profile is not in canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// A rule about one routine is broken.
    #[error("routine {routine:?}: {rule}")]
    Routine {
        /// Its name.
        routine: String,
        /// The rule, as it should be.
        rule: &'static str,
    },
    /// A rule about the whole is broken.
    #[error("{0}")]
    Whole(&'static str),
}

impl Growth {
    /// Checks the canonical form.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.cell_bytes == 0 {
            return Err(Invalid::Whole("a memory cell must have at least one byte"));
        }
        if !(self.size_error.is_finite() && self.size_error >= 0.0) {
            return Err(Invalid::Whole("the error of sizes must be a number of at least 0"));
        }
        if !self.threads.is_sorted_by(|a, b| a.id < b.id) {
            return Err(Invalid::Whole("threads must be strictly ascending"));
        }
        let mut seen = HashSet::with_capacity(self.routines.len());
        let mut previous: Option<&Routine> = None;
        for routine in &self.routines {
            let fail = |rule| Err(Invalid::Routine { routine: routine.name.clone(), rule });
            if previous.is_some_and(|p| order(p) >= order(routine)) {
                return fail("routines must be ordered by object, address and name");
            }
            if !seen.insert(routine.identity()) {
                return fail("no two routines may have the same object and address, or object and name");
            }
            if let Err(rule) = check(routine) {
                return fail(rule);
            }
            previous = Some(routine);
        }
        Ok(())
    }

    /// Brings the profile into canonical form: sorts, and adds what has the same identity or size.
    pub fn normalize(&mut self) {
        if !(self.size_error.is_finite() && self.size_error >= 0.0) {
            self.size_error = 0.0;
        }
        self.cell_bytes = self.cell_bytes.max(1);
        self.threads.sort_unstable_by_key(|t| t.id);
        self.threads.dedup_by(|later, kept| {
            let same = later.id == kept.id;
            if same {
                kept.cost_total = kept.cost_total.saturating_add(later.cost_total);
            }
            same
        });
        sort(&mut self.routines, |a, b| a.identity().cmp(&b.identity()));
        self.routines.dedup_by(|later, kept| {
            let same = later.identity() == kept.identity();
            if same {
                absorb(kept, later);
            }
            same
        });
        for routine in &mut self.routines {
            fold(&mut routine.points);
            fold_threads(&mut routine.by_thread);
            if calls_apart(routine) != routine.calls() {
                routine.by_thread.clear();
            }
            routine.threads.extend(routine.by_thread.iter().map(|t| t.thread));
            routine.threads.sort_unstable();
            routine.threads.dedup();
        }
        sort(&mut self.routines, |a, b| order(a).cmp(&order(b)));
    }
}

/// The order of routines in a profile.
fn order(routine: &Routine) -> (&str, Option<u64>, &str, &str) {
    (&routine.object, routine.address, &routine.name, &routine.mangled)
}

/// Sorts, moving each routine once: they are large, and sorting itself would move them a dozen times.
fn sort(routines: &mut Vec<Routine>, compare: impl Fn(&Routine, &Routine) -> Ordering) {
    if routines.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    let mut places: Vec<usize> = (0..routines.len()).collect();
    places.sort_by(|&a, &b| compare(&routines[a], &routines[b]));
    let mut before = std::mem::take(routines);
    *routines = places.into_iter().map(|place| std::mem::take(&mut before[place])).collect();
}

fn check(routine: &Routine) -> Result<(), &'static str> {
    let ascending = |points: &[Point]| points.is_sorted_by(|a, b| a.n < b.n);
    if !ascending(&routine.points) || !routine.by_thread.iter().all(|t| ascending(&t.points)) {
        return Err("points must be strictly ascending in size");
    }
    let empty = |points: &[Point]| points.iter().any(|p| p.calls == 0);
    if empty(&routine.points) || routine.by_thread.iter().any(|t| empty(&t.points)) {
        return Err("every point must stand for at least one activation");
    }
    if !routine.threads.is_sorted_by(|a, b| a < b) {
        return Err("threads must be strictly ascending");
    }
    if !routine.by_thread.is_empty() {
        let known = |t: &ThreadPoints| routine.threads.binary_search(&t.thread).is_ok();
        if !routine.by_thread.is_sorted_by(|a, b| a.thread < b.thread) || !routine.by_thread.iter().all(known)
        {
            return Err("points kept apart by thread must be ascending in threads that the routine names");
        }
        if calls_apart(routine) != routine.calls() {
            return Err("points kept apart by thread must add up to the points");
        }
    }
    Ok(())
}

fn calls_apart(routine: &Routine) -> u64 {
    routine.by_thread.iter().flat_map(|t| &t.points).map(|p| p.calls).fold(0, u64::saturating_add)
}

/// Adds a routine of the same identity. Where the two disagree about a name or place, the smaller one that is
/// not empty wins: any rule would do that does not depend on who comes first.
fn absorb(kept: &mut Routine, other: &mut Routine) {
    let has_points = |r: &Routine| !r.points.is_empty();
    let apart = |r: &Routine| !r.by_thread.is_empty() || !has_points(r);
    if apart(kept) && apart(other) {
        kept.by_thread.append(&mut other.by_thread);
    } else {
        kept.by_thread.clear();
    }
    kept.points.append(&mut other.points);
    kept.threads.append(&mut other.threads);
    prefer(&mut kept.name, &mut other.name, String::is_empty);
    prefer(&mut kept.mangled, &mut other.mangled, String::is_empty);
    let mut place = (std::mem::take(&mut kept.file), kept.line);
    let mut others = (std::mem::take(&mut other.file), other.line);
    prefer(&mut place, &mut others, |p| p.0.is_empty() && p.1 == 0);
    (kept.file, kept.line) = place;
}

fn prefer<T: Ord>(kept: &mut T, other: &mut T, empty: impl Fn(&T) -> bool) {
    if (empty(kept), &*kept) > (empty(other), &*other) {
        std::mem::swap(kept, other);
    }
}

/// Sorts points and adds those of the same size.
fn fold(points: &mut Vec<Point>) {
    points.retain(|p| p.calls > 0);
    if points.is_sorted_by(|a, b| a.n < b.n) {
        return;
    }
    points.sort_unstable_by_key(|p| p.n);
    points.dedup_by(|later, kept| {
        let same = later.n == kept.n;
        if same {
            kept.absorb(later);
        }
        same
    });
}

fn fold_threads(lists: &mut Vec<ThreadPoints>) {
    lists.sort_by_key(|t| t.thread);
    lists.dedup_by(|later, kept| {
        let same = later.thread == kept.thread;
        if same {
            kept.points.append(&mut later.points);
        }
        same
    });
    lists.iter_mut().for_each(|t| fold(&mut t.points));
    lists.retain(|t| !t.points.is_empty());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::{Cost, Metric, ThreadCost};

    fn routine(name: &str, points: Vec<Point>) -> Routine {
        Routine {
            name: name.into(),
            mangled: name.into(),
            object: "/bin/p".into(),
            points,
            ..Routine::default()
        }
    }

    fn growth(routines: Vec<Routine>) -> Growth {
        Growth { routines, ..Growth::new(Metric::Rms, Cost::Blocks, 4) }
    }

    #[test]
    fn normalizing_sorts_and_adds() {
        let mut g = growth(vec![
            routine("b", vec![Point::single(9, 90, 9), Point::single(2, 20, 2), Point::single(9, 110, 9)]),
            routine("a", vec![Point::single(1, 1, 1)]),
            routine("b", vec![Point { calls: 0, ..Point::single(7, 7, 7) }, Point::single(2, 40, 1)]),
        ]);
        g.threads = vec![ThreadCost { id: 2, cost_total: 5 }, ThreadCost { id: 1, cost_total: 1 }];
        assert!(g.validate().is_err());
        g.normalize();
        assert_eq!(g.validate(), Ok(()));
        assert_eq!(g.threads.iter().map(|t| t.id).collect::<Vec<_>>(), [1, 2]);
        let names: Vec<_> = g.routines.iter().map(|r| r.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let b = &g.routines[1].points;
        assert_eq!(
            b.iter().map(|p| (p.n, p.calls, p.min, p.max, p.sum)).collect::<Vec<_>>(),
            [(2, 2, 20, 40, 60), (9, 2, 90, 110, 200)]
        );
        assert_eq!(b[1].sumsq, 90 * 90 + 110 * 110);
    }

    #[test]
    fn each_broken_rule_is_named() {
        type Break = fn(&mut Growth);
        let cases: [(&str, Break); 9] = [
            ("memory cell", |g| g.cell_bytes = 0),
            ("error of sizes", |g| g.size_error = f64::NAN),
            ("threads must be strictly", |g| g.threads = vec![ThreadCost::default(); 2]),
            ("routines must be ordered", |g| g.routines.swap(0, 1)),
            ("no two routines", |g| {
                g.routines[1].name = "zz".into();
                g.routines[1].mangled = "a".into();
            }),
            ("ascending in size", |g| g.routines[0].points.swap(0, 1)),
            ("at least one activation", |g| g.routines[0].points[0].calls = 0),
            ("routine \"a\": threads must", |g| g.routines[0].threads = vec![2, 1]),
            ("add up", |g| {
                g.routines[0].threads = vec![1];
                let points = g.routines[0].points[..1].to_vec();
                g.routines[0].by_thread = vec![ThreadPoints { thread: 1, points }];
            }),
        ];
        let points = vec![Point::single(1, 1, 1), Point::single(2, 2, 2)];
        let good = growth(vec![routine("a", points.clone()), routine("b", points)]);
        assert_eq!(good.validate(), Ok(()));
        for (needle, break_it) in cases {
            let mut bad = good.clone();
            break_it(&mut bad);
            let error = bad.validate().expect_err(needle).to_string();
            assert!(error.contains(needle), "{error:?} does not mention {needle:?}");
        }
    }

    #[test]
    fn a_routine_of_two_lists_keeps_its_threads_apart_only_when_both_do() {
        let apart = |thread, n| Routine {
            by_thread: vec![ThreadPoints { thread, points: vec![Point::single(n, 1, 1)] }],
            ..routine("a", vec![Point::single(n, 1, 1)])
        };
        let mut g = growth(vec![apart(2, 5), apart(1, 5)]);
        g.normalize();
        assert_eq!(g.validate(), Ok(()));
        assert_eq!(g.routines[0].by_thread.len(), 2);
        assert_eq!(g.routines[0].threads, [1, 2]);
        let mut g = growth(vec![apart(2, 5), routine("a", vec![Point::single(5, 1, 1)])]);
        g.normalize();
        assert_eq!(g.validate(), Ok(()));
        assert!(g.routines[0].by_thread.is_empty());
    }
}
