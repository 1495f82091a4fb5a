//! Running a program with a library preloaded into it, and talking to that library through shared memory while the
//! program runs.
//!
//! Neither the library nor the shared memory is a file on disk: both are anonymous files of the launcher, and the
//! program opens them as `/proc/PID/fd/N`. Nothing needs to be cleaned up, whoever dies first; folders that forbid
//! execution do not matter; and the program inherits no descriptor.
//!
//! Programs that would ignore `LD_PRELOAD` (static, set-user-id, 32-bit) are refused with the reason.

use crate::error::{LaunchError, os};
use crate::results::Results;
use crate::run::{Ended, Usage, find};
use object::read::elf::{FileHeader, ProgramHeader};
use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::{Duration, Instant};

/// What to run, and how.
pub struct Preload<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// The library, a blob of `runtimes`.
    pub library: &'a [u8],
    /// Environment variable through which the library finds the shared memory.
    pub variable: &'a str,
    /// Length of the shared memory.
    pub shared_bytes: u64,
}

/// A program that has been started and not yet waited for.
pub struct Running {
    pid: libc::pid_t,
    program: PathBuf,
    pidfd: Option<OwnedFd>,
    /// Kept open until the program has ended: a followed child opens it again.
    _library: OwnedFd,
    shared: Results,
    started: Instant,
    quiet: [(i32, libc::sighandler_t); 2],
    ended: Option<Usage>,
}

impl Preload<'_> {
    /// Makes the shared memory, lets `prepare` fill it, and starts the program.
    pub fn start(&self, prepare: impl FnOnce(&Results)) -> Result<Running, LaunchError> {
        let program = find(&self.command[0])?;
        check(&program)?;
        let library = anonymous_file(self.library)?;
        let shared = Results::new(self.shared_bytes)?;
        prepare(&shared);
        let path_of = |fd: i32| format!("/proc/{}/fd/{fd}", process::id());
        let mut preload = OsString::from(path_of(library.as_raw_fd()));
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let spawned = process::Command::new(&program)
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env("LD_PRELOAD", preload)
            .env(self.variable, path_of(shared.fd()))
            .stdin(Stdio::inherit())
            .spawn();
        let child = spawned.map_err(|e| LaunchError::NotExecutable(program.clone(), e))?;
        let started = Instant::now();
        let pid = child.id() as libc::pid_t;
        // The terminal sends these to the program as well; it decides, and we stay to report.
        let quiet = [libc::SIGINT, libc::SIGQUIT].map(|s| {
            // SAFETY: ignoring a signal involves no memory of ours.
            (s, unsafe { libc::signal(s, libc::SIG_IGN) })
        });
        // SAFETY: no memory is involved; our own child. Kernels before 5.3 refuse, then we poll.
        let pidfd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: a descriptor that was just made and that nothing else owns.
        let pidfd = (pidfd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(pidfd as i32) });
        Ok(Running { pid, program, pidfd, _library: library, shared, started, quiet, ended: None })
    }
}

impl Running {
    /// Process id.
    pub fn pid(&self) -> u32 {
        self.pid as u32
    }

    /// The executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The shared memory.
    pub fn shared(&self) -> &Results {
        &self.shared
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for the program's end, at most this long. What became of it, once it has ended.
    pub fn wait(&mut self, longest: Duration) -> Result<Option<Usage>, LaunchError> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        match &self.pidfd {
            Some(fd) => {
                let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                let time = libc::timespec {
                    tv_sec: longest.as_secs() as i64,
                    tv_nsec: i64::from(longest.subsec_nanos()),
                };
                // SAFETY: both records are live. An interruption looks like nothing having happened.
                unsafe { libc::ppoll(&mut poll, 1, &time, std::ptr::null()) };
            }
            None => std::thread::sleep(longest.min(Duration::from_millis(5))),
        }
        let mut status = 0;
        // SAFETY: plain C structures that the kernel fills; our own child.
        let (waited, usage) = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            (libc::wait4(self.pid, &raw mut status, libc::WNOHANG, &raw mut usage), usage)
        };
        if waited == 0 {
            return Ok(None);
        }
        if waited < 0 {
            let error = os("wait for the program");
            if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                return Ok(None);
            }
            return Err(error);
        }
        self.ended = Some(Usage::new(status, &usage, self.started.elapsed()));
        Ok(self.ended)
    }

    /// Sends the program a signal.
    pub fn signal(&self, number: i32) {
        if self.ended.is_none() {
            // SAFETY: our own child, not yet waited for, so the id is still its own.
            unsafe { libc::kill(self.pid, number) };
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (s, old) in self.quiet {
            // SAFETY: restores what `signal` returned.
            unsafe { libc::signal(s, old) };
        }
    }
}

fn anonymous_file(bytes: &[u8]) -> Result<OwnedFd, LaunchError> {
    use std::io::Write;
    // SAFETY: a constant name; the result is checked before it is owned.
    let fd = unsafe { libc::memfd_create(c"farsight-library".as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(os("make an anonymous file"));
    }
    // SAFETY: a descriptor that was just made and that nothing else owns.
    let mut file = unsafe { std::fs::File::from_raw_fd(fd) };
    file.write_all(bytes).map_err(|source| LaunchError::System {
        what: "write the runtime",
        source,
        hint: "",
    })?;
    Ok(file.into())
}

/// Refuses what would run without our library.
fn check(program: &Path) -> Result<(), LaunchError> {
    let unreadable = |e| LaunchError::NotExecutable(program.to_owned(), e);
    let mode = std::fs::metadata(program).map_err(unreadable)?.permissions().mode();
    // SAFETY: asks who we are.
    if mode & 0o6000 != 0 && unsafe { libc::geteuid() } != 0 {
        return Err(LaunchError::Privileged(program.to_owned()));
    }
    let mut head = Vec::new();
    const HEADERS_BYTES: u64 = 64 << 10;
    // A program that may be executed and not read is not looked at.
    let Ok(file) = std::fs::File::open(program) else { return Ok(()) };
    file.take(HEADERS_BYTES).read_to_end(&mut head).map_err(unreadable)?;
    // A script: ask its interpreter.
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
        let word = line.split(|b| b.is_ascii_whitespace()).find(|w| !w.is_empty()).unwrap_or_default();
        let interpreter = PathBuf::from(OsString::from_vec(word.to_vec()));
        // An interpreter that is a script itself would be asked the same: once is enough.
        return if interpreter == program { Ok(()) } else { check(&interpreter) };
    }
    if head.get(..5) == Some(b"\x7fELF\x01") {
        return Err(LaunchError::ThirtyTwoBit(program.to_owned()));
    }
    if is_static(&head) == Some(true) {
        return Err(LaunchError::Static(program.to_owned()));
    }
    Ok(())
}

/// Whether an ELF program is loaded without a dynamic linker. `None` for what is no ELF file.
fn is_static(head: &[u8]) -> Option<bool> {
    let header = object::elf::FileHeader64::<object::Endianness>::parse(head).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, head).ok()?;
    Some(!segments.iter().any(|s| s.p_type(endian) == object::elf::PT_INTERP))
}

impl Usage {
    /// From what the kernel says of an ended child.
    fn new(status: i32, usage: &libc::rusage, wall: Duration) -> Usage {
        let ended = if libc::WIFSIGNALED(status) {
            Ended::Signal(libc::WTERMSIG(status))
        } else {
            Ended::Code(libc::WEXITSTATUS(status))
        };
        let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
        Usage {
            ended,
            wall_ns: wall.as_nanos() as u64,
            cpu_ns: ns(usage.ru_utime) + ns(usage.ru_stime),
            rss_bytes_max: usage.ru_maxrss as u64 * 1024,
        }
    }
}
