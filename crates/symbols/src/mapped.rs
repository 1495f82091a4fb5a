//! Files of the system's packages, mapped: libraries and compilers are megabytes of which a few pages are looked at,
//! and copying them was the larger half of what a short run cost us.
//!
//! The hazard of a mapping is a file that somebody truncates or writes meanwhile (a rebuild by `cp`): reading beyond
//! its new end is a SIGBUS, and a collector that dies loses the profile. Package managers never do that, because
//! running programs have the same files mapped: they write a new file and rename it over the old name, and the old
//! one stays as long as it is mapped. So a file is mapped only where it belongs to them: a regular file of root's,
//! writable by nobody else, in a folder of theirs. `/usr/local` is not: there `make install` may copy over what is
//! there. All other files are read. (A disk that fails is a SIGBUS too; the program ran from the same pages.)
//!
//! The one `unsafe` of this crate is here.
#![allow(unsafe_code)]

use std::fs::{File, Metadata};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use memmap2::Mmap;

use crate::bytes::Bytes;

/// Where packages put files.
const FOLDERS: [&str; 3] = ["/usr", "/lib", "/lib64"];
/// Where they put none, although it lies in one of [`FOLDERS`].
const LOCAL: &str = "/usr/local";

/// The contents of a regular file that a package manager keeps; nothing for any other file and for one that cannot be
/// mapped.
pub(crate) fn map(path: &Path) -> Option<Bytes> {
    let file = File::open(path).ok()?;
    // Where it really is, in one question; `canonicalize` asks for every element of the path.
    let place = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
    if !in_package_folder(&place) || !is_roots_alone(&file.metadata().ok()?) {
        return None;
    }
    // SAFETY: the bytes of the mapping must not change while it lives.
    // - They are shared with the file, so nobody may write or truncate it: only root may, and the file lies where
    //   root's package manager replaces files and never writes into them (checked above, on the open file).
    // - Nothing of ours writes to it: the mapping is read-only, and we write no file in these folders.
    let mapping = unsafe { Mmap::map(&file) }.ok()?;
    Some(Bytes::new(mapping))
}

/// `path` has no links in it.
fn in_package_folder(path: &Path) -> bool {
    FOLDERS.iter().any(|folder| path.starts_with(folder)) && !path.starts_with(LOCAL)
}

fn is_roots_alone(found: &Metadata) -> bool {
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    found.is_file() && found.uid() == 0 && found.mode() & WRITABLE_BY_OTHERS == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn what_packages_keep_is_mapped_as_it_is() {
        let path = Path::new("/usr/bin/env");
        let mapped = map(path).expect("of a package");
        assert_eq!(mapped.as_ref(), fs::read(path).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        symlink(path, &link).unwrap();
        assert!(map(&link).is_some(), "a link to a file of theirs");
        assert!(map(Path::new("/usr/bin")).is_none(), "a folder");
        assert!(map(Path::new("/usr/bin/no such file")).is_none());
    }

    #[test]
    fn folders_of_packages_are_told_by_whole_elements() {
        for yes in ["/usr/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/usr/bin/ls"] {
            assert!(in_package_folder(Path::new(yes)), "{yes}");
        }
        for no in ["/usr/local/lib/libmine.so", "/usrx/a", "/home/me/usr/lib/a", "/tmp/a", "usr/bin/ls"] {
            assert!(!in_package_folder(Path::new(no)), "{no}");
        }
    }

    #[test]
    fn what_others_may_write_is_not_mapped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "bytes").unwrap();
        let with = |mode| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            is_roots_alone(&fs::metadata(&path).unwrap())
        };
        let ours = fs::metadata(&path).unwrap().uid() == 0;
        assert_eq!([with(0o644), with(0o755), with(0o600)], [ours; 3]);
        assert_eq!([with(0o664), with(0o646), with(0o777)], [false; 3]);
        if ours {
            chown(&path, Some(12345), None).unwrap();
            assert!(!with(0o644), "of another user");
        }
    }
}
