//! `cargo xtask bench causal`: are predictions right, what do they cost, and how soon are they there?
//!
//! Programs of `test-programs/causal` whose costs are arguments. Four parts:
//! ```text
//! accuracy   predictions against really cutting the work
//! nulls      targets that gain nothing: called so?
//! cost       CPU time without delays, a lock pair, start-up
//! answer     run time until the result is known, beside Coz
//! ```
//! Wants a quiet machine. Where there is none, `--realtime` runs everything before all other programs (needs
//! privilege; the kernel still gives others a twentieth of each second, which shows as stalls).

use std::path::PathBuf;

use anyhow::{Result, ensure};

use super::scoreboard::Scoreboard;

mod accuracy;
mod answer;
mod case;
mod cost;
mod nulls;

#[derive(clap::Args)]
pub struct Args {
    /// Only these parts (accuracy, nulls, cost, answer).
    #[arg(long, value_delimiter = ',')]
    parts: Vec<String>,
    /// Only cases whose name contains one of these.
    #[arg(long)]
    only: Vec<String>,
    /// Seconds that each program runs under farsight.
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Runs of each real cut.
    #[arg(long, default_value_t = 12)]
    runs: usize,
    /// Predictions for each target without effect.
    #[arg(long, default_value_t = 8)]
    nulls: usize,
    /// Seconds that each program runs for its time to answer.
    #[arg(long, default_value_t = 30.0)]
    answer_seconds: f64,
    /// Keep what accuracy observes in this folder (`crates/analyse/tests/testdata/recorded`).
    #[arg(long)]
    record: Option<PathBuf>,
    /// Run the programs with real-time priority (`chrt`).
    #[arg(long)]
    realtime: bool,
    /// The executable to judge.
    #[arg(long, default_value = "target/release/farsight")]
    farsight: PathBuf,
}

impl Args {
    /// Whether a case is asked for.
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }

    fn wants_part(&self, name: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|part| part == name)
    }
}

pub fn run(args: Args) -> Result<()> {
    ensure!(args.farsight.exists(), "{} is not built", args.farsight.display());
    let out = PathBuf::from("target/bench-causal");
    std::fs::create_dir_all(&out)?;
    let mut board = Scoreboard::default();
    if args.wants_part("cost") {
        cost::run(&args, &out, &mut board)?;
    }
    if args.wants_part("nulls") {
        nulls::run(&args, &out, &mut board)?;
    }
    if args.wants_part("accuracy") {
        accuracy::run(&args, &out, &mut board)?;
    }
    if args.wants_part("answer") {
        answer::run(&args, &out, &mut board)?;
    }
    board.print();
    Ok(())
}
