//! Which class explains one regime: every candidate is solved, and its evidence weighed with its prior.
//!
//! Candidates are `b·g`, `a + b·g`, `a + c·h + b·g` with h one order below g (n²/2 − n/2 is quadratic, and
//! exact instruction counts show the difference), the free power `a + b·n^k`, and those of [`crate::shifted`].
//! Constants and b are never negative: no program does less than nothing.

use crate::class::Class;
use crate::exponent::Exponent;
use crate::growth::Term;
use crate::points::{GROWING, Points, index};
use crate::scan;
use crate::shifted;
use crate::solve::{Model, Scratch, Solved, solve};

/// How common each class is among routines before their costs are seen, in the order of [`Class::NAMED`].
/// Only the proportions matter, and a few points outweigh them.
const PRIOR: [f64; 10] = [0.20, 0.08, 0.06, 0.22, 0.12, 0.06, 0.12, 0.05, 0.06, 0.03];
/// Prior probability of a free power, against 1 for all the named ones.
const PRIOR_POWER: f64 = 0.10;
/// Within a class: without a constant, with one, with a constant and a term of lower order.
const PRIOR_FORM: [f64; 3] = [0.25, 0.65, 0.10];
/// Range of exponents over which the prior of a free power is uniform.
const EXPONENT_RANGE: f64 = 4.0;
/// Least share of the cost at the largest size that the leading of two growing terms must have: less is a
/// guess about sizes that were not seen.
const LEADING_SHARE_MIN: f64 = 0.05;
/// The same where the two terms differ by a logarithm only: over the sizes of one run the one can stand in for a
/// few percent of the other.
const LEADING_SHARE_MIN_LOG: f64 = 0.3;
/// Above 1 the lower term is negative; by more than this it is no correction any more but a different curve.
const LEADING_SHARE_MAX: f64 = 1.5;
/// Exponents outside are a logarithm or an exponential, or a single point that sticks out.
const EXPONENTS: std::ops::Range<f64> = 0.1..5.0;

/// Prior probability of an exponential with a base other than 2, the binary logarithms of the bases, and the
/// largest size at which one is looked for.
const PRIOR_BASE: f64 = 0.005;
const RATES: std::ops::Range<f64> = 0.1..3.0;
const SIZE_MAX_EXPONENTIAL: f64 = 300.0;

/// Leading terms that come with a lower one.
const COMPANIONS: [(Class, Class); 5] = [
    (Class::NLogN, Class::Linear),
    (Class::N15, Class::Linear),
    (Class::Quadratic, Class::Linear),
    (Class::N2LogN, Class::Quadratic),
    (Class::Cubic, Class::Quadratic),
];

/// One model that was solved.
pub(crate) struct Candidate {
    pub class: Class,
    /// The curve in the units of the samples.
    pub terms: Vec<Term>,
    pub solved: Solved,
    /// Natural logarithm of prior times evidence.
    pub weight: f64,
}

/// All candidates for the points `from..to`, best first.
pub(crate) struct Selection {
    pub candidates: Vec<Candidate>,
    /// That of the best power law.
    pub exponent: Option<Exponent>,
    /// Natural logarithm of the evidence of the range, whatever the class.
    pub evidence: f64,
}

impl Selection {
    /// `None` when nothing fits at all, as for a cost that falls steeply.
    pub fn of(points: &Points, range: (usize, usize), scratch: &mut Scratch) -> Option<Selection> {
        let mut candidates = plain(points, range, scratch);
        for (class, lower) in COMPANIONS {
            let columns = [None, Some(lower), Some(class)];
            let found = candidate(points, range, class, &columns, PRIOR_FORM[2], scratch)
                .or_else(|| candidate(points, range, class, &columns[1..], PRIOR_FORM[2], scratch));
            candidates.extend(found);
        }
        let mut exponent: Option<Exponent> = None;
        for (constant, form) in [(true, 0.7), (false, 0.3)] {
            let Some(solved) = power(points, range, constant, scratch) else { continue };
            let own = Exponent::of(&solved);
            exponent = Some(exponent.map_or(own, |other| Exponent::either(own, other)));
            let Some(terms) = power_terms(points, &solved, constant) else { continue };
            if EXPONENTS.contains(&solved.theta) {
                let class = Class::Power(solved.theta);
                let weight = solved.evidence + (PRIOR_POWER * form).ln();
                candidates.push(Candidate { class, terms, solved, weight });
            }
        }
        candidates
            .extend([true, false].iter().flat_map(|&constant| exponential(points, range, constant, scratch)));
        let best = candidates.iter().max_by(|a, b| a.weight.total_cmp(&b.weight));
        let scatter = best.map_or(f64::INFINITY, |best| best.solved.sigma);
        candidates.extend(shifted::candidates(points, range, scatter, prior, scratch));
        candidates.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        let evidence = log_sum(candidates.iter().map(|c| c.weight));
        (!candidates.is_empty()).then_some(Selection { candidates, exponent, evidence })
    }
}

/// Those of one growing term or none.
fn plain(points: &Points, range: (usize, usize), scratch: &mut Scratch) -> Vec<Candidate> {
    scratch.lower_bar();
    let order = promising(points, range);
    let mut candidates = Vec::new();
    for &class in &order {
        candidates.extend(candidate(points, range, class, &[None, Some(class)], PRIOR_FORM[1], scratch));
    }
    for &class in &order {
        candidates.extend(candidate(points, range, class, &[Some(class)], PRIOR_FORM[0], scratch));
    }
    candidates.extend(candidate(points, range, Class::Constant, &[None], 1.0, scratch));
    candidates
}

/// Growing classes, the most promising first: they set the bar at which the others give up.
fn promising(points: &Points, range: (usize, usize)) -> Vec<Class> {
    let mut order: Vec<(f64, Class)> = GROWING
        .into_iter()
        .filter(|&class| !points.g[index(class)].is_empty())
        .map(|class| (scan::rest(points, range, &points.g[index(class)]), class))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order.into_iter().map(|(_, class)| class).collect()
}

/// About what evidence a range has: that of the most promising classes, for a part of the work.
pub(crate) fn rough_evidence(points: &Points, range: (usize, usize), scratch: &mut Scratch) -> Option<f64> {
    const CLASSES: usize = 4;
    scratch.lower_bar();
    let mut candidates = Vec::new();
    for &class in promising(points, range).iter().take(CLASSES) {
        candidates.extend(candidate(points, range, class, &[None, Some(class)], PRIOR_FORM[1], scratch));
        candidates.extend(candidate(points, range, class, &[Some(class)], PRIOR_FORM[0], scratch));
    }
    candidates.extend(candidate(points, range, Class::Constant, &[None], 1.0, scratch));
    (!candidates.is_empty()).then(|| log_sum(candidates.iter().map(|c| c.weight)))
}

/// A sum of columns, if it fits.
fn candidate(
    points: &Points,
    range: (usize, usize),
    class: Class,
    columns: &[Option<Class>],
    form: f64,
    scratch: &mut Scratch,
) -> Option<Candidate> {
    let model = Sum::new(points, range, columns)?;
    let solved = solve(points, range, &model, 0.0, scratch)?;
    let terms = model.terms(points, &solved)?;
    if model.free.is_some() && !leads(class, &solved, &terms, &points.n[range.0..range.1]) {
        return None;
    }
    let weight = solved.evidence + (prior(class) * form).ln();
    Some(Candidate { class, terms, solved, weight })
}

/// The best power law on a range, with or without a constant.
fn power(points: &Points, range: (usize, usize), constant: bool, scratch: &mut Scratch) -> Option<Solved> {
    let start = steepness(points, range);
    let model = FreePower { ln_n: &points.ln_n[range.0..range.1], constant };
    solve(points, range, &model, start, scratch)
}

/// The exponent of the best power law on a range alone.
pub(crate) fn exponent(points: &Points, range: (usize, usize), scratch: &mut Scratch) -> Option<Exponent> {
    let laws = [true, false].map(|constant| power(points, range, constant, scratch));
    laws.iter().flatten().map(Exponent::of).reduce(Exponent::either)
}

/// Natural logarithm of a sum of exponentials.
pub(crate) fn log_sum(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_finite() { largest + terms.map(|t| (t - largest).exp()).sum::<f64>().ln() } else { largest }
}

fn prior(class: Class) -> f64 {
    Class::NAMED.iter().position(|&named| named == class).map_or(PRIOR_POWER, |i| PRIOR[i])
}

/// Whether the highest of the terms is what the cost is about at the largest size, and the curve never falls.
fn leads(class: Class, solved: &Solved, terms: &[Term], n: &[f64]) -> bool {
    let at = |n: f64| terms.iter().map(|term| term.at(n)).sum::<f64>();
    let least = match class {
        Class::NLogN | Class::N2LogN => LEADING_SHARE_MIN_LOG,
        _ => LEADING_SHARE_MIN,
    };
    (least..LEADING_SHARE_MAX).contains(&solved.top_share)
        && n.windows(2).all(|pair| at(pair[0]) <= at(pair[1]))
}

/// Exponent to begin with: the slope in log-log of the upper half against the lower one, by medians.
fn steepness(points: &Points, (from, to): (usize, usize)) -> f64 {
    let third = ((to - from) / 3).max(1);
    let median = |values: &[f64]| {
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let at =
        |from: usize| (median(&points.ln_n[from..from + third]), median(&points.ln_y[from..from + third]));
    let (middle, high) = (at(from + (to - from - third) / 2), at(to - third));
    let slope = (high.1 - middle.1) / (high.0 - middle.0);
    if slope.is_finite() { slope.clamp(0.1, 8.0) } else { 1.0 }
}

/// `Σ c_j·t_j` with tabulated columns; `None` stands for the constant.
struct Sum<'a> {
    columns: Vec<Option<&'a [f64]>>,
    classes: Vec<Option<Class>>,
    free: Option<usize>,
}

impl<'a> Sum<'a> {
    fn new(points: &'a Points, (from, to): (usize, usize), classes: &[Option<Class>]) -> Option<Sum<'a>> {
        let mut columns = Vec::with_capacity(classes.len());
        for class in classes {
            columns.push(match class {
                Some(class) => Some(points.g[index(*class)].get(from..to)?),
                None => None,
            });
        }
        // Of two growing terms the lower one may be negative.
        let growing = classes.iter().flatten().count();
        let free = (growing == 2).then(|| classes.len() - 2);
        Some(Sum { columns, classes: classes.to_vec(), free })
    }

    fn terms(&self, points: &Points, solved: &Solved) -> Option<Vec<Term>> {
        let n_max = points.n[points.len() - 1];
        let mut terms = Vec::with_capacity(self.classes.len() + 1);
        if self.classes[0].is_some() {
            terms.push(Term::new(Class::Constant, 0.0));
        }
        for (class, c) in self.classes.iter().zip(solved.c) {
            terms.push(match class {
                None => base(points, c),
                Some(class) => Term::new(*class, c / class.g(n_max) * points.y_unit),
            });
        }
        terms.iter().all(|t| t.coefficient.is_finite()).then_some(terms)
    }
}

impl Model for Sum<'_> {
    fn columns(&self) -> usize {
        self.columns.len()
    }

    fn free_sign(&self, j: usize) -> bool {
        self.free == Some(j)
    }

    fn fill(&self, _theta: f64, columns: &mut [Vec<f64>], _derivative: &mut Vec<f64>) {
        for (column, source) in columns.iter_mut().zip(&self.columns) {
            match source {
                Some(values) => column.copy_from_slice(values),
                None => column.fill(1.0),
            }
        }
    }
}

/// `a + b·n^θ` or `b·n^θ`.
struct FreePower<'a> {
    ln_n: &'a [f64],
    constant: bool,
}

impl Model for FreePower<'_> {
    fn columns(&self) -> usize {
        1 + self.constant as usize
    }

    fn has_theta(&self) -> bool {
        true
    }

    fn theta_density(&self, _theta: f64) -> f64 {
        1.0 / EXPONENT_RANGE
    }

    fn clamp(&self, theta: f64) -> f64 {
        theta.clamp(0.02, 20.0)
    }

    fn fill(&self, theta: f64, columns: &mut [Vec<f64>], derivative: &mut Vec<f64>) {
        let last = self.constant as usize;
        if self.constant {
            columns[0].fill(1.0);
        }
        for (i, &ln_n) in self.ln_n.iter().enumerate() {
            let power = (theta * ln_n).exp();
            columns[last][i] = power;
            derivative[i] = power * ln_n;
        }
    }
}

/// `a + b·2^(θ·n)` or `b·2^(θ·n)`: an exponential of any base.
struct FreeBase<'a> {
    n: &'a [f64],
    constant: bool,
}

impl Model for FreeBase<'_> {
    fn columns(&self) -> usize {
        1 + self.constant as usize
    }

    fn has_theta(&self) -> bool {
        true
    }

    fn theta_density(&self, _theta: f64) -> f64 {
        1.0 / (RATES.end - RATES.start)
    }

    fn clamp(&self, theta: f64) -> f64 {
        theta.clamp(RATES.start, RATES.end)
    }

    fn fill(&self, theta: f64, columns: &mut [Vec<f64>], derivative: &mut Vec<f64>) {
        let last = self.constant as usize;
        columns[0].fill(1.0);
        let n_max = self.n[self.n.len() - 1];
        for (i, &n) in self.n.iter().enumerate() {
            let value = (theta * (n - n_max)).exp2();
            columns[last][i] = value;
            derivative[i] = value * (n - n_max) * std::f64::consts::LN_2;
        }
    }
}

fn exponential(
    points: &Points,
    range: (usize, usize),
    constant: bool,
    scratch: &mut Scratch,
) -> Option<Candidate> {
    let n = &points.n[range.0..range.1];
    let (last, middle) = (n.len() - 1, n.len() / 2);
    let rise = (points.ln_y[range.0 + last] - points.ln_y[range.0 + middle]) / std::f64::consts::LN_2;
    let start = rise / (n[last] - n[middle]);
    // Sizes in the thousands make every exponential a wall.
    if !RATES.contains(&start) || n[last] > SIZE_MAX_EXPONENTIAL {
        return None;
    }
    let solved = solve(points, range, &FreeBase { n, constant }, start, scratch)?;
    let coefficient = solved.c[constant as usize] * (-solved.theta * n[last]).exp2() * points.y_unit;
    let term = Term { rate: solved.theta, ..Term::new(Class::Exponential, coefficient) };
    let inside = solved.theta > RATES.start && solved.theta < RATES.end && coefficient.is_finite();
    let weight = solved.evidence + PRIOR_BASE.ln();
    let terms =
        vec![if constant { base(points, solved.c[0]) } else { Term::new(Class::Constant, 0.0) }, term];
    inside.then_some(Candidate { class: Class::Exponential, terms, solved, weight })
}

fn power_terms(points: &Points, solved: &Solved, with_constant: bool) -> Option<Vec<Term>> {
    let class = Class::Power(solved.theta);
    let b = solved.c[with_constant as usize] / class.g(points.n[points.len() - 1].max(0.5)) * points.y_unit;
    let a = if with_constant { base(points, solved.c[0]) } else { Term::new(Class::Constant, 0.0) };
    (a.coefficient.is_finite() && b.is_finite()).then(|| vec![a, Term::new(class, b)])
}

/// The constant of a curve in the units of the samples; dust of the arithmetic is nothing.
pub(crate) fn base(points: &Points, c: f64) -> Term {
    let smallest = points.y.iter().copied().fold(f64::INFINITY, f64::min);
    let share = c - points.offset;
    Term::new(Class::Constant, if share > 1e-4 * smallest { share * points.y_unit } else { 0.0 })
}
