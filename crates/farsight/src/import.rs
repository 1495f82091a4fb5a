//! `farsight import`: other tools' profiles into ours.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use exchange::aprof::{self, Source};

use crate::exit::{Failure, Kind};
use crate::profiles;

/// Turn other tools' profiles into one of ours
///
/// Reads aprof reports, version 6 (aprof writes one file per thread: give all files of a run together), and Coz
/// profiles, .coz or .jsonl.
#[derive(clap::Args)]
pub struct Args {
    /// Files to import
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The profile to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut contents = Vec::with_capacity(args.files.len());
    for path in &args.files {
        let bytes = fs::read(path)
            .with_context(|| format!("cannot read {}", path.display()))
            .map_err(|e| Failure::error(Kind::NoInput, e))?;
        contents.push((path.to_string_lossy(), bytes));
    }
    let profile = if contents.iter().all(|(name, bytes)| is_coz(name, bytes)) {
        let imported = contents.iter().map(|(name, bytes)| exchange::coz::import(name, bytes));
        let profiles = imported.collect::<Result<Vec<_>, _>>().map_err(|e| Failure::error(Kind::Data, e))?;
        profile::merge(&profiles).map_err(|e| Failure::error(Kind::Data, e))?
    } else {
        let sources: Vec<Source<'_>> = contents.iter().map(|(name, bytes)| Source { name, bytes }).collect();
        aprof::import(&sources).map_err(|e| Failure::error(Kind::Data, e))?
    };
    for problem in profile.runs.iter().flat_map(|run| &run.problems) {
        eprintln!("farsight: {problem}");
    }
    profiles::write(&args.output, &profile, args.force)?;
    let runs = profile.runs.len();
    eprintln!(
        "farsight: wrote {} with {runs} run{}",
        args.output.display(),
        if runs == 1 { "" } else { "s" }
    );
    eprintln!("farsight: next: farsight report {}", args.output.display());
    Ok(ExitCode::SUCCESS)
}

/// Whether a file is Coz's: by its name, or by the words that its first line can begin with.
fn is_coz(name: &str, bytes: &[u8]) -> bool {
    let begins = |word: &[u8]| bytes.starts_with(word);
    name.ends_with(".coz") || name.ends_with(".jsonl") || begins(b"startup\t") || begins(b"{\"type\"")
}
