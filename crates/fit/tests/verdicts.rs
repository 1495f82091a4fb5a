//! What an honest expert would say about the costs that real profiles contain: exact counts, small integers,
//! steps, branches, hardly any sizes.

use fit::{Class, Fit, Sample, Verdict, fit};

fn over(sizes: impl IntoIterator<Item = u64>, cost: impl Fn(f64) -> f64) -> Fit {
    fit(&samples(sizes, cost))
}

fn samples(sizes: impl IntoIterator<Item = u64>, cost: impl Fn(f64) -> f64) -> Vec<Sample> {
    sizes.into_iter().map(|n| Sample::new(n as f64, cost(n as f64))).collect()
}

/// A number in [-1, 1] that depends on n alone.
fn noise(n: f64) -> f64 {
    let hash = (n as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let hash = (hash ^ (hash >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

/// One regime, confident, with this class and formula.
#[track_caller]
fn certain(fit: &Fit, class: Class, formula: &str) {
    assert_eq!((fit.class, fit.verdict), (Some(class), Verdict::Confident), "{fit:?}");
    assert_eq!(fit.formula, formula, "{fit:?}");
    assert!(fit.pieces.is_empty() && fit.reason.is_empty() && fit.confidence > 0.95, "{fit:?}");
}

#[track_caller]
fn unknown(fit: &Fit, reason: &str) {
    assert_eq!((fit.class, fit.verdict), (None, Verdict::Unknown), "{fit:?}");
    assert!(fit.reason.contains(reason), "{fit:?}");
    assert!(fit.formula.is_empty() && fit.coefficients.is_empty() && fit.predict(10.0).is_none());
}

#[test]
fn exact_counts_give_exact_formulas() {
    certain(&over(1..=50, |n| 120.0 + 7.0 * n), Class::Linear, "120 + 7·n");
    certain(&over(0..=40, |n| 10.0 * n), Class::Linear, "10·n");
    certain(&over(1..=100, |n| n * (n - 1.0) / 2.0), Class::Quadratic, "-0.5·n + 0.5·n^2");
    certain(&over(1..=100, |n| 3.0 + n * (n - 1.0) / 2.0), Class::Quadratic, "3 - 0.5·n + 0.5·n^2");
    certain(&over(1..=20, |n| 5.0 + 2.0 * n.exp2()), Class::Exponential, "5 + 2·2^n");
    certain(&over((1..=50).map(|i| 20 * i), |n| 1e6 + 300.0 * n), Class::Linear, "1000000 + 300·n");
    certain(&over(1..=30, |_| 3.0), Class::Constant, "3");
    certain(&over(1..=30, |_| 0.0), Class::Constant, "0");
}

#[test]
fn recursive_algorithms_have_their_class() {
    fn mergesort(n: u64) -> f64 {
        if n <= 1 { 3.0 } else { mergesort(n / 2) + mergesort(n - n / 2) + 7.0 * n as f64 + 5.0 }
    }
    for sizes in [(1..=300).collect::<Vec<u64>>(), (0..14).map(|k| 1 << k).collect()] {
        let fit = over(sizes, |n| mergesort(n as u64));
        assert_eq!((fit.class, fit.verdict), (Some(Class::NLogN), Verdict::Confident), "{fit:?}");
        assert!(fit.pieces.is_empty(), "{fit:?}");
    }
    fn search(n: u64) -> f64 {
        if n <= 1 { 5.0 } else { search(n / 2) + 9.0 }
    }
    // The cost is a staircase: the class is plain, but the smooth curve is not the whole law.
    let fit = over(1..=1000, |n| search(n as u64));
    assert_eq!(fit.class, Some(Class::Log), "{fit:?}");
    // Cubic loops have two terms of lower order, one more than a candidate.
    let fit = over(3..=60, |n| n * (n - 1.0) * (n - 2.0) / 6.0 + 5.0);
    assert_eq!((fit.class, fit.verdict), (Some(Class::Cubic), Verdict::Confident), "{fit:?}");
}

#[test]
fn what_has_no_name_is_a_power() {
    let fit = over(1..=80, |n| 5.0 + n.powf(2.5));
    let Some(Class::Power(k)) = fit.class else { panic!("{fit:?}") };
    assert!((k - 2.5).abs() < 0.01 && fit.exponent_ci[0] <= k && k <= fit.exponent_ci[1], "{fit:?}");
    assert_eq!(fit.formula, "5 + n^2.50");
    let fit = over(3..=30, |n| 3.0 * 1.618f64.powf(n));
    assert_eq!((fit.class, fit.formula.as_str()), (Some(Class::Exponential), "3·1.62^n"));
    assert!(fit.reason.contains("base of 1.62"), "{fit:?}");
    assert!((fit.predict(40.0).unwrap() / (3.0 * 1.618f64.powi(40)) - 1.0).abs() < 1e-3);
}

#[test]
fn small_integers_are_not_overread() {
    let fit = over(1..=30, |n| 3.0 + (n / 10.0).floor());
    assert_ne!(fit.verdict, Verdict::Confident, "{fit:?}");
    let fit = over(1..=64, |n| 1.0 + n.log2().floor());
    assert_eq!(fit.class, Some(Class::Log), "{fit:?}");
    let fit = over(1..=30, |n| if n == 7.0 || n == 20.0 { 4.0 } else { 3.0 });
    assert_eq!(fit.class, Some(Class::Constant), "{fit:?}");
}

#[test]
fn steps_are_regimes_only_when_they_last() {
    let fit = over((1..=40).map(|i| 50 * i), |n| if n < 1000.0 { 100.0 } else { 250.0 });
    assert_eq!((fit.class, fit.pieces.len()), (Some(Class::Constant), 2), "{fit:?}");
    assert_eq!((fit.pieces[0].to, fit.pieces[1].from), (950.0, 1000.0));
    assert!((fit.predict(975.0).unwrap() - 100.0).abs() < 1e-6, "{fit:?}");
    assert!((fit.predict(5000.0).unwrap() - 250.0).abs() < 1e-6, "{fit:?}");
    // A table that doubles: every step is half of what was seen, none of them is a law.
    let fit = over(1..=200, |n| 10.0 * n.log2().ceil().exp2());
    assert!(fit.pieces.is_empty() && fit.verdict == Verdict::Tentative, "{fit:?}");
    assert!((fit.exponent - 1.0).abs() < 0.15, "{fit:?}");
}

#[test]
fn regimes_are_found_with_their_breaks() {
    let fit = over(1..=200, |n| if n < 16.0 { 5.0 + n * n } else { 200.0 + 12.0 * n * n.log2() });
    assert_eq!(fit.formula, "5 + n^2 (n < 16); 200 + 12·n log n (n >= 16)");
    assert_eq!((fit.class, fit.verdict), (Some(Class::NLogN), Verdict::Confident));
    let levels = |n: f64| {
        n * if n < 1e3 {
            1.0
        } else if n < 5e4 {
            3.0
        } else {
            10.0
        }
    };
    let fit = over((1..60).map(|i| (10.0 * 1.2f64.powi(i)) as u64), levels);
    assert_eq!(fit.formula, "n (n < 1140); 3·n (n < 52700); 10·n (n >= 52700)");
    let excess = |n: f64| 100.0 + 20.0 * n + 0.5 * (n - 1000.0).max(0.0).powi(2);
    let fit = over((0..50).map(|i| (10.0 * 1.2f64.powi(i)) as u64), |n| excess(n) * (1.0 + 0.02 * noise(n)));
    assert_eq!((fit.class, fit.pieces.len()), (Some(Class::Quadratic), 2), "{fit:?}");
    assert!((fit.pieces[1].from / 1000.0).ln().abs() < 0.3, "{fit:?}");
    assert!((fit.predict(1e6).unwrap() / excess(1e6)).ln().abs() < 0.1, "{fit:?}");
}

#[test]
fn two_branches_are_scatter_and_rare_ones_outliers() {
    let branch = |n: f64| noise(n) > 0.0;
    let reason = "scatter not explained by size";
    unknown(&over(10..=100, |n| if branch(n) { 5.0 * n } else { n * n }), reason);
    unknown(&over(10..=100, |n| if branch(n) { 50.0 } else { 20.0 * n }), reason);
    unknown(&over(10..=100, |n| if branch(n) { 50.0 } else { 5000.0 }), reason);
    let fit = over(10..=100, |n| if noise(n) > 0.85 { 5.0 } else { 20.0 * n });
    certain(&fit, Class::Linear, "20·n");
    assert!(fit.outliers > 2);
}

/// Recorded from bench/engine/btree.c: inserting a key that is there, and one that is not, are two straight lines. 210
/// calls of the one have nearly the weight of half a million of the other, and what is left of a curve without its
/// lower terms does not grow as the class says.
#[test]
fn a_class_does_not_contradict_its_exponent() {
    const INSERT: [(u32, f64, u32, f64); 80] = [
        (0, 47.0, 499789, 0.6),
        (1, 4.0, 210, 0.0),
        (3, 52.5, 499787, 0.8),
        (4, 9.5, 210, 0.5),
        (6, 58.0, 499783, 0.9),
        (7, 15.0, 210, 0.7),
        (9, 63.5, 499775, 1.0),
        (10, 20.5, 210, 0.9),
        (12, 69.0, 499759, 1.2),
        (13, 26.0, 210, 1.0),
        (15, 74.5, 499727, 1.3),
        (16, 31.5, 210, 1.2),
        (18, 80.0, 499664, 1.4),
        (19, 37.0, 210, 1.4),
        (21, 85.5, 499539, 1.4),
        (22, 42.5, 210, 1.4),
        (24, 91.0, 499299, 1.5),
        (25, 48.0, 210, 1.5),
        (27, 96.5, 498858, 1.6),
        (28, 53.6, 210, 1.6),
        (30, 102.0, 498062, 1.7),
        (31, 59.1, 210, 1.6),
        (33, 107.5, 496664, 1.8),
        (34, 64.7, 210, 1.7),
        (36, 113.0, 494221, 1.8),
        (37, 70.2, 210, 1.7),
        (39, 118.5, 490170, 1.9),
        (40, 75.8, 206, 1.8),
        (42, 124.1, 483734, 2.0),
        (43, 81.3, 202, 1.9),
        (45, 129.6, 474104, 2.0),
        (46, 86.8, 200, 2.0),
        (48, 135.1, 460297, 2.1),
        (49, 92.3, 188, 2.1),
        (51, 140.7, 441538, 2.1),
        (52, 98.0, 177, 2.1),
        (54, 146.2, 417143, 2.2),
        (55, 103.5, 162, 2.1),
        (57, 151.8, 386886, 2.3),
        (58, 109.0, 147, 2.1),
        (60, 157.3, 351364, 2.3),
        (61, 114.5, 135, 2.1),
        (63, 162.9, 311383, 2.4),
        (64, 120.1, 115, 2.2),
        (66, 168.5, 268876, 2.4),
        (67, 125.6, 99, 2.2),
        (69, 174.1, 225573, 2.5),
        (70, 131.0, 77, 2.3),
        (72, 179.7, 183550, 2.5),
        (73, 136.3, 57, 2.2),
        (75, 185.3, 144791, 2.6),
        (76, 141.5, 42, 2.3),
        (78, 190.9, 110365, 2.6),
        (79, 147.0, 36, 2.2),
        (81, 196.5, 81348, 2.7),
        (82, 152.4, 22, 1.7),
        (84, 202.1, 58012, 2.8),
        (85, 158.4, 17, 1.9),
        (87, 207.8, 40010, 2.8),
        (88, 164.5, 11, 1.9),
        (90, 213.5, 26694, 2.9),
        (91, 170.0, 8, 2.4),
        (93, 219.2, 17253, 2.9),
        (94, 176.4, 5, 2.5),
        (96, 224.9, 10823, 3.0),
        (97, 182.0, 4, 2.3),
        (99, 230.6, 6551, 3.0),
        (100, 191.0, 1, 0.0),
        (102, 236.4, 3813, 3.1),
        (103, 197.0, 1, 0.0),
        (105, 242.1, 2165, 3.1),
        (106, 202.0, 1, 0.0),
        (108, 247.9, 1192, 3.1),
        (111, 253.6, 636, 3.1),
        (114, 259.4, 308, 2.9),
        (117, 265.3, 135, 2.8),
        (120, 271.2, 52, 2.5),
        (123, 277.1, 17, 2.3),
        (126, 283.4, 5, 0.5),
        (129, 288.5, 2, 0.5),
    ];
    let sample = |(n, y, calls, sd): (u32, f64, u32, f64)| Sample {
        n: n.into(),
        y,
        weight: calls.into(),
        variance: sd * sd,
    };
    let fit = fit(&INSERT.map(sample));
    assert_eq!((fit.class, fit.verdict), (Some(Class::Linear), Verdict::Tentative), "{fit:?}");
    assert!(fit.reason.contains("n^1.5 explains the data best, but the cost grows as n^0.9"), "{fit:?}");
    assert!((fit.exponent - 1.0).abs() < 0.25, "{fit:?}");
}

#[test]
fn few_sizes_never_convince() {
    unknown(&fit(&[]), "no usable samples");
    unknown(&over([7; 9], |n| n), "only one");
    unknown(&over([10, 1000, 10, 1000], |n| n), "only two");
    unknown(&over([10, 100, 1000], |n| 3.0 * n), "only three");
    unknown(&over([10, 100, 1000, 5000], |n| 3.0 * n), "only four");
    unknown(&over([9, 10, 11, 12, 13], |n| 100.0 + n), "range too narrow");
    unknown(&over((0..50).map(|i| 1000 + 2 * i), |n| 3.0 * n), "range too narrow");
    unknown(
        &over([5, 6, 7, 8, 9], |n| 3.0 * n),
        "too few distinct sizes: 5, the largest 1.8 times the smallest",
    );
    let fit = over([10, 100, 300, 1000, 5000], |n| 3.0 * n);
    assert_eq!((fit.class, fit.verdict), (Some(Class::Linear), Verdict::Tentative), "{fit:?}");
    assert!(fit.reason.contains("too few distinct sizes"), "{fit:?}");
    let fit = over((0..40).map(|i| 1000 + 40 * i), |n| 3.0 * n);
    assert!(fit.verdict == Verdict::Tentative && fit.reason.contains("range too narrow"), "{fit:?}");
}

/// Mean costs of sqlite3's parser by size in one run: cubic by its single largest call, and its interval says so.
#[test]
fn one_large_size_does_not_convict() {
    let seen = [
        (12, 179, 8),
        (17, 51, 13),
        (22, 63, 19),
        (27, 21, 24),
        (32, 22, 26),
        (36, 21, 41),
        (59, 1, 298),
        (88, 20, 201),
        (103, 12, 330),
        (104, 8, 330),
        (113, 5, 271),
        (114, 15, 271),
        (131, 20, 334),
        (133, 2, 323),
        (139, 1, 476),
        (141, 2, 441),
        (142, 4, 441),
        (143, 2, 222),
        (144, 6, 258),
        (145, 3, 446),
        (146, 3, 476),
        (147, 6, 416),
        (148, 1, 452),
        (149, 4, 232),
        (150, 3, 296),
        (152, 11, 412),
        (153, 9, 407),
        (155, 2, 364),
        (157, 3, 373),
        (161, 3, 364),
        (166, 2, 372),
        (171, 2, 382),
        (176, 2, 392),
        (182, 2, 402),
        (187, 1, 521),
        (202, 1, 505),
        (473, 1, 11355),
        (509, 4, 5056),
        (510, 5, 5010),
        (511, 4, 5013),
        (512, 2, 4976),
        (514, 1, 5020),
        (515, 1, 5033),
        (516, 2, 5011),
        (517, 1, 5307),
        (1527, 1, 77048),
    ];
    let sample = |(n, calls, mean)| Sample {
        n: f64::from(n),
        y: f64::from(mean),
        weight: f64::from(calls),
        variance: 0.0,
    };
    let fit = fit(&seen.map(sample));
    assert_eq!(fit.verdict, Verdict::Tentative, "{fit:?}");
    assert!(fit.exponent_ci[1] - fit.exponent_ci[0] > 0.5, "{fit:?}");
}

/// What a copy routine costs: one branch more beyond 16 words. A single step is no exponential.
#[test]
fn a_step_does_not_convince() {
    let sizes = [6, 7, 8, 9, 10, 12, 15, 16, 20, 22, 32];
    let fit = over(sizes, |n| if n > 16.0 { 6.0 } else { 3.0 });
    assert_ne!(fit.verdict, Verdict::Confident, "{fit:?}");
    let fit = over(sizes, |n| if n > 30.0 { 6.0 } else { 3.0 });
    assert!(fit.class == Some(Class::Constant) || fit.verdict != Verdict::Confident, "{fit:?}");
}

#[test]
fn a_falling_cost_has_no_class() {
    unknown(&over(1..=50, |n| 1000.0 / n), "falls");
}

#[test]
fn growth_below_the_noise_is_not_claimed() {
    let fit = over((1..=50).map(|i| 20 * i), |n| 1e6 + 3.0 * n);
    assert_eq!(fit.class, Some(Class::Constant), "0.3 % over the whole range: {fit:?}");
}

#[test]
fn a_mean_over_many_calls_counts_more_than_a_single_call() {
    // Single calls, wild, say n²; means over many calls say n.
    let mut all: Vec<Sample> = (1..=12).map(|i| Sample::new(100.0 * i as f64, 50.0 * i as f64)).collect();
    for s in &mut all {
        *s = Sample { weight: 10_000.0, variance: (0.5 * s.y).powi(2), ..*s };
    }
    let singles = (1..=12).map(|i| f64::from(100 * i + 50)).map(|n| Sample::new(n, 0.0007 * n * n));
    all.extend(singles);
    let fit = fit(&all);
    assert_eq!(fit.class, Some(Class::Linear), "{fit:?}");
    assert!((fit.predict(1000.0).unwrap() / 500.0 - 1.0).abs() < 0.1, "{fit:?}");
}

#[test]
fn hundred_thousand_points_are_no_different() {
    let fit = over(1..=100_000, |n| (120.0 + 7.0 * n) * (1.0 + 0.1 * noise(n)));
    assert_eq!((fit.class, fit.verdict), (Some(Class::Linear), Verdict::Confident), "{fit:?}");
    assert!((fit.coefficients[1] - 7.0).abs() < 0.3, "{fit:?}");
}

#[test]
fn a_matrix_product_is_n_to_the_one_and_a_half() {
    // m³ + m² + 2m + 2 blocks on 4m² cells, as counted: the lower terms are a fifth of the cost at small sizes.
    let sizes: Vec<Sample> = (1..=24)
        .map(|k| 2.0 * f64::from(k))
        .map(|m| Sample::new(4.0 * m * m, m * m * m + m * m + 2.0 * m + 2.0))
        .collect();
    let fit = fit(&sizes);
    assert_eq!((fit.class, fit.verdict), (Some(Class::N15), Verdict::Confident), "{fit:?}");
}

#[test]
fn cells_that_are_no_data_do_not_change_the_class() {
    // A loop over m elements reads them and k cells besides: arguments, a header, the length.
    type Law = (Class, fn(f64) -> f64);
    let laws: [Law; 3] = [
        (Class::Linear, |m| 5.0 + 3.0 * m),
        (Class::NLogN, |m| 5.0 + 3.0 * m * m.log2()),
        (Class::Quadratic, |m| 5.0 + 3.0 * m * m),
    ];
    for k in [1.0, 3.0, 10.0, 30.0] {
        for (class, cost) in laws {
            let sizes = (0..30).map(|i| 1.3f64.powi(i).floor());
            let fit = fit(&sizes.map(|m| Sample::new(m + k, cost(m))).collect::<Vec<_>>());
            assert_eq!(
                (fit.class, fit.verdict),
                (Some(class), Verdict::Confident),
                "{k} cells besides: {fit:?}"
            );
            if class != Class::NLogN {
                assert!((fit.exponent - class.power()).abs() < 0.01, "{k} cells besides: {fit:?}");
            }
        }
    }
}
