//! Curves of an input that is not all data: `b·g(n − k)` and `a + b·g(n − k)`.
//!
//! Sizes are what a routine read: the elements, and a few cells besides (arguments, headers, the length). So a
//! loop over m elements costs b·m on a size of m + k, and near the smallest sizes its cost grows faster than
//! its class. k is at least 0 and below the smallest size seen; it is one more unknown, and charged as one.

use crate::class::Class;
use crate::growth::Term;
use crate::points::Points;
use crate::select::{Candidate, base};
use crate::solve::{Model, Scratch, solve};

/// Classes that are looked for, and whether also on top of a constant: a line with both is one line twice.
/// A shifted square or cube is one with a term of lower order, which is a plain candidate.
const FORMS: [(Class, bool); 4] =
    [(Class::Linear, false), (Class::NLogN, false), (Class::NLogN, true), (Class::N15, true)];
/// How much flatter, as an exponent, the curve must become for a shift to be worth a look.
const BEND_MIN: f64 = 0.02;
/// Prior of the form within its class, beside those without k.
const PRIOR_FORM: f64 = 0.05;
/// The largest k, as a part of the smallest size.
const REACH: f64 = 0.999;
/// Relative scatter around the best plain curve from which on there is something left to explain.
const SCATTER_MIN: f64 = 0.004;

/// Candidates with a shift. `scatter` is that of the best candidate without one.
pub(crate) fn candidates(
    points: &Points,
    range: (usize, usize),
    scatter: f64,
    prior: impl Fn(Class) -> f64,
    scratch: &mut Scratch,
) -> Vec<Candidate> {
    let n = &points.n[range.0..range.1];
    if scatter < SCATTER_MIN || n[0] < 1.0 || !flattens(points, range) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (class, constant) in FORMS {
        let model = Shifted { n, class, constant, unit: class.g(n[n.len() - 1]) };
        let Some(solved) = solve(points, range, &model, 0.5 * n[0], scratch) else { continue };
        let shift = solved.theta;
        let b = solved.c[usize::from(constant)] / model.unit * points.y_unit;
        let a = if constant { base(points, solved.c[0]) } else { Term::new(Class::Constant, 0.0) };
        if !b.is_finite() || !a.coefficient.is_finite() || shift < 0.01 * n[0] {
            continue;
        }
        let terms = vec![a, Term { shift, ..Term::new(class, b) }];
        let weight = solved.evidence + (prior(class) * PRIOR_FORM).ln();
        found.push(Candidate { class, terms, solved, weight });
    }
    found
}

/// Whether the curve is steeper, in log-log, between its small sizes than between its large ones.
fn flattens(points: &Points, (from, to): (usize, usize)) -> bool {
    let quarter = ((to - from) / 4).max(1);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let at =
        |from: usize| (mean(&points.ln_n[from..from + quarter]), mean(&points.ln_y[from..from + quarter]));
    let (low, middle, high) = (at(from), at(from + (to - from - quarter) / 2), at(to - quarter));
    let slope = |a: (f64, f64), b: (f64, f64)| (b.1 - a.1) / (b.0 - a.0);
    let (early, late) = (slope(low, middle), slope(middle, high));
    early.is_finite() && late.is_finite() && early > late + BEND_MIN
}

/// `b·g(n − θ)` or `a + b·g(n − θ)`, in units of g at the largest size.
struct Shifted<'a> {
    n: &'a [f64],
    class: Class,
    constant: bool,
    /// g at the largest size.
    unit: f64,
}

impl Shifted<'_> {
    fn value(&self, n: f64, theta: f64) -> f64 {
        self.class.g((n - theta).max(0.0)) / self.unit
    }
}

impl Model for Shifted<'_> {
    fn columns(&self) -> usize {
        1 + usize::from(self.constant)
    }

    fn has_theta(&self) -> bool {
        true
    }

    fn theta_density(&self, _theta: f64) -> f64 {
        1.0 / self.n[0]
    }

    fn clamp(&self, theta: f64) -> f64 {
        theta.clamp(0.0, REACH * self.n[0])
    }

    fn fill(&self, theta: f64, columns: &mut [Vec<f64>], derivative: &mut Vec<f64>) {
        let last = usize::from(self.constant);
        columns[0].fill(1.0);
        let step = 1e-4 * self.n[0];
        for (i, &n) in self.n.iter().enumerate() {
            columns[last][i] = self.value(n, theta);
            derivative[i] = (self.value(n, theta + step) - self.value(n, theta - step)) / (2.0 * step);
        }
    }
}
