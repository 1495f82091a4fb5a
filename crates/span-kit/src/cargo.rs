//! Rust programs: a rustc wrapper that replaces `rayon-core` by ours on top of the real one.
//!
//! Cargo calls the wrapper for every crate. For `rayon_core` it compiles, with the same arguments,
//! ```text
//! rayon_core_real   the program's own rayon-core, under another name
//! spandag, span_rt  our runtime
//! rayon_core        our wrapper, which the program and rayon then link against
//! ```
//! into the same folder, where dependents find all four. Every crate gets frame pointers and line tables, which
//! the names of call sites need.
//!
//! # Pitfalls that this takes care of
//! - Cargo takes the metadata message of a compilation for the crate's being ready; so the first three run without
//!   `--json` and silently, and what they say is shown only if they fail.
//! - Cargo does not track who wraps rustc: in a folder built without us nothing would be rebuilt. So the target
//!   folder is ours, named after the sources' fingerprint and the project.
//! - A wrapper that the user has configured is called with ours inside it.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

use crate::sources;

/// Set to the folder of the sources: says that this process is called as a rustc wrapper.
pub const SOURCE_FOLDER: &str = "FARSIGHT_SPAN_SOURCES";
/// The user's own wrapper.
pub const INNER_WRAPPER: &str = "FARSIGHT_SPAN_INNER_WRAPPER";

/// What can be missing from a version of rayon-core: `cfg`, and the text in its sources that shows it is there.
const OPTIONAL: &[(&str, &str)] = &[
    ("lacks_yield", "pub fn yield_now"),
    ("lacks_broadcast", "pub struct BroadcastContext"),
    ("lacks_in_place_scope", "pub fn in_place_scope"),
    ("lacks_use_current_thread", "pub fn use_current_thread"),
    ("lacks_max_num_threads", "pub fn max_num_threads"),
];

/// Environment for a cargo command that builds instrumented programs.
pub struct Build {
    /// Variables to set.
    pub env: Vec<(OsString, OsString)>,
    /// The target folder.
    pub target: PathBuf,
}

/// Prepares a build of the project in the current folder. `us` is the executable that acts as the wrapper.
pub fn prepare(us: &Path) -> io::Result<Build> {
    let sources = sources::unpack()?;
    let project = env::current_dir()?;
    let project: String = project
        .as_os_str()
        .as_bytes()
        .iter()
        .map(|&b| if b.is_ascii_alphanumeric() || b == b'.' { char::from(b) } else { '-' })
        .collect();
    let target =
        sources::folder().join(format!("target-{}", sources::fingerprint())).join(project.trim_matches('-'));
    fs::create_dir_all(&target)?;
    let mut env = vec![
        ("RUSTC_WRAPPER".into(), us.into()),
        ("CARGO_TARGET_DIR".into(), target.clone().into()),
        (SOURCE_FOLDER.into(), sources.into()),
        // Worker stacks: a nested join needs three times as much with our frames.
        ("RUST_MIN_STACK".into(), env::var_os("RUST_MIN_STACK").unwrap_or_else(|| "8388608".into())),
    ];
    if let Some(inner) = user_wrapper() {
        env.push((INNER_WRAPPER.into(), inner));
    }
    Ok(Build { env, target })
}

/// Whether a build in `target` has put our rayon-core into anything.
pub fn has_rayon(target: &Path) -> bool {
    let mut todo = vec![target.to_owned()];
    while let Some(folder) = todo.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if name.as_bytes().starts_with(b"librayon_core_real") {
                return true;
            }
            let deeper = matches!(name.as_bytes(), b"deps") || folder.file_name() != Some(OsStr::new("deps"));
            if deeper
                && entry.file_type().is_ok_and(|t| t.is_dir())
                && name != "incremental"
                && name != "build"
            {
                todo.push(entry.path());
            }
        }
    }
    false
}

/// Whether an executable has our runtime in it.
pub fn has_runtime(program: &Path) -> bool {
    mentions(program, b"FARSIGHT_SPAN_OUT")
}

/// Whether an executable uses rayon, without telling us.
pub fn uses_rayon_unseen(program: &Path) -> bool {
    mentions(program, b"/rayon-core") && !has_runtime(program)
}

/// Whether a text is in an executable. Read in pieces and no further than it is found: executables are large, and this happens
/// at each start of a program.
fn mentions(program: &Path, text: &[u8]) -> bool {
    const PIECE: usize = 1 << 18;
    let Ok(mut file) = fs::File::open(program) else { return false };
    let mut bytes = Vec::with_capacity(PIECE + text.len());
    let mut first = true;
    loop {
        // What may be the start of it stays.
        bytes.drain(..bytes.len().saturating_sub(text.len()));
        match file.by_ref().take(PIECE as u64).read_to_end(&mut bytes) {
            Ok(more) if more > 0 => {}
            _ => return false,
        }
        if std::mem::take(&mut first) && !bytes.starts_with(b"\x7fELF") {
            return false;
        }
        if memchr::memmem::find(&bytes, text).is_some() {
            return true;
        }
    }
}

/// Whether the user has programs run by another one.
pub fn has_runner(triple: &str) -> bool {
    env::var_os(format!("CARGO_TARGET_{triple}_RUNNER")).is_some()
        || configurations().any(|text| {
            text.lines().any(|l| {
                l.split_once('=').is_some_and(|(key, _)| key.trim().rsplit('.').next() == Some("runner"))
            })
        })
}

/// The configuration files of cargo that count here.
fn configurations() -> impl Iterator<Item = String> {
    let here = env::current_dir().unwrap_or_default();
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|h| PathBuf::from(h).join(".cargo")));
    let folders: Vec<PathBuf> = here.ancestors().map(|f| f.join(".cargo")).chain(home).collect();
    let files = folders.into_iter().flat_map(|f| ["config.toml", "config"].map(|name| f.join(name)));
    files.filter_map(|file| fs::read_to_string(file).ok())
}

/// The wrapper that the user has set, in the environment or in a configuration file of cargo.
fn user_wrapper() -> Option<OsString> {
    for name in ["RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER"] {
        if let Some(value) = env::var_os(name) {
            return Some(value).filter(|v| !v.is_empty());
        }
    }
    configurations().find_map(|text| configured_wrapper(&text)).map(OsString::from)
}

/// `build.rustc-wrapper` of a cargo configuration. Reads the two usual spellings of a line; a wrapper that is spelled
/// otherwise is not chained, which costs its effect (usually a cache), never a wrong build.
fn configured_wrapper(text: &str) -> Option<String> {
    let mut section = "";
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name.trim();
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim();
        if (section == "build" && key == "rustc-wrapper")
            || (section.is_empty() && key == "build.rustc-wrapper")
        {
            let value = value.trim();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let rest = &value[1..];
            return rest.split(quote).next().filter(|v| !v.is_empty()).map(str::to_owned);
        }
    }
    None
}

/// Acts as the wrapper: `args` are rustc (or another wrapper) and its arguments.
pub fn wrap(args: &[OsString]) -> io::Result<ExitCode> {
    let Some((compiler, args)) = args.split_first() else {
        return Err(io::Error::other("called as a rustc wrapper without a compiler"));
    };
    let sources = PathBuf::from(env::var_os(SOURCE_FOLDER).unwrap_or_default());
    let rustc = Rustc { compiler, inner: env::var_os(INNER_WRAPPER) };
    if !compiles_a_crate(args) {
        return Err(rustc.command(args).exec());
    }
    let args = with_debug_info(args);
    let is_rayon = value_of(&args, "--crate-name").is_some_and(|n| n == "rayon_core")
        && env::var_os("CARGO_PKG_NAME").is_some_and(|n| n == "rayon-core")
        && !args.iter().any(|a| a == "--test");
    if !is_rayon {
        return Err(rustc.command(&args).exec());
    }
    Unit { rustc: &rustc, args: &args, sources: &sources }.build()
}

struct Rustc<'a> {
    compiler: &'a OsStr,
    inner: Option<OsString>,
}

impl Rustc<'_> {
    fn command(&self, args: &[OsString]) -> Command {
        let mut command = match &self.inner {
            Some(inner) => {
                let mut c = Command::new(inner);
                c.arg(self.compiler);
                c
            }
            None => Command::new(self.compiler),
        };
        command.args(args);
        command
    }
}

/// Whether rustc is asked to compile, and not about itself.
fn compiles_a_crate(args: &[OsString]) -> bool {
    value_of(args, "--crate-name").is_some_and(|n| n != "___")
}

/// The value of `--name value`.
fn value_of<'a>(args: &'a [OsString], name: &str) -> Option<&'a OsStr> {
    let at = args.iter().position(|a| a == name)?;
    args.get(at + 1).map(OsString::as_os_str)
}

/// The value of `-C name=value`, also written `-Cname=value`.
fn codegen<'a>(args: &'a [OsString], name: &str) -> Option<&'a str> {
    let mut after_c = false;
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        let option = if after_c { Some(text) } else { text.strip_prefix("-C").filter(|t| !t.is_empty()) };
        after_c = text == "-C";
        if let Some(value) = option.and_then(|o| o.strip_prefix(name)).and_then(|o| o.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

/// Frame pointers and line tables, and nothing stripped.
fn with_debug_info(args: &[OsString]) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(args.len() + 2);
    for arg in args {
        let text = arg.to_str().unwrap_or_default();
        if text.starts_with("strip=") && out.last().is_some_and(|l| l == "-C") {
            out.pop();
            continue;
        }
        if !text.starts_with("-Cstrip=") {
            out.push(arg.clone());
        }
    }
    out.push("-Cforce-frame-pointers=yes".into());
    if codegen(args, "debuginfo").is_none_or(|d| d == "0" || d == "none") && !args.iter().any(|a| a == "-g") {
        out.push("-Cdebuginfo=line-tables-only".into());
    }
    out
}

/// The compilation of rayon-core.
struct Unit<'a> {
    rustc: &'a Rustc<'a>,
    args: &'a [OsString],
    sources: &'a Path,
}

impl Unit<'_> {
    fn build(&self) -> io::Result<ExitCode> {
        let Some(root) = self.args.iter().find(|a| a.as_bytes().ends_with(b".rs")).map(PathBuf::from) else {
            return Err(self.rustc.command(self.args).exec());
        };
        let lacks = lacking(root.parent().unwrap_or(Path::new(".")));
        self.silent("rayon_core_real", &root, "real", None, &[])?;
        self.silent("spandag", &self.sources.join("spandag/lib.rs"), "dag", Some(&[]), &[])?;
        self.silent("span_rt", &self.sources.join("span-rt/lib.rs"), "rt", Some(&["spandag"]), &[])?;
        let externs = ["spandag", "span_rt", "rayon_core_real"];
        let args =
            self.changed("rayon_core", &self.sources.join("span-rayon/lib.rs"), "", Some(&externs), &lacks);
        let status = self.rustc.command(&args).status()?;
        if !status.success() {
            let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
            eprintln!(
                "farsight: rayon-core {version} is not one that span knows (1.8 to 1.13 are), and what span puts around it \
                 does not compile with it: see above"
            );
        }
        self.depend_on_real();
        Ok(ExitCode::from(status.code().unwrap_or(101) as u8))
    }

    /// Cargo reads which files a crate was made of, and would not see that the real crate's have changed. A file that
    /// cannot be read or written leaves the build as it is: such sources hardly ever change.
    fn depend_on_real(&self) {
        let folder = Path::new(value_of(self.args, "--out-dir").unwrap_or(OsStr::new("."))).to_owned();
        let extra = codegen(self.args, "extra-filename").unwrap_or_default();
        let of = |name: &str| folder.join(format!("{name}{extra}.d"));
        let (Ok(ours), Ok(real)) =
            (fs::read_to_string(of("rayon_core")), fs::read_to_string(of("rayon_core_real")))
        else {
            return;
        };
        let _unwritten = fs::write(of("rayon_core"), with_dependencies(&ours, &real));
    }

    /// Compiles without a word unless it fails.
    fn silent(
        &self,
        name: &str,
        root: &Path,
        suffix: &str,
        externs: Option<&[&str]>,
        cfgs: &[&str],
    ) -> io::Result<()> {
        let args = self.changed(name, root, suffix, externs, cfgs);
        let args: Vec<OsString> = args
            .into_iter()
            .filter(|a| !a.as_bytes().starts_with(b"--json") && !a.as_bytes().starts_with(b"--error-format"))
            .collect();
        let output = self.rustc.command(&args).output()?;
        if output.status.success() {
            return Ok(());
        }
        eprintln!("farsight: {name} does not compile; please report this with the version of rayon-core");
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
    }

    /// The arguments for another crate in the place of this one. `externs`: none of the old, these instead.
    fn changed(
        &self,
        name: &str,
        root: &Path,
        suffix: &str,
        externs: Option<&[&str]>,
        cfgs: &[&str],
    ) -> Vec<OsString> {
        let mut out: Vec<OsString> = Vec::new();
        let mut args = self.args.iter();
        while let Some(arg) = args.next() {
            let text = arg.to_str().unwrap_or_default();
            match text {
                "--crate-name" => {
                    args.next();
                    out.extend(["--crate-name".into(), name.into()]);
                }
                "--extern" if externs.is_some() => {
                    args.next();
                }
                "--cfg" | "--check-cfg" if externs.is_some() => {
                    args.next();
                }
                _ if text.starts_with("metadata=") => out.push(format!("{text}{suffix}").into()),
                _ if text.starts_with("--edition=") && externs.is_some() => out.push("--edition=2024".into()),
                _ if text.ends_with(".rs") => out.push(root.into()),
                _ => out.push(arg.clone()),
            }
        }
        for name in externs.unwrap_or_default() {
            out.extend(["--extern".into(), self.library(name)]);
        }
        for cfg in cfgs {
            out.extend(["--cfg".into(), (*cfg).into()]);
        }
        out
    }

    /// `name=path` of a crate that was compiled into the same folder.
    fn library(&self, name: &str) -> OsString {
        let links = self.args.iter().any(|a| {
            a.to_str()
                .and_then(|a| a.strip_prefix("--emit="))
                .is_some_and(|e| e.split(',').any(|e| e == "link"))
        });
        let folder = value_of(self.args, "--out-dir").unwrap_or(OsStr::new("."));
        let extra = codegen(self.args, "extra-filename").unwrap_or_default();
        let file = format!("lib{name}{extra}.{}", if links { "rlib" } else { "rmeta" });
        let mut value = OsString::from(format!("{name}="));
        value.push(Path::new(folder).join(file));
        value
    }
}

/// The files of the first rule of `real`, added to the first rule of `ours`.
fn with_dependencies(ours: &str, real: &str) -> String {
    let more = real.lines().next().and_then(|l| l.split_once(": ")).map_or("", |(_, files)| files);
    match ours.split_once('\n') {
        Some((first, rest)) if first.contains(": ") => format!("{first} {more}\n{rest}"),
        _ => ours.to_owned(),
    }
}

/// What a rayon-core does not have.
fn lacking(folder: &Path) -> Vec<&'static str> {
    let mut texts = String::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(folder) = todo.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                texts.push_str(&fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    OPTIONAL.iter().filter(|(_, sign)| !texts.contains(sign)).map(|(cfg, _)| *cfg).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_wherever_it_lies() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = b"FARSIGHT_SPAN_OUT";
        for at in [4, 1000, (1 << 18) - 5, 1 << 18, (1 << 19) - 17, (1 << 19) + 9] {
            let mut bytes = vec![0; at];
            bytes[..4].copy_from_slice(b"\x7fELF");
            fs::write(file.path(), &bytes).unwrap();
            assert!(!mentions(file.path(), text), "{at}");
            bytes.extend(text);
            fs::write(file.path(), &bytes).unwrap();
            assert!(mentions(file.path(), text), "{at}");
        }
        fs::write(file.path(), text).unwrap();
        assert!(!mentions(file.path(), text), "no executable");
    }

    fn args(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn a_wrapper_in_the_configuration_is_found() {
        for (text, expected) in [
            ("[build]\nrustc-wrapper = \"sccache\"\n", Some("sccache")),
            ("build.rustc-wrapper = '/opt/w' # mine\n", Some("/opt/w")),
            ("[net]\nrustc-wrapper = \"no\"\n", None),
            ("[build]\nrustc-wrapper = \"\"\n", None),
        ] {
            assert_eq!(configured_wrapper(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_stripped_and_lines_are_kept() {
        let with = with_debug_info(&args("--crate-name a -C opt-level=3 -C strip=debuginfo src/lib.rs"));
        let text: Vec<&str> = with.iter().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            "--crate-name a -C opt-level=3 src/lib.rs -Cforce-frame-pointers=yes -Cdebuginfo=line-tables-only"
        );
        assert!(
            !with_debug_info(&args("-C debuginfo=2"))
                .iter()
                .any(|a| a.to_str().unwrap().contains("line-tables"))
        );
    }

    #[test]
    fn a_change_of_the_real_crate_is_a_change_of_ours() {
        let ours = "t/rayon_core.d: ours/lib.rs ours/join.rs\n\nours/lib.rs:\n";
        let real = "t/rayon_core_real.d: real/lib.rs\n\nreal/lib.rs:\n";
        let expected = "t/rayon_core.d: ours/lib.rs ours/join.rs real/lib.rs\n\nours/lib.rs:\n";
        assert_eq!(with_dependencies(ours, real), expected);
    }

    #[test]
    fn our_crate_takes_the_place_and_links_the_others() {
        let old = args(
            "--crate-name rayon_core --edition=2021 r/src/lib.rs --emit=dep-info,metadata,link -C metadata=12 \
             -C extra-filename=-ab --out-dir t/deps --extern x=libx.rlib --cfg feature=\"f\" -L dependency=t/deps",
        );
        let rustc = Rustc { compiler: OsStr::new("rustc"), inner: None };
        let unit = Unit { rustc: &rustc, args: &old, sources: Path::new("s") };
        let new = unit.changed("rayon_core", Path::new("s/l.rs"), "", Some(&["spandag"]), &["lacks_yield"]);
        let text: Vec<&str> = new.iter().map(|a| a.to_str().unwrap()).collect();
        assert_eq!(
            text.join(" "),
            "--crate-name rayon_core --edition=2024 s/l.rs --emit=dep-info,metadata,link -C metadata=12 \
             -C extra-filename=-ab --out-dir t/deps -L dependency=t/deps --extern spandag=t/deps/libspandag-ab.rlib \
             --cfg lacks_yield"
        );
        let real = unit.changed("rayon_core_real", Path::new("r/src/lib.rs"), "real", None, &[]);
        assert!(real.iter().any(|a| a == "metadata=12real") && real.iter().any(|a| a == "x=libx.rlib"));
    }
}
