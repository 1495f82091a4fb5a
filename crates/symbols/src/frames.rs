//! What an address means in the source: a stack of inlined functions, each with the place it had reached.

use std::sync::Arc;

use crate::name::Name;

/// A line of a source file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// Absolute where the debug information says so; `.`, `..` and doubled slashes removed.
    pub file: Arc<str>,
    /// From 1.
    pub line: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// One function, inlined or not, and where in it the address is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frame {
    /// The function, if known.
    pub function: Option<Name>,
    /// Where in the function: the line that executes, or the call that was inlined.
    pub file: Option<Arc<str>>,
    /// From 1; nothing for code that the compiler attributes to no line (DWARF's line 0).
    pub line: Option<u32>,
    /// From 1; nothing when not recorded.
    pub column: Option<u32>,
    /// Where the function is declared.
    pub declared: Option<Location>,
    /// Whether the compiler inlined it into the frame before.
    pub inlined: bool,
}

impl Frame {
    /// File and line, when both are known.
    pub fn location(&self) -> Option<Location> {
        Some(Location { file: self.file.clone()?, line: self.line? })
    }
}

/// The frames of one address, from the function that was really called to the innermost inlined one. Empty
/// when nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frames(pub Vec<Frame>);

impl Frames {
    /// The function that a call instruction entered.
    pub fn outermost(&self) -> Option<&Frame> {
        self.0.first()
    }

    /// The one whose line executes.
    pub fn innermost(&self) -> Option<&Frame> {
        self.0.last()
    }

    /// From the called function inwards.
    pub fn iter(&self) -> std::slice::Iter<'_, Frame> {
        self.0.iter()
    }
}

impl<'a> IntoIterator for &'a Frames {
    type Item = &'a Frame;
    type IntoIter = std::slice::Iter<'a, Frame>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// Removes `.`, `..` and doubled slashes by spelling alone (symbolic links are not looked at).
pub(crate) fn clean_path(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|p| *p != "..") => {
                parts.pop();
            }
            ".." if absolute => {}
            _ => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if absolute { format!("/{joined}") } else { joined }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned() {
        for (path, want) in [
            ("/a/./b//c.c", "/a/b/c.c"),
            ("/build/../src/x.c", "/src/x.c"),
            ("/../x", "/x"),
            ("../a/../b.c", "../b.c"),
            ("../../b.c", "../../b.c"),
            ("b.c", "b.c"),
            ("", ""),
        ] {
            assert_eq!(clean_path(path), want, "{path}");
        }
    }
}
