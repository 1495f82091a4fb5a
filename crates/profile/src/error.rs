//! What can be wrong with a profile file, in words that tell the user what to do.
//!
//! The four ways in which bytes can fail to be a profile are kept apart (foreign, truncated, corrupted, newer),
//! because each has a different remedy.

use std::fmt;

use crate::canon::Invalid;
use crate::run::RunId;

/// Why bytes cannot be read as a profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Something else than a profile.
    #[error("not a Farsight profile: {0}")]
    Foreign(Looks),
    /// The start of a profile.
    #[error("truncated profile: it ends at byte {end} within {within}; `--salvage` reads what is intact")]
    Truncated {
        /// Length of what is there.
        end: u64,
        /// What is cut.
        within: Place,
    },
    /// A profile with altered bytes.
    #[error("corrupted profile: {place} at byte {offset}: {reason}; `--salvage` reads what is intact")]
    Corrupted {
        /// What is damaged.
        place: Place,
        /// Where it starts.
        offset: u64,
        /// In which way.
        reason: &'static str,
    },
    /// A profile of a version to come.
    #[error(
        "profile format version {found} is newer than version {known}, the newest that this farsight reads: \
         update farsight"
    )]
    Newer {
        /// Major version of the file.
        found: u16,
        /// Major version of this reader.
        known: u16,
    },
}

/// A part of a profile file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The first bytes.
    Header,
    /// A section, counted from 1, and what is known of it.
    Section {
        /// Its number in the file.
        number: u64,
        /// Its kind, when its header is intact.
        kind: Option<u32>,
        /// The run that it belongs to, when its header is intact and it belongs to one.
        run: Option<RunId>,
    },
    /// The section that ends the file.
    End,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Header => write!(f, "the file header"),
            Place::End => write!(f, "the end of the file"),
            Place::Section { number, kind, run } => {
                write!(f, "section {number}")?;
                match (kind, run) {
                    (Some(crate::section::KIND_RUN), Some(run)) => write!(f, " (description of run {run})"),
                    (Some(kind), Some(run)) if crate::facts::is_kind(*kind) => {
                        write!(f, " ({} of run {run})", crate::facts::kind_name(*kind))
                    }
                    (Some(kind), Some(run)) => write!(f, " (kind {kind} of run {run})"),
                    (Some(kind), None) => write!(f, " (kind {kind})"),
                    (None, _) => Ok(()),
                }
            }
        }
    }
}

/// What foreign bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looks {
    /// No bytes at all.
    Empty,
    /// An aprof report.
    Aprof,
    /// A Coz profile.
    Coz,
    /// Any text.
    Text,
    /// An executable or library.
    Elf,
    /// Compressed with a common tool.
    Compressed,
    /// Anything else.
    Binary,
}

impl Looks {
    /// Guesses from the first bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let head = &bytes[..bytes.len().min(4096)];
        let line = |wanted: &[&[u8]]| {
            head.split(|&b| b == b'\n').any(|line| wanted.iter().any(|start| line.starts_with(start)))
        };
        let starts = |wanted: &[&[u8]]| wanted.iter().any(|start| head.starts_with(start));
        if head.is_empty() {
            Looks::Empty
        } else if starts(&[b"\x7fELF"]) {
            Looks::Elf
        } else if starts(&[b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"PK\x03\x04"]) {
            Looks::Compressed
        } else if head.contains(&0) {
            Looks::Binary
        } else if line(&[b"startup\ttime=", b"experiment\tselected="]) {
            Looks::Coz
        } else if line(&[b"r \""]) || (line(&[b"v "]) && line(&[b"m ", b"i rms", b"i drms", b"c "])) {
            Looks::Aprof
        } else if std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true) {
            Looks::Text
        } else {
            Looks::Binary
        }
    }
}

impl fmt::Display for Looks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Looks::Empty => "the file is empty",
            Looks::Aprof => {
                "it looks like an aprof report; `farsight import FILE -o OUT.farsight` converts it"
            }
            Looks::Coz => "it looks like a Coz profile; `farsight import FILE -o OUT.farsight` converts it",
            Looks::Text => "it is a text file",
            Looks::Elf => "it is an executable or a library",
            Looks::Compressed => "it is compressed; decompress it first",
            Looks::Binary => "it does not begin as one",
        })
    }
}

/// Why a profile cannot be written as bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// Two runs with one id.
    #[error("run {0} occurs twice in one profile")]
    Twice(RunId),
    /// A run whose data is not in canonical form.
    #[error("run {run}: {invalid}")]
    Invalid {
        /// The run.
        run: RunId,
        /// The broken rule.
        invalid: Invalid,
    },
    /// Data that claims not to be known, but is of a mode or kind that is.
    #[error("run {0}: data of a known mode must not be kept as unknown")]
    NotOpaque(RunId),
    /// The compressor gave up, which it does only when memory does.
    #[error("cannot compress: {0}")]
    Compress(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_bytes_are_recognized() {
        let cases: [(&[u8], Looks); 10] = [
            (b"", Looks::Empty),
            (b"c ----\nc report generated by aprof (valgrind)\nc ----\nv 6\nk 12\n", Looks::Aprof),
            (b"r \"main\" \"/bin/x\" 1\n", Looks::Aprof),
            (b"startup\ttime=123\nruntime\ttime=5\n", Looks::Coz),
            (b"experiment\tselected=a.c:3\tspeedup=0.5\n", Looks::Coz),
            (b"hello\nworld\n", Looks::Text),
            (b"\x7fELF\x02\x01", Looks::Elf),
            (b"\x1f\x8b\x08\x00", Looks::Compressed),
            (b"a\0b", Looks::Binary),
            (b"\xff\xfe\xfd", Looks::Binary),
        ];
        for (bytes, looks) in cases {
            assert_eq!(Looks::of(bytes), looks, "{bytes:?}");
        }
    }
}
