//! Paths that the documents name in backticks exist.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Folders whose contents documents may name.
const FOLDERS: &[&str] =
    &["crates/", "docs/", "xtask/", "bench/", "test-programs/", "oracle/", ".ci/", ".cargo/"];

pub fn check() -> Result<Vec<String>> {
    let root = shell::root();
    let mut violations = Vec::new();
    for file in super::files(&[".md"])? {
        let text = fs::read_to_string(root.join(&file))?;
        let folder = Path::new(&file).parent().unwrap_or(Path::new(""));
        for path in named_paths(&text) {
            if !root.join(path).exists() && !root.join(folder).join(path).exists() {
                violations.push(format!("{file} names `{path}`, which does not exist"));
            }
        }
    }
    Ok(violations)
}

/// Project paths in backticks and in relative links. Patterns and places to fill in are not paths.
fn named_paths(text: &str) -> Vec<&str> {
    let ticked = text.split('`').skip(1).step_by(2).filter(|t| FOLDERS.iter().any(|f| t.starts_with(f)));
    let linked = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let linked = linked.filter(|l| !l.contains("://") && !l.starts_with('#') && !l.starts_with("mailto:"));
    ticked
        .chain(linked)
        .filter(|p| !p.contains(['*', ' ', '<', '{', '\n', '…']))
        .map(|p| p.split('#').next().unwrap_or(p))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::named_paths;

    #[test]
    fn paths_are_told_from_other_code() {
        let text = "See `crates/fit/src/lib.rs`, `cargo test`, [docs](docs/x.md#part), [web](https://a.b), `crates/*`.";
        assert_eq!(named_paths(text), ["crates/fit/src/lib.rs", "docs/x.md"]);
    }
}
