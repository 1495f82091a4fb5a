//! `cargo xtask demo`: builds everything and profiles the bundled programs.
//!
//! Growth profiles of the bundled C programs come from the oracle's compile-time hooks; `farsight` imports,
//! judges and shows them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use oracle::{Algorithm, Program};

use crate::{packages, shell};

/// The bundled programs and their arguments.
const PROGRAMS: &[(&str, &[&str])] = &[("wf.c", &["600"]), ("demo-growth.c", &[])];

pub fn run() -> Result<()> {
    packages::ensure(&[packages::COMPILERS])?;
    shell::run(&["cargo", "build", "--release", "--package", "farsight"])?;
    let folder = shell::root().join("target/demo");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the previous demo")?;
    }
    let mut pages = Vec::new();
    for (source, args) in PROGRAMS {
        pages.push(growth(&folder, source, args)?);
    }
    println!("\nWhere each routine's cost goes as its input grows, with the forecast for larger input:");
    for page in pages {
        println!("  {}", page.display());
    }
    Ok(())
}

/// Profiles one program and returns where its page lies.
fn growth(demo: &Path, source: &str, args: &[&str]) -> Result<PathBuf> {
    let name = source.trim_end_matches(".c");
    let folder = demo.join(name);
    fs::create_dir_all(&folder)?;
    let program = Program::build(&oracle::bundled(source), &folder, Algorithm::LatestAccess)?;
    let (_, reports) = program.run(args, &folder)?;
    let profile = folder.join(format!("{name}-growth.farsight"));
    let page = folder.join("growth.html");
    let mut import = vec!["import".to_string()];
    import.extend(reports.iter().map(|r| r.display().to_string()));
    import.extend(["-o".to_string(), profile.display().to_string()]);
    farsight(&import)?;
    farsight(&["report".into(), profile.display().to_string(), "--html".into(), page.display().to_string()])?;
    Ok(page)
}

fn farsight(args: &[String]) -> Result<()> {
    let mut words = vec!["target/release/farsight"];
    words.extend(args.iter().map(String::as_str));
    shell::run(&words)
}
