//! What is known of a run when it starts: the program's identity, the time, and an id for the run.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io::Read};

use anyhow::{Context, Result};
use object::Object;
use profile::{Program, RunId};

/// The program that a command names. One that cannot be found or read keeps the name that was given: starting it
/// will say what is wrong.
pub fn program(name: &OsStr) -> Program {
    let Ok(found) = launch::find(name) else {
        return Program { path: name.to_string_lossy().into_owned(), ..Program::default() };
    };
    let path = found.canonicalize().unwrap_or(found);
    let modified = path.metadata().map_or(0, |m| m.mtime());
    // Only the headers and the note are read: compilers are files of 30 MB.
    let build_id = fs::File::open(&path).ok().and_then(|file| {
        let cache = object::ReadCache::new(file);
        let file = object::File::parse(&cache).ok()?;
        Some(file.build_id().ok()??.to_vec())
    });
    Program {
        path: path.to_string_lossy().into_owned(),
        build_id: build_id.unwrap_or_default(),
        modified_unix_s: u64::try_from(modified).unwrap_or(0),
    }
}

/// Nanoseconds since the Unix epoch.
pub fn now_unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64)
}

/// An id that no other run has.
pub fn run_id() -> Result<RunId> {
    let mut bytes = [0; 16];
    let mut random = fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?;
    random.read_exact(&mut bytes).context("cannot read /dev/urandom")?;
    Ok(RunId::from_random(bytes))
}
