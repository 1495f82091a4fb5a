//! Samples taken inside strands, as `strand-rt` leaves them for the span runtime of the same thread.
//!
//! The runtime hands over a word of each thread ([`Word`]): while a strand runs it holds the stack address above which
//! frames belong to other tasks, otherwise 0. A sample of a running strand becomes a chain of calls and is counted in
//! the thread's [`StrandLog`], which the runtime reads and empties when the strand ends. The runtime is compiled by itself
//! and has these layouts too.

/// Changes with anything below.
pub const VERSION: u64 = 2;
/// Chains that a strand may have between two looks; samples beyond are counted as lost.
pub const ENTRIES_MAX: usize = 256;
/// Calls of a chain, the innermost first; what lies further out is left off.
pub const CALLS_MAX: usize = 48;
/// Calls that a thread may be told to be in; what lies further out is left off.
pub const INSIDE_MAX: usize = 64;
/// Marks functions in the table that are bodies of tasks: a chain ends there.
pub const BODY: u64 = 1 << 63;

/// Base of the strand that runs on a thread, or 0.
pub type Word = u64;

/// The samples of a strand.
#[derive(Debug)]
#[repr(C)]
pub struct StrandLog {
    /// Samples since the log was emptied, also those that are lost: each has cost the strand some time.
    pub taken: u64,
    /// Entries in use.
    pub len: u64,
    /// Samples that found no room, since the thread started.
    pub lost: u64,
    /// The entries.
    pub entries: [Entry; ENTRIES_MAX],
}

/// Samples with the same chain.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Entry {
    /// Never freed or changed.
    pub chain: *const Chain,
    /// How many.
    pub count: u64,
}

/// Calls that a sample was inside of.
#[derive(Debug)]
#[repr(C)]
pub struct Chain {
    /// Of the calls.
    pub hash: u64,
    /// How many.
    pub len: u64,
    /// The innermost first; room for `len` only.
    pub calls: [Call; CALLS_MAX],
}

/// A call: the function's number in the table, and the address behind the call instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Call {
    /// Number.
    pub function: u64,
    /// Address.
    pub site: u64,
}

/// A call that goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Inside {
    /// The call.
    pub call: Call,
    /// Where its return address lies.
    pub frame: u64,
}
