//! What the page knows about a run whatever its mode: the command, how it ended, and what it took.

use profile::{Exit, Run};
use serde::Serialize;

/// The first fields of every run, flattened into it; `RunHead` of the page's `data.ts`.
#[derive(Serialize)]
pub struct Head<'a> {
    program: &'a str,
    command: &'a [String],
    exit_code: Option<i32>,
    exit_signal: Option<i32>,
    started_unix_ms: u64,
    wall_ns: u64,
    cpu_ns: u64,
    problems: &'a [String],
}

impl<'a> Head<'a> {
    /// Of this run.
    pub fn new(run: &'a Run) -> Self {
        let (exit_code, exit_signal) = match run.exit {
            Exit::Code(code) => (Some(code), None),
            Exit::Signal(signal) => (None, Some(signal)),
            Exit::Unknown => (None, None),
        };
        Head {
            program: &run.program.path,
            command: &run.command,
            exit_code,
            exit_signal,
            started_unix_ms: run.started_unix_ns / 1_000_000,
            wall_ns: run.wall_ns,
            cpu_ns: run.cpu_ns,
            problems: &run.problems,
        }
    }
}
