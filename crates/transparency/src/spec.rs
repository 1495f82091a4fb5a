//! The `//@ key: value` lines at the head of a test program: how to build it, how to run it, what must come out.
//!
//! Keeping them in the program keeps one hard case in one file. Keys that may be repeated: `stdout` and `stdin` (one
//! line each), `lib`. An unknown key is an error: a typing mistake must not weaken a test.

use std::time::Duration;

/// How a run must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Exit(i32),
    /// Killed by the signal of this number.
    Signal(i32),
}

/// Which list a case belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ring {
    /// Runs in CI.
    Fast,
    /// Takes long or needs packages.
    Full,
}

/// What the header of a test program says.
#[derive(Clone, Debug)]
pub struct Spec {
    /// Compiler and linker flags beside the common ones.
    pub flags: Vec<String>,
    /// Sources of shared libraries to build beside it, in the same folder.
    pub libs: Vec<String>,
    /// Arguments; `{pid}` is the harness's pid, `{lib:NAME}` a library's path.
    pub args: Vec<String>,
    /// Standard input.
    pub stdin: String,
    /// The known answer on standard output, if it has one.
    pub stdout: Option<String>,
    /// Text that standard error must hold.
    pub stderr_has: Option<String>,
    /// Regular expressions whose matches are removed from standard error before comparing.
    pub stderr_masks: Vec<String>,
    /// How it must end.
    pub end: End,
    /// Runs under the wrapper; more for what races.
    pub repeat: u32,
    /// A processor feature, as `/proc/cpuinfo` names it, without which the case is skipped.
    pub cpu: Option<String>,
    /// The ring.
    pub ring: Ring,
    /// What each thread executes, known by hand: instructions, blocks, loads, stores, calls. One entry per thread, in the
    /// order of their creation.
    pub counts: Vec<[u64; 5]>,
    /// Longest time that one run may take.
    pub limit: Duration,
}

/// Why a header was refused.
#[derive(Debug, PartialEq, Eq)]
pub struct BadSpec {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Natively every program here ends within a few seconds; a tool gets room, a hang does not.
const LIMIT_DEFAULT: Duration = Duration::from_secs(60);

impl Spec {
    /// Reads the header of `source`. The text of a program without any `//@` line is no test program: `None`.
    pub fn parse(source: &str) -> Result<Option<Spec>, BadSpec> {
        let mut spec = Spec {
            flags: Vec::new(),
            libs: Vec::new(),
            args: Vec::new(),
            stdin: String::new(),
            stdout: None,
            stderr_has: None,
            stderr_masks: Vec::new(),
            end: End::Exit(0),
            repeat: 1,
            cpu: None,
            ring: Ring::Fast,
            counts: Vec::new(),
            limit: LIMIT_DEFAULT,
        };
        // A program may have nothing to say but its comment: its presence in the folder with a `main` is enough.
        let mut is_program = source.contains("main(") || source.contains("_start:");
        for (index, line) in source.lines().enumerate() {
            let Some(rest) = line.strip_prefix("//@") else { continue };
            is_program = true;
            let bad = |why: String| BadSpec { line: index + 1, why };
            let (key, value) =
                rest.split_once(':').ok_or_else(|| bad(format!("no colon in `{}`", rest.trim())))?;
            let value = value.strip_prefix(' ').unwrap_or(value);
            let number =
                |text: &str| text.trim().parse::<u32>().map_err(|_| bad(format!("not a number: `{text}`")));
            match key.trim() {
                "flags" => spec.flags.extend(words(value)),
                "lib" => spec.libs.push(value.trim().to_owned()),
                "args" => spec.args.extend(words(value)),
                "stdin" => spec.stdin.push_str(&format!("{value}\n")),
                "stdout" => spec.stdout.get_or_insert_default().push_str(&format!("{value}\n")),
                "stderr-has" => spec.stderr_has = Some(value.to_owned()),
                "stderr-mask" => spec.stderr_masks.push(value.trim().to_owned()),
                "exit" => spec.end = End::Exit(number(value)? as i32),
                "signal" => {
                    spec.end = End::Signal(
                        signal_number(value.trim()).ok_or_else(|| bad(format!("no signal `{value}`")))?,
                    );
                }
                "repeat" => spec.repeat = number(value)?.max(1),
                "cpu" => spec.cpu = Some(value.trim().to_owned()),
                "ring" => {
                    spec.ring = match value.trim() {
                        "fast" => Ring::Fast,
                        "full" => Ring::Full,
                        other => return Err(bad(format!("ring is fast or full, not `{other}`"))),
                    }
                }
                "counts" => {
                    spec.counts.push(counts(value).ok_or_else(|| bad(format!("not five counts: `{value}`")))?)
                }
                "limit-s" => spec.limit = Duration::from_secs(number(value)?.into()),
                other => return Err(bad(format!("unknown key `{other}`"))),
            }
        }
        Ok(is_program.then_some(spec))
    }
}

/// Splits at blanks; double quotes keep a word together.
pub fn words(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in text.chars() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => out.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    out.extend(word);
    out
}

/// `instructions=5 blocks=1 loads=0 stores=0 calls=0`, in this order.
fn counts(text: &str) -> Option<[u64; 5]> {
    let mut out = [0; 5];
    let mut fields = text.split_whitespace();
    for (slot, name) in out.iter_mut().zip(["instructions", "blocks", "loads", "stores", "calls"]) {
        *slot = fields.next()?.strip_prefix(name)?.strip_prefix('=')?.parse().ok()?;
    }
    fields.next().is_none().then_some(out)
}

fn signal_number(name: &str) -> Option<i32> {
    use std::str::FromStr;
    nix::sys::signal::Signal::from_str(name).ok().map(|s| s as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read() {
        let spec =
            Spec::parse("/* x */\n//@ flags: -a -b\n//@ stdout: one\n//@ stdout: two\n//@ signal: SIGSEGV\n")
                .unwrap()
                .unwrap();
        assert_eq!(spec.flags, ["-a", "-b"]);
        assert_eq!(spec.stdout.as_deref(), Some("one\ntwo\n"));
        assert_eq!(spec.end, End::Signal(11));
    }

    #[test]
    fn a_typing_mistake_is_an_error() {
        assert_eq!(
            Spec::parse("//@ sdtout: x\n").unwrap_err(),
            BadSpec { line: 1, why: "unknown key `sdtout`".into() }
        );
        assert!(Spec::parse("//@ signal: SIGNONE\n").is_err());
    }

    #[test]
    fn counts_are_five_in_order() {
        assert_eq!(counts("instructions=5 blocks=1 loads=2 stores=3 calls=4"), Some([5, 1, 2, 3, 4]));
        assert_eq!(counts("instructions=5 blocks=1 loads=2 stores=3"), None);
        assert_eq!(counts("blocks=1 instructions=5 loads=2 stores=3 calls=4"), None);
    }

    #[test]
    fn quotes_keep_words_together() {
        assert_eq!(words(r#"one "two words" "" x"#), ["one", "two words", "", "x"]);
    }
}
