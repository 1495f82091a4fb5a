//! What this process itself inherited, as far as Rust's runtime changes it before `main`: it ignores SIGPIPE and opens
//! `/dev/null` in place of closed standard streams. A program that we start must get what we got.
//!
//! Read by a function in `.init_array`, which runs before the runtime does. It calls two async-signal-safe functions
//! and must never do more: nothing of Rust's runtime exists yet.

use std::sync::atomic::{AtomicU32, Ordering};

/// Bits 0 to 2: that standard stream was closed. Bit 3: SIGPIPE was ignored.
static FOUND: AtomicU32 = AtomicU32::new(0);
const PIPE_IGNORED: u32 = 1 << 3;

#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let mut found = 0;
    for fd in 0..3 {
        // SAFETY: asks about a descriptor; no memory is involved.
        if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
            found |= 1 << fd;
        }
    }
    // SAFETY: a plain C structure, filled by the call that only asks.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGPIPE, std::ptr::null(), &raw mut action);
        if action.sa_sigaction == libc::SIG_IGN {
            found |= PIPE_IGNORED;
        }
    }
    FOUND.store(found, Ordering::Relaxed);
}

/// Gives the calling process back what ours was started with. Async-signal-safe: for use between fork and exec.
pub(crate) fn restore() {
    let found = FOUND.load(Ordering::Relaxed);
    let action = if found & PIPE_IGNORED != 0 { libc::SIG_IGN } else { libc::SIG_DFL };
    // SAFETY: sets a disposition to one of the two constants, and closes descriptors that the runtime opened.
    unsafe {
        libc::signal(libc::SIGPIPE, action);
        for fd in (0..3).filter(|fd| found & (1 << fd) != 0) {
            libc::close(fd);
        }
    }
}
