//! `cargo xtask bench NAME`: each benchmark prints a table; none of them is a test.

use anyhow::Result;
use clap::Subcommand;

mod causal;
mod engine;
mod fit;
mod growth;
mod idle;
mod inputs;
mod scoreboard;
mod span;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// How often the growth fitter is right, against the fitters on PyPI.
    Fit(fit::Args),
    /// Predictions of `farsight causal` against what really cutting the work gives.
    Causal(causal::Args),
    /// Twelve programs natively and under wrappers: CPU time and memory as ratios, parallel speedup, start-up.
    Engine(engine::Args),
    /// The same programs under `farsight growth`, beside aprof's figures; and programs of two threads.
    Growth(growth::Args),
    /// `farsight idle` against programs whose idleness, overhead, locks and paths are known; its cost beside perf's.
    Idle(idle::Args),
    /// Overhead, accuracy and predictions of `farsight span`, each against its bar.
    Span(span::Args),
}

pub fn run(args: Args) -> Result<()> {
    match args.bench {
        Bench::Fit(args) => fit::run(args),
        Bench::Causal(args) => causal::run(args),
        Bench::Engine(args) => engine::run(args),
        Bench::Growth(args) => growth::run(args),
        Bench::Idle(args) => idle::run(args),
        Bench::Span(args) => span::run(args),
    }
}
