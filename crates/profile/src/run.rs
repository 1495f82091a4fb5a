//! One run of one program under one mode, and what is known of it besides the mode's own data.
//!
//! Values only: who fills them reads clocks and random numbers, this module never does.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::causal::Causal;
use crate::count::Count;
use crate::growth::Growth;
use crate::idle::Idle;
use crate::span::Span;

/// Tells runs apart, so that merging a file with itself changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub [u8; 16]);

impl RunId {
    /// The id of a run that was just made: 16 bytes from the system's random source, which this crate does
    /// not touch.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The id of a run that was imported: a hash of what was imported, so that importing it twice gives the
    /// same run. The pieces are hashed with their lengths: moving a byte from one to the next changes the id.
    pub fn of_content<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Xxh3::new();
        for piece in pieces {
            hash.update(&(piece.len() as u64).to_le_bytes());
            hash.update(piece);
        }
        Self(hash.digest128().to_be_bytes())
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

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

/// The program that ran. See [`Program::same_build`] for when two are the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Program {
    /// The executable's path as started.
    pub path: String,
    /// The linker's build id (`.note.gnu.build-id`), empty when there is none.
    pub build_id: Vec<u8>,
    /// When the executable was last modified, seconds since the Unix epoch; 0 when not known.
    pub modified_unix_s: u64,
}

impl Program {
    /// Whether addresses and routines of the two mean the same: their build ids are equal; without build
    /// ids, their paths and modification times are.
    pub fn same_build(&self, other: &Program) -> bool {
        if self.build_id.is_empty() && other.build_id.is_empty() {
            self.path == other.path && self.modified_unix_s == other.modified_unix_s
        } else {
            self.build_id == other.build_id
        }
    }
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
    /// Exact counts of what was executed.
    Count(Count),
    /// Work and idleness by calling context.
    Idle(Idle),
    /// What making code faster would gain.
    Causal(Causal),
    /// Work and span, per call site.
    Span(Span),
    /// A mode that this version of Farsight does not know, kept as it was written.
    Opaque(Opaque),
}

/// The facts of a mode that only a newer Farsight can read. They survive loading, merging and saving.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Opaque {
    /// The mode's number in the file.
    pub mode: u32,
    /// Its sections, as stored.
    pub sections: Vec<OpaqueSection>,
}

/// One section of a mode that is not known, not decompressed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OpaqueSection {
    /// What kind of section.
    pub kind: u32,
    /// How it is stored.
    pub flags: u32,
    /// Its length once decompressed.
    pub raw_len: u64,
    /// Its bytes as stored.
    pub stored: Vec<u8>,
}
