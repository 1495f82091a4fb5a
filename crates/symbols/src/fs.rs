//! The file system as a [`Files`]: with what it maps, the only place of this crate that does I/O.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::{Bytes, Files};
use crate::elf::OpenError;
use crate::mapped;
use crate::object::{Object, Options};

/// Reads files from disk, or maps them where that is safe.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> Option<Bytes> {
        // A name in a debug file may be a pipe or a device; reading those could block for ever.
        if !std::fs::metadata(path).ok()?.is_file() {
            return None;
        }
        mapped::map(path).or_else(|| std::fs::read(path).ok().map(Bytes::from))
    }
}

/// Why an object on disk cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// Not there, not a file, or not readable.
    #[error("cannot read {0}")]
    Read(String),
    /// Not a usable ELF file.
    #[error("{path}: {error}")]
    Open {
        /// The file.
        path: String,
        /// What is wrong.
        #[source]
        error: OpenError,
    },
}

/// Opens an object from disk, with its companions found as debuggers find them.
pub fn open(path: impl AsRef<Path>) -> Result<Object, DiskError> {
    let path = path.as_ref();
    let shown = || path.display().to_string();
    let bytes = Disk.read(path).ok_or_else(|| DiskError::Read(shown()))?;
    Object::open(path, bytes, Arc::new(Disk), Options::default())
        .map_err(|error| DiskError::Open { path: shown(), error })
}
