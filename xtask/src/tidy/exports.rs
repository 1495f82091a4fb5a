//! Shared libraries that go into other people's programs export exactly what the checked-in list beside
//! their manifest (`exports.txt`) says: an accidental export would interpose the program's own function.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};

use crate::shell;

pub fn check() -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for manifest in super::files(&["Cargo.toml"])? {
        let text = fs::read_to_string(shell::root().join(&manifest))?;
        if !text.contains("\"cdylib\"") {
            continue;
        }
        let folder = manifest.trim_end_matches("/Cargo.toml");
        let name = folder.rsplit('/').next().unwrap_or(folder);
        let list = shell::root().join(folder).join("exports.txt");
        let Ok(expected) = fs::read_to_string(&list) else {
            violations.push(format!("{folder} is a shared library without an exports.txt"));
            continue;
        };
        shell::run(&["cargo", "build", "--quiet", "--package", name])?;
        let library = format!("target/debug/lib{}.so", name.replace('-', "_"));
        let symbols =
            shell::output(&["nm", "--dynamic", "--defined-only", "--format=just-symbols", &library])
                .with_context(|| format!("listing the exports of {library}"))?;
        violations.extend(differences(folder, &expected, &symbols));
    }
    Ok(violations)
}

fn differences(folder: &str, expected: &str, found: &str) -> Vec<String> {
    let set = |text: &str| -> BTreeSet<String> {
        let names = text.lines().map(|l| l.split('@').next().unwrap_or(l).trim());
        names.filter(|l| !l.is_empty() && !l.starts_with('#')).map(String::from).collect()
    };
    let (expected, found) = (set(expected), set(found));
    let extra = found
        .difference(&expected)
        .map(|s| format!("{folder} exports {s}, which its exports.txt does not list"));
    let lacking = expected
        .difference(&found)
        .map(|s| format!("{folder} does not export {s}, which its exports.txt lists"));
    extra.chain(lacking).collect()
}

#[cfg(test)]
mod tests {
    use super::differences;

    #[test]
    fn both_directions_are_found() {
        let found = differences("x", "# list\na\nb\n", "b@@V1\nc\n");
        assert_eq!(
            found,
            [
                "x exports c, which its exports.txt does not list",
                "x does not export a, which its exports.txt lists"
            ]
        );
    }
}
