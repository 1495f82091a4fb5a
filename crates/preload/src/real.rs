//! The functions behind the ones that we interpose.
//!
//! Each has a slot that is filled by `dlsym(RTLD_NEXT)`: all of them at start, and one by one should a wrapper
//! be called even before our constructor (another library's constructor, an allocator's first lock). A
//! successful `dlsym` does not allocate, and a failed one allocates only its message, after every slot that an
//! allocator could need (locks come first in the table) has been filled.
//!
//! `pthread_cond_*` exist twice in glibc for x86-64: `GLIBC_2.2.5` with a condition that is a pointer, and
//! `GLIBC_2.3.2` with today's. The newer one is asked for by version. (A program built before 2003 that binds
//! the older one cannot be told apart here and is not supported.)

use crate::abi::*;
use crate::errno;
use core::mem::transmute;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// Where the address of a real function is kept.
#[derive(Debug)]
#[repr(transparent)]
pub struct Slot(AtomicPtr<libc::c_void>);

impl Slot {
    /// An empty slot.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// The function called `name` (terminated), looked up on first use; null if no library has it.
    #[inline(always)]
    pub fn get(&self, name: &'static core::ffi::CStr) -> Ptr {
        let found = self.0.load(Relaxed);
        if found.is_null() { self.look_up(name) } else { found }
    }

    /// Puts a function there that was found elsewhere.
    pub fn put(&self, function: Ptr) {
        self.0.store(function, Relaxed);
    }

    #[cold]
    fn look_up(&self, name: &'static core::ffi::CStr) -> Ptr {
        let found = errno::preserve(|| {
            let mut found = core::ptr::null_mut();
            if name.to_bytes().starts_with(b"pthread_cond_") {
                // SAFETY: both names are terminated; `RTLD_NEXT` is valid in a loaded library.
                found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name.as_ptr(), c"GLIBC_2.3.2".as_ptr()) };
            }
            if found.is_null() {
                // SAFETY: as above.
                found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
            }
            found
        });
        self.0.store(found, Relaxed);
        found
    }
}

/// What a call gives when no library has the function: an error of the right shape.
trait Missing {
    fn missing() -> Self;
}
macro_rules! missing {
    ($($t:ty),*) => { $(impl Missing for $t {
        fn missing() -> Self { errno::set(libc::ENOSYS); (-1i64) as $t }
    })* };
}
missing!(Int, UInt, Long, SWord, Ptr);

macro_rules! slots {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        /// One slot per function.
        #[allow(non_upper_case_globals)]
        mod slot {
            $(pub static $name: crate::real::Slot = crate::real::Slot::new();)*
        }
        $(
            #[doc = concat!("The real `", stringify!($name), "`.")]
            ///
            /// # Safety
            /// As for the C function.
            #[inline(always)]
            pub unsafe fn $name($($arg: $type),*) -> $result {
                let f = slot::$name.get(const { name_of(concat!(stringify!($name), "\0")) });
                if f.is_null() {
                    return Missing::missing();
                }
                // SAFETY: the symbol of that name in libc has this C signature (see `table`), and the caller
                // vouches for the arguments.
                unsafe { transmute::<Ptr, unsafe extern "C-unwind" fn($($type),*) -> $result>(f)($($arg),*) }
            }
        )*
        /// Fills every slot.
        pub fn look_up_all() {
            $(slot::$name.get(const { name_of(concat!(stringify!($name), "\0")) });)*
        }
    };
}
#[allow(non_snake_case)]
mod functions {
    use super::*;
    crate::symbol_table!([slots]);
}
pub use functions::*;

const fn name_of(terminated: &'static str) -> &'static core::ffi::CStr {
    match core::ffi::CStr::from_bytes_with_nul(terminated.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}
