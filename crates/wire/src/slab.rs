//! Where per-thread memory lies.
//!
//! One shared mapping holds a fixed part (header, tables) followed by `count` slabs of [`STRIDE`] bytes, one
//! per live thread. The first [`PRIVATE_BYTES`] of a slab are covered by private memory of the engine when a
//! thread takes the slab (register slots, return cache, engine stacks); the rest stays shared with the
//! collector, so that results survive even SIGKILL.
//!
//! ```text
//! slab + 0         thread state, addressed through gs
//!      + 1 M       return cache
//!      + 3 M       shared: the thread's totals (one page)
//!      + 3 M + 4 K shared: the thread's counters, 8 bytes each
//! ```

/// Distance from one slab to the next. Counters are addressed by 32-bit displacements from gs.
pub const STRIDE: u64 = 32 << 20;
/// Bytes at the start of a slab that are private to the process.
pub const PRIVATE_BYTES: u64 = 3 << 20;
/// Offset of the thread's shared totals.
pub const TOTALS_OFFSET: u64 = PRIVATE_BYTES;
/// Offset of the thread's first counter.
pub const COUNTERS_OFFSET: u64 = PRIVATE_BYTES + 4096;
/// Counters in one slab.
pub const COUNTERS_MAX: u64 = (STRIDE - COUNTERS_OFFSET) / 8;
/// Slabs, hence live threads at one time. 128 GB of address space, of which only touched pages cost memory.
pub const COUNT_DEFAULT: u64 = 4096;
