//! `farsight diff`: what changed between two profiles, beyond noise.

use std::path::PathBuf;
use std::process::ExitCode;

use analyse::idle::diff::Side;
use anyhow::Result;
use profile::{Data, Profile};
use serde_json::json;

use crate::exit::{Failure, Kind};
use crate::view::{self, CountView, IdleView};
use crate::{output, profiles};

/// Say what changed from one profile to another, beyond noise
///
/// Growth runs are compared routine by routine; counts are exact, so every difference is listed; of idle runs the
/// functions whose share of core time changed, program by program where there are several.
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
    let (idle_before, idle_after) = (view::idle_views(old)?, view::idle_views(new)?);
    match (idle_before.is_empty(), idle_after.is_empty()) {
        (false, false) => return idle(args, &idle_before, &idle_after),
        (lacks_old, lacks_new)
            if lacks_old != lacks_new && !grows && (before.is_empty() || after.is_empty()) =>
        {
            let (with, without) = if lacks_old { (&args.new, &args.old) } else { (&args.old, &args.new) };
            let message = anyhow::anyhow!(
                "{} holds idle runs and {} holds none: profiles are compared with those of the same mode",
                with.display(),
                without.display(),
            );
            return Err(Failure::error(Kind::Data, message));
        }
        _ => {}
    }
    if grows || before.len() != 1 || after.len() != 1 {
        return growth(args);
    }
    counts(args, &before.remove(0), &after.remove(0))
}

/// Programs are compared one by one, each with all its runs: a profile of several processes has many of them.
fn idle(args: &Args, old: &[IdleView], new: &[IdleView]) -> Result<ExitCode> {
    let (before, after) = (by_program(old), by_program(new));
    // What is called otherwise now is still compared if there is nothing else.
    let alone = before.len() == 1 && after.len() == 1;
    let partner = |name: &str| match alone {
        true => after.first(),
        false => after.iter().find(|a| a.0 == name),
    };
    let mut documents = Vec::new();
    let mut text = String::new();
    for (name, runs) in &before {
        let Some((_, others)) = partner(name) else {
            text.push_str(&format!("{name}: {} before, none after\n\n", count(runs.len())));
            continue;
        };
        let (was, is) = (side(runs), side(others));
        let changes = analyse::idle::diff::diff(&was, &is);
        if !alone {
            text.push_str(&format!("{name}\n"));
        }
        text.push_str(&report::idle::diff(&was, &is, &changes));
        if !alone {
            text.push('\n');
        }
        documents.push(report::idle::diff_json((&runs[0].run, &was), (&others[0].run, &is), &changes));
    }
    for (name, runs) in after.iter().filter(|a| !alone && !before.iter().any(|b| b.0 == a.0)) {
        text.push_str(&format!("{name}: none before, {} after\n\n", count(runs.len())));
    }
    if let Some(path) = &args.json {
        let document = match documents.len() {
            1 => documents.remove(0),
            _ => {
                json!({ "farsight": report::json::INTERFACE_VERSION, "kind": "diff", "mode": "idle", "programs": documents })
            }
        };
        output::write_json(path, &document)?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&text)?;
    }
    let all = |views: &[IdleView]| side(&views.iter().collect::<Vec<_>>()).wasted();
    Ok(ExitCode::from(u8::from(args.fail_on_worse && all(new) > all(old) + 0.01)))
}

/// Runs by the file name of their program, in order of appearance.
fn by_program(views: &[IdleView]) -> Vec<(&str, Vec<&IdleView>)> {
    let mut found: Vec<(&str, Vec<&IdleView>)> = Vec::new();
    for view in views {
        let path = view.run.program.path.as_str();
        let name = path.rsplit('/').next().unwrap_or(path);
        match found.iter_mut().find(|f| f.0 == name) {
            Some(known) => known.1.push(view),
            None => found.push((name, vec![view])),
        }
    }
    found
}

fn side(runs: &[&IdleView]) -> Side {
    Side::new(runs.iter().map(|v| (&v.idle, &v.analysis)))
}

fn count(runs: usize) -> String {
    if runs == 1 { "1 run".into() } else { format!("{runs} runs") }
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
