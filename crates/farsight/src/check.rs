//! `farsight check`: the complexity gate for CI.

use std::path::PathBuf;
use std::process::ExitCode;

use analyse::rule::{Finding, Outcome, Rule};
use anyhow::Result;

use crate::{output, profiles};

/// Fail when a routine grows faster than a rule allows
///
/// Exit status: 0 when no rule is broken, 1 when a confident fit is worse than its rule or a rule matches no
/// routine. Routines without enough data are listed and do not fail, unless --strict is given.
#[derive(clap::Args)]
pub struct Args {
    /// Profile file
    file: PathBuf,
    /// 'PATTERN: CLASS', such as 'parse_*: n log n'
    #[arg(long = "rule", required = true, value_name = "RULE")]
    rules: Vec<Rule>,
    /// Routines without enough data fail too
    #[arg(long)]
    strict: bool,
    /// Write the findings as JSON, - for stdout
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Read whatever is intact of a damaged file
    #[arg(long)]
    salvage: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let view = profiles::growth_view(&args.file, args.salvage)?;
    let analysis = view.analysis();
    let results: Vec<(Rule, Vec<Finding<'_, '_>>)> =
        args.rules.iter().map(|rule| (rule.clone(), rule.judge(&analysis))).collect();
    if let Some(path) = &args.json {
        output::write_json(path, &report::json::check(&view.run, &results))?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&report::terminal::check(&results, &analysis))?;
    }
    let broken = |finding: &Finding<'_, '_>| match finding.outcome {
        Outcome::Fail => true,
        Outcome::NotEnoughData => args.strict,
        Outcome::Pass => false,
    };
    let failed = results.iter().any(|(_, findings)| findings.is_empty() || findings.iter().any(broken));
    Ok(ExitCode::from(u8::from(failed)))
}
