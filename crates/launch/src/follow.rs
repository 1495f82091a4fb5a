//! Following children: the launcher's side of `wire::follow`.
//!
//! Programs that run under the engine ask before they exec and after they fork. A fork gets shared memory of its own.
//! For an exec the asking thread is attached to, let go until the kernel has built the new program, injected as the
//! first one was, and let go for good: a tracer is there for a few milliseconds only, and no signal is lost (those that
//! arrive meanwhile are passed on, or wait until the engine is inside).
//!
//! All of this happens in the thread that waits for the first program: a second tracing thread would see, and take,
//! the stops that the waiting one is told about. A small thread rings the waiting one when somebody asks.
//!
//! Each program image is one result: a process that execs ends one and begins another. What cannot be followed
//! (privileged or 32-bit programs, other process id spaces) runs natively, and is named.

use crate::answers::{Asked, Clerk, Desk};
use crate::ended::Ended;
use crate::error::{LaunchError, os};
use crate::inject::{Injection, Memory};
use crate::program::refuse_privileged;
use crate::results::Results;
use crate::run::Spec;
use crate::stranger::Stranger;
use crate::tracee::Tracee;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::*};
use std::thread::Scope;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wire::follow::{Control, IMAGES_MAX, Slot, kind, state};
use wire::slab;

/// A program image that was followed: what became of it.
pub struct Followed {
    /// Its process.
    pub pid: u32,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub command: Vec<OsString>,
    /// How it ended, if it knew before.
    pub ended: Option<Ended>,
    /// When it began, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// From its first instruction until it was seen to have ended.
    pub wall_ns: u64,
    /// CPU time of its process when it ended, where it knew.
    pub cpu_ns: u64,
    /// Whether it still ran when the first program ended: what it did afterwards is not known.
    pub running: bool,
    /// What the runtime wrote.
    pub results: Results,
}

/// The memory that all processes of a run share.
pub(crate) struct Requests {
    shared: Results,
    /// Where it lies in the processes; the same everywhere.
    pub(crate) base: u64,
}

impl Requests {
    pub(crate) fn new() -> Result<Requests, LaunchError> {
        let shared = Results::new(wire::follow::BYTES)?;
        let mut nonce = [0; 8];
        let random = File::open("/dev/urandom").and_then(|mut f| f.read_exact(&mut nonce));
        random.map_err(|cause| LaunchError::System { what: "read random numbers", cause, hint: "" })?;
        shared.view::<Control>().nonce.store(u64::from_le_bytes(nonce), Relaxed);
        Ok(Requests { shared, base: crate::inject::FOLLOW_BASE })
    }

    pub(crate) fn control(&self) -> &Control {
        self.shared.view()
    }

    /// How a process opens it.
    pub(crate) fn memory(&self) -> Memory {
        Memory::Open(self.shared.fd())
    }
}

/// Waits for requests and rings thread `tid` of ours, until it is over.
pub(crate) fn ring(control: &Control, tid: libc::pid_t, over: &AtomicBool) {
    let mut last = 0;
    while !over.load(Acquire) {
        let now = control.bell.load(Acquire);
        if now == last {
            futex_wait(&control.bell, last);
            continue;
        }
        last = now;
        // SAFETY: a signal that the waiting thread has blocked and waits for.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, libc::SIGCHLD) };
    }
}

/// An image under way.
struct Image<'scope> {
    number: u32,
    pid: libc::pid_t,
    process: Stranger,
    program: PathBuf,
    command: Vec<OsString>,
    started: Instant,
    started_unix_ns: u64,
    /// Answers its questions. (Ends before `results` goes.)
    clerk: Option<Clerk<'scope>>,
    results: Results,
}

/// Follows the processes of one run.
pub(crate) struct Follower<'scope, 'env> {
    pub(crate) spec: &'env Spec<'env>,
    pub(crate) requests: &'env Requests,
    pub(crate) scope: &'scope Scope<'scope, 'env>,
    pub(crate) asked: Option<&'env Asked<'env>>,
    pub(crate) each: &'env mut (dyn FnMut(Followed) + 'env),
    /// The first program, whose end somebody else waits for.
    pub(crate) first: libc::pid_t,
    images: Vec<Image<'scope>>,
    numbers: u32,
    /// What could not be followed, and why.
    pub(crate) problems: Vec<String>,
}

impl<'scope, 'env> Follower<'scope, 'env> {
    pub(crate) fn new(
        spec: &'env Spec<'env>,
        requests: &'env Requests,
        scope: &'scope Scope<'scope, 'env>,
        asked: Option<&'env Asked<'env>>,
        each: &'env mut (dyn FnMut(Followed) + 'env),
        first: libc::pid_t,
    ) -> Self {
        // Number 0 is the first program's.
        let (images, problems) = (Vec::new(), Vec::new());
        Follower { spec, requests, scope, asked, each, first, images, numbers: 1, problems }
    }

    /// Answers what has been asked.
    pub(crate) fn serve(&mut self) {
        let requests = self.requests;
        for slot in &requests.control().slots {
            if slot.state.load(Acquire) != state::ASKED {
                continue;
            }
            let granted = match slot.kind.load(Relaxed) {
                kind::FORK => self.fork(slot),
                _ => self.exec(slot),
            };
            match granted {
                Ok(true) => {}
                Ok(false) => answer(slot, state::REFUSED),
                Err(e) => {
                    self.problem(format!("a child was not followed: {e}"));
                    answer(slot, state::REFUSED);
                }
            }
        }
        self.finish_ended(false);
    }

    /// The first program has ended: whatever is known of the others is all that will be.
    pub(crate) fn finish(&mut self) {
        self.requests.control().closed.store(1, Release);
        self.finish_ended(true);
    }

    fn problem(&mut self, text: String) {
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// Is this a process of ours? (Its ids may be those of another process id space.)
    fn is_ours(&self, pid: libc::pid_t) -> bool {
        let mut nonce = [0; 8];
        let read = File::open(format!("/proc/{pid}/mem"))
            .and_then(|mem| mem.read_exact_at(&mut nonce, self.requests.base));
        read.is_ok() && u64::from_le_bytes(nonce) == self.requests.control().nonce.load(Relaxed)
    }

    fn fork(&mut self, slot: &Slot) -> Result<bool, LaunchError> {
        let pid = slot.pid.load(Relaxed) as libc::pid_t;
        if !self.is_ours(pid) {
            return Ok(false);
        }
        let image = self.begin(pid)?;
        slot.answer.store(image.results.fd() as u32, Relaxed);
        slot.answer_image.store(image.number, Relaxed);
        self.images.push(image);
        answer(slot, state::GRANTED);
        Ok(true)
    }

    /// A new image in process `pid`, with memory that the caller has not told it about yet.
    fn begin(&mut self, pid: libc::pid_t) -> Result<Image<'scope>, LaunchError> {
        let results = Results::new(self.spec.shared_bytes())?;
        (self.spec.prepare)(&results);
        let number = self.numbers.min(IMAGES_MAX as u32 - 1);
        self.numbers += 1;
        let clerk = self.asked.map(|asked| Desk::new(&results).open(self.scope, pid, asked));
        let process = Stranger::new(pid);
        Ok(Image {
            number,
            pid,
            program: process.program(),
            command: process.command(),
            process,
            started: Instant::now(),
            started_unix_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_nanos() as u64),
            clerk,
            results,
        })
    }

    /// Attaches, waits for the new program, injects, lets go.
    fn exec(&mut self, slot: &Slot) -> Result<bool, LaunchError> {
        let pid = slot.pid.load(Relaxed) as libc::pid_t;
        let tid = slot.tid.load(Relaxed) as libc::pid_t;
        if !self.is_ours(pid) {
            return Ok(false);
        }
        if let Some(path) = exec_path(pid, slot)
            && let Err(e) = refuse_privileged(&path)
        {
            self.problem(format!("a child ran natively: {e}"));
            return Ok(false);
        }
        const OPTIONS: i32 = libc::PTRACE_O_TRACEEXEC | libc::PTRACE_O_TRACESYSGOOD;
        // SAFETY: no memory of ours is involved.
        if unsafe { libc::ptrace(libc::PTRACE_SEIZE, tid, 0, OPTIONS) } < 0 {
            return Err(os("attach to a child"));
        }
        let flags = slot.flags.load(Relaxed);
        answer(slot, state::GRANTED);
        match self.await_exec(slot, pid, tid) {
            Attached::Execed => {
                // Its old self is over, and with it the slot's owner.
                slot.state.store(state::FREE, Release);
                self.finish_image(|image| image.pid == pid, false);
                if let Err(e) = self.enter(pid, flags) {
                    self.problem(format!("a child ran natively: {e}"));
                }
            }
            Attached::Failed => {
                detach_running(tid);
                answer(slot, state::FREE);
            }
            Attached::Gone => slot.state.store(state::FREE, Release),
        }
        Ok(true)
    }

    /// Until the attached thread has exec'd, says that it could not, or has ended.
    fn await_exec(&self, slot: &Slot, pid: libc::pid_t, tid: libc::pid_t) -> Attached {
        loop {
            for id in if pid == tid { [pid, 0] } else { [tid, pid] }.into_iter().filter(|id| *id != 0) {
                match look(id, id == self.first) {
                    Seen::Nothing => {}
                    Seen::Ended if id == pid => return Attached::Gone,
                    Seen::Ended => {}
                    Seen::Stopped(status) if status >> 8 == EXEC_STOP => return Attached::Execed,
                    Seen::Stopped(status) => pass(id, status),
                }
            }
            if slot.state.load(Acquire) == state::FAILED {
                return Attached::Failed;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Puts the engine into the process, which has just exec'd.
    fn enter(&mut self, pid: libc::pid_t, flags: u32) -> Result<(), LaunchError> {
        let t = Tracee::new(pid)?;
        let done = self.inject(&t, flags);
        let detached = t.detach();
        self.images.push(done?);
        detached
    }

    fn inject(&mut self, t: &Tracee, flags: u32) -> Result<Image<'scope>, LaunchError> {
        // Out of the execve, so that registers are what they will be.
        t.finish_syscall()?;
        crate::run::refuse_32_bit(t, &fs::read_link(format!("/proc/{}/exe", t.pid())).unwrap_or_default())?;
        let mask = t.mask()?;
        t.set_mask(!0)?;
        let image = self.begin(t.pid())?;
        let injected = Injection {
            blob: self.spec.blob,
            flags: self.spec.flags | wire::boot::flags::FOLLOW | flags,
            fixed_bytes: self.spec.fixed_bytes,
            slab_count: slab::COUNT_DEFAULT,
            memory: Memory::Open(image.results.fd()),
            follow: Some((self.requests.memory(), image.number)),
        }
        .inject(t);
        t.set_mask(mask)?;
        injected.map(|()| image)
    }

    fn finish_ended(&mut self, all: bool) {
        self.finish_image(|image| all || image.has_ended(), all);
    }

    /// Hands over the images that `which` names.
    fn finish_image(&mut self, which: impl Fn(&Image<'_>) -> bool, last: bool) {
        let (over, rest) = std::mem::take(&mut self.images).into_iter().partition(|i| which(i));
        self.images = rest;
        for image in over as Vec<Image<'_>> {
            let running = last && !image.has_ended();
            drop(image.clerk);
            let end = &self.requests.control().ends[image.number as usize];
            let status = end.status.load(Acquire);
            (self.each)(Followed {
                pid: image.pid as u32,
                program: image.program,
                command: image.command,
                ended: (status & 0x100 != 0).then_some(Ended::Code((status & 0xff) as i32)),
                started_unix_ns: image.started_unix_ns,
                wall_ns: image.started.elapsed().as_nanos() as u64,
                cpu_ns: end.cpu_ns.load(Relaxed),
                running,
                results: image.results,
            });
        }
    }
}

impl Image<'_> {
    fn has_ended(&self) -> bool {
        self.process.wait(Duration::ZERO)
    }
}

/// What came of a thread that was attached to.
enum Attached {
    Execed,
    Failed,
    Gone,
}

enum Seen {
    Nothing,
    Stopped(i32),
    Ended,
}

const EXEC_STOP: i32 = libc::SIGTRAP | libc::PTRACE_EVENT_EXEC << 8;

/// What has happened to a traced thread. The end of the first program is left for whoever waits for it.
fn look(id: libc::pid_t, first: bool) -> Seen {
    // SAFETY: a plain C structure that the call fills.
    let ended = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let peek = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
        // (Stops of traced threads are reported whatever one asks for.)
        libc::waitid(libc::P_PID, id as libc::id_t, &raw mut info, peek) == 0
            && info.si_pid() == id
            && [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&info.si_code)
    };
    if ended && first {
        return Seen::Ended;
    }
    let mut status = 0;
    // SAFETY: writes one int.
    match unsafe { libc::waitpid(id, &raw mut status, libc::WNOHANG | libc::__WALL) } {
        0 => Seen::Nothing,
        n if n < 0 => Seen::Nothing,
        _ if libc::WIFSTOPPED(status) => Seen::Stopped(status),
        _ => Seen::Ended,
    }
}

/// Lets a thread go on from a stop that is not ours: with its signal, or stopped as it would be without us.
fn pass(id: libc::pid_t, status: i32) {
    const EVENT_STOP: i32 = 128;
    let signal = libc::WSTOPSIG(status);
    let stops = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&signal);
    let (how, with) = match status >> 16 {
        EVENT_STOP if stops => (libc::PTRACE_LISTEN, 0),
        0 => (libc::PTRACE_CONT, signal),
        _ => (libc::PTRACE_CONT, 0),
    };
    // SAFETY: no memory of ours is involved; a thread that is gone is seen by the next look.
    unsafe { libc::ptrace(how, id, 0, with) };
}

/// Detaches from a thread that runs.
fn detach_running(tid: libc::pid_t) {
    // SAFETY: no memory of ours is involved but one int.
    unsafe {
        libc::ptrace(libc::PTRACE_INTERRUPT, tid, 0, 0);
        let mut status = 0;
        if libc::waitpid(tid, &raw mut status, libc::__WALL) == tid && libc::WIFSTOPPED(status) {
            let signal = if status >> 16 == 0 { libc::WSTOPSIG(status) } else { 0 };
            libc::ptrace(libc::PTRACE_DETACH, tid, 0, signal);
        }
    }
}

fn answer(slot: &Slot, with: u32) {
    slot.state.store(with, Release);
    // SAFETY: the word is live.
    unsafe { libc::syscall(libc::SYS_futex, slot.state.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// The file that is about to be executed, as we can reach it.
fn exec_path(pid: libc::pid_t, slot: &Slot) -> Option<PathBuf> {
    let mut bytes = [0; 4096];
    let at = slot.path.load(Relaxed);
    let mem = File::open(format!("/proc/{pid}/mem")).ok()?;
    // As far as it goes: a path may end just before an unmapped page.
    let page_rest = 4096 - (at & 0xfff) as usize;
    let read = mem.read_at(&mut bytes[..page_rest], at).ok()?;
    let mut length = read;
    if !bytes[..read].contains(&0) {
        length += mem.read_at(&mut bytes[read..], at + read as u64).unwrap_or(0);
    }
    let path = bytes[..length].split(|b| *b == 0).next()?;
    let folder = slot.folder.load(Relaxed) as i32;
    let from = match (path, folder) {
        ([b'/', ..], _) => format!("/proc/{pid}/root"),
        (_, libc::AT_FDCWD) => format!("/proc/{pid}/cwd"),
        _ => format!("/proc/{pid}/fd/{folder}"),
    };
    let relative = path.strip_prefix(b"/").unwrap_or(path);
    Some(if relative.is_empty() {
        from.into()
    } else {
        PathBuf::from(from).join(OsStr::from_bytes(relative))
    })
}

fn futex_wait(word: &AtomicU32, value: u32) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // SAFETY: the word and the time are live; an early return is looked at by the caller.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
}
