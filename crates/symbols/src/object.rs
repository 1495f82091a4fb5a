//! One executable or library, ready to answer what its addresses mean.
//!
//! Opening reads headers only. The function table is built at the first question about functions, debug
//! information at the first about lines, each once, and other files are asked for only then. All methods take
//! `&self` and may be called from many threads.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};

use self_cell::self_cell;

use crate::address::{AddrRange, ObjectAddr};
use crate::bytes::{Arena, Bytes, Files};
use crate::dwarf::{DebugInfo, Source};
use crate::elf::{BuildId, Image, OpenError};
use crate::frames::{Frame, Frames};
use crate::functions::{Entry, FunctionTable, Label, Origin};
use crate::name::Name;
use crate::problems::Problems;
use crate::segments::Segments;
use crate::separate::{DEBUG_FOLDER, Finder, Separate};

/// A function that a call can enter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its first instruction.
    pub entry: ObjectAddr,
    /// Bytes from its first to its last instruction; a part that the compiler moved away is not counted.
    pub size_bytes: u64,
    /// Its name, or `object+0xaddress`.
    pub name: Name,
    /// Where it is declared, else the first line of its code.
    pub file: Option<Arc<str>>,
    /// From 1.
    pub line: Option<u32>,
    /// How it is known.
    pub origin: Origin,
}

/// A stretch of code in which every address has the same frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The addresses.
    pub range: AddrRange,
    /// Their meaning.
    pub frames: Frames,
}

/// How to open an object.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folders with separate debug files.
    pub debug_folders: Vec<PathBuf>,
    /// Whether debug information of the system's shared libraries is read too. Their debug files, where they are
    /// installed, take more time to read than a short program runs; names come from symbol tables in any case.
    pub system_lines: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { debug_folders: vec![DEBUG_FOLDER.into()], system_lines: true }
    }
}

/// One ELF file and what belongs to it.
pub struct Object {
    cell: Cell,
    segments: Segments,
    functions: RwLock<HashMap<u64, Arc<Function>>>,
}

struct Owner {
    bytes: Bytes,
    arena: Arena,
    files: Arc<dyn Files>,
    path: PathBuf,
    options: Options,
    problems: Arc<Problems>,
}

struct Parsed<'a> {
    image: Image<'a>,
    separate: OnceLock<Option<Separate<'a>>>,
    table: OnceLock<FunctionTable<'a>>,
    debug: OnceLock<Option<DebugInfo<'a>>>,
}

self_cell!(
    struct Cell {
        owner: Owner,
        #[not_covariant]
        dependent: Parsed,
    }
);

impl Object {
    /// Reads the headers. `path` is where the file is or was: its last element names functions without a
    /// symbol, and companions are looked for beside it.
    pub fn open(
        path: impl Into<PathBuf>,
        bytes: Bytes,
        files: Arc<dyn Files>,
        options: Options,
    ) -> Result<Object, OpenError> {
        let problems = Arc::new(Problems::default());
        let owner = Owner { bytes, arena: Arena::default(), files, path: path.into(), options, problems };
        let cell = Cell::try_new(owner, |owner| {
            let image = Image::open(owner.bytes.as_ref())?;
            image.problems.iter().for_each(|p| owner.problems.add(p.as_str()));
            Ok(Parsed { image, separate: OnceLock::new(), table: OnceLock::new(), debug: OnceLock::new() })
        })?;
        let segments = cell.with_dependent(|_, parsed| parsed.image.segments.clone());
        Ok(Object { cell, segments, functions: RwLock::default() })
    }

    /// Where the file is or was.
    pub fn path(&self) -> &Path {
        &self.cell.borrow_owner().path
    }

    /// The last element of the path.
    pub fn file_name(&self) -> String {
        let path = self.path();
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    /// The linker's identity of the file.
    pub fn build_id(&self) -> Option<BuildId> {
        self.parsed(|_, p| p.image.build_id())
    }

    /// Where the loader puts its bytes.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Where code lies.
    pub fn code(&self) -> Vec<AddrRange> {
        self.parsed(|_, p| p.image.code())
    }

    /// The bytes of a range, as far as the file holds them.
    pub fn bytes_of(&self, range: AddrRange) -> Vec<u8> {
        self.parsed(|_, p| {
            let bytes = p.image.bytes_at(range.start).unwrap_or_default();
            let wanted = usize::try_from(range.size_bytes()).unwrap_or(usize::MAX);
            bytes[..bytes.len().min(wanted)].to_vec()
        })
    }

    /// Where the program (or the dynamic loader, for itself) starts.
    pub fn entry_point(&self) -> ObjectAddr {
        self.parsed(|_, p| p.image.entry())
    }

    /// Whether it may be loaded anywhere (PIE, shared library).
    pub fn is_position_independent(&self) -> bool {
        self.parsed(|_, p| p.image.is_position_independent())
    }

    /// What could not be read or found so far.
    pub fn problems(&self) -> Vec<String> {
        self.cell.borrow_owner().problems.list()
    }

    /// Whether lines and inlined functions are known, in the file or one that belongs to it.
    pub fn has_debug_info(&self) -> bool {
        self.parsed(|o, p| p.debug(o).is_some())
    }

    /// Bounds and origin of every function that can be entered, by address.
    pub fn entries(&self) -> Vec<(AddrRange, Origin)> {
        self.parsed(|o, p| p.table(o).iter().map(|e| (e.range(), e.origin())).collect())
    }

    /// All names that symbol tables give to an address, the one that we use first.
    pub fn aliases(&self, entry: ObjectAddr) -> Vec<Name> {
        self.parsed(|o, p| {
            let names = p.table(o).aliases(entry.0);
            names.map(|n| Name::from_mangled(&String::from_utf8_lossy(n))).collect()
        })
    }

    /// Functions whose linker name or readable name is `name`.
    pub fn functions_named(&self, name: &str) -> Vec<Arc<Function>> {
        let starts: Vec<u64> = self.parsed(|o, p| {
            let table = p.table(o);
            let is_it = |symbol: &[u8]| {
                let symbol = String::from_utf8_lossy(symbol);
                symbol == name || Name::from_mangled(&symbol).readable() == name
            };
            table.iter().filter(|e| table.aliases(e.start).any(is_it)).map(|e| e.start).collect()
        });
        starts.into_iter().filter_map(|start| self.function_at(ObjectAddr(start))).collect()
    }

    /// The function that holds an address. For the moved-away cold part of a function, the function.
    pub fn function_at(&self, addr: ObjectAddr) -> Option<Arc<Function>> {
        let entry = self.parsed(|o, p| p.table(o).at(addr.0).map(|e| e.start));
        let key = entry.or_else(|| self.parsed(|o, p| Some(p.debug(o)?.function(addr.0)?.0.start.0)))?;
        if let Some(known) = self.functions.read().unwrap_or_else(|e| e.into_inner()).get(&key) {
            return Some(known.clone());
        }
        let function = Arc::new(self.parsed(|o, p| p.function(o, key))?);
        let mut cache = self.functions.write().unwrap_or_else(|e| e.into_inner());
        Some(cache.entry(key).or_insert(function).clone())
    }

    /// What an instruction's address means. For a return address pass the address before it: the call may be
    /// the last instruction of its line or its function.
    pub fn resolve(&self, addr: ObjectAddr) -> Frames {
        let mut frames = self.parsed(|o, p| p.debug(o).map(|d| d.frames(addr.0)).unwrap_or_default());
        if let Some(function) = self.function_at(addr) {
            if frames.is_empty() {
                frames.push(Frame::default());
            }
            let outermost = &mut frames[0];
            // One name per function in all modes: the symbol's, also where DWARF has another alias.
            if function.origin == Origin::Symbol || outermost.function.is_none() {
                outermost.function = Some(function.name.clone());
            }
        }
        Frames(frames)
    }

    /// The pieces of a range, each with its frames, covering the range without gaps.
    pub fn spans(&self, range: AddrRange) -> Vec<Span> {
        let (start, end) = (range.start.0, range.end.0);
        if start >= end {
            return Vec::new();
        }
        let cuts = self.parsed(|o, p| p.debug(o).map(|d| d.boundaries(start, end)));
        let cuts = cuts.unwrap_or_else(|| vec![start, end]);
        let mut spans: Vec<Span> = Vec::new();
        for pair in cuts.windows(2) {
            let frames = self.resolve(ObjectAddr(pair[0]));
            match spans.last_mut() {
                Some(last) if last.frames == frames => last.range.end = ObjectAddr(pair[1]),
                _ => spans.push(Span { range: AddrRange::new(pair[0], pair[1]), frames }),
            }
        }
        spans
    }

    /// All code that the line table attributes to a line of the files that `wanted` accepts: where to put a
    /// progress point.
    pub fn code_of_line(&self, wanted: impl Fn(&str) -> bool, line: u32) -> Vec<AddrRange> {
        self.parsed(|o, p| p.debug(o).map(|d| d.code_of_line(wanted, line)).unwrap_or_default())
    }

    fn parsed<R>(&self, f: impl for<'a> FnOnce(&'a Owner, &Parsed<'a>) -> R) -> R {
        self.cell.with_dependent(|owner, parsed| f(owner, parsed))
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl<'a> Parsed<'a> {
    fn finder<'s>(&self, owner: &'a Owner, problems: &'s Problems) -> Finder<'s, 'a>
    where
        'a: 's,
    {
        Finder { arena: &owner.arena, files: &*owner.files, folders: &owner.options.debug_folders, problems }
    }

    fn separate(&self, owner: &'a Owner) -> Option<&Separate<'a>> {
        let find = || self.finder(owner, &owner.problems).debug_file(&self.image, &owner.path);
        self.separate.get_or_init(find).as_ref()
    }

    fn table(&self, owner: &'a Owner) -> &FunctionTable<'a> {
        self.table.get_or_init(|| {
            let mut others = Vec::new();
            // Only a stripped object needs to look elsewhere.
            let mini;
            if self.image.section(".symtab").is_none() {
                if let Some(separate) = self.separate(owner) {
                    others.push((&separate.image, separate.bias));
                }
                mini = self.finder(owner, &owner.problems).mini(&self.image);
                others.extend(mini.as_ref().map(|m| (m, 0)));
            }
            let mut problems = Vec::new();
            let table = FunctionTable::build(&self.image, &others, &mut problems);
            problems.into_iter().for_each(|p| owner.problems.add(p));
            table
        })
    }

    fn debug(&self, owner: &'a Owner) -> Option<&DebugInfo<'a>> {
        let load = || {
            if !owner.options.system_lines && is_system_library(&owner.path) {
                return None;
            }
            let has = |image: &Image<'a>| image.debug_section(".debug_info", &owner.arena).is_some();
            let (image, path, bias) = if has(&self.image) {
                (&self.image, &owner.path, 0)
            } else {
                let separate = self.separate(owner)?;
                (&separate.image, &separate.path, separate.bias)
            };
            let supplement = self.finder(owner, &owner.problems).supplement(image, path);
            let mut paths = vec![owner.path.clone()];
            if *path != owner.path {
                paths.push(path.clone());
            }
            DebugInfo::load(Source {
                image,
                supplement: supplement.as_ref(),
                bias,
                code: self.image.code(),
                arena: &owner.arena,
                files: &*owner.files,
                paths,
                problems: owner.problems.clone(),
            })
        };
        self.debug.get_or_init(load).as_ref()
    }

    /// The function that starts at an address.
    fn function(&self, owner: &'a Owner, start: u64) -> Option<Function> {
        let table = self.table(owner);
        let entry = table.at(start).filter(|e| e.start == start);
        let debug = self.debug(owner);
        let declared = debug.and_then(|d| d.function(start));
        let range = entry.map(Entry::range).or(declared.as_ref().map(|(range, _)| *range))?;
        let from_debug = || declared.as_ref().and_then(|(_, d)| d.name.clone());
        let symbol = |name: &[u8]| Name::from_mangled(&String::from_utf8_lossy(name));
        let stub = |name: &[u8]| Name::from_mangled(&format!("{}@plt", String::from_utf8_lossy(name)));
        let name = match entry.map(|e| table.label(e)) {
            Some(Label::Symbol(name)) => symbol(name),
            Some(Label::Stub(name)) => stub(name),
            Some(Label::StubOf(resolver)) => match table.at(resolver).map(|e| table.label(e)) {
                Some(Label::Symbol(name)) => stub(name),
                _ => Name::plain(&format!("{}+{resolver:#x}@plt", file_name(&owner.path))),
            },
            Some(Label::None) | None => {
                from_debug().unwrap_or_else(|| Name::plain(&format!("{}+{start:#x}", file_name(&owner.path))))
            }
        };
        let place = declared.and_then(|(_, d)| d.place.clone());
        let place = place.or_else(|| {
            let first = debug?.frames(start).into_iter().next()?;
            first.location()
        });
        Some(Function {
            entry: range.start,
            size_bytes: range.size_bytes(),
            name,
            file: place.as_ref().map(|p| p.file.clone()),
            line: place.map(|p| p.line),
            origin: entry.map_or(Origin::Symbol, Entry::origin),
        })
    }
}

/// A shared library in a folder that the system's packages own?
fn is_system_library(path: &Path) -> bool {
    const FOLDERS: [&str; 4] = ["/lib", "/lib64", "/usr/lib", "/usr/lib64"];
    let is_library = file_name(path).split('.').skip(1).any(|part| part == "so");
    is_library && FOLDERS.iter().any(|folder| path.starts_with(folder))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_libraries_are_told_by_folder_and_name() {
        for yes in ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/lib/libz.so"]
        {
            assert!(is_system_library(Path::new(yes)), "{yes}");
        }
        for no in ["/usr/lib/gcc/x86_64-linux-gnu/12/cc1", "/home/me/libmine.so.1", "/usr/library/liba.so"] {
            assert!(!is_system_library(Path::new(no)), "{no}");
        }
    }
}
