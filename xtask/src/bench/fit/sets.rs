//! Generated cost functions with known truth.
//!
//! Two generators. [`standard`] is the published protocol that peers were measured with: twelve fixed
//! functions, 2 % noise. [`varied`] draws coefficients, constants, ranges and noise anew for every set and adds
//! functions that the protocol does not have, so that a fitter tuned to the first one shows.

use fit::{Class, Sample};

/// SplitMix64: tiny, and the same numbers for ever on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        self.between(low.ln(), high.ln()).exp()
    }

    fn gauss(&mut self) -> f64 {
        let (u, v) = (1.0 - self.unit(), self.unit());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

/// What the right answer is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Truth {
    /// One regime of this class; a free power counts as found within 0.06.
    One(Class),
    /// A break, and this class after it.
    Broken(Class),
}

/// One set of samples.
pub struct Set {
    /// Index into the generator's family names.
    pub family: usize,
    /// Points asked for.
    pub points: usize,
    pub truth: Truth,
    /// The exponent, where the truth is `a + b·n^k` and nothing else.
    pub exponent: Option<f64>,
    pub samples: Vec<Sample>,
}

/// Names of the families of [`standard`].
pub const STANDARD: [&str; 12] = [
    "const",
    "log n",
    "sqrt n",
    "n",
    "n log n",
    "n^1.5",
    "n^2",
    "n^2 log n",
    "n^3",
    "2^n",
    "piecewise",
    "n, outliers",
];
/// Points of the twelve base sets.
const BASE_POINTS: [usize; 12] = [20, 30, 25, 60, 40, 20, 30, 40, 12, 15, 60, 50];

/// Names of the families of [`varied`].
pub const VARIED: [&str; 16] = [
    "const",
    "log n",
    "sqrt n",
    "n",
    "n log n",
    "n^1.5",
    "n^2",
    "n^2 log n",
    "n^3",
    "2^n",
    "jump n to n^2",
    "onset of n^2",
    "n, outliers",
    "n^K",
    "n + n^2",
    "n log n - n",
];

/// The twelve base sets.
pub fn base(seed: u64) -> Vec<Set> {
    (0..12).map(|family| standard(family, BASE_POINTS[family], seed)).collect()
}

/// One set of the published protocol.
pub fn standard(family: usize, points: usize, seed: u64) -> Set {
    let mut random = Random::new(mix(seed, family, points));
    type Family = (Truth, fn(f64) -> f64, f64, f64);
    let one = Truth::One;
    let (truth, f, low, high): Family = match family {
        0 => (one(Class::Constant), |_| 5000.0, 10.0, 1e5),
        1 => (one(Class::Log), |n| 200.0 + 90.0 * n.log2(), 10.0, 1e5),
        2 => (one(Class::Sqrt), |n| 150.0 + 40.0 * n.sqrt(), 10.0, 1e5),
        3 | 11 => (one(Class::Linear), |n| 120.0 + 7.0 * n, 10.0, 1e5),
        4 => (one(Class::NLogN), |n| 300.0 + 3.0 * n * n.log2(), 10.0, 1e5),
        5 => (one(Class::N15), |n| 200.0 + 2.0 * n.powf(1.5), 10.0, 1e5),
        6 => (one(Class::Quadratic), |n| 500.0 + 1.5 * n * n, 10.0, 1e4),
        7 => (one(Class::N2LogN), |n| 500.0 + 0.7 * n * n * n.log2(), 10.0, 1e4),
        8 => (one(Class::Cubic), |n| 500.0 + 0.5 * n * n * n, 5.0, 1e3),
        9 => (one(Class::Exponential), |n| 50.0 + 3.0 * n.exp2(), 4.0, 24.0),
        _ => {
            let f = |n: f64| 100.0 + 20.0 * n + 0.5 * (n - 1000.0).max(0.0).powi(2);
            (Truth::Broken(Class::Quadratic), f, 10.0, 1e5)
        }
    };
    let sizes = sizes(family == 9, points, low, high, &mut random);
    let outliers = family == 11;
    let noise = if outliers { 0.1 } else { 0.02 };
    let mut samples = observe(&sizes, f, noise, &mut random);
    if outliers {
        spoil(&mut samples, 0.1, false, &mut random);
    }
    Set { family, points, truth, exponent: plain_power(truth), samples }
}

/// One set of the second generator.
pub fn varied(family: usize, points: usize, seed: u64) -> Set {
    let mut random = Random::new(mix(seed ^ 0x5eed, family, points));
    let noise = if seed.is_multiple_of(2) { 0.01 } else { 0.05 };
    let class = match family {
        0..=9 => Class::NAMED[family],
        15 => Class::NLogN,
        12 => Class::Linear,
        13 => Class::Power([0.7, 1.25, 1.75, 2.4][(seed % 4) as usize]),
        _ => Class::Quadratic,
    };
    let exponential = class == Class::Exponential;
    let low = [2.0, 4.0, 10.0, 100.0][(random.next() % 4) as usize];
    let high = low * random.log_between(100.0, 1e5);
    let (low, high) = if exponential {
        (random.between(1.0, 6.0).floor(), random.between(15.0, 30.0).floor())
    } else {
        (low, high)
    };
    let b = random.log_between(0.1, 100.0);
    // The constant is between nothing and a thousand times the rest at the smallest size.
    let a =
        if random.unit() < 0.25 { 0.0 } else { b * class.g(low.max(2.0)) * random.log_between(0.1, 300.0) };
    let middle = (low * high).sqrt() * random.log_between(0.5, 2.0);
    // A break that a huge constant hides is none.
    let a = if matches!(family, 10 | 11) { a.min(0.3 * b * middle) } else { a };
    let sizes = sizes(exponential, points, low, high, &mut random);
    let broken = Truth::Broken(Class::Quadratic);
    let (truth, samples) = match family {
        0 => (Truth::One(class), observe(&sizes, |_| b * 100.0, noise, &mut random)),
        10 => {
            let step = random.log_between(0.5, 4.0);
            let f = |n: f64| if n < middle { a + b * n } else { a + step * b * n * n / middle };
            (broken, observe(&sizes, f, noise, &mut random))
        }
        11 => {
            let c = b / middle * random.log_between(1.0, 100.0);
            (broken, observe(&sizes, |n| a + b * n + c * (n - middle).max(0.0).powi(2), noise, &mut random))
        }
        14 => {
            let c = b / middle;
            (Truth::One(class), observe(&sizes, |n| a + b * n + c * n * n, noise, &mut random))
        }
        15 => {
            let f = |n: f64| a + b * (n * n.max(1.0).log2() - 0.9 * n + 1.0);
            (Truth::One(class), observe(&sizes, f, noise, &mut random))
        }
        _ => (Truth::One(class), observe(&sizes, |n| a + b * class.g(n), noise, &mut random)),
    };
    let mut samples = samples;
    if family == 12 {
        spoil(&mut samples, 0.07, true, &mut random);
    }
    let exponent = if family == 14 { None } else { plain_power(truth) };
    Set { family, points, truth, exponent, samples }
}

fn plain_power(truth: Truth) -> Option<f64> {
    match truth {
        Truth::One(class) if class.power() > 0.0 && Class::of_power(class.power()) == class => {
            Some(class.power())
        }
        _ => None,
    }
}

fn mix(seed: u64, family: usize, points: usize) -> u64 {
    Random::new(seed.wrapping_mul(0x1000_0001) ^ ((family as u64) << 40) ^ ((points as u64) << 20)).next()
}

fn sizes(uniform: bool, points: usize, low: f64, high: f64, random: &mut Random) -> Vec<f64> {
    if uniform {
        // As many different whole sizes as there are, in random order.
        let mut all: Vec<f64> = (low as u64..=high as u64).map(|n| n as f64).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, (random.next() % (i as u64 + 1)) as usize);
        }
        all.truncate(points);
        return all;
    }
    (0..points).map(|_| random.log_between(low, high).round()).collect()
}

fn observe(sizes: &[f64], f: impl Fn(f64) -> f64, noise: f64, random: &mut Random) -> Vec<Sample> {
    let factor = |random: &mut Random| (1.0 + noise * random.gauss()).max(0.05);
    sizes.iter().map(|&n| Sample::new(n, f(n) * factor(random))).collect()
}

/// Makes a share of the samples 3 to 10 times too large, or also too small.
fn spoil(samples: &mut [Sample], share: f64, both: bool, random: &mut Random) {
    let count = ((samples.len() as f64 * share).round() as usize).max(1);
    let mut left: Vec<usize> = (0..samples.len()).collect();
    for _ in 0..count {
        let i = left.swap_remove((random.next() % left.len() as u64) as usize);
        let factor = random.between(3.0, 10.0);
        let down = both && random.unit() < 0.3;
        samples[i].y *= if down { 1.0 / factor } else { factor };
    }
}
