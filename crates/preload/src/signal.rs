//! A signal of our own, in a program that believes it has them all.
//!
//! Samples need a signal. The sampler names the ones it can use, and the first that is at its default is taken;
//! from then on
//! - the program's `sigaction` and `signal` for it act on a shadow that it reads back as its own;
//! - the program cannot block it, wait for it or put it into a `signalfd` (the wrappers take it out of the
//!   sets), since a blocked one would stop the samples and a waited-for one would be taken for the program's;
//! - one that did not come from us is handed to the program's shadow action ([`hand_on`]).
//!
//! The handler is installed with `SA_RESTART` and `SA_ONSTACK` (Go and others have stacks too small for a
//! handler), so it must make do with the few kilobytes of an alternate stack, or go on elsewhere.

use crate::abi::*;
use crate::{real, sys};
use core::mem::{MaybeUninit, transmute, zeroed};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering::*};

/// A handler as the kernel calls it.
pub type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);

static RESERVED: AtomicI32 = AtomicI32::new(0);
// The program's view of the reserved signal. Set by its threads, read by our handler: a torn read while the
// program changes a disposition is the same race that it has natively.
static SHADOW_HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static SHADOW_FLAGS: AtomicU32 = AtomicU32::new(0);

/// What waits until our handler is done: every signal that no instruction raises. A handler of the program, or
/// the cancellation of a thread (signal 32, which `sigfillset` leaves out), would unwind or jump out of the
/// middle of ours and leave it unfinished for ever.
const ASYNCHRONOUS: u64 =
    !(bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGFPE) | bit(libc::SIGILL) | bit(libc::SIGTRAP));

/// Further signals that the program must not block.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// The program cannot block this signal from now on.
pub(crate) fn keep_open(number: i32) {
    OPEN.fetch_or(bit(number), Relaxed);
}

/// The signal that is ours, 0 if none.
#[inline]
pub fn reserved() -> i32 {
    RESERVED.load(Relaxed)
}

/// Takes the first of `candidates` that is at its default and installs `handler` for it.
pub fn reserve(candidates: impl Iterator<Item = i32>, handler: Handler) -> Option<i32> {
    for number in candidates {
        // SAFETY: `sigaction` is plain data.
        let mut old: libc::sigaction = unsafe { zeroed() };
        // SAFETY: asks only; the result is live.
        let code = unsafe { real::sigaction(number, ptr::null_mut(), &raw mut old as Ptr) };
        if code != 0 || old.sa_sigaction != libc::SIG_DFL {
            continue;
        }
        // SAFETY: as above.
        let mut new: libc::sigaction = unsafe { zeroed() };
        new.sa_sigaction = handler as *const () as usize;
        // SAFETY: a `sigset_t` begins with the kernel's eight bytes.
        unsafe { (&raw mut new.sa_mask).cast::<u64>().write(ASYNCHRONOUS) };
        new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        // SAFETY: the handler has the three-argument form that `SA_SIGINFO` asks for.
        if unsafe { real::sigaction(number, &raw mut new as Ptr, ptr::null_mut()) } == 0 {
            RESERVED.store(number, Release);
            return Some(number);
        }
    }
    None
}

/// Lets the reserved signal through in the calling thread.
pub fn unblock() {
    let set = bit(reserved());
    let args = [libc::SIG_UNBLOCK as usize, &raw const set as usize, 0, 8, 0, 0];
    // SAFETY: the set is a live kernel set of eight bytes.
    let _ = unsafe { sys::raw(libc::SYS_rt_sigprocmask, args) };
}

/// Whether the program has a handler of its own for the reserved signal.
pub fn program_handles() -> bool {
    SHADOW_HANDLER.load(Relaxed) != libc::SIG_DFL
}

/// Does with a signal what the program wanted done with it.
pub fn hand_on(number: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let handler = SHADOW_HANDLER.load(Acquire);
    match handler {
        libc::SIG_IGN => {}
        libc::SIG_DFL => {
            // The default is death; it comes when our handler returns and the mask lets it through.
            // SAFETY: plain data; restores a default and sends a signal to this thread.
            unsafe {
                let mut default: libc::sigaction = zeroed();
                real::sigaction(number, &raw mut default as Ptr, ptr::null_mut());
                let target = [sys::getpid() as usize, sys::gettid() as usize, number as usize, 0, 0, 0];
                let _ = sys::raw(libc::SYS_tgkill, target);
            }
        }
        _ if SHADOW_FLAGS.load(Relaxed) & libc::SA_SIGINFO as u32 != 0 => {
            // SAFETY: the program registered a handler of the three-argument form.
            unsafe { transmute::<usize, Handler>(handler)(number, info, context) }
        }
        _ => {
            // SAFETY: the program registered a handler of the one-argument form.
            unsafe { transmute::<usize, extern "C" fn(i32)>(handler)(number) }
        }
    }
}

/// The program asks for or sets the action of the reserved signal.
///
/// # Safety
/// `new` and `old` must be null or point to `struct sigaction`.
pub(crate) unsafe fn shadow_action(new: Ptr, old: Ptr) {
    let (handler, flags) = (SHADOW_HANDLER.load(Acquire), SHADOW_FLAGS.load(Relaxed));
    // SAFETY: by the contract of this function.
    unsafe {
        if let Some(new) = (new as *const libc::sigaction).as_ref() {
            SHADOW_FLAGS.store(new.sa_flags as u32, Relaxed);
            SHADOW_HANDLER.store(new.sa_sigaction, Release);
        }
        if let Some(old) = (old as *mut libc::sigaction).as_mut() {
            *old = zeroed();
            old.sa_sigaction = handler;
            old.sa_flags = flags as i32;
        }
    }
}

/// Sets a plain handler, as `signal` does; gives the one before.
pub(crate) fn shadow_signal(handler: Ptr) -> Ptr {
    SHADOW_FLAGS.store(libc::SA_RESTART as u32, Relaxed);
    SHADOW_HANDLER.swap(handler as usize, AcqRel) as Ptr
}

/// A copy of a set without the reserved signal.
///
/// # Safety
/// `set` must point to a `sigset_t` (of which libc's functions read the kernel's eight bytes).
pub(crate) unsafe fn without_reserved(set: Ptr) -> MaybeUninit<libc::sigset_t> {
    let mut copy = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: by the contract of this function; the first eight bytes of a set are the kernel's.
    unsafe {
        *copy.as_mut_ptr().cast::<u64>() = *(set as *const u64) & !(bit(reserved()) | OPEN.load(Relaxed))
    };
    copy
}

pub(crate) const fn bit(number: i32) -> u64 {
    if 1 <= number && number <= 64 { 1 << (number - 1) } else { 0 }
}
