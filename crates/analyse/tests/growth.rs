//! Conclusions on profiles whose right answer is known by construction.

use analyse::diff::{ChangeKind, diff};
use analyse::rule::{Outcome, Rule};
use analyse::{analyse, overtakes};
use fit::{Class, Verdict};
use profile::{Cost, Growth, Metric, Point, Routine};

/// Sizes 10, 14, 20, ... up to `max`, each called `calls` times at exactly `cost(n)`, all of it self cost.
fn routine(name: &str, max: u64, calls: u64, cost: impl Fn(f64) -> f64) -> Routine {
    let mut points = Vec::new();
    let mut n = 10.0f64;
    while n as u64 <= max {
        let size = n as u64;
        let each = cost(size as f64).round() as u64;
        points.push(Point {
            n: size,
            calls,
            min: each,
            max: each,
            sum: each * calls,
            sumsq: u128::from(each) * u128::from(each) * u128::from(calls),
            real_sum: each * calls,
            self_sum: each * calls,
            self_min: each,
            self_max: each,
            self_sumsq: u128::from(each) * u128::from(each) * u128::from(calls),
            ..Point::default()
        });
        n *= 1.41;
    }
    Routine { name: name.into(), mangled: name.into(), object: "/bin/p".into(), points, ..Routine::default() }
}

fn growth(routines: Vec<Routine>) -> Growth {
    let cost_total = routines.iter().map(Routine::cost_self).sum();
    Growth {
        metric: Metric::Rms,
        cost: Cost::Blocks,
        cell_bytes: 4,
        cost_total,
        routines,
        ..growth_defaults()
    }
}

fn growth_defaults() -> Growth {
    Growth {
        metric: Metric::Rms,
        cost: Cost::Blocks,
        cell_bytes: 4,
        cost_total: 0,
        size_error: 0.0,
        routines: Vec::new(),
        threads: Vec::new(),
    }
}

fn quadratic(n: f64) -> f64 {
    500.0 + 1.5 * n * n
}

fn linear(n: f64) -> f64 {
    120.0 + 700.0 * n
}

#[test]
fn the_planted_quadratic_comes_first_though_it_is_cheap_today() {
    let profile = growth(vec![
        routine("big_linear", 10_000, 200, linear),
        routine("planted", 2_000, 3, quadratic),
        routine("sorter", 10_000, 20, |n| 300.0 + 30.0 * n * n.log2()),
        routine("lookup", 10_000, 500, |n| 200.0 + 90.0 * n.log2()),
    ]);
    let analysis = analyse(&profile);
    let planted = &analysis.routines[0];
    assert_eq!(planted.routine.name, "planted");
    assert_eq!(planted.fit.class, Some(Class::Quadratic));
    assert_eq!(planted.fit.verdict, Verdict::Confident);
    assert!(planted.share < 0.05, "it is cheap today: {}", planted.share);
}

#[test]
fn the_forecast_is_the_measurement_at_one_and_the_formula_beyond() {
    let profile = growth(vec![routine("q", 1_000, 4, |n| n * n), routine("l", 1_000, 4, |n| 50.0 * n)]);
    let analysis = analyse(&profile);
    for r in &analysis.routines {
        let cost = |factor: f64| r.forecast[analysis.factor_index(factor).unwrap()].cost;
        assert!((cost(1.0) / r.cost_total as f64 - 1.0).abs() < 1e-9);
        let power = if r.routine.name == "q" { 2.0 } else { 1.0 };
        for factor in [10.0f64, 100.0, 1000.0] {
            let expected = r.cost_total as f64 * factor.powf(power);
            assert!((cost(factor) / expected - 1.0).abs() < 0.02, "{} at {factor}", r.routine.name);
        }
    }
    for i in 0..analysis.factors.len() {
        let sum: f64 = analysis.routines.iter().map(|r| r.forecast[i].share).sum();
        assert!((sum - 1.0).abs() < 1e-6, "self-only routines share the whole, got {sum}");
    }
}

#[test]
fn an_unknown_fit_is_not_extrapolated_and_said_to_be_held() {
    let mut single = routine("once", 10, 1, |_| 1_000_000.0);
    single.points.truncate(1);
    let profile = growth(vec![single, routine("l", 10_000, 1, linear)]);
    let analysis = analyse(&profile);
    let once = analysis.routines.iter().find(|r| r.routine.name == "once").unwrap();
    assert_eq!(once.fit.verdict, Verdict::Unknown);
    assert!(once.forecast.is_empty());
    let held_now = analysis.unextrapolated_share[0];
    assert!((held_now - 1_000_000.0 / profile.cost_total as f64).abs() < 1e-9);
    assert!(analysis.unextrapolated_share.last().unwrap() < &held_now);
}

#[test]
fn a_quadratic_overtakes_a_linear_where_their_costs_cross() {
    // One size class each, so that the crossing is at one place: k²·q = k·l, hence k = l/q.
    let profile = growth(vec![routine("q", 1_000, 1, |n| n * n), routine("l", 1_000, 1, |n| 10_000.0 * n)]);
    let analysis = analyse(&profile);
    let cost =
        |name: &str| analysis.routines.iter().find(|r| r.routine.name == name).unwrap().cost_total as f64;
    let expected = cost("l") / cost("q");
    let found = overtakes(&analysis);
    assert_eq!(found.len(), 1);
    assert_eq!(analysis.routines[found[0].rising].routine.name, "q");
    assert!((found[0].factor / expected - 1.0).abs() < 0.05, "{} instead of {expected}", found[0].factor);
    assert!(found[0].range.0 <= found[0].factor);
}

#[test]
fn diff_sees_a_class_and_a_coefficient_change_and_nothing_else() {
    let old = growth(vec![
        routine("stays", 5_000, 50, linear),
        routine("parse", 5_000, 50, |n| 100.0 + 40.0 * n),
        routine("walk", 5_000, 50, |n| 100.0 + 40.0 * n),
    ]);
    let new = growth(vec![
        routine("stays", 5_000, 50, linear),
        routine("parse", 5_000, 50, |n| 100.0 + 0.3 * n * n),
        routine("walk", 5_000, 50, |n| 100.0 + 60.0 * n),
    ]);
    let (old, new) = (analyse(&old), analyse(&new));
    let changes = diff(&old, &new);
    let kinds: Vec<(&str, bool)> =
        changes.iter().map(|c| (c.routine().routine.name.as_str(), c.worse)).collect();
    assert_eq!(kinds, [("parse", true), ("walk", true), ("stays", false)]);
    assert_eq!(changes[0].kind, ChangeKind::Class);
    assert!(matches!(changes[1].kind, ChangeKind::Coefficient { ratio } if (ratio - 1.49).abs() < 0.03));
    assert!(matches!(changes[2].kind, ChangeKind::Share { .. }), "its share fell because the others grew");
    assert!(diff(&old, &old).is_empty());
}

#[test]
fn diff_is_silent_about_noise() {
    // The same program twice, every cost off by up to two percent in a fixed pseudo-random way.
    let noisy = |seed: u64| {
        let wobble = move |n: f64| {
            let hash = (n as u64).wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            1.0 + 0.02 * (hash as f64 / (1u64 << 23) as f64 - 1.0)
        };
        growth(vec![
            routine("a", 10_000, 50, move |n| linear(n) * wobble(n)),
            routine("b", 2_000, 5, move |n| quadratic(n) * wobble(n)),
            routine("c", 10_000, 50, move |n| (300.0 + 30.0 * n * n.log2()) * wobble(n)),
        ])
    };
    for seed in 0..20 {
        let (old, new) = (noisy(seed), noisy(seed + 1_000));
        let (old, new) = (analyse(&old), analyse(&new));
        let changes = diff(&old, &new);
        assert!(changes.is_empty(), "seed {seed}: {:?}", changes[0].kind);
    }
}

#[test]
fn rules_fail_only_on_what_is_confidently_worse() {
    let mut few = routine("parse_few", 10_000, 5, quadratic);
    few.points.truncate(2);
    let profile = growth(vec![
        routine("parse_good", 10_000, 5, linear),
        routine("parse_bad", 10_000, 5, quadratic),
        few,
    ]);
    let analysis = analyse(&profile);
    let judge = |rule: &str| {
        let rule: Rule = rule.parse().unwrap();
        let mut found: Vec<(String, Outcome)> =
            rule.judge(&analysis).iter().map(|f| (f.routine.routine.name.clone(), f.outcome)).collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.into_iter().map(|f| f.1).collect::<Vec<_>>()
    };
    use Outcome::{Fail, NotEnoughData, Pass};
    assert_eq!(judge("parse_*: n log n"), [Fail, NotEnoughData, Pass]);
    assert_eq!(judge("parse_*: n^2"), [Pass, NotEnoughData, Pass]);
    assert_eq!(judge("parse_good: 1"), [Fail]);
    assert!(judge("nothing*: n").is_empty());
}
