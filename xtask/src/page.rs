//! `cargo xtask page`: builds the report page's bundle, checks that the one checked in is up to date, and tests the
//! page in a real browser.
//!
//! Node and Chromium are Debian packages: as root they are installed when missing, otherwise the command to run is
//! said. The packages of npm are pinned by the lock file; their install scripts are not run.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;

/// Names that Chromium goes by.
const CHROMIUM_NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

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

pub fn run(args: Args) -> Result<()> {
    let page = root().join("crates/report/page");
    packages(&page)?;
    node(&page, ["node_modules/typescript/bin/tsc", "--noEmit"])?;
    match args.step {
        Step::Build => node(&page, ["build.mjs"]),
        Step::Check => node(&page, ["build.mjs", "--check"]),
        Step::Test => test(&page),
    }
}

fn test(page: &Path) -> Result<()> {
    node(page, ["build.mjs", "--check"])?;
    node(page, ["build.mjs", "--tests"])?;
    node(page, ["--test", ".build/unit/"])?;
    let chromium = chromium()?;
    let fixtures = root().join("target/page-fixtures");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut write = Command::new(cargo);
    write.args(["run", "--quiet", "--package", "report", "--example", "page-fixtures", "--"]).arg(&fixtures);
    status(write.current_dir(root()))?;
    let mut tests = Command::new("node");
    tests.args(["--test", ".build/browser/"]).env("PAGE_FIXTURES", &fixtures).env("CHROMIUM", chromium);
    status(tests.current_dir(page))
}

/// Installs the packages of the lock file, unless these very ones are there already.
fn packages(page: &Path) -> Result<()> {
    if find(&["node"]).is_none() || find(&["npm"]).is_none() {
        install(&["nodejs", "npm"])?;
    }
    let lock = fs::read(page.join("package-lock.json")).context("reading package-lock.json")?;
    let stamp = page.join("node_modules/.installed-lock.json");
    if fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    status(npm.current_dir(page))?;
    fs::write(&stamp, lock).context("noting which packages are installed")
}

fn chromium() -> Result<PathBuf> {
    if let Some(path) = env::var_os("CHROMIUM") {
        return Ok(path.into());
    }
    if find(&CHROMIUM_NAMES).is_none() {
        install(&["chromium"])?;
    }
    find(&CHROMIUM_NAMES).context("chromium is not in PATH although its package is installed")
}

fn install(debian_packages: &[&str]) -> Result<()> {
    let list = debian_packages.join(" ");
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !is_root || find(&["apt-get"]).is_none() {
        bail!("{list} missing; install with\n    sudo apt-get install -y {list}");
    }
    eprintln!("installing {list}");
    status(Command::new("apt-get").args(["update", "-qq"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "-y", "-qq", "--no-install-recommends"]).args(debian_packages);
    status(apt.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// The first of these programs that PATH has.
fn find(names: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    names.iter().flat_map(|n| folders.iter().map(move |f| f.join(n))).find(|p| p.is_file())
}

fn node<S: AsRef<OsStr>>(page: &Path, args: impl IntoIterator<Item = S>) -> Result<()> {
    status(Command::new("node").args(args).current_dir(page))
}

fn status(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("starting {name}"))?;
    if !status.success() {
        let args: Vec<_> = command.get_args().map(|a| a.to_string_lossy()).collect();
        bail!("{name} {} failed: {status}", args.join(" "));
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}
