//! Running commands: echoed, from the project's root, with failures that name the command.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The project's root folder.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// A command that runs in the project's root.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(root());
    command
}

/// Runs a command to its end, showing it and its output.
pub fn run(words: &[&str]) -> Result<()> {
    eprintln!("$ {}", words.join(" "));
    let status = command(words).status().with_context(|| format!("cannot start {}", words[0]))?;
    ensure!(status.success(), "{} failed: {status}", words.join(" "));
    Ok(())
}

/// Runs a command and returns what it printed.
pub fn output(words: &[&str]) -> Result<String> {
    let output = command(words)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", words[0]))?;
    ensure!(output.status.success(), "{} failed: {}", words.join(" "), output.status);
    String::from_utf8(output.stdout).context("output is not UTF-8")
}
