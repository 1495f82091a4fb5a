//! `farsight export`: our profiles into other tools' formats.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::ValueEnum;
use exchange::aprof::Report;
use profile::{Data, Profile};

use crate::exit::{Failure, Kind};
use crate::{output, profiles};

/// Turn a profile into another tool's format
#[derive(clap::Args)]
pub struct Args {
    /// Profile file
    file: PathBuf,
    /// The format
    #[arg(long, value_enum)]
    format: Format,
    /// What to write, - for stdout. Several aprof reports (one per thread) go into a folder of this name
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Which runs a table is about, when the profile holds runs of several modes
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// What folded stacks count
    #[arg(long, value_enum, default_value = "idle")]
    value: StackValue,
    /// Which idle run the stacks are of, when the profile holds those of several processes; the first is 1
    #[arg(long, value_name = "N")]
    run: Option<usize>,
    /// The stacks as they were, not the logical call paths
    #[arg(long)]
    physical: bool,
    /// Read whatever is intact of a damaged file
    #[arg(long)]
    salvage: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// aprof reports, version 6
    Aprof,
    /// One row per routine and input size; of counts, one per function; of spans, Cilkprof's, one per call site
    Csv,
    /// pprof, with work, overhead, idleness and blocked time
    Pprof,
    /// The Firefox Profiler
    Firefox,
    /// Folded stacks of the value chosen with --value
    Folded,
    /// Cilkscale's table of work and span, one row per run
    Cilkscale,
    /// Coz's profile of causal runs; one JSON object a line if OUT ends in .jsonl
    Coz,
}

/// Values of an idle run, in the order in which they are exported.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum StackValue {
    Work,
    Idle,
    Overhead,
    Blocked,
}

/// What a table is about.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Mode {
    Growth,
    Count,
    Span,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let profile = profiles::read(&args.file, args.salvage)?;
    match args.format {
        Format::Csv => {
            let table = match table_mode(&profile, args.mode)? {
                Mode::Growth => exchange::csv::export(&profile),
                Mode::Count => exchange::csv_counts::export(&profile),
                Mode::Span => exchange::csv_span::cilkprof(&profile),
            };
            output::write(&args.output, &table)?;
        }
        Format::Cilkscale => output::write(&args.output, &exchange::csv_span::cilkscale(&profile))?,
        Format::Aprof => write_reports(&args.output, &reports(&profile)?)?,
        Format::Pprof | Format::Firefox | Format::Folded => write_stacks(args, &profile)?,
        Format::Coz => {
            let json = args.output.extension().is_some_and(|e| e == "jsonl");
            let format = if json { exchange::coz::Format::Json } else { exchange::coz::Format::Tabs };
            let Some(bytes) = exchange::coz::export(&profile.runs, format) else {
                let message = anyhow::anyhow!("{}: holds no causal run", args.file.display());
                return Err(Failure::error(Kind::Data, message));
            };
            output::write(&args.output, &bytes)?;
        }
    }
    if args.output != Path::new("-") {
        eprintln!("farsight: wrote {}", args.output.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// The contexts of the one idle run of a profile.
fn write_stacks(args: &Args, profile: &Profile) -> Result<()> {
    let idle = |run: &profile::Run| matches!(run.data, profile::Data::Idle(_));
    let runs: Vec<&profile::Run> = profile.runs.iter().filter(|run| idle(run)).collect();
    let chosen = match (args.run, runs.len()) {
        (None, 1) => Some(0),
        (Some(n), _) => n.checked_sub(1),
        _ => None,
    };
    let Some(run) = chosen.and_then(|i| runs.get(i)) else {
        let message = anyhow::anyhow!(
            "stacks are those of one idle run; the profile holds {}, of which --run N chooses one",
            runs.len()
        );
        return Err(Failure::error(Kind::Data, message));
    };
    let Some(view) = crate::view::idle_view((*run).clone())? else { return Ok(()) };
    let physical = args.physical.then(|| analyse::idle::physical(&view.idle));
    let tree = physical.as_ref().unwrap_or(&view.analysis.logical);
    let contexts = tree.nodes.iter().map(|n| {
        let frame = &view.idle.frames[n.frame as usize];
        exchange::stacks::Context {
            parent: n.parent,
            name: &n.name,
            file: &frame.file,
            line: frame.line,
            values: vec![
                n.own.work_ns as i64,
                n.own.idle_ns.max(0),
                n.own.overhead_ns() as i64,
                n.own.blocked_ns as i64,
            ],
        }
    });
    let stacks = exchange::stacks::Stacks {
        columns: vec!["work", "idle", "overhead", "blocked"],
        contexts: contexts.collect(),
        duration_ns: view.run.wall_ns,
        started_unix_ns: view.run.started_unix_ns,
    };
    let bytes = match args.format {
        Format::Pprof => exchange::stacks::pprof(&stacks),
        Format::Firefox => exchange::stacks::firefox(&stacks, &view.run.program.path).into_bytes(),
        _ => exchange::stacks::folded(&stacks, args.value as usize).into_bytes(),
    };
    output::write(&args.output, &bytes)
}

/// The mode that was asked for, or the only one that is there.
fn table_mode(profile: &Profile, asked: Option<Mode>) -> Result<Mode> {
    if let Some(mode) = asked {
        return Ok(mode);
    }
    let holds = |f: fn(&Data) -> bool| profile.runs.iter().any(|run| f(&run.data));
    let there = [
        (Mode::Growth, holds(|d| matches!(d, Data::Growth(_)))),
        (Mode::Count, holds(|d| matches!(d, Data::Count(_)))),
        (Mode::Span, holds(|d| matches!(d, Data::Span(_)))),
    ];
    let there: Vec<Mode> = there.into_iter().filter(|m| m.1).map(|m| m.0).collect();
    match there.as_slice() {
        [] => Ok(Mode::Growth),
        [only] => Ok(*only),
        _ => {
            let message = anyhow::anyhow!(
                "the profile holds runs of several modes; choose with --mode growth, --mode count or --mode span"
            );
            Err(Failure::error(Kind::Usage, message))
        }
    }
}

fn reports(profile: &Profile) -> Result<Vec<Report>> {
    let mut reports = Vec::new();
    for run in &profile.runs {
        reports.extend(exchange::aprof::export(run).map_err(|e| Failure::error(Kind::Data, e))?);
    }
    Ok(reports)
}

/// One report becomes the file itself, several become a folder of files with the names that aprof gives them.
fn write_reports(out: &Path, reports: &[Report]) -> Result<()> {
    if let [only] = reports
        && !out.is_dir()
    {
        return output::write(out, &only.bytes);
    }
    if out == Path::new("-") {
        let message =
            anyhow::anyhow!("{} reports cannot all go to stdout; give a folder with -o", reports.len());
        return Err(Failure::error(Kind::Usage, message));
    }
    fs::create_dir_all(out).with_context(|| format!("cannot create the folder {}", out.display()))?;
    for report in reports {
        output::write(&out.join(&report.name), &report.bytes)?;
    }
    Ok(())
}
