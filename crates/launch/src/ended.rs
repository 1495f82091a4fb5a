//! How a program ended, and what it used.

use std::time::Duration;

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status.
    Code(i32),
    /// Killed by this signal.
    Signal(i32),
    /// Nobody told us: it was not our child.
    Unknown,
}

impl Ended {
    /// As a shell reports it.
    pub fn shell_code(self) -> i32 {
        match self {
            Ended::Code(c) => c,
            Ended::Signal(s) => 128 + s,
            Ended::Unknown => 0,
        }
    }
}

/// What an ended program used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// How it ended.
    pub ended: Ended,
    /// Wall-clock time from the first instruction on.
    pub wall_ns: u64,
    /// User and system time.
    pub cpu_ns: u64,
    /// Largest resident size.
    pub rss_bytes_max: u64,
}

impl Usage {
    /// From what the kernel says of an ended child.
    pub(crate) fn new(status: i32, usage: &libc::rusage, wall: Duration) -> Usage {
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
