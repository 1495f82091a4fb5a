//! Starting the executable in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use profile::Profile;
use tempfile::TempDir;

pub struct Folder(TempDir);

pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Folder {
    pub fn new() -> Self {
        Folder(tempfile::tempdir().expect("a temporary folder"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn save(&self, name: &str, profile: &Profile) -> PathBuf {
        let path = self.path(name);
        profile::file::save_new(&path, profile).expect("the sample profile is writable");
        path
    }

    /// Runs `farsight` in this folder.
    pub fn run(&self, args: &[&str]) -> Ended {
        run_in(self.0.path(), &[], args)
    }

    /// The same with variables of the environment.
    pub fn run_with(&self, variables: &[(&str, &str)], args: &[&str]) -> Ended {
        run_in(self.0.path(), variables, args)
    }
}

fn run_in(folder: &Path, variables: &[(&str, &str)], args: &[&str]) -> Ended {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_farsight"))
        .args(args)
        .envs(variables.iter().copied())
        .current_dir(folder)
        .output()
        .expect("farsight starts");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

impl Ended {
    /// Asserts the exit code, showing everything when it is another.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts that stdout contains each of `parts`.
    pub fn prints(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stdout.contains(part), "no {part:?} in stdout:\n{}", self.stdout);
        }
        self
    }

    /// Asserts that stderr contains each of `parts`.
    pub fn says(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "no {part:?} in stderr:\n{}", self.stderr);
        }
        self
    }

    /// Stdout as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).expect("stdout is JSON")
    }
}
