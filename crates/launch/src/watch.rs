//! When processes that are not our children end: one wait for all of them.

use crate::error::{LaunchError, os};
use crate::seats::Guest;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Ends told by one wait.
const EVENTS_MAX: usize = 64;

/// Guests whose end is waited for. May be added to while another thread waits.
pub struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// Of nobody.
    pub fn new() -> Result<Watch, LaunchError> {
        // SAFETY: no memory is involved; the result is checked before it is owned.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(os("watch processes"));
        }
        // SAFETY: a descriptor that was just made and that nothing else owns.
        Ok(Watch { epoll: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Tells `number` once when the guest ends; `false` if it has ended already.
    pub fn add(&self, guest: &Guest, number: u64) -> bool {
        let Some(end) = guest.end() else { return false };
        let mut event =
            libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLONESHOT) as u32, u64: number };
        // SAFETY: descriptors of ours and a live record.
        unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, end.as_raw_fd(), &raw mut event) == 0
        }
    }

    /// The numbers of those that have ended; waits for one, at most this long.
    pub fn wait(&self, longest: Duration) -> Vec<u64> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS_MAX];
        let ms = i32::try_from(longest.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: a live array of that length.
        let n =
            unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS_MAX as i32, ms) };
        events.iter().take(usize::try_from(n).unwrap_or(0)).map(|event| event.u64).collect()
    }
}
