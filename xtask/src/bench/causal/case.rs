//! The programs with known answers, their targets, and one run of each.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Args;
use crate::shell;

/// One target of one program.
pub struct Case {
    pub name: &'static str,
    pub source: &'static str,
    /// Arguments: `U` units of work, `X` the cost that is cut.
    arguments: &'static [&'static str],
    /// The cost at full.
    pub cost: u64,
    /// Mark of the line.
    target: &'static str,
}

pub const fn case(
    name: &'static str,
    source: &'static str,
    arguments: &'static [&'static str],
    cost: u64,
    target: &'static str,
) -> Case {
    Case { name, source, arguments, cost, target }
}

pub const CASES: &[Case] = &[
    case("serial", "serial.c", &["U", "X", "120000"], 280_000, "first"),
    case("figure 1, a", "figure_one.c", &["U", "X", "3600000"], 6_000_000, "a"),
    case("figure 1, b", "figure_one.c", &["U", "6000000", "X"], 3_600_000, "b"),
    // Rounds long beside a wake-up, which takes 30 us on a virtual machine and more when its processor slept for longer:
    // of rounds of 0.14 ms it is a fifth, and cutting work changes it.
    case("figure 1 long, a", "figure_one_long.c", &["U", "X", "2400000"], 4_000_000, "a"),
    case("figure 1 long, b", "figure_one_long.c", &["U", "4000000", "X"], 2_400_000, "b"),
    case("pipeline, consumer", "pipeline.c", &["U", "240000", "X"], 400_000, "consumer"),
    case("pipeline, producer", "pipeline.c", &["U", "X", "400000"], 240_000, "producer"),
    case("mutex", "lock.c", &["U", "X", "20000", "mutex"], 200_000, "inside"),
    case("spin lock", "lock.c", &["U", "X", "20000", "spin"], 200_000, "inside"),
    case("rwlock", "lock.c", &["U", "X", "20000", "rwlock"], 200_000, "inside"),
    case("semaphore", "lock.c", &["U", "X", "20000", "semaphore"], 200_000, "inside"),
    // Turns long beside a wake-up: whether who waits still spins when its turn comes depends on how long the turn was, and
    // the effect of that on the time of a short one is larger than that of the work itself.
    case("ping-pong, C++", "ping_pong.cpp", &["U", "X", "3000000"], 3_000_000, "first"),
    case("ping-pong, C++20 atomic", "ping_pong.cpp", &["U", "X", "3000000", "atomic"], 3_000_000, "first"),
    case("Rust mutex", "locks.rs", &["U", "X", "20000", "mutex"], 200_000, "first"),
    case("Rust channel", "locks.rs", &["U", "X", "1200000", "channel"], 2_000_000, "consumer"),
    case("Rust condvar", "locks.rs", &["U", "X", "3000000", "condvar"], 3_000_000, "turn"),
    case("futexes without libc", "raw_futex.c", &["U", "X", "3000000"], 3_000_000, "first"),
    case("barrier", "barrier.c", &["U", "X", "4000000", "2"], 6_000_000, "slow"),
    case("barrier, 4 threads", "barrier.c", &["U", "X", "4000000", "4"], 6_000_000, "slow"),
    case("OpenMP", "openmp.c", &["U", "X", "4000000", "2"], 6_000_000, "slow"),
    case("OpenMP, libomp", "openmp.clang.c", &["U", "X", "4000000", "2"], 6_000_000, "slow"),
    case("I/O-bound", "io_bound.c", &["U", "X", "1000"], 1_600_000, "computing"),
    case("memory-bound", "memory_bound.c", &["U", "X", "200000"], 60_000, "memory"),
    case("phases", "phases.c", &["U", "X", "1000000"], 1_000_000, "first"),
];

/// Ending of the stem of a source that is to be built by clang.
const CLANG: &str = ".clang";

/// The file of a source.
fn file(source: &str) -> String {
    source.replace(&format!("{CLANG}."), ".")
}

/// Builds a program of `test-programs/causal`, with flags of our own for C.
pub fn compile(out: &Path, source: &str, flags: &[&str]) -> Result<PathBuf> {
    let folder = Path::new("test-programs/causal");
    let (stem, kind) = source.rsplit_once('.').context("a source has an ending")?;
    let program = out.join(stem);
    let (from, to) = (folder.join(file(source)).display().to_string(), program.display().to_string());
    let mut words: Vec<&str> = match kind {
        "rs" => vec!["rustc", "-O", "-g", "--edition", "2024", &from, "-o", &to],
        "cpp" => vec!["g++", "-std=c++20", "-O2", "-g", &from, "-o", &to, "-lpthread"],
        _ if stem.ends_with(CLANG) => vec!["clang", "-O2", "-g", &from, "-o", &to, "-lpthread"],
        _ => vec!["gcc", "-O2", "-g", &from, "-o", &to, "-lpthread"],
    };
    if stem.starts_with("openmp") {
        words.push("-fopenmp");
    }
    words.extend(flags);
    shell::output(&words)?;
    Ok(program)
}

/// A program's arguments for so many units and such a cost.
pub fn arguments(case: &Case, units: u64, cost: u64) -> Vec<String> {
    let fill = |a: &&str| match *a {
        "U" => units.to_string(),
        "X" => cost.to_string(),
        other => other.to_owned(),
    };
    case.arguments.iter().map(fill).collect()
}

/// A command, before all others if asked for.
pub fn command(args: &Args, program: &Path) -> Command {
    if !args.realtime {
        return Command::new(program);
    }
    let mut command = Command::new("chrt");
    command.args(["-r", "5"]).arg(program);
    command
}

/// What a run of a program said.
pub struct Time {
    pub per_unit_ns: f64,
    /// Time per unit over time per step: of another machine, or another moment, it would be the same.
    pub per_unit_steps: f64,
    /// CPU time per unit likewise.
    pub cpu_steps: f64,
}

/// Runs a program natively.
pub fn time_per_unit(args: &Args, case: &Case, program: &Path, units: u64, cost: u64) -> Result<Time> {
    let output = command(args, program).args(arguments(case, units, cost)).output()?;
    ensure!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
    said(case, &String::from_utf8_lossy(&output.stdout))
}

/// Reads what a program printed.
pub fn said(case: &Case, text: &str) -> Result<Time> {
    let mut numbers = text.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    let (per_unit, per_step, cpu) = (numbers.next(), numbers.next(), numbers.next());
    let per_unit_ns = per_unit.context("the program says how long a unit took")?;
    let per_step = per_step.context("the program says how long a step took")?;
    // Memory and devices do not get slower with the processor.
    let other = matches!(case.source, "memory_bound.c" | "io_bound.c");
    let per_unit_steps = if other { per_unit_ns } else { per_unit_ns / per_step };
    let cpu_steps = cpu.context("the program says how much CPU time a unit took")? / per_step;
    Ok(Time { per_unit_ns, per_unit_steps, cpu_steps })
}

/// The line of a target.
pub fn place(case: &Case) -> Result<String> {
    let text = std::fs::read_to_string(Path::new("test-programs/causal").join(file(case.source)))?;
    let mark = format!("TARGET {} ", case.target);
    let at = text.lines().position(|l| format!("{l} ").contains(&mark)).context("the target is marked")?;
    Ok(format!("{}:{}", file(case.source), at + 1))
}

/// Where `predict` leaves the profile.
pub const PROFILE: &str = "predicted.farsight";

/// What `farsight causal` says of the target.
pub fn predict(args: &Args, case: &Case, program: &Path, units: u64, out: &Path) -> Result<Option<Value>> {
    let (json, profile) = (out.join("result.json"), out.join(PROFILE));
    let _ = std::fs::remove_file(&json);
    let _ = std::fs::remove_file(&profile);
    let place = place(case)?;
    let output = command(args, &args.farsight)
        .args(["causal", "-q", "--fixed", &place, "-o"])
        .arg(&profile)
        .arg("--json")
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
