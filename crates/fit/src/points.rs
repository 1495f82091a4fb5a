//! Samples made fit for fitting: cleaned, sorted, thinned, scaled and weighted, with every class's function
//! tabulated once.
//!
//! Sizes and costs are scaled to at most 1, so that nothing overflows later and a change of unit changes
//! nothing. What comes out depends on the set of samples alone, never on their order.

use crate::class::Class;
use crate::growth::Sample;

/// Most points that a fit looks at; more are thinned evenly in log n. More points no longer change the class,
/// only the time.
const POINTS_MAX: usize = 240;
/// Scatter that no number of calls averages away: differences between sizes that n does not express.
const SYSTEMATIC: f64 = 0.01;
/// Relative differences below this are never evidence for one class over another: real costs have terms of
/// lower order, real noise is not exactly Gaussian.
const FLOOR: f64 = 0.002;
/// Costs are clamped to this share of the largest one; squares of reciprocals stay finite.
const SHARE_MIN: f64 = 1e-120;

/// The growing classes that are tabulated, in the order of [`Points::g`].
pub(crate) const GROWING: [Class; 9] = [
    Class::Log,
    Class::Sqrt,
    Class::Linear,
    Class::NLogN,
    Class::N15,
    Class::Quadratic,
    Class::N2LogN,
    Class::Cubic,
    Class::Exponential,
];

/// Index into [`GROWING`] and [`Points::g`].
pub(crate) fn index(class: Class) -> usize {
    GROWING.iter().position(|&c| c == class).unwrap_or(0)
}

/// Cleaned samples in ascending order of n.
pub(crate) struct Points {
    /// Sizes as given.
    pub n: Vec<f64>,
    /// Natural logarithm of the size over the largest one.
    pub ln_n: Vec<f64>,
    /// Costs over the largest one, in (0, 1].
    pub y: Vec<f64>,
    /// Natural logarithm of `y`.
    pub ln_y: Vec<f64>,
    /// Weights, mean 1.
    pub u: Vec<f64>,
    /// Per class of [`GROWING`] its function over its value at the largest size; empty where that overflows.
    pub g: [Vec<f64>; 9],
    /// The largest cost: what `y` is in units of.
    pub y_unit: f64,
    /// Added to every cost, in units of `y_unit`, because the logarithm of a zero cost is not a number.
    pub offset: f64,
    /// Square of the relative precision below which differences mean nothing.
    pub floor2: f64,
    /// Number of different sizes.
    pub distinct: usize,
    /// Different sizes before thinning.
    pub distinct_seen: usize,
}

impl Points {
    /// `None` when no usable sample is left.
    pub fn new(samples: &[Sample]) -> Option<Points> {
        let mut samples: Vec<Sample> = samples.iter().copied().filter_map(clean).collect();
        samples.sort_by(|a, b| {
            let by = |f: fn(&Sample) -> f64| f(a).total_cmp(&f(b));
            by(|s| s.n).then(by(|s| s.y)).then(by(|s| s.weight)).then(by(|s| s.variance))
        });
        let distinct_seen = count_distinct(samples.iter().map(|s| s.n));
        if samples.len() > POINTS_MAX {
            samples = thin(&samples);
        }
        let n_max = samples.last()?.n;
        let y_unit = samples.iter().map(|s| s.y).fold(0.0, f64::max);
        let y_unit = if y_unit > 0.0 { y_unit } else { 1.0 };
        let smallest = samples.iter().map(|s| s.y).filter(|&y| y > 0.0).fold(f64::INFINITY, f64::min);
        let offset = match samples.iter().any(|s| s.y == 0.0) {
            true if smallest.is_finite() => 0.5 * smallest / y_unit,
            true => 1.0,
            false => 0.0,
        };
        let n: Vec<f64> = samples.iter().map(|s| s.n).collect();
        let y: Vec<f64> = samples.iter().map(|s| (s.y / y_unit + offset).max(SHARE_MIN)).collect();
        let points = Points {
            ln_n: n.iter().map(|&n| (n.max(0.5) / n_max.max(0.5)).ln()).collect(),
            ln_y: y.iter().map(|y| y.ln()).collect(),
            u: weights(&samples, y_unit, &y),
            g: GROWING.map(|class| tabulate(class, &n)),
            y_unit,
            offset,
            floor2: FLOOR * FLOOR + lattice(&n, &y),
            distinct: count_distinct(n.iter().copied()),
            distinct_seen,
            n,
            y,
        };
        Some(points)
    }

    pub fn len(&self) -> usize {
        self.n.len()
    }

    /// Different sizes among the points `from..to`.
    pub fn distinct_in(&self, from: usize, to: usize) -> usize {
        count_distinct(self.n[from..to].iter().copied())
    }
}

fn clean(s: Sample) -> Option<Sample> {
    let usable = s.n.is_finite() && s.n >= 0.0 && s.y.is_finite() && s.y >= 0.0;
    let weight = if s.weight.is_finite() { s.weight.max(1.0) } else { 1.0 };
    let variance = if s.variance.is_finite() { s.variance.max(0.0) } else { 0.0 };
    // Adding 0 turns -0 into 0, which sort and compare differently.
    usable.then_some(Sample { n: s.n + 0.0, y: s.y + 0.0, weight, variance })
}

fn count_distinct(ascending: impl Iterator<Item = f64>) -> usize {
    let mut last = f64::NAN;
    ascending.filter(|&x| std::mem::replace(&mut last, x) != x).count()
}

/// One sample for each of many narrow ranges of size: the one of median cost, which keeps a real point and
/// ignores outliers.
fn thin(sorted: &[Sample]) -> Vec<Sample> {
    let low = sorted[0].n.max(0.5).ln();
    let width = sorted[sorted.len() - 1].n.max(0.5).ln() - low;
    let mut bins = POINTS_MAX;
    loop {
        let bin = |s: &Sample| ((s.n.max(0.5).ln() - low) / width * bins as f64) as usize;
        let groups = || sorted.chunk_by(|a, b| bin(a) == bin(b) || width == 0.0);
        // Sizes that bunch together leave most bins empty: cut finer until enough of them are in use.
        if groups().count() >= POINTS_MAX / 2 || bins > 1 << 16 || width == 0.0 {
            let budget = POINTS_MAX.div_ceil(groups().count().max(1));
            return groups().flat_map(|group| representatives(group, budget)).collect();
        }
        bins *= 2;
    }
}

/// Up to `count` quantiles of a group by cost, sharing its calls.
fn representatives(group: &[Sample], count: usize) -> Vec<Sample> {
    let mut group = group.to_vec();
    let weight = group.iter().map(|s| s.weight).sum::<f64>();
    let count = count.min(group.len());
    group.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.n.total_cmp(&b.n)));
    let mut chosen: Vec<Sample> = (0..count)
        .map(|i| group[(2 * i + 1) * group.len() / (2 * count)])
        .map(|s| Sample { weight: weight / count as f64, ..s })
        .collect();
    chosen.sort_by(|a, b| a.n.total_cmp(&b.n).then(a.y.total_cmp(&b.y)));
    chosen
}

fn tabulate(class: Class, n: &[f64]) -> Vec<f64> {
    let n_max = n[n.len() - 1];
    let unit = class.g(n_max);
    if !(unit.is_finite() && unit > 0.0) {
        return Vec::new();
    }
    match class {
        Class::Exponential => n.iter().map(|&n| (n - n_max).exp2()).collect(),
        _ => n.iter().map(|&n| class.g(n) / unit).collect(),
    }
}

/// Weights from the calls behind each point and their variance.
///
/// A mean over w calls of variance v has a relative variance of SYSTEMATIC² + v/(w·y²): many calls help until
/// the systematic part takes over. A single call shows no variance of its own, and few calls show it badly, so
/// each takes part in the median of all.
fn weights(samples: &[Sample], y_unit: f64, y: &[f64]) -> Vec<f64> {
    let relative = |(s, y): (&Sample, &f64)| (s.variance.sqrt() / y_unit / y).powi(2).min(100.0);
    let mut known: Vec<f64> =
        samples.iter().zip(y).filter(|(s, _)| s.weight > 1.0 || s.variance > 0.0).map(relative).collect();
    known.sort_by(f64::total_cmp);
    let typical = known.get(known.len() / 2).copied().unwrap_or(0.0);
    let raw: Vec<f64> = if known.last().is_some_and(|&v| v > 0.0) {
        let weigh = |pair: (&Sample, &f64)| {
            let w = pair.0.weight;
            let variance = (relative(pair) * (w - 1.0) + 2.0 * typical) / (w + 1.0);
            1.0 / (SYSTEMATIC * SYSTEMATIC + variance / w)
        };
        samples.iter().zip(y).map(weigh).collect()
    } else {
        // No variance anywhere: either unknown or truly none. Calls count, but little.
        let most = samples.iter().map(|s| s.weight).fold(1.0, f64::max);
        samples.iter().map(|s| (s.weight / most).powf(0.25)).collect()
    };
    let largest = raw.iter().copied().fold(0.0, f64::max);
    let raw: Vec<f64> = raw.iter().map(|w| w.max(largest / 50.0)).collect();
    let mean = raw.iter().sum::<f64>() / raw.len() as f64;
    raw.iter().map(|w| w / mean).collect()
}

/// Relative variance of costs that are small whole numbers of some unit: 3, 4, 5. Such costs repeat on
/// different sizes, and a fit can be no closer to them than half their distance.
fn lattice(n: &[f64], y: &[f64]) -> f64 {
    let mut values = y.to_vec();
    values.sort_by(f64::total_cmp);
    values.dedup();
    // Two levels alone are a step, and three or more a ladder.
    if values.len() < 3 || values.len() * 2 > count_distinct(n.iter().copied()) {
        return 0.0;
    }
    let step = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    let share = |y: &f64| (0.3 * step / y).min(0.3).powi(2);
    y.iter().map(share).sum::<f64>() / y.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_samples_are_dropped_and_the_rest_sorted() {
        let sample = |n, y| Sample::new(n, y);
        let points = Points::new(&[
            sample(3.0, 6.0),
            sample(f64::NAN, 1.0),
            sample(1.0, f64::INFINITY),
            sample(-1.0, 1.0),
            sample(2.0, -1.0),
            Sample { n: 1.0, y: 2.0, weight: f64::NAN, variance: -1.0 },
        ])
        .unwrap();
        assert_eq!(points.n, [1.0, 3.0]);
        assert_eq!(points.y, [2.0 / 6.0, 1.0]);
        assert!(Points::new(&[]).is_none());
        assert!(Points::new(&[sample(f64::NAN, 1.0)]).is_none());
    }

    #[test]
    fn many_points_are_thinned_without_losing_the_ends() {
        let samples: Vec<Sample> = (1..=100_000).map(|n| Sample::new(n as f64, 3.0 * n as f64)).collect();
        let points = Points::new(&samples).unwrap();
        assert!((100..=2 * POINTS_MAX).contains(&points.len()), "{}", points.len());
        assert!(points.n[0] == 1.0 && points.n[points.len() - 1] > 0.97e5);
        assert_eq!(points.distinct_seen, 100_000);
        let bunched: Vec<Sample> = (0..5000).map(|i| Sample::new(1e6 + i as f64, 1.0)).collect();
        assert!(Points::new(&bunched).unwrap().len() >= POINTS_MAX / 2);
        let same: Vec<Sample> = (0..5000).map(|i| Sample::new(7.0, i as f64)).collect();
        assert!(Points::new(&same).unwrap().len() <= POINTS_MAX);
    }

    #[test]
    fn a_scattered_mean_weighs_less_than_a_sharp_one() {
        let of = |weight, variance| Sample { n: 1.0, y: 100.0, weight, variance };
        let u = Points::new(&[of(1.0, 0.0), of(100.0, 400.0), of(100.0, 1.0)]).unwrap().u;
        assert!(u[0] < u[2] && u[2] < u[1], "sorted by weight, then variance: {u:?}");
    }
}
