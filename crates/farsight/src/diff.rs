//! `farsight diff`: what changed between two profiles, beyond noise.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use profile::{Data, Profile};

use crate::exit::{Failure, Kind};
use crate::view::{self, CountView, IdleView};
use crate::{output, profiles};

/// Say what changed from one profile to another, beyond noise
///
/// Growth runs are compared routine by routine; counts are exact, so every difference is listed; of idle runs the
/// functions whose share of core time changed.
#[derive(clap::Args)]
pub struct Args {
    /// The profile before
    old: PathBuf,
    /// The profile after
    new: PathBuf,
    /// Write the changes as JSON, - for stdout
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Exit with 1 when a routine's growth class got worse, more instructions were counted, or a larger share of core
    /// time was wasted
    #[arg(long)]
    fail_on_worse: bool,
    /// Read whatever is intact of damaged files
    #[arg(long)]
    salvage: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let (old, new) = (profiles::read(&args.old, args.salvage)?, profiles::read(&args.new, args.salvage)?);
    let (mut before, mut after) = (view::count_views(&old), view::count_views(&new));
    // Growth is compared when there is any: its changes say more than counts of the same runs.
    let grows = |p: &Profile| p.runs.iter().any(|run| matches!(run.data, Data::Growth(_)));
    let grows = grows(&old) || grows(&new);
    let (mut idle_before, mut idle_after) = (view::idle_views(old)?, view::idle_views(new)?);
    if idle_before.len() == 1 && idle_after.len() == 1 {
        return idle(args, &idle_before.remove(0), &idle_after.remove(0));
    }
    if grows || before.len() != 1 || after.len() != 1 {
        return growth(args);
    }
    counts(args, &before.remove(0), &after.remove(0))
}

fn idle(args: &Args, old: &IdleView, new: &IdleView) -> Result<ExitCode> {
    let changes = analyse::idle::diff::diff(&old.analysis, &new.analysis);
    if let Some(path) = &args.json {
        output::write_json(path, &report::idle::diff_json(&old.run, &new.run, &changes))?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&report::idle::diff(&old.analysis, &new.analysis, &changes))?;
    }
    let wasted = |v: &IdleView| {
        let t = &v.analysis.totals;
        (t.values.idle_ns + t.values.overhead_ns() as i64) as f64 / t.cores_times_wall_ns.max(1) as f64
    };
    Ok(ExitCode::from(u8::from(args.fail_on_worse && wasted(new) > wasted(old) + 0.01)))
}

fn counts(args: &Args, old: &CountView, new: &CountView) -> Result<ExitCode> {
    let changes = analyse::count::diff(&old.count, &new.count);
    if let Some(path) = &args.json {
        let document = report::json::count_diff((&old.run, &old.count), (&new.run, &new.count), &changes);
        output::write_json(path, &document)?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&report::terminal::count_diff(&old.count, &new.count, &changes))?;
    }
    let worse = new.count.total.instructions > old.count.total.instructions;
    Ok(ExitCode::from(u8::from(args.fail_on_worse && worse)))
}

fn growth(args: &Args) -> Result<ExitCode> {
    let old = profiles::growth_view(&args.old, args.salvage)?;
    let new = profiles::growth_view(&args.new, args.salvage)?;
    let (a, b) = (&old.growth, &new.growth);
    if (a.metric, a.cost, a.cell_bytes) != (b.metric, b.cost, b.cell_bytes) {
        let message = anyhow::anyhow!(
            "{} and {} cannot be compared: they measure {}, {}, cells of {} bytes and {}, {}, cells of {} bytes",
            args.old.display(),
            args.new.display(),
            a.metric.name(),
            a.cost.name(),
            a.cell_bytes,
            b.metric.name(),
            b.cost.name(),
            b.cell_bytes,
        );
        return Err(Failure::error(Kind::Data, message));
    }
    let (before, after) = (analyse::analyse(a), analyse::analyse(b));
    let changes = analyse::diff::diff(&before, &after);
    if let Some(path) = &args.json {
        output::write_json(path, &report::json::diff(&old.run, &new.run, &changes))?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&report::terminal::diff(&changes))?;
    }
    let worse = changes.iter().any(|c| c.worse && c.kind == analyse::diff::ChangeKind::Class);
    Ok(ExitCode::from(u8::from(args.fail_on_worse && worse)))
}
