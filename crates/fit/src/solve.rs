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

const LN_2PI: f64 = 1.837_877_066_409_345_3;
/// Columns and θ.
pub(crate) const PARAMETERS_MAX: usize = 5;

/// The columns of a model for a range of points, recomputed when θ moves.
pub(crate) trait Model {
    /// Number of columns, at most 4.
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
    pub c: [f64; 4],
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

/// Buffers that one thread of fitting reuses.
#[derive(Default)]
pub(crate) struct Scratch {
    columns: Vec<Vec<f64>>,
    derivative: Vec<f64>,
    f: Vec<f64>,
    r: Vec<f64>,
    w: Vec<f64>,
    sorted: Vec<f64>,
}

/// Solves `model` on the points `from..to`, or `None` where no positive, growing curve of it fits.
pub(crate) fn solve(
    points: &Points,
    (from, to): (usize, usize),
    model: &dyn Model,
    theta: f64,
    scratch: &mut Scratch,
) -> Option<Solved> {
    let p = model.columns();
    let len = to - from;
    let mut s =
        Solver { y: &points.y[from..to], ln_y: &points.ln_y[from..to], u: &points.u[from..to], model, p };
    scratch.columns.resize_with(4, Vec::new);
    scratch.columns.iter_mut().for_each(|column| column.resize(len, 0.0));
    for buffer in [&mut scratch.derivative, &mut scratch.f, &mut scratch.r, &mut scratch.w] {
        buffer.clear();
        buffer.resize(len, 0.0);
    }
    s.run(points.floor2, theta, scratch)
}

struct Solver<'a> {
    y: &'a [f64],
    ln_y: &'a [f64],
    u: &'a [f64],
    model: &'a dyn Model,
    p: usize,
}

impl Solver<'_> {
    fn run(&mut self, floor2: f64, theta: f64, scratch: &mut Scratch) -> Option<Solved> {
        let len = self.y.len();
        let unknowns = self.p + self.model.has_theta() as usize;
        if len < unknowns {
            return None;
        }
        let mut theta = self.model.clamp(theta);
        self.model.fill(theta, &mut scratch.columns, &mut scratch.derivative);
        let mut c = self.start(scratch)?;
        let mut outlier = vec![false; len];
        let mut settled = false;
        for round in 0..16 {
            if !self.residuals(&c, scratch) {
                return None;
            }
            if round < 3 {
                let scale = self.median_scale(scratch).max(floor2.sqrt());
                let reach2 = (2.5 * scale).powi(2);
                for i in 0..len {
                    scratch.w[i] = self.u[i] / (1.0 + scratch.r[i] * scratch.r[i] / reach2);
                }
            } else {
                let changed = self.classify(round, floor2, unknowns, scratch, &mut outlier);
                if settled && !changed {
                    break;
                }
                for i in 0..len {
                    scratch.w[i] = if outlier[i] { 0.0 } else { self.u[i] };
                }
            }
            let moved = self.step(&mut c, &mut theta, scratch)?;
            settled = moved < 1e-4;
        }
        if !self.residuals(&c, scratch) {
            return None;
        }
        self.finish(c, theta, outlier, floor2, scratch)
    }

    /// Least squares of relative errors `(f − y)/y`: linear, and high outliers have bounded influence.
    fn start(&self, scratch: &mut Scratch) -> Option<[f64; 4]> {
        let mut normal = Normal::new(self.p);
        let mut row = [0.0; PARAMETERS_MAX];
        for i in 0..self.y.len() {
            for j in 0..self.p {
                row[j] = scratch.columns[j][i] / self.y[i];
            }
            normal.add(&row, 1.0, self.u[i]);
        }
        let mut c = [0.0; 4];
        if let Some((solution, _)) = normal.solve() {
            c.copy_from_slice(&solution[..4]);
        }
        let fits = |c: &[f64; 4]| {
            (0..self.p).all(|j| c[j] > 0.0 || self.model.free_sign(j) && c[j] < 0.0)
                && (0..self.y.len())
                    .all(|i| (0..self.p).map(|j| c[j] * scratch.columns[j][i]).sum::<f64>() > 0.0)
        };
        if !fits(&c) {
            // Outliers can push a coefficient below zero: begin with equal parts and let the rounds decide.
            let typical = |j: usize| {
                let shares = (0..self.y.len()).map(|i| scratch.columns[j][i] / self.y[i]).sum::<f64>();
                self.y.len() as f64 / shares
            };
            for (j, c) in c.iter_mut().enumerate().take(self.p) {
                *c = typical(j) / self.p as f64;
            }
        }
        c.iter().all(|c| c.is_finite()).then_some(c)
    }

    /// Fills `f` and `r`; false where the curve is not positive.
    fn residuals(&self, c: &[f64; 4], scratch: &mut Scratch) -> bool {
        for i in 0..self.y.len() {
            let mut f = 0.0;
            for j in 0..self.p {
                f += c[j] * scratch.columns[j][i];
            }
            if !(f > 0.0 && f.is_finite()) {
                return false;
            }
            scratch.f[i] = f;
            scratch.r[i] = self.ln_y[i] - f.ln();
        }
        true
    }

    fn median_scale(&self, scratch: &mut Scratch) -> f64 {
        scratch.sorted.clear();
        scratch.sorted.extend(scratch.r.iter().map(|r| r.abs()));
        let middle = scratch.sorted.len() / 2;
        1.4826 * *scratch.sorted.select_nth_unstable_by(middle, f64::total_cmp).1
    }

    /// Decides which points are outliers under the current curve; true when that changed.
    fn classify(
        &self,
        round: usize,
        floor2: f64,
        unknowns: usize,
        scratch: &mut Scratch,
        outlier: &mut [bool],
    ) -> bool {
        let len = self.y.len();
        let allowed = if len < 6 { 0 } else { ((len as f64 * OUTLIER_SHARE_MAX) as usize).max(1) };
        // Later rounds would only chase a flip-flop.
        if allowed == 0 || round > 10 {
            return false;
        }
        let sigma2 = if round == 3 {
            let spare = len as f64 / (len - unknowns).max(1) as f64;
            self.median_scale(scratch).powi(2) * spare + floor2 + SIGMA_PRIOR * SIGMA_PRIOR / len as f64
        } else {
            let (rss, count) = self.sum_of_squares(scratch, outlier);
            variance(rss, count, unknowns, floor2).0
        };
        let sigma = sigma2.sqrt();
        let margin = ((1.0 - OUTLIER) / (OUTLIER * OUTLIER_DENSITY * sigma)).ln() - 0.5 * LN_2PI;
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
            let now = self.u[i] * scratch.r[i] * scratch.r[i] > limit;
            changed |= now != *flag;
            *flag = now;
        }
        changed
    }

    fn sum_of_squares(&self, scratch: &Scratch, outlier: &[bool]) -> (f64, usize) {
        let mut rss = 0.0;
        let mut count = 0;
        for i in 0..self.y.len() {
            if !outlier[i] {
                rss += self.u[i] * scratch.r[i] * scratch.r[i];
                count += 1;
            }
        }
        (rss, count)
    }

    /// One Gauss-Newton step; the largest relative change, or `None` where the equations are singular.
    fn step(&self, c: &mut [f64; 4], theta: &mut f64, scratch: &mut Scratch) -> Option<f64> {
        let has_theta = self.model.has_theta();
        let mut normal = Normal::new(self.p + has_theta as usize);
        let mut row = [0.0; PARAMETERS_MAX];
        for i in 0..self.y.len() {
            let inverse = 1.0 / scratch.f[i];
            for j in 0..self.p {
                row[j] = c[j] * scratch.columns[j][i] * inverse;
            }
            if has_theta {
                row[self.p] = c[self.p - 1] * scratch.derivative[i] * inverse;
            }
            // Far residuals would overshoot: the logarithm is only locally linear.
            normal.add(&row, 1.0 + scratch.r[i].clamp(-1.0, 1.0), scratch.w[i]);
        }
        let (solution, _) = normal.solve()?;
        let mut moved = 0f64;
        for j in 0..self.p {
            let factor = if self.model.free_sign(j) { solution[j] } else { solution[j].clamp(0.1, 10.0) };
            moved = moved.max((factor - 1.0).abs());
            c[j] *= factor;
        }
        if has_theta {
            let now =
                self.model.clamp(*theta + solution[self.p].clamp(-self.reach(*theta), self.reach(*theta)));
            moved = moved.max((now - *theta).abs() / (1e-9 + theta.abs()));
            *theta = now;
            self.model.fill(now, &mut scratch.columns, &mut scratch.derivative);
        }
        moved.is_finite().then_some(moved)
    }

    /// How far θ may move in one step.
    fn reach(&self, theta: f64) -> f64 {
        0.3 * theta.abs() + 0.1
    }

    fn finish(
        &self,
        c: [f64; 4],
        theta: f64,
        outlier: Vec<bool>,
        floor2: f64,
        scratch: &Scratch,
    ) -> Option<Solved> {
        let len = self.y.len();
        let has_theta = self.model.has_theta();
        let unknowns = self.p + has_theta as usize;
        // Scale first, then each further coefficient relative to it: column 0 becomes the sum of all shares.
        let mut normal = Normal::new(unknowns);
        let mut row = [0.0; PARAMETERS_MAX];
        let mut density = [0.0; PARAMETERS_MAX];
        let mut share_max = [0f64; PARAMETERS_MAX];
        for i in 0..len {
            row[0] = 1.0;
            for j in 1..self.p {
                row[j] = c[j] * scratch.columns[j][i] / scratch.f[i];
                density[j] += (row[j] * (1.0 - row[j])).abs();
                share_max[j] = share_max[j].max(row[j].abs());
            }
            share_max[0] = share_max[0].max((c[0] * scratch.columns[0][i] / scratch.f[i]).abs());
            if has_theta {
                row[self.p] = c[self.p - 1] * scratch.derivative[i] / scratch.f[i];
            }
            normal.add(&row, 0.0, if outlier[i] { 0.0 } else { self.u[i] });
        }
        // A coefficient that was driven to zero means that the simpler model is the better one.
        if (0..self.p).any(|j| share_max[j] < 1e-4) {
            return None;
        }
        density.iter_mut().for_each(|sum| *sum /= len as f64);
        density[0] = SCALE_DENSITY;
        if has_theta {
            density[self.p] = self.model.theta_density(theta);
        }
        let (rss, count) = self.sum_of_squares(scratch, &outlier);
        if count < unknowns {
            return None;
        }
        let (sigma2, freedom, total) = variance(rss, count, unknowns, floor2);
        let (_, pivots) = normal.solve()?;
        let mut evidence = libm::lgamma(freedom / 2.0) - freedom / 2.0 * (total / 2.0).ln()
            + SIGMA_PRIOR_WEIGHT / 2.0 * (SIGMA_PRIOR_WEIGHT * SIGMA_PRIOR * SIGMA_PRIOR / 2.0).ln()
            - libm::lgamma(SIGMA_PRIOR_WEIGHT / 2.0)
            - (count - unknowns) as f64 / 2.0 * LN_2PI;
        for j in 0..unknowns {
            // Data that say nothing of a parameter must not be counted as agreeing with every value of it.
            let free = -0.5 * sigma2.ln() - 0.5 * LN_2PI;
            evidence += (density[j].max(1e-12).ln() - 0.5 * pivots[j].ln()).min(free);
        }
        let outliers = len - count;
        evidence += outliers as f64 * (OUTLIER * OUTLIER_DENSITY).ln() + count as f64 * (1.0 - OUTLIER).ln();
        let last = len - 1;
        Some(Solved {
            c,
            theta,
            theta_sd: if has_theta { (sigma2 / pivots[unknowns - 1]).sqrt() } else { 0.0 },
            r: scratch.r.clone(),
            outlier,
            sigma: (rss / ((count - unknowns) as f64).max(1.0)).sqrt(),
            freedom: (count - unknowns) as f64,
            evidence: if evidence.is_finite() { evidence } else { return None },
            top_share: c[self.p - 1] * scratch.columns[self.p - 1][last] / scratch.f[last],
        })
    }
}

/// Posterior σ², its degrees of freedom and the sum of squares behind it.
fn variance(rss: f64, count: usize, unknowns: usize, floor2: f64) -> (f64, f64, f64) {
    let total = rss + count as f64 * floor2 + SIGMA_PRIOR_WEIGHT * SIGMA_PRIOR * SIGMA_PRIOR;
    let freedom = count.saturating_sub(unknowns) as f64 + SIGMA_PRIOR_WEIGHT;
    (total / freedom, freedom, total)
}

/// Normal equations of up to [`PARAMETERS_MAX`] unknowns.
pub(crate) struct Normal {
    size: usize,
    matrix: [[f64; PARAMETERS_MAX]; PARAMETERS_MAX],
    right: [f64; PARAMETERS_MAX],
}

impl Normal {
    pub fn new(size: usize) -> Normal {
        Normal { size, matrix: [[0.0; PARAMETERS_MAX]; PARAMETERS_MAX], right: [0.0; PARAMETERS_MAX] }
    }

    pub fn add(&mut self, row: &[f64; PARAMETERS_MAX], target: f64, weight: f64) {
        for j in 0..self.size {
            let scaled = weight * row[j];
            for k in 0..=j {
                self.matrix[j][k] += scaled * row[k];
            }
            self.right[j] += scaled * target;
        }
    }

    /// How much of the weighted squares of the targets the solution explains.
    pub fn explained(&self, solution: &[f64; PARAMETERS_MAX]) -> f64 {
        (0..self.size).map(|j| self.right[j] * solution[j]).sum()
    }

    /// The solution and the pivots of the Cholesky factorization: `pivot[j]` is the information on unknown j
    /// given those after it are free and those before it are known.
    pub fn solve(&self) -> Option<([f64; PARAMETERS_MAX], [f64; PARAMETERS_MAX])> {
        let n = self.size;
        let mut l = [[0.0; PARAMETERS_MAX]; PARAMETERS_MAX];
        let mut pivots = [1.0; PARAMETERS_MAX];
        for j in 0..n {
            let mut diagonal = self.matrix[j][j];
            for k in 0..j {
                diagonal -= l[j][k] * l[j][k];
            }
            if !(diagonal > self.matrix[j][j] * 1e-13 && diagonal.is_finite()) {
                return None;
            }
            pivots[j] = diagonal;
            l[j][j] = diagonal.sqrt();
            for i in j + 1..n {
                let mut sum = self.matrix[i][j];
                for k in 0..j {
                    sum -= l[i][k] * l[j][k];
                }
                l[i][j] = sum / l[j][j];
            }
        }
        let mut x = self.right;
        for j in 0..n {
            for k in 0..j {
                x[j] -= l[j][k] * x[k];
            }
            x[j] /= l[j][j];
        }
        for j in (0..n).rev() {
            for k in j + 1..n {
                x[j] -= l[k][j] * x[k];
            }
            x[j] /= l[j][j];
        }
        x[..n].iter().all(|x| x.is_finite()).then_some((x, pivots))
    }
}
