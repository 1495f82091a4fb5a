//! The program that a command names: where it lies, and what keeps it from being profiled, said before it runs.

use crate::error::LaunchError;
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where `execvp` would find the program.
pub fn find(name: &OsStr) -> Result<PathBuf, LaunchError> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match fs::metadata(&path) {
            Ok(_) => Ok(path),
            Err(e) => Err(LaunchError::NotExecutable(path, e)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    std::env::split_paths(&path)
        .map(|dir| if dir.as_os_str().is_empty() { PathBuf::from(".").join(name) } else { dir.join(name) })
        .find(|p| is_executable(p))
        .ok_or_else(|| LaunchError::NotFound(name.to_string_lossy().into_owned()))
}

fn is_executable(path: &Path) -> bool {
    let Ok(c) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: reads one string that lives.
    fs::metadata(path).is_ok_and(|m| m.is_file()) && unsafe { libc::access(c.as_ptr(), libc::X_OK) } == 0
}

/// Refuses a program that gets privileges when it is executed: the kernel withholds them under a tracer and ignores
/// preloaded libraries, so it would not be the program that the user runs otherwise.
pub(crate) fn refuse_privileged(path: &Path) -> Result<(), LaunchError> {
    let Ok(found) = fs::metadata(path) else { return Ok(()) };
    // SAFETY: asks who we are.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mode = found.permissions().mode();
    let changes_user = mode & libc::S_ISUID != 0 && found.uid() != uid;
    let changes_group = mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && found.gid() != gid;
    if changes_user || changes_group || (uid != 0 && has_capabilities(path)) {
        return Err(LaunchError::Privileged(path.to_owned()));
    }
    Ok(())
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(c) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: two strings that live; a length of 0 asks for the size alone.
    unsafe { libc::getxattr(c.as_ptr(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// What `execve` meant: it says "no such file" also when the file is there and its interpreter is not.
pub(crate) fn explain(path: &Path, error: io::Error) -> LaunchError {
    if error.kind() == io::ErrorKind::NotFound
        && path.exists()
        && let Some(interpreter) = interpreter(path)
    {
        return LaunchError::NoInterpreter { program: path.to_owned(), interpreter };
    }
    LaunchError::NotExecutable(path.to_owned(), error)
}

/// The interpreter that a script or a dynamic executable asks for.
fn interpreter(path: &Path) -> Option<PathBuf> {
    const HEAD_BYTES: u64 = 64 << 10;
    let mut head = Vec::new();
    fs::File::open(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next()?;
        let word = line.split(|b| matches!(b, b' ' | b'\t')).find(|w| !w.is_empty())?;
        return Some(PathBuf::from(OsString::from_vec(word.to_vec())));
    }
    use object::read::elf::{FileHeader, ProgramHeader};
    let header = object::elf::FileHeader64::<object::Endianness>::parse(head.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head.as_slice()).ok()?;
    let name = segments.iter().find_map(|s| s.interpreter(endian, head.as_slice()).ok().flatten())?;
    Some(PathBuf::from(OsString::from_vec(name.to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_interpreter_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#! /no/such/interpreter -x\n").unwrap();
        let said = explain(&script, io::Error::from_raw_os_error(libc::ENOENT)).to_string();
        assert!(said.contains("/no/such/interpreter") && said.contains("script"), "{said}");
        assert!(interpreter(Path::new("/bin/sh")).is_some_and(|i| i.starts_with("/lib64")));
    }

    #[test]
    fn privileges_of_another_user_are_refused_and_ones_own_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("p");
        fs::write(&program, "").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
        refuse_privileged(&program).unwrap();
        // SAFETY: asks who we are.
        if unsafe { libc::geteuid() } == 0 {
            std::os::unix::fs::chown(&program, Some(12345), None).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
            assert!(matches!(refuse_privileged(&program), Err(LaunchError::Privileged(_))));
        }
    }
}
