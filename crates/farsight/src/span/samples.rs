//! What the sampler of strands needs to be in a program: the library, and the list of the program's functions.

use std::ffi::OsString;
use std::path::Path;
use std::{fs, io};

use span_kit::functions;

/// Names the folder in which the library lies, for cargo's runner.
pub const FOLDER: &str = "FARSIGHT_SPAN_SAMPLER";
const LIBRARY: &str = "libfarsight_strand.so";

type Variable = (OsString, OsString);

/// Puts the library into a folder, which has to stay as long as programs run.
pub fn unpack(folder: &Path) -> io::Result<()> {
    fs::write(folder.join(LIBRARY), runtimes::STRAND)
}

/// The variable that names the list of the program's functions, which is written into the folder. None for a program whose
/// functions have no names.
pub fn functions(folder: &Path, program: &Path) -> io::Result<Option<Variable>> {
    let Some(list) = functions::list(program, true) else { return Ok(None) };
    let file = folder.join(format!("functions-{}", std::process::id()));
    fs::write(&file, list)?;
    Ok(Some((functions::VARIABLE.into(), file.into())))
}

/// The variable that loads the library, and `others` before it.
pub fn preload(folder: &Path, others: Option<OsString>) -> Option<Variable> {
    let library = OsString::from(folder.join(LIBRARY));
    let Some(mut first) = others else { return before_others(library) };
    first.push(":");
    first.push(library);
    before_others(first)
}

/// The variable that loads a library before those that the user loads.
pub fn before_others(mut libraries: OsString) -> Option<Variable> {
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    Some(("LD_PRELOAD".into(), libraries))
}
