//! Runs a case natively and wrapped, and says what a user would have noticed.

use std::path::PathBuf;

use anyhow::Result;

use crate::case::{Case, Program};
use crate::compile::Builder;
use crate::difference::{self, between};
use crate::run::{Ended, Invocation, Seen};
use crate::spec::End;

/// What came of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Equal in this many runs.
    Same(u32),
    /// Not run, for a reason known before.
    Skipped(String),
    /// The native run itself is not what the case says: the test is wrong, or the machine is.
    Native(Vec<String>),
    /// The wrapped run differs: number of runs that differed, of how many, and the first one's differences.
    Differs(u32, u32, Vec<String>),
    /// Could not be built or started.
    Broken(String),
}

/// The circumstances that all cases share.
#[derive(Clone, Debug)]
pub struct Court {
    /// The wrapper's words; `{scratch}` in them is a folder for whatever the tool writes.
    pub wrapper: Vec<String>,
    /// Where programs are built.
    pub builder: Builder,
    /// Where they run.
    pub work: PathBuf,
    /// What `{programs}` in a setup stands for: sources for real programs to work on.
    pub programs: PathBuf,
    /// Overrides each case's own number of runs.
    pub repeat: Option<u32>,
}

impl Court {
    /// Judges one case.
    pub fn judge(&self, case: &Case) -> Verdict {
        if let Some(reason) = case.skip_reason() {
            return Verdict::Skipped(reason);
        }
        match self.try_judge(case) {
            Ok(verdict) => verdict,
            Err(error) => Verdict::Broken(format!("{error:#}")),
        }
    }

    fn try_judge(&self, case: &Case) -> Result<Verdict> {
        let command = case.command(&self.builder)?;
        let flat = case.name.replace('/', "-");
        let scratch = self.work.join(format!("{flat}.scratch"));
        let wrapper: Vec<String> =
            self.wrapper.iter().map(|w| w.replace("{scratch}", &scratch.display().to_string())).collect();
        let native = Invocation {
            command: command.clone(),
            stdin: case.stdin.clone().into_bytes(),
            env: Vec::new(),
            directory: self.work.join(&flat),
            setup: case.setup.as_ref().map(|s| s.replace("{programs}", &self.programs.display().to_string())),
            limit: case.limit,
        };
        let wrapped = match case.program {
            Program::Script(_) => {
                Invocation { env: vec![("WRAP".into(), wrapper.join(" "))], ..native.clone() }
            }
            _ => Invocation { command: wrapper.iter().cloned().chain(command).collect(), ..native.clone() },
        };
        let reset_scratch = || -> std::io::Result<()> {
            match std::fs::remove_dir_all(&scratch) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e),
                _ => std::fs::create_dir_all(&scratch),
            }
        };
        let raw = native.run()?;
        let wrong = against_answer(case, &raw);
        if !wrong.is_empty() {
            return Ok(Verdict::Native(wrong));
        }
        let want = case.normalise.apply(&raw);
        let runs = self.repeat.unwrap_or(case.repeat);
        let mut failures: Vec<Vec<String>> = Vec::new();
        for _ in 0..runs {
            reset_scratch()?;
            let raw = wrapped.run()?;
            let got = case.normalise.apply(&raw);
            let differences = between(&want, &got);
            if !differences.is_empty() {
                let hung = matches!(got.ended, Ended::TimeLimit(_));
                failures.push(differences);
                if hung {
                    break; // one hang says enough
                }
            }
        }
        Ok(match failures.first() {
            None => Verdict::Same(runs),
            Some(first) => Verdict::Differs(failures.len() as u32, runs, first.clone()),
        })
    }
}

/// What the native run gets wrong of the case's known answer.
fn against_answer(case: &Case, seen: &Seen) -> Vec<String> {
    let mut wrong = Vec::new();
    let end_matches = match (&case.end, &seen.ended) {
        (None, ended) => !matches!(ended, Ended::TimeLimit(_)),
        (Some(End::Exit(want)), Ended::Exit(got)) => want == got,
        (Some(End::Signal(want)), Ended::Signal(got, _)) => want == got,
        _ => false,
    };
    if !end_matches {
        let stderr = String::from_utf8_lossy(&seen.stderr);
        wrong.push(format!(
            "natively ended by {}, the case says {:?}; stderr: {}",
            difference::end(&seen.ended),
            case.end,
            stderr.trim().lines().last().unwrap_or_default()
        ));
    }
    if let Some(answer) = &case.stdout
        && answer.as_bytes() != seen.stdout
    {
        wrong.push(format!(
            "native stdout is not the known answer:\n      got  {}\n      want {}",
            String::from_utf8_lossy(&seen.stdout).trim_end().replace('\n', "\n           "),
            answer.trim_end().replace('\n', "\n           ")
        ));
    }
    if let Some(text) = &case.stderr_has
        && !String::from_utf8_lossy(&seen.stderr).contains(text)
    {
        wrong.push(format!("native stderr lacks `{text}`"));
    }
    wrong
}
