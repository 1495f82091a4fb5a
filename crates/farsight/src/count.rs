//! `farsight count`: exact counts of what a program executed, without hardware counters.

use std::process::ExitCode;

use anyhow::Result;
use launch::Spec;
use launch::counts::{self, Counts};
use profile::{Count, Data, Tally, ThreadTally};
use wire::boot::flags;
use wire::count::Totals;

use crate::mode::{self, ModeArgs};

/// Count executed instructions, blocks, loads, stores and calls, exactly
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// Run the program in the engine and count nothing: what the engine alone costs
    #[arg(long, hide = true)]
    engine_only: bool,
    /// Do not watch out for code that keeps flags across returns: to measure what watching costs
    #[arg(long, hide = true)]
    abi_flags: bool,
    /// One instruction per block: slow, for finding mistranslations
    #[arg(long, hide = true)]
    single: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut bits = 0;
    for (on, bit) in [
        (args.engine_only, flags::NO_CLIENT),
        (args.mode.verbose, flags::VERBOSE),
        (!args.abi_flags, flags::WATCH_FLAGS),
        (args.single, flags::SINGLE),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let recording = args.mode.begin("count")?;
    let spec = Spec {
        command: &args.mode.command,
        blob: runtimes::COUNT,
        flags: bits,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &counts::prepare,
        duration: None,
    };
    let outcome = launch::run(&spec).map_err(mode::launch_failure)?;
    if args.engine_only {
        return Ok(ExitCode::from(outcome.ended.shell_code() as u8));
    }
    let counts = counts::read(&outcome.results);
    let mut run = recording.run(Data::Count(facts(&counts)))?;
    run.exit = mode::exit_of(outcome.ended);
    run.wall_ns = outcome.wall_ns;
    run.cpu_ns = outcome.cpu_ns;
    run.problems = counts.problems;
    recording.finish(vec![run])
}

/// The counts as a profile holds them.
fn facts(counts: &Counts) -> Count {
    let mut count = Count {
        total: tally(&counts.totals),
        threads: counts.threads.into(),
        by_thread: counts
            .by_thread
            .iter()
            .map(|t| ThreadTally { id: t.tid.into(), tally: tally(&t.totals) })
            .collect(),
        functions: Vec::new(),
    };
    count.normalize();
    count
}

fn tally(t: &Totals) -> Tally {
    Tally { instructions: t.instructions, blocks: t.blocks, loads: t.loads, stores: t.stores, calls: t.calls }
}
