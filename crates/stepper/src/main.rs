//! `stepper [--json FILE] -- PROGRAM ARGS...`: counts as JSON; the exit status is the program's, 128 + signal when killed.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

#[derive(Parser)]
#[command(about = "Counts what a program executes, thread by thread, by single-stepping it")]
struct Args {
    /// Where to write the counts; standard output after the program's own otherwise.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also count by function.
    #[arg(long)]
    functions: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let report = stepper::step::run(&args.command, args.functions)?;
    let text = serde_json::to_string(&report)?;
    match args.json {
        Some(path) => std::fs::write(path, text)?,
        None => println!("{text}"),
    }
    Ok(ExitCode::from(report.exit as u8))
}
