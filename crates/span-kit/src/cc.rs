//! `farsight cc` and `farsight c++`: the user's compiler, with Cilk rewritten and the runtime linked.
//!
//! Each source is preprocessed by the real compiler, rewritten if there is Cilk in it, and compiled from the result;
//! everything else on the command line is passed on. Without a source the command is only a link.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::{env, fs, io};

use crate::rewrite::{self, CilkError, Language};
use crate::sources;

/// Why a compilation did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CcError {
    /// The source is no Cilk that we understand.
    #[error(transparent)]
    Cilk(#[from] CilkError),
    /// A file or the compiler.
    #[error("{what}: {cause}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
    },
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> CcError {
    let what = what.into();
    move |cause| CcError::Io { what, cause }
}

/// The folder with `lib` and `include`, unpacked.
pub fn kit() -> io::Result<PathBuf> {
    let place = sources::folder().join(format!("kit-{}", sources::fingerprint()));
    if place.join("lib").is_dir() {
        return Ok(place);
    }
    let draft = sources::draft("kit");
    for (name, text) in sources::HEADERS {
        sources::write(&draft.join("include").join(name), text.as_bytes())?;
    }
    sources::write(&draft.join("lib").join(LIBRARY), sources::LIBRARY)?;
    if fs::rename(&draft, &place).is_err() {
        fs::remove_dir_all(&draft)?;
    }
    Ok(place)
}

/// File name of the runtime library.
pub const LIBRARY: &str = "libfarsight_span.so";

fn language_of(source: &Path, default: Language) -> Option<Language> {
    match source.extension().and_then(OsStr::to_str)? {
        "c" => Some(if default == Language::Cpp { Language::Cpp } else { Language::C }),
        "cc" | "cpp" | "cxx" | "c++" | "C" | "cilk" => Some(Language::Cpp),
        _ => None,
    }
}

/// Compiles as `args` say. `CC` and `CXX` name the real compilers.
pub fn compile(language: Language, args: &[OsString]) -> Result<ExitStatus, CcError> {
    let kit = kit().map_err(io_error("cannot unpack the runtime"))?;
    let (variable, name) = match language {
        Language::C => ("CC", "cc"),
        Language::Cpp => ("CXX", "c++"),
    };
    let compiler = env::var_os(variable).filter(|v| !v.is_empty()).unwrap_or_else(|| name.into());
    let draft = tempfile::tempdir().map_err(io_error("cannot make a folder for rewritten sources"))?;
    let only_compiles = args.iter().any(|a| a == "-c" || a == "-S" || a == "-E");
    let mut out: Vec<OsString> = vec!["-I".into(), kit.join("include").into(), "-DFARSIGHT_CILK=1".into()];
    // What decides how a source reads, for the preprocessor.
    let mut skip = false;
    let shared: Vec<OsString> = args
        .iter()
        .filter(|a| {
            let drop = std::mem::take(&mut skip) || *a == "-o" || *a == "-c" || *a == "-S";
            skip = *a == "-o";
            !drop && (a.as_bytes().starts_with(b"-") || language_of(Path::new(a), language).is_none())
        })
        .filter(|a| !a.as_bytes().ends_with(b".o") && !a.as_bytes().ends_with(b".a"))
        .cloned()
        .collect();
    let mut after_o = false;
    let mut outputs = false;
    let mut sources_seen = Vec::new();
    for arg in args {
        let is_output = std::mem::replace(&mut after_o, arg == "-o");
        outputs |= arg == "-o";
        let source = Path::new(arg);
        let Some(of) =
            language_of(source, language).filter(|_| !is_output && !arg.as_bytes().starts_with(b"-"))
        else {
            out.push(arg.clone());
            continue;
        };
        sources_seen.push(source.to_owned());
        match preprocessed(&compiler, &kit, &shared, source, of, draft.path(), sources_seen.len())? {
            Some(file) => {
                let kind = if of == Language::C { "cpp-output" } else { "c++-cpp-output" };
                out.extend(["-x".into(), kind.into(), file.into(), "-x".into(), "none".into()]);
            }
            None => out.push(arg.clone()),
        }
    }
    // The compiler would name the object after the rewritten file.
    if let ([source], true, false) = (sources_seen.as_slice(), only_compiles, outputs)
        && let Some(stem) = source.file_stem()
    {
        let mut object = stem.to_owned();
        object.push(if args.iter().any(|a| a == "-S") { ".s" } else { ".o" });
        out.extend(["-o".into(), object]);
    }
    if !only_compiles {
        let lib = kit.join("lib");
        let mut rpath = OsString::from("-Wl,-rpath,");
        rpath.push(&lib);
        out.extend(["-L".into(), lib.into(), rpath, "-lfarsight_span".into()]);
    }
    Command::new(&compiler)
        .args(&out)
        .status()
        .map_err(io_error(format!("cannot run {}", compiler.to_string_lossy())))
}

/// The rewritten source, if there is Cilk in it.
fn preprocessed(
    compiler: &OsStr,
    kit: &Path,
    shared: &[OsString],
    source: &Path,
    language: Language,
    draft: &Path,
    number: usize,
) -> Result<Option<PathBuf>, CcError> {
    let output = Command::new(compiler)
        .args(shared)
        .arg("-DFARSIGHT_CILK=1")
        .arg("-I")
        .arg(kit.join("include"))
        .arg("-E")
        .args(["-x", if language == Language::C { "c" } else { "c++" }])
        .arg(source)
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(io_error(format!("cannot run {}", compiler.to_string_lossy())))?;
    if !output.status.success() {
        // The compiler will say it again, with the exit status that it should have.
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let Some(rewritten) = rewrite::rewrite(&text, language)? else { return Ok(None) };
    let file = draft.join(format!("{number}.{}", if language == Language::C { "i" } else { "ii" }));
    fs::write(&file, rewritten).map_err(io_error("cannot write the rewritten source"))?;
    Ok(Some(file))
}
