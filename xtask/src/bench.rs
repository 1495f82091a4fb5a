//! `cargo xtask bench NAME`: each benchmark prints a table; none of them is a test.

use anyhow::Result;
use clap::Subcommand;

mod fit;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// How often the growth fitter is right, against the fitters on PyPI.
    Fit(fit::Args),
}

pub fn run(args: Args) -> Result<()> {
    match args.bench {
        Bench::Fit(args) => fit::run(args),
    }
}
