//! Debian packages that a task needs: installed when we are root, otherwise named with the command to paste.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::shell;

/// A package and what proves it installed, whoever installed it.
pub struct Package {
    /// Debian's name.
    pub name: &'static str,
    /// A command that is on the PATH, or a file by its whole path.
    pub proof: &'static str,
}

/// For compiling test programs.
pub const COMPILERS: &[Package] = &[
    Package { name: "gcc", proof: "gcc" },
    Package { name: "g++", proof: "g++" },
    Package { name: "binutils", proof: "objcopy" },
];

/// For tests that are skipped without them: the other compiler, its OpenMP, the other linkers.
pub const OTHER_COMPILERS: &[Package] = &[
    Package { name: "clang", proof: "clang" },
    Package { name: "libomp-dev", proof: "/usr/lib/x86_64-linux-gnu/libomp.so.5" },
    Package { name: "lld", proof: "ld.lld" },
    Package { name: "mold", proof: "mold" },
];

/// For the demo: a real program.
pub const REAL: &[Package] = &[Package { name: "sqlite3", proof: "sqlite3" }];

/// For the benchmarks of the engine and of growth: programs that they run.
pub const BENCHED: &[Package] = &[
    Package { name: "bzip2", proof: "bzip2" },
    Package { name: "pigz", proof: "pigz" },
    Package { name: "python3", proof: "/usr/bin/python3" },
    Package { name: "util-linux", proof: "taskset" },
    Package { name: "xz-utils", proof: "xz" },
];

/// For testing the page in a real browser.
pub const BROWSER: &[Package] = &[Package { name: "chromium", proof: "chromium" }];

/// Installs what is missing of `packages`, or says how to.
pub fn ensure(packages: &[&[Package]]) -> Result<()> {
    let missing = missing(packages);
    if missing.is_empty() {
        return Ok(());
    }
    install(missing.into_iter())
}

/// Installs what is missing of `packages` if we are root; otherwise says what is skipped without them.
pub fn want(packages: &[&[Package]]) -> Result<()> {
    want_by_name(missing(packages).into_iter())
}

/// Likewise, all that are named.
pub fn want_by_name<'a>(names: impl Iterator<Item = &'a str>) -> Result<()> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    if is_root()? {
        return install(names.into_iter());
    }
    eprintln!(
        "not root: what is missing is skipped; to have all of it: sudo apt-get install {}",
        names.join(" ")
    );
    Ok(())
}

fn missing(packages: &[&[Package]]) -> Vec<&'static str> {
    packages.iter().flat_map(|list| list.iter()).filter(|p| !is_there(p.proof)).map(|p| p.name).collect()
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

fn is_there(proof: &str) -> bool {
    if proof.starts_with('/') {
        return Path::new(proof).exists();
    }
    on_path(proof)
}

fn on_path(command: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(command).is_file())
}

/// Whether packages can be installed.
fn is_root() -> Result<bool> {
    Ok(shell::output(&["id", "-u"])?.trim() == "0")
}
