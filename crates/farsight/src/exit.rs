//! Exit codes, and how an error becomes one.
//!
//! A run exits as the program did. Our own failures: 64 usage, 65 a profile that cannot be read, 66 a file
//! or program that is not there, 69 something that the machine does not allow, 70 a bug of ours. `check`
//! exits with 1 when a rule is broken.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// What kind of failure it was; decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Wrong flags or arguments.
    Usage = 64,
    /// A profile file that is foreign, damaged or newer than us.
    Data = 65,
    /// A file or program that is not there or not readable.
    NoInput = 66,
    /// The machine does not allow it.
    Unavailable = 69,
    /// A bug of ours.
    Bug = 70,
}

/// An error that knows its exit code.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    source: anyhow::Error,
}

impl Failure {
    pub fn error(kind: Kind, error: impl Into<anyhow::Error>) -> anyhow::Error {
        anyhow::Error::new(Failure { kind, source: error.into() })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#}", self.source)
    }
}

impl std::error::Error for Failure {}

/// The exit code of a subcommand: its own, or that of its failure, whose message goes to stderr.
pub fn code(result: anyhow::Result<ExitCode>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS; // whoever read our output has read enough
    }
    eprintln!("farsight: {error:#}");
    let kind = error.downcast_ref::<Failure>().map(|f| f.kind);
    let kind = kind.unwrap_or(if is_io(&error) { Kind::Unavailable } else { Kind::Bug });
    if kind == Kind::Bug {
        eprintln!("farsight: this is a bug of ours; please report it with the command that led to it");
    }
    ExitCode::from(kind as u8)
}

/// Help and version go to stdout with 0, everything else is usage.
pub fn usage(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    match error.kind() {
        clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion if printed.is_ok() => {
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(Kind::Usage as u8),
    }
}

fn is_io(error: &anyhow::Error) -> bool {
    error.chain().any(|e| e.is::<io::Error>())
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    io.into_iter().any(|e| e.kind() == io::ErrorKind::BrokenPipe)
}
