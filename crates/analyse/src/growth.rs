//! The conclusions drawn from one growth profile.

use fit::Fit;
use profile::Routine;

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
