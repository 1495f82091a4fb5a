//! What changed between two growth profiles, and nothing that noise explains.
//!
//! Routines are matched by object name, linker name and source file. A change is reported when the
//! uncertainty of both sides cannot explain it:
//! - **class**: both fits are sure, or their exponents' intervals do not meet;
//! - **coefficient**: same class, but over the sizes that both runs saw the curves are apart by more than
//!   three standard errors and 5 %;
//! - **share**: more than one point of the program's cost and more than a tenth of the share itself;
//! - **new** and **gone**: routines that are at least one percent of their run.

use std::collections::BTreeMap;

use fit::{Class, Fit, Verdict};

use crate::growth::{GrowthAnalysis, RoutineAnalysis};

/// A share must move by this much of the whole program to be reported.
const SHARE_POINTS_MIN: f64 = 0.01;
/// ... and by this much of itself.
const SHARE_RELATIVE_MIN: f64 = 0.10;
/// Curves must be apart by this factor to be reported.
const COEFFICIENT_RATIO_MIN: f64 = 1.05;
/// ... and by this many standard errors.
const COEFFICIENT_ERRORS_MIN: f64 = 3.0;

/// One routine's change.
#[derive(Debug, Clone)]
pub struct Change<'a, 'p> {
    /// The routine before; `None` when it is new.
    pub old: Option<&'a RoutineAnalysis<'p>>,
    /// The routine after; `None` when it is gone.
    pub new: Option<&'a RoutineAnalysis<'p>>,
    /// What changed.
    pub kind: ChangeKind,
    /// Whether the change is for the worse.
    pub worse: bool,
}

/// What changed about a routine. The order is that of the report.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeKind {
    /// It grows differently.
    Class,
    /// It grows alike, but at `ratio` times the cost at the same input size.
    Coefficient {
        /// New cost over old cost at the same input size.
        ratio: f64,
    },
    /// It is a larger or smaller part of the program.
    Share {
        /// New share minus old share.
        points: f64,
    },
    /// It was not there before.
    New,
    /// It is no longer there.
    Gone,
}

impl Change<'_, '_> {
    /// The side that exists, the new one first.
    pub fn routine(&self) -> &RoutineAnalysis<'_> {
        self.new.or(self.old).expect("a change has at least one side")
    }

    /// How much of either run it concerns.
    fn weight(&self) -> f64 {
        let share = |side: Option<&RoutineAnalysis<'_>>| side.map_or(0.0, |r| r.share);
        share(self.old).max(share(self.new))
    }

    fn order(&self) -> u8 {
        match self.kind {
            ChangeKind::Class => 0,
            ChangeKind::Coefficient { .. } => 1,
            ChangeKind::Share { .. } => 2,
            ChangeKind::New => 3,
            ChangeKind::Gone => 4,
        }
    }
}

/// All changes from `old` to `new`: worse before better, class before coefficient before share, then by
/// weight in the program. A routine is listed once, with its gravest change.
pub fn diff<'a, 'p>(old: &'a GrowthAnalysis<'p>, new: &'a GrowthAnalysis<'p>) -> Vec<Change<'a, 'p>> {
    let mut changes = Vec::new();
    for (old, new) in pair(old, new) {
        changes.extend(compare(old, new));
    }
    changes.sort_by(|a, b| {
        b.worse
            .cmp(&a.worse)
            .then(a.order().cmp(&b.order()))
            .then(b.weight().total_cmp(&a.weight()))
            .then_with(|| a.routine().routine.mangled.cmp(&b.routine().routine.mangled))
    });
    changes
}

type Pair<'a, 'p> = (Option<&'a RoutineAnalysis<'p>>, Option<&'a RoutineAnalysis<'p>>);
type Key<'p> = (&'p str, &'p str, &'p str);

fn pair<'a, 'p>(old: &'a GrowthAnalysis<'p>, new: &'a GrowthAnalysis<'p>) -> Vec<Pair<'a, 'p>> {
    let mut by_key: BTreeMap<Key<'p>, (Vec<&'a RoutineAnalysis<'p>>, Vec<&'a RoutineAnalysis<'p>>)> =
        BTreeMap::new();
    for r in &old.routines {
        by_key.entry(key(r)).or_default().0.push(r);
    }
    for r in &new.routines {
        by_key.entry(key(r)).or_default().1.push(r);
    }
    let mut pairs = Vec::new();
    for (mut olds, mut news) in by_key.into_values() {
        // Same-named statics of one file keep their order of addresses between builds.
        olds.sort_by_key(|r| r.routine.address);
        news.sort_by_key(|r| r.routine.address);
        for i in 0..olds.len().max(news.len()) {
            pairs.push((olds.get(i).copied(), news.get(i).copied()));
        }
    }
    pairs
}

fn key<'p>(r: &RoutineAnalysis<'p>) -> Key<'p> {
    let object = r.routine.object.rsplit('/').next().unwrap_or_default();
    (object, &r.routine.mangled, &r.routine.file)
}

fn compare<'a, 'p>(
    old: Option<&'a RoutineAnalysis<'p>>,
    new: Option<&'a RoutineAnalysis<'p>>,
) -> Option<Change<'a, 'p>> {
    let change = |kind, worse| Some(Change { old, new, kind, worse });
    let (a, b) = match (old, new) {
        (Some(a), Some(b)) => (a, b),
        (None, Some(b)) if b.share >= SHARE_POINTS_MIN => return change(ChangeKind::New, b.is_superlinear()),
        (Some(a), None) if a.share >= SHARE_POINTS_MIN => return change(ChangeKind::Gone, false),
        _ => return None,
    };
    if let (Some(was), Some(is)) = (a.fit.class, b.fit.class) {
        if classes_differ(&a.fit, &b.fit) {
            return change(ChangeKind::Class, is.cmp_growth(was).is_gt());
        }
        if let Some(ratio) = coefficient_ratio(a, b) {
            return change(ChangeKind::Coefficient { ratio }, ratio > 1.0);
        }
    }
    let points = b.share - a.share;
    if points.abs() >= SHARE_POINTS_MIN && points.abs() >= SHARE_RELATIVE_MIN * a.share.max(b.share) {
        return change(ChangeKind::Share { points }, points > 0.0);
    }
    None
}

/// Whether two known fits name different growth beyond their uncertainty.
fn classes_differ(a: &Fit, b: &Fit) -> bool {
    let (Some(x), Some(y)) = (a.class, b.class) else { return false };
    if x == y {
        return false;
    }
    let disjoint = a.exponent_ci[1] < b.exponent_ci[0] || b.exponent_ci[1] < a.exponent_ci[0];
    if let (Class::Power(_), _) | (_, Class::Power(_)) = (x, y) {
        return disjoint; // a fitted exponent is a number, not a name: only its interval can differ
    }
    let sure = |f: &Fit| f.verdict == Verdict::Confident;
    (sure(a) && sure(b)) || (disjoint && (sure(a) || sure(b)))
}

/// New over old cost at the same size, when it differs beyond noise.
fn coefficient_ratio(a: &RoutineAnalysis<'_>, b: &RoutineAnalysis<'_>) -> Option<f64> {
    let range = |r: &RoutineAnalysis<'_>| Some((r.routine.points.first()?.n, r.routine.points.last()?.n));
    let ((a_low, a_high), (b_low, b_high)) = (range(a)?, range(b)?);
    let (low, high) = (a_low.max(b_low).max(1) as f64, a_high.min(b_high) as f64);
    if low > high {
        return None;
    }
    const STEPS: u32 = 8;
    let mut log_ratio = 0.0;
    for i in 0..=STEPS {
        let n = low * (high / low).powf(f64::from(i) / f64::from(STEPS));
        let (was, is) = (a.fit.predict(n)?, b.fit.predict(n)?);
        if was <= 0.0 || is <= 0.0 {
            return None;
        }
        log_ratio += (is / was).ln() / f64::from(STEPS + 1);
    }
    let error = |r: &RoutineAnalysis<'_>| r.fit.spread * r.fit.spread / (r.sizes() as f64).max(1.0);
    let noise = COEFFICIENT_ERRORS_MIN * (error(a) + error(b)).sqrt();
    (log_ratio.abs() > noise.max(COEFFICIENT_RATIO_MIN.ln())).then(|| log_ratio.exp())
}
