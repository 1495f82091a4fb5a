//! What the idleness runtime and its collector agree on: one shared file.
//!
//! ```text
//! 0            Header        launcher: what to do; runtime: totals, heads of the lists
//! PROGRAM      executable and command line of a process that is followed, by the runtime
//! LANDMARKS    [Landmark]    launcher: code whose meaning the runtime must know
//! ARENA        records and tree nodes, in the order in which they were taken
//! ```
//! Lists are linked by file offsets, 0 ends them. Whatever ends the program, the file is readable: a record is
//! complete before a list shows it, and numbers only grow.
//!
//! # Effort
//! The runtime integrates `cores / working` over time, where `working` is the number of threads that are not
//! waiting. A working thread that is sampled claims what has been added since its last claim: its *effort*. The
//! efforts of all threads add up to `cores x time`, exactly, except while nobody works. With `r = effort / time` since
//! the last claim (the mean of `cores / working`) and CPU time `c`:
//! ```text
//! effort = c                    work
//!        + c (r - 1)            idleness it answers for: (n - w) / w per unit of work with w of n cores busy
//!        + effort - c r         preempted: it wanted to run, and the core was somebody else's
//! ```
//!
//! # Processes that are followed
//! Each has a file of its own. A forked child begins with an empty one and knows its program's landmarks already. A program
//! that was executed writes its names, sets `asked`, calls (`wire::seats`) and sleeps until the launcher has found its
//! landmarks and set `go`.
//!
//! # Notes
//! A tree node's key is a note of a logical call path: a physical frame, a logical one, both, or a mark.
//! ```text
//! bits 0..47 pc | 47..60 serial of the module | 60..63 chord | 63 interrupted, not a return address
//! mark:   0..48 value | 48..60 mark | 60..63 = MARK
//! ```

/// Checks that both sides look at the same thing.
pub const MAGIC: u64 = u64::from_le_bytes(*b"FSIDLE01");
/// Name of the environment variable that holds the shared file's path, and the same terminated.
pub const VARIABLE: &core::ffi::CStr = c"FARSIGHT_IDLE";
/// Offset and room of the executable's path.
pub const PROGRAM_OFFSET: u64 = 1024;
/// See [`PROGRAM_OFFSET`].
pub const PROGRAM_BYTES: usize = 1024;
/// Offset and room of the command line, as `/proc/self/cmdline` has it.
pub const COMMAND_OFFSET: u64 = 2048;
/// See [`COMMAND_OFFSET`].
pub const COMMAND_BYTES: usize = 2048;
/// Offset of the landmarks.
pub const LANDMARKS_OFFSET: u64 = 4096;
/// Their largest number.
pub const LANDMARKS_MAX: u64 = 8192;
/// Start of what the runtime takes piece by piece.
pub const ARENA_OFFSET: u64 = 4096 + LANDMARKS_MAX * 32;
/// Length of the file; sparse.
pub const FILE_BYTES: u64 = 4 << 30;
/// Fractional bits of an effort: units of 1/256 ns.
pub const EFFORT_BITS: u32 = 8;
/// Metrics of a node.
pub const METRICS: usize = 4;
/// Metric: CPU time, ns.
pub const CPU: usize = 0;
/// Metric: idleness, in units of [`EFFORT_BITS`].
pub const IDLE: usize = 1;
/// Metric: time waited, ns (under a [`mark::LOCK`]: time that others waited for this holder).
pub const BLOCKED: usize = 2;
/// Metric: samples or waits.
pub const COUNT: usize = 3;
/// Chunks of a tree; chunk `k` holds `256 << k` nodes.
pub const CHUNKS: usize = 13;
/// Nodes in the first chunk.
pub const FIRST_CHUNK: u32 = 256;
/// Serial of a pc outside all modules.
pub const NO_SERIAL: u16 = 0x1fff;

/// What a note stands for.
pub mod chord {
    /// One frame, physical and logical (1-1).
    pub const BOTH: u64 = 0;
    /// A physical frame without a logical one (1-0, M-0).
    pub const PHYSICAL: u64 = 1;
    /// A logical frame whose physical one is on another stack (the M of 1-M).
    pub const LOGICAL: u64 = 2;
    /// No frame: see `mark`.
    pub const MARK: u64 = 3;
}

/// Marks.
pub mod mark {
    /// A thread's beginning; the value is the creator's slot (20 bits) and node (28 bits) plus one, 0 if unknown.
    pub const THREAD: u64 = 1;
    /// A wait; the value is `preload::WaitKind`.
    pub const WAIT: u64 = 2;
    /// CPU time spent looking for work.
    pub const SPIN: u64 = 3;
    /// Blame: the path below held lock number `value` while others waited.
    pub const LOCK: u64 = 4;
    /// A task; the value says of what kind (`task`).
    pub const TASK: u64 = 5;
    /// A task whose creator could not be found.
    pub const ORPHAN: u64 = 6;
}

/// Kinds of tasks.
pub mod task {
    /// rayon: a job stolen from the stack of its creator.
    pub const RAYON_STACK: u64 = 1;
    /// rayon: a job on the heap.
    pub const RAYON_HEAP: u64 = 2;
    /// OpenMP: a thread's part of a parallel region.
    pub const OMP_REGION: u64 = 3;
    /// OpenMP: an explicit task.
    pub const OMP_TASK: u64 = 4;
}

/// Kinds of landmarks.
pub mod landmark {
    /// Runs a rayon job that lies on its creator's stack.
    pub const STACK_JOB: u32 = 1;
    /// Runs a rayon job that lies on the heap.
    pub const HEAP_JOB: u32 = 2;
    /// Looks for work: a thread whose innermost landmark this is, is idle.
    pub const IDLE: u32 = 3;
}

/// Code of the executable whose meaning the runtime must know.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Landmark {
    /// First address, as the executable states it.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// One of `landmark`.
    pub kind: u32,
    /// DWARF number of the register that keeps the job's address.
    pub register: u32,
    /// Keeps the size.
    pub reserved: u64,
}

/// First page of the file.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Header {
    /// Working threads (16 bits) and ns since `start_ns` (48 bits), as of the last change.
    pub effort_now: u64,
    /// The integral up to then.
    pub effort_sum: u64,
    /// [`MAGIC`], written by the launcher.
    pub magic: u64,
    /// [`crate::VERSION`].
    pub version: u32,
    /// Cores to reckon with.
    pub cores: u32,
    /// CPU time between samples.
    pub period_ns: u64,
    /// Landmarks in use.
    pub landmarks: u32,
    /// 1 to do without perf.
    pub timer_only: u32,
    /// Where the file lies in the program; 0 until the runtime has started.
    pub base: u64,
    /// `CLOCK_MONOTONIC` at the runtime's start.
    pub start_ns: u64,
    /// CPU time of the main thread at that moment.
    pub start_cpu_ns: u64,
    /// Time during which no thread worked.
    pub nobody_ns: u64,
    /// Effort of threads that looked for work, not yet claimed by one that worked.
    pub pool: u64,
    /// First [`Slot`].
    pub slots: u64,
    /// First [`Module`].
    pub modules: u64,
    /// First [`Lock`].
    pub locks: u64,
    /// Threads that ever ran.
    pub threads: u64,
    /// Locks known.
    pub lock_count: u64,
    /// 1 perf, 2 timer.
    pub backend: u32,
    /// How the program was last seen to end: one of `ended`.
    pub ended: u32,
    /// Bits of `problem`.
    pub problems: u64,
    /// Parallel regions of OpenMP seen.
    pub omp_regions: u64,
    /// 1 if the launcher has put libomp in the place of libgomp.
    pub libomp: u64,
    /// When it was seen to end, ns since `start_ns`.
    pub end_ns: u64,
    /// CPU time of the process then.
    pub end_cpu_ns: u64,
    /// CPU time of the process at `start_ns`.
    pub start_process_cpu_ns: u64,
    /// 1 once the names are there, in a run that is followed.
    pub asked: u32,
    /// 1 once the landmarks are there; a futex. For programs that were executed.
    pub go: u32,
    /// Bytes of the program's path, and of the command line.
    pub program_len: u32,
    /// See `program_len`.
    pub command_len: u32,
    /// First [`Executed`].
    pub executed: u64,
}

/// Values of [`Header::ended`].
pub mod ended {
    /// Not yet.
    pub const NO: u32 = 0;
    /// For good.
    pub const ENDED: u32 = 1;
    /// It was about to execute another program.
    pub const EXEC: u32 = 2;
}

/// A program that this one has executed, or meant to.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Executed {
    /// Next record.
    pub next: u64,
    /// Bytes of `path`.
    pub path_len: u32,
    /// Bits of `executed`.
    pub flags: u32,
    /// The path as it was given.
    pub path: [u8; 256],
}

/// Bits of [`Executed::flags`].
pub mod executed {
    /// To be looked for in `PATH`.
    pub const SEARCHED: u32 = 1;
    /// Its environment does not lead to us.
    pub const CUT_OFF: u32 = 2;
}

/// Bits of [`Header::problems`].
pub mod problem {
    /// Memory ran out: paths are cut.
    pub const FULL: u64 = 1;
    /// A forked child went unprofiled.
    pub const FORKED: u64 = 2;
    /// Threads that found no slot.
    pub const THREADS: u64 = 4;
    /// The program replaced itself by another one.
    pub const EXEC: u64 = 8;
}

/// One thread after another, and their contexts.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Slot {
    /// Next record.
    pub next: u64,
    /// Number of this record.
    pub index: u32,
    /// Kernel id of the last thread.
    pub tid: u32,
    /// Threads that had this slot.
    pub threads: u64,
    /// 1 while the thread counts as working, 2 while it waits, 0 without one.
    pub state: u32,
    /// Node of the last sample.
    pub last_node: u32,
    /// The integral at the last claim.
    pub claimed: u64,
    /// Effort claimed and not yet charged to a node.
    pub pending: u64,
    /// Time of the last claim, ns since start.
    pub claimed_ns: u64,
    /// Working time that belongs to `pending`.
    pub pending_ns: u64,
    /// Effort lost to others (wraps when negative).
    pub preempted: u64,
    /// CPU time up to the last sample, and of earlier threads.
    pub cpu_ns: u64,
    /// Samples taken.
    pub samples: u64,
    /// Samples that found us inside ourselves.
    pub skipped: u64,
    /// Samples whose path did not reach the root.
    pub cut: u64,
    /// Tasks whose creator was found, and not found, among samples.
    pub stitched: u64,
    /// See `stitched`.
    pub orphans: u64,
    /// Frames that found no place in the tree.
    pub refused: u64,
    /// Start of the present wait, ns since start; 0 outside.
    pub waiting_since: u64,
    /// Nodes of the tree.
    pub nodes: u32,
    /// What samples the thread: 1 perf, 2 timer.
    pub backend: u32,
    /// Addresses of the tree's chunks in the program.
    pub chunks: [u64; CHUNKS],
}

/// A node of a tree.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// The note.
    pub key: u64,
    /// Its parent's number.
    pub parent: u32,
    /// Of no concern outside.
    pub next: u32,
    /// Its metrics.
    pub metrics: [u64; METRICS],
}

/// A module that code was found in.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Module {
    /// Next record.
    pub next: u64,
    /// Serial in notes.
    pub serial: u32,
    /// Bytes of `path`.
    pub path_len: u32,
    /// Address in memory less address in the file.
    pub bias: u64,
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Path; empty for the executable.
    pub path: [u8; 256],
}

/// A lock that somebody waited for.
#[repr(C, align(16))]
#[derive(Debug, Clone, Copy, Default)]
pub struct Lock {
    /// Threads that wait (16 bits) and ns since start (48 bits), as of the last change.
    pub waiting_now: u64,
    /// Integral of the number of waiting threads, ns.
    pub waiting_sum: u64,
    /// Next record.
    pub next: u64,
    /// Next record in its bucket (an address).
    pub chain: u64,
    /// Its address, or what `preload::WaitKind` says.
    pub address: u64,
    /// Its number, from 1.
    pub number: u32,
    /// `preload::WaitKind` of the first wait.
    pub kind: u32,
    /// Part of the integral that has been charged to somebody.
    pub charged: u64,
    /// Part of it between a release and the next acquisition.
    pub handed_over: u64,
    /// Time waited, ns, in all.
    pub wait_ns: u64,
    /// Waits.
    pub contended: u64,
    /// Acquisitions since the first wait, waits included.
    pub acquisitions: u64,
    /// The longest wait so far, ns.
    pub longest_ns: u64,
    /// Its slot and node.
    pub longest_at: u64,
}

/// The part of an effort over `ns` that goes with `cpu_ns` of CPU time: never less than the CPU time itself.
pub fn used(effort: u64, ns: u64, cpu_ns: u64) -> u64 {
    let whole = u128::from(cpu_ns) << EFFORT_BITS;
    let used = if ns == 0 { whole } else { u128::from(effort) * u128::from(cpu_ns) / u128::from(ns) };
    u64::try_from(used.max(whole)).unwrap_or(u64::MAX)
}

const _: () = assert!(size_of::<Header>() <= PROGRAM_OFFSET as usize);
const _: () = assert!(COMMAND_OFFSET as usize + COMMAND_BYTES <= LANDMARKS_OFFSET as usize);
const _: () = assert!(size_of::<Landmark>() == 32);
const _: () = assert!(size_of::<Node>() == 16 + 8 * METRICS);
