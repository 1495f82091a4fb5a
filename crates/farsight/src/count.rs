//! `farsight count`: exact counts of what a program executed, without hardware counters.

use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use launch::counts::{self, Counts};
use launch::{Followed, Results, Spec};
use profile::{Count, Data, Function, Tally, ThreadTally};
use wire::boot::flags;
use wire::count::Totals;

use crate::functions::Names;
use crate::mode::{self, ModeArgs};

/// Count executed instructions, blocks, loads, stores and calls, exactly
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// Also count by function: calls, instructions of its own, and with everything that it called
    #[arg(long)]
    functions: bool,
    /// Also count children: one run for each program
    #[arg(long)]
    follow: bool,
    /// Run the program in the engine and count nothing: what the engine alone costs
    #[arg(long, hide = true)]
    engine_only: bool,
    /// Do not watch out for code that keeps flags across returns: to measure what watching costs
    #[arg(long, hide = true)]
    abi_flags: bool,
    /// Have a bug some way into the program: to see what happens then
    #[arg(long, hide = true)]
    fail: bool,
    /// Let the code cache become so large, in units of 16 KB, before it is emptied: for tests
    #[arg(long, hide = true, default_value_t = 0)]
    cache_units: u16,
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
        (args.fail, flags::FAIL),
        (args.functions, flags::FUNCTIONS),
    ] {
        bits |= if on { bit } else { 0 };
    }
    bits |= u32::from(args.cache_units) << flags::CACHE_SHIFT;
    let recording = args.mode.begin("count")?;
    let spec = Spec {
        command: &args.mode.command,
        blob: runtimes::COUNT,
        flags: bits,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &counts::prepare,
        duration: None,
    };
    let names = Mutex::new(Names::new());
    let locked = || names.lock().unwrap_or_else(PoisonError::into_inner);
    let mut answer = |question| locked().answer(question);
    let mut children: Vec<(Followed, Facts)> = Vec::new();
    let mut each = |f: Followed| {
        let names = locked();
        let facts = facts(&f.results, args.functions.then_some(&*names));
        // What ended before its first instruction did nothing.
        if facts.count.total.instructions != 0 {
            children.push((f, facts));
        }
    };
    let outcome = launch::run_with(
        &spec,
        if args.functions { Some(&mut answer) } else { None },
        if args.follow { Some(&mut each) } else { None },
    );
    let outcome = outcome.map_err(mode::launch_failure)?;
    if args.engine_only {
        return Ok(ExitCode::from(outcome.ended.shell_code() as u8));
    }
    let names = locked();
    let first = facts(&outcome.results, args.functions.then_some(&*names));
    let mut run = recording.run(Data::Count(first.count))?;
    run.exit = mode::exit_of(outcome.ended);
    run.wall_ns = outcome.wall_ns;
    run.cpu_ns = outcome.cpu_ns;
    run.problems = first.problems;
    run.problems.extend(outcome.problems);
    if args.functions {
        run.problems.extend(names.problems());
    }
    let mut runs = vec![run];
    for (child, facts) in children {
        let mut run = recording.child(&(&child).into(), Data::Count(facts.count))?;
        run.problems.extend(facts.problems);
        runs.push(run);
    }
    recording.finish(runs)
}

/// What one program image executed.
struct Facts {
    count: Count,
    problems: Vec<String>,
}

fn facts(results: &Results, names: Option<&Names>) -> Facts {
    let counts = counts::read(results);
    let functions = names
        .map(|names| names.functions(&counts::read_functions(results, names.count())))
        .unwrap_or_default();
    Facts { count: as_kept(&counts, functions), problems: counts.problems }
}

/// The counts as a profile holds them.
fn as_kept(counts: &Counts, functions: Vec<Function>) -> Count {
    let mut count = Count {
        total: tally(&counts.totals),
        threads: counts.threads.into(),
        by_thread: counts
            .by_thread
            .iter()
            .map(|t| ThreadTally { id: t.tid.into(), tally: tally(&t.totals) })
            .collect(),
        functions,
    };
    count.normalize();
    count
}

fn tally(t: &Totals) -> Tally {
    Tally { instructions: t.instructions, blocks: t.blocks, loads: t.loads, stores: t.stores, calls: t.calls }
}
