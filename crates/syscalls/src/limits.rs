//! What the ranges cannot say.
//!
//! - **Completions elsewhere.** What `io_uring` rings and kernel AIO write arrives outside of any call; AIO buffers are
//!   reported when harvested by `io_getevents`, io_uring's not at all. Memory shared with other processes and mapped
//!   files change without calls.
//! - **Truncated addresses.** `accept`, `recvfrom` and their like store the address's full length even when the buffer
//!   was shorter; the buffer's own length is gone by then. The range is then too long by the difference.
//! - **`semctl(GETALL)` and `SETALL`**: the number of semaphores is not in the arguments.
//! - **ioctls** without an encoded size that are not in the table of well-known ones report nothing; drivers that
//!   ignore the size that their number encodes are reported as encoded.
//! - **Nested pointers** in rare structures (`bpf` programs, `keyctl`, `quotactl`, some `ioctl` and socket options) are
//!   not followed.
//! - **Failed calls** report the inputs that they may have read, and writes only where the kernel is known to write
//!   on failure too (remaining times of `nanosleep` and `select`).
//! - Strings longer than [`STRING_BYTES_MAX`] are reported up to there.

/// Longest NUL-terminated string followed: the kernel's own limit for one argument string of `execve`.
pub const STRING_BYTES_MAX: u64 = 128 * 1024;

/// Most elements of an array of pointers or vectors followed (the kernel's limit for vectors is 1024; argument lists may
/// be longer, and then only this many strings are reported).
pub const ELEMENTS_MAX: u64 = 4096;
