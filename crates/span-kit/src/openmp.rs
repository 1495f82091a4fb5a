//! OpenMP programs: which runtime they load, and where LLVM's is, which can tell a tool what happens.
//!
//! Programs built by clang load `libomp` themselves. Those built by gcc load `libgomp`, which tells nobody anything;
//! `libomp` offers the same functions, so it is put before it.

use std::path::{Path, PathBuf};

/// What a program needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenMp {
    /// Nothing: it is no OpenMP program, or loads libomp itself.
    AsItIs,
    /// libomp in the place of libgomp.
    Instead(PathBuf),
    /// libomp, which is not on this machine.
    Missing,
}

/// Where distributions put the library.
const FOLDERS: &[&str] = &["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib"];
const NAMES: &[&str] = &["libomp.so.5", "libomp.so"];

/// Looks into the executable.
pub fn needs(program: &Path) -> OpenMp {
    let Ok(bytes) = std::fs::read(program) else { return OpenMp::AsItIs };
    let names = |name: &[u8]| bytes.windows(name.len()).any(|w| w == name);
    if !bytes.starts_with(b"\x7fELF") || !names(b"libgomp.so.1\0") {
        return OpenMp::AsItIs;
    }
    library(&folders()).map_or(OpenMp::Missing, OpenMp::Instead)
}

/// Whether an executable uses OpenMP.
pub fn is_used(program: &Path) -> bool {
    let Ok(bytes) = std::fs::read(program) else { return false };
    let names = |name: &[u8]| bytes.windows(name.len()).any(|w| w == name);
    bytes.starts_with(b"\x7fELF") && (names(b"libgomp.so.1\0") || names(b"libomp.so"))
}

/// LLVM's OpenMP runtime.
fn library(folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().flat_map(|f| NAMES.iter().map(|n| f.join(n))).find(|p| p.is_file())
}

fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    let mut llvm: Vec<PathBuf> = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .flatten()
        .map(|e| e.path())
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("llvm-")))
        .map(|p| p.join("lib"))
        .collect();
    llvm.sort();
    folders.extend(llvm.into_iter().rev());
    folders
}

/// What to say where it is not installed.
pub const MISSING: &str = "the program uses gcc's OpenMP runtime, which reports nothing, and LLVM's is not installed \
                           (Debian and Ubuntu: apt install libomp5; Fedora: dnf install libomp)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_are_left_alone() {
        assert_eq!(needs(Path::new("/bin/true")), OpenMp::AsItIs);
        assert_eq!(needs(Path::new("/nonexistent")), OpenMp::AsItIs);
    }

    #[test]
    fn the_library_is_found_where_it_is_and_missed_where_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let folders = [folder.path().to_owned()];
        assert_eq!(library(&folders), None);
        let file = folder.path().join("libomp.so.5");
        std::fs::write(&file, "").unwrap();
        assert_eq!(library(&folders), Some(file));
    }
}
