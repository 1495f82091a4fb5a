//! `farsight report`: what a profile says, on the terminal, as a page, as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use analyse::GrowthAnalysis;
use anyhow::Result;
use report::html::PageRun;
use serde_json::{Value, json};

use crate::profiles::{self, GrowthView};
use crate::{browser, output};

/// Show what profiles say
///
/// Runs of one program in one file are added up. Two files are shown side by side on the page.
#[derive(clap::Args)]
pub struct Args {
    /// Profile files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Write the report page
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
    /// Write the result as JSON, - for stdout
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Read whatever is intact of damaged files
    #[arg(long)]
    salvage: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let views = profiles::growth_views(&args.files, args.salvage)?;
    let analyses: Vec<GrowthAnalysis<'_>> = views.iter().map(|v| analyse::analyse(&v.growth)).collect();
    let json_on_stdout = args.json.as_deref().is_some_and(|p| p.as_os_str() == "-");
    if !json_on_stdout {
        let texts: Vec<String> = views
            .iter()
            .zip(&analyses)
            .map(|(v, a)| report::terminal::growth(&v.run, &v.growth, a))
            .collect();
        output::print(&texts.join("\n"))?;
    }
    if let Some(path) = &args.json {
        output::write_json(path, &document(&views, &analyses))?;
    }
    if args.html.is_some() || args.open {
        let path = args.html.clone().unwrap_or_else(|| args.files[0].with_extension("html"));
        output::write(&path, page(&views, &analyses).as_bytes())?;
        eprintln!("farsight: wrote {}", path.display());
        if args.open {
            browser::open(&path)?;
        }
    } else if !json_on_stdout {
        let files: Vec<String> = args.files.iter().map(|f| f.display().to_string()).collect();
        eprintln!("farsight: next: farsight report {} --html report.html --open", files.join(" "));
    }
    Ok(ExitCode::SUCCESS)
}

/// The page on these runs, with the source lines that can still be read on this machine.
fn page(views: &[GrowthView], analyses: &[GrowthAnalysis<'_>]) -> String {
    let sources = |path: &str| std::fs::read_to_string(path).ok();
    let runs: Vec<PageRun<'_>> = views
        .iter()
        .zip(analyses)
        .map(|(v, analysis)| PageRun { run: &v.run, growth: &v.growth, analysis, sources: &sources })
        .collect();
    report::html::page(&runs)
}

/// One run's document as it is; several in a list.
fn document(views: &[GrowthView], analyses: &[GrowthAnalysis<'_>]) -> Value {
    let mut documents: Vec<Value> =
        views.iter().zip(analyses).map(|(v, a)| report::json::growth(&v.run, &v.growth, a)).collect();
    match documents.len() {
        1 => documents.remove(0),
        _ => json!({ "farsight": report::json::INTERFACE_VERSION, "kind": "report", "runs": documents }),
    }
}
