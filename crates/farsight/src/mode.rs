//! What every MODE has in common: the flags, where its profile goes, and what is said when the program has ended.
//!
//! A mode flattens [`ModeArgs`] into its own arguments, calls [`ModeArgs::begin`] before it starts the program (a
//! file that may not be written is an error then, not afterwards), and hands the finished runs to
//! [`Recording::finish`], which saves, prints and gives the exit code. What a run looks like is `view.rs`'s business.
//!
//! The program's own output is never mixed with ours: the summary goes to stdout after the program has ended, all
//! else to stderr.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use launch::{Ended, Followed, LaunchError};
use profile::{Exit, Profile, Program, Run};

use crate::exit::{Failure, Kind};
use crate::view;
use crate::{output, profiles, started};

/// The flags of every mode, and the program.
#[derive(clap::Args)]
pub struct ModeArgs {
    /// The profile to write; PROGRAM-MODE.farsight in the current folder if not given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Add the run to a profile of the same program that exists already
    #[arg(long)]
    pub append: bool,
    /// Write the result as JSON, - for stdout
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// No messages and no summary
    #[arg(short, long)]
    pub quiet: bool,
    /// Say what is being done
    #[arg(short, long)]
    pub verbose: bool,
    /// No table on stdout
    #[arg(long)]
    pub no_summary: bool,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// A run that may start: its profile has a place to go.
pub struct Recording<'a> {
    args: &'a ModeArgs,
    /// Where the profile goes; `None` when the place by default is taken and the result goes elsewhere anyway.
    place: Option<PathBuf>,
    program: Program,
    started_unix_ns: u64,
}

impl ModeArgs {
    /// Checks, before anything runs, that the profile can be written. `mode` is the subcommand's name.
    pub fn begin(&self, mode: &str) -> Result<Recording<'_>> {
        let program = started::program(&self.command[0]);
        let place = match &self.output {
            Some(path) => path.clone(),
            None => PathBuf::from(default_name(&self.command[0], mode)),
        };
        let mut place = Some(place);
        if let Some(path) = place.as_deref().filter(|path| is_file(path)) {
            if self.append {
                same_program(path, &program)?;
            } else if self.output.is_none() && (self.json.is_some() || self.html.is_some()) {
                // Nobody asked for this file by name, and the result has a place: not worth failing for.
                self.say(format_args!(
                    "{} exists already, so this run is not saved; give --append to add it, or another file with -o",
                    path.display()
                ));
                place = None;
            } else {
                let message = anyhow!(
                    "{} exists already; give --append to add a run to it, another file with -o, or remove it",
                    path.display()
                );
                return Err(Failure::error(Kind::Usage, message));
            }
        }
        if let Some(folder) = place.as_deref().map(folder)
            && !folder.is_dir()
        {
            let message = anyhow!("there is no folder {} to write the profile to", folder.display());
            return Err(Failure::error(Kind::NoInput, message));
        }
        Ok(Recording { args: self, place, program, started_unix_ns: started::now_unix_ns() })
    }

    /// Something about the run for stderr.
    pub fn say(&self, message: impl std::fmt::Display) {
        if !self.quiet {
            eprintln!("farsight: {message}");
        }
    }
}

/// What every mode knows of a child that was followed.
pub struct Child<'a> {
    pub pid: u32,
    pub program: &'a Path,
    pub command: &'a [OsString],
    pub ended: Ended,
    pub started_unix_ns: u64,
    pub wall_ns: u64,
    pub cpu_ns: u64,
    /// Whether it still ran when the first program ended.
    pub running: bool,
}

impl<'a> From<&'a Followed> for Child<'a> {
    fn from(child: &'a Followed) -> Self {
        Child {
            pid: child.pid,
            program: &child.program,
            command: &child.command,
            ended: child.ended.unwrap_or(Ended::Unknown),
            started_unix_ns: child.started_unix_ns,
            wall_ns: child.wall_ns,
            cpu_ns: child.cpu_ns,
            running: child.running,
        }
    }
}

impl Recording<'_> {
    /// A run of the started program, for its mode to fill in: no times, no problems.
    pub fn run(&self, data: profile::Data) -> Result<Run> {
        Ok(Run {
            id: started::run_id()?,
            program: self.program.clone(),
            command: self.args.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            exit: Exit::Unknown,
            started_unix_ns: self.started_unix_ns,
            wall_ns: 0,
            cpu_ns: 0,
            problems: Vec::new(),
            data,
        })
    }

    /// The same for a child that was followed.
    pub fn child(&self, child: &Child<'_>, data: profile::Data) -> Result<Run> {
        let mut run = self.run(data)?;
        run.program = started::program(child.program.as_os_str());
        run.command = child.command.iter().map(|a| a.to_string_lossy().into_owned()).collect();
        run.exit = exit_of(child.ended);
        run.started_unix_ns = child.started_unix_ns;
        run.wall_ns = child.wall_ns;
        run.cpu_ns = child.cpu_ns;
        if child.running {
            run.problems.push(format!(
                "process {} ({}) still ran when the first program ended: what it did afterwards is not in the profile",
                child.pid,
                child.program.display()
            ));
        }
        Ok(run)
    }

    /// Saves the runs, shows them as the flags say, and exits as the first of them did: the program that was asked
    /// for, before its children.
    pub fn finish(self, runs: Vec<Run>) -> Result<ExitCode> {
        let args = self.args;
        let code = runs.first().map_or(0, |run| shell_code(run.exit));
        // Runs of several processes often have the same ones.
        let mut said = HashSet::new();
        for problem in runs.iter().flat_map(|run| &run.problems).filter(|problem| said.insert(*problem)) {
            args.say(problem);
        }
        let profile = Profile { runs };
        if let Some(place) = &self.place {
            let saved = if args.append {
                profile::file::append(place, &profile)
            } else {
                profile::file::save_new(place, &profile)
            };
            saved.map_err(profiles::failure)?;
        }
        let json_on_stdout = args.json.as_deref().is_some_and(|p| p.as_os_str() == "-");
        let summary = !args.quiet && !args.no_summary && !json_on_stdout;
        // Judging curves takes time: not for nobody.
        let shown = summary || args.json.is_some() || args.html.is_some();
        let views = if shown { view::of_profile(profile)? } else { Vec::new() };
        if let Some(path) = &args.json {
            output::write_json(path, &view::document(&views))?;
        }
        if let Some(path) = &args.html {
            output::write(path, view::page(&views).as_bytes())?;
        }
        if summary {
            output::print(&view::terminal(&views))?;
        }
        if !args.no_summary {
            self.say_what_was_written();
        }
        Ok(ExitCode::from(code as u8))
    }

    fn say_what_was_written(&self) {
        let args = self.args;
        if let Some(path) = &args.html {
            args.say(format_args!("wrote {}", path.display()));
        }
        if let Some(place) = self.place.as_deref().filter(|place| is_file(place)) {
            args.say(format_args!(
                "wrote {0}; next: farsight report {0} --html report.html",
                place.display()
            ));
        }
    }
}

/// The status that `farsight` exits with: the program's own, 128+signal when killed.
fn shell_code(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
        Exit::Unknown => 0,
    }
}

/// How the program ended, for a run.
pub fn exit_of(ended: launch::Ended) -> Exit {
    match ended {
        launch::Ended::Code(code) => Exit::Code(code),
        launch::Ended::Signal(signal) => Exit::Signal(signal),
        launch::Ended::Unknown => Exit::Unknown,
    }
}

/// A launch that failed, with its exit code.
pub fn launch_failure(error: LaunchError) -> anyhow::Error {
    let kind = match error {
        LaunchError::NotFound(_) | LaunchError::NotExecutable(..) | LaunchError::NoInterpreter { .. } => {
            Kind::NoInput
        }
        LaunchError::Bug(_) => Kind::Bug,
        LaunchError::ThirtyTwoBit(_)
        | LaunchError::Static(_)
        | LaunchError::Privileged(_)
        | LaunchError::Lacks(_)
        | LaunchError::System { .. }
        | LaunchError::AddressSpace { .. } => Kind::Unavailable,
    };
    Failure::error(kind, error)
}

fn default_name(program: &OsStr, mode: &str) -> OsString {
    let mut name = Path::new(program).file_name().unwrap_or(program).to_owned();
    name.push(format!("-{mode}.farsight"));
    name
}

/// Whether there is a regular file of that name: devices and pipes are written as they stand.
fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file())
}

fn folder(path: &Path) -> PathBuf {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// A file gains runs of its own program only: a profile by default name must not become a mixture by accident.
fn same_program(path: &Path, program: &Program) -> Result<()> {
    let held = profiles::read(path, false)?;
    match held.runs.iter().find(|run| run.program.path != program.path && !run.program.same_build(program)) {
        None => Ok(()),
        Some(other) => {
            let message = anyhow!(
                "{} holds runs of {}, not of {}; choose another file with -o, or put them together with farsight merge",
                path.display(),
                other.program.path,
                program.path,
            );
            Err(Failure::error(Kind::Usage, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_named_after_program_and_mode() {
        for (program, expected) in [
            ("ls", "ls-count.farsight"),
            ("/usr/bin/ls", "ls-count.farsight"),
            ("./a.out", "a.out-count.farsight"),
        ] {
            assert_eq!(default_name(OsStr::new(program), "count"), OsStr::new(expected));
        }
    }
}
