//! `cargo xtask bench causal`: are predictions right?
//!
//! Programs of `test-programs/causal` whose costs are arguments. For each target: `farsight causal` predicts what
//! making it 25, 50 and 75 % faster would gain; then that work is really cut by as much, and the time per unit of
//! progress is measured, full and cut runs by turns, each cut run against the full ones before and after it. The
//! programs also tell how fast the machine was while they ran (ticks of a step of work), and times are divided by that:
//! neighbours and hypervisors change it by tens of percent from run to run. Printed: prediction with its interval, truth
//! with its standard error, error; and at the end the median error, how many are off by more than 8 points, how many
//! intervals hold the truth, and how many targets without effect were called so.
//!
//! Wants a quiet machine. Where there is none, `--realtime` runs everything before all other programs (needs
//! privilege; the kernel still gives others a twentieth of each second, which shows as stalls).

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;

#[derive(clap::Args)]
pub struct Args {
    /// Only cases whose name contains one of these.
    #[arg(long)]
    only: Vec<String>,
    /// Seconds that each program runs under farsight.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Runs of each real cut.
    #[arg(long, default_value_t = 12)]
    runs: usize,
    /// Run the programs with real-time priority (`chrt`).
    #[arg(long)]
    realtime: bool,
    /// The executable to judge.
    #[arg(long, default_value = "target/release/farsight")]
    farsight: PathBuf,
}

/// One target of one program.
struct Case {
    name: &'static str,
    source: &'static str,
    /// Arguments: `U` units of work, `X` the cost that is cut.
    arguments: &'static [&'static str],
    /// The cost at full.
    cost: u64,
    /// Mark of the line.
    target: &'static str,
}

const fn case(
    name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
    cost: u64,
    target: &'static str,
) -> Case {
    Case { name, source, arguments, cost, target }
}

const CASES: &[Case] = &[
    case("serial", "serial.c", &["U", "X", "120000"], 280_000, "first"),
    case("figure 1, a", "figure_one.c", &["U", "X", "3600000"], 6_000_000, "a"),
    case("figure 1, b", "figure_one.c", &["U", "6000000", "X"], 3_600_000, "b"),
    case("figure 1 long, a", "figure_one_long.c", &["U", "X", "240000"], 400_000, "a"),
    case("figure 1 long, b", "figure_one_long.c", &["U", "400000", "X"], 240_000, "b"),
    case("pipeline, consumer", "pipeline.c", &["U", "240000", "X"], 400_000, "consumer"),
    case("pipeline, producer", "pipeline.c", &["U", "X", "400000"], 240_000, "producer"),
    case("mutex", "lock.c", &["U", "X", "20000", "mutex"], 200_000, "inside"),
    case("spin lock", "lock.c", &["U", "X", "20000", "spin"], 200_000, "inside"),
    case("rwlock", "lock.c", &["U", "X", "20000", "rwlock"], 200_000, "inside"),
    case("semaphore", "lock.c", &["U", "X", "20000", "semaphore"], 200_000, "inside"),
    case("ping-pong, C++", "ping_pong.cpp", &["U", "X", "300000"], 300_000, "first"),
    case("ping-pong, C++20 atomic", "ping_pong.cpp", &["U", "X", "300000", "atomic"], 300_000, "first"),
    case("Rust mutex", "locks.rs", &["U", "X", "20000", "mutex"], 200_000, "first"),
    case("Rust channel", "locks.rs", &["U", "X", "240000", "channel"], 400_000, "consumer"),
    case("Rust condvar", "locks.rs", &["U", "X", "300000", "condvar"], 300_000, "turn"),
    case("barrier", "barrier.c", &["U", "X", "4000000", "2"], 6_000_000, "slow"),
    case("barrier, 4 threads", "barrier.c", &["U", "X", "4000000", "4"], 6_000_000, "slow"),
    case("I/O-bound", "io_bound.c", &["U", "X", "1000"], 1_600_000, "computing"),
    case("memory-bound", "memory_bound.c", &["U", "X", "200000"], 60_000, "memory"),
    case("phases", "phases.c", &["U", "X", "1000000"], 1_000_000, "first"),
];

/// What one level gave.
struct Row {
    predicted: f64,
    ci: (f64, f64),
    truth: f64,
}

pub fn run(args: Args) -> Result<()> {
    ensure!(args.farsight.exists(), "{} is not built", args.farsight.display());
    let out = PathBuf::from("target/bench-causal");
    std::fs::create_dir_all(&out)?;
    println!("{:<26} {:>7}  {:>22}  {:>9}  {:>6}", "case", "faster", "predicted", "measured", "error");
    let mut rows = Vec::new();
    let (mut nulls, mut nulls_called) = (0, 0);
    for case in CASES {
        if !args.only.is_empty() && !args.only.iter().any(|part| case.name.contains(part.as_str())) {
            continue;
        }
        let program = compile(&out, case.source)?;
        let base = time_per_unit(&args, case, &program, 200, case.cost)?.per_unit_ns;
        let units = ((args.seconds * 1e9 / base) as u64).max(400);
        let result = predict(&args, case, &program, units, &out)?;
        let truth = truth(&args, case, &program, base)?;
        let mut effect = 0.0f64;
        for (level, (truth, error)) in [0.25, 0.5, 0.75].into_iter().zip(truth) {
            let found = result.as_ref().and_then(|r| level_of(r, level));
            let Some((predicted, ci)) = found else {
                println!(
                    "{:<26} {:>6.0}%  {:>22}  {:>8.1}%",
                    case.name,
                    100.0 * level,
                    "none",
                    100.0 * truth
                );
                continue;
            };
            println!(
                "{:<26} {:>6.0}%  {:>7.1} [{:>5.1}, {:>5.1}]  {:>6.1} ±{:>3.1}  {:>6.1}",
                case.name,
                100.0 * level,
                100.0 * predicted,
                100.0 * ci.0,
                100.0 * ci.1,
                100.0 * truth,
                100.0 * error,
                100.0 * (predicted - truth)
            );
            effect = effect.max(truth.abs());
            rows.push(Row { predicted, ci, truth });
        }
        if effect < 0.04 {
            nulls += 1;
            nulls_called += u32::from(result.is_some_and(|r| r["verdict"] == "no effect"));
        }
    }
    summary(&mut rows, nulls, nulls_called);
    Ok(())
}

fn summary(rows: &mut [Row], nulls: u32, nulls_called: u32) {
    if rows.is_empty() {
        return;
    }
    let mut errors: Vec<f64> = rows.iter().map(|r| 100.0 * (r.predicted - r.truth).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let far = errors.iter().filter(|e| **e > 8.0).count();
    let covered = rows.iter().filter(|r| r.ci.0 <= r.truth && r.truth <= r.ci.1).count();
    println!("\nmedian error {:.1} points over {} predictions", errors[errors.len() / 2], errors.len());
    println!("off by more than 8 points: {far} ({:.0} %)", 100.0 * far as f64 / errors.len() as f64);
    println!(
        "intervals that hold the truth: {covered} ({:.0} %)",
        100.0 * covered as f64 / rows.len() as f64
    );
    println!("targets without effect called so: {nulls_called} of {nulls}");
}

fn compile(out: &Path, source: &str) -> Result<PathBuf> {
    let folder = Path::new("test-programs/causal");
    let (stem, kind) = source.rsplit_once('.').context("a source has an ending")?;
    let program = out.join(stem);
    let (from, to) = (folder.join(source).display().to_string(), program.display().to_string());
    let words: Vec<&str> = match kind {
        "rs" => vec!["rustc", "-O", "-g", "--edition", "2024", &from, "-o", &to],
        "cpp" => vec!["g++", "-std=c++20", "-O2", "-g", &from, "-o", &to, "-lpthread"],
        _ => vec!["gcc", "-O2", "-g", &from, "-o", &to, "-lpthread"],
    };
    shell::output(&words)?;
    Ok(program)
}

fn arguments(case: &Case, units: u64, cost: u64) -> Vec<String> {
    let fill = |a: &&str| match *a {
        "U" => units.to_string(),
        "X" => cost.to_string(),
        other => other.to_owned(),
    };
    case.arguments.iter().map(fill).collect()
}

/// A command, before all others if asked for.
fn command(args: &Args, program: &Path) -> Command {
    if !args.realtime {
        return Command::new(program);
    }
    let mut command = Command::new("chrt");
    command.args(["-r", "5"]).arg(program);
    command
}

/// What a run of a program said.
struct Time {
    per_unit_ns: f64,
    /// Time per unit over time per step: of another machine, or another moment, it would be the same.
    per_unit_steps: f64,
}

fn time_per_unit(args: &Args, case: &Case, program: &Path, units: u64, cost: u64) -> Result<Time> {
    let output = command(args, program).args(arguments(case, units, cost)).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (per_unit, per_step) = (numbers.next(), numbers.next());
    let per_unit_ns = per_unit.context("the program says how long a unit took")?;
    let per_step = per_step.context("the program says how long a step took")?;
    // Memory and devices do not get slower with the processor.
    let other = matches!(case.source, "memory_bound.c" | "io_bound.c");
    let per_unit_steps = if other { per_unit_ns } else { per_unit_ns / per_step };
    Ok(Time { per_unit_ns, per_unit_steps })
}

/// Gain and its standard error at a quarter, a half and three quarters less work.
fn truth(args: &Args, case: &Case, program: &Path, base_ns: f64) -> Result<[(f64, f64); 3]> {
    /// Time of one run.
    const RUN_NS: f64 = 0.06e9;
    /// Rounds of a whole cycle of `phases.c`, and a multiple of any other program's.
    const CYCLE: u64 = 400;
    let units = if case.source == "phases.c" { CYCLE } else { ((RUN_NS / base_ns) as u64).max(20) };
    let run = |cost: u64| time_per_unit(args, case, program, units, cost).map(|t| t.per_unit_steps);
    let mut gains = [const { Vec::new() }; 3];
    let mut before = run(case.cost)?;
    for _ in 0..args.runs {
        for (gains, quarters) in gains.iter_mut().zip([3, 2, 1]) {
            let cut = run(case.cost * quarters / 4)?;
            let after = run(case.cost)?;
            gains.push(1.0 - cut / ((before + after) / 2.0));
            before = after;
        }
    }
    Ok(gains.map(|mut gains| {
        gains.sort_by(f64::total_cmp);
        let n = gains.len() as f64;
        let mean = gains.iter().sum::<f64>() / n;
        let deviation = (gains.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
        // The median's error is a quarter larger than the mean's, if all is normal.
        (gains[gains.len() / 2], 1.25 * deviation / n.sqrt())
    }))
}

fn predict(args: &Args, case: &Case, program: &Path, units: u64, out: &Path) -> Result<Option<Value>> {
    let json = out.join("result.json");
    let _ = std::fs::remove_file(&json);
    let text = std::fs::read_to_string(Path::new("test-programs/causal").join(case.source))?;
    let mark = format!("TARGET {} ", case.target);
    let at = text.lines().position(|l| format!("{l} ").contains(&mark)).context("the target is marked")?;
    let place = format!("{}:{}", case.source, at + 1);
    let output = command(args, &args.farsight)
        .args(["causal", "-q", "-o", "/dev/null", "--fixed", &place, "--json"])
        .arg(&json)
        .arg("--")
        .arg(program)
        .args(arguments(case, units, case.cost))
        .output()?;
    ensure!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&json)?)?;
    let results = document["results"].as_array().cloned().unwrap_or_default();
    Ok(results.into_iter().find(|r| r["target"].as_str().is_some_and(|t| t.ends_with(&place))))
}

fn level_of(result: &Value, speedup: f64) -> Option<(f64, (f64, f64))> {
    let level = result["curve"].as_array()?.iter().find(|l| l["speedup"].as_f64() == Some(speedup))?;
    Some((level["program_speedup"].as_f64()?, (level["ci_low"].as_f64()?, level["ci_high"].as_f64()?)))
}
