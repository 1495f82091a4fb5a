//! Where results go: stdout or a file, whole or not at all.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes `text` to stdout.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

/// Writes `bytes` to `path`, `-` meaning stdout.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    if path == Path::new("-") {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.flush()?;
        return Ok(());
    }
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a JSON document with a final newline to `path`, `-` meaning stdout.
pub fn write_json(path: &Path, document: &serde_json::Value) -> Result<()> {
    let mut text = serde_json::to_string_pretty(document)?;
    text.push('\n');
    write(path, text.as_bytes())
}
