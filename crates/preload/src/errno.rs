//! The program's `errno`, kept as the program left it.

/// Runs `f` and puts `errno` back to what it was before.
///
/// Around hooks only: a wrapper must let the real function's `errno` through.
#[inline]
pub fn preserve<R>(f: impl FnOnce() -> R) -> R {
    let saved = get();
    let result = f();
    set(saved);
    result
}

/// The calling thread's `errno`.
#[inline]
pub fn get() -> i32 {
    // SAFETY: `__errno_location` has no preconditions and gives a pointer valid for the calling thread.
    unsafe { *libc::__errno_location() }
}

/// Sets the calling thread's `errno`.
#[inline]
pub fn set(value: i32) {
    // SAFETY: as in `get`; the pointee is this thread's own.
    unsafe { *libc::__errno_location() = value }
}
