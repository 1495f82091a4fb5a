//! With one worker, a task that waits for another one which has not started waits forever. This says so.
//!
//! A thread of ours looks every second whether the process has used any processor time. If it has not for a while, one
//! line on standard error says what may be the reason and what to do; the program is left alone. Only with `--serial`.

use crate::libc;
use std::time::Duration;

/// Set when the program was given one worker.
pub const SERIAL: &str = "FARSIGHT_SPAN_SERIAL";
/// Seconds of nothing before anything is said, and the variable for those who cannot wait so long.
const PATIENCE: u32 = 10;
const PATIENCE_VARIABLE: &str = "FARSIGHT_SPAN_PATIENCE";
/// Less than this in a second is nothing: our own looking costs some.
const NOTHING_NS: u64 = 2_000_000;

/// Starts to watch, if asked to.
pub fn start() {
    if std::env::var_os(SERIAL).is_none() {
        return;
    }
    // Without the thread there is no warning, and nothing else is amiss.
    let _failed = std::thread::Builder::new().name("farsight".into()).stack_size(64 << 10).spawn(watch);
}

fn watch() {
    let asked = std::env::var(PATIENCE_VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    let patience = asked.unwrap_or(PATIENCE);
    let mut idle = 0;
    let mut last = libc::ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = libc::ns(libc::CLOCK_PROCESS_CPUTIME_ID);
        idle = if now - last < NOTHING_NS { idle + 1 } else { 0 };
        last = now;
        if idle == patience {
            eprintln!(
                "farsight: the program has done nothing for {patience} s. With one worker, a task that waits for \
                 another one may wait forever: run it without --serial"
            );
        }
    }
}
