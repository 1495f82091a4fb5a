//! The contents of files, as values, and the one question that the core may ask: "what is in this file?".
//!
//! [`Files`] is the seam between the pure core and the world. The core computes which paths may hold what it
//! lacks (a debug file, a `.dwo`), asks for each, and checks what it gets (build id, checksum, dwo id), so an
//! implementation may answer carelessly. [`crate::fs::Disk`] asks the file system; tests answer from memory.
//!
//! Files that somebody may be building are read, not mapped: a mapped file that is truncated meanwhile (a rebuild by
//! `cp`) kills the reader with SIGBUS, and a collector that dies loses the profile. Files of the system's packages are
//! mapped (`mapped.rs`): reading the 33 MB of a compiler takes about 10 ms.

use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The bytes of one file; cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Bytes(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Bytes {
    /// Wraps anything that holds bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Bytes(Arc::new(bytes))
    }
}

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::new(bytes)
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({} bytes)", self.as_ref().len())
    }
}

/// Answers the core's wishes for further files.
pub trait Files: Send + Sync {
    /// The contents of a file, or nothing when there is no such (readable, regular) file.
    fn read(&self, path: &Path) -> Option<Bytes>;
}

/// Has no files: resolution from the object's own bytes alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _path: &Path) -> Option<Bytes> {
        None
    }
}

/// Keeps bytes at a fixed place as long as it lives itself: grows through a shared reference, never moves or
/// drops what it holds. Debug files, decompressed sections and split units join it while readers hold slices.
#[derive(Default)]
pub(crate) struct Arena {
    head: OnceLock<Box<Node>>,
}

struct Node {
    bytes: Bytes,
    next: OnceLock<Box<Node>>,
}

impl Arena {
    pub(crate) fn push(&self, bytes: Bytes) -> &[u8] {
        let mut node = Box::new(Node { bytes, next: OnceLock::new() });
        let mut slot = &self.head;
        loop {
            match slot.set(node) {
                Ok(()) => return slot.get().map_or(&[], |n| n.bytes.as_ref()),
                Err(back) => node = back,
            }
            match slot.get() {
                Some(taken) => slot = &taken.next,
                None => return &[],
            }
        }
    }
}

/// One node at a time: thousands of split units would otherwise recurse as deep.
impl Drop for Arena {
    fn drop(&mut self) {
        let mut next = self.head.take();
        while let Some(mut node) = next {
            next = node.next.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arena_keeps_what_it_got_in_place() {
        let arena = Arena::default();
        let first = arena.push(vec![1, 2, 3].into());
        let place = first.as_ptr();
        for i in 0..2000u32 {
            assert_eq!(arena.push(i.to_le_bytes().to_vec().into()), i.to_le_bytes());
        }
        assert_eq!((first, first.as_ptr()), (&[1u8, 2, 3][..], place));
    }
}
