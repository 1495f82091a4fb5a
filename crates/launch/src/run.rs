//! One run: start, inject, wait.

use crate::answers::{Answer, Asked, Desk, Question};
use crate::ended::{Ended, Usage};
use crate::error::LaunchError;
use crate::follow::{self, Followed, Follower, Requests};
use crate::inject::{Injection, Memory};
use crate::program::{find, refuse_privileged};
use crate::relay::Relay;
use crate::results::Results;
use crate::start::Start;
use crate::tracee::Tracee;
use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::boot::flags;
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

impl Spec<'_> {
    /// Length of the shared memory.
    pub(crate) fn shared_bytes(&self) -> u64 {
        self.fixed_bytes + slab::COUNT_DEFAULT * slab::STRIDE
    }
}

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
    /// Children that were not followed although they should have been, and why.
    pub problems: Vec<String>,
}

/// Runs a program under a runtime and waits for it.
pub fn run(spec: &Spec<'_>) -> Result<Outcome, LaunchError> {
    run_with(spec, None, None)
}

/// The same, with variables added to the program's environment, and somebody who answers the runtime's questions.
pub fn run_in(
    spec: &Spec<'_>,
    env: &[(OsString, OsString)],
    answers: Option<&mut Answers<'_>>,
) -> Result<Outcome, LaunchError> {
    run_all(spec, env, answers, None)
}

/// The same, with somebody who answers the runtime's questions, and somebody who wants to follow children and takes
/// what became of each program image as it ends.
pub fn run_with(
    spec: &Spec<'_>,
    answers: Option<&mut Answers<'_>>,
    each: Option<&mut (dyn FnMut(Followed) + '_)>,
) -> Result<Outcome, LaunchError> {
    run_all(spec, &[], answers, each)
}

fn run_all(
    spec: &Spec<'_>,
    env: &[(OsString, OsString)],
    answers: Option<&mut Answers<'_>>,
    each: Option<&mut (dyn FnMut(Followed) + '_)>,
) -> Result<Outcome, LaunchError> {
    check_machine()?;
    let program = find(&spec.command[0])?;
    refuse_privileged(&program)?;
    let results = Results::new(spec.shared_bytes())?;
    let requests = each.is_some().then(Requests::new).transpose()?;
    (spec.prepare)(&results);
    let relay = Relay::begin();
    let fd = results.duplicate()?;
    let start =
        Start { program: &program, command: spec.command, env, keep: Some(fd.as_raw_fd()), traced: true };
    let pid = start.start(&relay)?;
    let answers = Mutex::new(answers);
    let asked = |question| {
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.as_mut().map_or(Answer::NOTHING, |answer| answer(question))
    };
    let wanted = answers.lock().is_ok_and(|a| a.is_some());
    let asked: Option<&Asked<'_>> = if wanted { Some(&asked) } else { None };
    let over = AtomicBool::new(false);
    let mut problems = Vec::new();
    let usage = std::thread::scope(|scope| {
        let _clerk = asked.map(|asked| Desk::new(&results).open(scope, pid, asked));
        let mut follower = match (&requests, each) {
            (Some(requests), Some(each)) => {
                // SAFETY: asks who we are.
                let us = unsafe { libc::gettid() };
                let over = &over;
                let control = requests.control();
                scope.spawn(move || follow::ring(control, us, over));
                Some(Follower::new(spec, requests, scope, asked, each, pid))
            }
            _ => None,
        };
        let memory = Memory::Inherited(fd.as_raw_fd());
        let usage = enter(spec, &program, pid, memory, relay.mask_bits(), requests.as_ref())
            .and_then(|()| go(spec, pid, &relay, &mut || follower.iter_mut().for_each(Follower::serve)));
        over.store(true, Ordering::Release);
        if let Some(follower) = &mut follower {
            follower.finish();
            problems.append(&mut follower.problems);
        }
        usage
    })?;
    drop(fd);
    Ok(Outcome {
        ended: usage.ended,
        wall_ns: usage.wall_ns,
        cpu_ns: usage.cpu_ns,
        rss_bytes_max: usage.rss_bytes_max,
        results,
        problems,
    })
}

/// Injects the runtime into the stopped program and lets it go; or ends it.
fn enter(
    spec: &Spec<'_>,
    program: &Path,
    pid: libc::pid_t,
    memory: Memory,
    mask: u64,
    requests: Option<&Requests>,
) -> Result<(), LaunchError> {
    inject(spec, program, pid, memory, mask, requests).inspect_err(|_| {
        // SAFETY: our own child, not yet waited for.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
        }
    })
}

/// Waits for the program's end, serving others meanwhile.
fn go(
    spec: &Spec<'_>,
    pid: libc::pid_t,
    relay: &Relay,
    serve: &mut dyn FnMut(),
) -> Result<Usage, LaunchError> {
    let started = Instant::now();
    const GRACE: Duration = Duration::from_secs(2);
    let mut deadline = spec.duration.map(|d| (started + d, libc::SIGINT));
    loop {
        if let Some(usage) = relay.wait_serving(pid, started, deadline.map(|d| d.0), serve)? {
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

/// Refuses a program that the engine cannot run; it is stopped before its first instruction.
pub(crate) fn refuse_32_bit(t: &Tracee, program: &Path) -> Result<(), LaunchError> {
    const CODE_SEGMENT_32: u64 = 0x23;
    if t.regs()?.cs == CODE_SEGMENT_32 {
        return Err(LaunchError::ThirtyTwoBit(program.to_owned()));
    }
    Ok(())
}

fn inject(
    spec: &Spec<'_>,
    program: &Path,
    pid: libc::pid_t,
    memory: Memory,
    mask: u64,
    requests: Option<&Requests>,
) -> Result<(), LaunchError> {
    let t = Tracee::new(pid)?;
    refuse_32_bit(&t, program)?;
    let following = if requests.is_some() { flags::FOLLOW } else { 0 };
    Injection {
        blob: spec.blob,
        flags: spec.flags | following | flags::DEATH_SIGNAL,
        fixed_bytes: spec.fixed_bytes,
        slab_count: slab::COUNT_DEFAULT,
        memory,
        follow: requests.map(|r| (r.memory(), 0)),
    }
    .inject(&t)?;
    t.set_mask(mask)?;
    t.detach()
}
