//! Profiles whose right answer is known by construction.

use profile::{Cost, Data, Exit, Growth, Metric, Point, Profile, Program, Routine, Run, RunId};

/// Sizes 10, 14, 19, ... up to `max`, five calls each at exactly `cost(n)`, all of it self cost.
pub fn routine(name: &str, max: u64, cost: impl Fn(f64) -> f64) -> Routine {
    const CALLS: u64 = 5;
    let sizes = std::iter::successors(Some(10u64), |n| Some(n * 7 / 5)).take_while(|&n| n <= max);
    let points = sizes.map(|n| {
        let each = cost(n as f64).round() as u64;
        let square = u128::from(each) * u128::from(each);
        Point {
            n,
            calls: CALLS,
            min: each,
            max: each,
            sum: each * CALLS,
            sumsq: square * u128::from(CALLS),
            real_sum: each * CALLS,
            self_sum: each * CALLS,
            self_min: each,
            self_max: each,
            self_sumsq: square * u128::from(CALLS),
            ..Point::default()
        }
    });
    Routine {
        name: name.into(),
        mangled: name.into(),
        object: "/usr/bin/sample".into(),
        points: points.collect(),
        ..Routine::default()
    }
}

/// A profile of one run with these routines.
pub fn profile(id: u8, routines: Vec<Routine>) -> Profile {
    let mut growth = Growth {
        metric: Metric::Rms,
        cost: Cost::Blocks,
        cell_bytes: 4,
        cost_total: routines.iter().map(Routine::cost_self).sum(),
        size_error: 0.0,
        routines,
        threads: Vec::new(),
    };
    growth.normalize();
    let run = Run {
        id: RunId::from_random([id; 16]),
        program: Program { path: "/usr/bin/sample".into(), build_id: vec![1, 2, 3, 4], ..Program::default() },
        command: vec!["sample".into(), "input.txt".into()],
        exit: Exit::Code(0),
        started_unix_ns: 1,
        wall_ns: 2_000_000,
        cpu_ns: 1_000_000,
        problems: Vec::new(),
        data: Data::Growth(growth),
    };
    Profile { runs: vec![run] }
}

/// A quadratic parser, a linear scanner and a routine that was called on one size only.
pub fn typical(id: u8) -> Profile {
    let mut once = routine("once", 10, |_| 1_000.0);
    once.points.truncate(1);
    profile(
        id,
        vec![
            routine("parse_line", 5_000, |n| 300.0 + 2.0 * n * n),
            routine("scan", 5_000, |n| 100.0 + 30.0 * n),
            once,
        ],
    )
}
