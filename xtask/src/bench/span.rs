//! `cargo xtask bench span`: the bars of `farsight span`, each one table.
//!
//! - overhead: programs of `bench/span` and `test-programs/span`, profiled, as ratios to their serial run (Cilk) or their
//!   run with one thread (rayon) of the same minutes;
//! - accuracy: graphs of spinning strands whose work and span are known, quiet and with a hog on every processor;
//! - prediction: what the profile says that a faster site would give, against really making it faster;
//! - two processors: whether the measured speedup lies between the bounds.
//!
//! CPU time (user + system) comes from `wait4`; the least of the runs counts, taken by turns.

mod accuracy;
mod overhead;
mod predict;
mod programs;

use std::fs;

use anyhow::{Result, ensure};

use programs::Bench;

#[derive(clap::Args)]
pub struct Args {
    /// Only programs and graphs whose name contains one of these.
    #[arg(long)]
    only: Vec<String>,
    /// Runs of each program; the least counts.
    #[arg(long, default_value_t = 5)]
    runs: usize,
    /// `--runs` of `farsight span` for accuracy and prediction.
    #[arg(long, default_value_t = 25)]
    repeat: u32,
    /// Tables to print; all if none is named.
    #[arg(value_enum)]
    tables: Vec<Table>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Table {
    Overhead,
    Accuracy,
    Loaded,
    Predict,
    Speedup,
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| name.contains(o.as_str()))
    }
}

pub fn run(args: Args) -> Result<()> {
    ensure!(args.runs > 0, "--runs must be at least 1");
    let bench = Bench::prepare()?;
    println!("load {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    let all = [Table::Overhead, Table::Accuracy, Table::Loaded, Table::Predict, Table::Speedup];
    for table in if args.tables.is_empty() { &all[..] } else { &args.tables[..] } {
        match table {
            Table::Overhead => overhead::run(&bench, &args)?,
            Table::Accuracy => accuracy::run(&bench, &args, false)?,
            Table::Loaded => accuracy::run(&bench, &args, true)?,
            Table::Predict => predict::run(&bench, &args)?,
            Table::Speedup => predict::speedup(&bench, &args)?,
        }
    }
    Ok(())
}
