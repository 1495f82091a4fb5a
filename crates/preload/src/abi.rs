//! The C types that the table of interposed functions is written in.
//!
//! A wrapper forwards its arguments untouched, so every pointer is the same to it. Five words keep the table
//! readable; on x86-64 each of them is passed exactly like the type in the C header.

/// Any object or function pointer.
pub type Ptr = *mut libc::c_void;
/// C `int` (also file descriptors, clock ids, flags).
pub type Int = libc::c_int;
/// C `unsigned int`.
pub type UInt = libc::c_uint;
/// C `long`.
pub type Long = libc::c_long;
/// `size_t`, `pthread_t`, `pthread_key_t` and other unsigned words.
pub type Word = usize;
/// `ssize_t`.
pub type SWord = isize;
