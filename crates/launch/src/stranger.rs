//! A process that is not our child: who it is, and when it has ended. How it ended nobody tells.

use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) struct Stranger {
    pid: libc::pid_t,
    /// `None` if it had ended before.
    process: Option<OwnedFd>,
}

impl Stranger {
    pub(crate) fn new(pid: libc::pid_t) -> Self {
        // SAFETY: no memory is involved; the result is checked before it is owned.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: a descriptor that was just made and that nothing else owns.
        let process = (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) });
        Stranger { pid, process }
    }

    pub(crate) fn pid(&self) -> libc::pid_t {
        self.pid
    }

    /// The executable; empty when it has ended.
    pub(crate) fn program(&self) -> PathBuf {
        std::fs::read_link(format!("/proc/{}/exe", self.pid)).unwrap_or_default()
    }

    /// Its arguments as the kernel has them, its own name first.
    pub(crate) fn command(&self) -> Vec<OsString> {
        let words = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let words = words.strip_suffix(&[0]).unwrap_or_default();
        words.split(|b| *b == 0).map(|w| OsString::from_vec(w.to_vec())).collect()
    }

    /// What becomes ready to read when it ends; `None` if it has.
    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.process.as_ref().map(AsFd::as_fd)
    }

    /// It has ended.
    pub(crate) fn forget(&mut self) {
        self.process = None;
    }

    /// Waits for its end, at most this long; whether it has come.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let Some(process) = &self.process else { return true };
        let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        // SAFETY: live records; the mask is left as it is.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) > 0 }
    }
}
