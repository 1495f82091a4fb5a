//! What is said of the processes that were followed: a run for each that was sampled, and a word about the others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use ::idle::{Executed, Process, Ran};
use anyhow::Result;
use launch::preloaded::{monotonic_ns, refused};
use launch::{Ended, LaunchError};
use profile::{Data, Idle, Run};
use symbols::Object;

use crate::mode::{self, Recording};
use crate::started;

use super::family::Part;

/// The processes besides the first.
#[derive(Default)]
pub struct Children {
    /// Those that were sampled, in the order in which they began.
    pub runs: Vec<Run>,
    /// What all of them have executed, the first one too.
    executed: Vec<Executed>,
    /// Those that were not, by the name of their program: how many, and the CPU time that they used.
    short: BTreeMap<String, (u32, u64)>,
}

impl Children {
    /// Of a first program that has executed these.
    pub fn new(executed: Vec<Executed>) -> Self {
        Children { executed, ..Children::default() }
    }

    /// Takes a process in.
    pub fn add(
        &mut self,
        recording: &Recording<'_>,
        part: &Part,
        rules: &str,
        open: &dyn Fn(&str) -> Option<Arc<Object>>,
    ) -> Result<()> {
        let program = part.program.to_string_lossy();
        let process = Process::Followed { ended_ns: part.ended_ns, replaced: part.replaced };
        // One that ended before it had begun has nothing to tell.
        let Ok(collected) = ::idle::collect(part.bytes(), &Ran { program: &program, process, open }) else {
            return Ok(());
        };
        self.executed.extend(collected.executed);
        if collected.idle.samples == 0 {
            let name = part.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (count, cpu_ns) = self.short.entry(name).or_default();
            (*count, *cpu_ns) = (*count + 1, *cpu_ns + collected.cpu_ns);
            return Ok(());
        }
        let ago_ns = monotonic_ns().saturating_sub(collected.started_ns);
        let facts = mode::Child {
            pid: part.pid,
            program: &part.program,
            command: &part.command,
            ended: Ended::Unknown,
            started_unix_ns: started::now_unix_ns().saturating_sub(ago_ns),
            wall_ns: collected.idle.span_ns,
            cpu_ns: collected.cpu_ns,
            running: part.running,
        };
        let idle = Idle { rules: rules.to_owned(), ..collected.idle };
        let mut run = recording.child(&facts, Data::Idle(idle))?;
        run.problems.extend(part.doubts.iter().cloned().chain(collected.problems));
        self.runs.push(run);
        Ok(())
    }

    /// What is missing.
    pub fn problems(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        if !self.short.is_empty() {
            let (mut count, mut cpu_ns) = (0, 0);
            let mut names = Vec::new();
            for (name, (n, ns)) in &self.short {
                (count, cpu_ns) = (count + n, cpu_ns + ns);
                names.push(if *n == 1 { name.clone() } else { format!("{name} x {n}") });
            }
            found.push(format!(
                "processes without a sample, because they were short, and therefore without a run: {count}, which used {} ms \
                 of CPU time ({})",
                cpu_ns / 1_000_000,
                names.join(", ")
            ));
        }
        self.executed.sort();
        self.executed.dedup();
        for program in &self.executed {
            let name = OsString::from_vec(program.path.clone());
            let shown = name.to_string_lossy();
            // An exec of a path without a folder that is not searched for is of the program's own current folder.
            let reason = if program.searched || shown.contains('/') { refused(&name) } else { None };
            match reason {
                Some(LaunchError::Static(path)) => found.push(format!(
                    "not followed: {}, which is statically linked, so that nothing can be preloaded into it",
                    path.display()
                )),
                Some(LaunchError::Privileged(path)) => found.push(format!(
                    "not followed: {}, which gets privileges when it is executed, so that nothing can be preloaded into it",
                    path.display()
                )),
                Some(LaunchError::ThirtyTwoBit(path)) => {
                    found.push(format!("not followed: {}, which is a 32-bit program", path.display()));
                }
                _ if program.cut_off => found.push(format!(
                    "not followed: {shown}, because the program started it without the environment that leads to Farsight"
                )),
                _ => {}
            }
        }
        found
    }

    /// All processes in one line.
    pub fn summary(&self, first: &Run, wall_ns: u64, cores: u32) -> String {
        let short: (u32, u64) = self.short.values().fold((0, 0), |sum, s| (sum.0 + s.0, sum.1 + s.1));
        let count = 1 + self.runs.len() + short.0 as usize;
        let cpu_ns = first.cpu_ns + self.runs.iter().map(|r| r.cpu_ns).sum::<u64>() + short.1;
        let whole_ns = u64::from(cores) * wall_ns;
        format!(
            "{count} processes used {:.3} s of CPU time in {:.3} s on {cores} cores ({:.0} %); each is judged by itself, and a \
             core that it left idle may have been another one's",
            cpu_ns as f64 / 1e9,
            wall_ns as f64 / 1e9,
            100.0 * cpu_ns as f64 / whole_ns.max(1) as f64,
        )
    }
}
