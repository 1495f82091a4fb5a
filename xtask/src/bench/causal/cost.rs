//! What being profiled costs a program that is never delayed (`--fixed :0`), in CPU time per unit of work, natively and
//! profiled by turns; what an uncontended pair of lock and unlock costs more; and how much later `main` begins.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::case::{Case, arguments, case, command, compile, said, time_per_unit};
use super::{Args, Scoreboard};

/// Rounds of natively and profiled.
const ROUNDS: usize = 7;
/// Time of one run.
const RUN_NS: f64 = 1.5e9;

/// Programs, and whether they lock a lot.
const CASES: &[(Case, bool)] = &[
    (case("serial", "serial.c", &["U", "X", "120000"], 280_000, "first"), false),
    (case("figure 1 long", "figure_one_long.c", &["U", "X", "2400000"], 4_000_000, "a"), false),
    (case("7,000 meetings a second", "figure_one_long.c", &["U", "X", "240000"], 400_000, "a"), true),
    (case("memory-bound", "memory_bound.c", &["U", "X", "200000"], 60_000, "memory"), false),
    (case("mutex", "lock.c", &["U", "X", "20000", "mutex"], 200_000, "inside"), true),
    (case("pipeline", "pipeline.c", &["U", "240000", "X"], 400_000, "consumer"), true),
    (case("Rust channel", "locks.rs", &["U", "X", "240000", "channel"], 400_000, "consumer"), true),
];

pub fn run(args: &Args, out: &Path, board: &mut Scoreboard) -> Result<()> {
    for (case, locks) in CASES.iter().filter(|(case, _)| args.wants(case.name)) {
        let program = compile(out, case.source, &[])?;
        let base = time_per_unit(args, case, &program, 200, case.cost)?.per_unit_ns;
        let units = ((RUN_NS / base) as u64).max(20);
        let (mut native, mut profiled) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            native.push(time_per_unit(args, case, &program, units, case.cost)?.cpu_steps);
            let words = arguments(case, units, case.cost);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            profiled.push(said(case, &under(args, &program, &words)?)?.cpu_steps);
        }
        let cost = 100.0 * (median(&mut profiled) / median(&mut native) - 1.0);
        let limit = if *locks { 5.0 } else { 2.0 };
        board.at_most(&format!("CPU time of {} without delays", case.name), cost, limit, "% more");
    }
    if args.wants("lock pair") {
        let program = compile(out, "lock_pair.c", &[])?;
        let pair = |text: String| text.trim().parse::<f64>().context("the program prints nanoseconds");
        let (mut native, mut profiled) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let output = command(args, &program).output()?;
            native.push(pair(String::from_utf8_lossy(&output.stdout).into_owned())?);
            profiled.push(pair(under(args, &program, &[])?)?);
        }
        let more = median(&mut profiled) - median(&mut native);
        board.at_most("uncontended lock pair", more, 15.0, "ns more");
    }
    if args.wants("start-up") {
        // Itself is a program with more than 10 MB of debug information, if it is a debug build.
        let program = Path::new("target/debug/farsight");
        ensure!(program.exists(), "{} is not built", program.display());
        let (mut native, mut profiled) = (Vec::new(), Vec::new());
        for _ in 0..15 {
            let start = Instant::now();
            Command::new(program).arg("--version").output()?;
            native.push(start.elapsed().as_secs_f64());
            let start = Instant::now();
            under(args, program, &["--version"])?;
            profiled.push(start.elapsed().as_secs_f64());
        }
        let more = 1e3 * (median(&mut profiled) - median(&mut native));
        board.at_most("start-up with 10 MB of debug information", more, 60.0, "ms more");
    }
    Ok(())
}

/// What the program prints when it is profiled and never delayed.
fn under(args: &Args, program: &Path, arguments: &[&str]) -> Result<String> {
    let output = command(args, &args.farsight)
        .args(["causal", "-q", "-o", "/dev/null", "--fixed", ":0", "--"])
        .arg(program)
        .args(arguments)
        .output()?;
    ensure!(output.status.success(), "{}: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
