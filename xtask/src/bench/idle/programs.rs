//! The programs that are measured: compiled once, run natively or profiled.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;

/// Where everything is.
pub struct Programs {
    farsight: PathBuf,
    /// Compiled programs and profiles.
    pub out: PathBuf,
}

/// Name, compiler and flags of the C programs; `clang-` ones are the same sources on libomp.
const COMPILED: &[(&str, &[&str])] = &[
    ("phases", &["gcc", "-O2", "-g", "-pthread", "phases.c"]),
    ("imbalance", &["gcc", "-O2", "-g", "-fopenmp", "imbalance.c"]),
    ("clang-imbalance", &["clang", "-O2", "-g", "-fopenmp", "imbalance.c"]),
    ("team", &["gcc", "-O2", "-g", "-fopenmp", "team.c"]),
    ("clang-team", &["clang", "-O2", "-g", "-fopenmp", "team.c"]),
    ("cholesky", &["gcc", "-O2", "-g", "-fopenmp", "cholesky.c", "-lm"]),
    ("clang-cholesky", &["clang", "-O2", "-g", "-fopenmp", "cholesky.c", "-lm"]),
    ("holders", &["gcc", "-O2", "-g", "-pthread", "holders.c"]),
    ("two_deep", &["gcc", "-O2", "-g", "-fno-omit-frame-pointer", "-pthread", "two_deep.c"]),
    ("spin", &["gcc", "-O2", "-g", "-pthread", "spin.c"]),
    ("forest", &["gcc", "-O2", "-g", "-pthread", "forest.c"]),
    ("stress", &["g++", "-O2", "-g", "-pthread", "stress.cpp", "-ldl"]),
    ("scoped", &["rustc", "-O", "-g", "--edition", "2024", "scoped.rs"]),
];

impl Programs {
    /// Those that an earlier benchmark has compiled.
    pub fn built(farsight: &Path) -> Result<Programs> {
        Ok(Programs { farsight: farsight.canonicalize()?, out: shell::root().join("target/bench-idle") })
    }

    /// Compiles them all.
    pub fn build(farsight: &Path) -> Result<Programs> {
        let programs = Programs::built(farsight)?;
        let (root, out) = (shell::root(), &programs.out);
        std::fs::create_dir_all(out)?;
        for (name, words) in COMPILED {
            let status = Command::new(words[0])
                .args(&words[1..])
                .arg("-o")
                .arg(out.join(name))
                .current_dir(root.join("test-programs/idle"))
                .status()
                .with_context(|| format!("cannot start {}", words[0]))?;
            ensure!(status.success(), "{} failed", words.join(" "));
        }
        shell::run(&["cargo", "build", "-q", "--release", "-p", "idle", "--examples"])?;
        Ok(programs)
    }

    /// A program's path.
    pub fn path(&self, name: &str) -> PathBuf {
        match name.starts_with("rayon_") {
            true => shell::root().join("target/release/examples").join(name),
            false => self.out.join(name),
        }
    }

    /// Runs a program; what it printed.
    pub fn native(&self, name: &str, arguments: &[&str]) -> Result<String> {
        let output = Command::new(self.path(name)).args(arguments).output()?;
        ensure!(output.status.success(), "{name} failed: {}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The command that profiles a program.
    pub fn profiled(&self, flags: &[&str], name: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.farsight);
        command.args(["idle", "-q"]).args(flags).arg("--").arg(self.path(name)).args(arguments);
        command.current_dir(&self.out);
        command
    }

    /// Profiles a program: the document, and what the program printed.
    pub fn profile(&self, flags: &[&str], name: &str, arguments: &[&str]) -> Result<(Value, String)> {
        self.profile_with(&[], flags, name, arguments)
    }

    /// The same with environment variables.
    pub fn profile_with(
        &self,
        environment: &[(&str, &str)],
        flags: &[&str],
        name: &str,
        arguments: &[&str],
    ) -> Result<(Value, String)> {
        let json = self.out.join("run.json");
        let _ = std::fs::remove_file(&json);
        let _ = std::fs::remove_file(self.out.join("run.farsight"));
        let mut all = vec!["--json", "run.json", "-o", "run.farsight"];
        all.extend(flags);
        let output = self.profiled(&all, name, arguments).envs(environment.iter().copied()).output()?;
        ensure!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let document = serde_json::from_str(&std::fs::read_to_string(&json)?)?;
        Ok((document, String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// The executable that is judged.
    pub fn farsight(&self) -> &Path {
        &self.farsight
    }
}

/// A number of a document, 0 if it is none.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// A value of a function, inclusive: seconds.
pub fn inclusive(document: &Value, name: &str, value: &str) -> f64 {
    let functions = document["functions"].as_array().map_or(&[][..], |f| f);
    let found = functions.iter().filter(|f| f["name"].as_str().is_some_and(|n| is_called(n, name)));
    found.map(|f| number(&f["incl"][value])).sum::<f64>() / 1e9
}

/// Whether a full name is that of a function of this name.
pub fn is_called(full: &str, name: &str) -> bool {
    full == name || full.ends_with(&format!("::{name}"))
}
