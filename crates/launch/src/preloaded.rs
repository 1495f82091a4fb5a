//! Running a program with a library preloaded into it, and talking to that library through shared memory while the
//! program runs.
//!
//! Neither the library nor the shared memory is a file on disk: both are anonymous files of the launcher, and the
//! program opens them as `/proc/PID/fd/N`. Nothing needs to be cleaned up, whoever dies first; folders that forbid
//! execution do not matter; and the program inherits no descriptor.
//!
//! Programs that would ignore `LD_PRELOAD` (static, set-user-id, 32-bit) are refused with the reason.

use crate::ended::{Ended, Usage};
use crate::error::{LaunchError, os};
use crate::program::{find, refuse_privileged};
use crate::relay::Relay;
use crate::results::Results;
use crate::seats::{Guest, Seats};
use crate::start::Start;
use crate::stranger::Stranger;
use object::read::elf::{FileHeader, ProgramHeader};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What to run, and how.
pub struct Preload<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// The library, a blob of `runtimes`.
    pub library: &'a [u8],
    /// Environment variable through which the library finds the shared memory.
    pub variable: &'a CStr,
    /// Another library, to be loaded behind ours. The runtime takes both out of the program's environment.
    pub beside: Option<&'a Path>,
    /// Length of the shared memory.
    pub shared_bytes: u64,
    /// Whether there are seats for the program's children, too.
    pub follow: bool,
}

/// A program that has been started and not yet waited for.
pub struct Running {
    pid: libc::pid_t,
    program: PathBuf,
    bond: Bond,
    shared: Results,
    started: Instant,
    started_unix_ns: u64,
    /// CPU time of a guest when it was last looked at.
    cpu_seen_ns: Cell<u64>,
    ended: Option<Usage>,
}

/// What a running program is to us.
enum Bond {
    /// Our child.
    Child {
        relay: Box<Relay>,
        /// Kept open until the program has ended: a followed child opens it again.
        _library: OwnedFd,
    },
    /// A child of our child's.
    Guest(Stranger),
}

/// The clock that deadlines in shared memory are on.
pub fn monotonic_ns() -> u64 {
    clock_ns(libc::CLOCK_MONOTONIC).unwrap_or(0)
}

fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live record.
    let code = unsafe { libc::clock_gettime(clock, &mut ts) };
    (code == 0).then_some(ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64)
}

impl Preload<'_> {
    /// Makes the shared memory, lets `prepare` fill it, and starts the program. Where children are followed, theirs is
    /// to be filled likewise.
    pub fn start(&self, prepare: &dyn Fn(&Results)) -> Result<(Running, Option<Seats>), LaunchError> {
        let program = find(&self.command[0])?;
        check(&program)?;
        let library = anonymous_file(self.library)?;
        let path_of = |fd: i32| format!("/proc/{}/fd/{fd}", process::id());
        let shared = Results::new(self.shared_bytes)?;
        prepare(&shared);
        let seats = if self.follow { Some(Seats::new(&shared, self.shared_bytes, prepare)?) } else { None };
        let memory = seats.as_ref().map_or_else(|| path_of(shared.fd()), Seats::variable);
        let own = path_of(library.as_raw_fd());
        let mut preload = OsString::from(&own);
        if let Some(beside) = self.beside {
            // Between two entries of ours: see `preload::env`.
            preload.push(":");
            preload.push(beside);
            preload.push(":");
            preload.push(&own);
        }
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        let env = [
            (OsString::from("LD_PRELOAD"), preload),
            (OsStr::from_bytes(self.variable.to_bytes()).to_owned(), OsString::from(memory)),
        ];
        let relay = Relay::begin();
        let start = Start { program: &program, command: self.command, env: &env, keep: None, traced: false };
        let pid = start.start(&relay)?;
        let bond = Bond::Child { relay: Box::new(relay), _library: library };
        Ok((Running::new(pid, program, bond, shared), seats))
    }
}

impl Running {
    fn new(pid: libc::pid_t, program: PathBuf, bond: Bond, shared: Results) -> Running {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64);
        let (started, cpu_seen_ns) = (Instant::now(), Cell::new(0));
        Running { pid, program, bond, shared, started, started_unix_ns: unix, cpu_seen_ns, ended: None }
    }

    /// A child of the program's that has taken a seat.
    pub fn guest(guest: Guest) -> Running {
        let (process, shared) = guest.split();
        Running::new(process.pid(), process.program(), Bond::Guest(process), shared)
    }

    /// The arguments of a guest, its own name first; none of our child's, which we gave it.
    pub fn command(&self) -> Vec<OsString> {
        match &self.bond {
            Bond::Child { .. } => Vec::new(),
            Bond::Guest(process) => process.command(),
        }
    }

    /// When it began, nanoseconds since the Unix epoch.
    pub fn started_unix_ns(&self) -> u64 {
        self.started_unix_ns
    }

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

    /// `CLOCK_MONOTONIC` at the start, in nanoseconds.
    pub fn started_monotonic_ns(&self) -> u64 {
        let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the record is live.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
        let now = ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64;
        now.saturating_sub(self.started.elapsed().as_nanos() as u64)
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// CPU time that all threads of the program have used so far; 0 once it has ended.
    pub fn cpu_ns(&self) -> u64 {
        // The kernel's name for the CPU clock of a process.
        let now = clock_ns((!self.pid << 3) | 2).unwrap_or(0);
        self.cpu_seen_ns.set(self.cpu_seen_ns.get().max(now));
        now
    }

    /// Waits for the program's end, at most this long. What became of it, once it has ended.
    pub fn wait(&mut self, longest: Duration) -> Result<Option<Usage>, LaunchError> {
        if self.ended.is_none() {
            self.ended = match &self.bond {
                Bond::Child { relay, .. } => {
                    relay.wait(self.pid, self.started, Some(Instant::now() + longest))?
                }
                Bond::Guest(process) => process.wait(longest).then(|| self.seen()),
            };
        }
        Ok(self.ended)
    }

    /// What is known of a guest.
    pub fn seen(&self) -> Usage {
        self.cpu_ns();
        Usage {
            ended: Ended::Unknown,
            wall_ns: self.started.elapsed().as_nanos() as u64,
            cpu_ns: self.cpu_seen_ns.get(),
            rss_bytes_max: 0,
        }
    }

    /// Sends the program a signal, if it is our child.
    pub fn signal(&self, number: i32) {
        if self.ended.is_none() && matches!(self.bond, Bond::Child { .. }) {
            // SAFETY: our own child, not yet waited for, so the id is still its own.
            unsafe { libc::kill(self.pid, number) };
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
    file.write_all(bytes).map_err(|cause| LaunchError::System {
        what: "write the runtime",
        cause,
        hint: "",
    })?;
    Ok(file.into())
}

/// Why our library would not be in a program that is executed by this name.
pub fn refused(name: &OsStr) -> Option<LaunchError> {
    check(&find(name).ok()?).err()
}

/// Refuses what would run without our library.
fn check(program: &Path) -> Result<(), LaunchError> {
    let unreadable = |e| LaunchError::NotExecutable(program.to_owned(), e);
    refuse_privileged(program)?;
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
