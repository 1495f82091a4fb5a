//! How long until the answer is known: run time until the target's result is within 5 points, beside Coz on the same
//! program, built so that Coz works (`-gdwarf-4 -gstrict-dwarf`), with the same statistics over the experiments of each.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use profile::{Causal, Data};

use super::case::{Case, arguments, case, command, compile, place, time_per_unit};
use super::{Args, Scoreboard};

/// Programs that Coz can profile: locks of libpthread, and a visit far more often than an experiment is long.
const CASES: &[Case] = &[
    case("serial", "serial.c", &["U", "X", "120000"], 280_000, "first"),
    case("pipeline, consumer", "pipeline.c", &["U", "240000", "X"], 400_000, "consumer"),
    case("mutex", "lock.c", &["U", "X", "20000", "mutex"], 200_000, "inside"),
];
const WANTED: f64 = 0.05;
/// Runs of Coz after which it is given up.
const COZ_RUNS_MAX: usize = 4;

pub fn run(args: &Args, out: &Path, board: &mut Scoreboard) -> Result<()> {
    for case in CASES.iter().filter(|case| args.wants(case.name)) {
        let program = compile(out, case.source, &["-gdwarf-4", "-gstrict-dwarf"])?;
        let base = time_per_unit(args, case, &program, 200, case.cost)?.per_unit_ns;
        let units = ((args.answer_seconds * 1e9 / base) as u64).max(400);
        let words = arguments(case, units, case.cost);
        let place = place(case)?;
        let ours = known_after(&by_us(args, &program, &words, out)?, &place);
        let mut coz: Option<Causal> = None;
        let mut theirs = None;
        for _ in 0..COZ_RUNS_MAX {
            let run = by_coz(args, &program, &words, out)?;
            coz = Causal::combined(coz.iter().chain([&run]));
            theirs = coz.as_ref().and_then(|all| known_after(all, &place));
            if theirs.is_some() {
                break;
            }
        }
        // Not known yet: it takes longer than all of its experiments.
        let most = coz.as_ref().map_or(0.0, end);
        let said = |known: Option<f64>, most: f64| match known {
            Some(known) => format!("{known:.1} s"),
            None => format!("more than {most:.1} s"),
        };
        let name = format!(
            "time to answer, {}: {}, Coz {}",
            case.name,
            said(ours, args.answer_seconds),
            said(theirs, most)
        );
        board.at_most(&name, ours.unwrap_or(f64::INFINITY) / theirs.unwrap_or(most), 0.25, "of Coz's");
    }
    Ok(())
}

/// Run time after which the target is known well enough, and stays so.
fn known_after(causal: &Causal, place: &str) -> Option<f64> {
    const STEP_NS: u64 = 500_000_000;
    let all = (end(causal) * 1e9) as u64;
    let known = |until: u64| {
        let mut part = causal.clone();
        part.experiments.retain(|e| e.start_ns + e.duration_ns <= until);
        let analysis = analyse::causal::analyse(&part);
        let is_target = |t: &profile::causal::Target| t.name.ends_with(place);
        let result = analysis.results.iter().find(|r| causal.targets.get(r.target).is_some_and(is_target));
        result.is_some_and(|r| r.curve.trials >= 12 && r.scatter <= WANTED)
    };
    let mut since = None;
    for until in (1..=all.div_ceil(STEP_NS)).map(|n| n * STEP_NS) {
        match known(until) {
            true => since = since.or(Some(until as f64 / 1e9)),
            false => since = None,
        }
    }
    since
}

/// When the last experiment ended, in seconds.
fn end(causal: &Causal) -> f64 {
    causal.experiments.iter().map(|e| e.start_ns + e.duration_ns).max().unwrap_or(0) as f64 / 1e9
}

fn by_us(args: &Args, program: &Path, words: &[String], out: &Path) -> Result<Causal> {
    let file = out.join("ours.farsight");
    let _ = std::fs::remove_file(&file);
    let output = command(args, &args.farsight)
        .args(["causal", "-q", "-o"])
        .arg(&file)
        .arg("--")
        .arg(program)
        .args(words)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    only(profile::file::load(&file).map_err(anyhow::Error::msg)?.profile)
}

fn by_coz(args: &Args, program: &Path, words: &[String], out: &Path) -> Result<Causal> {
    let file = out.join("theirs.coz");
    let _ = std::fs::remove_file(&file);
    let sources = std::fs::canonicalize("test-programs/causal")?;
    let output = command(args, Path::new("coz"))
        .args(["run", "--source-scope"])
        .arg(format!("{}/%", sources.display()))
        .arg("--output")
        .arg(&file)
        .arg("---")
        .arg(std::fs::canonicalize(program)?)
        .args(words)
        .output()
        .context("coz is not installed (on Debian: apt-get install coz-profiler)")?;
    ensure!(output.status.success(), "coz: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read(&file).context("coz wrote no profile")?;
    only(exchange::coz::import("theirs.coz", &text).map_err(anyhow::Error::msg)?)
}

fn only(profile: profile::Profile) -> Result<Causal> {
    match profile.runs.into_iter().next().map(|run| run.data) {
        Some(Data::Causal(causal)) => Ok(causal),
        _ => bail!("no causal run in the profile"),
    }
}
