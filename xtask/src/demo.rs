//! `cargo xtask demo`: builds everything and profiles the bundled programs.
//!
//! `farsight growth` runs the bundled C programs, compiled as they are, and sqlite3 from the system.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{packages, shell};

/// The bundled programs and their arguments.
const PROGRAMS: &[(&str, &[&str])] = &[("wf.c", &["600"]), ("demo-growth.c", &[])];

pub fn run() -> Result<()> {
    packages::ensure(&[packages::COMPILERS, packages::REAL])?;
    shell::run(&["cargo", "build", "--release", "--package", "farsight"])?;
    let folder = shell::root().join("target/demo");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the previous demo")?;
    }
    let mut pages = Vec::new();
    for (source, args) in PROGRAMS {
        pages.push(growth(&folder, source, args)?);
    }
    pages.push(sqlite(&folder)?);
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
    let program = folder.join(name).display().to_string();
    let source = shell::root().join("oracle/programs").join(source).display().to_string();
    // Routines as they were written: not inlined, and no loop replaced by a call of libc.
    shell::run(&["gcc", "-O1", "-g", "-fno-builtin", "-fno-inline", &source, "-o", &program])?;
    let mut command = vec![program];
    command.extend(args.iter().map(|a| (*a).to_owned()));
    profile(&folder, name, &command)
}

/// Profiles a command and returns where its page lies.
fn profile(folder: &Path, name: &str, command: &[String]) -> Result<PathBuf> {
    fs::create_dir_all(folder)?;
    let page = folder.join("growth.html");
    let output = folder.join(format!("{name}-growth.farsight"));
    let mut words = vec!["growth".to_owned(), "-o".into(), output.display().to_string()];
    words.extend(["--html".into(), page.display().to_string(), "--".into()]);
    words.extend(command.iter().cloned());
    farsight(&words)?;
    Ok(page)
}

/// A real program: sqlite3 selects from tables of growing size in a database file. What it reads comes from the kernel
/// into one cache of pages again and again: rms would be blind to it.
fn sqlite(demo: &Path) -> Result<PathBuf> {
    let folder = demo.join("sqlite3");
    fs::create_dir_all(&folder)?;
    let database = folder.join("tables.db").display().to_string();
    let mut make = String::from("pragma cache_size=20;");
    let mut ask = String::from("pragma cache_size=20;");
    for k in 1..=20 {
        let rows = k * 400;
        make += &format!(
            "create table t{k}(a integer, b text); insert into t{k} with recursive c(x) as (select 1 union all select \
             x+1 from c where x<{rows}) select x, printf('%040d', x) from c;"
        );
        ask += &format!("select count(*), max(b) from t{k};");
    }
    shell::run(&["sqlite3", &database, &make])?;
    profile(&folder, "sqlite3", &["sqlite3".into(), database, ask])
}

fn farsight(args: &[String]) -> Result<()> {
    let mut words = vec!["target/release/farsight"];
    words.extend(args.iter().map(String::as_str));
    shell::run(&words)
}
