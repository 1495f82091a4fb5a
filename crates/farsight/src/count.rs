//! `farsight count`: exact counts of what a program executed, without hardware counters.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use launch::counts::{self, Counts};
use launch::{LaunchError, Outcome, Spec};
use serde_json::json;
use wire::boot::flags;

use crate::exit::{Failure, Kind};
use crate::output;

/// Count executed instructions, blocks, loads, stores and calls, exactly
#[derive(clap::Args)]
pub struct Args {
    /// Write the result as JSON (- for stdout)
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// No messages and no summary
    #[arg(short, long)]
    quiet: bool,
    /// No table on stdout
    #[arg(long)]
    no_summary: bool,
    /// Say what the engine does
    #[arg(short, long)]
    verbose: bool,
    /// Run the program in the engine and count nothing: what the engine alone costs
    #[arg(long)]
    engine_only: bool,
    /// Trust the ABI that no flags live across calls and returns: faster, and wrong for code that gcc's
    /// -fipa-ra compiled so
    #[arg(long, hide = true)]
    abi_flags: bool,
    /// One instruction per block: slow, for finding mistranslations
    #[arg(long, hide = true)]
    single: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut bits = 0;
    for (on, bit) in [
        (args.engine_only, flags::NO_CLIENT),
        (args.verbose, flags::VERBOSE),
        (!args.abi_flags, flags::CONSERVATIVE_FLAGS),
        (args.single, flags::SINGLE),
    ] {
        bits |= if on { bit } else { 0 };
    }
    let spec = Spec {
        command: &args.command,
        blob: runtimes::COUNT,
        flags: bits,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &counts::prepare,
        limit: (0, 0),
    };
    let outcome = launch::run(&spec).map_err(failure)?;
    let counts = counts::read(&outcome.results);
    if let Some(path) = &args.json {
        output::write_json(path, &document(args, &outcome, &counts))?;
    }
    if !args.quiet {
        for p in &counts.problems {
            eprintln!("farsight: {p}");
        }
        if !args.no_summary && !args.engine_only && args.json.as_deref() != Some("-".as_ref()) {
            output::print(&table(&counts))?;
        }
    }
    Ok(ExitCode::from(outcome.ended.shell_code() as u8))
}

fn failure(e: LaunchError) -> anyhow::Error {
    let kind = match e {
        LaunchError::NotFound(_) | LaunchError::NotExecutable(..) => Kind::NoInput,
        LaunchError::Bug(_) => Kind::Bug,
        LaunchError::ThirtyTwoBit(_)
        | LaunchError::Static(_)
        | LaunchError::Privileged(_)
        | LaunchError::Lacks(_)
        | LaunchError::System { .. }
        | LaunchError::AddressSpace { .. } => Kind::Unavailable,
    };
    Failure::error(kind, e)
}

fn document(args: &Args, o: &Outcome, c: &Counts) -> serde_json::Value {
    let command: Vec<String> = args.command.iter().map(|a| a.to_string_lossy().into_owned()).collect();
    let by_thread: Vec<_> = c
        .by_thread
        .iter()
        .map(|t| {
            json!({"tid": t.tid, "instructions": t.totals.instructions, "blocks": t.totals.blocks,
                   "loads": t.totals.loads, "stores": t.totals.stores, "calls": t.totals.calls})
        })
        .collect();
    json!({
        "farsight": 1, "kind": "count", "command": command, "exit": o.ended.shell_code(),
        "wall_ns": o.wall_ns, "cpu_ns": o.cpu_ns, "problems": c.problems, "threads": c.threads,
        "instructions": c.totals.instructions, "blocks": c.totals.blocks, "loads": c.totals.loads,
        "stores": c.totals.stores, "calls": c.totals.calls, "by_thread": by_thread,
    })
}

fn table(c: &Counts) -> String {
    let rows = [
        ("instructions", c.totals.instructions),
        ("blocks", c.totals.blocks),
        ("loads", c.totals.loads),
        ("stores", c.totals.stores),
        ("calls", c.totals.calls),
        ("threads", c.threads.into()),
    ];
    let numbers: Vec<String> = rows.iter().map(|r| grouped(r.1)).collect();
    let width = numbers.iter().map(String::len).max().unwrap_or(0);
    rows.iter().zip(&numbers).map(|((name, _), n)| format!("{n:>width$}  {name}\n")).collect()
}

/// A number with a comma every three digits.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1234), "1,234");
        assert_eq!(grouped(1_000_000), "1,000,000");
    }
}
