//! The project's automation, one file per task. `cargo xtask help` lists them.

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod page;

#[derive(Parser)]
#[command(about = "Farsight's automation")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compare with other tools and measure our bars.
    Bench(bench::Args),
    /// Build, check and test the report page.
    Page(page::Args),
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Bench(args) => bench::run(args),
        Task::Page(args) => page::run(args),
    }
}
