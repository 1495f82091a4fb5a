//! One run: start, inject, wait.

use crate::answers::{Answer, Desk, Question};
use crate::ended::{Ended, Usage};
use crate::error::LaunchError;
use crate::inject::Injection;
use crate::program::{find, refuse_privileged};
use crate::relay::Relay;
use crate::results::Results;
use crate::start::Start;
use crate::tracee::Tracee;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use wire::slab;

/// What to run, and how.
pub struct Spec<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// The runtime, a blob of `runtimes`.
    pub blob: &'a [u8],
    /// Bits of `wire::boot::flags`.
    pub flags: u32,
    /// Length of the fixed part of the shared memory.
    pub fixed_bytes: u64,
    /// Writes the header of the shared memory.
    pub prepare: &'a dyn Fn(&Results),
    /// When to end the program, as Ctrl-C would; it is killed two seconds later if it stays.
    pub duration: Option<Duration>,
}

/// Answers the program's questions about functions.
pub type Answers<'a> = dyn FnMut(Question) -> Answer + Send + 'a;

/// A finished run.
pub struct Outcome {
    /// How it ended.
    pub ended: Ended,
    /// Wall-clock time from the first instruction on.
    pub wall_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Largest resident size, bytes.
    pub rss_bytes_max: u64,
    /// What the runtime wrote.
    pub results: Results,
}

/// Runs a program under a runtime and waits for it.
pub fn run(spec: &Spec<'_>) -> Result<Outcome, LaunchError> {
    run_answering(spec, None)
}

/// The same, with somebody who answers the runtime's questions.
pub fn run_answering(spec: &Spec<'_>, answers: Option<&mut Answers<'_>>) -> Result<Outcome, LaunchError> {
    run_in(spec, &[], answers)
}

/// The same, with variables added to the program's environment.
pub fn run_in(
    spec: &Spec<'_>,
    env: &[(OsString, OsString)],
    answers: Option<&mut Answers<'_>>,
) -> Result<Outcome, LaunchError> {
    check_machine()?;
    let program = find(&spec.command[0])?;
    refuse_privileged(&program)?;
    let results = Results::new(spec.fixed_bytes + slab::COUNT_DEFAULT * slab::STRIDE)?;
    (spec.prepare)(&results);
    let relay = Relay::begin();
    let fd = results.duplicate()?;
    let start =
        Start { program: &program, command: spec.command, env, keep: Some(fd.as_raw_fd()), traced: true };
    let pid = start.start(&relay)?;
    let desk = Desk::new(&results);
    let usage = std::thread::scope(|scope| {
        if let Some(answers) = answers {
            desk.open(scope, pid, answers);
        }
        let usage = go(spec, &program, pid, &fd, &relay);
        desk.close();
        usage
    })?;
    drop(fd);
    Ok(Outcome {
        ended: usage.ended,
        wall_ns: usage.wall_ns,
        cpu_ns: usage.cpu_ns,
        rss_bytes_max: usage.rss_bytes_max,
        results,
    })
}

/// Injects the runtime into the stopped program, lets it go and waits for its end.
fn go(
    spec: &Spec<'_>,
    program: &Path,
    pid: libc::pid_t,
    fd: &OwnedFd,
    relay: &Relay,
) -> Result<Usage, LaunchError> {
    if let Err(e) = inject(spec, program, pid, fd.as_raw_fd(), relay.mask_bits()) {
        // SAFETY: our own child, not yet waited for.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
        }
        return Err(e);
    }
    let started = Instant::now();
    const GRACE: Duration = Duration::from_secs(2);
    let mut deadline = spec.duration.map(|d| (started + d, libc::SIGINT));
    loop {
        if let Some(usage) = relay.wait(pid, started, deadline.map(|d| d.0))? {
            return Ok(usage);
        }
        if let Some((_, signal)) = deadline {
            // SAFETY: our own child, not yet waited for.
            unsafe { libc::kill(pid, signal) };
            deadline = (signal == libc::SIGINT).then(|| (Instant::now() + GRACE, libc::SIGKILL));
        }
    }
}

fn check_machine() -> Result<(), LaunchError> {
    // SAFETY: reads the auxiliary vector.
    let hwcap2 = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    if hwcap2 & 2 == 0 {
        return Err(LaunchError::Lacks("FSGSBASE (Linux 5.9 on a processor since 2012)"));
    }
    if !std::arch::is_x86_feature_detected!("sse4.2") {
        return Err(LaunchError::Lacks("SSE4.2"));
    }
    // SAFETY: a plain C structure that the kernel fills.
    let limit = unsafe {
        let mut l: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_AS, &raw mut l);
        l.rlim_cur
    };
    let needed = slab::COUNT_DEFAULT * slab::STRIDE + (4 << 30);
    if limit < needed {
        return Err(LaunchError::AddressSpace { limit, needed });
    }
    Ok(())
}

fn inject(spec: &Spec<'_>, program: &Path, pid: libc::pid_t, fd: i32, mask: u64) -> Result<(), LaunchError> {
    let t = Tracee::new(pid)?;
    const CODE_SEGMENT_32: u64 = 0x23;
    if t.regs()?.cs == CODE_SEGMENT_32 {
        return Err(LaunchError::ThirtyTwoBit(program.to_owned()));
    }
    Injection {
        blob: spec.blob,
        flags: spec.flags,
        fixed_bytes: spec.fixed_bytes,
        slab_count: slab::COUNT_DEFAULT,
        fd,
    }
    .inject(&t)?;
    t.set_mask(mask)?;
    t.detach()
}
