//! Compiles small programs and runs them with a library preloaded.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of its own for each test, gone at its end.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Compiles `source` with a compiler and flags; `None` if the compiler is not installed. Anything else
    /// that goes wrong fails the test.
    pub fn compile(&self, compiler: &str, flags: &str, source: &str, output: &str) -> Option<PathBuf> {
        let output = self.path(output);
        let mut command = Command::new(compiler);
        command.args(flags.split_whitespace()).arg("-o").arg(&output).arg(program(source));
        if compiler != "rustc" {
            command.args(["-w", "-pthread", "-lm", "-ldl"]);
        }
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                eprintln!("SKIPPED: {compiler} is not installed");
                None
            }
            Err(error) => panic!("{compiler}: {error}"),
            Ok(done) => {
                let errors = String::from_utf8_lossy(&done.stderr);
                assert!(done.status.success(), "{compiler} {flags} {source}:\n{errors}");
                Some(output)
            }
        }
    }
}

/// A source file beside the tests.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// A library that `cargo test` has built from `examples/`.
pub fn library(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    let path = path.join("examples").join(format!("lib{name}.so"));
    assert!(path.exists(), "{} is missing: run the tests with cargo test", path.display());
    path
}

/// Runs a program, with a library preloaded if one is named.
pub fn run(program: &Path, arguments: &[&str], preload: Option<&Path>, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LD_PRELOAD");
    command.envs(variables.iter().copied());
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    command.output().unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

/// What a run printed, with its errors if it failed.
pub fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{:?}\n{}{errors}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
