//! `cargo xtask page`: builds the report page's bundle, checks that the one checked in is up to date, and tests the
//! page in a real browser.
//!
//! The packages of npm are pinned by the lock file; their install scripts are not run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;

use crate::packages::{self, Package};
use crate::shell;

/// For building the page.
const NODE: &[Package] = &[Package { name: "nodejs", proof: "node" }, Package { name: "npm", proof: "npm" }];

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Subcommand)]
enum Step {
    /// Write `dist/` from the sources.
    Build,
    /// Say whether `dist/` is what the sources give.
    Check,
    /// Check the types and the bundle, run the unit tests and the tests in Chromium.
    Test,
}

pub fn run(args: &Args) -> Result<()> {
    match args.step {
        Step::Build => {
            prepare()?;
            node(&["build.mjs"], &[])
        }
        Step::Check => {
            prepare()?;
            node(&["build.mjs", "--check"], &[])
        }
        Step::Test => test(),
    }
}

/// Everything about the page that CI checks.
pub fn test() -> Result<()> {
    let chromium = chromium()?;
    prepare()?;
    node(&["build.mjs", "--check"], &[])?;
    node(&["build.mjs", "--tests"], &[])?;
    node(&["--test", ".build/unit/"], &[])?;
    let fixtures = shell::root().join("target/page-fixtures");
    let fixtures = fixtures.to_str().context("the project's path is not UTF-8")?;
    shell::run(&[
        "cargo",
        "run",
        "--quiet",
        "--package",
        "report",
        "--example",
        "page-fixtures",
        "--",
        fixtures,
    ])?;
    node(&["--test", ".build/browser/"], &[("PAGE_FIXTURES", fixtures), ("CHROMIUM", &chromium)])
}

/// The browser's path: what `CHROMIUM` says, or where the PATH has it.
fn chromium() -> Result<String> {
    if let Ok(path) = env::var("CHROMIUM") {
        return Ok(path);
    }
    packages::ensure(&[packages::BROWSER])?;
    let folders = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&folders).map(|f| f.join(packages::BROWSER[0].proof)).find(|p| p.is_file());
    let path = found.context("chromium is installed but not on the PATH")?;
    path.into_os_string().into_string().ok().context("chromium's path is not UTF-8")
}

/// Installs what the lock file names, unless that very set is there already, and checks the types.
fn prepare() -> Result<()> {
    packages::ensure(&[NODE])?;
    let lock = fs::read(folder().join("package-lock.json")).context("reading package-lock.json")?;
    let stamp = folder().join("node_modules/.installed-lock.json");
    if !fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        status(npm.current_dir(folder()))?;
        fs::write(&stamp, lock).context("noting which packages are installed")?;
    }
    node(&["node_modules/typescript/bin/tsc", "--noEmit"], &[])
}

fn node(words: &[&str], environment: &[(&str, &str)]) -> Result<()> {
    let mut node = Command::new("node");
    status(node.args(words).envs(environment.iter().copied()).current_dir(folder()))
}

fn status(command: &mut Command) -> Result<()> {
    let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
    let line = format!("{} {}", Path::new(command.get_program()).display(), words.join(" "));
    eprintln!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start {line}"))?;
    ensure!(status.success(), "{line} failed: {status}");
    Ok(())
}

fn folder() -> PathBuf {
    shell::root().join("crates/report/page")
}
