//! What the profile says that a faster site would give, against really making it faster.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Args;
use super::programs::Bench;

/// Source, flags, arguments, and the function that `-DSLOW=2` makes do its work twice. Sizes are such that
/// - the function holds most of the span: else the noise of all other code, and of memory that is touched first, is what is
///   compared;
/// - what it works on stays in the second-level cache: from memory, the second time takes less than the first.
///
/// Whether it really takes twice the time stands in the table.
const CASES: &[Case] = &[
    ("strassen", "bench/span/strassen.c", "-DBASE=128", &["256", "8"], "base"),
    ("fft", "bench/span/fft.c", "-DBASE=1024", &["16384"], "small"),
    ("nqueens", "bench/span/nqueens.c", "-DLEAF=11", &["14"], "leaf"),
    ("heat", "bench/span/heat.c", "", &["300", "34", "512"], "rows"),
    ("rounds", "bench/span/rounds.c", "", &["100"], "longest"),
    ("bushy", "bench/span/bushy.c", "", &[], "combine"),
];

type Case = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str);

pub fn run(bench: &Bench, args: &Args) -> Result<()> {
    println!(
        "\n{:<12}{:<10}{:<14}{:>8}{:>12}{:>12}{:>12}{:>10}{:>10}",
        "prediction", "site", "cost", "faster", "span now", "predicted", "measured", "error %", "par. %"
    );
    let mut worst = [0.0f64; 2];
    for (name, source, flag, arguments, function) in CASES.iter().filter(|c| args.wants(c.0)) {
        let (slow, fast) = (format!("{name}-slow"), format!("{name}-fast"));
        let flags = |times| [*flag, times].into_iter().filter(|f| !f.is_empty()).collect::<Vec<_>>();
        bench.compile(source, &slow, &flags("-DSLOW=2"))?;
        bench.compile(source, &fast, &flags("-DSLOW=1"))?;
        for (worst, cost) in worst.iter_mut().zip(["instructions", "time"]) {
            let repeat = if cost == "time" { args.repeat.to_string() } else { "1".to_owned() };
            let mode = ["span", "--burden", "1000", "--cost", cost, "--runs", &repeat];
            let (_, before) = bench.profile(&mode, &bench.cilk(&slow, true), arguments)?;
            let (_, after) = bench.profile(&mode, &bench.cilk(&fast, true), arguments)?;
            let p = Prediction::new(&before, &after, function).context("a document without a span")?;
            *worst = worst.max(p.error.abs());
            println!(
                "{name:<12}{function:<10}{cost:<14}{:>8.2}{:>12.0}{:>12.0}{:>12.0}{:>10.2}{:>10.2}",
                p.faster, p.now, p.predicted, p.measured, p.error, p.error_parallelism
            );
        }
    }
    println!("{:<80}{:>10.2} in instructions, {:.2} in time   (bar: 5)", "worst", worst[0], worst[1]);
    Ok(())
}

/// What was said of a function twice as fast, and what came of it.
struct Prediction {
    /// How many times as fast it really became, by its own work: 2, if the benchmark is right.
    faster: f64,
    now: f64,
    predicted: f64,
    measured: f64,
    /// Of the span and of the parallelism, in percent.
    error: f64,
    error_parallelism: f64,
}

impl Prediction {
    fn new(before: &Value, after: &Value, function: &str) -> Option<Prediction> {
        let called = |document: &'_ Value| -> Option<Vec<Value>> {
            let sites = document["sites"].as_array()?;
            Some(sites.iter().filter(|s| s["callee"] == function).cloned().collect())
        };
        let own = |sites: &[Value]| -> f64 {
            sites.iter().filter_map(|s| s["on_work"]["local"]["work"].as_f64()).sum()
        };
        let sites = called(before)?;
        let now = before["span"].as_f64()?;
        // A function may be called from several places: what they save together.
        let saved: f64 =
            sites.iter().filter_map(|s| s["what_if_span"]["2"].as_f64()).map(|span| now - span).sum();
        let faster = own(&sites) / own(&called(after)?);
        let (predicted, measured) = (now - saved, after["span"].as_f64()?);
        let parallelism = (before["work"].as_f64()? - own(&sites) / 2.0) / predicted;
        Some(Prediction {
            faster,
            now,
            predicted,
            measured,
            error: 100.0 * (predicted / measured - 1.0),
            error_parallelism: 100.0 * (parallelism / after["parallelism"].as_f64()? - 1.0),
        })
    }
}

/// Rayon programs on one and two processors, against the bounds: binary and arguments.
const SPEEDUPS: &[(&str, &[&str])] = &[
    ("pipeline", &["3000000"]),
    ("fib", &["36"]),
    ("dag", &["tree", "12"]),
    ("dag", &["skewed", "800"]),
    ("dag", &["chain", "800"]),
    ("dag", &["rounds", "200"]),
];

pub fn speedup(bench: &Bench, args: &Args) -> Result<()> {
    println!(
        "\n{:<20}{:>10}{:>10}{:>12}{:>10}{:>10}{:>10}",
        "two processors", "at least", "measured", "of 5 runs", "at most", "machine", "relative"
    );
    for (binary, arguments) in SPEEDUPS.iter().filter(|s| args.wants(s.0)) {
        let mode = ["span", "--whole", "--measure", "1,2"];
        let mut command = vec!["cargo", "run", "--release", "-q", "--bin", binary, "--"];
        command.extend(*arguments);
        let (_, document) = bench.document(&mode, &command, &bench.rayon_project())?;
        let of = |list: &str, key: &str| {
            let all = document[list].as_array()?;
            all.iter().find(|b| b["processors"] == 2)?[key].as_f64()
        };
        let [low, high] = ["lower", "upper"].map(|k| of("speedup", k).unwrap_or(f64::NAN));
        let measured = of("measured", "speedup").unwrap_or(f64::NAN);
        // What two threads that share nothing get done in the same minute: less than 2 where two processors are one core.
        let machine = (0..5).map(|_| throughput()).fold(0.0, f64::max);
        let relative = measured * 2.0 / machine;
        let name = format!("{binary} {}", arguments.join(" "));
        // Two timings of the same thing differ by a percent or two.
        let within = |speedup: f64| (low * 0.98..=high * 1.02).contains(&speedup);
        let note = match (within(measured), within(relative)) {
            (true, _) => "",
            (false, true) => "  OUTSIDE, relative to the machine within",
            (false, false) => "  OUTSIDE",
        };
        let [least, most] = ["speedup_least", "speedup_most"].map(|k| of("measured", k).unwrap_or(f64::NAN));
        let range = format!("{least:.2}–{most:.2}");
        println!(
            "{name:<20}{low:>10.2}{measured:>10.2}{range:>12}{high:>10.2}{machine:>10.2}{relative:>10.2}{note}"
        );
    }
    Ok(())
}

/// How much more two threads get done than one, in loops that share nothing.
fn throughput() -> f64 {
    const STEPS: u64 = 40_000_000;
    let spin = || {
        let mut x = 1u64;
        for step in 0..STEPS {
            x = std::hint::black_box(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step));
        }
        std::hint::black_box(x);
    };
    let time = |threads: usize| {
        let start = std::time::Instant::now();
        std::thread::scope(|s| (0..threads).for_each(|_| drop(s.spawn(spin))));
        start.elapsed().as_secs_f64()
    };
    let one = time(1);
    2.0 * one / time(2)
}
