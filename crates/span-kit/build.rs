//! Lists the sources that are compiled into profiled programs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
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
        for file in files(&src) {
            let name = format!("{name}/{}", file.strip_prefix(&src).expect("it is inside").display());
            writeln!(list, "    ({name:?}, include_str!({:?})),", file.display()).expect("memory");
        }
    }
    list.push_str("];\n");
    fs::write(out.join("sources.rs"), list).expect("OUT_DIR can be written");
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("readable").path())
        .collect();
    found.sort();
    found.retain(|f| f.extension().is_some_and(|e| e == "rs"));
    found
}
