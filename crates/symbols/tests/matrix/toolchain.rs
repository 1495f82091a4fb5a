//! Compilers and other tools, and reading what the marked programs say about themselves.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection as _};
use symbols::{Files, Object, ObjectAddr, Options, fs::Disk};

/// A folder with the programs of one test.
pub struct Bench {
    folder: tempfile::TempDir,
}

/// One mark of a program: `number` at `addr` comes from `line`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub addr: ObjectAddr,
    pub line: u32,
    pub number: u32,
}

pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Lines of a source file that hold a comment.
pub fn lines_with(name: &str, comment: &str) -> Vec<u32> {
    let text = std::fs::read_to_string(source(name)).unwrap();
    text.lines().zip(1..).filter(|(text, _)| text.contains(comment)).map(|(_, line)| line).collect()
}

pub fn installed(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(tool).is_file())
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs a tool in the folder; `command` is split at spaces.
    pub fn run(&self, command: &str) -> String {
        let mut words = command.split_whitespace();
        let tool = words.next().unwrap();
        let output = Command::new(tool).args(words).current_dir(self.folder.path()).output();
        let output = output.unwrap_or_else(|e| panic!("{command}: {e}"));
        assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Compiles `marks.c` and the like to `prog`.
    pub fn compile(&self, compiler: &str, name: &str, flags: &str) -> PathBuf {
        self.run(&format!("{compiler} {} -o prog {flags}", source(name).display()));
        self.path("prog")
    }

    pub fn open(&self, name: &str) -> Object {
        let options = Options { debug_folders: vec![self.path("debug")], ..Options::default() };
        open(&self.path(name), options)
    }
}

pub fn open(path: &Path, options: Options) -> Object {
    let bytes = Disk.read(path).unwrap_or_else(|| panic!("no {}", path.display()));
    Object::open(path, bytes, Arc::new(Disk), options).unwrap()
}

/// The marks that a program carries, read from the file itself.
pub fn marks(path: &Path) -> Vec<Mark> {
    let data = std::fs::read(path).unwrap();
    let file = ElfFile64::<LittleEndian>::parse(&*data).unwrap();
    let section = file.section_by_name("marks").expect("the program has marks");
    let word = |bytes: &[u8], i: usize| u32::from_le_bytes(bytes[i * 4..i * 4 + 4].try_into().unwrap());
    let marks = section.data().unwrap().chunks_exact(12).enumerate().map(|(i, mark)| {
        let here = section.address() + i as u64 * 12;
        let addr = here.wrapping_add_signed((word(mark, 0) as i32).into());
        Mark { addr: ObjectAddr(addr), line: word(mark, 1), number: word(mark, 2) }
    });
    let marks: Vec<Mark> = marks.collect();
    assert!(!marks.is_empty());
    marks
}
