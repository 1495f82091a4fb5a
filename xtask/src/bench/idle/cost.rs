//! What sampling costs the program, beside perf in the same rounds.
//!
//! Every round runs the program natively, at 200 Hz, at 1 kHz, and under perf at 1 kHz with frame pointers, in an order
//! that rotates. The program itself measures how much of its time was taken by interruptions (`two_deep.c`), which is
//! far steadier than CPU times of whole runs; these are shown beside, and so is the CPU time of the tools' own processes,
//! which the bars leave out.

use anyhow::{Context, Result, bail, ensure};
use std::process::Command;

use super::{Args, Programs, Scoreboard};

/// Recursions, in one thread: 0.6 s of CPU time or so.
const COUNT: &str = "250000";
const THREADS: &str = "1";

/// One run: CPU seconds of the program, percent of its time lost to interruptions, CPU seconds of the tool.
#[derive(Clone, Copy)]
struct Run {
    cpu: f64,
    lost: f64,
    tool: f64,
}

/// A way to run the program.
type Way<'a> = (&'static str, Box<dyn Fn() -> Command + 'a>);

pub fn run(programs: &Programs, args: &Args, board: &mut Scoreboard) -> Result<()> {
    let record = programs.out.join("perf.data");
    let ways: [Way<'_>; 4] = [
        (
            "native",
            Box::new(|| {
                let mut command = Command::new(programs.path("two_deep"));
                command.args([COUNT, THREADS]);
                command
            }),
        ),
        ("200 Hz", Box::new(|| programs.profiled(&["-o", "/dev/null"], "two_deep", &[COUNT, THREADS]))),
        (
            "1 kHz",
            Box::new(|| {
                programs.profiled(&["--rate", "1000", "-o", "/dev/null"], "two_deep", &[COUNT, THREADS])
            }),
        ),
        (
            "perf, 1 kHz",
            Box::new(|| {
                let mut command = Command::new("perf");
                command
                    .args(["record", "-q", "-F", "1000", "--call-graph", "fp", "-o"])
                    .arg(&record)
                    .arg("--");
                command.arg(programs.path("two_deep")).args([COUNT, THREADS]);
                command
            }),
        ),
    ];
    let mut runs = vec![Vec::new(); ways.len()];
    for round in 0..args.rounds.max(1) {
        for i in 0..ways.len() {
            let which = (i + round) % ways.len();
            let before = children_cpu_s();
            let output =
                (ways[which].1)().output().with_context(|| format!("cannot run {}", ways[which].0))?;
            let all = children_cpu_s() - before;
            ensure!(
                output.status.success(),
                "{}: {}",
                ways[which].0,
                String::from_utf8_lossy(&output.stderr)
            );
            let (cpu, lost) = numbers(&output.stdout)?;
            // The program judges its own measurements after it has printed its CPU time; that is in `all` every time.
            runs[which].push(Run { cpu, lost, tool: all - cpu });
        }
    }
    let median = |which: usize, of: fn(&Run) -> f64| {
        let mut values: Vec<f64> = runs[which].iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let added = |which: usize| median(which, |r| r.lost) - median(0, |r| r.lost);
    for (which, (name, _)) in ways.iter().enumerate() {
        println!(
            "  {name:<12} {:.2} % lost ({:+.2}); CPU time {:.3} s ({:+.2} %), the tool's own {:+.3} s",
            median(which, |r| r.lost),
            added(which),
            median(which, |r| r.cpu),
            100.0 * (median(which, |r| r.cpu) / median(0, |r| r.cpu) - 1.0),
            median(which, |r| r.tool) - median(0, |r| r.tool),
        );
    }
    board.at_most("time taken at 200 Hz", added(1), 1.0, "%");
    board.at_most("time taken at 1 kHz, against perf", added(2), (added(3) * 100.0).round() / 100.0, "%");
    let path = programs.out.join("size.farsight");
    let _ = std::fs::remove_file(&path);
    let status =
        programs.profiled(&["--rate", "1000", "-o", "size.farsight"], "two_deep", &["1300000"]).output()?;
    let (seconds, _) = numbers(&status.stdout)?;
    let megabytes = std::fs::metadata(&path)?.len() as f64 / 1e6;
    board.at_most("profile per 10 s of CPU time at 1 kHz", megabytes * 10.0 / seconds, 1.0, "MB");
    Ok(())
}

/// CPU seconds, and percent of the time lost, as the program prints them.
fn numbers(printed: &[u8]) -> Result<(f64, f64)> {
    let text = String::from_utf8_lossy(printed).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [cpu, lost, all] = numbers[..] else { bail!("the program prints three numbers, not `{text}`") };
    Ok((cpu, 100.0 * lost / all))
}

/// CPU seconds of all processes that this one has waited for, and of theirs.
fn children_cpu_s() -> f64 {
    // Fields 16 and 17 of the line are in ticks of 10 ms; the second begins behind the name's parenthesis.
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = line.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}
