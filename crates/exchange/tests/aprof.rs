//! aprof reports, handwritten after its grammar, one per oddity; and round trips.

use exchange::aprof::{ExportError, ImportError, Source, export, import};
use profile::{
    Composition, Cost, Data, Exit, Growth, Metric, Point, Profile, Program, Routine, Run, RunId, ThreadCost,
    ThreadPoints,
};
use proptest::prelude::*;

macro_rules! report {
    ($name:literal) => {
        Source { name: $name, bytes: include_bytes!(concat!("../testdata/", $name)) }
    };
}

fn single(sources: &[Source<'_>]) -> Run {
    let mut runs = import(sources).unwrap().runs;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn growth(run: &Run) -> &Growth {
    match &run.data {
        Data::Growth(growth) => growth,
        other => panic!("{other:?}"),
    }
}

/// A profile as text that can be compared by eye with the report.
fn render(run: &Run) -> String {
    let growth = growth(run);
    let mut out = format!(
        "{} modified {} command {:?}\n{} {} cells of {} cost {} threads {:?}\n",
        run.program.path,
        run.program.modified_unix_s,
        run.command,
        growth.metric.name(),
        growth.cost.name(),
        growth.cell_bytes,
        growth.cost_total,
        growth.threads.iter().map(|t| (t.id, t.cost_total)).collect::<Vec<_>>()
    );
    let points = |out: &mut String, indent: &str, points: &[Point]| {
        for p in points {
            let i = p.input;
            out.push_str(&format!(
                "{indent}{}: {} calls {}..{} sum {} sq {} real {} self {} {}..{} sq {}",
                p.n,
                p.calls,
                p.min,
                p.max,
                p.sum,
                p.sumsq,
                p.real_sum,
                p.self_sum,
                p.self_min,
                p.self_max,
                p.self_sumsq
            ));
            if i != Composition::default() {
                out.push_str(&format!(
                    " ext {} ind {} self {} {}",
                    i.external, i.thread_induced, i.self_external, i.self_thread_induced
                ));
            }
            out.push('\n');
        }
    };
    for r in &growth.routines {
        out.push_str(&format!("{} | {} | {} {:?}\n", r.name, r.mangled, r.object, r.threads));
        points(&mut out, "  ", &r.points);
        for t in &r.by_thread {
            out.push_str(&format!("    thread {}\n", t.thread));
            points(&mut out, "      ", &t.points);
        }
    }
    out
}

#[test]
fn threads_of_one_process_are_one_run() {
    let files = [report!("my_prog_100_1_4.aprof"), report!("my_prog_100_0_4.aprof")];
    let run = single(&files);
    assert_eq!(
        render(&run),
        r#"/home/me/my prog/my_prog modified 1371900000 command ["/home/me/my prog/my_prog", "-n", "", "300"]
rms blocks cells of 4 cost 5700 threads [(0, 5000), (1, 700)]
no_object | no_object |  [0]
helper | helper | /home/me/my prog/my_prog [0]
  4: 1 calls 10..10 sum 10 sq 100 real 10 self 10 10..10 sq 100
    thread 0
      4: 1 calls 10..10 sum 10 sq 100 real 10 self 10 10..10 sq 100
main | main | /home/me/my prog/my_prog [0]
  12: 1 calls 4990..4990 sum 4990 sq 24900100 real 4990 self 40 40..40 sq 1600
    thread 0
      12: 1 calls 4990..4990 sum 4990 sq 24900100 real 4990 self 40 40..40 sq 1600
operator"" _kg(unsigned long long) | _Zli3_kgy | /home/me/my prog/my_prog [0]
  3: 1 calls 7..7 sum 7 sq 49 real 7 self 7 7..7 sq 49
  9: 2 calls 20..30 sum 50 sq 1300 real 50 self 50 20..30 sq 1300
    thread 0
      3: 1 calls 7..7 sum 7 sq 49 real 7 self 7 7..7 sq 49
      9: 2 calls 20..30 sum 50 sq 1300 real 50 self 50 20..30 sq 1300
worker | worker | /home/me/my prog/my_prog [1]
  30: 1 calls 600..600 sum 600 sq 360000 real 600 self 60 60..60 sq 3600
    thread 1
      30: 1 calls 600..600 sum 600 sq 360000 real 600 self 60 60..60 sq 3600
helper | helper | /usr/lib/libhelp.so [0, 1]
  4: 3 calls 9..12 sum 32 sq 346 real 32 self 32 9..12 sq 346
  8: 1 calls 13..13 sum 13 sq 169 real 13 self 13 13..13 sq 169
    thread 0
      4: 1 calls 11..11 sum 11 sq 121 real 11 self 11 11..11 sq 121
    thread 1
      4: 2 calls 9..12 sum 21 sq 225 real 21 self 21 9..12 sq 225
      8: 1 calls 13..13 sum 13 sq 169 real 13 self 13 13..13 sq 169
"#
    );
    assert!(run.problems.is_empty(), "{:?}", run.problems);
    assert_eq!(growth(&run).validate(), Ok(()));
    // Importing again, in another order, gives the same run.
    assert_eq!(single(&[files[1], files[0]]), run);
}

#[test]
fn drms_has_a_composition_and_bb_count_is_bb_count() {
    let run = single(&[report!("drms_7_0_8.aprof")]);
    assert_eq!(
        render(&run),
        r#"/bin/drms modified 0 command ["/bin/drms"]
trms blocks cells of 8 cost 90 threads [(0, 90)]
read_all | read_all | /bin/drms [0]
  8: 1 calls 10..10 sum 10 sq 100 real 10 self 8 8..8 sq 64
  64: 2 calls 30..50 sum 80 sq 3400 real 80 self 16 8..8 sq 128 ext 100 ind 20 self 60 10
"#
    );
    assert!(run.problems.is_empty(), "{:?}", run.problems);
}

#[test]
fn calling_contexts_are_added_up() {
    let run = single(&[report!("cct_9_0_4.aprof")]);
    assert_eq!(
        render(&run),
        r#"/bin/cct modified 5 command ["/bin/cct", "x"]
rms instructions cells of 4 cost 100 threads [(0, 100)]
leaf | leaf | /bin/cct [0]
  2: 1 calls 1..1 sum 1 sq 1 real 1 self 1 1..1 sq 1
  10: 3 calls 5..9 sum 21 sq 155 real 21 self 21 5..9 sq 155
main | main | /bin/cct [0]
  20: 1 calls 90..90 sum 90 sq 8100 real 90 self 68 68..68 sq 4624
  21: 1 calls 4..4 sum 4 sq 16 real 4 self 4 4..4 sq 16
"#
    );
    assert_eq!(
        run.problems,
        [
            "cct_9_0_4.aprof:18: the calling context is not described; its points went to the routine above",
            "cct_9_0_4.aprof: calling contexts added up by routine: 4",
        ]
    );
}

#[test]
fn wrapped_squares_are_restored_where_that_can_be_done() {
    let run = single(&[report!("wrapped_5_0_4.aprof")]);
    let sumsq = |name: &str| growth(&run).routines.iter().find(|r| r.name == name).unwrap().points[0].sumsq;
    assert_eq!(sumsq("once"), 1 << 66);
    assert_eq!(sumsq("merged"), 4 << 64, "more than 64 bits, from a merge tool");
    assert!(sumsq("often") > 1 << 80, "at least the square of the dearest activation");
    assert_eq!(
        run.problems,
        [
            "wrapped_5_0_4.aprof: sums of squares that may have overflowed in aprof: 1; variances there are lower bounds"
        ]
    );
}

#[test]
fn damaged_lines_are_listed_and_the_others_count() {
    let run = single(&[report!("damaged.aprof")]);
    let points: Vec<_> = growth(&run)
        .routines
        .iter()
        .map(|r| (r.name.as_str(), r.points.iter().map(|p| p.n).collect::<Vec<_>>()))
        .collect();
    assert_eq!(points, [("[routine 9]", vec![8]), ("main", vec![9, 10]), ("other", vec![11, 12])]);
    assert_eq!(
        run.problems,
        [
            "damaged.aprof:2: the value of this line is not known",
            "damaged.aprof:6: the point is incomplete and was left out",
            "damaged.aprof:7: the point cannot be read and was left out",
            "damaged.aprof:8: the point stands for no activation and was left out",
            "damaged.aprof:10: the routine cannot be read; its points, if any, have no name",
            "damaged.aprof:11: what this line says is not known",
            "damaged.aprof:12: the costs of the point contradict each other",
            "damaged.aprof:13: the point has columns of no meaning, which were left out",
            "damaged.aprof:14: the routine id has another meaning above; both routines were kept",
            "damaged.aprof:16: the calling context cannot be read",
            "damaged.aprof:17: the linker name cannot be read",
            "damaged.aprof: its last line does not end: the file may be cut",
            "damaged.aprof: routines with points but without a name: 1",
            "damaged.aprof: it does not say what costs are; taken for basic blocks",
            "damaged.aprof: it does not say its total cost",
        ]
    );
    assert_eq!(growth(&run).cost_total, 0);
    assert!(growth(&run).threads.is_empty());
}

#[test]
fn other_versions_and_other_files_are_refused() {
    let old = import(&[report!("cct_9_0_4.aprof"), report!("old_3_0_4.aprof")]).unwrap_err();
    assert_eq!(
        old.to_string(),
        "old_3_0_4.aprof: aprof report of version 4; only version 6 (aprof 0.2) can be imported"
    );
    for bytes in [&b""[..], b"hello\nworld\n", b"\x89Farsight\r\n\x1a\x01\0\0\0"] {
        let error = import(&[Source { name: "x.aprof", bytes }]).unwrap_err();
        assert_eq!(error, ImportError::Foreign { file: "x.aprof".into() });
    }
    assert_eq!(import(&[]), Err(ImportError::Nothing));
}

#[test]
fn concatenated_reports_are_added() {
    let one = include_bytes!("../testdata/my_prog_100_0_4.aprof");
    let two = include_bytes!("../testdata/my_prog_100_1_4.aprof");
    let both = [&one[..], two].concat();
    let run = single(&[Source { name: "both.aprof", bytes: &both }]);
    assert_eq!(growth(&run).cost_total, 5700);
    let helper = growth(&run).routines.iter().find(|r| r.object.contains("libhelp")).unwrap();
    assert_eq!(helper.points.iter().map(|p| (p.n, p.calls)).collect::<Vec<_>>(), [(4, 3), (8, 1)]);
    assert_eq!(run.problems, ["both.aprof:27: another report starts here; both were added"]);
}

#[test]
fn runs_are_told_apart() {
    let thread = include_bytes!("../testdata/my_prog_100_1_4.aprof");
    let slower = String::from_utf8(thread.to_vec()).unwrap().replace("k 700", "k 701");
    let other_arguments = String::from_utf8(thread.to_vec()).unwrap().replace("300", "400");
    let file = |name, bytes| Source { name, bytes };
    let runs = |sources: &[Source<'_>]| import(sources).unwrap().runs;
    let first = file("my_prog_100_1_4.aprof", thread);
    assert_eq!(runs(&[first, file("my_prog_101_1_4.aprof", slower.as_bytes())]).len(), 2, "another process");
    assert_eq!(runs(&[first, file("d/my_prog_100_1_4.aprof", slower.as_bytes())]).len(), 2, "another folder");
    assert_eq!(
        runs(&[first, file("my_prog_100_1_4.aprof", slower.as_bytes())]).len(),
        2,
        "the same thread again"
    );
    assert_eq!(
        runs(&[first, file("my_prog_100_1026_4.aprof", other_arguments.as_bytes())]).len(),
        2,
        "a process id that was used again"
    );
    let twice = runs(&[first, first]);
    assert_eq!(twice.len(), 1);
    assert_eq!(twice[0].problems, ["my_prog_100_1_4.aprof: it was given twice, and was counted once"]);
}

#[test]
fn times_are_scaled_and_aprofs_own_are_doubted() {
    let text = "v 6\nk 9\nm time-usec\ni rms\nt 4\nr \"f\" \"/x\" 1\np 1 2 3 3 3 9 1 3 3 3 3 9\n";
    let run = single(&[Source { name: "x", bytes: text.as_bytes() }]);
    let point = growth(&run).routines[0].points[0];
    assert_eq!((growth(&run).cost_total, point.min, point.sumsq), (9000, 3000, 9_000_000));
    assert!(run.problems.is_empty(), "{:?}", run.problems);
    let text = format!("c report generated by aprof (valgrind)\n{text}");
    let run = single(&[Source { name: "x", bytes: text.as_bytes() }]);
    assert!(run.problems[0].contains("ticks"), "{:?}", run.problems);
}

#[test]
fn arbitrary_bytes_do_not_panic() {
    let good = include_bytes!("../testdata/my_prog_100_0_4.aprof");
    let mut state = 1u64;
    let mut random = move |limit: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let mut imported = 0;
    for _ in 0..3000 {
        let mut bytes = good.to_vec();
        for _ in 0..1 + random(8) {
            let at = random(bytes.len());
            match random(4) {
                0 => bytes[at] = b"\" \n0918446744073709551615\xff-x"[random(28)],
                1 => drop(bytes.drain(at..(at + random(40)).min(bytes.len() - 1).max(at))),
                2 => bytes.insert(at, b"\n\"9 "[random(4)]),
                _ => bytes.truncate(at.max(40)),
            }
        }
        let result = import(&[Source { name: "my_prog_100_0_4.aprof", bytes: &bytes }]);
        for run in result.iter().flat_map(|profile| &profile.runs) {
            assert_eq!(growth(run).validate(), Ok(()));
            imported += 1;
        }
    }
    assert!(imported > 1000);
}

#[test]
fn what_aprof_cannot_hold_is_refused() {
    let mut run = single(&[report!("drms_7_0_8.aprof")]);
    let Data::Growth(growth) = &mut run.data else { panic!() };
    growth.cell_bytes = 64;
    assert_eq!(export(&run), Err(ExportError::Cell(64)));
    let Data::Growth(growth) = &mut run.data else { panic!() };
    growth.cell_bytes = 4;
    growth.cost = Cost::MemoryAccesses;
    assert_eq!(export(&run), Err(ExportError::Cost("memory accesses")));
}

/// Exports and imports again; the id is that of the new reports.
fn round_trip(run: &Run) -> Run {
    let reports = export(run).unwrap();
    let sources: Vec<_> = reports.iter().map(|r| Source { name: &r.name, bytes: &r.bytes }).collect();
    Run { id: run.id, ..single(&sources) }
}

#[test]
fn reports_survive_import_and_export() {
    let sets: [&[Source<'_>]; 4] = [
        &[report!("my_prog_100_0_4.aprof"), report!("my_prog_100_1_4.aprof")],
        &[report!("my_prog_100_0_4.aprof")],
        &[report!("drms_7_0_8.aprof")],
        &[report!("wrapped_5_0_4.aprof")],
    ];
    for set in sets {
        let mut run = single(set);
        assert_eq!(export(&run).unwrap().len(), set.len(), "one report per thread");
        run.problems.clear();
        assert_eq!(round_trip(&run), run);
    }
    let reports = export(&single(sets[2])).unwrap();
    assert!(
        reports[0].name.starts_with("drms_") && reports[0].name.ends_with("_0_8.aprof"),
        "{}",
        reports[0].name
    );
    assert_eq!(
        String::from_utf8_lossy(&reports[0].bytes),
        "c report written by farsight
v 6
m bb-count
i drms
t 8
a /bin/drms
f /bin/drms
k 90
r \"read_all\" \"/bin/drms\" 0
p 0 8 10 10 10 100 1 10 8 8 8 64 0 0 0 0 0 0
p 0 64 30 50 80 3400 2 80 16 8 8 128 0 0 100 20 60 10
"
    );
}

fn costs() -> impl Strategy<Value = (u64, u64, Vec<(u64, u64)>)> {
    let call = (1u64..1 << 45).prop_flat_map(|cost| (Just(cost), 0..=cost));
    (0u64..1 << 40, 0u64..1000, prop::collection::vec(call, 1..4))
}

fn points(metric: Metric) -> impl Strategy<Value = Vec<Point>> {
    prop::collection::btree_map(0u64..1 << 36, costs(), 0..5).prop_map(move |sizes| {
        sizes
            .into_iter()
            .map(|(n, (external, induced, calls))| {
                let mut sum: Option<Point> = None;
                for (cost, own) in calls {
                    let mut one = Point::single(n, cost, own);
                    if metric == Metric::Trms {
                        one.input = Composition {
                            thread_induced: induced,
                            external,
                            self_thread_induced: induced / 2,
                            self_external: external / 3,
                        };
                    }
                    match &mut sum {
                        None => sum = Some(one),
                        Some(sum) => sum.absorb(&one),
                    }
                }
                sum.unwrap()
            })
            .collect()
    })
}

fn any_run() -> impl Strategy<Value = Run> {
    let metric = prop_oneof![Just(Metric::Rms), Just(Metric::Trms)];
    let routine = |metric| {
        (
            "[ -~é]{0,12}",
            prop::option::of("_Z[a-z0-9]{1,6}"),
            prop_oneof![Just(String::new()), "/[a-z\" ]{0,8}"],
            points(metric),
            points(metric),
        )
    };
    let routines = metric.prop_flat_map(move |m| (Just(m), prop::collection::vec(routine(m), 1..5)));
    let cost = prop_oneof![Just(Cost::Blocks), Just(Cost::Instructions)];
    (routines, cost, 0usize..5, any::<bool>(), 0u64..9, prop::collection::vec("[!-~]{0,6}", 0..4)).prop_map(
        |((metric, routines), cost, cell, apart, total, command)| {
            let mut growth = Growth::new(metric, cost, [1, 2, 4, 8, 16][cell]);
            let ids: &[u64] = if apart { &[0, 7] } else { &[3] };
            growth.threads = ids.iter().map(|&id| ThreadCost { id, cost_total: total * (id + 1) }).collect();
            growth.cost_total = growth.threads.iter().map(|t| t.cost_total).sum();
            for (name, mangled, object, first, second) in routines {
                let mut routine = Routine {
                    mangled: mangled.unwrap_or_else(|| name.clone()),
                    name,
                    object: object.replace("\" \"", ""),
                    threads: ids.to_vec(),
                    points: first.clone(),
                    ..Routine::default()
                };
                if apart {
                    routine.points.extend(&second);
                    let lists = [(0, first), (7, second)];
                    routine.by_thread =
                        lists.into_iter().map(|(thread, points)| ThreadPoints { thread, points }).collect();
                }
                growth.routines.push(routine);
            }
            growth.normalize();
            let mut words = vec!["/bin/any".to_owned()];
            words.extend(command);
            Run {
                id: RunId([9; 16]),
                program: Program { path: "/bin/any".into(), build_id: vec![], modified_unix_s: total },
                command: words,
                exit: Exit::Unknown,
                started_unix_ns: 0,
                wall_ns: 0,
                cpu_ns: 0,
                problems: vec![],
                data: Data::Growth(growth),
            }
        },
    )
}

proptest! {
    #[test]
    fn runs_survive_export_and_import(run in any_run()) {
        let mut again = round_trip(&run);
        // A total of 0 is one that is not known, which importing remarks.
        again.problems.retain(|p| !p.ends_with("it does not say its total cost"));
        // A run of two threads none of whose routines has points keeps nothing apart.
        prop_assume!(growth(&run).threads.len() == 1 || growth(&run).routines.iter().any(|r| !r.by_thread.is_empty()));
        prop_assert_eq!(&again, &run);
        let profile = Profile { runs: vec![again] };
        prop_assert_eq!(profile::decode(&profile::encode(&profile).unwrap()).unwrap().profile, profile);
    }
}
