//! The exponent of a cost function: one number that needs no class, with the interval that holds it.

use crate::points::Points;
use crate::solve::Solved;
use crate::student;

/// Power laws that are this much less probable, in units of log evidence, no longer widen the interval.
const PLAUSIBLE: f64 = 6.0;
/// Half the width of an interval that says nothing.
const REACH_MAX: f64 = 20.0;

/// An exponent with its 95 % interval.
#[derive(Clone, Copy)]
pub(crate) struct Exponent {
    pub value: f64,
    pub interval: [f64; 2],
    evidence: f64,
}

impl Exponent {
    /// Nothing is known.
    pub const UNKNOWN: Exponent =
        Exponent { value: 0.0, interval: [-REACH_MAX, REACH_MAX], evidence: f64::NEG_INFINITY };

    /// Of a solved power law.
    pub fn of(solved: &Solved) -> Exponent {
        Exponent::around(solved.theta, solved.theta_sd, solved.freedom, solved.evidence)
    }

    /// Of the better of two power laws, one with and one without a constant. Whether there is a constant is part
    /// of what is not known, so that the interval covers both as long as both are plausible.
    pub fn either(a: Exponent, b: Exponent) -> Exponent {
        let (better, worse) = if a.evidence >= b.evidence { (a, b) } else { (b, a) };
        if worse.evidence < better.evidence - PLAUSIBLE {
            return better;
        }
        let interval = [better.interval[0].min(worse.interval[0]), better.interval[1].max(worse.interval[1])];
        Exponent { interval, ..better }
    }

    /// `value`, with an interval that reaches as far as this one.
    pub fn reaching(self, value: f64) -> Exponent {
        let [low, high] = self.interval;
        Exponent { value, interval: [low.min(value), high.max(value)], ..self }
    }

    /// Slope of the log cost by the log size: the exponent where nothing grows.
    pub fn slope(points: &Points, (from, to): (usize, usize)) -> Exponent {
        let (x, y, u) = (&points.ln_n[from..to], &points.ln_y[from..to], &points.u[from..to]);
        let total: f64 = u.iter().sum();
        let mean = |v: &[f64]| v.iter().zip(u).map(|(v, u)| v * u).sum::<f64>() / total;
        let (mx, my) = (mean(x), mean(y));
        let sum = |f: &dyn Fn(usize) -> f64| (0..x.len()).map(|i| u[i] * f(i)).sum::<f64>();
        let xx = sum(&|i| (x[i] - mx).powi(2));
        let slope = sum(&|i| (x[i] - mx) * (y[i] - my)) / xx;
        let freedom = (x.len() as f64 - 2.0).max(1.0);
        let rest = sum(&|i| (y[i] - my - slope * (x[i] - mx)).powi(2)) / freedom;
        Exponent::around(slope, (rest / xx).sqrt(), freedom, 0.0)
    }

    fn around(value: f64, sd: f64, freedom: f64, evidence: f64) -> Exponent {
        let reach = student::quantile(freedom) * sd;
        if !value.is_finite() || reach.is_nan() {
            return Exponent::UNKNOWN;
        }
        let reach = reach.min(REACH_MAX);
        Exponent { value, interval: [value - reach, value + reach], evidence }
    }
}
