//! Which user memory each x86-64 Linux system call reads and writes, and which loses its past.
//!
//! # Design constraints
//! - Pure data and arithmetic: `no_std`, no allocation, no I/O, no system calls. It runs inside the profiled program,
//!   on a small stack, between a system call and the next instruction.
//! - Asked after the call has returned: lengths are the real ones, from the result and from what the kernel left in
//!   length fields. What a pointer points to is read through [`Memory`], which may refuse; a refused read loses that
//!   range and nothing else.
//! - Never claims less than the kernel wrote on success. Exceptions, each for want of information, and all in
//!   [`limits`].
//!
//! ```
//! use syscalls::{Access, Call, Memory, Range, for_each_range};
//! struct Nothing;
//! impl Memory for Nothing {
//!     fn peek(&self, _: u64, _: &mut [u8]) -> bool { false }
//! }
//! let read = Call { number: 0, args: [3, 0x1000, 100, 0, 0, 0], result: 42 };
//! let mut seen = None;
//! for_each_range(&read, &Nothing, &mut |r| seen = Some(r));
//! assert_eq!(seen, Some(Range { addr: 0x1000, len: 42, access: Access::Write }));
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod control;
mod effect;
mod ioctl;
pub mod limits;
mod message;
mod past;
mod process;
mod table;
mod visit;

pub use past::{Loss, for_each_loss};
pub use visit::for_each_range;

/// A system call that has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number (rax before).
    pub number: u64,
    /// rdi, rsi, rdx, r10, r8, r9.
    pub args: [u64; 6],
    /// Its result (rax after): a value, or a negated errno from -4095 to -1.
    pub result: i64,
}

impl Call {
    /// Whether it failed.
    pub fn failed(&self) -> bool {
        (-4095..0).contains(&self.result)
    }
}

/// Direction, seen from user memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The kernel read it.
    Read,
    /// The kernel wrote it.
    Write,
}

/// A piece of user memory that the kernel touched; never empty, never at address 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Range {
    /// First byte.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// Direction.
    pub access: Access,
}

/// A reader of the program's memory.
pub trait Memory {
    /// Fills `into` from `addr`; false when some of it cannot be read. Must not fault on any address.
    fn peek(&self, addr: u64, into: &mut [u8]) -> bool;
}

/// The call's name in the kernel's table, if this crate knows the number.
pub fn name(number: u64) -> Option<&'static str> {
    table::entry(number).map(|e| e.0)
}

/// One more than the highest number known.
pub const NUMBERS_END: u64 = 470;
