//! Finding the memory that the launcher shares with this process.
//!
//! The launcher names it in an environment variable: a file for this process alone, after which the variable goes, or
//! a lobby with seats for all processes of a run that is followed ([`wire::seats`]), and then the variable stays for
//! those that this one will execute. A forked child takes a seat of its own.
//!
//! Where there is no seat (the launcher is gone, or too many came at once) the process goes on unprofiled; it never
//! waits for one longer than a fraction of a second.

use crate::sys;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};
use wire::seats::{BYTES, LOBBY_MARK, Lobby, Seat};

/// Longest path of the lobby: `/proc/PID/fd/N`.
const PATH_MAX: usize = 64;
/// How often a process looks for a seat, and how long it sleeps between two looks.
const LOOKS: u32 = 200;
const LOOK_NS: i64 = 1_000_000;

static LOBBY: AtomicPtr<Lobby> = AtomicPtr::new(ptr::null_mut());
/// The launcher, as `/proc` names it.
static LAUNCHER: AtomicU32 = AtomicU32::new(0);

/// Whether the processes that this one makes are to be profiled too. Before `main`.
pub fn is_followed(variable: &CStr) -> bool {
    value(variable).is_some_and(|v| v.first() == Some(&LOBBY_MARK))
}

/// A descriptor of the memory that the variable leads to. Before `main`, in the only thread.
pub fn open(variable: &CStr) -> Option<i32> {
    let path = value(variable)?;
    if let [LOBBY_MARK, path @ ..] = path {
        enter(path)?;
        return take();
    }
    let opened = open_path(path.as_ptr());
    // SAFETY: before `main` nobody else uses the environment; `path` is not used any more.
    unsafe { libc::unsetenv(variable.as_ptr()) };
    opened
}

/// The same in a forked child; `None` if children are not followed.
pub fn open_forked() -> Option<i32> {
    take()
}

/// Makes the launcher look now.
pub fn call() {
    // SAFETY: as in `take`.
    if let Some(lobby) = unsafe { LOBBY.load(Acquire).as_ref() } {
        lobby.calls.fetch_add(1, AcqRel);
        sys::futex_wake(&lobby.calls);
    }
}

/// The variable's value, which its terminating zero follows.
fn value(variable: &CStr) -> Option<&'static [u8]> {
    // SAFETY: before `main`, in the only thread, nobody changes the environment.
    let text = unsafe { libc::getenv(variable.as_ptr()) };
    // SAFETY: libc's strings are terminated, and the initial environment lives as long as the process.
    (!text.is_null()).then(|| unsafe { sys::c_bytes(text) })
}

fn open_path(terminated: *const u8) -> Option<i32> {
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
    // SAFETY: the callers pass terminated paths.
    unsafe { sys::raw(libc::SYS_open, [terminated as usize, flags, 0, 0, 0, 0]) }.ok().map(|fd| fd as i32)
}

/// Maps the lobby at `/proc/PID/fd/N`.
fn enter(path: &'static [u8]) -> Option<()> {
    let digits = path.strip_prefix(b"/proc/")?.split(|&b| b == b'/').next()?;
    let pid = digits
        .iter()
        .try_fold(0u32, |n, d| n.checked_mul(10)?.checked_add(u32::from(d.wrapping_sub(b'0'))))?;
    let fd = open_path(path.as_ptr())?;
    let mapped = sys::map_shared(fd, BYTES);
    sys::close(fd);
    let lobby = mapped.ok()?.cast::<Lobby>();
    // SAFETY: the launcher gave the file the whole length; all fields are atomics.
    if unsafe { &*lobby }.version.load(Acquire) != wire::VERSION {
        return None;
    }
    LAUNCHER.store(pid, Relaxed);
    LOBBY.store(lobby, Release);
    Some(())
}

/// Takes the next seat.
fn take() -> Option<i32> {
    // SAFETY: null, or the mapping made in `enter`, which is never unmapped; all fields are atomics.
    let lobby = unsafe { LOBBY.load(Acquire).as_ref() }?;
    let seat = next(lobby);
    if seat.is_none() && lobby.closed.load(Relaxed) == 0 {
        lobby.refused.fetch_add(1, Relaxed);
    }
    let seat = seat?;
    let mut path = Path::new();
    path.push(b"/proc/");
    path.push_number(LAUNCHER.load(Relaxed));
    path.push(b"/fd/");
    path.push_number(seat.descriptor.load(Relaxed));
    let fd = open_path(path.bytes.as_ptr())?;
    seat.pid.store(sys::getpid(), Release);
    Some(fd)
}

fn next(lobby: &Lobby) -> Option<&Seat> {
    for _ in 0..LOOKS {
        let taken = lobby.taken.load(Acquire);
        if lobby.closed.load(Acquire) != 0 {
            return None;
        }
        if taken < lobby.prepared.load(Acquire) {
            if lobby.taken.compare_exchange(taken, taken + 1, AcqRel, Relaxed).is_ok() {
                return lobby.seats.get(taken as usize);
            }
            continue;
        }
        let step = libc::timespec { tv_sec: 0, tv_nsec: LOOK_NS };
        // SAFETY: a live record.
        let _ = unsafe { sys::raw(libc::SYS_nanosleep, [&raw const step as usize, 0, 0, 0, 0, 0]) };
    }
    None
}

/// A short terminated path.
struct Path {
    bytes: [u8; PATH_MAX],
    len: usize,
}

impl Path {
    fn new() -> Self {
        Self { bytes: [0; PATH_MAX], len: 0 }
    }

    fn push(&mut self, text: &[u8]) {
        for &byte in text {
            // The last byte stays zero.
            if self.len + 1 < PATH_MAX
                && let Some(to) = self.bytes.get_mut(self.len)
            {
                *to = byte;
                self.len += 1;
            }
        }
    }

    fn push_number(&mut self, number: u32) {
        let mut power = 1_000_000_000;
        while power > 1 && number / power == 0 {
            power /= 10;
        }
        while power > 0 {
            self.push(&[b'0' + (number / power % 10) as u8]);
            power /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Path;

    #[test]
    fn paths_are_terminated_and_numbers_whole() {
        let mut path = Path::new();
        path.push(b"/proc/");
        path.push_number(0);
        path.push(b"/");
        path.push_number(4_000_000_001);
        path.push_number(70);
        assert_eq!(&path.bytes[..path.len], b"/proc/0/400000000170");
        path.push(&[b'x'; 200]);
        assert_eq!(path.bytes.last(), Some(&0));
    }
}
