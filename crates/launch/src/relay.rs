//! Waiting for the program while standing in for it: what is sent to us is meant for it.
//!
//! All signals are blocked from before the fork and taken one at a time with `sigtimedwait`, so there are no handlers
//! and no races. Who sent a signal decides:
//!
//! | sent by | done |
//! |---|---|
//! | the kernel to the terminal's foreground group (Ctrl-C, Ctrl-Z, hang-up) | nothing: the program got its own |
//! | a process, to us | sent on to the program, with its value if it has one |
//! | the program itself, to its whole group | nothing: it got its own |
//!
//! When the program stops and we were told to stop as well, we stop, so that the shell sees a stopped job; when we
//! are continued, so is the program. A process that signals the whole group reaches the program twice: once itself,
//! once through us; nothing tells the two cases apart.
//!
//! SIGKILL cannot be relayed: the program dies with us (`start.rs`).

use crate::ended::Usage;
use crate::error::{LaunchError, os};
use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

/// Signals in our hands, from before the fork to after the end.
pub(crate) struct Relay {
    old_mask: libc::sigset_t,
    old_child: libc::sigaction,
    /// Stop signals that we got and have not obeyed.
    stop_wanted: Cell<bool>,
    /// The signal that stopped the program, while it is stopped.
    stopped_by: Cell<Option<i32>>,
    /// Signals that were sent on, a bit each.
    relayed: Cell<u64>,
}

impl Relay {
    /// Takes the signals.
    pub(crate) fn begin() -> Relay {
        // SAFETY: plain C structures that the calls fill or read; SIGCHLD must not be ignored, or there would be
        // nothing to wait for.
        unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            let mut old_mask: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut old_mask);
            let mut default: libc::sigaction = std::mem::zeroed();
            let mut old_child: libc::sigaction = std::mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(libc::SIGCHLD, &raw const default, &raw mut old_child);
            Relay {
                old_mask,
                old_child,
                stop_wanted: Cell::new(false),
                stopped_by: Cell::new(None),
                relayed: Cell::new(0),
            }
        }
    }

    /// In the child: SIGCHLD as we inherited it.
    pub(crate) fn restore_child_disposition(&self) {
        // SAFETY: puts back what `begin` read; async-signal-safe.
        unsafe { libc::sigaction(libc::SIGCHLD, &raw const self.old_child, std::ptr::null_mut()) };
    }

    /// In the child: the mask as we inherited it.
    pub(crate) fn restore_mask(&self) {
        // SAFETY: puts back what `begin` read; async-signal-safe.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.old_mask, std::ptr::null_mut()) };
    }

    /// In a traced child: the trap that says that exec has happened must get through.
    pub(crate) fn unblock_trap(&self) {
        // SAFETY: a set on the stack; async-signal-safe.
        unsafe {
            let mut trap: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut trap, libc::SIGTRAP);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const trap, std::ptr::null_mut());
        }
    }

    /// The inherited mask as the kernel has it, one bit per signal.
    pub(crate) fn mask_bits(&self) -> u64 {
        (1..65)
            // SAFETY: reads a set that `begin` filled.
            .filter(|s| unsafe { libc::sigismember(&raw const self.old_mask, *s) } == 1)
            .fold(0, |bits, s| bits | 1 << (s - 1))
    }

    /// Waits until the program has ended, at most until `deadline`; `started` is when it was let go.
    pub(crate) fn wait(
        &self,
        pid: libc::pid_t,
        started: Instant,
        deadline: Option<Instant>,
    ) -> Result<Option<Usage>, LaunchError> {
        self.wait_serving(pid, started, deadline, &mut || {})
    }

    /// The same, with something to do whenever a SIGCHLD comes, of which anybody may send us one.
    pub(crate) fn wait_serving(
        &self,
        pid: libc::pid_t,
        started: Instant,
        deadline: Option<Instant>,
        serve: &mut dyn FnMut(),
    ) -> Result<Option<Usage>, LaunchError> {
        // It may have ended before this call.
        if let Some(usage) = self.look(pid, started)? {
            return Ok(Some(usage));
        }
        loop {
            let longest = deadline.map(|d| d.saturating_duration_since(Instant::now()));
            let Some(info) = next_signal(longest) else {
                if longest.is_some_and(|l| l.is_zero()) {
                    return Ok(None);
                }
                continue;
            };
            match info.si_signo {
                libc::SIGCHLD => {
                    serve();
                    if let Some(usage) = self.look(pid, started)? {
                        self.swallow_pending();
                        return Ok(Some(usage));
                    }
                }
                libc::SIGCONT => {
                    if is_stopped(pid) {
                        send(pid, &info);
                    }
                    self.stopped_by.set(None);
                    self.stop_wanted.set(false);
                }
                libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
                    if is_for_program(&info, pid) {
                        send(pid, &info);
                    }
                    self.stop_wanted.set(true);
                }
                s => {
                    if is_for_program(&info, pid) {
                        send(pid, &info);
                        self.relayed.set(self.relayed.get() | 1 << (s - 1));
                    }
                }
            }
            self.stop_with_program();
        }
    }

    /// What has become of the program, without waiting.
    fn look(&self, pid: libc::pid_t, started: Instant) -> Result<Option<Usage>, LaunchError> {
        loop {
            let mut status = 0;
            // SAFETY: plain C structures that the kernel fills; our own child.
            let (waited, usage) = unsafe {
                let mut usage: libc::rusage = std::mem::zeroed();
                let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
                (libc::wait4(pid, &raw mut status, options, &raw mut usage), usage)
            };
            match waited {
                0 => return Ok(None),
                n if n < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
                n if n < 0 => return Err(os("wait for the program")),
                _ if libc::WIFSTOPPED(status) => self.stopped_by.set(Some(libc::WSTOPSIG(status))),
                _ if libc::WIFCONTINUED(status) => self.stopped_by.set(None),
                _ => return Ok(Some(Usage::new(status, &usage, started.elapsed()))),
            }
        }
    }

    /// Stops us when the program is stopped and so should we be.
    fn stop_with_program(&self) {
        let Some(signal) = self.stopped_by.get().filter(|_| self.stop_wanted.get()) else { return };
        self.stop_wanted.set(false);
        // SAFETY: sends ourselves a signal and lets that one through: we stop here, and go on here.
        unsafe {
            let mut one: libc::sigset_t = std::mem::zeroed();
            libc::sigaddset(&raw mut one, signal);
            libc::kill(libc::getpid(), signal);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const one, std::ptr::null_mut());
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const one, std::ptr::null_mut());
        }
    }

    /// Takes what came with the program's end (the Ctrl-C that ended it reached us too), so that it does not end us
    /// before the result is written.
    fn swallow_pending(&self) {
        while next_signal(Some(Duration::ZERO)).is_some() {}
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // SAFETY: puts back what `begin` read. What was relayed stays blocked: whoever ends a job (`timeout`) may
        // signal twice, and the second one must not cost the result. Ctrl-C ends a report that takes too long.
        unsafe {
            libc::sigaction(libc::SIGCHLD, &raw const self.old_child, std::ptr::null_mut());
            let mut mask = self.old_mask;
            for s in (1..65).filter(|s| self.relayed.get() & 1 << (s - 1) != 0 && *s != libc::SIGINT) {
                libc::sigaddset(&raw mut mask, s);
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, std::ptr::null_mut());
        }
    }
}

/// The next signal; `None` when the time is up or something else interrupted.
fn next_signal(longest: Option<Duration>) -> Option<libc::siginfo_t> {
    // SAFETY: plain C structures that the call reads or fills.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let signal = match longest {
            None => libc::sigwaitinfo(&raw const all, &raw mut info),
            Some(t) => {
                let time = libc::timespec { tv_sec: t.as_secs() as i64, tv_nsec: t.subsec_nanos().into() };
                libc::sigtimedwait(&raw const all, &raw mut info, &raw const time)
            }
        };
        (signal > 0).then_some(info)
    }
}

/// Whether a process sent this to us alone.
fn is_for_program(info: &libc::siginfo_t, program: libc::pid_t) -> bool {
    // SAFETY: a signal that a process sent (code 0 or negative) carries its sender.
    info.si_code <= 0 && unsafe { info.si_pid() } != program
}

fn send(pid: libc::pid_t, info: &libc::siginfo_t) {
    // SAFETY: our own child, not yet waited for, so the id is still its own; a queued signal carries a value.
    unsafe {
        if info.si_code == libc::SI_QUEUE {
            libc::sigqueue(pid, info.si_signo, info.si_value());
        } else {
            libc::kill(pid, info.si_signo);
        }
    }
}

fn is_stopped(pid: libc::pid_t) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
}
