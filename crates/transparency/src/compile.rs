//! Builds a test program from source, once per content.
//!
//! The output's name holds a hash of everything that goes in: source, every header that it might include, compiler,
//! flags. So an edit rebuilds, and nothing else does. Files are made under another name and renamed, so that two
//! harnesses in one tree never see half a program.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The compilers by file ending, with the flags that every program gets.
const COMPILERS: &[(&str, &str, &[&str])] = &[
    ("c", "gcc", &["-std=gnu17", "-O2", "-g", "-Wall", "-Wextra"]),
    ("cpp", "g++", &["-std=gnu++17", "-O2", "-g", "-Wall", "-Wextra"]),
    ("S", "gcc", &["-g"]),
    ("rs", "rustc", &["--edition", "2024", "-O", "-g"]),
];

/// A folder of built programs.
#[derive(Clone, Debug)]
pub struct Builder {
    /// Where they go.
    pub out: PathBuf,
}

impl Builder {
    /// Builds `source` into a program.
    pub fn program(&self, source: &Path, flags: &[String]) -> Result<PathBuf> {
        self.build(source, flags, false)
    }

    /// Builds `source` into a shared library.
    pub fn library(&self, source: &Path) -> Result<PathBuf> {
        self.build(source, &[], true)
    }

    fn build(&self, source: &Path, flags: &[String], shared: bool) -> Result<PathBuf> {
        let ending = source.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let Some((_, compiler, common)) = COMPILERS.iter().find(|c| c.0 == ending) else {
            bail!("{}: no compiler for .{ending} files", source.display());
        };
        let stem = source.file_stem().and_then(|s| s.to_str()).context("source without a name")?;
        let mut hash = DefaultHasher::new();
        (compiler, common, flags, shared, version(compiler)?).hash(&mut hash);
        fs::read(source).with_context(|| format!("cannot read {}", source.display()))?.hash(&mut hash);
        for header in headers(source)? {
            fs::read(header)?.hash(&mut hash);
        }
        let folder = self.out.join(format!("{:016x}", hash.finish()));
        let name = if shared { format!("{stem}.so") } else { stem.to_owned() };
        let built = folder.join(&name);
        if built.exists() {
            return Ok(built);
        }
        fs::create_dir_all(&folder)?;
        let fresh = folder.join(format!(".{name}.{}", std::process::id()));
        let mut command = Command::new(compiler);
        command.args(*common);
        if shared {
            command.args(["-shared", "-fPIC"]);
        }
        command.arg(source).arg("-o").arg(&fresh).args(flags);
        let output = command.output().with_context(|| format!("cannot run {compiler}"))?;
        if !output.status.success() || !output.stderr.is_empty() {
            // Warnings count: a test program that the compiler doubts proves little.
            bail!("{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        fs::rename(&fresh, &built)?;
        Ok(built)
    }
}

/// Headers in the source's folder and the one above: all that these programs include of ours.
fn headers(source: &Path) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for dir in source.ancestors().skip(1).take(2) {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|e| e == "h") {
                all.push(path);
            }
        }
    }
    all.sort();
    Ok(all)
}

fn version(compiler: &str) -> Result<Vec<u8>> {
    Ok(Command::new(compiler)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {compiler}"))?
        .stdout)
}
