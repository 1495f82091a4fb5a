//! Every event of a run, one after the other: what the naive client writes and tests read.
//!
//! A header, then [`Event`]s in the order in which threads took their places (one counter for all). A thread notes an
//! event before it happens, but for the accesses of `repe cmps` and `repne scas` and what follows a system call.

/// `"FSTRACE1"` read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSTRACE1");
/// Offset of the first event.
pub const EVENTS_OFFSET: u64 = 4096;
/// Events that fit: 4 GB of sparse memory.
pub const EVENTS_MAX: u64 = 1 << 27;
/// Length of the part of the shared memory before the slabs.
pub const FIXED_BYTES: u64 = EVENTS_OFFSET + EVENTS_MAX * size_of::<Event>() as u64;

/// The first bytes of the shared memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// Unused.
    pub reserved: u32,
    /// Places taken; more than [`EVENTS_MAX`] when some events were lost.
    pub events: u64,
}

/// What happened, as numbers of [`Event::what`].
pub mod what {
    /// A load of `length` bytes at `address`.
    pub const READ: u8 = 1;
    /// A store.
    pub const WRITE: u8 = 2;
    /// A load and a store.
    pub const READ_WRITE: u8 = 3;
    /// A call of the routine at `address`; its return address is, or will be, at `length`.
    pub const CALL: u8 = 4;
    /// A return to `address`; the return address lies at `length`.
    pub const RETURN: u8 = 5;
    /// A jump to the routine at `address`, which will return to the caller of this one; return address at `length`.
    pub const TAIL: u8 = 6;
    /// System call number `address` is about to be made.
    pub const SYSCALL: u8 = 7;
    /// It returned `address`; number in `length`.
    pub const SYSCALL_DONE: u8 = 8;
    /// The kernel read `length` bytes at `address`.
    pub const KERNEL_READ: u8 = 9;
    /// The kernel wrote them.
    pub const KERNEL_WRITE: u8 = 10;
    /// The handler at `address` starts for the signal in `length`.
    pub const SIGNAL: u8 = 11;
    /// A handler returned to `address`.
    pub const SIGNAL_DONE: u8 = 12;
    /// The thread starts.
    pub const THREAD: u8 = 13;
    /// It ends.
    pub const THREAD_DONE: u8 = 14;
    /// A system call unmapped or emptied `length` bytes at `address`, or put something else there.
    pub const FORGOTTEN: u8 = 15;
}

/// What an access is for, as numbers of [`Event::class`].
pub mod class {
    /// An operand.
    pub const DATA: u8 = 0;
    /// `push`, `pop` and the like.
    pub const STACK: u8 = 1;
    /// A return address.
    pub const CONTROL: u8 = 2;
    /// Worked out at run time.
    pub const COMPLEX: u8 = 3;
}

/// One event.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Event {
    /// See [`what`]; 0 for a place that was taken and not filled.
    pub what: u8,
    /// See [`class`].
    pub class: u8,
    /// Unused.
    pub reserved: u16,
    /// Kernel thread id.
    pub tid: u32,
    /// The program's instruction; 0 where there is none.
    pub pc: u64,
    /// See [`what`].
    pub address: u64,
    /// See [`what`].
    pub length: u64,
}
