//! The engine's lock: spins, then yields.
//!
//! # Ranks
//! 1. the engine lock (translation, links, tables, regions, thread list), held for microseconds;
//! 2. the heap's lock, taken inside it.
//!
//! No lock is ever taken by a signal handler while the interrupted code may hold one: the handler looks at
//! where it interrupted the thread first. A fork takes the engine lock around the system call, so that the
//! child finds every structure whole.

use crate::sys;
use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

/// A value under a spinlock.
pub struct SpinLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `value` is only reached through a guard, of which `held` admits one at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

/// Holds the lock until dropped.
pub struct Guard<'a, T>(&'a SpinLock<T>);

impl<T> SpinLock<T> {
    /// An open lock around `value`.
    pub const fn new(value: T) -> Self {
        SpinLock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub fn lock(&self) -> Guard<'_, T> {
        let mut spins = 0u32;
        while self.held.compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            spins += 1;
            if spins.is_multiple_of(200) {
                sys::yield_now();
            }
            core::hint::spin_loop();
        }
        Guard(self)
    }

    /// Opens the lock on behalf of an owner that is gone: the guard was forgotten, or fork copied it.
    ///
    /// # Safety
    /// The caller holds the lock, and no guard of it is alive.
    pub unsafe fn force_unlock(&self) {
        self.held.store(false, Ordering::Release);
    }

    /// The byte that says whether it is held: for code that opens it as its last act.
    pub fn flag(&self) -> *const AtomicBool {
        &raw const self.held
    }

    /// Is it held by anybody?
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this thread holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard exists and is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.0.held.store(false, Ordering::Release);
    }
}
