//! What holds for every input.

use fit::{Class, Fit, Sample, Verdict, bounds, fit};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Any number at all, the odd ones often.
fn wild() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>(),
        2 => (0u32..50).prop_map(f64::from),
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, -1.0, 1e-300, 1e300, f64::MAX, f64::MIN_POSITIVE, 5e-324, f64::NAN, f64::INFINITY,
            f64::NEG_INFINITY,
        ]),
    ]
}

fn wild_samples() -> impl Strategy<Value = Vec<Sample>> {
    let sample = (wild(), wild(), wild(), wild());
    prop::collection::vec(
        sample.prop_map(|(n, y, weight, variance)| Sample { n, y, weight, variance }),
        0..40,
    )
}

/// A plausible curve of a named class with up to 10 % noise.
fn curve() -> impl Strategy<Value = Vec<Sample>> {
    let class = prop::sample::select(Class::NAMED[..9].to_vec());
    let points = prop::collection::vec((1.0f64..9.0, 0.9f64..1.1, 1u32..1000), 3..40);
    (class, 0.0f64..1000.0, 0.01f64..100.0, points).prop_map(|(class, a, b, points)| {
        let sample = |(log, noise, weight): (f64, f64, u32)| {
            let n = log.exp().round();
            let y = (a + b * class.g(n)) * noise;
            Sample { n, y, weight: f64::from(weight), variance: 0.01 * y * y }
        };
        points.into_iter().map(sample).collect()
    })
}

/// A class and its exponent do not contradict each other. (Logarithms are steep at the smallest sizes.)
fn agrees(fit: &Fit) {
    let Some(class) = fit.class.filter(|&class| class != Class::Exponential) else { return };
    let log = matches!(class, Class::Log | Class::NLogN | Class::N2LogN);
    let (low, high) = (class.power() - 0.25, class.power() + 0.25 + f64::from(log));
    assert!(fit.exponent_ci[0] <= high && fit.exponent_ci[1] >= low, "{fit:?}");
}

fn check_sane(fit: &Fit) {
    assert_eq!(fit.class.is_none(), fit.verdict == Verdict::Unknown, "{fit:?}");
    assert_eq!(fit.reason.is_empty(), fit.verdict == Verdict::Confident, "{fit:?}");
    assert_eq!(fit.formula.is_empty(), fit.class.is_none(), "{fit:?}");
    assert!((0.0..=1.0).contains(&fit.confidence), "{fit:?}");
    assert!(fit.exponent_ci[0] <= fit.exponent && fit.exponent <= fit.exponent_ci[1], "{fit:?}");
    agrees(fit);
    assert!(fit.spread >= 0.0 && fit.coefficients.iter().all(|c| c.is_finite()), "{fit:?}");
    assert!(!fit.formula.contains("+ -") && !fit.formula.contains("NaN"), "{fit:?}");
    assert_ne!(fit.pieces.len(), 1, "{fit:?}");
    for pair in fit.pieces.windows(2) {
        assert!(pair[0].from <= pair[0].to && pair[0].to < pair[1].from, "{fit:?}");
    }
    for n in [0.0, 1.0, 1e3, 1e300, f64::NAN, -1.0] {
        if let (Some(cost), Some([low, high])) = (fit.predict(n), fit.band(n)) {
            assert!(low <= cost && cost <= high && low >= 0.0, "{n}: {fit:?}");
        }
    }
}

proptest! {
    // A fixed seed: a test that fails now and then on rounding teaches nobody anything. Change it to search.
    #![proptest_config(ProptestConfig {
        cases: 400,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_input_panics(samples in wild_samples()) {
        check_sane(&fit(&samples));
        bounds(&samples);
    }

    #[test]
    fn curves_give_sane_fits(samples in curve()) {
        let fit = fit(&samples);
        check_sane(&fit);
        if fit.class.is_some() && fit.pieces.is_empty() {
            // The curve passes among the points.
            let above = samples.iter().filter(|s| fit.predict(s.n).unwrap() > s.y).count();
            let exact = samples.iter().filter(|s| (fit.predict(s.n).unwrap() / s.y - 1.0).abs() < 0.15).count();
            prop_assert!(exact * 2 >= samples.len() || above > 0 && above < samples.len(), "{:?}", fit);
        }
    }

    #[test]
    fn order_does_not_matter(samples in curve(), seed in any::<u64>()) {
        let mut shuffled = samples.clone();
        let mut state = seed;
        for i in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            shuffled.swap(i, (state >> 33) as usize % (i + 1));
        }
        prop_assert_eq!(fit(&samples), fit(&shuffled));
    }

    #[test]
    fn the_unit_of_cost_does_not_matter(samples in curve(), power in -60i32..60) {
        // A power of two changes no digit, so everything but the scale must be equal.
        let scale = f64::from(power).exp2();
        let scaled: Vec<Sample> = samples
            .iter()
            .map(|s| Sample { y: s.y * scale, variance: s.variance * scale * scale, ..*s })
            .collect();
        let (one, other) = (fit(&samples), fit(&scaled));
        prop_assert_eq!(one.class, other.class);
        prop_assert_eq!(one.verdict, other.verdict);
        prop_assert_eq!(one.pieces.len(), other.pieces.len());
        prop_assert!((one.confidence - other.confidence).abs() < 1e-9);
        for (a, b) in one.coefficients.iter().zip(&other.coefficients) {
            prop_assert!((a * scale - b).abs() <= 1e-9 * b.abs(), "{} {}", a * scale, b);
        }
    }

    #[test]
    fn any_unit_of_cost_gives_the_same_class(samples in curve(), scale in 1e-6f64..1e6) {
        let scaled: Vec<Sample> = samples
            .iter()
            .map(|s| Sample { y: s.y * scale, variance: s.variance * scale * scale, ..*s })
            .collect();
        let (one, other) = (fit(&samples), fit(&scaled));
        let name = |fit: &Fit| fit.class.map(|class| class.to_string());
        // Rounding can turn a tie; it cannot turn a clear verdict.
        if one.confidence > 0.6 && one.verdict != Verdict::Unknown {
            prop_assert_eq!(name(&one), name(&other));
        }
    }

    #[test]
    fn calls_in_proportion_change_nothing_without_variance(samples in curve(), factor in 1u32..100) {
        let with = |factor: f64| -> Vec<Sample> {
            samples.iter().map(|s| Sample { weight: s.weight * factor, variance: 0.0, ..*s }).collect()
        };
        let (one, other) = (fit(&with(1.0)), fit(&with(f64::from(factor))));
        prop_assert!((one.confidence - other.confidence).abs() < 1e-6);
        prop_assert_eq!(one.class.map(|c| c.to_string()), other.class.map(|c| c.to_string()));
    }

    #[test]
    fn more_calls_pull_the_curve_closer(place in 0usize..12, off in 1.1f64..1.3) {
        // One size is off; the more calls are behind it, the closer the curve comes to it.
        let distance = |weight: f64| {
            let mut samples: Vec<Sample> =
                (1..=12).map(|i| f64::from(50 * i)).map(|n| Sample { weight: 20.0, ..Sample::new(n, 10.0 * n) }).collect();
            samples[place].y *= off;
            samples[place].weight = weight;
            for s in &mut samples {
                s.variance = (0.3 * s.y).powi(2);
            }
            let fit = fit(&samples);
            (fit.predict(samples[place].n).unwrap() / samples[place].y).ln().abs()
        };
        prop_assert!(distance(500.0) <= distance(20.0) + 0.01, "{} {}", distance(500.0), distance(20.0));
    }
}
