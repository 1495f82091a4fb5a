//! Cost functions that change their law at some size: a cache that overflows, a table that degenerates, an
//! algorithm with a threshold.
//!
//! Two shapes of change are told apart:
//! - a *jump*: two unrelated curves `a + b·g(n)` that meet at a size;
//! - an *onset*: one curve goes on, and from a size m a second cost `c·h(n − m)` is added to it.
//!
//! A cheap scan over all breaks and classes (least squares of relative errors, running sums) says whether a
//! break is worth a look and where; only the best few are solved in earnest. Each then competes with the
//! unbroken curve by evidence, so that a break must pay for its place and for its extra coefficients.

use crate::class::Class;
use crate::growth::Term;
use crate::normal::Normal;
use crate::points::{Points, index};
use crate::scan::Scan;
use crate::select::{Selection, base, rough_evidence};
use crate::solve::{Model, Scratch, Solved, solve};

/// Prior probability that a routine changes its law, for each of the two shapes.
const PRIOR_JUMP: f64 = 0.02;
const PRIOR_ONSET: f64 = 0.02;
/// Fewest different sizes in a regime.
const SIZES_MIN: usize = 3;
/// Fewest different sizes for which a break is considered at all.
const SIZES_MIN_BOTH: usize = 7;
/// Relative scatter of the unbroken curve below which nobody needs a break.
const POLISH: f64 = 0.025;
/// Least gain of the scan, in units of log likelihood, that makes a break worth a look.
const GAIN_MIN: f64 = 0.0;
/// Splits that are looked at more closely than by the scan; the best of them is solved in earnest.
const JUMPS_TRIED: usize = 3;
/// Onsets that are solved in earnest.
const ONSETS_TRIED: usize = 3;
/// Positions at which the scan for an onset looks.
const ONSET_POSITIONS: usize = 14;

/// Least ratio of the largest to the smallest size of a regime: what holds for less is a step, not a law.
const RANGE_MIN: f64 = 2.0;

/// Laws of what is added, each with the laws before the onset. Close neighbours such as n and n log n are not
/// among them: there a break is only a bent curve.
const ONSETS: [(Class, &[Class]); 4] = [
    (Class::Linear, &[Class::Constant, Class::Log, Class::Linear]),
    (Class::NLogN, &[Class::Constant, Class::Log]),
    (Class::Quadratic, &[Class::Constant, Class::Log, Class::Linear, Class::NLogN, Class::Quadratic]),
    (Class::Cubic, &[Class::Constant, Class::Linear, Class::Quadratic]),
];
const ONSET_PAIRS: f64 = 13.0;

/// Two unrelated curves.
pub(crate) struct Jump {
    /// Index of the first point of the second regime.
    pub at: usize,
    pub left: Selection,
    pub right: Selection,
    /// Natural logarithm of prior times evidence.
    pub weight: f64,
}

/// One curve, and another added to it from a size on.
pub(crate) struct Onset {
    /// Index of the first point after the onset.
    pub at: usize,
    pub base: Class,
    pub added: Class,
    /// The base alone.
    pub base_terms: Vec<Term>,
    pub terms: Vec<Term>,
    pub solved: Solved,
    /// Natural logarithm of prior times evidence.
    pub weight: f64,
}

/// Everything found.
#[derive(Default)]
pub(crate) struct Breaks {
    pub jump: Option<Jump>,
    pub onsets: Vec<Onset>,
}

/// Looks for breaks within the points `range`, on which `whole` is the best unbroken curve.
pub(crate) fn breaks(
    points: &Points,
    (from, to): (usize, usize),
    whole: &Solved,
    scratch: &mut Scratch,
) -> Breaks {
    let mut breaks = Breaks::default();
    if points.distinct_in(from, to) < SIZES_MIN_BOTH || good_enough(whole) {
        return breaks;
    }
    let positions = positions(points, from, to);
    let scan = Scan::new(points, from, to);
    let mut splits: Vec<(f64, usize)> =
        positions.iter().map(|&at| (scan.left(at) + scan.right(at), at)).collect();
    splits.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let Some(&(best, _)) = splits.first() else { return breaks };
    // Log likelihood with σ integrated out: four coefficients leave less freedom than two.
    let level = |rest: f64, unknowns: usize| {
        let freedom = (to - from - unknowns) as f64;
        0.5 * freedom * (rest / freedom + points.floor2).ln()
    };
    let gain = level(scan.whole(), 2) - level(best, 4);
    if gain.is_nan() || gain < GAIN_MIN {
        return breaks;
    }
    let prior = (PRIOR_JUMP / positions.len() as f64).ln();
    let mut jumps: Vec<(f64, usize)> = Vec::with_capacity(JUMPS_TRIED);
    for &(_, at) in splits.iter().take(JUMPS_TRIED) {
        let parts = [(from, at), (at, to)].map(|part| rough_evidence(points, part, scratch));
        if let [Some(left), Some(right)] = parts {
            jumps.push((left + right, at));
        }
    }
    // The best few of a scan are mostly neighbours: one is enough for all candidates.
    if let Some(&(_, at)) = jumps.iter().max_by(|a, b| a.0.total_cmp(&b.0)) {
        let left = Selection::of(points, (from, at), scratch);
        let right = Selection::of(points, (at, to), scratch);
        if let (Some(left), Some(right)) = (left, right) {
            let weight = prior + left.evidence + right.evidence;
            breaks.jump = Some(Jump { at, left, right, weight });
        }
    }
    breaks.onsets = onsets(points, (from, to), &positions, scratch);
    breaks
}

/// Whether the curve leaves so little that a break would only polish it. Outliers that follow each other on the
/// same side may be a regime, and keep the question open.
fn good_enough(whole: &Solved) -> bool {
    let pair =
        |i: usize| whole.outlier[i] && whole.outlier[i + 1] && (whole.r[i] > 0.0) == (whole.r[i + 1] > 0.0);
    whole.sigma < POLISH && !(0..whole.r.len().saturating_sub(1)).any(pair)
}

/// Indices at which a second regime can begin: enough different sizes on either side, and never between two
/// points of one size.
fn positions(points: &Points, from: usize, to: usize) -> Vec<usize> {
    let starts: Vec<usize> = (from..to).filter(|&i| i == from || points.n[i] != points.n[i - 1]).collect();
    if starts.len() < 2 * SIZES_MIN {
        return Vec::new();
    }
    let inner = starts[SIZES_MIN..=starts.len() - SIZES_MIN].iter();
    inner.copied().filter(|&at| spans(points, from, at, to)).collect()
}

/// Whether both sides of a break at `at` span enough sizes.
fn spans(points: &Points, from: usize, at: usize, to: usize) -> bool {
    let wide = |first: usize, last: usize| points.n[last] >= RANGE_MIN * points.n[first].max(1.0);
    at > from && at < to && wide(from, at - 1) && wide(at, to - 1)
}

fn onsets(points: &Points, range: (usize, usize), positions: &[usize], scratch: &mut Scratch) -> Vec<Onset> {
    let mut found = scan_onsets(points, range, positions);
    found.sort_by(|a, b| a.rest.total_cmp(&b.rest));
    // The best position of each pair of laws, so that the few that are tried differ in law.
    let mut tried: Vec<Tried> = Vec::new();
    for candidate in found {
        let known = tried.iter().any(|t| t.base == candidate.base && t.added == candidate.added);
        if !known && tried.len() < ONSETS_TRIED {
            tried.push(candidate);
        }
    }
    let n = &points.n[range.0..range.1];
    let width = (n[n.len() - 1] / n[0].max(0.5)).ln();
    let mut onsets = Vec::new();
    for Tried { base, added, onset, .. } in tried {
        let ends = (n[0], points.n[positions[positions.len() - 1]]);
        let model = Gradual { points, range, base, added, ends, width };
        let Some(solved) = solve(points, range, &model, onset, scratch) else { continue };
        let at = range.0 + n.partition_point(|&n| n <= solved.theta);
        if points.distinct_in(at, range.1) < SIZES_MIN || !spans(points, range.0, at, range.1) {
            continue;
        }
        let Some((base_terms, terms)) = model.terms(&solved) else { continue };
        let weight = solved.evidence + (PRIOR_ONSET / ONSET_PAIRS).ln();
        onsets.push(Onset { at, base, added, base_terms, terms, solved, weight });
    }
    onsets
}

struct Tried {
    rest: f64,
    base: Class,
    added: Class,
    onset: f64,
}

fn scan_onsets(points: &Points, (from, to): (usize, usize), positions: &[usize]) -> Vec<Tried> {
    let every = positions.len().div_ceil(ONSET_POSITIONS).max(1);
    let n_max = points.n[to - 1];
    let mut found = Vec::new();
    let mut after = vec![0.0; to - from];
    for &at in positions.iter().step_by(every) {
        let onset = (points.n[at - 1].max(0.5) * points.n[at]).sqrt();
        for (added, bases) in ONSETS {
            let unit = added.g(n_max);
            if !unit.is_finite() {
                continue;
            }
            for (value, &n) in after.iter_mut().zip(&points.n[from..to]) {
                *value = added.g(n - onset) / unit;
            }
            for &base in bases {
                let before = if base == Class::Constant { None } else { points.g[index(base)].get(from..to) };
                if base != Class::Constant && before.is_none() {
                    continue;
                }
                let view = View { u: &points.u[from..to], y: &points.y[from..to], after: &after };
                let rest = match before {
                    None => view.rest(|inverse, after, _| [inverse, after]),
                    Some(before) => view.rest(|inverse, after, i| [inverse, after, before[i] * inverse]),
                };
                found.extend(rest.map(|rest| Tried { rest, base, added, onset }));
            }
        }
    }
    found
}

/// What the scan for an onset sees of the points.
struct View<'a> {
    u: &'a [f64],
    y: &'a [f64],
    after: &'a [f64],
}

impl View<'_> {
    /// What is left unexplained, unless the second of the columns, the added one, comes out negative.
    fn rest<const Q: usize>(&self, row: impl Fn(f64, f64, usize) -> [f64; Q]) -> Option<f64> {
        let mut normal = Normal::<Q>::new();
        let mut total = 0.0;
        for (i, (&u, &y)) in self.u.iter().zip(self.y).enumerate() {
            let inverse = 1.0 / y;
            normal.add(&row(inverse, self.after[i] * inverse, i), 1.0, u);
            total += u;
        }
        let (c, _) = normal.solve()?;
        (c[1] > 0.0).then(|| total - normal.explained(&c))
    }
}

/// `a + b·base(n) + c·added(n − θ)`.
struct Gradual<'a> {
    points: &'a Points,
    range: (usize, usize),
    base: Class,
    added: Class,
    /// Where θ may lie.
    ends: (f64, f64),
    /// Natural logarithm of the range of sizes.
    width: f64,
}

impl Gradual<'_> {
    fn units(&self) -> (f64, f64) {
        (
            self.base.g(self.points.n[self.points.len() - 1]),
            self.added.g(self.points.n[self.points.len() - 1]),
        )
    }

    fn terms(&self, solved: &Solved) -> Option<(Vec<Term>, Vec<Term>)> {
        let (base_unit, added_unit) = self.units();
        let y_unit = self.points.y_unit;
        let mut terms = vec![base(self.points, solved.c[0])];
        if self.base != Class::Constant {
            terms.push(Term::new(self.base, solved.c[1] / base_unit * y_unit));
        }
        let base = terms.clone();
        let added = Term::new(self.added, solved.c[self.columns() - 1] / added_unit * y_unit);
        terms.push(Term { shift: solved.theta, ..added });
        terms.iter().all(|t| t.coefficient.is_finite()).then_some((base, terms))
    }
}

impl Model for Gradual<'_> {
    fn columns(&self) -> usize {
        2 + (self.base != Class::Constant) as usize
    }

    fn has_theta(&self) -> bool {
        true
    }

    fn theta_density(&self, theta: f64) -> f64 {
        1.0 / (theta.max(0.5) * self.width.max(1e-3))
    }

    fn clamp(&self, theta: f64) -> f64 {
        theta.max(self.ends.0).min(self.ends.1)
    }

    fn fill(&self, theta: f64, columns: &mut [Vec<f64>], derivative: &mut Vec<f64>) {
        let (from, to) = self.range;
        let last = self.columns() - 1;
        columns[0].fill(1.0);
        if last == 2 {
            columns[1].copy_from_slice(&self.points.g[index(self.base)][from..to]);
        }
        let unit = self.units().1;
        for (i, &n) in self.points.n[from..to].iter().enumerate() {
            let m = (n - theta).max(0.0);
            columns[last][i] = self.added.g(m) / unit;
            let log = m.max(1.0).log2();
            let slope = match self.added {
                Class::Linear => 1.0,
                Class::NLogN => log + std::f64::consts::LOG2_E,
                Class::Quadratic => 2.0 * m,
                _ => 3.0 * m * m,
            };
            derivative[i] = if m > 0.0 { -slope / unit } else { 0.0 };
        }
    }
}
