//! One run of one program under one mode, and what is known of it besides the mode's own data.

use crate::growth::Growth;

/// Tells runs apart, so that merging a file with itself changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 16]);

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It called exit with this status.
    Code(i32),
    /// A signal killed it.
    Signal(i32),
    /// Not known: imported from a format that does not say, or still running when the profile was taken.
    Unknown,
}

/// The program that ran. Two programs are the same when their build ids are; without one, when their paths
/// and sizes are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// The executable's path as started.
    pub path: String,
    /// The linker's build id (`.note.gnu.build-id`), empty when there is none.
    pub build_id: Vec<u8>,
}

/// What one run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Identity of this run.
    pub id: RunId,
    /// The program.
    pub program: Program,
    /// The command line, program first. Bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    /// How it ended.
    pub exit: Exit,
    /// When it started, nanoseconds since the Unix epoch; 0 when not known.
    pub started_unix_ns: u64,
    /// Wall-clock time, 0 when not known.
    pub wall_ns: u64,
    /// User and system time of all threads, 0 when not known.
    pub cpu_ns: u64,
    /// What is missing from or doubtful in the data, one sentence each.
    pub problems: Vec<String>,
    /// The mode's facts.
    pub data: Data,
}

/// The facts of one mode.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Data {
    /// Cost as a function of input size, per routine.
    Growth(Growth),
}
