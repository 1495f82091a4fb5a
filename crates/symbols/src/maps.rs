//! The text of `/proc/PID/maps`, as values.
//!
//! ```text
//! 7f00a000-7f00c000 r-xp 00002000 08:01 1234                       /usr/lib/libfoo.so
//! ```
//! The kernel writes a newline in a path as `\012` and appends ` (deleted)` when the file is gone (a rebuilt
//! program); the rest of a line after the inode is the path, spaces included.

use std::path::PathBuf;

use crate::address::{FileOffset, ProcessAddr};

/// What stands behind a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Backing {
    /// A file.
    File {
        /// Its path when it was mapped.
        path: PathBuf,
        /// Whether it has been removed or replaced since.
        deleted: bool,
    },
    /// The kernel's shared library, `[vdso]`.
    Vdso,
    /// Memory of no file: heap, stacks, generated code. The kernel's name for it, or nothing.
    Anonymous(String),
}

/// One mapping.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// First address.
    pub start: ProcessAddr,
    /// First address after it.
    pub end: ProcessAddr,
    /// Whether it may be executed.
    pub executable: bool,
    /// Which byte of the file is at `start`.
    pub offset: FileOffset,
    /// What stands behind it.
    pub backing: Backing,
}

/// Reads all lines; those that make no sense are returned as they are.
pub fn parse(text: &str) -> (Vec<Mapping>, Vec<&str>) {
    let (mut mappings, mut rejected) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        match parse_line(line) {
            Some(mapping) => mappings.push(mapping),
            None => rejected.push(line),
        }
    }
    (mappings, rejected)
}

fn parse_line(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut field = || {
        let text = rest.trim_start_matches(' ');
        let end = text.find(' ').unwrap_or(text.len());
        rest = &text[end..];
        &text[..end]
    };
    let (start, end) = field().split_once('-')?;
    let permissions = field();
    let offset = field();
    let (_device, _inode) = (field(), field());
    let name = rest.trim_start_matches(' ');
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (ProcessAddr(hex(start)?), ProcessAddr(hex(end)?));
    if start >= end || permissions.len() != 4 {
        return None;
    }
    let backing = if name == "[vdso]" {
        Backing::Vdso
    } else if name.starts_with('/') && !name.starts_with("//anon") {
        let (path, deleted) = match name.strip_suffix(" (deleted)") {
            Some(path) => (path, true),
            None => (name, false),
        };
        Backing::File { path: path.replace("\\012", "\n").into(), deleted }
    } else {
        Backing::Anonymous(name.into())
    };
    Some(Mapping {
        start,
        end,
        executable: permissions.contains('x'),
        offset: FileOffset(hex(offset)?),
        backing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_all_kinds() {
        let text = "\
55e0a000-55e0c000 r-xp 00002000 08:01 1234                       /usr/bin/with space
7f000000-7f001000 rw-p 00000000 00:00 0
7f001000-7f002000 r-xp 00000000 08:01 77 /tmp/a\\012b (deleted)
7ffd0000-7ffd1000 r-xp 00000000 00:00 0                          [vdso]
7ffd2000-7ffd3000 rw-p 00000000 00:00 0                          [stack]
nonsense
7f00-7e00 r-xp 00000000 00:00 0
";
        let (maps, rejected) = parse(text);
        assert_eq!(rejected, ["nonsense", "7f00-7e00 r-xp 00000000 00:00 0"]);
        let file = |path: &str, deleted| Backing::File { path: path.into(), deleted };
        let backings: Vec<_> = maps.iter().map(|m| m.backing.clone()).collect();
        assert_eq!(
            backings,
            [
                file("/usr/bin/with space", false),
                Backing::Anonymous(String::new()),
                file("/tmp/a\nb", true),
                Backing::Vdso,
                Backing::Anonymous("[stack]".into()),
            ]
        );
        assert_eq!(maps[0].offset, FileOffset(0x2000));
        assert!(maps[0].executable && !maps[1].executable);
    }
}
