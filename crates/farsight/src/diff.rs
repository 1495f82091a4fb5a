//! `farsight diff`: what changed between two profiles, beyond noise.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::exit::{Failure, Kind};
use crate::{output, profiles};

/// Say what changed from one profile to another, beyond noise
#[derive(clap::Args)]
pub struct Args {
    /// The profile before
    old: PathBuf,
    /// The profile after
    new: PathBuf,
    /// Write the changes as JSON, - for stdout
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Exit with 1 when a routine's growth class got worse
    #[arg(long)]
    fail_on_worse: bool,
    /// Read whatever is intact of damaged files
    #[arg(long)]
    salvage: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
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
