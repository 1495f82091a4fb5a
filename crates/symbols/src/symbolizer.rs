//! Addresses of a process to their meaning: a [`ProcessMap`] joined with the objects behind it.
//!
//! Objects are opened when the first address falls into them and kept by what stands behind the mapping, so
//! one symbolizer serves any number of processes and threads. An object that cannot be opened is tried once;
//! its addresses still get the name of their file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use crate::address::{Epoch, ObjectAddr, ProcessAddr};
use crate::bytes::{Bytes, Files};
use crate::frames::Frames;
use crate::maps::{Backing, Mapping};
use crate::object::{Function, Object, Options};
use crate::problems::Problems;
use crate::process::ProcessMap;

/// An address of a process, found in an object.
#[derive(Debug, Clone)]
pub struct Located {
    /// The executable or library.
    pub object: Arc<Object>,
    /// Where in it.
    pub addr: ObjectAddr,
}

impl Located {
    /// What the address means; see [`Object::resolve`].
    pub fn resolve(&self) -> Frames {
        self.object.resolve(self.addr)
    }

    /// The function that holds it.
    pub fn function(&self) -> Option<Arc<Function>> {
        self.object.function_at(self.addr)
    }
}

/// Opens objects and finds addresses in them.
pub struct Symbolizer {
    files: Arc<dyn Files>,
    options: Options,
    objects: RwLock<HashMap<Backing, Option<Arc<Object>>>>,
    problems: Problems,
}

impl Symbolizer {
    /// Without any object yet.
    pub fn new(files: Arc<dyn Files>, options: Options) -> Self {
        Symbolizer { files, options, objects: RwLock::default(), problems: Problems::default() }
    }

    /// Gives the kernel's library, as copied from a process's memory, so that its addresses get names.
    pub fn set_vdso(&self, bytes: Bytes) {
        let opened = Object::open("[vdso]", bytes, self.files.clone(), self.options.clone());
        let opened = opened.map_err(|e| self.problems.add(format!("[vdso]: {e}"))).ok().map(Arc::new);
        self.objects.write().unwrap_or_else(|e| e.into_inner()).insert(Backing::Vdso, opened);
    }

    /// Where an address of a process was at a time. Nothing for memory without an object.
    pub fn locate(&self, map: &ProcessMap, addr: ProcessAddr, when: Epoch) -> Option<Located> {
        let (mapping, offset) = map.file_offset(addr, when)?;
        let object = self.object(&mapping.backing)?;
        let addr = match mapping.backing {
            // The kernel maps its library as one piece, not by segments.
            Backing::Vdso => ObjectAddr(object.segments().span()?.start.0.wrapping_add(offset.0)),
            _ => object.segments().address_of(offset, mapping.executable)?,
        };
        Some(Located { object, addr })
    }

    /// What to call an address that has no object: the name of its memory.
    pub fn place_name(mapping: &Mapping) -> String {
        match &mapping.backing {
            Backing::File { path, .. } => path.display().to_string(),
            Backing::Vdso => "[vdso]".into(),
            Backing::Anonymous(name) if name.is_empty() => "[anonymous]".into(),
            Backing::Anonymous(name) => name.clone(),
        }
    }

    /// The object behind a mapping, opened now if it was not yet.
    pub fn object(&self, backing: &Backing) -> Option<Arc<Object>> {
        if let Some(known) = self.objects.read().unwrap_or_else(|e| e.into_inner()).get(backing) {
            return known.clone();
        }
        let opened = match backing {
            Backing::File { path, deleted } => self.open(path, *deleted),
            Backing::Vdso => {
                self.problems.add("[vdso]: its bytes were not recorded");
                None
            }
            Backing::Anonymous(_) => None,
        };
        let mut objects = self.objects.write().unwrap_or_else(|e| e.into_inner());
        objects.entry(backing.clone()).or_insert(opened).clone()
    }

    /// What went wrong so far, in us and in all objects.
    pub fn problems(&self) -> Vec<String> {
        let objects = self.objects.read().unwrap_or_else(|e| e.into_inner());
        let mut of_objects: Vec<String> = objects.values().flatten().flat_map(|o| o.problems()).collect();
        of_objects.sort_unstable();
        let mut all = self.problems.list();
        all.extend(of_objects);
        all
    }

    fn open(&self, path: &Path, deleted: bool) -> Option<Arc<Object>> {
        if deleted {
            self.problems.add(format!("{} was replaced or removed while it ran", path.display()));
            return None;
        }
        let Some(bytes) = self.files.read(path) else {
            self.problems.add(format!("cannot read {}", path.display()));
            return None;
        };
        match Object::open(PathBuf::from(path), bytes, self.files.clone(), self.options.clone()) {
            Ok(object) => Some(Arc::new(object)),
            Err(e) => {
                // Data files are mapped too; only something that looks like ELF is worth a word.
                if !matches!(e, crate::elf::OpenError::NotElf(_)) {
                    self.problems.add(format!("{}: {e}", path.display()));
                }
                None
            }
        }
    }
}
