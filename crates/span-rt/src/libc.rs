//! The few C functions that are needed, declared here because there is no crate to take them from.
#![allow(missing_docs, non_camel_case_types)]

use core::ffi::{c_char, c_int, c_long, c_void};

#[repr(C)]
#[derive(Default, Clone, Copy)]
pub struct timespec {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}

/// glibc's, 56 bytes on x86-64.
#[repr(C)]
pub struct pthread_attr_t(pub [u64; 8]);

pub const CLOCK_MONOTONIC: c_int = 1;
pub const CLOCK_THREAD_CPUTIME_ID: c_int = 3;
/// Processor time of the whole process.
pub const CLOCK_PROCESS_CPUTIME_ID: i32 = 2;

unsafe extern "C" {
    pub fn clock_gettime(clock: c_int, time: *mut timespec) -> c_int;
    pub fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    pub fn atexit(f: extern "C" fn()) -> c_int;
    pub fn syscall(number: c_long, ...) -> c_long;
    pub fn pthread_self() -> usize;
    pub fn pthread_getattr_np(thread: usize, attr: *mut pthread_attr_t) -> c_int;
    pub fn pthread_attr_getstack(
        attr: *const pthread_attr_t,
        start: *mut *mut c_void,
        bytes: *mut usize,
    ) -> c_int;
    pub fn pthread_attr_destroy(attr: *mut pthread_attr_t) -> c_int;
}

/// Nanoseconds of a clock.
pub fn ns(clock: c_int) -> u64 {
    let mut t = timespec::default();
    // SAFETY: `t` is a valid place for the answer.
    unsafe { clock_gettime(clock, &raw mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
