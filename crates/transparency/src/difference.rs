//! What differs between two runs, in words short enough for a terminal and exact enough to start debugging from.

use std::fmt::Write as _;

use regex_lite::Regex;

use crate::run::{Ended, Seen};

/// What is taken out of both sides before they are compared, because it differs between two native runs as well.
#[derive(Clone, Debug, Default)]
pub struct Normalise {
    /// Matches are removed from standard output.
    pub stdout: Vec<Regex>,
    /// Matches are removed from standard error.
    pub stderr: Vec<Regex>,
    /// Files whose path matches are not compared.
    pub files: Vec<Regex>,
}

impl Normalise {
    /// Both outputs without what varies.
    pub fn apply(&self, seen: &Seen) -> Seen {
        let mut out = seen.clone();
        for (text, masks) in [(&mut out.stdout, &self.stdout), (&mut out.stderr, &self.stderr)] {
            if !masks.is_empty() {
                let mut s = String::from_utf8_lossy(text).into_owned();
                for mask in masks {
                    s = mask.replace_all(&s, "").into_owned();
                }
                *text = s.into_bytes();
            }
        }
        out.files.retain(|(path, _, _)| {
            let name = path.to_string_lossy();
            !self.files.iter().any(|m| m.is_match(&name))
        });
        out
    }
}

/// Every difference between what is wanted and what was got; empty when there is none.
pub fn between(want: &Seen, got: &Seen) -> Vec<String> {
    let mut all = Vec::new();
    // A tool that outlives the program cannot die by the program's signal; it says 128 + signal, as shells do.
    let told = matches!((&want.ended, &got.ended), (Ended::Signal(n, _), Ended::Exit(s)) if *s == 128 + n);
    if want.ended != got.ended && !told {
        all.push(format!("ended by {}, natively by {}", end(&got.ended), end(&want.ended)));
    }
    all.extend(text("stdout", &want.stdout, &got.stdout));
    all.extend(text("stderr", &want.stderr, &got.stderr));
    let [w, g] = [want, got].map(|s| s.files.iter().map(|f| &f.0).collect::<Vec<_>>());
    for (path, mode, bytes) in &want.files {
        match got.files.iter().find(|f| f.0 == *path) {
            None => all.push(format!("file {} is missing", path.display())),
            Some((_, m, _)) if m != mode => {
                all.push(format!("file {} has mode {m:o}, natively {mode:o}", path.display()));
            }
            Some((_, _, b)) if b != bytes => {
                let at = b.iter().zip(bytes).take_while(|(x, y)| x == y).count();
                all.push(format!(
                    "file {} differs from byte {at} on ({} bytes, natively {})",
                    path.display(),
                    b.len(),
                    bytes.len()
                ));
            }
            Some(_) => {}
        }
    }
    all.extend(g.iter().filter(|p| !w.contains(p)).map(|p| format!("file {} is extra", p.display())));
    all
}

/// How a run ended, for people.
pub fn end(ended: &Ended) -> String {
    match ended {
        Ended::Exit(status) => format!("exit status {status}"),
        Ended::Signal(number, core) => {
            let name =
                nix::sys::signal::Signal::try_from(*number).map_or("a real-time signal", |s| s.as_str());
            format!("signal {number} ({name}){}", if *core { " with core" } else { "" })
        }
        Ended::TimeLimit(limit) => format!("the time limit of {} s", limit.as_secs_f64()),
    }
}

/// Lines shown of a difference; more would bury the next failure.
const LINES_SHOWN: usize = 3;

fn text(what: &str, want: &[u8], got: &[u8]) -> Option<String> {
    if want == got {
        return None;
    }
    let [w, g] = [want, got].map(String::from_utf8_lossy);
    let (w, g): (Vec<_>, Vec<_>) = (w.lines().collect(), g.lines().collect());
    let first = w.iter().zip(&g).take_while(|(a, b)| a == b).count();
    let mut out = format!("{what} differs at line {}:", first + 1);
    let shorten = |s: &str| s.chars().take(200).collect::<String>();
    for line in g.iter().skip(first).take(LINES_SHOWN) {
        let _ = write!(out, "\n      got      {}", shorten(line));
    }
    for line in w.iter().skip(first).take(LINES_SHOWN) {
        let _ = write!(out, "\n      natively {}", shorten(line));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use std::time::Duration;

    fn seen(out: &str, ended: Ended, file: &str) -> Seen {
        Seen {
            stdout: out.into(),
            stderr: b"pid 123".to_vec(),
            ended,
            files: vec![(PathBuf::from("f"), 0o644, file.into())],
        }
    }

    #[test]
    fn equal_runs_have_no_difference() {
        let a = seen("x\n", Ended::Exit(0), "1");
        assert!(between(&a, &a.clone()).is_empty());
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let a = seen("x\ny\n", Ended::Exit(0), "1");
        for (b, expected) in [
            (seen("x\nz\n", Ended::Exit(0), "1"), "stdout differs at line 2"),
            (seen("x\ny\n", Ended::Exit(1), "1"), "ended by exit status 1, natively by exit status 0"),
            (seen("x\ny\n", Ended::Signal(11, false), "1"), "signal 11 (SIGSEGV)"),
            (seen("x\ny\n", Ended::TimeLimit(Duration::from_secs(1)), "1"), "time limit of 1 s"),
            (seen("x\ny\n", Ended::Exit(0), "12"), "file f differs from byte 1"),
            (Seen { files: vec![], ..a.clone() }, "file f is missing"),
        ] {
            let all = between(&a, &b);
            assert!(all.len() == 1 && all[0].contains(expected), "{all:?}");
        }
    }

    #[test]
    fn a_tool_may_tell_a_signal_as_a_status_but_not_the_reverse() {
        let [killed, told, other] =
            [Ended::Signal(11, false), Ended::Exit(139), Ended::Exit(138)].map(|e| seen("", e, ""));
        assert!(between(&killed, &told).is_empty());
        assert!(!between(&killed, &other).is_empty());
        assert!(!between(&told, &killed).is_empty());
    }

    #[test]
    fn what_varies_natively_can_be_taken_out() {
        let n = Normalise { stderr: vec![Regex::new("[0-9]+").unwrap()], ..Normalise::default() };
        assert_eq!(n.apply(&seen("", Ended::Exit(0), "")).stderr, b"pid ");
    }
}
