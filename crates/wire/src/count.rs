//! What `farsight count` counts, exactly, and how the counts travel.
//!
//! # Definitions
//! All five are defined by the executed instructions alone, so that single-stepping gives the same numbers.
//! - **instructions**: instructions that completed. A string instruction with a `rep` prefix is *one*,
//!   whatever its number of iterations (zero included). A system call is one. An instruction that faults is
//!   not counted until it is executed again and completes. One that is interrupted and restarted by the kernel
//!   (a `rep` string by a signal, a restarted system call) is one in total.
//! - **blocks**: executed control-transfer instructions, taken or not: `jmp`, conditional jumps, `jrcxz`,
//!   `loop`, `call`, `ret`. Each ends one basic block. `syscall` does not, nor does a fault or a signal.
//! - **calls**: executed `call` instructions, direct and indirect.
//! - **loads**: memory reads by instruction operands, one per operand whatever its width; implicit stack
//!   operands count (`pop`, `ret`, `leave`: one load). A read-modify-write operand is one load and one store.
//!   A `rep` string instruction counts each iteration's (`rep movsb` of n bytes: n loads and n stores).
//!   Conditional, masked, gather and scatter operands count as one, whatever their condition or mask;
//!   `cmpxchg` counts a load and a store. `lea`, `nop`, prefetches and cache hints count none; instruction
//!   fetch and what the kernel does for a system call or a signal neither.
//! - **stores**: memory writes likewise (`push`, `call`: one store).
//!
//! # Transport
//! Every way of leaving a superblock has a counter index. [`ExitDesc`] says what one execution of the path
//! from the superblock's start to that exit adds; each thread counts executions in its slab. The totals are
//! the sum over threads and exits of `count x desc`, plus each thread's [`ThreadTotals::extra`], which takes
//! what has no static description (iterations of string instructions, paths cut short by a fault or signal).

/// Checks that both sides look at the same thing.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSCOUNT1");

/// Five sums. Arithmetic wraps: [`ThreadTotals::extra`] may hold negative corrections.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Completed instructions.
    pub instructions: u64,
    /// Control transfers.
    pub blocks: u64,
    /// Memory reads.
    pub loads: u64,
    /// Memory writes.
    pub stores: u64,
    /// `call` instructions.
    pub calls: u64,
}

impl Totals {
    /// Adds `times` executions of `other`.
    pub fn add_scaled(&mut self, other: &Totals, times: u64) {
        let fields = [
            (&mut self.instructions, other.instructions),
            (&mut self.blocks, other.blocks),
            (&mut self.loads, other.loads),
            (&mut self.stores, other.stores),
            (&mut self.calls, other.calls),
        ];
        for (sum, part) in fields {
            *sum = sum.wrapping_add(part.wrapping_mul(times));
        }
    }
}

/// What one execution of one exit's path adds.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExitDesc {
    /// Number of the function whose instructions these are; 0 where functions are not counted.
    pub function: u32,
    /// Keeps the size at 16 bytes.
    pub reserved: u32,
    /// Instructions on the path.
    pub instructions: u16,
    /// Loads on the path, iterations of string instructions excepted.
    pub loads: u16,
    /// Stores on the path, likewise.
    pub stores: u16,
    /// Control transfers on the path.
    pub blocks: u8,
    /// Calls on the path.
    pub calls: u8,
}

impl From<ExitDesc> for Totals {
    fn from(d: ExitDesc) -> Totals {
        Totals {
            instructions: d.instructions.into(),
            blocks: d.blocks.into(),
            loads: d.loads.into(),
            stores: d.stores.into(),
            calls: d.calls.into(),
        }
    }
}

/// First page of the shared mapping.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Header {
    /// [`MAGIC`], written by the launcher.
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// Entries of the exit table in use; written by the engine after the entry itself.
    pub exits: u32,
    /// Entries of the table of ended threads in use.
    pub ended: u32,
    /// Threads that ever ran, the main one included.
    pub threads: u32,
    /// Slabs that were ever taken: those beyond hold nothing.
    pub slabs: u32,
    /// Bits of [`problem`].
    pub problems: u32,
    /// Bytes of the memory map at [`MAPS_OFFSET`].
    pub maps_bytes: u64,
    /// Sum over ended threads that found the table full.
    pub overflow: Totals,
    /// Entries of the table of splits in use.
    pub splits: u32,
    /// Keeps what follows aligned.
    pub reserved: u32,
    /// Questions about functions.
    pub ask: Ask,
}

/// A question from inside the program: which function holds an address? The launcher answers; both wait by futex on
/// the numbers. One question at a time.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// Number of the last question.
    pub asked: u32,
    /// Number of the last question that was answered.
    pub answered: u32,
    /// The address asked about.
    pub address: u64,
    /// Changes whenever memory has been remapped: what was read of the process's map before is void.
    pub generation: u64,
    /// The answer holds for addresses from here ...
    pub start: u64,
    /// ... to here.
    pub end: u64,
    /// The function's first instruction; 0 when not known.
    pub entry: u64,
    /// Its number, from 1.
    pub function: u32,
    /// Keeps the size a multiple of 8.
    pub reserved: u32,
}

/// Some instructions of an exit's path belong to another function than the exit's.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Split {
    /// Number of the exit.
    pub exit: u32,
    /// The other function.
    pub function: u32,
    /// How many of the path's instructions are its.
    pub instructions: u32,
}

/// What is counted at a function's calls and returns.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct FunctionSums {
    /// Times that it was entered.
    pub calls: u64,
    /// Instructions while it was active, by all threads; what is active at the end is not in it.
    pub total: u64,
}

/// An activation on a thread's shadow stack.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// Where its return address lies.
    pub slot: u64,
    /// The thread's instructions when it was entered.
    pub entered: u64,
    /// Its function.
    pub function: u32,
    /// 1 for the outermost activation of its function in this thread.
    pub outermost: u32,
}

/// Bits of [`Header::problems`].
pub mod problem {
    /// The engine met something that it cannot run, and handed the program back to native execution: counts are partial.
    pub const DETACHED: u32 = 1;
    /// Counters ran out; the engine went on with slower ones.
    pub const COUNTERS_FULL: u32 = 2;
    /// A table of functions ran out, or a recursion was too deep: what functions executed is partial.
    pub const FUNCTIONS_PARTIAL: u32 = 4;
}

/// A thread that has ended.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadRecord {
    /// Kernel thread id.
    pub tid: u32,
    /// 1 when the record is complete.
    pub done: u32,
    /// What it executed.
    pub totals: Totals,
}

/// First shared page of a slab.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct ThreadTotals {
    /// Kernel thread id of the thread that holds the slab; 0 when it is free or not counted.
    pub tid: u32,
    /// Frames on the thread's shadow stack.
    pub depth: u32,
    /// What has no static description.
    pub extra: Totals,
    /// Instructions so far, where functions are counted.
    pub running: u64,
}

/// Offset of the table of ended threads.
pub const ENDED_OFFSET: u64 = 4096;
/// Its capacity.
pub const ENDED_MAX: u64 = 32768;
/// Offset of the memory map (the text of `/proc/self/maps` at the end).
pub const MAPS_OFFSET: u64 = 2 << 20;
/// Room for it.
pub const MAPS_MAX: u64 = 2 << 20;
/// Offset of the exit table.
pub const EXITS_OFFSET: u64 = 4 << 20;
/// Its capacity: one entry per counter.
pub const EXITS_MAX: u64 = crate::slab::COUNTERS_MAX;
/// Offset of the table of splits.
pub const SPLITS_OFFSET: u64 = 72 << 20;
/// Its capacity.
pub const SPLITS_MAX: u64 = 1 << 20;
/// Offset of the sums of functions, by number.
pub const FUNCTIONS_OFFSET: u64 = 88 << 20;
/// Their capacity.
pub const FUNCTIONS_MAX: u64 = 1 << 20;
/// Offset of the counters of ended threads, where functions are counted.
pub const ENDED_COUNTERS_OFFSET: u64 = 106 << 20;
/// Offset in a slab of the thread's shadow stack, where functions are counted.
pub const SHADOW_OFFSET: u64 = 16 << 20;
/// Frames on it.
pub const SHADOW_MAX: u64 = (crate::slab::STRIDE - SHADOW_OFFSET) / size_of::<Frame>() as u64;
/// Counters of a thread where functions are counted: the rest of its slab is the shadow stack.
pub const FUNCTION_COUNTERS_MAX: u64 = (SHADOW_OFFSET - crate::slab::COUNTERS_OFFSET) / 8;
/// Length of the fixed part of the mapping.
pub const FIXED_BYTES: u64 = 128 << 20;

const _: () = assert!(EXITS_OFFSET + EXITS_MAX * size_of::<ExitDesc>() as u64 <= FIXED_BYTES);
const _: () = assert!(ENDED_OFFSET + ENDED_MAX * size_of::<ThreadRecord>() as u64 <= MAPS_OFFSET);
const _: () = assert!(EXITS_OFFSET + EXITS_MAX * size_of::<ExitDesc>() as u64 <= SPLITS_OFFSET);
const _: () = assert!(SPLITS_OFFSET + SPLITS_MAX * size_of::<Split>() as u64 <= FUNCTIONS_OFFSET);
const _: () =
    assert!(FUNCTIONS_OFFSET + FUNCTIONS_MAX * size_of::<FunctionSums>() as u64 <= ENDED_COUNTERS_OFFSET);
const _: () = assert!(ENDED_COUNTERS_OFFSET + FUNCTION_COUNTERS_MAX * 8 <= FIXED_BYTES);
const _: () = assert!(size_of::<ExitDesc>() == 16);
const _: () = assert!(size_of::<Header>() <= 4096);
