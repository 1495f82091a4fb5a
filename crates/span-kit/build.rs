//! Lists the sources that are compiled into profiled programs, and builds the library for C and C++.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Crates that a bare `rustc` compiles, each on top of those before it.
const CRATES: &[&str] = &["spandag", "span-rt", "span-rayon"];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rerun-if-changed=build.rs");
    let mut list =
        String::from("/// Path and text of every source file.\npub static SOURCES: &[(&str, &str)] = &[\n");
    for name in CRATES {
        let src = here.join("..").join(name).join("src");
        println!("cargo:rerun-if-changed={}", src.display());
        for file in files(&src, "rs") {
            let name = format!("{name}/{}", file.strip_prefix(&src).expect("it is inside").display());
            writeln!(list, "    ({name:?}, include_str!({:?})),", file.display()).expect("memory");
        }
    }
    list.push_str("];\n/// Path and text of every header.\npub static HEADERS: &[(&str, &str)] = &[\n");
    let include = here.join("../span-c/include");
    println!("cargo:rerun-if-changed={}", include.display());
    for folder in ["cilk", "farsight"] {
        for file in files(&include.join(folder), "h") {
            let name = format!("{folder}/{}", file.file_name().expect("a file").to_string_lossy());
            writeln!(list, "    ({name:?}, include_str!({:?})),", file.display()).expect("memory");
        }
    }
    library(&here, &out);
    list.push_str("];\n/// The runtime library for C and C++.\npub static LIBRARY: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/libfarsight_span.so\"));\n");
    fs::write(out.join("sources.rs"), list).expect("OUT_DIR can be written");
}

/// Compiles the library with a bare rustc: its crates have no dependencies, and the settings are not the workspace's.
fn library(here: &Path, out: &Path) {
    let built = out.join("lib");
    fs::create_dir_all(&built).expect("OUT_DIR can be written");
    let src = here.join("../span-c/src");
    println!("cargo:rerun-if-changed={}", src.display());
    let steps: [(&str, &str, &str, &[&str]); 3] = [
        ("spandag", "../spandag/src/lib.rs", "rlib", &[]),
        ("span_rt", "../span-rt/src/lib.rs", "rlib", &["spandag"]),
        ("farsight_span", "../span-c/src/lib.rs", "cdylib", &["spandag", "span_rt"]),
    ];
    for (name, root, kind, externs) in steps {
        let mut rustc = Command::new(env::var_os("RUSTC").expect("cargo sets it"));
        rustc
            .args(["--edition=2024", "--crate-name", name, "--crate-type", kind, "--cap-lints=allow"])
            // Words that were just written are not read as vectors: that would have to wait for the store.
            .args(["-Copt-level=3", "-Cpanic=abort", "-Cstrip=debuginfo", "-Cno-vectorize-slp", "--out-dir"])
            .arg(&built)
            .arg("-L")
            .arg(&built);
        // Hooks are a handful of functions of three crates: as one they need fewer calls and registers.
        rustc.arg("-Ccodegen-units=1");
        if kind == "cdylib" {
            rustc.arg("-Clto=fat");
        }
        for e in externs {
            rustc.arg("--extern").arg(format!("{e}={}", built.join(format!("lib{e}.rlib")).display()));
        }
        let status = rustc.arg(here.join(root)).status().unwrap_or_else(|e| panic!("cannot run rustc: {e}"));
        assert!(status.success(), "{name} does not compile");
    }
    fs::copy(built.join("libfarsight_span.so"), out.join("libfarsight_span.so")).expect("it was just built");
}

/// All files of that kind in a folder and those inside of it.
fn files(dir: &Path, kind: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(files(&path, kind));
        } else if path.extension().is_some_and(|e| e == kind) {
            found.push(path);
        }
    }
    found.sort();
    found
}
