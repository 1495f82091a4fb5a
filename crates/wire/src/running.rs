//! How a runtime inside the program asks where its thread's number of executed instructions is.
//!
//! `syscall(NUMBER, MAGIC, &word)`: no such system call exists, so the kernel says so; under an engine that counts,
//! `word` then holds the address of the number. The runtime is compiled by itself and has these numbers too.
//!
//! It may also ask to be told of calls: `syscall(NUMBER, TABLE, functions, count)`, once, with pairs of addresses where
//! functions start and end, in order; and as a third argument of the first call, in each thread, the address of a
//! [`CallLog`]. Calls of these functions that have returned are then added up there, by function and place of the call,
//! until the runtime looks at them and takes them out; a call inside of which the strand ended may stay in it, so that its
//! return is seen.
//!
//! And it may say which code is its own: `syscall(NUMBER, OWN, ranges, count)`, with pairs of addresses in order, before any
//! of that code runs. Instructions there are not counted. A later call replaces the ranges.

/// Number of the system call.
pub const NUMBER: u64 = 0xfa51;
/// Its first argument.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSRUNNIN");
/// Instead of it: the functions whose calls matter.
pub const TABLE: u64 = u64::from_le_bytes(*b"FSCALLED");
/// Instead of it: where code lies that does not count.
pub const OWN: u64 = u64::from_le_bytes(*b"FSOURCOD");
/// Entries of a log; only those that are used take memory. Calls beyond are part of their caller, and counted.
pub const CALLS_MAX: usize = 1 << 14;
/// Calls with fewer instructions are part of their caller.
pub const TINY: u64 = 100;

/// The calls of one thread.
///
/// ```text
/// kept, kept, ...   calls that a strand ended inside of, the outermost first; they may have returned since
/// then in any order, inside of them: calls that have returned, added up by place, and calls that go on
/// ```
#[derive(Debug)]
#[repr(C)]
pub struct CallLog {
    /// How many entries there are.
    pub len: u64,
    /// The innermost call that goes on, counted from 1; 0 if there is none.
    pub open: u64,
    /// Entries before this one are inside of kept calls that have returned.
    pub settled: u64,
    /// Calls that found no room.
    pub dropped: u64,
    /// The entries.
    pub calls: [Call; CALLS_MAX],
}

/// States of a call.
pub mod state {
    /// It goes on.
    pub const OPEN: u64 = 0;
    /// It goes on, and a strand has ended inside of it: its runtime knows it.
    pub const KEPT: u64 = 1;
    /// All from one place that have returned.
    pub const RETURNED: u64 = 2;
    /// One that was kept, and has returned.
    pub const ENDED: u64 = 3;
}

/// One call that goes on, or all from one place that have returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Call {
    /// Its number in the table.
    pub function: u64,
    /// An address in or behind the call instruction.
    pub site: u64,
    /// Where the return address lies.
    pub frame: u64,
    /// See [`state`].
    pub state: u64,
    /// The call around it that goes on, counted from 1; of one that has ended: where what is inside of it ends.
    pub link: u64,
    /// The thread's number of instructions at its start, or when the strand started.
    pub begun: u64,
    /// Instructions of calls inside it that have returned.
    pub inside: u64,
    /// Calls, and those of them that are not inside another one from the same place.
    pub count: u64,
    /// See `count`.
    pub top: u64,
    /// Instructions without those of other calls in the log.
    pub own: u64,
    /// All instructions of those that count as `top`.
    pub all: u64,
}
