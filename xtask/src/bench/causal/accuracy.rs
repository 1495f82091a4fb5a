//! Predictions at a quarter, a half and three quarters against really cutting the work by as much: full and cut runs by
//! turns, each cut run against the full ones before and after it. The programs also tell how fast the machine was while
//! they ran (ticks of a step of work), and times are divided by that: neighbours and hypervisors change it by tens of
//! percent from run to run.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::case::{CASES, Case, PROFILE, compile, place, predict, time_per_unit};
use super::{Args, Scoreboard};

/// What one level gave.
struct Row {
    predicted: f64,
    ci: (f64, f64),
    truth: f64,
}

/// Parts of the work that are cut.
const LEVELS: [f64; 3] = [0.25, 0.5, 0.75];

/// Runs all cases.
pub fn run(args: &Args, out: &Path, board: &mut Scoreboard) -> Result<()> {
    println!("{:<26} {:>7}  {:>22}  {:>9}  {:>6}", "case", "faster", "predicted", "measured", "error");
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| args.wants(case.name)) {
        let program = compile(out, case.source, &[])?;
        let base = time_per_unit(args, case, &program, 200, case.cost)?.per_unit_ns;
        let units = ((args.seconds * 1e9 / base) as u64).max(400);
        let result = predict(args, case, &program, units, out)?;
        let truth = truth(args, case, &program, base)?;
        for (level, (truth, error)) in LEVELS.into_iter().zip(truth) {
            let name = case.name;
            let (faster, gain) = (100.0 * level, 100.0 * truth);
            let Some((predicted, ci)) = result.as_ref().and_then(|r| level_of(r, level)) else {
                println!("{name:<26} {faster:>6.0}%  {:>22}  {gain:>8.1}%", "none");
                continue;
            };
            println!(
                "{name:<26} {faster:>6.0}%  {:>7.1} [{:>5.1}, {:>5.1}]  {gain:>6.1} ±{:>3.1}  {:>6.1}",
                100.0 * predicted,
                100.0 * ci.0,
                100.0 * ci.1,
                100.0 * error,
                100.0 * (predicted - truth)
            );
            rows.push(Row { predicted, ci, truth });
        }
        if let Some(folder) = &args.record {
            record(&out.join(PROFILE), folder, case, &truth)?;
        }
    }
    summary(&rows, board);
    Ok(())
}

/// Keeps what was observed, for the test of what is concluded from it: the profile, without what is only this
/// machine's, and a line `file target level truth` for each level.
fn record(profile: &Path, folder: &Path, case: &Case, truth: &[(f64, f64); 3]) -> Result<()> {
    use std::io::Write as _;
    std::fs::create_dir_all(folder)?;
    let name = format!("{}.farsight", case.name.replace(|c: char| !c.is_alphanumeric(), "-"));
    let mut profile = profile::file::load(profile).map_err(anyhow::Error::msg)?.profile;
    for run in &mut profile.runs {
        run.program = profile::Program { path: case.source.into(), ..Default::default() };
        run.command = vec![case.source.into()];
        if let profile::Data::Causal(causal) = &mut run.data {
            for target in &mut causal.targets {
                let bare = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
                target.name = bare(&target.name);
                target.file = bare(&target.file);
            }
        }
    }
    let to = folder.join(&name);
    let _ = std::fs::remove_file(&to);
    profile::file::save_new(&to, &profile).map_err(anyhow::Error::msg)?;
    let mut truths = std::fs::File::options().append(true).create(true).open(folder.join("truths.txt"))?;
    for (level, (truth, _)) in LEVELS.into_iter().zip(truth) {
        writeln!(truths, "{name} {} {level} {truth:.4}", place(case)?)?;
    }
    Ok(())
}

fn summary(rows: &[Row], board: &mut Scoreboard) {
    let mut errors: Vec<f64> = rows.iter().map(|r| 100.0 * (r.predicted - r.truth).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let Some(&median) = errors.get(errors.len() / 2) else { return };
    let percent = |count: usize| 100.0 * count as f64 / errors.len() as f64;
    board.at_most("median error of predictions", median, 3.0, "points");
    board.at_most(
        "off by more than 8 points",
        percent(errors.iter().filter(|e| **e > 8.0).count()),
        10.0,
        "%",
    );
    let covered = rows.iter().filter(|r| r.ci.0 <= r.truth && r.truth <= r.ci.1).count();
    board.at_least("intervals that hold the truth", percent(covered), 90.0, "%");
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

fn level_of(result: &Value, speedup: f64) -> Option<(f64, (f64, f64))> {
    let level = result["curve"].as_array()?.iter().find(|l| l["speedup"].as_f64() == Some(speedup))?;
    Some((level["program_speedup"].as_f64()?, (level["ci_low"].as_f64()?, level["ci_high"].as_f64()?)))
}
