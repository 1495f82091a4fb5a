//! Growth profiles computed a second way: at compile time, by gcc's thread-sanitizer hooks and a plain runtime.
//!
//! `runtime.c` holds the algorithm and says how it works; this crate compiles programs with it and runs them.
//! By hand, the same is
//! ```text
//! gcc -c -O2 runtime.c -o runtime.o
//! gcc -c -O1 -g -fno-builtin -fno-omit-frame-pointer -fsanitize=thread -fsanitize-coverage=trace-pc wf.c -o wf.o
//! gcc wf.o runtime.o -rdynamic -ldl -pthread -o wf
//! FARSIGHT_ORACLE_DIR=reports ./wf
//! ```
//! and leaves one `wf_PID_THREAD_4.aprof` per thread in `reports`. The program is linked without
//! `-fsanitize=thread`, so that the hooks are ours and not libtsan's. `-fno-builtin` keeps gcc from turning
//! loops of the program into calls of libc, which is not instrumented.
//!
//! Samples for tests of import and report lie in `samples/`; `tests/known_answers.rs` says how they were made.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool could not be started.
    #[error("cannot run {tool}: {error}")]
    Start {
        /// The tool.
        tool: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A tool failed.
    #[error("{command} failed: {message}")]
    Failed {
        /// What was run.
        command: String,
        /// What it said.
        message: String,
    },
    /// The reports cannot be listed.
    #[error("cannot list reports in {folder}: {error}")]
    Reports {
        /// Where.
        folder: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
}

/// Which algorithm the runtime executes. Both give the same reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Latest access: one timestamp per cell.
    LatestAccess,
    /// The definition itself: one set of cells per activation. For small programs only.
    Naive,
}

/// A program that profiles itself.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

/// A bundled program's source: `demo-growth.c` or `wf.c`.
pub fn bundled(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

impl Program {
    /// Compiles a C source (or C++, if named so) to a program of the same name in `folder`.
    pub fn build(source: &Path, folder: &Path, algorithm: Algorithm) -> Result<Program, Error> {
        let stem = source.file_stem().unwrap_or(source.as_os_str());
        let path = folder.join(stem);
        let (unit, runtime) = (path.with_extension("o"), folder.join("oracle-runtime.o"));
        let define: &[&str] = if algorithm == Algorithm::Naive { &["-DORACLE_NAIVE"] } else { &[] };
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("runtime.c");
        run(Command::new("gcc").args(["-c", "-O2"]).args(define).arg(own).arg("-o").arg(&runtime))?;
        let compiler = if source.extension().is_some_and(|e| e == "c") { "gcc" } else { "g++" };
        let hooks = ["-fsanitize=thread", "-fsanitize-coverage=trace-pc"];
        run(Command::new(compiler)
            .args(["-c", "-O1", "-g", "-fno-builtin", "-fno-omit-frame-pointer"])
            .args(hooks)
            .arg(source)
            .arg("-o")
            .arg(&unit))?;
        run(Command::new(compiler)
            .args([&unit, &runtime])
            .args(["-rdynamic", "-ldl", "-pthread", "-o"])
            .arg(&path))?;
        Ok(Program { path })
    }

    /// The executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs it and returns its output and the reports that it left in `folder`, by name.
    pub fn run(&self, args: &[&str], folder: &Path) -> Result<(Output, Vec<PathBuf>), Error> {
        let mut command = Command::new(&self.path);
        command.args(args).env("FARSIGHT_ORACLE_DIR", folder);
        let output = run(&mut command)?;
        let listing = |error| Error::Reports { folder: folder.to_owned(), error };
        let mut reports = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(listing)? {
            let path = entry.map_err(listing)?.path();
            if path.extension().is_some_and(|e| e == "aprof") {
                reports.push(path);
            }
        }
        reports.sort();
        Ok((output, reports))
    }
}

fn run(command: &mut Command) -> Result<Output, Error> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::Start { tool, error })?;
    if output.status.success() {
        return Ok(output);
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Failed { command: format!("{command:?}"), message: format!("{} {message}", output.status) })
}
