//! What can go wrong before the program runs.

use std::io;
use std::path::PathBuf;

/// A launch that failed. Which exit code that means is the command line's business.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No such program.
    #[error("{0}: no such program in PATH")]
    NotFound(String),
    /// It exists and cannot be executed.
    #[error("cannot execute {0}: {1}")]
    NotExecutable(PathBuf, io::Error),
    /// A program for another kind of processor mode.
    #[error("{0} is a 32-bit program; Farsight runs 64-bit x86 programs only")]
    ThirtyTwoBit(PathBuf),
    /// A program that ignores preloaded libraries.
    #[error(
        "{0} is statically linked, so nothing can be preloaded into it; link it dynamically for this mode"
    )]
    Static(PathBuf),
    /// It, or a script's interpreter, asks for an interpreter that is not there.
    #[error("cannot execute {program}: its interpreter {interpreter} is not there")]
    NoInterpreter {
        /// What was to be executed.
        program: PathBuf,
        /// What it asks for.
        interpreter: PathBuf,
    },
    /// A program that the kernel gives privileges which it withholds under a profiler.
    #[error(
        "{0} gets privileges when it is executed (set-user-id, set-group-id or file capabilities), which the kernel \
         withholds from profiled programs; run farsight as the user that it becomes, or profile a copy without them"
    )]
    Privileged(PathBuf),
    /// The processor or kernel lacks something.
    #[error("this machine lacks {0}, which the engine needs")]
    Lacks(&'static str),
    /// The kernel refused something.
    #[error("{what}: {cause}{hint}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        cause: io::Error,
        /// What may help.
        hint: &'static str,
    },
    /// The address space is limited below what the engine reserves.
    #[error(
        "the address space is limited to {limit} bytes (ulimit -v), the engine reserves {needed}; try: ulimit -v unlimited"
    )]
    AddressSpace {
        /// The limit.
        limit: u64,
        /// What is needed.
        needed: u64,
    },
    /// A bug of ours.
    #[error("bug: {0}")]
    Bug(String),
}

/// The last error of the C library, with what was tried.
pub(crate) fn os(what: &'static str) -> LaunchError {
    LaunchError::System { what, cause: io::Error::last_os_error(), hint: "" }
}
