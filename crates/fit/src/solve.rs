//! One model against the points: robust coefficients, and how probable the model makes the data.
//!
//! A model is a sum of positive multiples of columns, `f = Σ c_j·t_j(n)`, of which the last may depend on one
//! more parameter θ (the exponent of a free power, the onset of a regime). Residuals are logarithmic,
//! `r = ln(y/f)`: costs are off by a factor, not by an amount, so small sizes count as much as large ones.
//!
//! - Gauss-Newton on `Σ w·r²`. With shares `s_j = c_j·t_j/f` the step is the least-squares solution of
//!   `Σ m_j·s_j ≈ 1 + r`, a factor m_j for each coefficient, which keeps the scaling harmless.
//! - Three rounds with Cauchy weights find the bulk; then each point is either on the curve or an outlier,
//!   whichever is more probable under the mixture `(1-ε)·N(0, σ²) + ε·U`.
//! - The evidence is the probability of the data with the coefficients and σ integrated out (Laplace's
//!   approximation, inverse-gamma prior on σ²). It charges each parameter by how much of its prior range the
//!   data rule out, which is what BIC approximates for large N.

use crate::lanes::{LANES, Lanes, larger};
use crate::ln::ln;
use crate::normal::{Normal, Sums};
use crate::points::Points;

/// Prior probability that a point is an outlier.
const OUTLIER: f64 = 0.04;
/// Density of an outlier's log residual: up to 30 times too high or too low.
const OUTLIER_DENSITY: f64 = 0.147;
/// Largest share of points that may be outliers; more than that is another regime or plain scatter.
const OUTLIER_SHARE_MAX: f64 = 0.2;
/// The prior on σ counts as this many observations ...
const SIGMA_PRIOR_WEIGHT: f64 = 1.0;
/// ... of this relative error.
const SIGMA_PRIOR: f64 = 0.01;
/// Prior density of the logarithm of the curve's scale. Cancels between models of equally many regimes.
const SCALE_DENSITY: f64 = 0.25;

/// Models that are behind the best one by this much, in units of log evidence, are not finished: a factor of
/// some ten million.
const HOPELESS: f64 = 18.0;

const LN_2PI: f64 = 1.837_877_066_409_345_3;
/// Most columns of a model.
pub(crate) const COLUMNS_MAX: usize = 3;

/// The columns of a model for a range of points, recomputed when θ moves.
pub(crate) trait Model {
    /// Number of columns, at most [`COLUMNS_MAX`].
    fn columns(&self) -> usize;
    /// Whether there is a θ.
    fn has_theta(&self) -> bool {
        false
    }
    /// Whether the coefficient of column `j` may be negative.
    fn free_sign(&self, _j: usize) -> bool {
        false
    }
    /// Prior density of θ (and, through it, the cost of having one).
    fn theta_density(&self, _theta: f64) -> f64 {
        1.0
    }
    /// A θ within its bounds.
    fn clamp(&self, theta: f64) -> f64 {
        theta
    }
    /// Writes column `j` for θ; with θ itself also the derivative of the last column by it.
    fn fill(&self, theta: f64, columns: &mut [Vec<f64>], derivative: &mut Vec<f64>);
}

/// A solved model.
#[derive(Clone)]
pub(crate) struct Solved {
    /// Coefficients of the columns, costs in units of [`Points::y_unit`].
    pub c: [f64; COLUMNS_MAX],
    /// θ, where there is one.
    pub theta: f64,
    /// Standard deviation of θ.
    pub theta_sd: f64,
    /// Log residuals of all points of the range.
    pub r: Vec<f64>,
    /// Which of them are outliers.
    pub outlier: Vec<bool>,
    /// Relative standard deviation around the curve, outliers aside.
    pub sigma: f64,
    /// Degrees of freedom behind `sigma`.
    pub freedom: f64,
    /// Natural logarithm of the evidence.
    pub evidence: f64,
    /// Share of the last column at the last point.
    pub top_share: f64,
}

impl Solved {
    /// Number of outliers.
    pub fn outliers(&self) -> usize {
        self.outlier.iter().filter(|&&outlier| outlier).count()
    }
}

/// Buffers that the solutions of one curve share, and the bar that the best of them has set.
pub(crate) struct Scratch {
    /// Best evidence so far on the points at hand.
    bar: f64,
    /// Least sum of squared relative errors so far.
    rest: f64,
    columns: Vec<Vec<f64>>,
    derivative: Vec<f64>,
    f: Vec<f64>,
    r: Vec<f64>,
    w: Vec<f64>,
    sorted: Vec<f64>,
    magnitudes: Vec<u64>,
}

impl Scratch {
    pub fn new() -> Scratch {
        let empty = Vec::new;
        Scratch {
            bar: f64::NEG_INFINITY,
            rest: f64::INFINITY,
            columns: vec![empty(); COLUMNS_MAX],
            derivative: empty(),
            f: empty(),
            r: empty(),
            w: empty(),
            sorted: empty(),
            magnitudes: Vec::new(),
        }
    }

    /// Forgets the bar: what follows is about other points.
    pub fn lower_bar(&mut self) {
        self.bar = f64::NEG_INFINITY;
        self.rest = f64::INFINITY;
    }

    /// Whether a solution so far behind is not worth finishing: even its share of the total would not show.
    fn hopeless(&self, evidence: f64) -> bool {
        evidence < self.bar - HOPELESS
    }
}

/// Solves `model` on the points `from..to`, or `None` where no positive, growing curve of it fits, or where it
/// is hopelessly behind the best model on the same points.
pub(crate) fn solve(
    points: &Points,
    (from, to): (usize, usize),
    model: &dyn Model,
    theta: f64,
    scratch: &mut Scratch,
) -> Option<Solved> {
    let len = to - from;
    scratch.columns.iter_mut().for_each(|column| column.resize(len, 0.0));
    for buffer in [&mut scratch.derivative, &mut scratch.f, &mut scratch.r, &mut scratch.w] {
        buffer.clear();
        buffer.resize(len, 0.0);
    }
    let solver = Solver {
        y: &points.y[from..to],
        ln_y: &points.ln_y[from..to],
        u: &points.u[from..to],
        floor2: points.floor2,
        model,
    };
    // The numbers of columns and of unknowns are types, so that the inner loops have no loops within.
    match (model.columns(), model.has_theta()) {
        (1, false) => solver.run::<1, 1>(theta, scratch),
        (2, false) => solver.run::<2, 2>(theta, scratch),
        (3, false) => solver.run::<3, 3>(theta, scratch),
        (1, true) => solver.run::<1, 2>(theta, scratch),
        (2, true) => solver.run::<2, 3>(theta, scratch),
        (3, true) => solver.run::<3, 4>(theta, scratch),
        _ => None,
    }
}

struct Solver<'a> {
    y: &'a [f64],
    ln_y: &'a [f64],
    u: &'a [f64],
    floor2: f64,
    model: &'a dyn Model,
}

/// The `P` columns of `len` points.
fn columns<const P: usize>(columns: &[Vec<f64>], len: usize) -> [&[f64]; P] {
    std::array::from_fn(|j| &columns[j][..len])
}

impl Solver<'_> {
    /// `P` columns, `Q` unknowns: one more with θ.
    fn run<const P: usize, const Q: usize>(&self, theta: f64, scratch: &mut Scratch) -> Option<Solved> {
        let len = self.y.len();
        if len < Q {
            return None;
        }
        let mut theta = self.model.clamp(theta);
        self.model.fill(theta, &mut scratch.columns, &mut scratch.derivative);
        let mut c = self.start::<P, Q>(scratch)?;
        let mut outlier = vec![false; len];
        let mut settled = false;
        for round in 0..16 {
            if !self.residuals(&c, scratch) {
                return None;
            }
            if round < 3 {
                let scale = self.median_scale(scratch).max(self.floor2.sqrt());
                let reach = 1.0 / (2.5 * scale).powi(2);
                for ((w, r), u) in scratch.w.iter_mut().zip(&scratch.r).zip(self.u) {
                    *w = u / (1.0 + r * r * reach);
                }
            } else {
                let changed = self.classify(round, Q, scratch, &mut outlier);
                let (rss, count) = self.sum_of_squares(scratch, &outlier);
                // The rounds that are left improve a curve, but not by half its errors.
                if P == Q && count > Q && scratch.hopeless(self.likelihood(0.5 * rss, count, Q)) {
                    return None;
                }
                if settled && !changed {
                    break;
                }
                for ((w, outlier), u) in scratch.w.iter_mut().zip(&outlier).zip(self.u) {
                    *w = if *outlier { 0.0 } else { *u };
                }
            }
            let moved = self.step::<P, Q>(&mut c, &mut theta, scratch)?;
            settled = moved < 1e-3;
        }
        if !self.residuals(&c, scratch) {
            return None;
        }
        self.finish::<P, Q>(c, theta, outlier, scratch)
    }

    /// Least squares of relative errors `(f − y)/y`: linear, and high outliers have bounded influence.
    fn start<const P: usize, const Q: usize>(&self, scratch: &mut Scratch) -> Option<[f64; P]> {
        let len = self.y.len();
        let columns: [&[f64]; P] = columns(&scratch.columns, len);
        let mut sums = Sums::<P>::new();
        let whole = len - len % LANES;
        for i in (0..whole).step_by(LANES) {
            let inverse = Lanes::all(1.0) / Lanes::at(self.y, i);
            let row = columns.map(|column| Lanes::at(column, i) * inverse);
            sums.add(&row, Lanes::all(1.0), Lanes::at(self.u, i));
        }
        let mut normal = sums.fold();
        for i in whole..len {
            normal.add(&columns.map(|column| column[i] / self.y[i]), 1.0, self.u[i]);
        }
        let total: f64 = self.u.iter().sum();
        let (mut c, _) = normal.solve()?;
        let positive = (0..P).all(|j| c[j] > 0.0 || self.model.free_sign(j) && c[j] < 0.0)
            && (0..len).all(|i| (0..P).map(|j| c[j] * columns[j][i]).sum::<f64>() > 0.0);
        if positive && P == Q {
            let rest = (total - normal.explained(&c)).max(0.0) + len as f64 * self.floor2;
            if 0.5 * len as f64 * (rest / scratch.rest).ln() > HOPELESS {
                return None;
            }
            scratch.rest = scratch.rest.min(rest);
        }
        if !positive || P == 1 {
            // Outliers, low ones above all, can pull this far off: begin with equal parts at the median, and let
            // the rounds decide.
            for j in 0..P {
                scratch.sorted.clear();
                scratch
                    .sorted
                    .extend(columns[j].iter().zip(self.y).filter(|(t, _)| **t > 0.0).map(|(t, y)| y / t));
                let middle = scratch.sorted.len() / 2;
                if scratch.sorted.is_empty() {
                    return None;
                }
                let median = *scratch.sorted.select_nth_unstable_by(middle, f64::total_cmp).1;
                c[j] = median / P as f64;
            }
        }
        c.iter().all(|c| c.is_finite()).then_some(c)
    }

    /// Fills `f` and `r`; false where the curve is not positive.
    fn residuals<const P: usize>(&self, c: &[f64; P], scratch: &mut Scratch) -> bool {
        let len = self.y.len();
        let columns: [&[f64]; P] = columns(&scratch.columns, len);
        let (f, r, ln_y) = (&mut scratch.f[..len], &mut scratch.r[..len], &self.ln_y[..len]);
        let mut fits = true;
        for i in 0..len {
            f[i] = (0..P).map(|j| c[j] * columns[j][i]).sum();
            fits &= (f[i] >= f64::MIN_POSITIVE) & (f[i] <= f64::MAX);
        }
        for i in 0..len {
            r[i] = ln_y[i] - ln(f[i]);
        }
        fits
    }

    fn median_scale(&self, scratch: &mut Scratch) -> f64 {
        // Numbers without a sign are in the order of their bits, which are compared faster.
        scratch.magnitudes.clear();
        scratch.magnitudes.extend(scratch.r.iter().map(|r| r.abs().to_bits()));
        let middle = scratch.magnitudes.len() / 2;
        1.4826 * f64::from_bits(*scratch.magnitudes.select_nth_unstable(middle).1)
    }

    /// Decides which points are outliers under the current curve; true when that changed.
    fn classify(&self, round: usize, unknowns: usize, scratch: &mut Scratch, outlier: &mut [bool]) -> bool {
        let len = self.y.len();
        let allowed = if len < 6 { 0 } else { ((len as f64 * OUTLIER_SHARE_MAX) as usize).max(1) };
        // Later rounds would only chase a flip-flop.
        if allowed == 0 || round > 10 {
            return false;
        }
        let sigma2 = if round == 3 {
            let spare = len as f64 / (len - unknowns).max(1) as f64;
            self.median_scale(scratch).powi(2) * spare + self.floor2 + SIGMA_PRIOR * SIGMA_PRIOR / len as f64
        } else {
            let (rss, count) = self.sum_of_squares(scratch, outlier);
            variance(rss, count, unknowns, self.floor2).0
        };
        let margin = ((1.0 - OUTLIER) / (OUTLIER * OUTLIER_DENSITY * sigma2.sqrt())).ln() - 0.5 * LN_2PI;
        let limit = 2.0 * margin.max(2.0) * sigma2;
        let square = |i: usize| self.u[i] * scratch.r[i] * scratch.r[i];
        scratch.sorted.clear();
        scratch.sorted.extend((0..len).map(square).filter(|&square| square > limit));
        let limit = if scratch.sorted.len() > allowed {
            scratch.sorted.sort_by(|a, b| b.total_cmp(a));
            scratch.sorted[allowed]
        } else {
            limit
        };
        let mut changed = false;
        for (i, flag) in outlier.iter_mut().enumerate() {
            let now = square(i) > limit;
            changed |= now != *flag;
            *flag = now;
        }
        changed
    }

    fn sum_of_squares(&self, scratch: &Scratch, outlier: &[bool]) -> (f64, usize) {
        let (mut sums, mut count) = ([0.0; LANES], 0);
        for (i, ((r, u), outlier)) in scratch.r.iter().zip(self.u).zip(outlier).enumerate() {
            sums[i % LANES] += if *outlier { 0.0 } else { u * r * r };
            count += usize::from(!outlier);
        }
        (sums.iter().sum(), count)
    }

    /// One Gauss-Newton step; the largest relative change, or `None` where the equations are singular or a
    /// coefficient vanishes.
    fn step<const P: usize, const Q: usize>(
        &self,
        c: &mut [f64; P],
        theta: &mut f64,
        scratch: &mut Scratch,
    ) -> Option<f64> {
        let len = self.y.len();
        let columns: [&[f64]; P] = columns(&scratch.columns, len);
        let (f, r, w) = (&scratch.f[..len], &scratch.r[..len], &scratch.w[..len]);
        let derivative = &scratch.derivative[..len];
        // Far residuals would overshoot: the logarithm is only locally linear.
        let target = |r: f64| 1.0 + if r > 1.0 { 1.0 } else { larger(r, -1.0) };
        let all: [&[f64]; Q] = std::array::from_fn(|j| if j < P { columns[j] } else { derivative });
        let factor: [f64; Q] = std::array::from_fn(|j| c[j.min(P - 1)]);
        let mut sums = Sums::<Q>::new();
        let mut shares = [Lanes::all(0.0); P];
        let whole = len - len % LANES;
        for i in (0..whole).step_by(LANES) {
            let inverse = Lanes::all(1.0) / Lanes::at(f, i);
            let mut row = [inverse; Q];
            for j in 0..Q {
                row[j] = Lanes::at(all[j], i) * Lanes::all(factor[j]) * inverse;
            }
            for j in 0..P {
                shares[j] = shares[j].larger(row[j].map(f64::abs));
            }
            sums.add(&row, Lanes::at(r, i).map(target), Lanes::at(w, i));
        }
        let mut normal = sums.fold();
        let mut shares = shares.map(Lanes::largest);
        for i in whole..len {
            let row: [f64; Q] = std::array::from_fn(|j| factor[j] * all[j][i] / f[i]);
            for j in 0..P {
                shares[j] = larger(shares[j], row[j].abs());
            }
            normal.add(&row, target(r[i]), w[i]);
        }
        let (solution, _) = normal.solve()?;
        // A coefficient that shrinks tenfold at every step is on its way to zero: the simpler model is better.
        if P > 1 && (0..P).any(|j| solution[j] <= 0.1 && shares[j] < 0.01) {
            return None;
        }
        let mut moved = 0f64;
        for j in 0..P {
            let factor = if self.model.free_sign(j) { solution[j] } else { solution[j].clamp(0.1, 10.0) };
            moved = moved.max((factor - 1.0).abs());
            c[j] *= factor;
        }
        if Q > P {
            // How far θ may move in one step.
            let reach = 0.3 * theta.abs() + 0.1;
            let now = self.model.clamp(*theta + solution[P].clamp(-reach, reach));
            moved = moved.max((now - *theta).abs() / (1e-9 + theta.abs()));
            *theta = now;
            self.model.fill(now, &mut scratch.columns, &mut scratch.derivative);
        }
        moved.is_finite().then_some(moved)
    }

    fn finish<const P: usize, const Q: usize>(
        &self,
        c: [f64; P],
        theta: f64,
        outlier: Vec<bool>,
        scratch: &mut Scratch,
    ) -> Option<Solved> {
        let len = self.y.len();
        let columns: [&[f64]; P] = columns(&scratch.columns, len);
        // Scale first, then each further coefficient relative to it: column 0 becomes the sum of all shares.
        let mut normal = Normal::<Q>::new();
        let mut density = [0.0; Q];
        let mut share_max = [0f64; P];
        for i in 0..len {
            let share = |j: usize| c[j] * columns[j][i] / scratch.f[i];
            let mut row = [1.0; Q];
            for j in 1..P {
                row[j] = share(j);
                density[j] += (row[j] * (1.0 - row[j])).abs();
                share_max[j] = share_max[j].max(row[j].abs());
            }
            share_max[0] = share_max[0].max(share(0).abs());
            if Q > P {
                row[P] = c[P - 1] * scratch.derivative[i] / scratch.f[i];
            }
            normal.add(&row, 0.0, if outlier[i] { 0.0 } else { self.u[i] });
        }
        if share_max.iter().any(|&share| share < 1e-4) {
            return None;
        }
        density.iter_mut().for_each(|sum| *sum /= len as f64);
        density[0] = SCALE_DENSITY;
        if Q > P {
            density[P] = self.model.theta_density(theta);
        }
        let (rss, count) = self.sum_of_squares(scratch, &outlier);
        if count < Q {
            return None;
        }
        let sigma2 = variance(rss, count, Q, self.floor2).0;
        let (_, pivots) = normal.solve()?;
        let mut evidence = self.likelihood(rss, count, Q);
        for j in 0..Q {
            // Data that say nothing of a parameter must not be counted as agreeing with every value of it.
            let free = -0.5 * sigma2.ln() - 0.5 * LN_2PI;
            evidence += (density[j].max(1e-12).ln() - 0.5 * pivots[j].ln()).min(free);
        }
        if !evidence.is_finite() {
            return None;
        }
        scratch.bar = scratch.bar.max(evidence);
        let top_share = c[P - 1] * columns[P - 1][len - 1] / scratch.f[len - 1];
        let freedom = (count - Q) as f64;
        let mut coefficients = [0.0; COLUMNS_MAX];
        coefficients[..P].copy_from_slice(&c);
        Some(Solved {
            c: coefficients,
            theta,
            theta_sd: if Q > P { (sigma2 / pivots[Q - 1]).sqrt() } else { 0.0 },
            r: scratch.r.clone(),
            outlier,
            sigma: (rss / freedom.max(1.0)).sqrt(),
            freedom,
            evidence,
            top_share,
        })
    }

    /// Probability of the data with σ integrated out, before the coefficients' shares of their prior ranges.
    fn likelihood(&self, rss: f64, count: usize, unknowns: usize) -> f64 {
        let (_, freedom, total) = variance(rss, count, unknowns, self.floor2);
        let prior = SIGMA_PRIOR_WEIGHT * SIGMA_PRIOR * SIGMA_PRIOR;
        libm::lgamma(freedom / 2.0) - freedom / 2.0 * (total / 2.0).ln()
            + SIGMA_PRIOR_WEIGHT / 2.0 * (prior / 2.0).ln()
            - libm::lgamma(SIGMA_PRIOR_WEIGHT / 2.0)
            - (count - unknowns) as f64 / 2.0 * LN_2PI
            + (self.y.len() - count) as f64 * (OUTLIER * OUTLIER_DENSITY).ln()
            + count as f64 * (1.0 - OUTLIER).ln()
    }
}

/// Posterior σ², its degrees of freedom and the sum of squares behind it.
fn variance(rss: f64, count: usize, unknowns: usize, floor2: f64) -> (f64, f64, f64) {
    let total = rss + count as f64 * floor2 + SIGMA_PRIOR_WEIGHT * SIGMA_PRIOR * SIGMA_PRIOR;
    let freedom = count.saturating_sub(unknowns) as f64 + SIGMA_PRIOR_WEIGHT;
    (total / freedom, freedom, total)
}
