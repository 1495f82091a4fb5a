//! Running a program as it is, with some variables added to its environment.

use crate::ended::Usage;
use crate::error::LaunchError;
use crate::program::find;
use crate::relay::Relay;
use crate::start::Start;
use std::ffi::OsString;
use std::time::Instant;

/// Runs `command` with `env` added to the environment, stands in for it, and says how it ended.
pub fn run(command: &[OsString], env: &[(OsString, OsString)]) -> Result<Usage, LaunchError> {
    let program = find(&command[0])?;
    let relay = Relay::begin();
    let pid = Start { program: &program, command, env, keep: None, traced: false }.start(&relay)?;
    let started = Instant::now();
    loop {
        if let Some(usage) = relay.wait(pid, started, None)? {
            return Ok(usage);
        }
    }
}
