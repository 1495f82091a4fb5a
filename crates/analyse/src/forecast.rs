//! What every routine will cost on a larger input.
//!
//! The input grows by a factor k: each size n that a routine was called on becomes k·n, as often as today.
//! The cost at each size is scaled by the ratio of the fitted curve, so the forecast at k = 1 is exactly
//! what was measured:
//!
//! ```text
//! cost(k) = Σ_i cost_i · f(k·n_i) / f(n_i)
//! ```
//!
//! The program's cost is the sum of the forecast self costs, or the largest forecast cumulative cost where
//! that is more: a callee that will be called more often shows in its caller's curve, not in its own.
//! A routine whose growth is unknown, or guessed from too little, is not extrapolated; its self cost stays at
//! today's value, and how much of the whole that is gets reported.

use fit::{Class, Fit, Verdict};
use profile::{Point, Routine};

use crate::growth::{Forecast, GrowthAnalysis, RoutineAnalysis};

/// Steps per decade of the factor grid.
const STEPS_PER_DECADE: u32 = 10;
/// Decades of the factor grid: up to 1000 times the input.
const DECADES: u32 = 3;
/// Points of a routine are grouped into at most this many size groups: more would not change the forecast.
const GROUPS_MAX: usize = 48;
/// Costs are capped here so that sums of a few thousand of them stay finite.
const COST_CAP: f64 = 1e280;
/// Overtaking matters to the user only between routines that will be at least this share of the whole.
const OVERTAKE_SHARE_MIN: f64 = 0.05;

/// A tentative fit is extrapolated from this many sizes on ...
const TENTATIVE_SIZES_MIN: usize = 6;
/// ... that span at least this factor ...
const TENTATIVE_RANGE_MIN: f64 = 4.0;
/// ... if the 95 % interval of its exponent is at most this wide.
const TENTATIVE_EXPONENT_WIDTH_MAX: f64 = 0.5;

/// The factors at which forecasts are evaluated: ten per decade, from 1 to 1000.
pub fn factors() -> Vec<f64> {
    (0..=STEPS_PER_DECADE * DECADES)
        .map(|i| {
            let whole = 10f64.powi((i / STEPS_PER_DECADE) as i32);
            let step = i % STEPS_PER_DECADE;
            if step == 0 { whole } else { whole * 10f64.powf(f64::from(step) / f64::from(STEPS_PER_DECADE)) }
        })
        .collect()
}

/// One routine's curve rising above another's.
#[derive(Debug, Clone, PartialEq)]
pub struct Overtake {
    /// Index of the routine that rises, in the analysis' order.
    pub rising: usize,
    /// Index of the routine that is overtaken.
    pub overtaken: usize,
    /// Factor of the input at which that happens.
    pub factor: f64,
    /// Earliest and latest factor that the confidence intervals allow; the latest is `None` when it may not
    /// happen within the horizon.
    pub range: (f64, Option<f64>),
}

/// Fills in the forecasts of all routines and returns, per factor, the share of the forecast cost that was
/// held at its observed value.
pub(crate) fn fill(routines: &mut [RoutineAnalysis<'_>], factors: &[f64], cost_now: f64) -> Vec<f64> {
    let cumulative: Vec<Option<Vec<f64>>> =
        routines.iter().map(|r| curve(r.routine, &r.fit, |p| p.real_sum, factors)).collect();
    let selfs: Vec<Option<Vec<f64>>> =
        routines.iter().map(|r| curve(r.routine, &r.fit_self, |p| p.self_sum, factors)).collect();
    let held: f64 =
        routines.iter().zip(&selfs).filter(|(_, c)| c.is_none()).map(|(r, _)| r.cost_self as f64).sum();
    let self_now: f64 = routines.iter().map(|r| r.cost_self as f64).sum();
    // Cost that no routine owns (the profile's total may know more than its routines) is held as well.
    let held = held + (cost_now - self_now).max(0.0);

    let mut unextrapolated = Vec::with_capacity(factors.len());
    let mut totals = Vec::with_capacity(factors.len());
    for i in 0..factors.len() {
        let extrapolated: f64 = selfs.iter().flatten().map(|c| c[i]).sum();
        let largest = cumulative.iter().flatten().map(|c| c[i]).fold(0.0, f64::max);
        let total = (extrapolated + held).max(largest);
        totals.push(total);
        unextrapolated.push(if total > 0.0 { held / total } else { 0.0 });
    }
    for (routine, curve) in routines.iter_mut().zip(cumulative) {
        let Some(curve) = curve else { continue };
        routine.forecast = (0..factors.len())
            .map(|i| forecast(curve[i], totals[i], exponent_error(&routine.fit), factors[i]))
            .collect();
    }
    unextrapolated
}

/// Who overtakes whom, soonest first, among routines that matter at the larger input.
pub fn overtakes(analysis: &GrowthAnalysis<'_>) -> Vec<Overtake> {
    let Some(last) = analysis.factors.len().checked_sub(1) else { return Vec::new() };
    let matters =
        |r: &RoutineAnalysis<'_>| r.forecast.get(last).is_some_and(|f| f.share >= OVERTAKE_SHARE_MIN);
    let rising: Vec<usize> =
        (0..analysis.routines.len()).filter(|&i| matters(&analysis.routines[i])).collect();
    let leading: Vec<usize> = (0..analysis.routines.len())
        .filter(|&i| analysis.routines[i].forecast.first().is_some_and(|f| f.share >= OVERTAKE_SHARE_MIN))
        .collect();
    let mut found = Vec::new();
    for &a in &rising {
        for &b in &leading {
            let (fa, fb) = (&analysis.routines[a].forecast, &analysis.routines[b].forecast);
            if a == b || fa[0].cost >= fb[0].cost {
                continue;
            }
            let cross = |x: fn(&Forecast) -> f64, y: fn(&Forecast) -> f64| {
                (1..fa.len()).find(|&i| x(&fa[i]) > y(&fb[i])).map(|i| {
                    let before = (x(&fa[i - 1]) / y(&fb[i - 1])).ln();
                    let after = (x(&fa[i]) / y(&fb[i])).ln();
                    let t = if after > before { (-before / (after - before)).clamp(0.0, 1.0) } else { 1.0 };
                    analysis.factors[i - 1] * (analysis.factors[i] / analysis.factors[i - 1]).powf(t)
                })
            };
            let Some(factor) = cross(|f| f.share, |f| f.share) else { continue };
            let earliest = cross(|f| f.share_high, |f| f.share_low).unwrap_or(factor).min(factor);
            let latest = cross(|f| f.share_low, |f| f.share_high);
            found.push(Overtake { rising: a, overtaken: b, factor, range: (earliest, latest) });
        }
    }
    found.sort_by(|a, b| a.factor.total_cmp(&b.factor).then(a.rising.cmp(&b.rising)));
    found
}

/// Whether a fit says enough about larger sizes: a confident one does, a tentative one only if it rests on several sizes
/// and its exponent is narrow. A curve through a handful of points would outgrow the whole program on paper.
fn extrapolates(routine: &Routine, fit: &Fit) -> bool {
    match fit.verdict {
        Verdict::Confident => true,
        Verdict::Unknown => false,
        Verdict::Tentative => {
            let [smallest, largest] = fit.range;
            let [low, high] = fit.exponent_ci;
            routine.points.len() >= TENTATIVE_SIZES_MIN
                && largest >= TENTATIVE_RANGE_MIN * smallest.max(1.0)
                && high - low <= TENTATIVE_EXPONENT_WIDTH_MAX
        }
    }
}

/// The routine's cost at each factor, or `None` when its growth is not known well enough.
fn curve(routine: &Routine, fit: &Fit, cost: fn(&Point) -> u64, factors: &[f64]) -> Option<Vec<f64>> {
    if !extrapolates(routine, fit) {
        return None;
    }
    let groups = groups(routine, cost);
    factors
        .iter()
        .map(|&k| groups.iter().map(|&(n, cost)| scaled(fit, n, cost, k)).sum::<Option<f64>>())
        .collect()
}

fn scaled(fit: &Fit, n: f64, cost: f64, factor: f64) -> Option<f64> {
    let (now, then) = (fit.predict(n)?, fit.predict(n * factor)?);
    // A curve that is not positive at an observed size says nothing about ratios there: the cost stays.
    let ratio = if now > 0.0 && then > now { then / now } else { 1.0 };
    Some((cost * ratio).min(COST_CAP))
}

/// (size, cost) groups: neighbouring sizes joined, at their cost-weighted mean size.
fn groups(routine: &Routine, cost: fn(&Point) -> u64) -> Vec<(f64, f64)> {
    let points = routine.points.iter().filter(|p| cost(p) > 0).map(|p| (p.n as f64, cost(p) as f64));
    let points: Vec<(f64, f64)> = points.collect();
    let per_group = points.len().div_ceil(GROUPS_MAX).max(1);
    points
        .chunks(per_group)
        .map(|chunk| {
            let cost: f64 = chunk.iter().map(|p| p.1).sum();
            (chunk.iter().map(|p| p.0 * p.1).sum::<f64>() / cost, cost)
        })
        .collect()
}

/// How far the exponent may be off, downwards and upwards. An exponential has no exponent to be off by.
fn exponent_error(fit: &Fit) -> [f64; 2] {
    if matches!(fit.class, Some(Class::Exponential)) || !fit.exponent.is_finite() {
        return [0.0, 0.0];
    }
    let [low, high] = fit.exponent_ci;
    [(low - fit.exponent).min(0.0), (high - fit.exponent).max(0.0)]
}

fn forecast(cost: f64, total: f64, [down, up]: [f64; 2], factor: f64) -> Forecast {
    let rest = (total - cost).max(0.0);
    let share = |cost: f64| if cost + rest > 0.0 { (cost / (cost + rest)).min(1.0) } else { 0.0 };
    let low = cost * factor.powf(down);
    let high = (cost * factor.powf(up)).min(COST_CAP);
    Forecast { cost, share: share(cost), share_low: share(low), share_high: share(high) }
}
