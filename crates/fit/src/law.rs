//! The law of a range of points: one regime or several, with the probability of each class in the last one.
//!
//! All hypotheses (a class without a break; a class after a jump; a class after an onset) are weighed against
//! each other. First it is decided whether there is a break, then the class, then the form, each by the sum of
//! all hypotheses that agree on it. After a jump both sides are looked at in the same way again.

use crate::class::Class;
use crate::exponent::Exponent;
use crate::growth::Term;
use crate::points::Points;
use crate::regime::{Breaks, Onset, breaks};
use crate::select::{self, Candidate, Selection, log_sum};
use crate::solve::{Scratch, Solved};

/// Breaks within breaks: with 1, up to four regimes.
const DEPTH: usize = 1;
/// Median relative difference below which the curve of a regime also describes an earlier one.
const COVERED: f64 = 0.15;
/// Classes less probable than this are not mentioned.
const MENTIONED: f64 = 0.01;

/// One regime.
#[derive(Clone)]
pub(crate) struct Regime {
    /// Its points.
    pub range: (usize, usize),
    pub class: Class,
    pub terms: Vec<Term>,
    /// Relative scatter around its curve.
    pub sigma: f64,
    pub outliers: usize,
}

/// What a range of points follows.
pub(crate) struct Law {
    /// In ascending order of n, at least one.
    pub regimes: Vec<Regime>,
    /// Probable classes of the last regime, most probable first.
    pub classes: Vec<(Class, f64)>,
    /// Probability that there are as many regimes as stated.
    pub shape: f64,
    /// Correlation of neighbouring residuals around the last curve, as far as it is beyond chance.
    pub correlation: f64,
    /// Exponent of the last regime's best power law, where there is one.
    pub exponent: Option<Exponent>,
}

impl Law {
    /// `None` where nothing fits.
    pub fn of(points: &Points, scratch: &mut Scratch) -> Option<Law> {
        Law::without(points, &[], scratch)
    }

    /// The most probable law that does not end in one of the classes `refused`.
    pub fn without(points: &Points, refused: &[Class], scratch: &mut Scratch) -> Option<Law> {
        let range = (0, points.len());
        resolve(points, range, refused, Selection::of(points, range, scratch)?, DEPTH, scratch)
    }

    /// The regime that decides what happens on larger inputs.
    pub fn last(&self) -> &Regime {
        &self.regimes[self.regimes.len() - 1]
    }
}

/// Free powers are one class, whatever their exponent.
pub(crate) fn same(a: Class, b: Class) -> bool {
    a == b || matches!((a, b), (Class::Power(_), Class::Power(_)))
}

fn resolve(
    points: &Points,
    range: (usize, usize),
    refused: &[Class],
    whole: Selection,
    depth: usize,
    scratch: &mut Scratch,
) -> Option<Law> {
    let mut breaks = breaks(points, range, &whole.candidates[0].solved, scratch);
    let hypotheses = Hypotheses::new(&whole, &breaks);
    let waves = |choice: Hypothesis| {
        correlation(match choice.place {
            Place::Whole(i) => &whole.candidates[i].solved,
            Place::Jump(i) => {
                &breaks.jump.as_ref().expect("a hypothesis about it").right.candidates[i].solved
            }
            Place::Onset(i) => &breaks.onsets[i].solved,
        })
    };
    // Residuals that follow each other in waves are the misfit of a curve, not noise, and must not be counted
    // as often as they occur.
    let temper = |correlation: f64| ((1.0 - correlation) / (1.0 + correlation)).clamp(0.1, 1.0);
    let choice = hypotheses.best(temper(waves(hypotheses.best(1.0, refused)?)), refused)?;
    let correlation = waves(choice);
    let temper = temper(correlation);
    let law = |regimes: Vec<Regime>, exponent: Option<Exponent>| Law {
        regimes,
        classes: hypotheses.classes(choice, temper),
        shape: hypotheses.share(|h| h.broken() == choice.broken(), temper),
        correlation,
        exponent,
    };
    Some(match choice.place {
        Place::Whole(i) => law(vec![Regime::of(range, &whole.candidates[i])], whole.exponent),
        Place::Onset(i) => {
            let onset = &breaks.onsets[i];
            let last = (onset.at, range.1);
            let exponent = select::exponent(points, last, scratch);
            law(onset_regimes(onset, range).to_vec(), exponent)
        }
        Place::Jump(i) => {
            let jump = breaks.jump.take().expect("a hypothesis about it");
            let (left, right) = ((range.0, jump.at), (jump.at, range.1));
            let mut last = law(vec![Regime::of(right, &jump.right.candidates[i])], jump.right.exponent);
            if depth == 0 {
                last.regimes.insert(0, Regime::of(left, &jump.left.candidates[0]));
                return Some(last);
            }
            let inner = resolve(points, right, refused, jump.right, depth - 1, scratch);
            if let Some(inner) = inner.filter(|inner| inner.regimes.len() > 1) {
                last = Law { shape: last.shape * inner.shape, ..inner };
            }
            let mut regimes = resolve(points, left, &[], jump.left, depth - 1, scratch)?.regimes;
            if let ([before], [after]) = (regimes.as_slice(), last.regimes.as_mut_slice())
                && after.covers(points, before)
            {
                after.range.0 = range.0;
                return Some(last);
            }
            regimes.append(&mut last.regimes);
            Law { regimes, ..last }
        }
    })
}

impl Regime {
    fn of(range: (usize, usize), candidate: &Candidate) -> Regime {
        let Candidate { class, terms, solved, .. } = candidate;
        Regime {
            range,
            class: *class,
            terms: terms.clone(),
            sigma: solved.sigma,
            outliers: solved.outliers(),
        }
    }
}

impl Regime {
    /// Whether this regime's curve also describes an earlier one of the same class, as it does when only the
    /// smallest sizes have their own ways.
    fn covers(&self, points: &Points, earlier: &Regime) -> bool {
        let log_cost =
            |n: f64| (self.terms.iter().map(|t| t.at(n)).sum::<f64>() / points.y_unit + points.offset).ln();
        let mut off: Vec<f64> = (earlier.range.0..earlier.range.1)
            .map(|i| (points.ln_y[i] - log_cost(points.n[i])).abs())
            .collect();
        off.sort_by(f64::total_cmp);
        same(self.class, earlier.class) && off[off.len() / 2] < COVERED
    }
}

/// An onset is one curve: its scatter holds for both regimes, its outliers are counted once.
fn onset_regimes(onset: &Onset, (from, to): (usize, usize)) -> [Regime; 2] {
    let sigma = onset.solved.sigma;
    let (before, after) = (onset.base_terms.clone(), onset.terms.clone());
    let outliers = onset.solved.outliers();
    [
        Regime { range: (from, onset.at), class: onset.base, terms: before, sigma, outliers },
        Regime { range: (onset.at, to), class: onset.added, terms: after, sigma, outliers: 0 },
    ]
}

/// Where a hypothesis is to be found.
#[derive(Clone, Copy)]
enum Place {
    /// Index of a candidate.
    Whole(usize),
    /// Index of a candidate for the right side of the jump.
    Jump(usize),
    /// Index of an onset.
    Onset(usize),
}

/// One way to explain the data.
#[derive(Clone, Copy)]
struct Hypothesis {
    place: Place,
    /// Class of the last regime.
    class: Class,
    /// Natural logarithm of prior times evidence.
    weight: f64,
}

impl Hypothesis {
    fn broken(&self) -> bool {
        !matches!(self.place, Place::Whole(_))
    }
}

/// All ways to explain the data.
struct Hypotheses(Vec<Hypothesis>);

impl Hypotheses {
    fn new(whole: &Selection, breaks: &Breaks) -> Hypotheses {
        let mut all = Vec::new();
        for (i, c) in whole.candidates.iter().enumerate() {
            all.push(Hypothesis { place: Place::Whole(i), class: c.class, weight: c.weight });
        }
        if let Some(jump) = &breaks.jump {
            for (i, c) in jump.right.candidates.iter().enumerate() {
                let weight = jump.weight - jump.right.evidence + c.weight;
                all.push(Hypothesis { place: Place::Jump(i), class: c.class, weight });
            }
        }
        for (i, onset) in breaks.onsets.iter().enumerate() {
            all.push(Hypothesis { place: Place::Onset(i), class: onset.added, weight: onset.weight });
        }
        Hypotheses(all)
    }

    /// The best one whose class is not refused.
    fn best(&self, temper: f64, refused: &[Class]) -> Option<Hypothesis> {
        let allowed = |h: &Hypothesis| !refused.iter().any(|class| same(*class, h.class));
        let mass = |matching: &dyn Fn(&Hypothesis) -> bool| self.mass(|h| allowed(h) && matching(h), temper);
        let broken = mass(&|h| h.broken()) > mass(&|h| !h.broken());
        let mut best = (f64::NEG_INFINITY, *self.0.iter().find(|h| allowed(h))?);
        for h in self.0.iter().filter(|h| allowed(h) && h.broken() == broken) {
            let total = mass(&|other| other.broken() == broken && same(other.class, h.class));
            if total > best.0 || total == best.0 && h.weight > best.1.weight {
                best = (total, *h);
            }
        }
        Some(best.1)
    }

    fn mass(&self, matching: impl Fn(&Hypothesis) -> bool, temper: f64) -> f64 {
        log_sum(self.0.iter().filter(|h| matching(h)).map(|h| h.weight * temper))
    }

    /// The probability of all hypotheses that match.
    fn share(&self, matching: impl Fn(&Hypothesis) -> bool, temper: f64) -> f64 {
        (self.mass(matching, temper) - self.mass(|_| true, temper)).exp().clamp(0.0, 1.0)
    }

    /// The classes with their probabilities, most probable first.
    fn classes(&self, choice: Hypothesis, temper: f64) -> Vec<(Class, f64)> {
        let mut classes: Vec<(Class, f64)> = Vec::new();
        for h in std::iter::once(&choice).chain(&self.0) {
            if !classes.iter().any(|(class, _)| same(*class, h.class)) {
                classes.push((h.class, self.share(|other| same(other.class, h.class), temper)));
            }
        }
        classes.retain(|(class, share)| *share >= MENTIONED || *class == choice.class);
        classes.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp_growth(b.0)));
        classes
    }
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
