//! Merging and combining against their laws: order must not matter, repetition must not matter, nothing is lost.

use std::collections::BTreeMap;

use profile::{
    Cost, Data, Exit, Growth, MergeError, Metric, Point, Profile, Program, Routine, Run, RunId, combine,
    merge,
};
use proptest::prelude::*;

fn point() -> impl Strategy<Value = Point> {
    (0u64..6, 1u64..4, any::<u32>(), any::<u32>(), prop_oneof![9 => 0u64..1000, 1 => Just(u64::MAX)])
        .prop_map(|(n, calls, a, b, big)| {
            let mut point = Point::single(n, a.min(b).into(), 3);
            point.calls = calls;
            point.max = a.max(b).into();
            point.sum = big;
            point.input.external = big / 2;
            point
        })
}

fn routine() -> impl Strategy<Value = Routine> {
    (0u8..3, 0u8..2, prop::option::of(0u64..3), 0u8..3, prop::collection::vec(point(), 0..6)).prop_map(
        |(name, object, address, file, points)| Routine {
            name: format!("name{name}"),
            mangled: format!("mangled{}", name % 2),
            object: format!("object{object}"),
            address,
            file: ["", "a.c", "b.c"][usize::from(file)].into(),
            line: file.into(),
            threads: vec![u64::from(file)],
            points,
            ..Routine::default()
        },
    )
}

fn growth() -> impl Strategy<Value = Growth> {
    (prop::collection::vec(routine(), 0..6), 0u64..3, 0u8..3).prop_map(|(routines, total, error)| {
        let mut growth = Growth::new(Metric::Rms, Cost::Blocks, 4);
        growth.routines = routines;
        growth.cost_total = total;
        growth.size_error = f64::from(error) / 8.0;
        growth.normalize();
        growth
    })
}

fn run(id: u8, growth: Growth) -> Run {
    Run {
        id: RunId([id; 16]),
        program: Program { path: "/bin/p".into(), ..Program::default() },
        command: vec![],
        exit: Exit::Unknown,
        started_unix_ns: u64::from(id % 3),
        wall_ns: 0,
        cpu_ns: 0,
        problems: vec![],
        data: Data::Growth(growth),
    }
}

/// Runs with distinct ids whose content follows from the id.
fn profile() -> impl Strategy<Value = Profile> {
    prop::collection::btree_set(0u8..8, 0..5).prop_map(|ids| Profile {
        runs: ids
            .into_iter()
            .map(|id| {
                let mut growth = Growth::new(Metric::Rms, Cost::Blocks, 4);
                growth.cost_total = u64::from(id) + 1;
                run(id, growth)
            })
            .collect(),
    })
}

/// Object, address, name where there is no address, size.
type Key = (String, Option<u64>, String, u64);

/// What combining must give, computed without the code under test: sums by object, identity and size.
fn naive<'a>(all: impl IntoIterator<Item = &'a Growth>) -> BTreeMap<Key, (u64, u128)> {
    let mut sums = BTreeMap::new();
    for routine in all.into_iter().flat_map(|growth| &growth.routines) {
        for point in &routine.points {
            let name = if routine.address.is_some() { String::new() } else { routine.mangled.clone() };
            let key = (routine.object.clone(), routine.address, name, point.n);
            let entry: &mut (u64, u128) = sums.entry(key).or_default();
            entry.0 += point.calls;
            entry.1 += u128::from(point.input.external);
        }
    }
    sums.values_mut().for_each(|sum| sum.1 = sum.1.min(u64::MAX.into()));
    sums
}

proptest! {
    #[test]
    fn normalizing_is_idempotent_and_indifferent_to_order(
        routines in prop::collection::vec(routine(), 0..8), rotation in 0usize..8
    ) {
        let mut a = Growth::new(Metric::Rms, Cost::Blocks, 4);
        a.routines = routines.clone();
        a.normalize();
        prop_assert_eq!(a.validate(), Ok(()));
        let mut b = a.clone();
        b.normalize();
        prop_assert_eq!(&a, &b);
        b.routines = routines;
        let len = b.routines.len().max(1);
        b.routines.rotate_left(rotation % len);
        b.routines.iter_mut().for_each(|r| r.points.reverse());
        b.normalize();
        prop_assert_eq!(a, b);
    }

    #[test]
    fn combining_is_commutative_associative_and_complete(a in growth(), b in growth(), c in growth()) {
        let all = Growth::combined([&a, &b, &c]).unwrap();
        prop_assert_eq!(all.validate(), Ok(()));
        prop_assert_eq!(&Growth::combined([&c, &a, &b]).unwrap(), &all);
        let left = Growth::combined([&Growth::combined([&a, &b]).unwrap(), &c]).unwrap();
        let right = Growth::combined([&a, &Growth::combined([&b, &c]).unwrap()]).unwrap();
        prop_assert_eq!(&left, &all);
        prop_assert_eq!(&right, &all);
        prop_assert_eq!(naive([&all]), naive([&a, &b, &c]));
    }

    #[test]
    fn merging_is_a_union(a in profile(), b in profile(), c in profile()) {
        let all = merge(&[a.clone(), b.clone(), c.clone()]).unwrap();
        prop_assert_eq!(&merge(&[c.clone(), b.clone(), a.clone()]).unwrap(), &all);
        prop_assert_eq!(&merge(&[merge(&[a.clone(), b.clone()]).unwrap(), c.clone()]).unwrap(), &all);
        prop_assert_eq!(&merge(&[all.clone(), all.clone()]).unwrap(), &all);
        for run in a.runs.iter().chain(&b.runs).chain(&c.runs) {
            prop_assert_eq!(all.runs.iter().filter(|found| *found == run).count(), 1);
        }
        prop_assert!(all.runs.iter().all(|run| [&a, &b, &c].iter().any(|p| p.runs.contains(run))));
    }
}

#[test]
fn what_does_not_fit_together_is_named() {
    let base = Growth::new(Metric::Rms, Cost::Blocks, 4);
    let message = |other: Growth| Growth::combined([&base, &other]).unwrap_err().to_string();
    assert_eq!(
        message(Growth::new(Metric::Trms, Cost::Blocks, 4)),
        "cannot add runs that measure input as rms and as trms"
    );
    assert_eq!(
        message(Growth::new(Metric::Rms, Cost::TimeNs, 4)),
        "cannot add runs whose cost is in blocks and in time"
    );
    assert_eq!(
        message(Growth::new(Metric::Rms, Cost::Blocks, 8)),
        "cannot add runs with memory cells of 4 and of 8 bytes"
    );
    assert_eq!(Growth::combined([]), Err(MergeError::Nothing));

    let mut other = run(2, base.clone());
    other.program.path = "/bin/q".into();
    assert_eq!(
        combine(&[&run(1, base.clone()), &other]),
        Err(MergeError::Builds("/bin/p".into(), "/bin/q".into()))
    );
    let mut altered = run(1, base.clone());
    altered.wall_ns = 1;
    let profiles = [run(1, base), altered].map(|run| Profile { runs: vec![run] });
    assert!(matches!(merge(&profiles), Err(MergeError::Conflict { .. })));
}

#[test]
fn content_gives_ids_that_repeat_and_do_not_collide_by_shifting_bytes() {
    let id = |pieces: &[&[u8]]| RunId::of_content(pieces.iter().copied());
    assert_eq!(id(&[b"ab", b"c"]), id(&[b"ab", b"c"]));
    assert_ne!(id(&[b"ab", b"c"]), id(&[b"a", b"bc"]));
    assert_ne!(id(&[b"a", b"b"]), id(&[b"b", b"a"]));
    assert_eq!(RunId::from_random([0xab; 16]).to_string(), "ab".repeat(16));
}
