//! Compiles a program of `test-programs/growth`, profiles it, and looks its routines up.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A profiled run.
pub struct Profiled {
    pub document: Value,
    pub output: Output,
}

/// One performance point: size, calls, smallest and largest cost.
pub type Point = (u64, u64, u64, u64);

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/growth")
}

/// A compiled program in a folder of its own, removed with it.
pub struct Program {
    folder: tempfile::TempDir,
}

impl Program {
    /// Compiles with the compiler that the first source's name asks for.
    pub fn build(files: &[&str], flags: &[&str]) -> Program {
        let paths: Vec<PathBuf> = files.iter().map(|file| sources().join(file)).collect();
        Program::of(&paths, flags)
    }

    /// The same for any source.
    pub fn of(paths: &[PathBuf], flags: &[&str]) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let compiler = match paths[0].extension().and_then(|e| e.to_str()) {
            Some("rs") => "rustc",
            Some("cpp") => "g++",
            _ => "gcc",
        };
        let status = Command::new(compiler)
            .args(flags)
            .args(paths)
            .arg("-o")
            .arg(folder.path().join("program"))
            .status()
            .unwrap_or_else(|e| panic!("cannot run {compiler}: {e}"));
        assert!(status.success(), "{compiler} failed on {paths:?}");
        Program { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }

    /// Profiles it with these flags and arguments.
    pub fn profile(&self, flags: &[&str], args: &[&str]) -> Profiled {
        let mut command = vec![self.path().display().to_string()];
        command.extend(args.iter().map(|a| (*a).to_owned()));
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        profile(flags, &command)
    }
}

/// `farsight growth` that writes its result to `json` and nothing else; flags, `--` and the command are to follow. At the
/// same addresses each time: what fails once fails always. Who runs the tests may ignore SIGINT, which would be inherited.
pub fn growth(json: &Path) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=INT", "setarch", "-R", env!("CARGO_BIN_EXE_farsight")]);
    command.args(["growth", "-q", "-o", "/dev/null", "--json"]).arg(json);
    command
}

/// Profiles any command.
pub fn profile(flags: &[&str], command: &[&str]) -> Profiled {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("out.json");
    let output = growth(&json).args(flags).arg("--").args(command).output().unwrap();
    let text = std::fs::read_to_string(&json)
        .unwrap_or_else(|e| panic!("no result ({e}): {}", String::from_utf8_lossy(&output.stderr)));
    Profiled { document: serde_json::from_str(&text).unwrap(), output }
}

impl Profiled {
    /// The routines of this name.
    pub fn all(&self, name: &str) -> Vec<&Value> {
        self.document["routines"].as_array().unwrap().iter().filter(|r| r["name"] == name).collect()
    }

    /// The routine of this name, of which there is one.
    pub fn routine(&self, name: &str) -> &Value {
        let all = self.all(name);
        assert_eq!(all.len(), 1, "routines named {name}: {}", all.len());
        all[0]
    }

    /// Its points.
    pub fn points(&self, name: &str) -> Vec<Point> {
        points(self.routine(name))
    }

    /// Sizes with their numbers of calls.
    pub fn sizes(&self, name: &str) -> Vec<(u64, u64)> {
        self.points(name).iter().map(|p| (p.0, p.1)).collect()
    }

    /// (first reads, thread-induced, external) of a routine.
    pub fn input(&self, name: &str) -> (u64, u64, u64) {
        let input = &self.routine(name)["input"];
        let part = |which: &str| input[which].as_u64().unwrap();
        (part("first_reads"), part("thread_induced"), part("external"))
    }

    /// The class that was fitted, if any.
    pub fn class(&self, name: &str) -> Option<String> {
        self.routine(name)["fit"]["class"].as_str().map(str::to_owned)
    }
}

/// The points of a routine.
pub fn points(routine: &Value) -> Vec<Point> {
    let number = |p: &Value, field: &str| p[field].as_u64().unwrap();
    routine["points"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| (number(p, "n"), number(p, "calls"), number(p, "min"), number(p, "max")))
        .collect()
}
