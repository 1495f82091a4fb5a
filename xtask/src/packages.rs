//! Debian packages that a task needs: installed when we are root, otherwise named with the command to paste.

use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::shell;

/// A package and a command that proves it installed, whoever installed it.
pub struct Package {
    /// Debian's name.
    pub name: &'static str,
    /// A command that is on the PATH when it is installed.
    pub proof: &'static str,
}

/// For compiling test programs.
pub const COMPILERS: &[Package] = &[
    Package { name: "gcc", proof: "gcc" },
    Package { name: "g++", proof: "g++" },
    Package { name: "binutils", proof: "objcopy" },
];

/// For the demo: a real program.
pub const REAL: &[Package] = &[Package { name: "sqlite3", proof: "sqlite3" }];

/// For testing the page in a real browser.
pub const BROWSER: &[Package] = &[Package { name: "chromium", proof: "chromium" }];

/// Installs what is missing of `packages`, or says how to.
pub fn ensure(packages: &[&[Package]]) -> Result<()> {
    let missing: Vec<&str> =
        packages.iter().flat_map(|list| list.iter()).filter(|p| !on_path(p.proof)).map(|p| p.name).collect();
    if missing.is_empty() {
        return Ok(());
    }
    install(missing.into_iter())
}

/// Installs packages by name, or says how to.
pub fn install<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let names: Vec<&str> = names.collect();
    let list = names.join(" ");
    if !is_root()? {
        bail!("missing Debian packages; install them with\n\n    sudo apt-get install {list}\n");
    }
    shell::run(&["apt-get", "update", "-qq"])?;
    let mut install = vec!["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
    install.extend(&names);
    eprintln!("$ {}", install.join(" "));
    let status = Command::new(install[0])
        .args(&install[1..])
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .status()?;
    anyhow::ensure!(status.success(), "apt-get install {list} failed: {status}");
    Ok(())
}

fn on_path(command: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(command).is_file())
}

/// Whether packages can be installed.
pub fn is_root() -> Result<bool> {
    Ok(shell::output(&["id", "-u"])?.trim() == "0")
}
