//! Programs whose input sizes are known by hand, and the two algorithms against each other.
//!
//! How the samples were made: each bundled program was built in `/opt/demo` as the crate's documentation says
//! and run there without arguments; its reports were renamed to `PROGRAM-THREAD.aprof`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use oracle::{Algorithm, Program, bundled};

/// The tuple of a "p" line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    size: u64,
    min: u64,
    max: u64,
    sum: u64,
    squares: u64,
    calls: u64,
    real: u64,
    own: u64,
    own_min: u64,
    own_max: u64,
    own_squares: u64,
}

#[derive(Debug, Default)]
struct Report {
    total: u64,
    routines: BTreeMap<String, Vec<Point>>,
    objects: Vec<String>,
}

impl Report {
    fn points(&self, name: &str) -> &[Point] {
        self.routines.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.routines.keys()))
    }

    fn at(&self, name: &str, size: u64) -> Point {
        *self
            .points(name)
            .iter()
            .find(|p| p.size == size)
            .unwrap_or_else(|| panic!("no size {size} of {name}"))
    }
}

fn parse(text: &str) -> Report {
    let mut report = Report::default();
    let mut names: BTreeMap<u64, String> = BTreeMap::new();
    for line in text.lines() {
        let (kind, rest) = line.split_once(' ').unwrap();
        match kind {
            "v" => assert_eq!(rest, "6"),
            "k" => report.total = rest.parse().unwrap(),
            "m" => assert_eq!(rest, "bb-count"),
            "i" => assert_eq!(rest, "rms"),
            "t" => assert_eq!(rest, "4"),
            "r" => {
                let fields: Vec<&str> = rest.split('"').collect();
                assert_eq!(fields.len(), 5, "{line}");
                names.insert(fields[4].trim().parse().unwrap(), fields[1].to_owned());
                report.objects.push(fields[3].to_owned());
                assert!(report.routines.insert(fields[1].to_owned(), Vec::new()).is_none(), "{line}");
            }
            "p" => {
                let n: Vec<u64> = rest.split(' ').map(|f| f.parse().unwrap()).collect();
                let [rid, size, min, max, sum, squares, calls, real, own, own_min, own_max, own_squares] =
                    n[..]
                else {
                    panic!("{line}")
                };
                let point =
                    Point { size, min, max, sum, squares, calls, real, own, own_min, own_max, own_squares };
                report.routines.get_mut(&names[&rid]).unwrap().push(point);
            }
            "c" | "e" | "a" | "f" | "u" => {}
            _ => panic!("{line}"),
        }
    }
    for points in report.routines.values() {
        for p in points {
            assert!(p.calls > 0 && p.min <= p.max && p.own_min <= p.own_max && p.own <= p.sum, "{p:?}");
            assert!(p.min * p.calls <= p.sum && p.sum <= p.max * p.calls && p.real <= p.sum, "{p:?}");
            let mean_square = |sum: u64| u128::from(sum) * u128::from(sum) / u128::from(p.calls);
            // The format's 64 bits may be too few for sums of squares; then they are all ones.
            let holds =
                |squares: u64, sum: u64| squares == u64::MAX || u128::from(squares) >= mean_square(sum);
            assert!(holds(p.squares, p.sum) && holds(p.own_squares, p.own), "{p:?}");
        }
    }
    report
}

fn reports(source: &Path, algorithm: Algorithm, args: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::build(source, folder.path(), algorithm).unwrap();
    let native = folder.path().join("native");
    let compiler = if source.extension().unwrap() == "c" { "gcc" } else { "g++" };
    let plain =
        std::process::Command::new(compiler).arg(source).args(["-pthread", "-o"]).arg(&native).status();
    assert!(plain.unwrap().success());
    let expected = std::process::Command::new(&native).args(args).output().unwrap();
    let (output, paths) = program.run(args, folder.path()).unwrap();
    assert_eq!(output.stdout, expected.stdout, "the program does what it does without us");
    let report = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        // Where it was built differs from run to run.
        text.replace(folder.path().to_str().unwrap(), "")
    };
    paths.iter().map(report).collect()
}

fn demo() -> Report {
    parse(&reports(&bundled("demo-growth.c"), Algorithm::LatestAccess, &[])[0])
}

/// The sizes on which the demonstration runs its sorts.
fn sizes(limit: u64) -> Vec<u64> {
    std::iter::successors(Some(4), |n| Some(n * 5 / 4 + 1)).take_while(|n| *n <= limit).collect()
}

fn check_demo(report: &Report) {
    // A scan reads each of its n elements once and executes one block for each, one to start, one to end.
    for n in sizes(4096).into_iter().chain((10..=1000).step_by(90)) {
        let point = report.at("count_zero", n);
        assert_eq!((point.min, point.max), (n + 2, n + 2));
    }
    // Merge sort of n reads n, splits it into halves down to single elements, which it does not look at.
    let mut calls = 0;
    for n in sizes(4096) {
        assert_eq!(report.at("merge", n).calls, report.at("merge_sort", n).calls, "{n}");
        for part in [n / 2, n - n / 2, n / 4] {
            assert!(part < 2 || report.at("merge_sort", part).calls > 0, "{n}: {part}");
        }
        calls += 2 * n - 1;
    }
    let points = report.points("merge_sort");
    assert_eq!(points.iter().map(|p| p.calls).sum::<u64>(), calls);
    // A recursion counts once: its outermost activations are those that run_sorts called.
    let real: u64 = points.iter().map(|p| p.real).sum();
    let cumulative: u64 = points.iter().map(|p| p.sum).sum();
    assert!(real * 2 < cumulative);
    let root = report.points("main");
    assert_eq!((root.len(), root[0].calls, root[0].real), (1, 1, root[0].sum));
    // Sorting in place reads everything, whatever the order of writes.
    for n in sizes(4096) {
        assert!(report.at("comb_sort", n).calls >= 1);
        assert!(n > 1500 || report.at("insertion_sort", n).calls == 1);
    }
    // Two matrices of n^2 doubles, two cells each.
    for n in (2..=48).step_by(2) {
        let point = report.at("multiply", 4 * n * n);
        assert!(point.sum > n * n * n && point.sum < n * n * n + 5 * n * n + 10, "{point:?}");
    }
    // A search looks at no more than log n + 1 elements.
    assert!(report.points("binary_search").iter().all(|p| p.size <= 13 && p.max <= 5 * p.size + 5));
    // The chain in the one bucket gets longer with each key: a key, a link and a head to read per node.
    let inserts = report.points("table_insert");
    assert_eq!(inserts.iter().map(|p| p.calls).sum::<u64>(), sizes(256).iter().sum::<u64>());
    assert!(inserts.windows(2).all(|pair| pair[0].max < pair[1].min), "cost grows with the chain");
    // Every block belongs to one activation, but for the few outside of all.
    let own: u64 = report.routines.values().flatten().map(|p| p.own).sum();
    assert!(own <= report.total && report.total - own < 10, "{own} of {}", report.total);
}

#[test]
fn demonstration() {
    let report = demo();
    check_demo(&report);
    assert!(report.objects.iter().all(|o| o == "/demo-growth"), "{:?}", report.objects);
    let expected = [
        "binary_search",
        "comb_sort",
        "count_zero",
        "fill",
        "insertion_sort",
        "main",
        "merge",
        "merge_sort",
        "multiply",
        "run_sorts",
        "table_build",
        "table_insert",
    ];
    assert_eq!(report.routines.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
}

#[test]
fn quadratic_words() {
    let report = parse(&reports(&bundled("wf.c"), Algorithm::LatestAccess, &["400"])[0]);
    let largest = report.points("str_tolower").last().unwrap();
    let half = report.points("str_tolower").iter().rev().find(|p| p.size * 2 <= largest.size + 4).unwrap();
    let growth = largest.max as f64 / half.max as f64;
    let sizes = largest.size as f64 / half.size as f64;
    assert!((growth.ln() / sizes.ln() - 2.0).abs() < 0.1, "{half:?} {largest:?}");
    let largest = report.points("strlen").last().unwrap();
    assert!(largest.max <= 4 * largest.size + 4, "linear: {largest:?}");
}

/// The definition, executed as it stands, gives the same report.
#[test]
fn algorithms_agree() {
    for (program, args) in [("demo-growth.c", &[][..]), ("wf.c", &["120"][..]), ("parallel-sum.c", &[][..])] {
        let lines = |algorithm| -> Vec<Vec<String>> {
            let texts = reports(&bundled(program), algorithm, args);
            let measured =
                |t: &String| t.lines().filter(|l| !l.starts_with("e ")).map(str::to_owned).collect();
            let mut reports: Vec<Vec<String>> = texts.iter().map(measured).collect();
            // Threads are numbered as they come.
            reports.sort();
            reports
        };
        assert_eq!(lines(Algorithm::LatestAccess), lines(Algorithm::Naive), "{program}");
    }
}

#[test]
fn one_report_per_thread() {
    let reports = reports(&bundled("parallel-sum.c"), Algorithm::LatestAccess, &[]);
    let parsed: Vec<Report> = reports.iter().map(|r| parse(r)).collect();
    assert_eq!(parsed.iter().filter(|r| r.routines.contains_key("main")).count(), 1);
    let workers: Vec<&Report> = parsed.iter().filter(|r| r.routines.contains_key("work")).collect();
    assert_eq!(workers.len(), 4);
    let forwards = workers.iter().filter(|r| r.routines.contains_key("sum_forwards"));
    for report in forwards.clone() {
        assert!(report.points("sum_forwards").iter().all(|p| p.min == p.size + 2), "{report:?}");
        assert!(!report.routines.contains_key("sum_halves"));
    }
    assert_eq!(forwards.count(), 2);
}

fn written(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Activations that longjmp leaves are over; those that exit() leaves are counted; recursion may be deep.
#[test]
fn unusual_ends() {
    let folder = tempfile::tempdir().unwrap();
    let source = written(
        folder.path(),
        "ends.c",
        r#"
        #include <setjmp.h>
        #include <stdio.h>
        #include <stdlib.h>
        static jmp_buf out;
        volatile int cells[64];
        __attribute__((noinline)) int dive(int depth) {
            if (depth == 0) longjmp(out, 1);
            return dive(depth - 1) + cells[depth % 64];
        }
        __attribute__((noinline)) int after(int n) {
            int sum = 0;
            for (int i = 0; i < n; i++) sum += cells[i];
            return sum;
        }
        __attribute__((noinline)) int deep(int n) { return n ? deep(n - 1) + cells[0] : 0; }
        __attribute__((noinline)) void leave(void) { printf("done\n"); exit(cells[1]); }
        int main(void) {
            for (volatile int i = 1; i < 20; i++) {
                if (!setjmp(out)) dive(i);
                after(i);
            }
            deep(100000);
            leave();
        }
        "#,
    );
    let report = parse(&reports(&source, Algorithm::LatestAccess, &[])[0]);
    let calls = |name: &str| report.points(name).iter().map(|p| p.calls).sum::<u64>();
    assert_eq!(calls("dive"), (1..20).map(|depth| depth + 1).sum::<u64>());
    assert_eq!(calls("deep"), 100_001);
    assert_eq!((calls("leave"), calls("main")), (1, 1));
    for n in 1..20 {
        assert_eq!(report.at("after", n).calls, 1, "not nested in what longjmp left");
        assert_eq!(report.at("after", n).max, n + 2);
    }
    // What main calls after the jumps is not charged to them.
    assert!(report.points("dive").iter().all(|p| p.max < 200));
}

#[test]
fn readable_names() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        #include <cstdio>
        namespace shop { template <class T> __attribute__((noinline)) T total(const T *v, int n) {
            T sum = 0;
            for (int i = 0; i < n; i++) sum += v[i];
            if (n > 30) throw n;
            return sum;
        } }
        int main() {
            static double prices[40];
            double sum = 0;
            for (int n = 1; n < 40; n++) { try { sum += shop::total(prices, n); } catch (int m) { sum += m; } }
            std::printf("%f\n", sum);
        }
    "#;
    let source = written(folder.path(), "names.cpp", text);
    let text = &reports(&source, Algorithm::LatestAccess, &[])[0];
    assert!(
        text.lines().any(|l| l.starts_with("u ") && l.ends_with("\"_ZN4shop5totalIdEET_PKS1_i\"")),
        "{text}"
    );
    let report = parse(text);
    let points = report.points("double shop::total<double>(double const*, int)");
    assert_eq!(
        points.iter().map(|p| (p.size, p.calls)).collect::<Vec<_>>(),
        (1..40).map(|n| (2 * n, 1)).collect::<Vec<_>>()
    );
}

/// What other crates test with is what this runtime writes.
#[test]
fn samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    let mut bytes = 0;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        bytes += text.len();
        let report = parse(&text);
        assert!(report.objects.iter().all(|o| o.starts_with("/opt/demo/")), "{path:?}");
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if name == "demo-growth-1" {
            check_demo(&report);
        }
        names.push(name);
    }
    names.sort();
    let threads = (1..=5).map(|t| format!("parallel-sum-{t}"));
    let expected: Vec<String> =
        ["demo-growth-1".to_owned()].into_iter().chain(threads).chain(["wf-1".to_owned()]).collect();
    assert_eq!(names, expected);
    assert!(bytes < 300_000, "{bytes}");
}
