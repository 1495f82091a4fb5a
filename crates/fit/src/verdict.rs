//! From solved candidates to a verdict: what an expert would say who has to stand by it.

use crate::class::Class;
use crate::formula;
use crate::growth::{Fit, Piece, Sample, Term, Verdict};
use crate::points::Points;
use crate::regime::{Breaks, breaks};
use crate::select::{self, Selection, log_sum};
use crate::solve::{Scratch, Solved};

/// Fewest different sizes for any opinion.
const SIZES_MIN: usize = 3;
/// Fewest different sizes for confidence.
const SIZES_CONFIDENT: usize = 6;
/// Least ratio of the largest to the smallest size for any opinion ...
const RANGE_MIN: f64 = 1.5;
/// ... and for confidence.
const RANGE_CONFIDENT: f64 = 4.0;
/// Probability of the class that makes a verdict confident.
const CONFIDENT: f64 = 0.95;
/// Relative scatter beyond which the size does not explain the cost, unless the cost grows far beyond it.
const SCATTER_MAX: f64 = 0.6;
/// Share of the variance of the log cost that the curve must explain when the scatter is that large.
const EXPLAINED_MIN: f64 = 0.8;
/// Classes less probable than this are not mentioned.
const MENTIONED: f64 = 0.01;

/// The growth of the cost in `samples`.
///
/// Samples that are not finite or negative are ignored. The result does not depend on the order of the
/// samples, and multiplying all costs by a number multiplies the coefficients and changes nothing else.
pub fn fit(samples: &[Sample]) -> Fit {
    let Some(points) = Points::new(samples) else {
        return unknown([0.0; 2], "no usable samples".to_string());
    };
    let range = [points.n[0], points.n[points.len() - 1]];
    if points.distinct < SIZES_MIN {
        let sizes = if points.distinct == 1 {
            "only one input size was seen"
        } else {
            "only two input sizes were seen"
        };
        return unknown(range, format!("too few distinct sizes: {sizes}"));
    }
    let ratio = range[1] / range[0].max(1.0);
    if ratio < RANGE_MIN {
        let (low, high) = (formula::number(range[0]), formula::number(range[1]));
        return unknown(range, format!("range too narrow: sizes from {low} to {high} look alike"));
    }
    let scratch = &mut Scratch::new();
    let all = (0, points.len());
    let Some(whole) = Selection::of(&points, all, scratch) else {
        return unknown(range, "no growth class fits".to_string());
    };
    let breaks = breaks(&points, all, scratch);
    let hypotheses = Hypotheses::new(&whole, &breaks);
    let shape = hypotheses.best();
    let mut fit = describe(&points, &shape, range);
    let last = shape.last_regime(&points);
    exponent(&points, &shape, last, &mut fit, scratch);
    hypotheses.weigh(&shape, &mut fit);
    judge(&points, &shape, last, &mut fit);
    fit
}

/// One way to explain the data.
#[derive(Clone, Copy)]
enum Shape<'a> {
    Whole(&'a Selection, usize),
    Jump(&'a Breaks, usize, usize),
    Onset(&'a Breaks, usize),
}

impl Shape<'_> {
    fn class(&self) -> Class {
        match *self {
            Shape::Whole(selection, i) => selection.candidates[i].class,
            Shape::Jump(breaks, j, i) => breaks.jumps[j].right.candidates[i].class,
            Shape::Onset(breaks, i) => breaks.onsets[i].added,
        }
    }

    fn is_broken(&self) -> bool {
        !matches!(self, Shape::Whole(..))
    }

    fn last_regime(&self, points: &Points) -> (usize, usize) {
        let from = match *self {
            Shape::Whole(..) => 0,
            Shape::Jump(breaks, j, _) => breaks.jumps[j].at,
            Shape::Onset(breaks, i) => breaks.onsets[i].at,
        };
        (from, points.len())
    }

    /// The solved curve that decides on larger inputs.
    fn solved(&self) -> &Solved {
        match *self {
            Shape::Whole(selection, i) => &selection.candidates[i].solved,
            Shape::Jump(breaks, j, i) => &breaks.jumps[j].right.candidates[i].solved,
            Shape::Onset(breaks, i) => &breaks.onsets[i].solved,
        }
    }

    fn terms(&self) -> &[Term] {
        match *self {
            Shape::Whole(selection, i) => &selection.candidates[i].terms,
            Shape::Jump(breaks, j, i) => &breaks.jumps[j].right.candidates[i].terms,
            Shape::Onset(breaks, i) => &breaks.onsets[i].terms,
        }
    }

    fn pieces(&self, points: &Points, [low, high]: [f64; 2]) -> Vec<Piece> {
        let (class, terms, at) = match *self {
            Shape::Whole(..) => return Vec::new(),
            Shape::Jump(breaks, j, _) => {
                let left = &breaks.jumps[j].left.candidates[0];
                (left.class, &left.terms, breaks.jumps[j].at)
            }
            Shape::Onset(breaks, i) => {
                let onset = &breaks.onsets[i];
                (onset.base, &onset.base_terms, onset.at)
            }
        };
        let piece = |from, to, class, terms: &[Term]| Piece {
            from,
            to,
            class,
            coefficients: ends(class, terms),
            terms: terms.to_vec(),
        };
        vec![
            piece(low, points.n[at - 1], class, terms),
            piece(points.n[at], high, self.class(), self.terms()),
        ]
    }
}

/// All ways to explain the data, each with the logarithm of its weight.
struct Hypotheses<'a> {
    shapes: Vec<(f64, Shape<'a>)>,
}

impl<'a> Hypotheses<'a> {
    fn new(whole: &'a Selection, breaks: &'a Breaks) -> Hypotheses<'a> {
        let mut shapes: Vec<(f64, Shape)> =
            whole.candidates.iter().enumerate().map(|(i, c)| (c.weight, Shape::Whole(whole, i))).collect();
        for (j, jump) in breaks.jumps.iter().enumerate() {
            for (i, candidate) in jump.right.candidates.iter().enumerate() {
                let weight = jump.weight - jump.right.evidence + candidate.weight;
                shapes.push((weight, Shape::Jump(breaks, j, i)));
            }
        }
        shapes.extend(breaks.onsets.iter().enumerate().map(|(i, o)| (o.weight, Shape::Onset(breaks, i))));
        Hypotheses { shapes }
    }

    /// First whether there is a break, then the class, then the form: each by the sum of all that agree.
    fn best(&self) -> Shape<'a> {
        let mass = |broken: bool| self.mass(|shape| shape.is_broken() == broken, 1.0);
        let broken = mass(true) > mass(false);
        let mut best: Option<(f64, f64, Shape)> = None;
        for &(weight, shape) in self.shapes.iter().filter(|(_, shape)| shape.is_broken() == broken) {
            let kind = kind(shape.class());
            let total = self.mass(|s| s.is_broken() == broken && self::kind(s.class()) == kind, 1.0);
            let better = best.as_ref().is_none_or(|&(t, w, _)| total > t || total == t && weight > w);
            if better {
                best = Some((total, weight, shape));
            }
        }
        best.map_or(self.shapes[0].1, |(_, _, shape)| shape)
    }

    fn mass(&self, matching: impl Fn(&Shape) -> bool, temper: f64) -> f64 {
        log_sum(self.shapes.iter().filter(|(_, shape)| matching(shape)).map(|(weight, _)| weight * temper))
    }

    /// Fills in the probabilities of the classes.
    fn weigh(&self, shape: &Shape, fit: &mut Fit) {
        let temper = independence(shape.solved());
        let total = self.mass(|_| true, temper);
        let mut kinds: Vec<Class> = Vec::new();
        for (_, other) in &self.shapes {
            let class =
                if kind(other.class()) == kind(shape.class()) { shape.class() } else { other.class() };
            if !kinds.iter().any(|&known| kind(known) == kind(class)) {
                kinds.push(class);
            }
        }
        let mut classes: Vec<(Class, f64)> = kinds
            .into_iter()
            .map(|class| (class, (self.mass(|s| kind(s.class()) == kind(class), temper) - total).exp()))
            .collect();
        classes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp_growth(b.0)));
        // A class in one regime is not the same claim as that class after a break.
        let same = |s: &Shape| kind(s.class()) == kind(shape.class()) && s.is_broken() == shape.is_broken();
        fit.confidence = (self.mass(same, temper) - total).exp().clamp(0.0, 1.0);
        fit.alternatives = classes.into_iter().filter(|(_, p)| *p >= MENTIONED).collect();
    }
}

/// Free powers are one class, whatever their exponent.
fn kind(class: Class) -> usize {
    Class::NAMED.iter().position(|&named| named == class).unwrap_or(Class::NAMED.len())
}

/// Share of the residuals' evidence that is really independent: residuals that follow each other in waves are
/// the misfit of a curve, not noise, and must not be counted as often as they occur.
fn independence(solved: &Solved) -> f64 {
    let correlation = correlation(solved);
    ((1.0 - correlation) / (1.0 + correlation)).clamp(0.1, 1.0)
}

/// Correlation of neighbouring residuals, as far as it is beyond chance; 0 for residuals too small to matter.
fn correlation(solved: &Solved) -> f64 {
    let inliers = || solved.r.iter().zip(&solved.outlier).filter(|(_, outlier)| !**outlier).map(|(r, _)| *r);
    let squares: f64 = inliers().map(|r| r * r).sum();
    let count = inliers().count() as f64;
    if solved.sigma < 0.004 || count < 6.0 {
        return 0.0;
    }
    let products: f64 = inliers().zip(inliers().skip(1)).map(|(a, b)| a * b).sum();
    (products / squares - 1.5 / count.sqrt()).clamp(0.0, 0.95)
}

/// `a, b` of a curve: its constant and the coefficient of its leading term.
fn ends(class: Class, terms: &[Term]) -> Vec<f64> {
    let leading = if class == Class::Constant { 0.0 } else { terms.last().map_or(0.0, |t| t.coefficient) };
    vec![terms.first().map_or(0.0, |t| t.coefficient), leading]
}

fn describe(points: &Points, shape: &Shape, range: [f64; 2]) -> Fit {
    let solved = shape.solved();
    let pieces = shape.pieces(points, range);
    Fit {
        class: Some(shape.class()),
        formula: if pieces.is_empty() { formula::curve(shape.terms()) } else { formula::pieces(&pieces) },
        coefficients: ends(shape.class(), shape.terms()),
        terms: shape.terms().to_vec(),
        spread: solved.sigma,
        range,
        outliers: solved.outlier.iter().filter(|&&outlier| outlier).count(),
        pieces,
        ..Fit::default()
    }
}

/// The exponent of the best power law over a regime, and its interval.
fn exponent(points: &Points, shape: &Shape, range: (usize, usize), fit: &mut Fit, scratch: &mut Scratch) {
    let alone;
    let solved = match *shape {
        _ if shape.class() == Class::Constant => None,
        Shape::Whole(selection, _) => selection.exponent.as_ref(),
        Shape::Jump(breaks, j, _) => breaks.jumps[j].right.exponent.as_ref(),
        Shape::Onset(..) => {
            alone = select::exponent(points, range, scratch);
            alone.as_ref()
        }
    };
    let (value, sd, freedom) = match solved {
        Some(solved) => (solved.theta, solved.theta_sd, solved.freedom),
        None => log_slope(points, range),
    };
    let reach = student(freedom) * sd;
    let reach = if reach.is_finite() { reach } else { 20.0 };
    fit.exponent = value;
    fit.exponent_ci = [value - reach, value + reach];
}

/// Slope of the log cost by the log size, with its standard deviation and degrees of freedom.
fn log_slope(points: &Points, (from, to): (usize, usize)) -> (f64, f64, f64) {
    let (x, y, u) = (&points.ln_n[from..to], &points.ln_y[from..to], &points.u[from..to]);
    let total: f64 = u.iter().sum();
    let mean = |v: &[f64]| v.iter().zip(u).map(|(v, u)| v * u).sum::<f64>() / total;
    let (mx, my) = (mean(x), mean(y));
    let sum = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| u[i] * f(i)).sum::<f64>();
    let xx = sum(&|i| (x[i] - mx).powi(2));
    let slope = sum(&|i| (x[i] - mx) * (y[i] - my)) / xx;
    let freedom = (x.len() as f64 - 2.0).max(1.0);
    let rest = sum(&|i| (y[i] - my - slope * (x[i] - mx)).powi(2)) / freedom;
    if slope.is_finite() { (slope, (rest / xx).sqrt(), freedom) } else { (0.0, f64::INFINITY, 1.0) }
}

/// The 97.5 % quantile of Student's t (Cornish-Fisher expansion; exact values where that is too rough).
fn student(freedom: f64) -> f64 {
    const FEW: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    let z = 1.959_964;
    if freedom < 4.5 {
        return FEW[(freedom.round().max(1.0) as usize - 1).min(3)];
    }
    let z3 = z * z * z;
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z3 * z * z + 16.0 * z3 + 3.0 * z) / (96.0 * freedom * freedom)
        + (3.0 * z3 * z3 * z + 19.0 * z3 * z * z + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

/// The verdict and its reason, from what was found and what it rests on.
fn judge(points: &Points, shape: &Shape, last: (usize, usize), fit: &mut Fit) {
    let solved = shape.solved();
    let slope = log_slope(points, (0, points.len()));
    if fit.class == Some(Class::Constant) && !shape.is_broken() {
        let falls = slope.0 + student(slope.2) * slope.1 < -0.05;
        if falls && slope.0 < -0.1 {
            give_up(fit, "the cost falls as the size grows".to_string());
            return;
        }
    }
    if let Some(reason) = scatter(points, solved, last) {
        give_up(fit, reason);
        return;
    }
    let sizes = if shape.is_broken() { points.distinct_in(last.0, last.1) } else { points.distinct_seen };
    let ratio = fit.range[1] / points.n[last.0].max(1.0);
    let within = if shape.is_broken() { " beyond the break" } else { "" };
    fit.reason = if shape.is_broken() && sizes < SIZES_CONFIDENT {
        format!("several regimes, and only {sizes} distinct sizes in the last one")
    } else if shape.is_broken() && fit.confidence < CONFIDENT {
        format!("several regimes, and {}", rivals(fit))
    } else if sizes < SIZES_CONFIDENT {
        format!("too few distinct sizes: {sizes}{within}")
    } else if ratio < RANGE_CONFIDENT {
        format!("range too narrow: the largest size is {} times the smallest{within}", formula::number(ratio))
    } else if fit.confidence < CONFIDENT {
        rivals(fit)
    } else if correlation(solved) > 0.5 {
        "the costs wave around the curve: it is not the whole law".to_string()
    } else {
        String::new()
    };
    fit.verdict = if fit.reason.is_empty() { Verdict::Confident } else { Verdict::Tentative };
}

/// Why the size does not explain the cost, if it does not.
fn scatter(points: &Points, solved: &Solved, _last: (usize, usize)) -> Option<String> {
    if solved.sigma < SCATTER_MAX {
        return None;
    }
    let mean = points.ln_y.iter().sum::<f64>() / points.len() as f64;
    let total = points.ln_y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / points.len() as f64;
    let explained = 1.0 - solved.sigma * solved.sigma / total;
    (explained.is_nan() || explained < EXPLAINED_MIN).then(|| {
        let percent = formula::number(100.0 * solved.sigma);
        format!("scatter not explained by size: costs of similar sizes differ by {percent} %")
    })
}

fn rivals(fit: &Fit) -> String {
    let percent = |p: f64| format!("{:.0} %", 100.0 * p);
    let own = fit.class.map(kind);
    match fit.alternatives.iter().find(|(class, _)| Some(kind(*class)) != own) {
        Some((class, p)) => format!("{class} explains the data nearly as well ({})", percent(*p)),
        None => "a curve with a break explains the data nearly as well".to_string(),
    }
}

fn unknown(range: [f64; 2], reason: String) -> Fit {
    Fit { reason, range, exponent_ci: [-20.0, 20.0], ..Fit::default() }
}

/// Takes back the class, but keeps the exponent and its interval: they are facts about the data.
fn give_up(fit: &mut Fit, reason: String) {
    *fit = Fit {
        reason,
        range: fit.range,
        exponent: fit.exponent,
        exponent_ci: fit.exponent_ci,
        spread: fit.spread,
        ..Fit::default()
    };
}
