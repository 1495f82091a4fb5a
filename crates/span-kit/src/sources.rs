//! The runtime's sources, as files on disk for compilers to read.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{fs, io};

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// Changes when any source does.
pub fn fingerprint() -> String {
    let mut hash = DefaultHasher::new();
    (SOURCES, HEADERS, LIBRARY).hash(&mut hash);
    format!("{:016x}", hash.finish())
}

/// Where this version's files go: a folder of its own below the user's cache.
pub fn folder() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|h| PathBuf::from(h).join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|p| p.is_absolute());
    base.or_else(home).unwrap_or_else(std::env::temp_dir).join("farsight").join("span")
}

/// A folder that nobody else writes to, beside the one that it is to become.
pub fn draft(what: &str) -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    folder().join(format!("{what}-{}.{process}.{number}", fingerprint()))
}

/// Writes the sources unless they are there, and gives their folder.
pub fn unpack() -> io::Result<PathBuf> {
    let place = folder().join(format!("src-{}", fingerprint()));
    if place.is_dir() {
        return Ok(place);
    }
    let draft = draft("src");
    for (name, text) in SOURCES {
        write(&draft.join(name), text.as_bytes())?;
    }
    // Whoever is first wins; the contents are the same.
    if fs::rename(&draft, &place).is_err() {
        fs::remove_dir_all(&draft)?;
    }
    Ok(place)
}

/// Writes a file and the folders above it.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_crates_are_there() {
        for root in ["spandag/lib.rs", "span-rt/lib.rs", "span-rayon/lib.rs"] {
            assert!(SOURCES.iter().any(|(name, _)| *name == root), "{root}");
        }
    }
}
