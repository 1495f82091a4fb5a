//! How growth profiles travel: the shared memory that the growth runtime fills and the collector reads.
//!
//! ```text
//! 0            Header
//! 4 K          Thread table            one entry per thread that ever ran, THREADS_MAX
//! 1 M          Module table            text: lines of /proc/self/maps, each written once
//! 16 M         Routine table           ROUTINES_MAX entries
//! 256 M        Windows                 one per slot: [`Hot`], the record buffer, [`Alike`] activations
//! 512 M        Points                  POINTS_MAX entries, appended by all threads
//! ```
//! Each live thread has a slot. Its window is mapped a second time into its slab, where gs reaches it.
//!
//! # Rules
//! - The collector may read after a SIGKILL at any moment. An entry of a table is written before the length that
//!   covers it; records become points in place, and those still in a buffer are counted by the collector: a
//!   killed program loses the activation that was being added, at most.
//! - A point belongs to one thread and only that thread writes it.
//! - Addresses, never names.

/// Checks that both sides look at the same thing.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSGROWT1");

/// What sizes count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Metric {
    /// Distinct cells first accessed with a read.
    Rms = 0,
    /// Also those written by other threads or the kernel since.
    Trms = 1,
    /// Both: a point for each.
    Both = 2,
}

/// What costs count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Cost {
    /// Control transfers, as [`crate::count`] defines blocks.
    Blocks = 0,
    /// Instructions.
    Instructions = 1,
    /// Loads and stores.
    Memory = 2,
    /// Ticks of the time-stamp counter; the collector turns them into nanoseconds.
    Time = 3,
}

/// First page.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Header {
    /// [`MAGIC`], written by the launcher.
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// A [`Metric`], written by the launcher.
    pub metric: u32,
    /// A [`Cost`], written by the launcher.
    pub cost: u32,
    /// log2 of the bytes of a cell, written by the launcher.
    pub cell_shift: u32,
    /// Bits of [`fold`], written by the launcher.
    pub fold: u32,
    /// Bits of a stamp, 3 to 32; fewer than 32 in tests. Written by the launcher.
    pub stamp_bits: u32,
    /// Entries of the thread table in use.
    pub threads: u32,
    /// Entries of the routine table in use.
    pub routines: u32,
    /// Entries of the table of points in use.
    pub points: u64,
    /// Bytes of the module table in use.
    pub module_bytes: u64,
    /// Lines of the module table.
    pub modules: u32,
    /// Bits of [`problem`].
    pub problems: u32,
    /// Activations that found the table of points full.
    pub dropped: u64,
    /// Time-stamp counter and clock (ns) at the start of the program, then at its end, for converting ticks.
    pub tsc: [u64; 2],
    /// See `tsc`.
    pub clock_ns: [u64; 2],
    /// Largest relative error of a size that merging points brought in, in millionths.
    pub size_error_ppm: u64,
    /// Renumberings of stamps, for tests and diagnostics.
    pub renumberings: u64,
}

/// Bits of [`Header::fold`].
pub mod fold {
    /// Memory accesses of allocators are nobody's input.
    pub const ALLOC: u32 = 1;
    /// Those of the dynamic linker neither.
    pub const LINKER: u32 = 2;
}

/// Bits of [`Header::problems`].
pub mod problem {
    /// The table of points was full: some activations are not in the profile.
    pub const POINTS_FULL: u32 = 1;
    /// The table of routines was full: further routines share the last entry.
    pub const ROUTINES_FULL: u32 = 2;
    /// The table of modules was full: further routines have no object.
    pub const MODULES_FULL: u32 = 4;
    /// The table of threads was full: further threads share the last entry.
    pub const THREADS_FULL: u32 = 8;
    /// A thread had no memory for its shadow: what it did is not in the profile.
    pub const THREAD_UNSEEN: u32 = 16;
}

/// A thread that ever ran.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// Its slot while it runs, plus 1; 0 once it has ended and all is in points.
    pub slot: u32,
    /// Cost from start to end, when it has ended.
    pub cost: u64,
}

/// A routine.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Routine {
    /// Address of its entry in the process.
    pub address: u64,
    /// Line of the module table that holds it, plus 1; 0 for none.
    pub module: u32,
    /// Bits of [`routine`].
    pub flags: u32,
}

/// Bits of [`Routine::flags`].
pub mod routine {
    /// Where a thread or the program starts, not something that was called.
    pub const ROOT: u32 = 1;
    /// Its accesses are nobody's input.
    pub const FOLDED: u32 = 2;
    /// It is a signal handler: the same address may also be a routine that is called.
    pub const HANDLER: u32 = 4;
}

/// All activations of a routine by a thread on inputs of one size.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Point {
    /// Index in the routine table plus 1; 0: not in use.
    pub routine: u32,
    /// Index in the thread table in bits 0 to 30; bit 31: the size is rms where both metrics were asked for.
    pub thread: u32,
    /// Size in cells.
    pub n: u64,
    /// Activations.
    pub calls: u64,
    /// Costs, callees included.
    pub cost: Stats,
    /// Costs without callees.
    pub own: Stats,
    /// Sum of costs of outermost activations.
    pub real_sum: u64,
    /// Cells written by other threads, by the kernel; then the same read by the routine itself.
    pub induced: [u64; 4],
}

/// Activations of one routine with the same size and costs, not yet in a point. Short routines return with the same
/// numbers again and again: emitted code counts them here. Two share a cache line.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Alike {
    /// Index in the routine table, with [`NESTED`].
    pub key: u32,
    /// Activations; 0: not in use.
    pub calls: u32,
    /// Size in cells.
    pub n: u64,
    /// Cost, callees included.
    pub cost: u64,
    /// Cost without callees.
    pub own: u64,
}

impl Alike {
    /// None of them.
    pub const NONE: Alike = Alike { key: 0, calls: 0, n: 0, cost: 0, own: 0 };

    /// One activation.
    pub fn one(key: u32, n: u64, cost: u64, own: u64) -> Alike {
        Alike { key, calls: 1, n, cost, own }
    }

    /// Whose they are: the index in the routine table.
    pub fn routine(&self) -> u32 {
        self.key & (RARE - 1)
    }

    /// How many of them no activation of the same routine was below.
    pub fn outermost(&self) -> u64 {
        if self.key & NESTED == 0 { self.calls.into() } else { 0 }
    }

    /// As it stands in a buffer.
    pub fn words(&self) -> [u64; ALIKE_WORDS] {
        [u64::from(self.key) | u64::from(self.calls) << 32, self.n, self.cost, self.own]
    }
}

/// What only activations with induced input have.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rare {
    /// Read memory size, where both metrics are computed.
    pub rms: u64,
    /// Induced reads: by other threads and by the kernel, in all and by the routine itself.
    pub induced: [u64; 4],
}

impl Rare {
    /// As it stands in a buffer.
    pub fn words(&self) -> [u64; RARE_WORDS] {
        let [a, b, c, d] = self.induced;
        [self.rms, a, b, c, d]
    }
}

/// Words of an [`Alike`] in a buffer.
pub const ALIKE_WORDS: usize = 4;
/// Words of a [`Rare`] in a buffer.
pub const RARE_WORDS: usize = 5;

/// What a buffer holds: [`Alike`] activations, with [`RARE`] followed by what they have.
pub fn entries(mut words: &[u64]) -> impl Iterator<Item = (Alike, Option<Rare>)> {
    core::iter::from_fn(move || {
        let (&[head, n, cost, own], rest) = words.split_first_chunk::<ALIKE_WORDS>()?;
        let alike = Alike { key: head as u32 & !RARE, calls: (head >> 32) as u32, n, cost, own };
        words = rest;
        if head as u32 & RARE == 0 {
            return Some((alike, None));
        }
        let (&[rms, a, b, c, d], rest) = words.split_first_chunk::<RARE_WORDS>()?;
        words = rest;
        Some((alike, Some(Rare { rms, induced: [a, b, c, d] })))
    })
}

/// Bit of [`Point::thread`].
pub const POINT_RMS: u32 = 1 << 31;

/// A sum with its spread.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Smallest.
    pub min: u64,
    /// Largest.
    pub max: u64,
    /// Sum, stopping at the largest number.
    pub sum: u64,
    /// Sum of squares, low half.
    pub sumsq_low: u64,
    /// Sum of squares, high half.
    pub sumsq_high: u64,
}

impl Default for Stats {
    fn default() -> Stats {
        Stats::EMPTY
    }
}

impl Stats {
    /// Of nothing.
    pub const EMPTY: Stats = Stats { min: u64::MAX, max: 0, sum: 0, sumsq_low: 0, sumsq_high: 0 };

    /// Adds one value, `times` times.
    #[inline]
    pub fn add(&mut self, value: u64, times: u64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
        let square = u128::from(value) * u128::from(value);
        let square = if times == 1 { square } else { square.saturating_mul(times.into()) };
        let (low, carry) = self.sumsq_low.overflowing_add(square as u64);
        self.sumsq_low = low;
        let high = (square >> 64) as u64;
        if high != 0 || carry {
            self.sumsq_high = self.sumsq_high.saturating_add(high).saturating_add(carry.into());
        }
    }

    /// Adds what another one holds.
    pub fn merge(&mut self, other: &Stats) {
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        let sum = self.sumsq().saturating_add(other.sumsq());
        self.sumsq_low = sum as u64;
        self.sumsq_high = (sum >> 64) as u64;
    }

    /// The sum of squares.
    pub fn sumsq(&self) -> u128 {
        u128::from(self.sumsq_high) << 64 | u128::from(self.sumsq_low)
    }
}

impl Point {
    /// Adds the activations of another point of the same size.
    pub fn merge(&mut self, other: &Point) {
        self.calls = self.calls.saturating_add(other.calls);
        self.cost.merge(&other.cost);
        self.own.merge(&other.own);
        self.real_sum = self.real_sum.saturating_add(other.real_sum);
        for (to, from) in self.induced.iter_mut().zip(other.induced) {
            *to = to.saturating_add(from);
        }
    }
}

/// Words that emitted code works with, reached through gs; and what the collector needs of a thread that was killed.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Hot {
    /// Address of the top frame.
    pub ssp: u64,
    /// Stamp given last, in both halves.
    pub counter: u64,
    /// Cost of the thread so far.
    pub cost: u64,
    /// Where the next record goes.
    pub log: u64,
    /// Where the buffer is full.
    pub log_end: u64,
    /// Bits of an address that tell cells apart.
    pub mask: u64,
    /// Base of the marks.
    pub marks: u64,
    /// Base of the sets of sharers.
    pub sharers: u64,
    /// The own bit in them.
    pub my_bit: u64,
    /// The own mark in all 8 bytes.
    pub me: u64,
    /// Address of the youngest frame with rare facts; 0 for none.
    pub cold: u64,
    /// 1 in both halves: what `counter` grows by.
    pub one: u64,
    /// `mask` outside of folded work.
    pub mask_on: u64,
    /// `me` outside of folded work.
    pub me_on: u64,
    /// What a set of sharers is when the thread is its only member.
    pub only_me: u64,
    /// Where costs are time: ticks that are not the program's.
    pub stolen: u64,
    /// Words that emitted code keeps registers in.
    pub kept: u64,
    /// See `kept`.
    pub count: u64,
    /// See `kept`.
    pub back: u64,
    /// See `kept`.
    pub address: u64,
    /// See `kept`.
    pub home: u64,
    /// See `kept`.
    pub cells: u64,
    /// All ones, or 0 while folded work runs: what accesses compare with is a stamp under this mask.
    pub alive: u64,
    /// The way back of code that ends an activation.
    pub way: u64,
    /// See `kept`.
    pub spare: u64,
    /// The stamp whose owner is searched.
    pub old: u64,
    /// See `kept`.
    pub index: u64,
    /// Address of the frame below the root.
    pub sentinel: u64,
    /// Index in the thread table.
    pub thread: u64,
    /// Entries of the table of [`Alike`] activations: it grows.
    pub alike: u64,
    /// Bits of an entry's offset in it.
    pub alike_mask: u64,
}

/// Of an activation's routine: another one of the same routine is below.
pub const NESTED: u32 = 1 << 31;
/// Of a frame's routine: the outermost activation whose accesses are deleted.
pub const FOLD: u32 = 1 << 30;
/// Of a routine in a buffer: a [`Rare`] follows.
pub const RARE: u32 = 1 << 29;

/// Offset in a slab at which the slot's window is mapped.
pub const HOT_OFFSET: u64 = crate::slab::PRIVATE_BYTES;
/// Offset of the record buffer in a window; [`Hot`] is at its start.
pub const LOG_OFFSET: u64 = 4096;
/// Its length. Emptying it takes the first-level cache, at most.
pub const LOG_BYTES: u64 = 16 << 10;
/// Bytes kept free at its end: one entry with rare facts, and one plain.
pub const LOG_SLACK_BYTES: u64 = 128;
/// Offset of the table of [`Alike`] activations in a window.
pub const ALIKE_OFFSET: u64 = 64 << 10;
/// Its entries at most: a power of two.
pub const ALIKE_MAX: usize = 8192;
/// Bytes of a window.
pub const WINDOW_BYTES: u64 = 512 << 10;
/// Offset of the windows.
pub const WINDOWS_OFFSET: u64 = 256 << 20;
/// Slots, hence threads that live at one time; half of them where both metrics are computed.
pub const SLOTS_MAX: u64 = 512;

/// Offset of the thread table.
pub const THREADS_OFFSET: u64 = 4096;
/// Its capacity.
pub const THREADS_MAX: u64 = 60_000;
/// Offset of the module table.
pub const MODULES_OFFSET: u64 = 1 << 20;
/// Room for it.
pub const MODULES_BYTES_MAX: u64 = 15 << 20;
/// Offset of the routine table.
pub const ROUTINES_OFFSET: u64 = 16 << 20;
/// Its capacity.
pub const ROUTINES_MAX: u64 = 15 << 20;
/// Offset of the points.
pub const POINTS_OFFSET: u64 = 512 << 20;
/// Their number at most: 16 GB, of which only what is used costs memory.
pub const POINTS_MAX: u64 = 1 << 27;
/// Length of the fixed part of the mapping.
pub const FIXED_BYTES: u64 = 32 << 30;

const _: () = assert!(size_of::<Header>() <= 4096);
const _: () = assert!(THREADS_OFFSET + THREADS_MAX * size_of::<Thread>() as u64 <= MODULES_OFFSET);
const _: () = assert!(MODULES_OFFSET + MODULES_BYTES_MAX <= ROUTINES_OFFSET);
const _: () = assert!(ROUTINES_OFFSET + ROUTINES_MAX * size_of::<Routine>() as u64 <= WINDOWS_OFFSET);
const _: () = assert!(WINDOWS_OFFSET + SLOTS_MAX * WINDOW_BYTES <= POINTS_OFFSET);
const _: () = assert!(LOG_OFFSET + LOG_BYTES <= ALIKE_OFFSET);
const _: () = assert!(ALIKE_OFFSET + (ALIKE_MAX * size_of::<Alike>()) as u64 <= WINDOW_BYTES);
const _: () = assert!(POINTS_OFFSET + POINTS_MAX * size_of::<Point>() as u64 <= FIXED_BYTES);
const _: () = assert!(size_of::<Point>() == 144);
const _: () = assert!(size_of::<Hot>() <= 4096);
const _: () = assert!(size_of::<Alike>() == 8 * ALIKE_WORDS && ROUTINES_MAX < RARE as u64);
const _: () = assert!((ALIKE_WORDS + RARE_WORDS) * 8 + size_of::<Alike>() <= LOG_SLACK_BYTES as usize);
