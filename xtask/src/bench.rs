//! `cargo xtask bench NAME`: each benchmark prints a table; none of them is a test.

use anyhow::Result;
use clap::Subcommand;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {}

pub fn run(args: Args) -> Result<()> {
    match args.bench {}
}
