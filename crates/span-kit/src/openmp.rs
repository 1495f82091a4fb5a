//! OpenMP programs: which runtime they load, and where LLVM's is, which can tell a tool what happens.
//!
//! Programs built by clang load `libomp` themselves. Those built by gcc load `libgomp`, which tells nobody anything;
//! `libomp` offers the same functions, most of them, so it is put before it: the dynamic linker then takes from it whatever
//! it has under the same name and version. A program that needs one that it has not would run on both at once.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader64, SHT_DYNSYM};
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, SymbolIndex};

/// What a program needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenMp {
    /// Nothing: it is no OpenMP program, or loads libomp itself.
    AsItIs,
    /// libomp in the place of libgomp.
    Instead(PathBuf),
    /// libomp, which is not on this machine.
    Missing,
    /// These functions, which libomp has not.
    Unfit(Vec<String>),
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
    let Some(library) = library(&folders()) else { return OpenMp::Missing };
    let has = std::fs::read(&library).ok().and_then(|bytes| functions(&bytes, true)).unwrap_or_default();
    let mut unfit: Vec<String> = functions(&bytes, false)
        .unwrap_or_default()
        .into_iter()
        .filter(|function| function.is_openmp() && !has.contains(function))
        .map(|function| function.name)
        .collect();
    unfit.sort();
    if unfit.is_empty() { OpenMp::Instead(library) } else { OpenMp::Unfit(unfit) }
}

/// A function as the dynamic linker sees it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Function {
    name: String,
    version: String,
}

impl Function {
    fn is_openmp(&self) -> bool {
        ["GOMP_", "omp_", "GOACC_", "acc_"].iter().any(|prefix| self.name.starts_with(prefix))
    }
}

/// The functions that an ELF file defines, or those that it needs.
fn functions(bytes: &[u8], defined: bool) -> Option<HashSet<Function>> {
    let header = FileHeader64::<Endianness>::parse(bytes).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, bytes).ok()?;
    let symbols = sections.symbols(endian, bytes, SHT_DYNSYM).ok()?;
    let versions = sections.versions(endian, bytes).ok()?;
    let version = |index: SymbolIndex| {
        let table = versions.as_ref()?;
        let version = table.version(table.version_index(endian, index).index()).ok()??;
        Some(String::from_utf8_lossy(version.name()).into_owned())
    };
    let mut found = HashSet::new();
    for (index, symbol) in symbols.enumerate() {
        if symbol.is_undefined(endian) == defined {
            continue;
        }
        let name = symbol.name(endian, symbols.strings()).ok()?;
        let name = String::from_utf8_lossy(name).into_owned();
        found.insert(Function { name, version: version(index).unwrap_or_default() });
    }
    Some(found)
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

/// What to say where libomp will not do.
pub fn unfit(functions: &[String]) -> String {
    format!(
        "the program uses gcc's OpenMP runtime, and LLVM's cannot stand in for it, because it lacks {}",
        functions.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_by_name_and_version() {
        let bytes = std::fs::read("/bin/true").unwrap();
        let needed = functions(&bytes, false).unwrap();
        assert!(needed.iter().any(|f| f.name == "__libc_start_main" && f.version.starts_with("GLIBC_")));
        assert!(!functions(&bytes, true).unwrap().iter().any(|f| f.name == "__libc_start_main"));
    }

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
