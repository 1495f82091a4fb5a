//! One run: start, inject, wait.

use crate::error::{LaunchError, os};
use crate::inject::Injection;
use crate::results::Results;
use crate::tracee::Tracee;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
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
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
}

impl Ended {
    /// As a shell reports it.
    pub fn shell_code(self) -> i32 {
        match self {
            Ended::Code(c) => c,
            Ended::Signal(s) => 128 + s,
        }
    }
}

/// How a run ended and what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// How it ended.
    pub ended: Ended,
    /// Wall-clock time.
    pub wall_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Largest resident size, bytes.
    pub rss_bytes_max: u64,
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
}

/// Runs a program under a runtime and waits for it.
pub fn run(spec: &Spec<'_>) -> Result<Outcome, LaunchError> {
    check_machine()?;
    let program = find(&spec.command[0])?;
    let results = Results::new(spec.fixed_bytes + slab::COUNT_DEFAULT * slab::STRIDE)?;
    (spec.prepare)(&results);
    let (pid, fd) = spawn(&program, spec.command, results.fd())?;
    let injected = inject(spec, &program, pid, fd);
    if let Err(e) = injected {
        // SAFETY: our own child, not yet waited for.
        unsafe {
            libc::kill(pid, libc::SIGKILL);
            libc::waitpid(pid, std::ptr::null_mut(), libc::__WALL);
        }
        return Err(e);
    }
    let started = Instant::now();
    // The terminal sends these to the program as well; it decides, and we stay to report.
    let quiet = [libc::SIGINT, libc::SIGQUIT].map(|s| {
        // SAFETY: ignoring a signal involves no memory of ours.
        (s, unsafe { libc::signal(s, libc::SIG_IGN) })
    });
    let mut status = 0;
    // SAFETY: plain C structures that the kernel fills.
    let (waited, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let w = loop {
            let w = libc::wait4(pid, &raw mut status, 0, &raw mut usage);
            if w >= 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                break w;
            }
        };
        (w, usage)
    };
    let wall_ns = started.elapsed().as_nanos() as u64;
    for (s, old) in quiet {
        // SAFETY: restores what `signal` returned.
        unsafe { libc::signal(s, old) };
    }
    if waited < 0 {
        return Err(os("wait for the program"));
    }
    let ended = if libc::WIFSIGNALED(status) {
        Ended::Signal(libc::WTERMSIG(status))
    } else {
        Ended::Code(libc::WEXITSTATUS(status))
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    Ok(Outcome {
        ended,
        wall_ns,
        cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
        rss_bytes_max: usage.ru_maxrss as u64 * 1024,
        results,
    })
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

/// Where `execvp` would find the program.
pub fn find(name: &OsStr) -> Result<PathBuf, LaunchError> {
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match std::fs::metadata(&path) {
            Ok(_) => Ok(path),
            Err(e) => Err(LaunchError::NotExecutable(path, e)),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    std::env::split_paths(&path)
        .map(|dir| if dir.as_os_str().is_empty() { PathBuf::from(".").join(name) } else { dir.join(name) })
        .find(|p| std::fs::metadata(p).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0))
        .ok_or_else(|| LaunchError::NotFound(name.to_string_lossy().into_owned()))
}

/// Forks and execs under ptrace. Returns the child, stopped at its first instruction, and the number of the shared
/// memory's descriptor there.
fn spawn(program: &Path, command: &[OsString], shared: i32) -> Result<(libc::pid_t, i32), LaunchError> {
    let path = c_string(program.as_os_str())?;
    let args = command.iter().map(|a| c_string(a)).collect::<Result<Vec<_>, _>>()?;
    let mut argv: Vec<*const libc::c_char> = args.iter().map(|a| a.as_ptr()).collect();
    argv.push(std::ptr::null());
    // The copy that the child keeps across exec; closed again before the program's first instruction.
    // SAFETY: duplicates our own descriptor.
    let fd = unsafe { libc::fcntl(shared, libc::F_DUPFD_CLOEXEC, 3) };
    if fd < 0 {
        return Err(os("duplicate the shared memory"));
    }
    // SAFETY: the child calls async-signal-safe functions only, then execs or exits; no other threads are assumed.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(os("fork"));
    }
    if pid == 0 {
        // SAFETY: as above; all pointers were made before the fork.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, 0);
            // The Rust runtime ignores SIGPIPE; the program expects the default.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) < 0 {
                libc::_exit(126);
            }
            libc::execv(path.as_ptr(), argv.as_ptr());
            let e = *libc::__errno_location();
            // A plain exit status carries the error: nothing has been exec'd, so the status is ours to define.
            libc::_exit(e);
        }
    }
    // SAFETY: our own descriptor; the child has its copy.
    unsafe { libc::close(fd) };
    let mut status = 0;
    // SAFETY: writes one int.
    if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
        return Err(os("wait for the program"));
    }
    if libc::WIFEXITED(status) {
        let e = std::io::Error::from_raw_os_error(libc::WEXITSTATUS(status));
        return Err(LaunchError::NotExecutable(program.to_owned(), e));
    }
    if !libc::WIFSTOPPED(status) {
        return Err(LaunchError::Bug(format!("unexpected status {status:#x} at start")));
    }
    Ok((pid, fd))
}

fn c_string(s: &OsStr) -> Result<CString, LaunchError> {
    CString::new(s.as_bytes()).map_err(|_| LaunchError::Bug("an argument contains a nul byte".into()))
}

fn inject(spec: &Spec<'_>, program: &Path, pid: libc::pid_t, fd: i32) -> Result<(), LaunchError> {
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
    t.detach()
}
