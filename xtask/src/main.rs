//! The project's automation, one file per task. `cargo xtask help` lists them.

use anyhow::Result;
use clap::{Parser, Subcommand};

mod bench;
mod demo;
mod packages;
mod page;
mod rayon_tests;
mod shell;
mod test;
mod tidy;

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
    /// Build everything and profile the bundled programs; ends with where the report lies.
    Demo,
    /// Everything that CI checks: formatting, lints, tidiness, the page, all tests.
    Test(test::Args),
    /// House rules that no compiler checks.
    Tidy,
    /// Build, check and test the report page.
    Page(page::Args),
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Bench(args) => bench::run(args),
        Task::Demo => demo::run(),
        Task::Test(args) => test::run(&args),
        Task::Tidy => tidy::run(),
        Task::Page(args) => page::run(&args),
    }
}
