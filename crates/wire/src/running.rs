//! How a runtime inside the program asks where its thread's number of executed instructions is.
//!
//! `syscall(NUMBER, MAGIC, &word)`: no such system call exists, so the kernel says so; under an engine that counts,
//! `word` then holds the address of the number. The runtime is compiled by itself and has these numbers too.

/// Number of the system call.
pub const NUMBER: u64 = 0xfa51;
/// Its first argument.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSRUNNIN");
