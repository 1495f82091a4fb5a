//! Debug information in a file of its own: where it may be, and whether what is there is the right one.
//!
//! In order: by build id below each debug folder (`.build-id/ab/cdef….debug`), then by the name that
//! `.gnu_debuglink` gives, beside the object, in `.debug` beside it, and below each debug folder. A build id
//! must match; without one, the CRC-32 that the link states. A debug file may in turn refer to one that dwz
//! made, and stripped Fedora-style objects carry a compressed symbol table in `.gnu_debugdata`.
//!
//! Prelinked objects moved after their debug file was made: the difference of the first segments' addresses
//! is the bias to add to what the debug file says.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::bytes::{Arena, Files};
use crate::elf::{BuildId, Image};
use crate::problems::Problems;

/// Where distributions keep debug files.
pub const DEBUG_FOLDER: &str = "/usr/lib/debug";

/// A compressed symbol table may grow to at most this many times its size.
const MINI_INFLATION_MAX: u64 = 200;

/// An image from another file.
pub(crate) struct Separate<'a> {
    pub(crate) image: Image<'a>,
    pub(crate) path: PathBuf,
    /// What to add to its addresses to get the object's.
    pub(crate) bias: u64,
}

pub(crate) struct Finder<'s, 'a> {
    pub(crate) arena: &'a Arena,
    pub(crate) files: &'a dyn Files,
    pub(crate) folders: &'s [PathBuf],
    pub(crate) problems: &'s Problems,
}

impl<'a> Finder<'_, 'a> {
    /// The debug file of an object.
    pub(crate) fn debug_file(&self, object: &Image<'a>, path: &Path) -> Option<Separate<'a>> {
        let id = object.build_id();
        let link = object.debug_link();
        for candidate in by_build_id(self.folders, id.as_ref()) {
            if let Some(found) = self.open(&candidate, id.as_ref(), None, object) {
                return Some(found);
            }
        }
        let (name, crc) = link?;
        let name = String::from_utf8_lossy(name);
        let candidates = by_link(self.folders, path, &name);
        candidates.iter().find_map(|candidate| self.open(candidate, id.as_ref(), Some(crc), object)).or_else(
            || {
                self.problems.add(format!("debug file {name} of {} not found", path.display()));
                None
            },
        )
    }

    fn open(
        &self,
        path: &Path,
        id: Option<&BuildId>,
        crc: Option<u32>,
        object: &Image<'a>,
    ) -> Option<Separate<'a>> {
        let data = self.arena.push(self.files.read(path)?);
        let image = match Image::open(data) {
            Ok(image) => image,
            Err(e) => {
                self.problems.add(format!("{}: {e}", path.display()));
                return None;
            }
        };
        let right = match (id, image.build_id(), crc) {
            (Some(want), Some(have), _) => *want == have,
            (_, _, Some(crc)) => crc32fast::hash(data) == crc,
            _ => false,
        };
        if !right {
            self.problems.add(format!("{} is of another build", path.display()));
            return None;
        }
        let first = |image: &Image<'_>| image.segments.iter().next().map(|s| s.address.0);
        let bias = first(object).zip(first(&image)).map_or(0, |(own, there)| own.wrapping_sub(there));
        Some(Separate { image, path: path.to_owned(), bias })
    }

    /// The file that dwz moved parts of `image` to.
    pub(crate) fn supplement(&self, image: &Image<'a>, path: &Path) -> Option<Image<'a>> {
        let (name, id) = image.debug_alt_link()?;
        let name = PathBuf::from(String::from_utf8_lossy(name).into_owned());
        let beside = path.parent().unwrap_or(Path::new("")).join(&name);
        let below = self.folders.iter().map(|f| f.join(name.strip_prefix("/").unwrap_or(&name)));
        let candidates = std::iter::once(beside).chain(by_build_id(self.folders, Some(&id))).chain(below);
        for candidate in candidates {
            let found = self.files.read(&candidate).and_then(|b| Image::open_any(self.arena.push(b)).ok());
            if let Some(found) = found.filter(|f| f.build_id().as_ref() == Some(&id)) {
                return Some(found);
            }
        }
        self.problems.add(format!("shared debug file {} not found", name.display()));
        None
    }

    /// The symbol table that `.gnu_debugdata` holds.
    pub(crate) fn mini(&self, object: &Image<'a>) -> Option<Image<'a>> {
        let packed = object.section(".gnu_debugdata")?;
        let mut data = Vec::new();
        let limit = (packed.len() as u64).saturating_mul(MINI_INFLATION_MAX);
        let read = lzma_rust2::XzReader::new(packed, false).take(limit).read_to_end(&mut data);
        if read.is_err() {
            self.problems.add(".gnu_debugdata unreadable");
            return None;
        }
        Image::open(self.arena.push(data.into())).ok()
    }
}

fn by_build_id(folders: &[PathBuf], id: Option<&BuildId>) -> Vec<PathBuf> {
    let Some(hex) = id.map(ToString::to_string).filter(|hex| hex.len() > 2) else { return Vec::new() };
    folders.iter().map(|f| f.join(".build-id").join(&hex[..2]).join(format!("{}.debug", &hex[2..]))).collect()
}

fn by_link(folders: &[PathBuf], object: &Path, name: &str) -> Vec<PathBuf> {
    let beside = object.parent().unwrap_or(Path::new(""));
    let mut candidates = vec![beside.join(name), beside.join(".debug").join(name)];
    let inner = beside.strip_prefix("/").unwrap_or(beside);
    candidates.extend(folders.iter().map(|f| f.join(inner).join(name)));
    // A debug link may name the object itself; that is not its debug file.
    candidates.retain(|c| c != object);
    candidates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidate_paths() {
        let folders = [PathBuf::from(DEBUG_FOLDER)];
        let id = BuildId(vec![0xab, 0xcd, 0x01]);
        assert_eq!(by_build_id(&folders, Some(&id)), [Path::new("/usr/lib/debug/.build-id/ab/cd01.debug")]);
        assert!(by_build_id(&folders, Some(&BuildId(vec![0xab]))).is_empty());
        assert_eq!(
            by_link(&folders, Path::new("/usr/bin/ls"), "ls.debug"),
            [
                Path::new("/usr/bin/ls.debug"),
                Path::new("/usr/bin/.debug/ls.debug"),
                Path::new("/usr/lib/debug/usr/bin/ls.debug"),
            ]
        );
    }
}
