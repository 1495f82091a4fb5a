//! `farsight merge`: several profile files into one; each run is kept once, whatever files it came from.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::exit::{Failure, Kind};
use crate::profiles;

/// Put the runs of several profiles into one file
#[derive(clap::Args)]
pub struct Args {
    /// Profile files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file to write
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    /// Read whatever is intact of damaged files
    #[arg(long)]
    salvage: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let read: Result<Vec<_>> = args.files.iter().map(|f| profiles::read(f, args.salvage)).collect();
    let merged = profile::merge(&read?).map_err(|e| Failure::error(Kind::Data, e))?;
    profiles::write(&args.output, &merged, args.force)?;
    let runs = merged.runs.len();
    eprintln!(
        "farsight: wrote {} with {runs} run{}",
        args.output.display(),
        if runs == 1 { "" } else { "s" }
    );
    Ok(ExitCode::SUCCESS)
}
