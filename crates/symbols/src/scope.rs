//! Which code a question is about: patterns on source files, functions and libraries.
//!
//! A sample often lands in code that was inlined from a library: an iterator of Rust's standard library, a C++
//! header. [`Scope::fold`] moves it outwards to the innermost frame that is in scope, so that `for x in v` is
//! credited to the loop's line rather than lost to `core/iter/range.rs`.
//!
//! Patterns know two wildcards, `*` for any text (slashes included) and `?` for one character. Everything else
//! is literal: function names contain `[`, `{` and `<`, which glob libraries would take for syntax. Coz's `%`
//! is accepted for `*`.

use std::str::FromStr;

use crate::frames::{Frame, Frames};
use crate::shorten::{Short, shorten};

/// A text with wildcards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Glob(String);

impl Glob {
    /// From the user's spelling.
    pub fn new(pattern: &str) -> Glob {
        Glob(pattern.replace('%', "*"))
    }

    /// Whether the whole text matches. Takes time proportional to both lengths multiplied, at worst.
    pub fn matches(&self, text: &str) -> bool {
        let (pattern, text): (Vec<char>, Vec<char>) = (self.0.chars().collect(), text.chars().collect());
        let (mut p, mut t) = (0, 0);
        // Where the last `*` was and how much text it has swallowed so far.
        let mut star: Option<(usize, usize)> = None;
        while t < text.len() {
            if pattern.get(p) == Some(&'*') {
                star = Some((p, t));
                p += 1;
            } else if pattern.get(p).is_some_and(|c| *c == '?' || *c == text[t]) {
                (p, t) = (p + 1, t + 1);
            } else if let Some((at, swallowed)) = star {
                star = Some((at, swallowed + 1));
                (p, t) = (at + 1, swallowed + 1);
            } else {
                return false;
            }
        }
        pattern[p..].iter().all(|c| *c == '*')
    }

    /// Whether the text or any end of it after `separator` matches.
    fn matches_end(&self, text: &str, separator: &str) -> bool {
        self.matches(text) || text.match_indices(separator).any(|(i, s)| self.matches(&text[i + s.len()..]))
    }
}

/// One condition of a scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// On the path of a frame's source file, or any end of it: `src/*.rs`, `main.c`.
    File(Glob),
    /// On a frame's function: readable or linker name, with or without arguments, or any end of its path:
    /// `parse*`, `Vec::push`.
    Function(Glob),
    /// On the path or file name of the executable or library; `MAIN` is the executable.
    Library(Glob),
}

/// Why a pattern cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scope pattern {0:?}: need file:GLOB, fn:GLOB or lib:GLOB")]
pub struct PatternError(String);

impl FromStr for Pattern {
    type Err = PatternError;
    fn from_str(text: &str) -> Result<Self, PatternError> {
        match text.split_once(':') {
            Some((_, "")) => Err(PatternError(text.into())),
            Some(("file", glob)) => Ok(Pattern::File(Glob::new(glob))),
            Some(("fn" | "function", glob)) => Ok(Pattern::Function(Glob::new(glob))),
            Some(("lib" | "library", glob)) => Ok(Pattern::Library(Glob::new(glob))),
            _ => Err(PatternError(text.into())),
        }
    }
}

/// The executable or library that frames come from.
#[derive(Debug, Clone, Copy)]
pub struct Library<'a> {
    /// Its path.
    pub path: &'a str,
    /// Whether it is the program's executable.
    pub is_main: bool,
}

impl Pattern {
    fn matches(&self, frame: &Frame, library: Library<'_>) -> bool {
        match self {
            Pattern::File(glob) => frame.file.as_deref().is_some_and(|file| glob.matches_end(file, "/")),
            Pattern::Library(glob) => {
                glob.0 == "MAIN" && library.is_main || glob.matches_end(library.path, "/")
            }
            Pattern::Function(glob) => frame.function.as_ref().is_some_and(|name| {
                let bare = shorten(name.readable(), Short { path_elements: 0, ..Short::default() });
                glob.matches(name.mangled())
                    || glob.matches_end(name.readable(), "::")
                    || glob.matches_end(&bare, "::")
            }),
        }
    }
}

/// What is in and what is out. A frame is in scope if of each kind of pattern (file, function, library) that
/// is included at all one matches, and no excluded one does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    /// Without any, everything not excluded is in.
    pub include: Vec<Pattern>,
    /// These are out, whatever is included.
    pub exclude: Vec<Pattern>,
}

impl Scope {
    /// Code with known lines that is the user's: not the compiler's library, not system headers, not
    /// dependencies from a package registry.
    pub fn user_code() -> Scope {
        let files = [
            "/rustc/*",
            "*/.cargo/registry/*",
            "*/.cargo/git/*",
            "*/rustlib/src/rust/*",
            "/usr/include/*",
            "/usr/lib/*",
            "/usr/local/include/*",
        ];
        Scope { include: Vec::new(), exclude: files.iter().map(|f| Pattern::File(Glob::new(f))).collect() }
    }

    /// Whether a frame is in scope.
    pub fn contains(&self, frame: &Frame, library: Library<'_>) -> bool {
        let kinds: [fn(&Pattern) -> bool; 3] = [
            |p| matches!(p, Pattern::File(_)),
            |p| matches!(p, Pattern::Function(_)),
            |p| matches!(p, Pattern::Library(_)),
        ];
        let included = kinds.iter().all(|kind| {
            let mut patterns = self.include.iter().filter(|p| kind(p)).peekable();
            patterns.peek().is_none() || patterns.any(|p| p.matches(frame, library))
        });
        included && !self.exclude.iter().any(|p| p.matches(frame, library))
    }

    /// The innermost frame in scope that has a line: where to credit an address.
    pub fn fold<'f>(&self, frames: &'f Frames, library: Library<'_>) -> Option<&'f Frame> {
        frames.iter().rev().find(|f| f.file.is_some() && f.line.is_some() && self.contains(f, library))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Name;
    use proptest::prelude::*;

    const MAIN: Library<'_> = Library { path: "/home/me/app/target/app", is_main: true };

    fn frame(function: &str, file: &str, line: u32) -> Frame {
        Frame {
            function: Some(Name::from_mangled(function)),
            file: Some(file.into()),
            line: Some(line),
            ..Frame::default()
        }
    }

    fn scope(include: &[&str], exclude: &[&str]) -> Scope {
        let parse = |list: &[&str]| list.iter().map(|p| p.parse().unwrap()).collect();
        Scope { include: parse(include), exclude: parse(exclude) }
    }

    #[test]
    fn patterns_match_whole_elements() {
        let f = frame("app::parse::Parser<T>::next", "/home/me/app/src/parse.rs", 7);
        for (pattern, want) in [
            ("file:parse.rs", true),
            ("file:arse.rs", false),
            ("file:src/*.rs", true),
            ("file:%parse.rs", true),
            ("file:/home/me/*", true),
            ("fn:next", true),
            ("fn:Parser::next", true),
            ("fn:app::parse::Parser<T>::next", true),
            ("fn:app::*", true),
            ("fn:ext", false),
            ("lib:MAIN", true),
            ("lib:app", true),
            ("lib:libc.so.6", false),
        ] {
            let parsed: Pattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(&f, MAIN), want, "{pattern}");
        }
        for bad in ["main.rs", "file:", "dir:x", ""] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn library_code_folds_into_its_caller() {
        let std = "/rustc/abc/library/core/src/iter/range.rs";
        let frames = Frames(vec![
            frame("app::main", "/home/me/app/src/main.rs", 12),
            frame("<Range as Iterator>::next", std, 770),
            frame("core::iter::Step::forward", std, 200),
        ]);
        assert_eq!(Scope::user_code().fold(&frames, MAIN), Some(&frames.0[0]));
        assert_eq!(Scope::default().fold(&frames, MAIN), Some(&frames.0[2]));
        assert_eq!(scope(&["file:other.rs"], &[]).fold(&frames, MAIN), None);
        assert_eq!(scope(&["lib:MAIN", "fn:next"], &[]).fold(&frames, MAIN), Some(&frames.0[1]));
        assert_eq!(scope(&[], &["fn:forward", "fn:next"]).fold(&frames, MAIN), Some(&frames.0[0]));
    }

    fn naive(pattern: &[char], text: &[char]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some('*'), _) => naive(&pattern[1..], text) || !text.is_empty() && naive(pattern, &text[1..]),
            (Some('?'), Some(_)) => naive(&pattern[1..], &text[1..]),
            (Some(p), Some(t)) if p == t => naive(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn glob_equals_the_naive_matcher(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let chars = |s: &str| s.chars().collect::<Vec<_>>();
            prop_assert_eq!(Glob::new(&pattern).matches(&text), naive(&chars(&pattern), &chars(&text)));
        }
    }
}
