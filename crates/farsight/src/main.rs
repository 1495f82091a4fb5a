//! The command line: glue between what was typed and the crates that do the work. One file per subcommand.
//!
//! Results go to stdout, messages to stderr. Exit codes are in [`exit`].

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod browser;
mod causal;
mod cc;
mod check;
mod count;
mod diff;
mod doctor;
mod exit;
mod export;
mod functions;
mod growth;
mod idle;
mod import;
mod merge;
mod mode;
mod output;
mod profiles;
mod report;
mod span;
mod started;
mod view;

/// A profiler that looks ahead
#[derive(Parser)]
#[command(name = "farsight", version, max_term_width = 100)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Causal(Box<causal::Args>),
    Growth(growth::Args),
    Count(count::Args),
    Idle(idle::Args),
    Span(span::Args),
    Cc(cc::Args),
    #[command(name = "c++")]
    Cxx(cc::Args),
    Report(report::Args),
    Merge(merge::Args),
    Diff(diff::Args),
    Check(check::Args),
    Export(export::Args),
    Import(import::Args),
    Doctor(doctor::Args),
    #[command(hide = true)]
    RunCounted(span::CountedArgs),
}

fn main() -> ExitCode {
    if let Some(code) = span::as_wrapper() {
        return code;
    }
    let args = match Args::try_parse_from(span::as_cargo_command(std::env::args_os().collect())) {
        Ok(args) => args,
        Err(error) => return exit::usage(&error),
    };
    let result = match &args.command {
        Command::Causal(args) => causal::run(args),
        Command::Growth(args) => growth::run(args),
        Command::Count(args) => count::run(args),
        Command::Idle(args) => idle::run(args),
        Command::Span(args) => span::run(args),
        Command::Cc(args) => cc::run(args, span_kit::rewrite::Language::C),
        Command::Cxx(args) => cc::run(args, span_kit::rewrite::Language::Cpp),
        Command::Report(args) => report::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Diff(args) => diff::run(args),
        Command::Check(args) => check::run(args),
        Command::Export(args) => export::run(args),
        Command::Import(args) => import::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::RunCounted(args) => span::run_counted(args),
    };
    exit::code(result)
}
