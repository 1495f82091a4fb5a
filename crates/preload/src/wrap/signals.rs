//! Signals: waiting for them, sending them, and keeping our own out of the program's sight.

use super::{waiting, waking};
use crate::abi::*;
use crate::dispatch;
use crate::hooks::{Hooks, Interest, WaitKind, WakeKind};
use crate::{real, signal as own};
use core::ptr;

/// Runs `call` with the set, or with a copy that lacks our signal.
///
/// # Safety
/// `set` must be null or point to a `sigset_t`.
#[inline(always)]
unsafe fn with_set<R>(set: Ptr, call: impl FnOnce(Ptr) -> R) -> R {
    if set.is_null() || own::reserved() == 0 {
        return call(set);
    }
    // SAFETY: not null, so a set by contract.
    let mut copy = unsafe { own::without_reserved(set) };
    call(copy.as_mut_ptr() as Ptr)
}

macro_rules! set_waits {
    ($($done:expr, $name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>(set: Ptr $(, $arg: $type)*) -> Int {
                // SAFETY: the caller's contract.
                waiting::<H, Int>(Interest::SYNC, WaitKind::Signal, 0, $done, || unsafe {
                    with_set(set, |set| real::$name(set $(, $arg)*))
                })
            }
        )*
    };
}
set_waits! {
    |code| code == 0, sigwait(out: Ptr);
    |code| code > 0, sigwaitinfo(info: Ptr);
    |code| code > 0, sigtimedwait(info: Ptr, timeout: Ptr);
}

/// Wraps `sigsuspend`. Always ends with an "error", which is the signal that was waited for.
pub unsafe fn sigsuspend<H: Hooks>(set: Ptr) -> Int {
    // SAFETY: the caller's contract. The set is only in force while the thread sleeps: it may keep our signal.
    waiting::<H, Int>(Interest::SYNC, WaitKind::Signal, 0, |_| true, || unsafe { real::sigsuspend(set) })
}

/// Wraps `pause`.
pub unsafe fn pause<H: Hooks>() -> Int {
    // SAFETY: no arguments.
    waiting::<H, Int>(Interest::SYNC, WaitKind::Signal, 0, |_| true, || unsafe { real::pause() })
}

macro_rules! senders {
    ($($number:ident: $name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>($($arg: $type),*) -> Int {
                // SAFETY: the caller's contract.
                waking::<H, Int>(WakeKind::Signal, $number as usize, u32::MAX, || unsafe { real::$name($($arg),*) })
            }
        )*
    };
}
senders! {
    signal: kill(pid: Int, signal: Int);
    signal: killpg(group: Int, signal: Int);
    signal: tgkill(pid: Int, tid: Int, signal: Int);
    signal: sigqueue(pid: Int, signal: Int, value: Ptr);
    signal: pthread_kill(t: Word, signal: Int);
    signal: pthread_sigqueue(t: Word, signal: Int, value: Ptr);
}

/// Wraps `sigaction`: our signal has a shadow, and no handler of the program blocks it.
pub unsafe fn sigaction<H: Hooks>(number: Int, new: Ptr, old: Ptr) -> Int {
    let reserved = own::reserved();
    // SAFETY: the caller's contract: both are null or point to `struct sigaction`.
    unsafe {
        if reserved == 0 {
            return real::sigaction(number, new, old);
        }
        if number == reserved {
            own::shadow_action(new, old);
            return 0;
        }
        if number == libc::SIGSYS && dispatch::has_handler() {
            // It was at its default, and is the program's alone as soon as that wants it.
            if let Some(old) = (old as *mut libc::sigaction).as_mut() {
                *old = core::mem::zeroed();
            }
            if new.is_null() {
                return 0;
            }
            dispatch::forbid::<H>();
            return real::sigaction(number, new, ptr::null_mut());
        }
        let Some(wanted) = (new as *const libc::sigaction).as_ref() else {
            return real::sigaction(number, ptr::null_mut(), old);
        };
        let mut copy = *wanted;
        copy.sa_mask = own::without_reserved(&raw mut copy.sa_mask as Ptr).assume_init();
        real::sigaction(number, &raw mut copy as Ptr, old)
    }
}

/// Wraps `signal`.
pub unsafe fn signal<H: Hooks>(number: Int, handler: Ptr) -> Ptr {
    if number != 0 && number == own::reserved() {
        return own::shadow_signal(handler);
    }
    if number == libc::SIGSYS && dispatch::has_handler() {
        dispatch::forbid::<H>();
        // SAFETY: the caller's contract.
        unsafe { real::signal(number, handler) };
        return libc::SIG_DFL as Ptr;
    }
    // SAFETY: the caller's contract.
    unsafe { real::signal(number, handler) }
}

/// Wraps `sigprocmask`.
pub unsafe fn sigprocmask<H: Hooks>(how: Int, set: Ptr, old: Ptr) -> Int {
    // SAFETY: the caller's contract.
    unsafe { with_set(set, |set| real::sigprocmask(how, set, old)) }
}

/// Wraps `pthread_sigmask`.
pub unsafe fn pthread_sigmask<H: Hooks>(how: Int, set: Ptr, old: Ptr) -> Int {
    // SAFETY: the caller's contract.
    unsafe { with_set(set, |set| real::pthread_sigmask(how, set, old)) }
}

/// Wraps `signalfd`.
pub unsafe fn signalfd<H: Hooks>(fd: Int, set: Ptr, flags: Int) -> Int {
    // SAFETY: the caller's contract.
    unsafe { with_set(set, |set| real::signalfd(fd, set, flags)) }
}
