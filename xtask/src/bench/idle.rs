//! `cargo xtask bench idle`: every bar of the idleness profiler, by one command.
//!
//! ```text
//! logical    stolen rayon jobs below main, their readability, the distance to the run with one thread
//! idleness   programs with a planned serial part or imbalance: pthread, std::thread, rayon, libgomp, libomp
//! grain      overhead of tasks of all sizes, beside what it is when measured directly
//! locks      waiting by holder, beside what the waiting thread measured
//! cholesky   the case study: idleness belongs to the serial helpers
//! cost       CPU time added, beside perf's in the same run; size of the profile
//! table      time from the end of a long run to its first table
//! stress     (only with --stress) the program of everything odd, for many minutes
//! ```
//! The programs are those of `test-programs/idle` and the rayon examples of `crates/idle`. Wants a quiet machine for
//! `cost`; the rest plans CPU time and bears other load.

mod cost;
mod logical;
mod planned;
mod programs;
mod stress;
mod table;

use std::path::PathBuf;

use anyhow::{Result, ensure};

pub use super::scoreboard::Scoreboard;
pub use programs::Programs;

#[derive(clap::Args)]
pub struct Args {
    /// Only these sections.
    #[arg(long)]
    only: Vec<String>,
    /// Rounds of the cost table; each runs the program natively and under each tool.
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Run the stress program for this many seconds, and nothing else.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1200")]
    stress: Option<u64>,
    /// The executable to judge.
    #[arg(long, default_value = "target/release/farsight")]
    farsight: PathBuf,
    /// Build the programs and end.
    #[arg(long, conflicts_with = "no_build")]
    build: bool,
    /// Take the programs as they were built before.
    #[arg(long)]
    no_build: bool,
}

/// A section: what it is called and what it does.
type Section = (&'static str, fn(&Programs, &Args, &mut Scoreboard) -> Result<()>);

const SECTIONS: &[Section] = &[
    ("logical", logical::run),
    ("idleness", planned::idleness),
    ("grain", planned::grain),
    ("locks", planned::locks),
    ("cholesky", planned::cholesky),
    ("table", table::run),
    ("cost", cost::run),
];

pub fn run(args: Args) -> Result<()> {
    ensure!(args.farsight.exists(), "{} is not built: cargo build --release", args.farsight.display());
    let programs =
        if args.no_build { Programs::built(&args.farsight)? } else { Programs::build(&args.farsight)? };
    if args.build {
        return Ok(());
    }
    if let Some(seconds) = args.stress {
        return stress::run(&programs, seconds);
    }
    let mut board = Scoreboard::default();
    for (name, section) in SECTIONS {
        if args.only.is_empty() || args.only.iter().any(|only| only == name) {
            println!("\n{name}");
            section(&programs, &args, &mut board)?;
        }
    }
    board.print();
    Ok(())
}
