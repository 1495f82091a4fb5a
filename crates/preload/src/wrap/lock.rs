//! Mutexes, read-write locks and spin locks.

use super::waiting_as;
use crate::abi::*;
use crate::hooks::{Hooks, Interest, Lock, LockKind, Wait, WaitKind, Wake, WakeKind};
use crate::{real, thread};

/// What a C11 function gives when the mutex is taken (`thrd_busy`).
const THRD_BUSY: Int = 1;

/// Whether a lock function's result means that the caller holds the lock now. A robust mutex whose owner died
/// is held all the same.
#[inline(always)]
fn holds(code: Int) -> bool {
    code == 0 || code == libc::EOWNERDEAD
}

/// Takes a lock: without waiting if it is free, else with the events of a wait.
///
/// Trying first changes no result: every error that the blocking function can give without blocking, the
/// trying one gives too, except "taken" (`busy`), on which the blocking function is asked.
#[inline(always)]
fn take<H: Hooks>(
    lock: Lock,
    kind: WaitKind,
    busy: Int,
    attempt: impl FnOnce() -> Int,
    block: impl FnOnce() -> Int,
) -> Int {
    if !H::INTEREST.wants(Interest::LOCKS.and(Interest::SYNC)) {
        return block();
    }
    super::taking::<H>();
    let code = attempt();
    if code != busy {
        return took::<H>(lock, code, false);
    }
    take_slowly::<H>(lock, kind, block)
}

#[cold]
#[inline(never)]
fn take_slowly<H: Hooks>(lock: Lock, kind: WaitKind, block: impl FnOnce() -> Int) -> Int {
    let Some(thread) = thread::current::<H>() else { return block() };
    let wait = Wait { kind, object: lock.address };
    let code = waiting_as::<H, Int>(thread, wait, holds, block);
    took::<H>(lock, code, true)
}

#[inline(always)]
fn took<H: Hooks>(lock: Lock, code: Int, contended: bool) -> Int {
    if H::INTEREST.wants(Interest::LOCKS)
        && holds(code)
        && let Some(thread) = thread::current::<H>()
    {
        H::acquired(thread, lock, contended);
    }
    code
}

/// Lets a lock go.
#[inline(always)]
fn give<H: Hooks>(lock: Lock, kind: WakeKind, most: u32, unlock: impl FnOnce() -> Int) -> Int {
    if !H::INTEREST.wants(Interest::LOCKS.and(Interest::WAKES)) {
        return unlock();
    }
    let Some(thread) = thread::current::<H>() else { return unlock() };
    let wake = Wake { kind, object: lock.address, most };
    if H::INTEREST.wants(Interest::WAKES) {
        H::before_wake(thread, wake);
    }
    if H::INTEREST.wants(Interest::LOCKS) {
        H::released(thread, lock);
    }
    let code = unlock();
    if H::INTEREST.wants(Interest::WAKES) {
        H::after_wake(thread, wake);
    }
    code
}

/// `pub unsafe fn name<H>(lock, ...)` for functions that take a lock by waiting.
macro_rules! takers {
    ($($lock:ident, $wait:ident, $busy:expr, $attempt:ident: $name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            #[inline(always)]
            pub unsafe fn $name<H: Hooks>(l: Ptr $(, $arg: $type)*) -> Int {
                let lock = Lock { kind: LockKind::$lock, address: l as usize };
                // SAFETY: the caller's contract; trying a lock asks for no more than taking it.
                let attempt = || unsafe { real::$attempt(l) };
                // SAFETY: the caller's contract.
                let block = || unsafe { real::$name(l $(, $arg)*) };
                take::<H>(lock, WaitKind::$wait, $busy, attempt, block)
            }
        )*
    };
}
takers! {
    Mutex, Mutex, libc::EBUSY, pthread_mutex_trylock: pthread_mutex_lock();
    Mutex, Mutex, libc::EBUSY, pthread_mutex_trylock: pthread_mutex_timedlock(until: Ptr);
    Mutex, Mutex, libc::EBUSY, pthread_mutex_trylock: pthread_mutex_clocklock(clock: Int, until: Ptr);
    Mutex, Mutex, THRD_BUSY, mtx_trylock: mtx_lock();
    Mutex, Mutex, THRD_BUSY, mtx_trylock: mtx_timedlock(until: Ptr);
    Read, Read, libc::EBUSY, pthread_rwlock_tryrdlock: pthread_rwlock_rdlock();
    Read, Read, libc::EBUSY, pthread_rwlock_tryrdlock: pthread_rwlock_timedrdlock(until: Ptr);
    Read, Read, libc::EBUSY, pthread_rwlock_tryrdlock: pthread_rwlock_clockrdlock(clock: Int, until: Ptr);
    Write, Write, libc::EBUSY, pthread_rwlock_trywrlock: pthread_rwlock_wrlock();
    Write, Write, libc::EBUSY, pthread_rwlock_trywrlock: pthread_rwlock_timedwrlock(until: Ptr);
    Write, Write, libc::EBUSY, pthread_rwlock_trywrlock: pthread_rwlock_clockwrlock(clock: Int, until: Ptr);
    Spin, Spin, libc::EBUSY, pthread_spin_trylock: pthread_spin_lock();
}

/// Functions that only try.
macro_rules! tryers {
    ($($lock:ident: $name:ident;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            #[inline(always)]
            pub unsafe fn $name<H: Hooks>(l: Ptr) -> Int {
                // SAFETY: the caller's contract.
                took::<H>(Lock { kind: LockKind::$lock, address: l as usize }, unsafe { real::$name(l) }, false)
            }
        )*
    };
}
tryers! {
    Mutex: pthread_mutex_trylock;
    Mutex: mtx_trylock;
    Read: pthread_rwlock_tryrdlock;
    Write: pthread_rwlock_trywrlock;
    Spin: pthread_spin_trylock;
}

/// Functions that let go.
macro_rules! givers {
    ($($lock:ident, $wake:ident, $most:expr => $name:ident;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            #[inline(always)]
            pub unsafe fn $name<H: Hooks>(l: Ptr) -> Int {
                let lock = Lock { kind: LockKind::$lock, address: l as usize };
                // SAFETY: the caller's contract.
                give::<H>(lock, WakeKind::$wake, $most, || unsafe { real::$name(l) })
            }
        )*
    };
}
givers! {
    Mutex, Mutex, 1 => pthread_mutex_unlock;
    Mutex, Mutex, 1 => mtx_unlock;
    Either, RwLock, u32::MAX => pthread_rwlock_unlock;
    Spin, Spin, 1 => pthread_spin_unlock;
}
