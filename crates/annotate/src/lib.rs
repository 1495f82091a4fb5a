//! What users may put into their code, for `farsight causal` to measure progress by. Costs one relaxed increment per
//! visit when profiled and one load when not.
//!
//! ```
//! for order in 0..3 {
//!     annotate::begin!("order");
//!     // ... the work ...
//!     annotate::end!("order");
//!     annotate::progress!("orders done");
//! }
//! ```
//! C and C++ programs include `include/farsight.h`, which has the same points. Both speak the ABI of `coz.h`, so
//! programs annotated for Coz need no change, and ours work under Coz.
//!
//! # Rules
//! - No dependencies, `no_std`, nothing to initialize, nothing to link: the profiler is looked up by name at the first
//!   visit, and a program that is not profiled finds none.
//! - The layout is the ABI's and never changes.
#![no_std]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

/// What a point counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// Visits.
    Throughput = 1,
    /// Begins of something that takes time.
    Begin = 2,
    /// Its ends.
    End = 3,
}

/// Progress: visits of this place. The name is the file and line unless given.
#[macro_export]
macro_rules! progress {
    () => {
        $crate::progress!(concat!(file!(), ":", line!()))
    };
    ($name:expr) => {
        $crate::visit!($crate::Kind::Throughput, $name)
    };
}

/// Something that takes time begins; [`end!`] of the same name ends it.
#[macro_export]
macro_rules! begin {
    ($name:expr) => {
        $crate::visit!($crate::Kind::Begin, $name)
    };
}

/// It ends.
#[macro_export]
macro_rules! end {
    ($name:expr) => {
        $crate::visit!($crate::Kind::End, $name)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! visit {
    ($kind:expr, $name:expr) => {{
        static POINT: $crate::Point = $crate::Point::new($kind, $crate::terminated(concat!($name, "\0")));
        POINT.visit();
    }};
}

/// One place in the source. Made by the macros.
#[derive(Debug)]
pub struct Point {
    kind: Kind,
    name: &'static CStr,
    /// Null before the first visit, then the counter, or `NOBODY` when there is no profiler.
    counter: AtomicPtr<AtomicUsize>,
}

/// Marks a point that nobody counts. Never dereferenced, and no counter lies at this address.
const NOBODY: *mut AtomicUsize = ptr::without_provenance_mut(align_of::<AtomicUsize>());

type GetCounter = unsafe extern "C" fn(c_int, *const c_char) -> *mut AtomicUsize;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

impl Point {
    /// A point that has not been visited.
    pub const fn new(kind: Kind, name: &'static CStr) -> Self {
        Point { kind, name, counter: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Counts a visit, if there is a profiler.
    #[inline]
    pub fn visit(&self) {
        let mut counter = self.counter.load(Relaxed);
        if counter.is_null() {
            counter = self.look_up();
        }
        if counter != NOBODY {
            // SAFETY: what the profiler gives starts with a word to increment and stays valid for the process's life.
            unsafe { (*counter).fetch_add(1, Relaxed) };
        }
    }

    #[cold]
    fn look_up(&self) -> *mut AtomicUsize {
        // SAFETY: RTLD_DEFAULT (null) and a terminated name.
        let found = unsafe { dlsym(ptr::null_mut(), c"_coz_get_counter".as_ptr()) };
        let counter = NonNull::new(found).and_then(|found| {
            // SAFETY: a symbol of this name is Coz's function of this type.
            let get = unsafe { core::mem::transmute::<*mut c_void, GetCounter>(found.as_ptr()) };
            // SAFETY: a kind of the ABI and a terminated name, which the profiler copies.
            NonNull::new(unsafe { get(self.kind as c_int, self.name.as_ptr()) })
        });
        let counter = counter.map_or(NOBODY, NonNull::as_ptr);
        self.counter.store(counter, Relaxed);
        counter
    }
}

/// A name with its terminator as a C string; for the macros.
#[doc(hidden)]
pub const fn terminated(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"a name with a zero byte",
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn a_program_without_profiler_counts_nothing() {
        for _ in 0..3 {
            progress!();
            begin!("request");
            end!("request");
        }
        static POINT: Point = Point::new(Kind::Throughput, c"point");
        POINT.visit();
        assert_eq!(POINT.counter.load(Relaxed), NOBODY);
        assert_eq!(terminated("a\0"), c"a");
    }
}
