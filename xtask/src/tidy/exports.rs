//! Shared libraries that go into other people's programs export exactly what the checked-in list beside
//! their manifest (`exports.txt`) says: an accidental export would interpose the program's own function.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::shell;

pub fn check() -> Result<Vec<String>> {
    let metadata = shell::output(&["cargo", "metadata", "--no-deps", "--format-version", "1"])?;
    let mut violations = Vec::new();
    for package in libraries(&serde_json::from_str(&metadata)?) {
        let Ok(expected) = fs::read_to_string(package.folder.join("exports.txt")) else {
            violations.push(format!("crate {} is a shared library without an exports.txt", package.name));
            continue;
        };
        shell::run(&["cargo", "build", "--quiet", "--package", &package.name])?;
        let library = format!("target/debug/lib{}.so", package.name.replace('-', "_"));
        let symbols =
            shell::output(&["nm", "--dynamic", "--defined-only", "--format=just-symbols", &library])
                .with_context(|| format!("listing the exports of {library}"))?;
        violations.extend(differences(&package.name, &expected, &symbols));
    }
    Ok(violations)
}

struct Package {
    name: String,
    folder: PathBuf,
}

/// Packages whose library is a shared one. Examples that are shared libraries exist for tests and ship nowhere.
fn libraries(metadata: &Value) -> Vec<Package> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let shared = |target: &Value| list(&target["kind"]).iter().any(|kind| kind == "cdylib");
    let packages = list(&metadata["packages"]);
    let packages = packages.iter().filter(|package| list(&package["targets"]).iter().any(shared));
    packages
        .filter_map(|package| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            Some(Package { name: package["name"].as_str()?.into(), folder: manifest.parent()?.into() })
        })
        .collect()
}

fn differences(name: &str, expected: &str, found: &str) -> Vec<String> {
    let set = |text: &str| -> BTreeSet<String> {
        let names = text.lines().map(|l| l.split('@').next().unwrap_or(l).trim());
        names.filter(|l| !l.is_empty() && !l.starts_with('#')).map(String::from).collect()
    };
    let (expected, found) = (set(expected), set(found));
    let extra = found
        .difference(&expected)
        .map(|s| format!("crate {name} exports {s}, which its exports.txt does not list"));
    let lacking = expected
        .difference(&found)
        .map(|s| format!("crate {name} does not export {s}, which its exports.txt lists"));
    extra.chain(lacking).collect()
}

#[cfg(test)]
mod tests {
    use super::{differences, libraries};

    #[test]
    fn both_directions_are_found() {
        let found = differences("x", "# list\na\nb\n", "b@@V1\nc\n");
        assert_eq!(
            found,
            [
                "crate x exports c, which its exports.txt does not list",
                "crate x does not export a, which its exports.txt lists"
            ]
        );
    }

    #[test]
    fn only_libraries_that_ship_count() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "a", "manifest_path": "/p/a/Cargo.toml", "targets": [{ "kind": ["cdylib"] }] },
            { "name": "b", "manifest_path": "/p/b/Cargo.toml", "targets": [{ "kind": ["lib"] }, { "kind": ["example"], "crate_types": ["cdylib"] }] },
        ]});
        let found = libraries(&metadata);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name, "a");
    }
}
