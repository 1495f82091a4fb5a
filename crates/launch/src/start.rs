//! Forking and exec'ing the program so that it finds everything as if the shell had started it: dispositions, mask,
//! standard streams, a pending alarm.
//!
//! ```text
//! parent: block all signals ── fork ── read the pipe: nothing = exec'd, else (step, errno)
//! child:                        └─ restore what we inherited ── (trace me) ── restore the mask ── exec
//! ```
//! A traced child keeps its signals blocked across the exec: one that arrived earlier would stop it where nobody waits
//! for that. Its mask is set when the runtime is inside.
//!
//! The program dies with us: a parent-death signal is set, because one half of a killed job that goes on without the
//! other is what nobody wants. (The engine hides it from the program; it is cleared in the program's children.)
//!
//! Between fork and exec only async-signal-safe functions are called.

use crate::error::{LaunchError, os};
use crate::relay::Relay;
use crate::{inherited, program};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What to start.
pub(crate) struct Start<'a> {
    /// The file to execute.
    pub program: &'a Path,
    /// Its arguments, its own name first.
    pub command: &'a [OsString],
    /// Variables to add to the environment or to replace in it.
    pub env: &'a [(OsString, OsString)],
    /// A descriptor that stays open across the exec.
    pub keep: Option<i32>,
    /// Stop at the first instruction, traced by this thread.
    pub traced: bool,
}

/// The steps of the child that can fail, as it names them in the pipe.
const STEP_TRACE: u8 = 1;
const STEP_EXEC: u8 = 2;

impl Start<'_> {
    /// Starts it; signals are in the hands of `relay` from before on.
    pub(crate) fn start(&self, relay: &Relay) -> Result<libc::pid_t, LaunchError> {
        let words = Words::new(self)?;
        let (mut reader, writer) = pipe()?;
        // SAFETY: a plain C structure that the kernel fills; nothing else of ours uses this timer.
        let alarm = unsafe {
            let mut t: libc::itimerval = std::mem::zeroed();
            libc::getitimer(libc::ITIMER_REAL, &raw mut t);
            t
        };
        let parent = std::process::id() as libc::pid_t;
        // SAFETY: the child calls async-signal-safe functions only, then execs or exits.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(os("fork"));
        }
        if pid == 0 {
            self.child(&words, relay, writer.as_raw_fd(), &alarm, parent);
        }
        drop(writer);
        if alarm.it_value.tv_sec != 0 || alarm.it_value.tv_usec != 0 {
            // SAFETY: the child has taken the alarm over; a zero timer is none.
            unsafe { libc::setitimer(libc::ITIMER_REAL, &std::mem::zeroed(), std::ptr::null_mut()) };
        }
        let mut said = Vec::new();
        // An error looks like silence, and then the wait below tells.
        let _unreadable = reader.read_to_end(&mut said);
        if let [step, errno @ ..] = said.as_slice()
            && let Ok(errno) = errno.try_into()
        {
            let error = io::Error::from_raw_os_error(i32::from_le_bytes(errno));
            // SAFETY: our own child, which exits.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
            return Err(if *step == STEP_TRACE {
                LaunchError::System { what: "trace the program", cause: error, hint: TRACE_HINT }
            } else {
                program::explain(self.program, error)
            });
        }
        if self.traced {
            let mut status = 0;
            // SAFETY: writes one int.
            if unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0 {
                return Err(os("wait for the program"));
            }
            if !libc::WIFSTOPPED(status) {
                return Err(LaunchError::Bug(format!("unexpected status {status:#x} at start")));
            }
        }
        Ok(pid)
    }

    fn child(
        &self,
        words: &Words,
        relay: &Relay,
        report: i32,
        alarm: &libc::itimerval,
        parent: libc::pid_t,
    ) -> ! {
        let fail = |step: u8| -> ! {
            let e = io::Error::last_os_error().raw_os_error().unwrap_or(0).to_le_bytes();
            let said = [step, e[0], e[1], e[2], e[3]];
            // SAFETY: writes five bytes to our own pipe, and exits without running anybody's handlers.
            unsafe {
                libc::write(report, said.as_ptr().cast(), said.len());
                libc::_exit(127)
            }
        };
        inherited::restore();
        relay.restore_child_disposition();
        // SAFETY: calls that are async-signal-safe, on values that were made before the fork.
        unsafe {
            if let Some(fd) = self.keep {
                libc::fcntl(fd, libc::F_SETFD, 0);
            }
            libc::setitimer(libc::ITIMER_REAL, alarm, std::ptr::null_mut());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != parent {
                libc::_exit(127); // we were killed before the line above
            }
            if self.traced {
                if libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) < 0 {
                    fail(STEP_TRACE);
                }
                relay.unblock_trap();
            } else {
                relay.restore_mask();
            }
            libc::execve(words.path.as_ptr(), words.argv.as_ptr(), words.envp.as_ptr());
            if *libc::__errno_location() == libc::ENOEXEC {
                // A script without a first line that says whose: the shell's, as execvp has it.
                libc::execve(c"/bin/sh".as_ptr(), words.shell_argv.as_ptr(), words.envp.as_ptr());
            }
            fail(STEP_EXEC)
        }
    }
}

const TRACE_HINT: &str = "; the engine enters programs through ptrace: see kernel.yama.ptrace_scope (0 or 1 will do), \
                          and in a container allow ptrace (docker run --cap-add=SYS_PTRACE)";

/// Everything that exec reads, made before the fork.
struct Words {
    path: CString,
    argv: Vec<*const libc::c_char>,
    shell_argv: Vec<*const libc::c_char>,
    envp: Vec<*const libc::c_char>,
    /// What the pointers point to.
    _owned: Vec<CString>,
}

impl Words {
    fn new(start: &Start<'_>) -> Result<Words, LaunchError> {
        let path = c_string(start.program.as_os_str())?;
        let mut owned = Vec::new();
        let mut argv = Vec::new();
        for word in start.command {
            owned.push(c_string(word)?);
            argv.push(owned[owned.len() - 1].as_ptr());
        }
        let mut shell_argv = vec![c"/bin/sh".as_ptr(), path.as_ptr()];
        shell_argv.extend(argv.iter().skip(1));
        let mut envp = Vec::new();
        let mut variable = |key: &OsStr, value: &OsStr| -> Result<(), LaunchError> {
            let mut text = key.to_owned();
            text.push("=");
            text.push(value);
            owned.push(c_string(&text)?);
            envp.push(owned[owned.len() - 1].as_ptr());
            Ok(())
        };
        // In the order in which we have them: a program may print them.
        for (key, value) in std::env::vars_os() {
            let replaced = start.env.iter().find(|v| v.0 == key).map(|v| &v.1);
            variable(&key, replaced.unwrap_or(&value))?;
        }
        for (key, value) in start.env.iter().filter(|v| std::env::var_os(&v.0).is_none()) {
            variable(key, value)?;
        }
        for list in [&mut argv, &mut shell_argv, &mut envp] {
            list.push(std::ptr::null());
        }
        Ok(Words { path, argv, shell_argv, envp, _owned: owned })
    }
}

fn c_string(s: &OsStr) -> Result<CString, LaunchError> {
    CString::new(s.as_bytes()).map_err(|_| LaunchError::Bug("an argument contains a nul byte".into()))
}

fn pipe() -> Result<(File, OwnedFd), LaunchError> {
    let mut ends = [0; 2];
    // SAFETY: writes two ints; both descriptors are owned from here on.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) < 0 {
            return Err(os("make a pipe"));
        }
        Ok((File::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])))
    }
}
