//! What the engine keeps per thread, reached through gs.
//!
//! Code in the cache addresses these fields by constant displacements from the gs base, so that no register
//! is taken from the program to find them. The offsets come from `offset_of!`; nothing else may assume a
//! layout. Each thread writes its own state only; others look at it under the engine lock.
//!
//! At every boundary between two application instructions all of the program's registers hold the program's
//! values. Inside the short sequences that replace indirect branches, `r11` and `rcx` are borrowed and their
//! values lie in `spill_t` and `spill_s`.

use crate::handback::Leaving;
use crate::signal::ThreadSignals;
use core::mem::offset_of;

/// Offset of the return cache in a slab; see `returns.rs`.
pub const RETURN_CACHE_OFFSET: u64 = 0x10_0000;
/// Its length.
pub const RETURN_CACHE_BYTES: u64 = 0x20_0000;
/// Offset of the client's own memory in a slab.
pub const CLIENT_AREA_OFFSET: u64 = 0x8000;
/// Its length.
pub const CLIENT_AREA_BYTES: u64 = 0x8000;
/// Top of the engine's stack in a slab.
pub const ENGINE_STACK_TOP: u64 = 0xe_0000;
/// The engine's alternate signal stack in a slab.
pub const SIGNAL_STACK_OFFSET: u64 = 0xe_0000;
/// Its length.
pub const SIGNAL_STACK_BYTES: u64 = 0x2_0000;

/// Why the cache called the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Reason {
    /// A direct exit without a link; `exit_id` says which.
    Exit = 0,
    /// An indirect branch that the table does not know; `target` says where to.
    Indirect = 1,
    /// A system call that the engine or the client wants to see; `exit_id` says which site.
    Syscall = 2,
    /// A client's inline call; `exit_id` is the client's.
    Client = 3,
    /// A new thread or the first one: everything is set up, find the first block.
    Start = 4,
    /// A cached indirect branch that has not met its target yet; `exit_id` says which, `target` where to.
    Cached = 7,
    /// A system call that returned EFAULT, perhaps because of a write protection of ours.
    Efault = 6,
    /// A new thread, for the first time.
    ThreadStart = 5,
    /// An indirect call that the table does not know, where calls are told from jumps.
    Call = 8,
    /// Go on at `target`: no branch of the program leads there.
    Resume = 9,
}

/// Room for xmm0 to xmm15.
#[repr(C, align(16))]
pub struct VectorArea(pub [[u64; 2]; 16]);

/// One thread's state. Lies at the start of its slab.
#[repr(C, align(64))]
pub struct ThreadState {
    /// Its own address.
    pub this: *mut ThreadState,
    /// The program's registers while the engine runs, by machine number.
    pub gpr: [u64; 16],
    /// The program's flags while the engine runs.
    pub rflags: u64,
    /// Cache address to go on at.
    pub resume: u64,
    /// Value of r11 inside an indirect branch.
    pub spill_t: u64,
    /// Value of rcx inside an indirect branch.
    pub spill_s: u64,
    /// Value of any other borrowed register.
    pub spill_x: u64,
    /// Application target of an indirect branch.
    pub target: u64,
    /// Argument of the call into the engine.
    pub exit_id: u32,
    /// Unused; keeps `pend` aligned.
    pub reserved: u32,
    /// Nonzero when a signal waits to be delivered.
    pub pend: u64,
    /// Where the engine's stack starts.
    pub engine_sp: u64,
    /// The engine's entry, `extern "C" fn(*mut ThreadState, reason)`.
    pub entry: usize,
    /// Assembly entries of the engine, jumped to through gs.
    pub enter_exit: usize,
    /// See `trampoline.rs`.
    pub enter_indirect: usize,
    /// See `trampoline.rs`.
    pub enter_syscall: usize,
    /// See `trampoline.rs`.
    pub enter_client: usize,
    /// The signal handler.
    pub master: usize,
    /// Number of the last system call made from the cache.
    pub syscall: u64,
    /// See `trampoline.rs`.
    pub enter_efault: usize,
    /// See `trampoline.rs`.
    pub enter_cached: usize,
    /// Emitted routine for returns whose landing does not match.
    pub return_miss: u64,
    /// Emitted routine for returns whose slot of the return cache is empty.
    pub return_fill: u64,
    /// The engine.
    pub engine: usize,
    /// Which slab this is.
    pub slab: u32,
    /// Kernel thread id.
    pub tid: u32,
    /// Generation of the cache that this thread is in, or was in before it entered the engine.
    pub generation: u32,
    /// Values of the registers that instrumentation borrows, by machine number.
    pub borrow: [u64; 16],
    /// Argument of a clean call.
    pub call_value: u64,
    /// Registers that are borrowed at a clean call, as bits.
    pub call_borrowed: u64,
    /// rcx before a repeated string instruction whose length shows only afterwards.
    pub string_count: u64,
    /// The low vector registers while the engine runs; it is compiled for SSE2 and touches nothing wider.
    pub xmm: VectorArea,
    /// Signals.
    pub signals: ThreadSignals,
    /// On the way back to native execution.
    pub leaving: Leaving,
    /// Program address to go on at if the engine has a bug; 0 where that is not known.
    pub back: u64,
}

/// Displacements from gs.
pub mod off {
    use super::*;
    /// Offset of a general register's slot.
    pub const fn gpr(n: u8) -> i32 {
        (offset_of!(ThreadState, gpr) + n as usize * 8) as i32
    }
    /// Offset of a borrowed register's slot.
    pub const fn borrow(n: u8) -> i32 {
        (offset_of!(ThreadState, borrow) + n as usize * 8) as i32
    }
    macro_rules! offsets { ($($name:ident = $field:ident),* $(,)?) => {
        $(#[doc = concat!("Offset of `", stringify!($field), "`.")]
        pub const $name: i32 = offset_of!(ThreadState, $field) as i32;)*
    } }
    offsets! { THIS = this, GPR = gpr, RFLAGS = rflags, RESUME = resume, SPILL_T = spill_t, SPILL_S = spill_s,
    SPILL_X = spill_x, TARGET = target, EXIT_ID = exit_id, PEND = pend, ENGINE_SP = engine_sp, ENTRY = entry,
    ENTER_EXIT = enter_exit, ENTER_INDIRECT = enter_indirect, ENTER_SYSCALL = enter_syscall,
    ENTER_CLIENT = enter_client, RETURN_MISS = return_miss, MASTER = master, SYSCALL = syscall, ENTER_EFAULT = enter_efault, ENTER_CACHED = enter_cached, XMM = xmm,
    CALL_VALUE = call_value, CALL_BORROWED = call_borrowed, STRING_COUNT = string_count }
}

const _: () = assert!(size_of::<ThreadState>() <= CLIENT_AREA_OFFSET as usize);
const _: () = assert!(SIGNAL_STACK_OFFSET + SIGNAL_STACK_BYTES <= RETURN_CACHE_OFFSET);
const _: () = assert!(RETURN_CACHE_OFFSET + RETURN_CACHE_BYTES == wire::slab::PRIVATE_BYTES);

/// The current thread's state.
///
/// # Safety
/// gs must already point at it: true in all engine code after the first instructions of a thread.
pub unsafe fn current() -> *mut ThreadState {
    let p;
    // SAFETY: reads `this` through gs, valid by the caller's word.
    unsafe { core::arch::asm!("mov {}, gs:[{}]", out(reg) p, const off::THIS, options(nostack, readonly)) };
    p
}
