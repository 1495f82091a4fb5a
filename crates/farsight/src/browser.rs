//! Opening a page in whatever browser the desktop prefers.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::exit::{Failure, Kind};

/// Hands the page to the desktop.
pub fn open(page: &Path) -> Result<()> {
    let page = page.canonicalize().context("the page that was just written is gone")?;
    let status = Command::new("xdg-open").arg(&page).stdout(Stdio::null()).stderr(Stdio::null()).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => {
            let message = format!("no browser could be started (xdg-open); open {} yourself", page.display());
            Err(Failure::error(Kind::Unavailable, anyhow::anyhow!(message)))
        }
    }
}
