//! Pausing a thread for an exact time.
//!
//! Sleeping alone wakes late (timer slack, the scheduler, a virtual machine's exits), spinning alone burns a core.
//! So: sleep until shortly before the deadline, spin the rest; short pauses spin altogether. The deadline is
//! absolute, so interruptions do not add up. What was overslept is returned and held against later pauses.

use core::sync::atomic::Ordering::Relaxed;
use preload::sys;
use wire::causal::{Shared, epoch};

/// Woken this long before the deadline: the default timer slack (50 us) and a little.
const EARLY_NS: u64 = 70_000;
/// Shorter pauses are spun.
const SLEEP_MIN_NS: u64 = 150_000;

/// How a pause went.
pub struct Paused {
    /// How long it took.
    pub took_ns: u64,
    /// Of which the thread used its core.
    pub spun_ns: u64,
}

/// Monotonic time.
#[inline]
pub fn now_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live record. Goes to the vdso: no system call, no lock, and `errno` stays as this cannot fail.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Stops the calling thread for `ns`, or until the epoch of `global` ends. With `occupy` the thread keeps its core
/// busy: when more threads want to run than there are cores, a pause that gave the core to another thread would
/// slow nobody down.
pub fn pause(shared: &Shared, ns: u64, global: u64, occupy: bool) -> Paused {
    let start = now_ns();
    let deadline = start + ns;
    if !occupy && ns >= SLEEP_MIN_NS {
        sleep_until(deadline - EARLY_NS);
    }
    let mut now = now_ns();
    let spin_start = now;
    while now < deadline {
        core::hint::spin_loop();
        if epoch(shared.hot.global.load(Relaxed)) != epoch(global) {
            break;
        }
        now = now_ns();
    }
    Paused { took_ns: now - start, spun_ns: now - spin_start }
}

fn sleep_until(deadline_ns: u64) {
    let until = libc::timespec {
        tv_sec: (deadline_ns / 1_000_000_000) as i64,
        tv_nsec: (deadline_ns % 1_000_000_000) as i64,
    };
    let args =
        [libc::CLOCK_MONOTONIC as usize, libc::TIMER_ABSTIME as usize, &raw const until as usize, 0, 0, 0];
    // SAFETY: a live record. An interruption by one of the program's signals ends the call early: go on.
    while unsafe { sys::raw(libc::SYS_clock_nanosleep, args) } == Err(sys::Errno(libc::EINTR)) {}
}
