//! `syscall`, the door through which Rust's standard library, parking_lot, OpenMP runtimes and C++20 waits
//! reach the kernel's futexes.
//!
//! C declares it variadic. On x86-64 it takes its arguments like a function of seven words, the last one on
//! the stack, which libc's own assembly reads whether it was passed or not; so do we.

use super::{waiting, waking};
use crate::abi::*;
use crate::hooks::{Ending, Hooks, Interest, WaitKind, WakeKind};
use crate::{dispatch, process, real};

// Futex operations, from the kernel's interface; `FLAGS` are private and real-time clock.
const FLAGS: usize = 128 | 256;
const WAIT: usize = 0;
const WAKE: usize = 1;
const REQUEUE: usize = 3;
const CMP_REQUEUE: usize = 4;
const WAKE_OP: usize = 5;
const LOCK_PI: usize = 6;
const UNLOCK_PI: usize = 7;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
const WAIT_REQUEUE_PI: usize = 11;
const CMP_REQUEUE_PI: usize = 12;
const LOCK_PI2: usize = 13;
// Newer system calls, one per operation.
const SYS_FUTEX_WAITV: Long = 449;
const SYS_FUTEX_WAKE: Long = 454;
const SYS_FUTEX_WAIT: Long = 455;
const SYS_FUTEX_REQUEUE: Long = 456;

/// Whether a system call is one of the kernel's futexes.
pub(crate) fn is_futex(n: Long) -> bool {
    matches!(n, libc::SYS_futex | SYS_FUTEX_WAITV | SYS_FUTEX_WAIT | SYS_FUTEX_WAKE | SYS_FUTEX_REQUEUE)
}

/// Wraps `syscall`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub unsafe fn syscall<H: Hooks>(n: Long, a: Word, b: Word, c: Word, d: Word, e: Word, f: Word) -> Long {
    // SAFETY: the caller's contract; see the module about the seventh word.
    let call = || unsafe { real::syscall(n, a, b, c, d, e, f) };
    let done = |result: Long| result != -1;
    let waits = |kind| waiting::<H, Long>(Interest::SYNC, kind, a, done, call);
    let wakes = |most| waking::<H, Long>(WakeKind::Futex, a, most, call);
    match n {
        libc::SYS_futex => match b & !FLAGS {
            WAIT | WAIT_BITSET | WAIT_REQUEUE_PI => waits(WaitKind::Futex),
            LOCK_PI | LOCK_PI2 => waits(WaitKind::FutexLock),
            WAKE | WAKE_BITSET | REQUEUE | CMP_REQUEUE | CMP_REQUEUE_PI | WAKE_OP => wakes(c as u32),
            UNLOCK_PI => wakes(1),
            _ => call(),
        },
        SYS_FUTEX_WAIT | SYS_FUTEX_WAITV => waits(WaitKind::Futex),
        SYS_FUTEX_WAKE => wakes(c as u32),
        SYS_FUTEX_REQUEUE => wakes(c as u32),
        libc::SYS_rt_sigprocmask => {
            dispatch::open::<H>();
            call()
        }
        libc::SYS_exit_group => {
            process::ending::<H>(Ending::Immediate);
            call()
        }
        _ => call(),
    }
}
