//! The conclusions drawn from one growth profile.

use std::num::NonZeroUsize;
use std::thread;

use fit::{Fit, Sample};
use profile::{Growth, Point, Routine};

use crate::{forecast, rank};

/// Everything concluded from one growth profile.
#[derive(Debug, Clone, PartialEq)]
pub struct GrowthAnalysis<'p> {
    /// Sums over all routines.
    pub totals: Totals,
    /// Input factors at which [`RoutineAnalysis::forecast`] is evaluated, ascending from 1 to 1000.
    pub factors: Vec<f64>,
    /// Per factor, the share of today's cost whose growth is unknown and was therefore held at its observed
    /// value.
    pub unextrapolated_share: Vec<f64>,
    /// The routines, first the one to look at first.
    pub routines: Vec<RoutineAnalysis<'p>>,
}

/// Sums over all routines of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Activations of all routines.
    pub activations: u64,
    /// Routines with at least one activation.
    pub routines: u64,
    /// Cost of the run: the profile's own figure, or the sum of self costs.
    pub cost: u64,
    /// Cells of input of all activations, sum of n times calls.
    pub input_volume: u64,
    /// Share of the input volume that other threads wrote.
    pub thread_induced_share: f64,
    /// Share of the input volume that the kernel wrote.
    pub external_share: f64,
}

/// Everything concluded about one routine.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutineAnalysis<'p> {
    /// The facts.
    pub routine: &'p Routine,
    /// Activations.
    pub calls: u64,
    /// Cumulative cost, recursion counted once.
    pub cost_total: u64,
    /// Cost without callees.
    pub cost_self: u64,
    /// `cost_total` over the cost of the run, at most 1.
    pub share: f64,
    /// Cells of input that were plain first reads, over all activations.
    pub first_reads: u64,
    /// Cells of input that other threads wrote.
    pub thread_induced: u64,
    /// Cells of input that the kernel wrote.
    pub external: u64,
    /// Growth of the mean cumulative cost.
    pub fit: Fit,
    /// Growth of the mean self cost.
    pub fit_self: Fit,
    /// Per factor of [`GrowthAnalysis::factors`]: what this routine will be of the whole; empty when the fit
    /// is unknown.
    pub forecast: Vec<Forecast>,
    /// What the ordering is by: larger comes first.
    pub score: f64,
}

/// A routine's share of the program's cost on a larger input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// Predicted cumulative cost.
    pub cost: f64,
    /// Share of the predicted cost of the program, at most 1.
    pub share: f64,
    /// Lower end of its 95 % interval.
    pub share_low: f64,
    /// Upper end.
    pub share_high: f64,
}

impl RoutineAnalysis<'_> {
    /// Distinct input sizes seen.
    pub fn sizes(&self) -> usize {
        self.routine.points.len()
    }

    /// Whether the mean cost grows faster than n log n over the sizes seen, as far as the fit can tell. By the
    /// exponent alone n^1.02 would, beyond sizes that nobody has.
    pub fn is_superlinear(&self) -> bool {
        let n_log_n = fit::Class::NLogN;
        let [low, high] = self.fit.range.map(|n| n.max(2.0));
        self.fit.class.is_some_and(|class| {
            let gain = |class: fit::Class| class.g(high) / class.g(low);
            class.cmp_growth(n_log_n).is_gt() && (high <= low || gain(class) > gain(n_log_n))
        })
    }
}

impl GrowthAnalysis<'_> {
    /// Index of `factor` in [`GrowthAnalysis::factors`], if it is one of them.
    pub fn factor_index(&self, factor: f64) -> Option<usize> {
        self.factors.iter().position(|f| (f / factor - 1.0).abs() < 1e-9)
    }
}

/// The curves of every routine: most of an analysis' work, and good for further analyses of the same data.
#[derive(Debug, Clone)]
pub struct Fits {
    /// Of the cost with and without callees, in the order of [`Growth::routines`].
    curves: Vec<[Fit; 2]>,
}

/// Fits every routine of `growth`, forecasts its cost on larger inputs and orders the routines by what the
/// user should look at first.
pub fn analyse(growth: &Growth) -> GrowthAnalysis<'_> {
    analyse_fitted(growth, &Fits::of(growth))
}

/// [`analyse`] with the fits of the same `growth`.
pub fn analyse_fitted<'p>(growth: &'p Growth, fits: &Fits) -> GrowthAnalysis<'p> {
    let totals = totals(growth);
    let fitted = growth.routines.iter().zip(&fits.curves);
    let mut routines: Vec<_> = fitted
        .map(|(routine, curves)| of_routine(routine, curves, totals.cost))
        .filter(|r| r.calls > 0)
        .collect();
    let factors = forecast::factors();
    let unextrapolated_share = forecast::fill(&mut routines, &factors, totals.cost as f64);
    rank::order(&mut routines, &factors);
    GrowthAnalysis { totals, factors, unextrapolated_share, routines }
}

fn totals(growth: &Growth) -> Totals {
    let mut totals = Totals::default();
    let (mut thread_induced, mut external, mut cost_self) = (0u64, 0u64, 0u64);
    for routine in growth.routines.iter().filter(|r| !r.points.is_empty()) {
        totals.routines += 1;
        cost_self = cost_self.saturating_add(routine.cost_self());
        for point in &routine.points {
            totals.activations = totals.activations.saturating_add(point.calls);
            totals.input_volume = totals.input_volume.saturating_add(point.n.saturating_mul(point.calls));
            thread_induced = thread_induced.saturating_add(point.input.thread_induced);
            external = external.saturating_add(point.input.external);
        }
    }
    totals.cost = if growth.cost_total > 0 { growth.cost_total } else { cost_self };
    totals.thread_induced_share = share(thread_induced, totals.input_volume);
    totals.external_share = share(external, totals.input_volume);
    totals
}

impl Fits {
    /// Routines are independent, so they are fitted on all cores; the result does not depend on their number.
    pub fn of(growth: &Growth) -> Fits {
        let routines = &growth.routines;
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        // (Some take a hundred times as long as others: small pieces end together.)
        let chunks: Vec<&[Routine]> = routines.chunks(16).collect();
        let next = std::sync::atomic::AtomicUsize::new(0);
        let mut parts: Vec<(usize, Vec<[Fit; 2]>)> = thread::scope(|scope| {
            let worker = || {
                let mut done = Vec::new();
                loop {
                    let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    let Some(chunk) = chunks.get(i) else { return done };
                    done.push((i, chunk.iter().map(fit_one).collect::<Vec<_>>()));
                }
            };
            let handles: Vec<_> = (0..workers.min(chunks.len())).map(|_| scope.spawn(worker)).collect();
            let join = |h: thread::ScopedJoinHandle<'_, _>| {
                h.join().unwrap_or_else(|e| std::panic::resume_unwind(e))
            };
            handles.into_iter().flat_map(join).collect()
        });
        parts.sort_by_key(|(i, _)| *i);
        Fits { curves: parts.into_iter().flat_map(|(_, part)| part).collect() }
    }
}

fn fit_one(routine: &Routine) -> [Fit; 2] {
    let all = samples(routine, Point::mean, Point::variance);
    let own = samples(routine, Point::self_mean, Point::self_variance);
    let fit = fit::fit(&all);
    // A routine that calls nothing has one curve, and fitting is most of the work.
    let fit_self = if own == all { fit.clone() } else { fit::fit(&own) };
    [fit, fit_self]
}

fn of_routine<'p>(routine: &'p Routine, curves: &[Fit; 2], cost_total: u64) -> RoutineAnalysis<'p> {
    let sum = |f: fn(&Point) -> u64| routine.points.iter().map(f).fold(0, u64::saturating_add);
    let [fit, fit_self] = curves.clone();
    RoutineAnalysis {
        routine,
        calls: routine.calls(),
        cost_total: routine.cost_total(),
        cost_self: routine.cost_self(),
        share: share(routine.cost_total(), cost_total).min(1.0),
        first_reads: sum(Point::first_reads),
        thread_induced: sum(|p| p.input.thread_induced),
        external: sum(|p| p.input.external),
        fit,
        fit_self,
        forecast: Vec::new(),
        score: 0.0,
    }
}

fn samples(routine: &Routine, mean: fn(&Point) -> f64, variance: fn(&Point) -> f64) -> Vec<Sample> {
    let used = routine.points.iter().filter(|p| p.calls > 0);
    used.map(|p| Sample { n: p.n as f64, y: mean(p), weight: p.calls as f64, variance: variance(p) })
        .collect()
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
