//! What sampling costs the program, beside perf in the same rounds.
//!
//! Every round runs the program natively, at 200 Hz, at 1 kHz, and under perf at 1 kHz with frame pointers, in an order
//! that rotates. Other load on the machine (or on its host) only ever adds to a run's CPU time, so the lower quartiles
//! are compared; the rounds' own ratios are shown beside.

use anyhow::{Context, Result, ensure};
use std::process::Command;

use super::{Args, Programs, Scoreboard};

/// Recursions of each thread: a second of CPU time or so.
const COUNT: &str = "200000";

/// A way to run the program.
type Way<'a> = (&'static str, Box<dyn Fn() -> Command + 'a>);

pub fn run(programs: &Programs, args: &Args, board: &mut Scoreboard) -> Result<()> {
    let record = programs.out.join("perf.data");
    let ways: [Way<'_>; 4] = [
        (
            "native",
            Box::new(|| {
                let mut command = Command::new(programs.path("two_deep"));
                command.arg(COUNT);
                command
            }),
        ),
        ("200 Hz", Box::new(|| programs.profiled(&["-o", "/dev/null"], "two_deep", &[COUNT]))),
        (
            "1 kHz",
            Box::new(|| programs.profiled(&["--rate", "1000", "-o", "/dev/null"], "two_deep", &[COUNT])),
        ),
        (
            "perf, 1 kHz",
            Box::new(|| {
                let mut command = Command::new("perf");
                command
                    .args(["record", "-q", "-F", "1000", "--call-graph", "fp", "-o"])
                    .arg(&record)
                    .arg("--");
                command.arg(programs.path("two_deep")).arg(COUNT);
                command
            }),
        ),
    ];
    let mut cpu = vec![Vec::new(); ways.len()];
    for round in 0..args.rounds.max(1) {
        for i in 0..ways.len() {
            let which = (i + round) % ways.len();
            let output =
                (ways[which].1)().output().with_context(|| format!("cannot run {}", ways[which].0))?;
            ensure!(
                output.status.success(),
                "{}: {}",
                ways[which].0,
                String::from_utf8_lossy(&output.stderr)
            );
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let seconds: f64 = printed.trim().parse().context("the program prints its CPU time")?;
            cpu[which].push(seconds);
        }
    }
    let overhead = |which: usize| {
        let mut ratios: Vec<f64> =
            cpu[which].iter().zip(&cpu[0]).map(|(a, b)| 100.0 * (a / b - 1.0)).collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let quartile = |which: usize| {
        let mut seconds = cpu[which].clone();
        seconds.sort_by(f64::total_cmp);
        seconds[seconds.len() / 4]
    };
    let added = |which: usize| 100.0 * (quartile(which) / quartile(0) - 1.0);
    for (which, (name, _)) in ways.iter().enumerate() {
        let ratios = overhead(which);
        println!(
            "  {name:<12} {:.3} s ({:+.2} %); rounds: median {:+.2} % ({:+.2} .. {:+.2})",
            quartile(which),
            added(which),
            ratios[ratios.len() / 2],
            ratios[0],
            ratios[ratios.len() - 1],
        );
    }
    board.at_most("CPU time added at 200 Hz", added(1), 1.0, "%");
    board.at_most("CPU time added at 1 kHz, against perf", added(2), (added(3) * 100.0).round() / 100.0, "%");
    let path = programs.out.join("size.farsight");
    let _ = std::fs::remove_file(&path);
    let status =
        programs.profiled(&["--rate", "1000", "-o", "size.farsight"], "two_deep", &["1300000"]).output()?;
    let seconds: f64 = String::from_utf8_lossy(&status.stdout).trim().parse().context("CPU time")?;
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    board.at_most("profile per 10 s of CPU time at 1 kHz", megabytes * 10.0 / seconds, 1.0, "MB");
    Ok(())
}
