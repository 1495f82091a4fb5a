//! Condition variables, barriers and semaphores.

use super::{waiting, waiting_as, waking};
use crate::abi::*;
use crate::hooks::{Hooks, Interest, Lock, LockKind, Wait, WaitKind, Wake, WakeKind};
use crate::{errno, real, thread};

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Waits for a condition: lets the mutex go, waits, takes the mutex again, as the real function does in one.
#[inline(always)]
fn wait_for<H: Hooks>(condition: Ptr, mutex: Ptr, call: impl FnOnce() -> Int) -> Int {
    let wanted = Interest::SYNC.and(Interest::LOCKS).and(Interest::WAKES);
    if !H::INTEREST.wants(wanted) {
        return call();
    }
    let Some(thread) = thread::current::<H>() else { return call() };
    let lock = Lock { kind: LockKind::Mutex, address: mutex as usize };
    if H::INTEREST.wants(Interest::WAKES) {
        H::before_wake(thread, Wake { kind: WakeKind::Mutex, object: mutex as usize, most: 1 });
    }
    if H::INTEREST.wants(Interest::LOCKS) {
        H::released(thread, lock);
    }
    let wait = Wait { kind: WaitKind::Condition, object: condition as usize };
    let code = waiting_as::<H, Int>(thread, wait, |code| code == 0, call);
    // Whatever the result, the mutex is held on return.
    if H::INTEREST.wants(Interest::LOCKS) {
        H::acquired(thread, lock, true);
    }
    code
}

macro_rules! conditions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>(c: Ptr, m: Ptr $(, $arg: $type)*) -> Int {
                // SAFETY: the caller's contract.
                wait_for::<H>(c, m, || unsafe { real::$name(c, m $(, $arg)*) })
            }
        )*
    };
}
conditions! {
    pthread_cond_wait();
    pthread_cond_timedwait(until: Ptr);
    pthread_cond_clockwait(clock: Int, until: Ptr);
    cnd_wait();
    cnd_timedwait(until: Ptr);
}

macro_rules! wakers {
    ($($wake:ident, $most:expr => $name:ident;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>(object: Ptr) -> Int {
                // SAFETY: the caller's contract.
                waking::<H, Int>(WakeKind::$wake, object as usize, $most, || unsafe { real::$name(object) })
            }
        )*
    };
}
wakers! {
    Condition, 1 => pthread_cond_signal;
    Condition, u32::MAX => pthread_cond_broadcast;
    Condition, 1 => cnd_signal;
    Condition, u32::MAX => cnd_broadcast;
    Semaphore, 1 => sem_post;
}

/// Wraps `pthread_barrier_wait`: the arrival may wake the others, or wait for them.
pub unsafe fn pthread_barrier_wait<H: Hooks>(b: Ptr) -> Int {
    if H::INTEREST.wants(Interest::WAKES)
        && let Some(thread) = thread::current::<H>()
    {
        H::before_wake(thread, Wake { kind: WakeKind::Barrier, object: b as usize, most: u32::MAX });
    }
    let done = |code: Int| code == 0 || code == libc::PTHREAD_BARRIER_SERIAL_THREAD;
    // SAFETY: the caller's contract.
    waiting::<H, Int>(Interest::SYNC, WaitKind::Barrier, b as usize, done, || unsafe {
        real::pthread_barrier_wait(b)
    })
}

/// Takes a semaphore, trying first. The blocking functions are cancellation points even when they need not
/// block, so a pending cancellation is looked for.
#[inline(always)]
fn down<H: Hooks>(s: Ptr, call: impl FnOnce() -> Int) -> Int {
    if !H::INTEREST.wants(Interest::SYNC) {
        return call();
    }
    super::taking::<H>();
    let before = errno::get();
    // SAFETY: no arguments; unwinds out of a frame without destructors. The caller's contract covers trying.
    let taken = unsafe {
        pthread_testcancel();
        real::sem_trywait(s) == 0
    };
    if taken {
        return 0;
    }
    errno::set(before);
    waiting::<H, Int>(Interest::SYNC, WaitKind::Semaphore, s as usize, |code| code == 0, call)
}

/// Wraps `sem_wait`.
pub unsafe fn sem_wait<H: Hooks>(s: Ptr) -> Int {
    // SAFETY: the caller's contract.
    down::<H>(s, || unsafe { real::sem_wait(s) })
}

/// Wraps `sem_timedwait`.
pub unsafe fn sem_timedwait<H: Hooks>(s: Ptr, until: Ptr) -> Int {
    // SAFETY: the caller's contract.
    down::<H>(s, || unsafe { real::sem_timedwait(s, until) })
}

/// Wraps `sem_clockwait`.
pub unsafe fn sem_clockwait<H: Hooks>(s: Ptr, clock: Int, until: Ptr) -> Int {
    // SAFETY: the caller's contract.
    down::<H>(s, || unsafe { real::sem_clockwait(s, clock, until) })
}

/// Wraps `sem_trywait`, which neither waits nor wakes.
pub unsafe fn sem_trywait<H: Hooks>(s: Ptr) -> Int {
    // SAFETY: the caller's contract.
    unsafe { real::sem_trywait(s) }
}

/// Wraps `semop`: System V operations may wait and wake in one.
pub unsafe fn semop<H: Hooks>(id: Int, ops: Ptr, count: Word) -> Int {
    // SAFETY: the caller's contract.
    system_v::<H>(id, || unsafe { real::semop(id, ops, count) })
}

/// Wraps `semtimedop`.
pub unsafe fn semtimedop<H: Hooks>(id: Int, ops: Ptr, count: Word, timeout: Ptr) -> Int {
    // SAFETY: the caller's contract.
    system_v::<H>(id, || unsafe { real::semtimedop(id, ops, count, timeout) })
}

#[inline(always)]
fn system_v<H: Hooks>(id: Int, call: impl FnOnce() -> Int) -> Int {
    waking::<H, Int>(WakeKind::Semaphore, id as usize, u32::MAX, || {
        waiting::<H, Int>(Interest::SYNC, WaitKind::Semaphore, id as usize, |code| code == 0, call)
    })
}
