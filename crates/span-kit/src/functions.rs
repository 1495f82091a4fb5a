//! Which functions of a program are call sites where instructions are counted: the program's own, and not the bodies of
//! tasks, which are sites already. The runtime reads the list (`crates/span-rt/src/calls.rs`).

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use symbols::{Object, Options, Origin};

/// Variable that names the list.
pub const VARIABLE: &str = "FARSIGHT_SPAN_FUNCTIONS";
/// Smaller ones are hardly more than a call.
const BYTES_MIN: u64 = 32;

/// The list for an executable, if it can be read and has any. `bodies`: with those of tasks, at which chains of calls end.
pub fn list(program: &Path, bodies: bool) -> Option<String> {
    let files: Arc<dyn symbols::Files> = Arc::new(symbols::fs::Disk);
    let bytes = files.read(program)?;
    let object = Object::open(program, bytes, files, Options::default()).ok()?;
    let mut text = String::from(if object.is_position_independent() { "pie\n" } else { "fixed\n" });
    let mut any = false;
    for (range, origin) in object.entries() {
        let size = range.end.0 - range.start.0;
        if origin != Origin::Symbol {
            continue;
        }
        let Some(name) = object.aliases(range.start).into_iter().next() else { continue };
        if bodies && is_outlined(name.readable()) {
            let _ = writeln!(text, "!{:x} {:x} {}", range.start.0, range.end.0, name.readable());
        } else if size >= BYTES_MIN && matters(name.readable()) {
            any = true;
            let _ = writeln!(text, "{:x} {:x} {}", range.start.0, range.end.0, name.readable());
        }
    }
    any.then_some(text)
}

/// Whether a function is the program's own, by its name.
fn matters(name: &str) -> bool {
    const OTHERS: [&str; 18] = [
        "core",
        "std",
        "alloc",
        "rayon",
        "rayon_core",
        "rayon_core_real",
        "span_rt",
        "spandag",
        "crossbeam_deque",
        "crossbeam_epoch",
        "crossbeam_utils",
        "hashbrown",
        "gimli",
        "addr2line",
        "object",
        "miniz_oxide",
        "rustc_demangle",
        "memchr",
    ];
    // The path that a name starts with, also of `<T as core::Trait>::f` and of `&mut F`.
    let start = name.trim_start_matches(['<', '&', '*', '(', '[']).trim_start_matches("mut ");
    let first = start.split("::").next().unwrap_or_default();
    // `<u64 as core::Trait>::f` starts with a word that is no path.
    let foreign = (start.contains("::") && OTHERS.contains(&first)) || first.contains(' ');
    // Linker's and compiler's names, bodies of tasks, and the start of the program.
    let odd = name.starts_with(['_', '.']) || name.contains("{{closure}}") || name.contains("{closure");
    let outlined = is_outlined(name) || name.starts_with("farsight_");
    let is_main = name == "main" || name.ends_with("::main");
    !(foreign || odd || outlined || is_main)
}

/// OpenMP's outlined bodies are tasks.
fn is_outlined(name: &str) -> bool {
    name.contains("._omp_fn") || name.contains(".omp_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_functions_matter() {
        for yes in ["app::work", "<app::Grid as app::Step>::advance", "relax", "app::solve::inner::<u64>"] {
            assert!(matters(yes), "{yes}");
        }
        for no in [
            "main",
            "app::main",
            "core::slice::sort::stable",
            "<alloc::vec::Vec<T> as core::clone::Clone>::clone",
            "<u64 as core::fmt::Display>::fmt",
            "app::main::{{closure}}",
            "rayon_core::join::Side::run",
            "_start",
            "work._omp_fn.0",
            ".omp_outlined.",
        ] {
            assert!(!matters(no), "{no}");
        }
    }

    #[test]
    fn our_own_executable_has_functions() {
        let list = list(&std::env::current_exe().unwrap(), false).unwrap();
        assert!(list.lines().any(|l| l.contains("span_kit::rewrite")), "{}", &list[..list.len().min(2000)]);
    }
}
