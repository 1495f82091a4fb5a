//! Builds the blobs: each is a crate of its own, outside the workspace, because it needs another profile and no
//! standard library.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Name of the crate in `blobs/` and of the file that it becomes: images that the engine's launcher maps.
const BLOBS: &[&str] = &["count", "growth", "log"];
/// Likewise: libraries to preload.
const LIBRARIES: &[&str] = &["causal", "idle", "strand"];
/// What they are made of.
const SOURCES: &[&str] = &[
    "../engine",
    "../wire",
    "../count-rt",
    "../log-rt",
    "../growth-rt",
    "../inputsize",
    "../syscalls",
    "../preload",
    "../sampler",
    "../causal-rt",
    "../idle-rt",
    "../strand-rt",
    "blobs",
    "../../Cargo.toml",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    for s in SOURCES {
        watch(&here.join(s));
    }
    for blob in BLOBS {
        build(&here.join("blobs").join(blob), &out, blob, &format!("{blob}-blob"));
    }
    for library in LIBRARIES {
        build(&here.join("blobs").join(library), &out, library, &format!("lib{library}_blob.so"));
    }
}

/// Rebuild when a source changes; `target` folders are not sources.
fn watch(path: &Path) {
    if path.is_file() {
        println!("cargo:rerun-if-changed={}", path.display());
        return;
    }
    let Ok(dir) = fs::read_dir(path) else { return };
    for entry in dir.flatten() {
        let p = entry.path();
        if p.is_dir() && p.file_name().is_some_and(|n| n != "target" && n != "tests") {
            watch(&p);
        } else if p.extension().is_some_and(|e| e == "rs" || e == "toml" || e == "lock") {
            println!("cargo:rerun-if-changed={}", p.display());
        }
    }
}

fn build(manifest_dir: &Path, out: &Path, name: &str, file: &str) {
    let target = out.join("blobs");
    let mut cargo = Command::new(env::var_os("CARGO").expect("cargo sets it"));
    cargo
        .current_dir(manifest_dir)
        .args(["build", "--release", "--locked", "--target", "x86_64-unknown-linux-gnu", "--target-dir"])
        .arg(&target);
    // Flags of the outer build (a sanitizer, coverage, native CPU features) must not leak into the blob: it may
    // use nothing beyond SSE2.
    for (key, _) in env::vars_os() {
        let k = key.to_string_lossy();
        if k == "RUSTFLAGS"
            || k == "CARGO_ENCODED_RUSTFLAGS"
            || k.starts_with("CARGO_PROFILE_")
            || k == "CARGO_BUILD_TARGET"
        {
            cargo.env_remove(&key);
        }
    }
    let status = cargo.status().unwrap_or_else(|e| panic!("cannot run cargo for the {name} blob: {e}"));
    assert!(status.success(), "building the {name} blob failed");
    let built = target.join("x86_64-unknown-linux-gnu/release").join(file);
    fs::copy(&built, out.join(format!("{name}.blob"))).unwrap_or_else(|e| panic!("{}: {e}", built.display()));
}
