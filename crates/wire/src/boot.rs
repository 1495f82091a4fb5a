//! The boot block: what the launcher tells the engine when it points the stopped program at it.
//!
//! The launcher writes it into the program's memory beside the engine's image and passes its address in `rdi`.
//! All other registers are dead at that moment; the program's own are in [`Boot::regs`].

/// `"FARSIGHT"` read as a little-endian number.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FARSIGHT");

/// The program's general registers, in the order of their machine numbers, then pc and flags.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Regs {
    /// rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
    pub gpr: [u64; 16],
    /// The first instruction: the interpreter's entry, or the program's when it is static.
    pub rip: u64,
    /// The flags at that instruction.
    pub rflags: u64,
}

/// What the engine is told.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Boot {
    /// [`MAGIC`].
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// Bits of [`flags`].
    pub flags: u32,
    /// Where the program starts and with what.
    pub regs: Regs,
    /// The engine's own image.
    pub image_base: u64,
    /// Its length, in whole pages.
    pub image_bytes: u64,
    /// The shared mapping.
    pub shared_base: u64,
    /// Length of the part before the slabs.
    pub shared_fixed_bytes: u64,
    /// Slabs behind the fixed part.
    pub slab_count: u64,
    /// Process id of the launcher, the program's parent.
    pub launcher_pid: u32,
    /// Process id of the launcher's parent: whom the program takes for its own.
    pub launcher_parent: u32,
    /// The mapping of [`crate::follow`]; 0 when children are not followed.
    pub follow_base: u64,
    /// Number of this image there.
    pub follow_image: u32,
    /// Keeps the size a multiple of 8.
    pub reserved: u32,
}

/// Bits of [`Boot::flags`].
pub mod flags {
    /// Count nothing: the engine alone.
    pub const NO_CLIENT: u32 = 1;
    /// Say on standard error what the engine does.
    pub const VERBOSE: u32 = 2;
    /// Watch out for code that keeps flags across returns, instead of relying on the ABI blindly.
    pub const WATCH_FLAGS: u32 = 4;
    /// Profile children too.
    pub const FOLLOW: u32 = 8;
    /// Copy the memory map into the shared memory at the end, for naming functions.
    pub const WANT_MAPS: u32 = 16;
    /// The launcher has set a parent-death signal, which the program must not see.
    pub const DEATH_SIGNAL: u32 = 64;
    /// Count by function.
    pub const FUNCTIONS: u32 = 128;
    /// Keep each thread's number of instructions where the program can read it, and nothing else.
    pub const RUNNING: u32 = 256;
    /// Have a bug, for tests of what happens then.
    pub const FAIL: u32 = 512;
    /// The bits from here on: how large the cache may become, in units of [`CACHE_UNIT_SHIFT`]; 0 for the usual size.
    /// For tests of what happens when it is full.
    pub const CACHE_SHIFT: u32 = 16;
    /// log2 of the unit, in bytes.
    pub const CACHE_UNIT_SHIFT: u32 = 14;
    /// One instruction per block: slow, for finding mistranslations.
    pub const SINGLE: u32 = 32;
}
