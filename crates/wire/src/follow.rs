//! Following children: how a process under the engine tells the launcher that it is about to become another program,
//! or has become another process.
//!
//! One mapping for all processes of a run. A thread that has a request claims a slot, fills it in, rings the bell and
//! waits on the slot's state; the launcher does the rest:
//! ```text
//! fork   the child asks ──> launcher makes shared memory for it, answers with a descriptor to open, and a number
//! exec   the thread asks ──> launcher attaches ──> the thread execs ──> launcher injects the engine and detaches
//!                                                    └ or fails, and says so ──> launcher detaches, frees the slot
//! ```
//! A launcher that has ended does not answer: askers look for that, and go on natively.

use core::sync::atomic::{AtomicU32, AtomicU64};

/// Requests under way at one time; more wait for a free slot.
pub const SLOTS: usize = 64;
/// Program images whose end is noted; later ones are followed all the same.
pub const IMAGES_MAX: usize = 16384;

/// States of a slot.
pub mod state {
    /// Nobody's.
    pub const FREE: u32 = 0;
    /// Being filled in.
    pub const CLAIMED: u32 = 1;
    /// The launcher's turn.
    pub const ASKED: u32 = 2;
    /// Yes: see [`super::Slot::answer`].
    pub const GRANTED: u32 = 3;
    /// No: go on natively.
    pub const REFUSED: u32 = 4;
    /// The `execve` failed: detach.
    pub const FAILED: u32 = 5;
}

/// What is asked.
pub mod kind {
    /// This process is the child of a fork.
    pub const FORK: u32 = 1;
    /// This thread is about to call `execve`.
    pub const EXEC: u32 = 2;
}

/// A request.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Slot {
    /// One of [`state`]; waited on by futex.
    pub state: AtomicU32,
    /// One of [`kind`].
    pub kind: AtomicU32,
    /// Whose it is.
    pub pid: AtomicU32,
    /// The thread.
    pub tid: AtomicU32,
    /// Number of the image that asks.
    pub image: AtomicU32,
    /// Bits of `boot::flags` that the next image takes over.
    pub flags: AtomicU32,
    /// For `execve`: address of the path, and the descriptor of the folder that it starts from.
    pub path: AtomicU64,
    /// See `path`.
    pub folder: AtomicU64,
    /// For a fork: the descriptor of the shared memory, in the launcher.
    pub answer: AtomicU32,
    /// For a fork: the number of the new image.
    pub answer_image: AtomicU32,
}

/// How an image ended, as far as it knew.
#[repr(C)]
#[derive(Debug, Default)]
pub struct End {
    /// 0 while unknown; 0x100 | exit status.
    pub status: AtomicU32,
    /// Keeps the size a multiple of 8.
    pub reserved: AtomicU32,
    /// CPU time of the process when it ended or was replaced, nanoseconds.
    pub cpu_ns: AtomicU64,
}

/// The mapping.
#[repr(C)]
#[derive(Debug)]
pub struct Control {
    /// A random number: a process that has it at this address is one of ours.
    pub nonce: AtomicU64,
    /// Grows with every request; the launcher waits on it.
    pub bell: AtomicU32,
    /// Nonzero when the launcher answers no more.
    pub closed: AtomicU32,
    /// Requests.
    pub slots: [Slot; SLOTS],
    /// Ends of images, by number.
    pub ends: [End; IMAGES_MAX],
}

/// Length of the mapping.
pub const BYTES: u64 = (size_of::<Control>() as u64).next_multiple_of(4096);
