//! A case: something to run twice and compare. Test programs become cases here; real programs come from [`crate::real`].

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use regex_lite::Regex;

use crate::compile::Builder;
use crate::difference::Normalise;
use crate::run::on_path;
use crate::spec::{End, Ring, Spec};

/// Where the command line of a case comes from.
#[derive(Clone, Debug)]
pub enum Program {
    /// Built from one of our sources.
    Source {
        /// The source file.
        path: PathBuf,
        /// Its header.
        spec: Box<Spec>,
    },
    /// Found on the machine: the wrapper goes in front of this command.
    Command(Vec<String>),
    /// A bash script that runs natively and puts `$WRAP` in front of what is under test (servers with clients).
    Script(String),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Case {
    /// `folder/name`.
    pub name: String,
    /// Ring.
    pub ring: Ring,
    /// What to run.
    pub program: Program,
    /// Commands that must exist; else the case is skipped by name.
    pub needs: Vec<String>,
    /// A processor feature that must exist.
    pub cpu: Option<String>,
    /// Prepares the working directory, natively.
    pub setup: Option<String>,
    /// Standard input.
    pub stdin: String,
    /// Known answer on standard output.
    pub stdout: Option<String>,
    /// Text that standard error must hold.
    pub stderr_has: Option<String>,
    /// Known end; `None` where only equality counts.
    pub end: Option<End>,
    /// What to leave out of the comparison.
    pub normalise: Normalise,
    /// Runs under the wrapper.
    pub repeat: u32,
    /// Time limit of one run.
    pub limit: Duration,
}

impl Case {
    /// Why this case cannot run on this machine, if it cannot.
    pub fn skip_reason(&self) -> Option<String> {
        if let Some(feature) = &self.cpu
            && !cpu_has(feature)
        {
            return Some(format!("the processor has no {feature}"));
        }
        self.needs.iter().find(|n| on_path(n).is_none()).map(|n| format!("{n} is not installed"))
    }

    /// The command line without any wrapper, building the program if it is ours.
    pub fn command(&self, builder: &Builder) -> Result<Vec<String>> {
        match &self.program {
            Program::Command(command) => Ok(command.clone()),
            Program::Script(text) => Ok(["bash", "-e", "-c", text].map(String::from).to_vec()),
            Program::Source { path, spec } => {
                let mut command = vec![builder.program(path, &spec.flags)?.display().to_string()];
                for arg in &spec.args {
                    let mut arg = arg.replace("{pid}", &std::process::id().to_string());
                    for lib in &spec.libs {
                        let source = path.with_file_name(lib);
                        let key = format!("{{lib:{}}}", lib.trim_end_matches(".c"));
                        if arg.contains(&key) {
                            arg = arg.replace(&key, &builder.library(&source)?.display().to_string());
                        }
                    }
                    command.push(arg);
                }
                Ok(command)
            }
        }
    }
}

/// Every test program under `root`, in order of name.
pub fn of_test_programs(root: &Path) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for folder in FOLDERS {
        let dir = root.join(folder);
        let mut sources: Vec<_> = fs::read_dir(&dir)
            .with_context(|| format!("cannot list {}", dir.display()))?
            .map(|e| e.map(|e| e.path()))
            .collect::<std::io::Result<_>>()?;
        sources.sort();
        for path in sources {
            if !path.extension().is_some_and(|e| ["c", "cpp", "rs", "S"].iter().any(|x| e == *x)) {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let spec = Spec::parse(&text)
                .map_err(|e| anyhow::anyhow!("{}:{}: {}", path.display(), e.line, e.why))?;
            let Some(spec) = spec else { continue };
            let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
            let compile =
                |m: &String| Regex::new(m).with_context(|| format!("{}: bad mask {m}", path.display()));
            cases.push(Case {
                name: format!("{folder}/{stem}"),
                ring: spec.ring,
                needs: Vec::new(),
                cpu: spec.cpu.clone(),
                setup: None,
                stdin: spec.stdin.clone(),
                stdout: spec.stdout.clone(),
                stderr_has: spec.stderr_has.clone(),
                end: Some(spec.end.clone()),
                normalise: Normalise {
                    stderr: spec.stderr_masks.iter().map(compile).collect::<Result<_>>()?,
                    ..Normalise::default()
                },
                repeat: spec.repeat,
                limit: spec.limit,
                program: Program::Source { path: path.clone(), spec: Box::new(spec) },
            });
        }
    }
    Ok(cases)
}

/// The folders of `test-programs` whose programs are cases of transparency. (Other modes keep programs with other known
/// answers beside them.)
pub const FOLDERS: &[&str] =
    &["process", "threads", "signals", "control", "code", "kernel", "instructions", "count"];

fn cpu_has(feature: &str) -> bool {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines()
        .find_map(|l| l.strip_prefix("flags"))
        .is_some_and(|flags| flags.split_whitespace().any(|f| f == feature))
}
