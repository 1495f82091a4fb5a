//! Curve bounding by guess ratio, as in Coppa, Demetrescu and Finocchi, "Input-sensitive profiling" (PLDI
//! 2012), after McGeoch et al.: divide the cost by a guess g(n) and watch the ratio. It settles when g is the
//! law, declines when g grows too fast (an upper bound) and rises when g is not a bound at all.
//!
//! Only the upper half of the sizes counts, because constants and terms of lower order rule the rest. The
//! trend is the Theil-Sen slope of the log ratio by the log size: half of the points may be wild.

use crate::class::Class;
use crate::growth::Sample;
use crate::points::Points;
use crate::student;

/// Slopes within this are flat: even a logarithmic factor makes more, up to sizes of 10^14.
const FLAT: f64 = 0.03;
/// Widest interval of a slope that can be called flat.
const FLAT_INTERVAL: f64 = 0.08;
/// Fewest points for a trend.
const POINTS_MIN: usize = 4;

/// Where the ratio of cost to guess is heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trend {
    /// It settles: the cost grows like the guess.
    Stabilises,
    /// It declines: the guess is an upper bound, and not a tight one.
    Declines,
    /// It rises: the guess is no upper bound.
    Rises,
    /// The points do not say.
    Unclear,
}

/// The ratio of the cost to one guess.
#[derive(Debug, Clone, PartialEq)]
pub struct GuessRatio {
    /// The guess g.
    pub class: Class,
    /// `[n, T(n)/g(n)]` in ascending order of n; sizes at which g is zero or overflows are left out.
    pub points: Vec<[f64; 2]>,
    /// Where the ratio is heading.
    pub trend: Trend,
    /// Its slope: the exponent by which the cost outgrows the guess on the upper half of the sizes.
    pub slope: f64,
    /// 95 % interval of the slope.
    pub slope_ci: [f64; 2],
}

/// What all the named guesses say together.
#[derive(Debug, Clone, PartialEq)]
pub struct Bounds {
    /// One ratio for each of [`Class::NAMED`].
    pub ratios: Vec<GuessRatio>,
    /// The slowest class whose ratio settles or declines: the cost is O of it.
    pub upper: Option<Class>,
    /// The fastest class whose ratio settles or rises: the cost is Ω of it.
    pub lower: Option<Class>,
}

/// The ratio of the cost to `class`.
pub fn guess_ratio(samples: &[Sample], class: Class) -> GuessRatio {
    ratio_of(Points::new(samples).as_ref(), class)
}

/// Tries every named class.
pub fn bounds(samples: &[Sample]) -> Bounds {
    let points = Points::new(samples);
    let ratios: Vec<GuessRatio> =
        Class::NAMED.iter().map(|&class| ratio_of(points.as_ref(), class)).collect();
    let holds = |trend: &Trend, wild: Trend| *trend == Trend::Stabilises || *trend == wild;
    let upper = ratios.iter().find(|r| holds(&r.trend, Trend::Declines)).map(|r| r.class);
    let lower = ratios.iter().rev().find(|r| holds(&r.trend, Trend::Rises)).map(|r| r.class);
    Bounds { ratios, upper, lower }
}

fn ratio_of(points: Option<&Points>, class: Class) -> GuessRatio {
    let mut ratio =
        GuessRatio { class, points: Vec::new(), trend: Trend::Unclear, slope: 0.0, slope_ci: [-20.0, 20.0] };
    let Some(points) = points else { return ratio };
    let cost = |i: usize| (points.y[i] - points.offset).max(0.0) * points.y_unit;
    let usable = |&(n, y): &(f64, f64)| y.is_finite() && (class.g(n) > 0.0 && class.g(n).is_finite());
    let pairs: Vec<(f64, f64)> = (0..points.len()).map(|i| (points.n[i], cost(i))).filter(usable).collect();
    ratio.points = pairs.iter().map(|&(n, y)| [n, y / class.g(n)]).filter(|p| p[1].is_finite()).collect();
    // A guess that overflows on sizes that were seen has left the cost behind long ago.
    if class.g(points.n[points.len() - 1]).is_infinite() {
        ratio.trend = Trend::Declines;
        (ratio.slope, ratio.slope_ci) = (-20.0, [-20.0, -20.0]);
        return ratio;
    }
    let logs: Vec<(f64, f64)> = pairs
        .iter()
        .filter(|(_, y)| *y > 0.0)
        .map(|&(n, y)| (n.max(0.5).ln(), y.ln() - class.g(n).ln()))
        .collect();
    if let Some((slope, reach)) = trend(upper_half(&logs)) {
        ratio.slope = slope;
        ratio.slope_ci = [slope - reach, slope + reach];
        ratio.trend = match () {
            _ if slope.abs() <= FLAT && reach <= FLAT_INTERVAL => Trend::Stabilises,
            _ if slope + reach < 0.0 => Trend::Declines,
            _ if slope - reach > 0.0 => Trend::Rises,
            _ => Trend::Unclear,
        };
    }
    ratio
}

/// The points in the upper half of the range of log n, or the upper half of the points if those are few.
fn upper_half(logs: &[(f64, f64)]) -> &[(f64, f64)] {
    let (Some(first), Some(last)) = (logs.first(), logs.last()) else { return logs };
    let middle = 0.5 * (first.0 + last.0);
    let from = logs.partition_point(|point| point.0 < middle);
    let few = logs.len().saturating_sub(2 * POINTS_MIN).max(logs.len() / 2);
    &logs[from.min(few)..]
}

/// Theil-Sen slope and half its 95 % interval.
fn trend(logs: &[(f64, f64)]) -> Option<(f64, f64)> {
    // Pairs grow with the square of the points; a hundred points have enough of them.
    let every = logs.len().div_ceil(100).max(1);
    let logs: Vec<(f64, f64)> = logs.iter().rev().step_by(every).copied().collect();
    if logs.len() < POINTS_MIN {
        return None;
    }
    let mut slopes = Vec::with_capacity(logs.len() * logs.len() / 2);
    for (i, a) in logs.iter().enumerate() {
        slopes.extend(logs[..i].iter().filter(|b| b.0 != a.0).map(|b| (a.1 - b.1) / (a.0 - b.0)));
    }
    let slope = median(&mut slopes)?;
    let mut rest: Vec<f64> = logs.iter().map(|p| p.1 - slope * p.0).collect();
    let level = median(&mut rest)?;
    let mut errors: Vec<f64> = logs.iter().map(|p| (p.1 - slope * p.0 - level).abs()).collect();
    let sigma = 1.4826 * median(&mut errors)?;
    let mean = logs.iter().map(|p| p.0).sum::<f64>() / logs.len() as f64;
    let spread = logs.iter().map(|p| (p.0 - mean).powi(2)).sum::<f64>();
    let reach = student::quantile(logs.len() as f64 - 2.0) * sigma / spread.sqrt();
    (slope.is_finite() && reach.is_finite()).then_some((slope, reach))
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(f: impl Fn(f64) -> f64) -> Vec<Sample> {
        (0..40).map(|i| (10.0 * 1.25f64.powi(i)).round()).map(|n| Sample::new(n, f(n))).collect()
    }

    #[test]
    fn the_ratio_settles_only_for_the_law_itself() {
        for (law, f) in [
            (Class::Constant, (|_| 70.0) as fn(f64) -> f64),
            (Class::Linear, |n| 120.0 + 7.0 * n),
            (Class::NLogN, |n| 300.0 + 3.0 * n * n.log2()),
            (Class::Quadratic, |n| 500.0 + 1.5 * n * n),
        ] {
            let bounds = bounds(&samples(f));
            assert_eq!((bounds.upper, bounds.lower), (Some(law), Some(law)), "{law}");
            for ratio in &bounds.ratios {
                let expected = match ratio.class.cmp_growth(law) {
                    std::cmp::Ordering::Less => Trend::Rises,
                    std::cmp::Ordering::Equal => Trend::Stabilises,
                    std::cmp::Ordering::Greater => Trend::Declines,
                };
                assert_eq!(ratio.trend, expected, "{law} / {}", ratio.class);
            }
        }
    }

    #[test]
    fn outliers_do_not_turn_the_trend() {
        let mut samples = samples(|n| 5.0 * n);
        samples.iter_mut().step_by(7).for_each(|s| s.y *= 9.0);
        assert_eq!(guess_ratio(&samples, Class::Linear).trend, Trend::Stabilises);
        assert_eq!(guess_ratio(&samples, Class::Sqrt).trend, Trend::Rises);
    }

    #[test]
    fn ratios_are_the_costs_over_the_guess() {
        let ratio =
            guess_ratio(&[Sample::new(1.0, 3.0), Sample::new(4.0, 16.0), Sample::new(8.0, 24.0)], Class::Log);
        assert_eq!(ratio.points, [[4.0, 8.0], [8.0, 8.0]], "log 1 is zero");
        assert_eq!(ratio.trend, Trend::Unclear);
    }

    #[test]
    fn nothing_is_bounded_by_nothing() {
        assert_eq!(bounds(&[]).upper, None);
        let one_size: Vec<Sample> = (0..20).map(|i| Sample::new(5.0, i as f64)).collect();
        assert_eq!(bounds(&one_size).lower, None);
    }
}
