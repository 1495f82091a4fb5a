//! `farsight report`: what a profile says, on the terminal, as a page, as JSON.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use crate::view;
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
    let views = view::of_files(&args.files, args.salvage)?;
    let json_on_stdout = args.json.as_deref().is_some_and(|p| p.as_os_str() == "-");
    if !json_on_stdout {
        output::print(&view::terminal(&views))?;
    }
    if let Some(path) = &args.json {
        output::write_json(path, &view::document(&views))?;
    }
    if args.html.is_some() || args.open {
        let path = args.html.clone().unwrap_or_else(|| args.files[0].with_extension("html"));
        output::write(&path, view::page(&views).as_bytes())?;
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
