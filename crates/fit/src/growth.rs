//! The verdict on one cost function, and what it predicts.

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

impl Sample {
    /// One activation of size `n` that cost `y`.
    pub fn new(n: f64, y: f64) -> Sample {
        Sample { n, y, weight: 1.0, variance: 0.0 }
    }
}

/// How far a fit can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// The class is the only one that explains the data.
    Confident,
    /// The best class, but others are nearly as good or the evidence is thin.
    Tentative,
    /// No class can be named; [`Fit::reason`] says why.
    #[default]
    Unknown,
}

/// The verdict on one cost function.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fit {
    /// The class, `None` exactly when the verdict is unknown. For a piecewise function, that of the last
    /// piece: it decides what happens on larger inputs.
    pub class: Option<Class>,
    /// Readable, such as `120 + 7·n`. Empty when unknown.
    pub formula: String,
    /// `a, b` of `a + b·g(n)`, with g the class (and the exponent in [`Class::Power`]). Empty when unknown.
    /// The curve may have a further term, see [`Fit::terms`]: evaluate it with [`Fit::predict`].
    pub coefficients: Vec<f64>,
    /// The whole curve, of the last piece if there are several. Empty when unknown.
    pub terms: Vec<Term>,
    /// Exponent of the best power law `a + b·n^k` over the whole (or last) piece.
    pub exponent: f64,
    /// Its 95 % confidence interval.
    pub exponent_ci: [f64; 2],
    /// Probability, from 0 to 1, that `class` is right.
    pub confidence: f64,
    /// The classes that explain the data, most probable first, with their probabilities.
    pub alternatives: Vec<(Class, f64)>,
    /// Standard deviation of the residuals relative to the curve, for bands: cost ≈ curve · (1 ± spread).
    pub spread: f64,
    /// Smallest and largest size behind the fit.
    pub range: [f64; 2],
    /// Samples that the curve does not explain and that were set aside.
    pub outliers: usize,
    /// How far it can be trusted.
    pub verdict: Verdict,
    /// Why the verdict is not confident; empty when it is.
    pub reason: String,
    /// Regimes in ascending order of n; empty unless there is more than one.
    pub pieces: Vec<Piece>,
}

/// One regime of a piecewise cost function, valid on `from <= n <= to`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Piece {
    /// Smallest size of the regime.
    pub from: f64,
    /// Largest size of the regime.
    pub to: f64,
    /// Its class.
    pub class: Class,
    /// `a, b` of `a + b·g(n)`.
    pub coefficients: Vec<f64>,
    /// The whole curve.
    pub terms: Vec<Term>,
}

/// One term of a curve: `coefficient · g(rate · (n − shift))`, nothing below `shift`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// g
    pub class: Class,
    /// Its factor; negative only in a lower-order term, as in n²/2 − n/2.
    pub coefficient: f64,
    /// Size at which the term sets in; 0 for all but the gradual onset of a new regime.
    pub shift: f64,
    /// 1 but for exponentials of another base than 2: 1.5^n is 2^(0.585·n).
    pub rate: f64,
}

impl Term {
    /// `coefficient · g(n)`.
    pub fn new(class: Class, coefficient: f64) -> Term {
        Term { class, coefficient, shift: 0.0, rate: 1.0 }
    }

    /// The term's value at size `n`.
    pub fn at(&self, n: f64) -> f64 {
        if self.shift > 0.0 && n <= self.shift {
            return 0.0;
        }
        self.coefficient * self.class.g(self.rate * (n - self.shift))
    }
}

impl Fit {
    /// The expected cost at size `n`, by the regime that `n` falls into; sizes beyond the largest one seen
    /// follow the last regime.
    ///
    /// `None` when the fit is unknown, `n` is negative or not a number, or the result is beyond all numbers.
    pub fn predict(&self, n: f64) -> Option<f64> {
        self.class?;
        if n.is_nan() || n < 0.0 {
            return None;
        }
        // A regime ends where the next one begins, so that sizes between two samples belong to one of them.
        let piece = self.pieces.iter().rev().find(|piece| n >= piece.from).or(self.pieces.first());
        let terms = piece.map_or(&self.terms, |piece| &piece.terms);
        let cost: f64 = terms.iter().map(|term| term.at(n)).sum();
        cost.is_finite().then_some(cost.max(0.0))
    }

    /// The interval that holds 95 % of the costs at size `n`.
    ///
    /// Inside the range of sizes seen it follows the scatter around the curve. Beyond it, it opens with the
    /// uncertainty of the exponent.
    pub fn band(&self, n: f64) -> Option<[f64; 2]> {
        let cost = self.predict(n)?;
        let scatter = 1.96 * (1.0 + self.spread.max(0.0)).ln();
        let beyond = if n > self.range[1] && self.range[1] > 0.0 { (n / self.range[1]).ln() } else { 0.0 };
        let below = (self.exponent - self.exponent_ci[0]).max(0.0) * beyond + scatter;
        let above = (self.exponent_ci[1] - self.exponent).max(0.0) * beyond + scatter;
        let band = [cost * (-below).exp(), cost * above.exp()];
        band.iter().all(|end| end.is_finite()).then_some(band)
    }

    /// The local exponent of the curve at size `n`: how many per cent the cost grows per per cent of size.
    pub fn slope(&self, n: f64) -> Option<f64> {
        let (low, high) = (self.predict(n * 0.99)?, self.predict(n * 1.01)?);
        let slope = (high / low).ln() / (1.01f64 / 0.99).ln();
        slope.is_finite().then_some(slope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(class: Class, coefficient: f64, shift: f64) -> Term {
        Term { shift, ..Term::new(class, coefficient) }
    }

    fn two_regimes() -> Fit {
        let low = vec![term(Class::Constant, 100.0, 0.0), term(Class::Linear, 20.0, 0.0)];
        let mut high = low.clone();
        high.push(term(Class::Quadratic, 0.5, 1000.0));
        let piece = |from, to, class, terms| Piece { from, to, class, terms, ..Piece::default() };
        Fit {
            class: Some(Class::Quadratic),
            terms: high.clone(),
            exponent: 2.0,
            exponent_ci: [1.9, 2.2],
            spread: 0.02,
            range: [10.0, 1e5],
            pieces: vec![piece(10.0, 990.0, Class::Linear, low), piece(1010.0, 1e5, Class::Quadratic, high)],
            ..Fit::default()
        }
    }

    #[test]
    fn predictions_follow_the_regimes() {
        let fit = two_regimes();
        assert_eq!(fit.predict(100.0), Some(2100.0));
        assert_eq!(fit.predict(1.0), Some(120.0));
        assert_eq!(fit.predict(1005.0), Some(20200.0), "between two regimes the lower one holds");
        assert_eq!(fit.predict(2000.0), Some(100.0 + 40_000.0 + 500_000.0));
        assert!(fit.slope(500.0).unwrap() < 1.01 && fit.slope(1e6).unwrap() > 1.99);
    }

    #[test]
    fn the_band_opens_beyond_the_data() {
        let fit = two_regimes();
        let width = |n: f64| {
            let [low, high] = fit.band(n).unwrap();
            (high / low).ln()
        };
        assert!((width(100.0) - width(1e5)).abs() < 1e-9);
        assert!(width(1e6) > width(1e5) + 0.6);
    }

    #[test]
    fn nothing_is_predicted_from_nothing() {
        assert_eq!(Fit::default().predict(10.0), None);
        let fit = two_regimes();
        for n in [-1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(fit.predict(n), None, "{n}");
            assert_eq!(fit.band(n), None, "{n}");
        }
    }
}
