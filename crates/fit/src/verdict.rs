//! From the law to a verdict: what an expert would say who has to stand by it.

use crate::class::Class;
use crate::exponent::Exponent;
use crate::formula;
use crate::growth::{Fit, Piece, Sample, Term, Verdict};
use crate::law::{Law, Regime, same};
use crate::points::Points;
use crate::select;
use crate::solve::Scratch;

/// Fewest different sizes for any opinion (a curve has two or three coefficients) ...
const SIZES_MIN: usize = 5;
/// ... and for confidence.
const SIZES_CONFIDENT: usize = 6;
/// Least ratio of the largest to the smallest size for any opinion ...
const RANGE_MIN: f64 = 1.5;
/// ... and for confidence.
const RANGE_CONFIDENT: f64 = 4.0;
/// Fewest sizes at which the growing part of the curve must show, for confidence ...
const SHOWS_CONFIDENT: usize = 4;
/// ... which it does from this share of the cost on.
const SHOWS: f64 = 0.1;
/// Probability of the class that makes a verdict confident ...
const CONFIDENT: f64 = 0.95;
/// ... together with this one of the number of regimes.
const SHAPE_CONFIDENT: f64 = 0.8;
/// Relative scatter beyond which the size does not explain the cost, unless the cost grows far beyond it.
const SCATTER_MAX: f64 = 0.6;
/// Share of the variance of the log cost that the curve must explain when the scatter is that large.
const EXPLAINED_MIN: f64 = 0.8;
/// Correlation of neighbouring residuals above which the curve is not the whole law.
const WAVES_MAX: f64 = 0.5;
/// How far the power of a class may move when the largest size is left out.
const HOLDS_POWER: f64 = 0.3;
/// How far an exponent, with its interval, may be from those that a class shows: half of the distance between named
/// powers.
const AGREES: f64 = 0.25;
/// Classes that are refused, one after the other, because the exponent contradicts them.
const REFUSED_MAX: usize = 4;
/// Probability below which a class is not named in place of one that was refused.
const BELIEVED: f64 = 0.05;
/// Share of the cost from which on a cost that set in is looked at alone.
const ONSET_VISIBLE: f64 = 0.2;
/// Exponent, with its interval below zero, from which on the cost falls.
const FALLING: f64 = -0.1;

/// The growth of the cost in `samples`.
///
/// Samples that are not finite or negative are ignored. The result does not depend on the order of the
/// samples, and multiplying all costs by a number multiplies the coefficients and changes nothing else.
pub fn fit(samples: &[Sample]) -> Fit {
    let Some(points) = Points::new(samples) else { return unknown([0.0; 2], "no usable samples") };
    let range = [points.n[0], points.n[points.len() - 1]];
    if points.distinct < SIZES_MIN {
        let seen = ["none was", "one was", "two were", "three were", "four were"][points.distinct];
        return unknown(range, &format!("too few distinct sizes: only {seen} seen"));
    }
    if range[1] / range[0].max(1.0) < RANGE_MIN {
        let (low, high) = (formula::number(range[0]), formula::number(range[1]));
        return unknown(range, &format!("range too narrow: sizes from {low} to {high} are nearly the same"));
    }
    let scratch = &mut Scratch::new();
    let (law, mut fit, refusal) = match agreeing(samples, &points, range, scratch) {
        Ok(found) => found,
        Err(unknown) => return *unknown,
    };
    let mut doubt = refusal.or_else(|| doubt(&points, &law, &fit));
    if let Some(power) = without_largest(samples, &law, scratch) {
        let [low, high] = fit.exponent_ci;
        fit.exponent_ci = [low.min(power), high.max(power)];
        doubt = doubt.or_else(|| Some("the class rests on the largest size alone".to_string()));
    }
    fit.reason = doubt.unwrap_or_default();
    fit.verdict = if fit.reason.is_empty() { Verdict::Confident } else { Verdict::Tentative };
    fit
}

/// The most probable law whose class its own exponent does not contradict, and why better ones were refused. `Err`:
/// no class can be named.
fn agreeing(
    samples: &[Sample],
    points: &Points,
    range: [f64; 2],
    scratch: &mut Scratch,
) -> Result<(Law, Fit, Option<String>), Box<Fit>> {
    let mut refused: Vec<Class> = Vec::new();
    let mut best: Option<(Fit, String)> = None;
    while refused.len() < REFUSED_MAX {
        let Some(mut law) = Law::without(points, &refused, scratch) else { break };
        if let Some(exponent) = leading_exponent(samples, points, &law, scratch) {
            law.exponent = Some(exponent);
        }
        let fit = describe(points, &law, range);
        let class = law.last().class;
        if best.is_some() && fit.confidence < BELIEVED {
            break;
        }
        if let Some(reason) = objection(points, &law, &fit) {
            return Err(Box::new(take_back(&fit, &reason)));
        }
        if agrees(points, &law, &fit) {
            return Ok((law, fit, best.map(|(_, reason)| reason)));
        }
        refused.push(class);
        best.get_or_insert_with(|| {
            let reason =
                format!("{class} explains the data best, but the cost grows as n^{:.2}", fit.exponent);
            (fit, reason)
        });
    }
    Err(Box::new(match best {
        Some((fit, reason)) => take_back(&fit, &reason),
        None => unknown(range, "no growth class fits"),
    }))
}

/// Whether the exponent of a fit is one that its class shows at the sizes of the last regime. A logarithm is a power
/// that falls with the size.
fn agrees(points: &Points, law: &Law, fit: &Fit) -> bool {
    let last = law.last();
    let low = last.class.power();
    let logarithm = matches!(last.class, Class::Log | Class::NLogN | Class::N2LogN);
    let small = points.n[last.range.0].max(std::f64::consts::E);
    let high = if logarithm { low + 1.0 / small.ln() } else { low };
    let apart = |value: f64| (low - value).max(value - high);
    let [least, most] = fit.exponent_ci;
    let inside = least <= high && most >= low;
    last.class == Class::Exponential || inside || apart(fit.exponent) <= AGREES
}

/// The class is taken back; exponent and scatter are facts about the data and stay.
fn take_back(fit: &Fit, reason: &str) -> Fit {
    let Fit { exponent, exponent_ci, spread, range, .. } = *fit;
    Fit { exponent, exponent_ci, spread, ..unknown(range, reason) }
}

fn unknown(range: [f64; 2], reason: &str) -> Fit {
    let Exponent { value, interval, .. } = Exponent::UNKNOWN;
    Fit { reason: reason.to_string(), range, exponent: value, exponent_ci: interval, ..Fit::default() }
}

fn describe(points: &Points, law: &Law, range: [f64; 2]) -> Fit {
    let last = law.last();
    let exponent = match law.exponent {
        Some(found) if last.class != Class::Constant => found,
        _ => Exponent::slope(points, last.range),
    };
    let pieces: Vec<Piece> = match law.regimes.as_slice() {
        [_] => Vec::new(),
        several => several.iter().map(|regime| piece(points, regime)).collect(),
    };
    Fit {
        class: Some(last.class),
        formula: if pieces.is_empty() { formula::curve(&last.terms) } else { formula::pieces(&pieces) },
        coefficients: ends(last.class, &last.terms),
        terms: last.terms.clone(),
        exponent: exponent.value,
        exponent_ci: exponent.interval,
        confidence: law
            .classes
            .iter()
            .find(|(class, _)| same(*class, last.class))
            .map_or(0.0, |found| found.1),
        alternatives: law.classes.clone(),
        spread: last.sigma,
        range,
        outliers: law.regimes.iter().map(|regime| regime.outliers).sum(),
        pieces,
        ..Fit::default()
    }
}

/// The exponent of what leads in the last regime, where the curve has more to it than a constant and one term: a
/// plain power law would be bent by the terms of lower order, by the part of the size that is no data, or by what was
/// there before a cost set in.
fn leading_exponent(
    samples: &[Sample],
    points: &Points,
    law: &Law,
    scratch: &mut Scratch,
) -> Option<Exponent> {
    let last = law.last();
    let (leading, lower) = last.terms.split_last()?;
    let onset = law.regimes.len() > 1 && leading.shift > 0.0;
    let plain = lower.len() < 2 && leading.shift == 0.0;
    let whole = || law.exponent.map(|whole| whole.reaching(last.class.power()));
    if matches!(last.class, Class::Constant | Class::Exponential) {
        return None;
    }
    if points.distinct_in(last.range.0, last.range.1) < SIZES_MIN {
        return whole();
    }
    if plain {
        return None;
    }
    let from = points.n[last.range.0];
    // Right behind an onset, what is left of the cost is noise.
    let visible =
        |n: f64| !onset || leading.at(n) > ONSET_VISIBLE * last.terms.iter().map(|t| t.at(n)).sum::<f64>();
    let alone: Vec<Sample> = samples
        .iter()
        .filter(|s| s.n >= from && s.n > leading.shift && visible(s.n))
        .map(|s| Sample {
            n: s.n - leading.shift,
            y: s.y - lower.iter().map(|t| t.at(s.n)).sum::<f64>(),
            ..*s
        })
        .collect();
    match Points::new(&alone).filter(|points| points.distinct >= SIZES_MIN) {
        Some(alone) => select::exponent(&alone, (0, alone.len()), scratch),
        // Too little of it to look at: the exponent of the whole is not that of what was added.
        None if onset => whole(),
        None => None,
    }
}

fn piece(points: &Points, regime: &Regime) -> Piece {
    Piece {
        from: points.n[regime.range.0],
        to: points.n[regime.range.1 - 1],
        class: regime.class,
        coefficients: ends(regime.class, &regime.terms),
        terms: regime.terms.clone(),
    }
}

/// `a, b` of a curve: its constant and the coefficient of its leading term.
fn ends(class: Class, terms: &[Term]) -> Vec<f64> {
    let leading = if class == Class::Constant { 0.0 } else { terms.last().map_or(0.0, |t| t.coefficient) };
    vec![terms.first().map_or(0.0, |t| t.coefficient), leading]
}

/// Why no class can be named, if so.
fn objection(points: &Points, law: &Law, fit: &Fit) -> Option<String> {
    let ratio = fit.range[1] / fit.range[0].max(1.0);
    if points.distinct_seen < SIZES_CONFIDENT && ratio < RANGE_CONFIDENT {
        let (sizes, ratio) = (points.distinct_seen, formula::number(ratio));
        return Some(format!("too few distinct sizes: {sizes}, the largest {ratio} times the smallest"));
    }
    let slope = Exponent::slope(points, (0, points.len()));
    let falls = slope.value < FALLING && slope.interval[1] < 0.0;
    if falls && law.regimes.iter().all(|regime| regime.class == Class::Constant) {
        return Some("the cost falls as the size grows".to_string());
    }
    let mean = points.ln_y.iter().sum::<f64>() / points.len() as f64;
    let total = points.ln_y.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / points.len() as f64;
    let explained = 1.0 - fit.spread * fit.spread / total;
    (fit.spread > SCATTER_MAX && explained < EXPLAINED_MIN).then(|| {
        let percent = formula::number(100.0 * fit.spread);
        format!("scatter not explained by size: costs of similar sizes differ by {percent} %")
    })
}

/// Why the class is not certain, if so.
fn doubt(points: &Points, law: &Law, fit: &Fit) -> Option<String> {
    let last = law.last();
    let broken = law.regimes.len() > 1;
    // Thinning drops sizes, but only where there are plenty.
    let sizes = if broken { points.distinct_in(last.range.0, last.range.1) } else { points.distinct_seen };
    let ratio = fit.range[1] / points.n[last.range.0].max(1.0);
    let beyond = if broken { " beyond the last break" } else { "" };
    let regimes = if broken { "several regimes, and " } else { "" };
    if sizes < SIZES_CONFIDENT {
        return Some(format!("{regimes}too few distinct sizes: {sizes}{beyond}"));
    }
    if ratio < RANGE_CONFIDENT {
        let ratio = formula::number(ratio);
        return Some(format!(
            "{regimes}range too narrow: the largest size is {ratio} times the smallest{beyond}"
        ));
    }
    let shows = sizes_with_growth(points, last);
    if last.class != Class::Constant && shows < SHOWS_CONFIDENT {
        return Some(format!("{regimes}the growth shows at too few sizes: {shows}{beyond}"));
    }
    if fit.confidence < CONFIDENT {
        let rival = fit.alternatives.iter().find(|(class, _)| !same(*class, last.class));
        let (class, share) = rival.copied().unwrap_or((last.class, 0.0));
        return Some(format!("{regimes}{class} explains the data nearly as well ({:.0} %)", 100.0 * share));
    }
    if law.shape < SHAPE_CONFIDENT {
        let other = if broken { "one without" } else { "several regimes: a curve with" };
        return Some(format!("{other} a break explains the data nearly as well"));
    }
    if law.correlation > WAVES_MAX {
        return Some("the costs wave around the curve: it is not the whole law".to_string());
    }
    if broken && matches!(last.class, Class::Power(_)) {
        return Some(
            "several regimes, and no named class in the last one: the curve may just be bent".to_string(),
        );
    }
    let base = last.terms.last().map_or(1.0, |term| term.rate).exp2();
    if last.class == Class::Exponential && (base - 2.0).abs() > 0.02 {
        return Some(format!("exponential, but to the base of {} instead of 2", formula::number(base)));
    }
    None
}

/// What the samples without the largest size say of a steep class: a single call must not convict a routine. The power
/// of their class, if it is another one.
fn without_largest(samples: &[Sample], law: &Law, scratch: &mut Scratch) -> Option<f64> {
    let class = law.last().class;
    if class.cmp_growth(Class::NLogN).is_le() {
        return None;
    }
    let largest = samples.iter().filter(|s| s.n.is_finite()).map(|s| s.n).fold(0.0, f64::max);
    let rest: Vec<Sample> = samples.iter().filter(|s| s.n < largest).copied().collect();
    let other = Points::new(&rest).and_then(|points| Law::of(&points, scratch))?.last().class;
    let holds = other == class || (other.power() - class.power()).abs() < HOLDS_POWER;
    (!holds).then(|| other.power())
}

/// At how many sizes of a regime its leading term is a visible part of the cost.
fn sizes_with_growth(points: &Points, regime: &Regime) -> usize {
    let Some((leading, lower)) = regime.terms.split_last() else { return 0 };
    let visible = |n: f64| {
        let rest: f64 = lower.iter().map(|term| term.at(n).abs()).sum();
        let part = leading.at(n).abs();
        part > SHOWS * (part + rest)
    };
    let mut sizes: Vec<f64> = points.n[regime.range.0..regime.range.1].to_vec();
    sizes.dedup();
    sizes.into_iter().filter(|n| visible(*n)).count()
}
