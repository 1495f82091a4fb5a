//! What a program did: steps of all its threads in one total order.
//!
//! A trace is the common input of the oracle ([`crate::naive`]) and of the algorithm ([`crate::core`]), so
//! that they can be compared activation by activation. Real runs recorded under a scheduler lock use the
//! binary form ([`binary`]), tests the text form ([`text`]); [`shape`] turns arbitrary operations into a
//! well-formed trace, for random and exhaustive tests.
//!
//! # Well-formed traces
//! - A thread's first step is [`Event::ThreadStart`], its last, if it ends, [`Event::ThreadEnd`]. Thread
//!   numbers are never used twice.
//! - [`Event::Return`] and [`Event::TailCall`] need a pending activation above the root; where there is none
//!   (or one of a signal handler, which leaves by [`Event::SignalExit`]) they do nothing.
//! - Stack pointers fall along the activations of one signal context: the program's stack grows down.

pub mod binary;
pub mod shape;
pub mod text;

use crate::Routine;

/// One step of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Who.
    pub thread: u32,
    /// What.
    pub event: Event,
}

/// What a thread can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The thread begins, with `routine` as its root activation.
    ThreadStart {
        /// Stands for the thread as a whole.
        routine: Routine,
    },
    /// The thread ends; all pending activations end with it, the root last.
    ThreadEnd,
    /// A routine is called.
    Call {
        /// The callee.
        routine: Routine,
        /// Stack pointer before the call; the activation is dead once the stack pointer is at or above it.
        sp: u64,
        /// The callee is folded: accesses up to its return are nobody's.
        folded: bool,
    },
    /// The top activation returns.
    Return,
    /// The top activation ends by jumping to another routine, which returns to the same caller.
    TailCall {
        /// The routine jumped to.
        routine: Routine,
        /// As in [`Event::Call`]; an activation that replaces a folded one starts from its caller's state.
        folded: bool,
    },
    /// The stack pointer rose to `sp` (longjmp, exception): dead activations of this signal context end.
    Unwind {
        /// The new stack pointer.
        sp: u64,
    },
    /// A signal handler begins. It is a callee of what it interrupts, and never folded.
    SignalEnter {
        /// The handler.
        routine: Routine,
    },
    /// The innermost handler ends, by sigreturn or by jumping out of it, and what it called with it.
    SignalExit,
    /// The program reads memory.
    Read {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// The program writes memory. A read-modify-write is a read, then a write.
    Write {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// A system call of this thread reads memory.
    KernelRead {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// A system call of this thread fills memory.
    KernelWrite {
        /// First byte.
        address: u64,
        /// Bytes.
        size: u64,
    },
    /// Memory goes away or comes anew (munmap, mmap, MADV_DONTNEED): its cells have no past.
    Reset {
        /// First byte.
        address: u64,
        /// Bytes; cells not wholly inside keep their past.
        size: u64,
    },
    /// Work is done.
    Cost {
        /// Which cost.
        which: u8,
        /// How much of it.
        amount: u64,
    },
}
