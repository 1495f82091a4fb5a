//! Programs whose idleness, overhead and waiting are planned, or measured by themselves.

use anyhow::{Context, Result};

use super::programs::{inclusive, is_called, number};
use super::{Args, Programs, Scoreboard};

/// Idle share of two cores that phases of `serial` seconds alone and `parallel` together give, in percent.
fn idle_percent(serial: f64, parallel: f64) -> f64 {
    100.0 * serial / (2.0 * (serial + parallel))
}

/// Planned idleness in five models.
pub fn idleness(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    let cases = [
        ("pthread, serial part", "phases", vec!["0.1", "0.1"], idle_percent(0.1, 0.1)),
        ("pthread, small serial part", "phases", vec!["0.05", "0.2"], idle_percent(0.05, 0.2)),
        ("std::thread, serial part", "scoped", vec!["0.1", "0.1"], idle_percent(0.1, 0.1)),
        ("rayon, serial part", "rayon_phases", vec!["0.1", "0.1"], idle_percent(0.1, 0.1)),
        ("libgomp, imbalance", "imbalance", vec!["8", "0.1", "0.05"], 25.0),
        ("libomp, imbalance", "clang-imbalance", vec!["8", "0.1", "0.05"], 25.0),
        ("libgomp, imbalance, spinning", "imbalance", vec!["8", "0.1", "0.05"], 25.0),
        ("libomp, imbalance, spinning", "clang-imbalance", vec!["8", "0.1", "0.05"], 25.0),
        ("a spin loop named by the user", "spin", vec!["4"], idle_percent(0.1, 0.1)),
        ("libgomp, serial part and tasks", "team", vec![], idle_percent(0.2, 0.2)),
        ("libomp, serial part and tasks", "clang-team", vec![], idle_percent(0.2, 0.2)),
    ];
    for (name, program, arguments, planned) in cases {
        let spinning = [("OMP_WAIT_POLICY", "active"), ("KMP_BLOCKTIME", "infinite")];
        let environment = if name.ends_with("spinning") { &spinning[..] } else { &[] };
        let mut flags = vec!["--cores", "2"];
        if program == "spin" {
            std::fs::write(programs.out.join("spin.classes"), "idle spin_for_work\n")?;
            flags.extend(["--classes", "spin.classes"]);
        }
        let (document, _) = programs.profile_with(environment, &flags, program, &arguments)?;
        let totals = &document["totals"];
        // Of the cores' time that was the program's to use: what others had is no idleness.
        let (work, idle, overhead) =
            (number(&totals["work_ns"]), number(&totals["idle_ns"]), number(&totals["overhead_ns"]));
        let share = 100.0 * idle / (work + idle + overhead);
        let identity = &document["identity"];
        let off = number(&identity["accounted_ns"]) / number(&identity["cores_times_wall_ns"]) - 1.0;
        println!("  {name}: {share:.1} % idle, planned {planned:.1} %; identity off by {:.2} %", 100.0 * off);
        board.at_most(&format!("idleness: {name}"), (share - planned).abs(), 2.0, "points");
        board.at_most(&format!("identity: {name}"), 100.0 * off.abs(), 1.0, "%");
    }
    Ok(())
}

/// Overhead of tasks of all sizes.
pub fn grain(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    /// Steps of a task, and how deep the tree of them is: a quarter of a second in all where time is measured, so that some
    /// run is undisturbed, and four times that where samples are counted.
    const GRAINS: [(&str, u32); 7] =
        [("1", 22), ("3", 22), ("10", 21), ("30", 20), ("100", 19), ("500", 16), ("10000", 12)];
    const RUNS: usize = 12;
    let once = |arguments: &[&str]| -> Result<f64> {
        programs.native("rayon_grain", arguments)?.trim().parse().context("it prints its CPU time")
    };
    let mut before = f64::INFINITY;
    let (mut worst, mut monotone) = (0.0f64, true);
    for (steps, depth) in GRAINS {
        let (measured, sampled) = (depth.to_string(), (depth + 2).to_string());
        // By turns: the machine's speed changes from one second to the next.
        let (mut serial, mut parallel) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..RUNS {
            serial = serial.min(once(&[&measured, steps, "0"])?);
            parallel = parallel.min(once(&[&measured, steps, "1"])?);
        }
        let direct = 100.0 * (1.0 - serial / parallel);
        let (document, _) =
            programs.profile(&["--rate", "1000", "--cores", "1"], "rayon_grain", &[&sampled, steps, "1"])?;
        let (work, overhead) =
            (inclusive(&document, "parallel", "work_ns"), inclusive(&document, "parallel", "overhead_ns"));
        let found = 100.0 * overhead / (work + overhead).max(1e-9);
        println!("  tasks of {steps:>6} steps: {found:5.1} % overhead, measured directly {direct:5.1} %");
        worst = worst.max((found - direct).abs());
        // Two neighbours that differ by less than sampling can tell count as equal.
        monotone &= found <= before + 1.0;
        before = found;
    }
    board.at_most("overhead of tasks against directly measured", worst, 5.0, "points");
    board.holds("overhead falls with the grain", if monotone { "yes" } else { "no" }.into(), "yes", monotone);
    Ok(())
}

/// Waiting by holder.
pub fn locks(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    let (document, printed) = programs.profile(&[], "holders", &["10", "0.004"])?;
    let mut worst = 0.0f64;
    let mut charged_all = 0.0;
    let mut waited_all = 0.0;
    for line in printed.lines() {
        let (name, waited) = line.split_once(' ').context("NAME SECONDS")?;
        let waited: f64 = waited.parse()?;
        let holders = document["locks"].as_array().into_iter().flatten();
        let charged: f64 = holders
            .flat_map(|l| l["holders"].as_array().into_iter().flatten())
            .filter(|h| {
                let path = h["path"].as_array().map_or(&[][..], |p| p);
                path.iter().any(|f| f.as_str().is_some_and(|f| is_called(f, name)))
            })
            .map(|h| number(&h["blame_ns"]) / 1e9)
            .sum();
        println!("  {name}: {charged:.4} s charged, {waited:.4} s waited for it");
        worst = worst.max(100.0 * (charged / waited - 1.0).abs());
        (charged_all, waited_all) = (charged_all + charged, waited_all + waited);
    }
    board.at_most("waiting charged to its holder, worst of four", worst, 5.0, "%");
    board.at_least("waiting charged at all", 100.0 * charged_all / waited_all, 95.0, "%");
    Ok(())
}

/// The case study.
pub fn cholesky(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    for (model, program) in
        [("rayon", "rayon_cholesky"), ("libgomp", "cholesky"), ("libomp", "clang-cholesky")]
    {
        let (document, _) =
            programs.profile(&["--cores", "2", "--rate", "1000"], program, &["16", "64", "40"])?;
        let all = number(&document["totals"]["idle_ns"]) / 1e9;
        let of = |name| inclusive(&document, name, "idle_ns");
        let (up, factor, down) = (of("set_up"), of("factor"), of("tear_down"));
        println!(
            "  {model}: idle {:.2} s: set_up {:.0} %, tear_down {:.0} %, factor {:.0} %; work {:.2}, {:.2} and {:.2} s",
            all,
            100.0 * up / all,
            100.0 * down / all,
            100.0 * factor / all,
            inclusive(&document, "set_up", "work_ns"),
            inclusive(&document, "tear_down", "work_ns"),
            inclusive(&document, "factor", "work_ns"),
        );
        let bar = format!("Cholesky, {model}: idleness of the serial helpers");
        board.at_least(&bar, 100.0 * (up + down) / all, 80.0, "%");
    }
    Ok(())
}
