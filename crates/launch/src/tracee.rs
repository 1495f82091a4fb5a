//! A stopped process, and system calls made in its name.

use crate::error::{LaunchError, os};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A process stopped under ptrace by this thread.
pub(crate) struct Tracee {
    pid: libc::pid_t,
    mem: File,
}

impl Tracee {
    /// A process that is already stopped and traced by this thread.
    pub(crate) fn new(pid: libc::pid_t) -> Result<Tracee, LaunchError> {
        let mem =
            File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).map_err(|cause| {
                LaunchError::System { what: "open the program's memory", cause, hint: "" }
            })?;
        Ok(Tracee { pid, mem })
    }

    pub(crate) fn regs(&self) -> Result<libc::user_regs_struct, LaunchError> {
        // SAFETY: a plain C structure, filled by the kernel before it is used.
        let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one such structure.
        if unsafe { libc::ptrace(libc::PTRACE_GETREGS, self.pid, 0, &raw mut regs) } < 0 {
            return Err(os("read the program's registers"));
        }
        Ok(regs)
    }

    pub(crate) fn set_regs(&self, regs: &libc::user_regs_struct) -> Result<(), LaunchError> {
        // SAFETY: the kernel reads one such structure.
        if unsafe { libc::ptrace(libc::PTRACE_SETREGS, self.pid, 0, std::ptr::from_ref(regs)) } < 0 {
            return Err(os("set the program's registers"));
        }
        Ok(())
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        self.mem.write_all_at(bytes, at).map_err(|cause| LaunchError::System {
            what: "write the program's memory",
            cause,
            hint: "",
        })
    }

    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), LaunchError> {
        self.mem.read_exact_at(bytes, at).map_err(|cause| LaunchError::System {
            what: "read the program's memory",
            cause,
            hint: "",
        })
    }

    /// Borrows its code at `rip` for system calls, until the result is given back or dropped.
    pub(crate) fn borrow(&self) -> Result<Borrowed<'_>, LaunchError> {
        let regs = self.regs()?;
        let mut code = [0u8; 2];
        self.read(regs.rip, &mut code)?;
        let borrowed = Borrowed { tracee: self, regs, code };
        self.write(regs.rip, &[0x0f, 0x05])?;
        Ok(borrowed)
    }

    /// One instruction.
    fn step(&self) -> Result<(), LaunchError> {
        // SAFETY: no memory of ours is involved.
        if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, self.pid, 0, 0) } < 0 {
            return Err(os("step the program"));
        }
        let mut status = 0;
        // SAFETY: writes one int.
        if unsafe { libc::waitpid(self.pid, &raw mut status, libc::__WALL) } < 0 {
            return Err(os("wait for the program"));
        }
        if !libc::WIFSTOPPED(status) {
            return Err(LaunchError::Bug(format!("the program ended during start-up (status {status:#x})")));
        }
        Ok(())
    }

    /// Its id.
    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// From a stop inside a system call to its end: registers that are set from then on stay.
    pub(crate) fn finish_syscall(&self) -> Result<(), LaunchError> {
        // SAFETY: no memory of ours is involved but one int.
        unsafe {
            let mut status = 0;
            if libc::ptrace(libc::PTRACE_SYSCALL, self.pid, 0, 0) < 0
                || libc::waitpid(self.pid, &raw mut status, libc::__WALL) < 0
            {
                return Err(os("wait for the program"));
            }
            if !libc::WIFSTOPPED(status) {
                return Err(LaunchError::Bug(format!(
                    "a program ended during start-up (status {status:#x})"
                )));
            }
        }
        Ok(())
    }

    /// The mask of blocked signals, one bit per signal.
    pub(crate) fn mask(&self) -> Result<u64, LaunchError> {
        const PTRACE_GETSIGMASK: libc::c_uint = 0x420a;
        let mut mask = 0u64;
        // SAFETY: the kernel writes one word.
        if unsafe { libc::ptrace(PTRACE_GETSIGMASK, self.pid, size_of::<u64>(), &raw mut mask) } < 0 {
            return Err(os("read the program's signal mask"));
        }
        Ok(mask)
    }

    /// Sets the mask of blocked signals, one bit per signal.
    pub(crate) fn set_mask(&self, mask: u64) -> Result<(), LaunchError> {
        const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;
        // SAFETY: the kernel reads one word.
        if unsafe { libc::ptrace(PTRACE_SETSIGMASK, self.pid, size_of::<u64>(), &raw const mask) } < 0 {
            return Err(os("set the program's signal mask"));
        }
        Ok(())
    }

    /// Lets it go.
    pub(crate) fn detach(self) -> Result<(), LaunchError> {
        // SAFETY: no memory of ours is involved.
        if unsafe { libc::ptrace(libc::PTRACE_DETACH, self.pid, 0, 0) } < 0 {
            return Err(os("detach from the program"));
        }
        Ok(())
    }
}

/// A process that makes system calls for us: there is a `syscall` instruction where it goes on.
pub(crate) struct Borrowed<'t> {
    tracee: &'t Tracee,
    regs: libc::user_regs_struct,
    code: [u8; 2],
}

impl Borrowed<'_> {
    /// Its registers, as they will be when it is given back.
    pub(crate) fn regs(&self) -> libc::user_regs_struct {
        self.regs
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), LaunchError> {
        self.tracee.write(at, bytes)
    }

    /// Makes a system call in the process.
    pub(crate) fn syscall(&self, n: i64, a: [u64; 6]) -> Result<i64, LaunchError> {
        let mut regs = self.regs;
        regs.rax = n as u64;
        regs.orig_rax = u64::MAX;
        [regs.rdi, regs.rsi, regs.rdx, regs.r10, regs.r8, regs.r9] = a;
        self.tracee.set_regs(&regs)?;
        self.tracee.step()?;
        Ok(self.tracee.regs()?.rax as i64)
    }

    /// Puts code and registers back.
    pub(crate) fn give_back(self) -> Result<(), LaunchError> {
        let borrowed = std::mem::ManuallyDrop::new(self);
        borrowed.restore()
    }

    fn restore(&self) -> Result<(), LaunchError> {
        self.tracee.write(self.regs.rip, &self.code)?;
        self.tracee.set_regs(&self.regs)
    }
}

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        // Only after another error, and that one is told.
        let _second_error = self.restore();
    }
}
