//! Profiles on disk: the only module of this crate that touches files.
//!
//! Saving replaces the file as a whole: the bytes go to a temporary file in the same folder, reach the disk, and
//! only then take the file's name. A crash or a full disk at any moment leaves the old file as it was. Further:
//! - A symbolic link stays one: what it points to is replaced, or created when it is not there.
//! - The new file has the old one's mode and, where allowed, its owner; a new one has what the umask gives. Hard
//!   links are not kept, and neither are ACLs.
//! - A file that the user may not write is not replaced, although the folder would allow it.
//! - What is no regular file (a pipe, a terminal, `/dev/stdout` whatever it leads to) is written as it stands.
//!
//! Never: writing into an existing regular file, leaving a temporary file behind after an error.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use crate::error::{ReadError, WriteError};
use crate::format::{self, Loaded};
use crate::merge::{MergeError, merge};
use crate::{Profile, section};

/// What went wrong with which file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct FileError {
    /// The file as the user named it.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub cause: Cause,
}

/// Why a file could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The bytes are not a profile, or not a whole one.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The profile cannot be written.
    #[error("{0}")]
    Write(#[from] WriteError),
    /// The profile cannot be added to the file's.
    #[error("{0}")]
    Merge(#[from] MergeError),
    /// There is such a file already.
    #[error("the file exists already")]
    Exists,
}

/// Loads a whole and intact profile.
pub fn load(path: &Path) -> Result<Loaded, FileError> {
    at(path, || Ok(format::decode(&read(File::open(path)?)?)?))
}

/// Loads whatever is intact; see [`format::salvage`].
pub fn load_salvaging(path: &Path) -> Result<Loaded, FileError> {
    at(path, || {
        let mut file = File::open(path)?;
        let mut bytes = Vec::new();
        if file.metadata()?.is_file() {
            file.read_to_end(&mut bytes)?; // also when the first bytes are the damaged ones
        } else {
            bytes = read(file)?;
        }
        Ok(format::salvage(&bytes)?)
    })
}

/// Saves a profile, in place of the file's old content if there is any.
pub fn save(path: &Path, profile: &Profile) -> Result<(), FileError> {
    at(path, || {
        let bytes = format::encode(profile)?;
        put(path, false, |file| file.write_all(&bytes))
    })
}

/// Saves a profile under a name that must be free ([`Cause::Exists`] otherwise).
pub fn save_new(path: &Path, profile: &Profile) -> Result<(), FileError> {
    at(path, || {
        let bytes = format::encode(profile)?;
        put(path, true, |file| file.write_all(&bytes))
    })
}

/// Adds the runs of a profile to the file, which is created if need be. Several processes may do so at once: each
/// waits for the one before it.
pub fn append(path: &Path, profile: &Profile) -> Result<(), FileError> {
    at(path, || {
        loop {
            let file = match File::open(path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let bytes = format::encode(profile)?;
                    match put(path, true, |file| file.write_all(&bytes)) {
                        Err(Cause::Exists) => continue,
                        done => return done,
                    }
                }
                Err(error) => return Err(error.into()),
            };
            // Some file systems have no locks. Going on without one is better than not saving a run.
            let _unlocked = file.lock();
            let (ours, named) = (file.metadata()?, fs::metadata(path)?);
            if (ours.dev(), ours.ino()) != (named.dev(), named.ino()) {
                continue; // someone else replaced it while we waited
            }
            let old = format::decode(&read(&file)?)?.profile;
            let bytes = format::encode(&merge(&[old, profile.clone()])?)?;
            return put(path, false, |file| file.write_all(&bytes));
        }
    })
}

fn at<T>(path: &Path, act: impl FnOnce() -> Result<T, Cause>) -> Result<T, FileError> {
    act().map_err(|cause| FileError { path: path.to_owned(), cause })
}

/// Reads a file, unless its first bytes show that it is foreign: a mistyped name may lead to something huge.
fn read(mut file: impl Read) -> Result<Vec<u8>, Cause> {
    let mut bytes = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut bytes)?;
    if bytes.starts_with(&section::MAGIC) {
        file.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Writes a file so that it is either the old or the new one.
fn put(path: &Path, new: bool, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Cause> {
    match resolve(path)? {
        Target::Stream => {
            let mut stream = OpenOptions::new().append(true).open(path)?;
            Ok(write(&mut stream)?)
        }
        Target::Name(name) => replace(&name, new, write),
    }
}

fn replace(name: &Path, new: bool, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<(), Cause> {
    let old = match OpenOptions::new().write(true).open(name) {
        Ok(_) if new => return Err(Cause::Exists),
        Ok(file) => Some(file.metadata()?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let folder = name.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(".farsight-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    write(temporary.as_file_mut())?;
    if let Some(old) = old {
        let ours = temporary.as_file().metadata()?;
        if (ours.uid(), ours.gid()) != (old.uid(), old.gid()) {
            // Giving a file away is root's privilege. Without it the file becomes ours, as with any editor.
            let _refused = fchown(temporary.as_file(), Some(old.uid()), Some(old.gid()));
        }
        temporary.as_file().set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
    }
    temporary.as_file().sync_all()?;
    let renamed = if new { temporary.persist_noclobber(name) } else { temporary.persist(name) };
    renamed.map_err(|refused| match refused.error.kind() {
        io::ErrorKind::AlreadyExists => Cause::Exists,
        _ => Cause::Io(refused.error),
    })?;
    // The file is whole under either name now; where folders cannot be synced, only its age is at risk.
    let _unsynced = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Where bytes for a path must go.
#[derive(Debug, PartialEq)]
enum Target {
    /// A name for a regular file, free or in use.
    Name(PathBuf),
    /// Something that is written as it stands.
    Stream,
}

/// Follows links by hand, because a link may lead to a file that is yet to be made, or into `/proc`, where links
/// are open files and not names.
fn resolve(path: &Path) -> io::Result<Target> {
    const LINKS_MAX: usize = 40; // as the kernel
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(Target::Stream);
    }
    let mut name = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::symlink_metadata(&name) {
            Ok(found) if found.is_symlink() => {
                let folder = name.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
                let folder = folder.canonicalize()?;
                if folder.starts_with("/proc") {
                    return Ok(Target::Stream);
                }
                name = folder.join(fs::read_link(&name)?);
            }
            Ok(_) => return Ok(Target::Name(name)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Target::Name(name)),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many levels of symbolic links"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cost, Data, Exit, Growth, Metric, Program, Run, RunId};
    use std::os::unix::fs::symlink;

    fn profile(id: u8) -> Profile {
        Profile {
            runs: vec![Run {
                id: RunId([id; 16]),
                program: Program::default(),
                command: vec!["p".into()],
                exit: Exit::Code(0),
                started_unix_ns: id.into(),
                wall_ns: 0,
                cpu_ns: 0,
                problems: Vec::new(),
                data: Data::Growth(Growth::new(Metric::Rms, Cost::Blocks, 4)),
            }],
        }
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_saved_can_be_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.farsight");
        save(&path, &profile(1)).unwrap();
        assert_eq!(load(&path).unwrap(), Loaded { profile: profile(1), problems: vec![] });
        save(&path, &profile(2)).unwrap();
        assert_eq!(load_salvaging(&path).unwrap().profile, profile(2));
        assert_eq!(names(folder.path()), ["a.farsight"]);
    }

    #[test]
    fn an_error_while_writing_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.farsight");
        save(&path, &profile(1)).unwrap();
        let full = put(&path, false, |file| {
            file.write_all(b"half of it")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        });
        assert!(matches!(full, Err(Cause::Io(e)) if e.kind() == io::ErrorKind::StorageFull));
        assert_eq!(load(&path).unwrap().profile, profile(1));
        assert_eq!(names(folder.path()), ["a.farsight"]);
        let panicked = std::panic::catch_unwind(|| put(&path, false, |_| panic!("crash")));
        assert!(panicked.is_err());
        assert_eq!(load(&path).unwrap().profile, profile(1));
        assert_eq!(names(folder.path()), ["a.farsight"]);
    }

    #[test]
    fn a_free_name_is_demanded_where_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.farsight");
        save_new(&path, &profile(1)).unwrap();
        let error = save_new(&path, &profile(2)).unwrap_err();
        assert!(matches!(error.cause, Cause::Exists));
        assert!(error.to_string().ends_with("a.farsight: the file exists already"));
        assert_eq!(load(&path).unwrap().profile, profile(1));
    }

    #[test]
    fn links_stay_links() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("sub")).unwrap();
        let (link, real) = (folder.path().join("link"), folder.path().join("sub/real"));
        symlink("sub/real", &link).unwrap();
        save(&link, &profile(1)).unwrap(); // dangling at first
        save(&link, &profile(2)).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(load(&real).unwrap().profile, profile(2));
        assert_eq!(names(&folder.path().join("sub")), ["real"]);
        let circle = folder.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(save(&circle, &profile(1)).is_err());
    }

    #[test]
    fn the_mode_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.farsight");
        save(&path, &profile(1)).unwrap();
        let plain = folder.path().join("plain");
        File::create(&plain).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(mode(&path), mode(&plain), "as the umask says");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        save(&path, &profile(2)).unwrap();
        assert_eq!(mode(&path), 0o640);
    }

    #[test]
    fn devices_and_open_files_are_written_as_they_stand() {
        save(Path::new("/dev/null"), &profile(1)).unwrap();
        let full = save(Path::new("/dev/full"), &profile(1)).unwrap_err();
        assert!(matches!(full.cause, Cause::Io(_)), "{full}");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("open");
        let open = File::create(&path).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&open);
        save(Path::new(&format!("/proc/self/fd/{descriptor}")), &profile(3)).unwrap();
        assert_eq!(load(&path).unwrap().profile, profile(3));
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
    }

    #[test]
    fn appending_from_many_sides_loses_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.farsight");
        std::thread::scope(|scope| {
            for id in 1..=12 {
                let path = &path;
                scope.spawn(move || append(path, &profile(id)).unwrap());
            }
        });
        let ids: Vec<u8> = load(&path).unwrap().profile.runs.iter().map(|run| run.id.0[0]).collect();
        assert_eq!(ids, (1..=12).collect::<Vec<_>>());
        assert_eq!(names(folder.path()), ["a.farsight"]);
    }

    #[test]
    fn errors_name_the_file() {
        let error = load(Path::new("/nowhere/x.farsight")).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere/x.farsight: "), "{error}");
        let zero = load(Path::new("/dev/zero")).unwrap_err();
        assert!(matches!(zero.cause, Cause::Read(ReadError::Foreign(_))), "{zero}");
        assert!(load_salvaging(Path::new("/dev/zero")).is_err());
        assert!(save(Path::new("/"), &profile(1)).is_err());
    }
}
