//! Until when a woken thread is excused.
//!
//! Between the wake-up call and the woken thread's first instruction pass microseconds, in which the waker may already
//! run the selected target again. Delays of that time are owed like any other. So who is about to wake others leaves word
//! of `global` (then without debts of its own), under the address of the lock, condition or futex. Words are never
//! removed: a thread believes one that is not older than its wait.
//!
//! Readers of pipes and event counters, and those who poll, are woken by writers; there it is the last output to any
//! descriptor that threads of one program talk through.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use preload::sys;
use wire::causal::{delay_ns, epoch};

const PLACES: usize = 1024;

/// `global` at the last wake-up, by address.
static WORDS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
/// Outputs so far, and `global` at the last one.
static OUTPUTS: AtomicU64 = AtomicU64::new(0);
static OUTPUT_GLOBAL: AtomicU64 = AtomicU64::new(0);
/// Threads that wait for input or poll.
static LISTENERS: AtomicU32 = AtomicU32::new(0);

/// An input that took less was there already: nobody was waited for.
const WAIT_MIN_NS: u64 = 20_000;

/// What may have woken a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// No thread of this program.
    Nobody,
    /// A thread that called with this address.
    Call(usize),
    /// A thread that wrote something.
    Output,
}

/// How many outputs there had been when a wait began.
#[derive(Clone, Copy)]
pub struct Mark(u64);

impl Mark {
    pub const NONE: Self = Self(0);
}

/// For a wait that begins.
pub fn mark() -> Mark {
    Mark(OUTPUTS.load(Relaxed))
}

fn place(object: usize) -> &'static AtomicU64 {
    let hash = (object as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    &WORDS[hash as usize % PLACES]
}

/// In a forked child: words of the parent's experiments mean nothing in its own.
pub fn forget() {
    WORDS.iter().for_each(|word| word.store(0, Relaxed));
    OUTPUT_GLOBAL.store(0, Relaxed);
    LISTENERS.store(0, Relaxed);
}

/// The calling thread is about to wake others.
pub fn leave_word(object: usize, global: u64) {
    place(object).store(global, Release);
}

/// `global` until which a thread is excused, if at all. `since` and `now`: `global` when its wait began and ended.
pub fn until(by: By, mark: Mark, since: u64, now: u64, waited_ns: u64) -> Option<u64> {
    let word = match by {
        By::Nobody => return None,
        By::Call(object) => place(object).load(Acquire),
        By::Output if waited_ns < WAIT_MIN_NS || OUTPUTS.load(Acquire) == mark.0 => return None,
        By::Output => OUTPUT_GLOBAL.load(Relaxed),
    };
    let of_now = epoch(word) == epoch(now) && delay_ns(word) <= delay_ns(now);
    let after_since = epoch(since) != epoch(now) || word >= since;
    match (of_now && after_since, by) {
        (true, _) => Some(word),
        // Who woke it left no word (`pthread_cancel`, a raw system call): now is the best guess.
        (false, By::Call(_)) => Some(now),
        (false, _) => None,
    }
}

/// A thread begins or ends listening.
pub fn listen(begins: bool) {
    if begins {
        LISTENERS.fetch_add(1, SeqCst);
    } else {
        LISTENERS.fetch_sub(1, Relaxed);
    }
}

/// Whether somebody listens.
pub fn are_listeners() -> bool {
    LISTENERS.load(Relaxed) != 0
}

/// The calling thread, which owes nothing, is about to write what another one may read.
pub fn output(fd: i32, global: u64) {
    if is_between_threads(fd) {
        OUTPUT_GLOBAL.store(global, Relaxed);
        OUTPUTS.fetch_add(1, Release);
    }
}

/// Whether a descriptor is one that threads of one program talk through: a pipe, an event counter, a local socket.
pub fn is_between_threads(fd: i32) -> bool {
    // SAFETY: plain data, filled by the call.
    let mut stat: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the record is live.
    if unsafe { sys::raw(libc::SYS_fstat, [fd as usize, &raw mut stat as usize, 0, 0, 0, 0]) }.is_err() {
        return false;
    }
    match stat.st_mode & libc::S_IFMT {
        libc::S_IFIFO | 0 => true,
        libc::S_IFSOCK => {
            let (mut domain, mut len) = (0i32, 4u32);
            let args = [
                fd as usize,
                libc::SOL_SOCKET as usize,
                libc::SO_DOMAIN as usize,
                &raw mut domain as usize,
                &raw mut len as usize,
                0,
            ];
            // SAFETY: both records are live.
            let asked = unsafe { sys::raw(libc::SYS_getsockopt, args) };
            asked.is_ok() && domain == libc::AF_UNIX
        }
        _ => false,
    }
}
