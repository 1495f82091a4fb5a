//! Crates depend only on what the architecture allows, tested on what `cargo tree` says, not on what the
//! documents say.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::shell;

/// What each crate of ours may depend on among our own crates. A crate that is not listed is a violation, so
/// that a new one must take its place in the architecture.
const ALLOWED: &[(&str, &[&str])] = &[
    ("analyse", &["fit", "profile"]),
    ("annotate", &[]),
    ("causal", &["launch", "profile", "symbols", "wire"]),
    ("causal-rt", &["preload", "sampler", "wire"]),
    ("collect", &["inputsize", "launch", "profile", "symbols", "wire"]),
    ("count-rt", &["engine", "wire"]),
    ("engine", &["wire"]),
    ("exchange", &["profile"]),
    (
        "farsight",
        &[
            "analyse", "causal", "collect", "exchange", "idle", "launch", "profile", "report", "runtimes",
            "span-kit", "symbols", "wire",
        ],
    ),
    ("fit", &[]),
    ("growth-rt", &["count-rt", "engine", "inputsize", "syscalls", "wire"]),
    ("idle", &["profile", "symbols", "wire"]),
    ("idle-rt", &["preload", "sampler", "wire"]),
    ("inputsize", &[]),
    ("launch", &["wire"]),
    ("log-rt", &["engine", "syscalls", "wire"]),
    ("oracle", &[]),
    ("preload", &["wire"]),
    ("profile", &[]),
    ("report", &["analyse", "fit", "profile"]),
    ("runtimes", &[]),
    ("sampler", &["preload"]),
    ("span-c", &["span-rt", "spandag"]),
    ("span-kit", &["profile", "spandag", "symbols"]),
    ("span-rayon", &["span-rt", "spandag"]),
    ("span-rt", &["spandag"]),
    ("spandag", &[]),
    ("stepper", &["symbols"]),
    ("strand-rt", &["preload", "sampler", "wire"]),
    ("symbols", &[]),
    ("syscalls", &[]),
    ("transparency", &[]),
    ("wire", &[]),
    ("xtask", &["analyse", "exchange", "fit", "profile"]),
];

/// Crates that only the command line and the automation may use: terminals, exit codes, untyped errors.
const GLUE_ONLY: &[&str] = &["anyhow", "clap"];
/// Who may; the test tools are binaries too.
const GLUE: &[&str] = &["farsight", "stepper", "transparency", "xtask"];

pub fn check() -> Result<Vec<String>> {
    let tree = shell::output(&[
        "cargo",
        "tree",
        "--workspace",
        "--edges",
        "normal,build",
        "--depth",
        "1",
        "--prefix",
        "depth",
        "--format",
        "{p}",
    ])?;
    Ok(violations(&dependencies(&tree)))
}

/// Direct dependencies per workspace crate, from `cargo tree --prefix depth`: `0name v1 (path)`, `1dep v2`.
fn dependencies(tree: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut current = String::new();
    for line in tree.lines() {
        let Some((depth, rest)) = line.split_at_checked(1) else { continue };
        let name = rest.split(' ').next().unwrap_or_default().to_string();
        match depth {
            "0" => {
                found.entry(name.clone()).or_default();
                current = name;
            }
            "1" => found.entry(current.clone()).or_default().push(name),
            _ => {}
        }
    }
    found
}

fn violations(dependencies: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, used) in dependencies {
        let Some((_, allowed)) = ALLOWED.iter().find(|(n, _)| n == name) else {
            violations.push(format!(
                "crate {name} has no place in the layering: add it to xtask/src/tidy/layering.rs"
            ));
            continue;
        };
        for dependency in used {
            let ours = dependencies.contains_key(dependency);
            if ours && !allowed.contains(&dependency.as_str()) {
                violations.push(format!("crate {name} must not depend on {dependency}"));
            }
            if GLUE_ONLY.contains(&dependency.as_str()) && !GLUE.contains(&name.as_str()) {
                violations
                    .push(format!("crate {name} must not use {dependency}: only {} may", GLUE.join(" and ")));
            }
        }
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upward_edges_and_glue_are_found() {
        let tree =
            "0fit v0.1.0 (/x)\n1report v0.1.0 (/x)\n1clap v4.0.0\n\n0report v0.1.0 (/x)\n1fit v0.1.0 (/x)\n";
        assert_eq!(
            violations(&dependencies(tree)),
            [
                "crate fit must not depend on report",
                "crate fit must not use clap: only farsight and stepper and transparency and xtask may"
            ]
        );
    }

    #[test]
    fn unlisted_crates_are_found() {
        assert_eq!(violations(&dependencies("0novel v0.1.0 (/x)\n")).len(), 1);
    }
}
