//! Rayon's own tests, natively and profiled: the same tests pass. Part of `cargo xtask test --full`; downloads what rayon's
//! tests need.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::shell;

const CRATES: &[&str] = &["rayon", "rayon-core"];

pub fn run() -> Result<()> {
    let folder = shell::root().join("target/rayon-tests");
    let project = folder.join("project");
    fs::create_dir_all(project.join("src"))?;
    fs::write(project.join("src/lib.rs"), "")?;
    fs::write(
        project.join("Cargo.toml"),
        "[package]\nname = \"with-rayon\"\nedition = \"2024\"\n[dependencies]\nrayon = \"1\"\n[workspace]\n",
    )?;
    // The sources as published, with their tests.
    succeeds(Command::new("cargo").args(["vendor", "-q", "vendor"]).current_dir(&project))?;
    let farsight = shell::root().join("target/release/farsight");
    for name in CRATES {
        let copy = folder.join(name);
        if copy.exists() {
            fs::remove_dir_all(&copy)?;
        }
        succeeds(Command::new("cp").arg("-r").arg(project.join("vendor").join(name)).arg(&copy))?;
        let manifest = fs::read_to_string(copy.join("Cargo.toml"))?;
        fs::write(copy.join("Cargo.toml"), format!("{manifest}\n[workspace]\n"))?;
        let tests = ["cargo", "test", "--no-fail-fast"];
        let native = passed(Command::new(tests[0]).args(&tests[1..]), &copy)?;
        let span = ["span", "-q", "--no-summary", "-o", "/dev/null", "--"];
        let profiled = passed(Command::new(&farsight).args(span).args(tests), &copy)?;
        let missing: Vec<&String> = native.difference(&profiled).collect();
        ensure!(missing.is_empty(), "{name}: these pass natively and not when profiled: {missing:?}");
        println!("{name}: {} tests pass, natively and profiled", native.len());
    }
    Ok(())
}

fn succeeds(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("{command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// The tests that pass, by name.
fn passed(command: &mut Command, folder: &Path) -> Result<BTreeSet<String>> {
    let output = command.current_dir(folder).output().with_context(|| format!("{command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let passed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... ok"))
        .map(str::to_owned)
        .collect();
    ensure!(!passed.is_empty(), "{command:?} ran no tests: {}", String::from_utf8_lossy(&output.stderr));
    Ok(passed)
}
