//! `cargo xtask test`: what CI runs. Cheap checks come first; the tests come last, so that the closing lines
//! are theirs.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};

use crate::{packages, page, rayon_tests, shell, tidy};

/// Tests that passed and failed.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
}

#[derive(clap::Args)]
pub struct Args {
    /// Then also run real programs (compilers, servers, interpreters, codecs) under the engine, and rayon's own tests
    /// profiled: takes an hour.
    #[arg(long)]
    full: bool,
    /// Nothing but rayon's own tests, natively and profiled; the tool must have been built with --release.
    #[arg(long, conflicts_with = "full")]
    rayon: bool,
}

pub fn run(args: &Args) -> Result<()> {
    if args.rayon {
        return rayon_tests::run();
    }
    ci()?;
    if args.full {
        real_programs()?;
        rayon_tests::run()?;
    }
    Ok(())
}

/// The full ring of `transparency`: output, exit status and files of real programs are the same under `count`. Each
/// program has a time limit of its own; those that are not installed are skipped by name.
fn real_programs() -> Result<()> {
    let list = std::fs::read_to_string(shell::root().join("crates/transparency/packages.txt"))?;
    let names = list.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#'));
    packages::want_by_name(names)?;
    shell::run(&["cargo", "build", "--release", "-p", "farsight", "-p", "transparency"])?;
    let root = shell::root();
    let wrapper =
        format!("{} count --no-summary -q -o /dev/null --", root.join("target/release/farsight").display());
    let transparency = root.join("target/release/transparency");
    let transparency = transparency.to_str().context("the project's path is not UTF-8")?;
    shell::run(&[transparency, "--ring", "full", "--except-limits", "--wrapper", &wrapper])
}

fn ci() -> Result<()> {
    packages::ensure(&[packages::COMPILERS, packages::BROWSER])?;
    packages::want(&[packages::OTHER_COMPILERS])?;
    shell::run(&["cargo", "fmt", "--all", "--check"])?;
    shell::run(&["cargo", "clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    tidy::run()?;
    page::test()?;
    let mut tally = Tally::default();
    // Some examples are libraries that tests load into programs; `--all-targets` would build them as tests.
    shell::run(&["cargo", "build", "--workspace", "--bins", "--examples"])?;
    let documentation = cargo_test(&["--doc"], &mut tally);
    let tests = cargo_test(&["--lib", "--bins", "--tests"], &mut tally);
    println!("{} passed, {} failed", tally.passed, tally.failed);
    documentation.and(tests)
}

/// Runs cargo's test runner, passing its output through and adding up its result lines. Tests that judge the
/// engine find the tool through FARSIGHT_BIN.
fn cargo_test(targets: &[&str], tally: &mut Tally) -> Result<()> {
    let mut words = vec!["cargo", "test", "--workspace", "--no-fail-fast"];
    words.extend(targets);
    eprintln!("$ {}", words.join(" "));
    let farsight = shell::root().join("target/debug/farsight");
    let mut child = shell::command(&words).env("FARSIGHT_BIN", farsight).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().context("no stdout")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        tally.add(&line);
        println!("{line}");
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} failed: {status}", words.join(" "));
    Ok(())
}

impl Tally {
    /// Adds a line such as `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        for part in result.split(['.', ';']) {
            match part.trim().split_once(' ') {
                Some((n, "passed")) => self.passed += n.parse().unwrap_or(0),
                Some((n, "failed")) => self.failed += n.parse().unwrap_or(0),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_add_up() {
        let mut tally = Tally::default();
        tally.add(
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        );
        tally.add("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out");
        tally.add("test tests::result ... ok");
        assert_eq!((tally.passed, tally.failed), (15, 2));
    }
}
