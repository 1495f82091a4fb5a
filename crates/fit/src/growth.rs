//! The verdict on one cost function.

use crate::class::Class;

/// One observation: the cost `y` on inputs of size `n`, averaged over `weight` activations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Input size.
    pub n: f64,
    /// Cost (mean, max or min over the activations, as the caller chooses).
    pub y: f64,
    /// Number of activations behind it, at least 1.
    pub weight: f64,
    /// Variance of the single activations' costs around `y`; 0 when not known.
    pub variance: f64,
}

/// How far a fit can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The class is the only one that explains the data.
    Confident,
    /// The best class, but others are nearly as good or the evidence is thin.
    Tentative,
    /// No class can be named; [`Fit::reason`] says why.
    Unknown,
}

/// The verdict on one cost function.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The class, `None` exactly when the verdict is unknown. For a piecewise function, that of the last
    /// piece: it decides what happens on larger inputs.
    pub class: Option<Class>,
    /// Readable, such as `120 + 7·n`. Empty when unknown.
    pub formula: String,
    /// `a, b` of `a + b·g(n)`, with g the class (and the exponent in [`Class::Power`]). Empty when unknown.
    pub coefficients: Vec<f64>,
    /// Exponent of the best power law `a + b·n^k` over the whole (or last) piece.
    pub exponent: f64,
    /// Its 95 % confidence interval.
    pub exponent_ci: [f64; 2],
    /// Probability, from 0 to 1, that `class` is right.
    pub confidence: f64,
    /// Standard deviation of the residuals relative to the curve, for bands: cost ≈ curve · (1 ± spread).
    pub spread: f64,
    /// How far it can be trusted.
    pub verdict: Verdict,
    /// Why the verdict is not confident; empty when it is.
    pub reason: String,
    /// Regimes in ascending order of n; empty unless there is more than one.
    pub pieces: Vec<Piece>,
}

/// One regime of a piecewise cost function, valid on `from <= n <= to`.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// Smallest size of the regime.
    pub from: f64,
    /// Largest size of the regime.
    pub to: f64,
    /// Its class.
    pub class: Class,
    /// `a, b` of `a + b·g(n)`.
    pub coefficients: Vec<f64>,
}
