//! `farsight growth`: how the cost of every routine grows with its input, from one run.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use collect::growth::{self, Request};
use launch::{Followed, Spec};
use profile::Data;
use wire::boot::flags;
use wire::growth as wire_growth;

use crate::mode::{self, ModeArgs};

/// Measure how the cost of each routine grows with the size of the input that it really got
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// What the size of an input counts
    #[arg(long, value_enum, default_value = "trms")]
    metric: Metric,
    /// Bytes of a memory cell
    #[arg(long, value_name = "BYTES", default_value = "4", value_parser = ["1", "2", "4", "8", "16"])]
    cell: String,
    /// What costs count
    #[arg(long, value_enum, default_value = "blocks")]
    cost: Cost,
    /// Whose work on its own data is nobody's input
    #[arg(long, value_enum, default_value = "alloc")]
    fold: Fold,
    /// Also profile the programs that it starts: one run for each
    #[arg(long)]
    follow: bool,
    /// End the program (as Ctrl-C does) after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Bits of a stamp: fewer than 32 make threads run out of them
    #[arg(long, hide = true, default_value = "32")]
    stamp_bits: u32,
    /// Trust the ABI that no flags live across calls and returns
    #[arg(long, hide = true)]
    abi_flags: bool,
    /// Let the code cache become so large, in units of 16 KB, before it is emptied: for tests
    #[arg(long, hide = true, default_value_t = 0)]
    cache_units: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Metric {
    /// Cells first accessed with a read
    Rms,
    /// Also those that other threads or the kernel wrote since
    Trms,
    /// Both in one run
    Both,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Cost {
    /// Basic blocks
    Blocks,
    /// Instructions
    Instructions,
    /// Loads and stores
    Memory,
    /// Time
    Time,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Fold {
    /// Allocators and the dynamic linker
    Alloc,
    /// Nobody's: everything that a routine causes to be read is its input
    None,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let request = Request {
        metric: match args.metric {
            Metric::Rms => wire_growth::Metric::Rms,
            Metric::Trms => wire_growth::Metric::Trms,
            Metric::Both => wire_growth::Metric::Both,
        },
        cost: match args.cost {
            Cost::Blocks => wire_growth::Cost::Blocks,
            Cost::Instructions => wire_growth::Cost::Instructions,
            Cost::Memory => wire_growth::Cost::Memory,
            Cost::Time => wire_growth::Cost::Time,
        },
        cell_bytes: args.cell.parse()?,
        fold: match args.fold {
            Fold::Alloc => wire_growth::fold::ALLOC | wire_growth::fold::LINKER,
            Fold::None => 0,
        },
        stamp_bits: args.stamp_bits.clamp(8, 32),
    };
    let mut bits = if args.abi_flags { 0 } else { flags::WATCH_FLAGS };
    bits |= if args.mode.verbose { flags::VERBOSE } else { 0 };
    bits |= u32::from(args.cache_units) << flags::CACHE_SHIFT;
    let recording = args.mode.begin("growth")?;
    let spec = Spec {
        command: &args.mode.command,
        blob: runtimes::GROWTH,
        flags: bits,
        fixed_bytes: wire_growth::FIXED_BYTES,
        prepare: &|results| growth::prepare(results, &request),
        duration: args.duration.map(Duration::from_secs_f64),
    };
    let mut children = Vec::new();
    let mut each = |f: Followed| children.push((growth::read(&f.results, &request), f));
    let outcome = launch::run_with(&spec, None, if args.follow { Some(&mut each) } else { None });
    let outcome = outcome.map_err(mode::launch_failure)?;
    let collected = growth::read(&outcome.results, &request);
    if args.mode.verbose {
        args.mode.say(format_args!("{} renumberings", collected.renumberings));
    }
    let mut runs = Vec::new();
    for growth in collected.profiles {
        let mut run = recording.run(Data::Growth(growth))?;
        run.exit = mode::exit_of(outcome.ended);
        run.wall_ns = outcome.wall_ns;
        run.cpu_ns = outcome.cpu_ns;
        run.problems.clone_from(&collected.problems);
        run.problems.extend(outcome.problems.iter().cloned());
        runs.push(run);
    }
    for (collected, child) in children {
        for growth in collected.profiles {
            let mut run = recording.child(&(&child).into(), Data::Growth(growth))?;
            run.problems.extend(collected.problems.iter().cloned());
            runs.push(run);
        }
    }
    recording.finish(runs)
}
