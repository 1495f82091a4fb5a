//! Causal experiments: the memory through which the runtime inside the program and the experimenter outside talk.
//!
//! ```text
//! experimenter -> runtime   Control: which target, how much faster, since when; Table: which code is which target
//! runtime -> experimenter   Global: delays inserted so far; samples per target; code nobody has named yet (Misses);
//!                           threads and what they have paid; progress points (written by the program itself)
//! ```
//! Both sides see one [`Shared`], laid over a sparse file; untouched pages cost nothing. Everything is an atomic:
//! the program may die at any instruction and leave all of it readable.
//!
//! # Epochs
//! Every experiment, and every pause between two, has a number of 16 bits, the *epoch*. Delays are counted from the
//! start of their epoch: [`pack`] puts the epoch above 48 bits of nanoseconds, so that one load tells whether a
//! delay belongs to the experiment that is running. Debts of an earlier epoch are forgotten.
//!
//! # Delays grow with time
//! A thread that runs the selected target makes the others owe *while* it runs, not in lumps ([`Earner`]). So what
//! everybody owes is a function of time, [`Shared::global_at`]: the largest of `hot.global` and of what the earning
//! threads have earned by then.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// Version of this layout: the runtime refuses another one.
pub const VERSION: u32 = 3;
/// Environment variable that leads to the shared file, see [`crate::seats`].
pub const VARIABLE: &CStr = c"FARSIGHT_CAUSAL";

/// Bits of a packed delay that hold nanoseconds (78 hours).
pub const DELAY_BITS: u32 = 48;
const DELAY_MASK: u64 = (1 << DELAY_BITS) - 1;

/// An epoch and a delay in one word.
#[inline(always)]
pub const fn pack(epoch: u16, delay_ns: u64) -> u64 {
    (epoch as u64) << DELAY_BITS | (delay_ns & DELAY_MASK)
}

/// The epoch of a packed delay.
#[inline(always)]
pub const fn epoch(packed: u64) -> u16 {
    (packed >> DELAY_BITS) as u16
}

/// The delay of a packed delay.
#[inline(always)]
pub const fn delay_ns(packed: u64) -> u64 {
    packed & DELAY_MASK
}

/// The control word: epoch, speedup in thousandths, target.
#[inline(always)]
pub const fn control(epoch: u16, speedup_permille: u16, target: u32) -> u64 {
    (epoch as u64) << 48 | (speedup_permille as u64) << 32 | target as u64
}

/// Target and speedup of a control word.
#[inline(always)]
pub const fn controlled(control: u64) -> (u16, u16, u32) {
    ((control >> 48) as u16, (control >> 32) as u16, control as u32)
}

/// Code that is known and in no target.
pub const OUT_OF_SCOPE: u32 = 0;
/// Code that nobody has asked about yet.
pub const UNKNOWN: u32 = u32::MAX;
/// Targets, numbered from 1.
pub const TARGETS_MAX: usize = 1 << 15;
/// Pieces of code in the table.
pub const PIECES_MAX: usize = 1 << 18;
/// Named progress counters.
pub const POINTS_MAX: usize = 512;
/// Longest name of a progress point, longer ones are cut.
pub const POINT_NAME_BYTES_MAX: usize = 216;
/// Threads whose payments the experimenter can see; further ones are sampled and delayed all the same.
pub const THREADS_MAX: usize = 8192;
/// Threads that can be seen earning at one time; further ones add to `hot.global` now and then.
pub const EARNERS_MAX: usize = 64;
/// Places for addresses that want a name.
pub const MISSES_MAX: usize = 4096;

/// What the runtime has reached.
pub mod state {
    /// Not loaded (yet).
    pub const ABSENT: u32 = 0;
    /// Waits for the experimenter's go.
    pub const READY: u32 = 1;
    /// Runs.
    pub const RUNNING: u32 = 2;
    /// The program is ending.
    pub const ENDED: u32 = 3;
    /// The program has executed another one.
    pub const EXECUTED: u32 = 4;
    /// Could not start; `reason` says why.
    pub const FAILED: u32 = 5;
}

/// Switches that the experimenter sets before the program starts.
pub mod flags {
    /// Sample by timers even where perf is permitted.
    pub const TIMER: u32 = 1;
    /// Wait at start until `go` is set.
    pub const WAIT: u32 = 2;
}

/// What a thread is doing.
pub mod doing {
    /// The cell is free.
    pub const NOTHING: u32 = 0;
    /// Running, or wanting to.
    pub const RUNS: u32 = 1;
    /// Waiting for another thread.
    pub const WAITS: u32 = 2;
    /// Sleeping, or waiting for the world.
    pub const AWAY: u32 = 3;
}

/// What became of waits that no hook sees.
pub mod unseen {
    /// There are none.
    pub const NONE: u32 = 0;
    /// The kernel catches them for us.
    pub const CAUGHT: u32 = 1;
    /// They are inferred from CPU time.
    pub const INFERRED: u32 = 2;
}

/// Kinds of progress counters, as Coz's ABI numbers them.
pub mod kind {
    /// Visits.
    pub const THROUGHPUT: u32 = 1;
    /// Begins of something that takes time.
    pub const BEGIN: u32 = 2;
    /// Its ends.
    pub const END: u32 = 3;
}

/// The counter that a program increments by itself: Coz's `coz_counter_t`.
#[repr(C)]
pub struct Counter {
    /// Visits.
    pub count: AtomicU64,
    /// Reserved by the ABI.
    pub backoff: AtomicU64,
}

/// A named progress counter.
#[repr(C, align(256))]
pub struct Point {
    /// First, because the program holds a pointer to it.
    pub counter: Counter,
    /// One of [`kind`]; 0 while the point is being made.
    pub kind: AtomicU32,
    /// Bytes of the name.
    pub name_len: AtomicU32,
    /// The name, eight bytes a word.
    pub name: [AtomicU64; POINT_NAME_BYTES_MAX / 8],
    /// Of a begin: sum over delays of how long they were and how many had begun and not ended then.
    pub delayed_ns: AtomicU64,
    /// Of a begin: one more than the index of its end; 0 while there is none.
    pub end: AtomicU32,
}

/// One thread, as far as the experimenter needs to know.
#[repr(C, align(64))]
pub struct ThreadCell {
    /// One of [`doing`].
    pub doing: AtomicU32,
    /// Kernel id.
    pub tid: AtomicU32,
    /// Packed delay that the thread has served or was excused from.
    pub paid: AtomicU64,
    /// Core time used by pauses of the threads that have had this cell.
    pub spun_ns: AtomicU64,
    /// The thread's bit in `hot.earning`; 0 for none.
    pub earner: AtomicU64,
}

/// Pieces of code, ascending: piece `i` goes from `starts[i]` to `starts[i + 1]`.
#[repr(C)]
pub struct Table {
    /// Number of pieces.
    pub len: AtomicU32,
    /// First addresses.
    pub starts: [AtomicU64; PIECES_MAX],
    /// Targets.
    pub targets: [AtomicU32; PIECES_MAX],
}

/// The words that threads look at in every hook: a cache line of their own.
#[repr(C, align(64))]
pub struct Hot {
    /// Packed delay that every thread owes.
    pub global: AtomicU64,
    /// See [`control`].
    pub control: AtomicU64,
    /// Monotonic time after which the experiment is void: its experimenter has died.
    pub until_ns: AtomicU64,
    /// Monotonic time at which the experiment began.
    pub since_ns: AtomicU64,
    /// Which of `earners` are in use.
    pub earning: AtomicU64,
}

/// A thread that runs the selected target: what it has earned grows with time, for a while.
/// Written by that thread alone, read by all: `sequence` is odd during a change.
#[repr(C, align(64))]
pub struct Earner {
    /// Changes with every change.
    pub sequence: AtomicU32,
    /// Earned per million of time.
    pub millionths: AtomicU32,
    /// Packed delay earned at `since_ns`.
    pub base: AtomicU64,
    /// Monotonic time; 0 while the thread waits and earns nothing.
    pub since_ns: AtomicU64,
    /// Time from `since_ns` on after which it earns no more, unless it is heard of again.
    pub horizon_ns: AtomicU64,
}

impl Earner {
    /// Sets all words. By the owner only.
    pub fn set(&self, millionths: u32, base: u64, since_ns: u64, horizon_ns: u64) {
        use core::sync::atomic::{Ordering::*, fence};
        let sequence = self.sequence.load(Relaxed);
        self.sequence.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        self.millionths.store(millionths, Relaxed);
        self.base.store(base, Relaxed);
        self.since_ns.store(since_ns, Relaxed);
        self.horizon_ns.store(horizon_ns, Relaxed);
        self.sequence.store(sequence.wrapping_add(2), Release);
    }

    /// Packed delay earned by `now_ns`; 0 if it is being changed all the time.
    pub fn earned_at(&self, now_ns: u64) -> u64 {
        use core::sync::atomic::{Ordering::*, fence};
        for _ in 0..4 {
            let sequence = self.sequence.load(Acquire);
            let (millionths, base) = (self.millionths.load(Relaxed), self.base.load(Relaxed));
            let (since, horizon) = (self.since_ns.load(Relaxed), self.horizon_ns.load(Relaxed));
            fence(Acquire);
            if sequence & 1 == 0 && self.sequence.load(Relaxed) == sequence {
                let ran = if since == 0 { 0 } else { now_ns.saturating_sub(since).min(horizon) };
                return pack(epoch(base), delay_ns(base) + ran * u64::from(millionths) / 1_000_000);
            }
            core::hint::spin_loop();
        }
        0
    }
}

/// What may change often, away from the hot words.
#[repr(C, align(64))]
pub struct Counts {
    /// Threads that run or want to.
    pub running: AtomicU32,
    /// Threads that wait for another one.
    pub waiting: AtomicU32,
    /// Cells of threads ever used.
    pub threads: AtomicU32,
    /// Samples taken.
    pub samples: AtomicU64,
    /// CPU time that samples stand for.
    pub sampled_ns: AtomicU64,
    /// The same with the time that the threads waited for a core which other programs had.
    pub wanted_ns: AtomicU64,
    /// Samples of code that had no name yet.
    pub unresolved: AtomicU64,
    /// Samples whose whole path is out of scope.
    pub out_of_scope: AtomicU64,
    /// Samples whose walk ended before the thread's start without a frame in scope.
    pub cut: AtomicU64,
    /// Periods of CPU time without a sample.
    pub missed: AtomicU64,
    /// Futex calls that were made without libc and caught.
    pub caught: AtomicU64,
    /// Points refused for lack of room.
    pub points_refused: AtomicU64,
    /// Addresses reported, modulo the places.
    pub misses: AtomicU64,
    /// Libraries unloaded so far.
    pub unloads: AtomicU32,
    /// Threads sampled by timers.
    pub timer_threads: AtomicU32,
    /// Threads sampled by perf.
    pub perf_threads: AtomicU32,
    /// Threads not sampled at all.
    pub blind_threads: AtomicU32,
    /// Named points.
    pub points: AtomicU32,
}

/// Everything.
#[repr(C)]
pub struct Shared {
    /// [`VERSION`], written first.
    pub version: AtomicU32,
    /// See [`flags`].
    pub flags: AtomicU32,
    /// CPU time between two samples of a thread.
    pub period_ns: AtomicU64,
    /// Processors that the program may use.
    pub cores: AtomicU32,
    /// Set by the experimenter when the program may start.
    pub go: AtomicU32,
    /// See [`state`].
    pub state: AtomicU32,
    /// Process id of the program.
    pub pid: AtomicU32,
    /// Whether off-CPU time that no hook explains is a wait for another thread (runtimes that bypass libc).
    pub credit_unexplained: AtomicU32,
    /// One of [`unseen`].
    pub unseen: AtomicU32,
    /// Index into the runtime's list of reasons.
    pub reason: AtomicU32,
    /// Hot words.
    pub hot: Hot,
    /// Threads that earn.
    pub earners: [Earner; EARNERS_MAX],
    /// Counts.
    pub counts: Counts,
    /// Changes with every new table; its parity says which of `tables` is in force. A reader must find it
    /// unchanged after a look-up.
    pub tables_version: AtomicU64,
    /// Samples by target.
    pub samples: [AtomicU64; TARGETS_MAX],
    /// Addresses that want a name; 0 for a free place.
    pub misses: [AtomicU64; MISSES_MAX],
    /// Progress points.
    pub points: [Point; POINTS_MAX],
    /// Threads.
    pub threads: [ThreadCell; THREADS_MAX],
    /// The table in force and the one in the making.
    pub tables: [Table; 2],
}

impl Shared {
    /// Packed delay that every thread owes at a time.
    pub fn global_at(&self, now_ns: u64) -> u64 {
        use core::sync::atomic::Ordering::*;
        let mut most = self.hot.global.load(Acquire);
        let mut left = self.hot.earning.load(Acquire);
        while left != 0 {
            if let Some(earner) = self.earners.get(left.trailing_zeros() as usize) {
                let earned = earner.earned_at(now_ns);
                // Of another epoch: not this experiment's.
                if epoch(earned) == epoch(most) && earned > most {
                    most = earned;
                }
            }
            left &= left - 1;
        }
        most
    }

    /// Packed delay that a thread has served by a time.
    pub fn paid_at(&self, cell: &ThreadCell, now_ns: u64) -> u64 {
        use core::sync::atomic::Ordering::*;
        let paid = cell.paid.load(Relaxed);
        let earner = self.earners.get(cell.earner.load(Relaxed).trailing_zeros() as usize);
        let earned = earner.map_or(0, |e| e.earned_at(now_ns));
        if epoch(earned) == epoch(paid) { earned.max(paid) } else { paid }
    }

    /// The target of an address, [`UNKNOWN`] if nobody has said yet. Safe in signal handlers.
    pub fn target_of(&self, address: u64) -> u32 {
        use core::sync::atomic::{Ordering::*, fence};
        for _ in 0..3 {
            let version = self.tables_version.load(Acquire);
            let Some(table) = self.tables.get(version as usize & 1) else { return UNKNOWN };
            let found = table.find(address);
            fence(Acquire);
            if self.tables_version.load(Relaxed) == version {
                return found;
            }
        }
        UNKNOWN
    }
}

impl Table {
    fn find(&self, address: u64) -> u32 {
        use core::sync::atomic::Ordering::Relaxed;
        let (mut low, mut high) = (0, (self.len.load(Relaxed) as usize).min(PIECES_MAX));
        // The last piece that starts at or before the address.
        while low < high {
            let middle = (low + high) / 2;
            match self.starts.get(middle) {
                Some(start) if start.load(Relaxed) <= address => low = middle + 1,
                _ => high = middle,
            }
        }
        match low.checked_sub(1).and_then(|at| self.targets.get(at)) {
            Some(target) => target.load(Relaxed),
            None => UNKNOWN,
        }
    }
}

/// Length of the shared file.
pub const BYTES: usize = size_of::<Shared>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_pack_and_unpack() {
        assert_eq!((epoch(pack(65535, 7)), delay_ns(pack(65535, 7))), (65535, 7));
        assert_eq!(controlled(control(9, 1000, u32::MAX)), (9, 1000, u32::MAX));
        assert_eq!(size_of::<Point>(), 256);
        assert_eq!(core::mem::offset_of!(Point, counter), 0);
    }

    #[test]
    fn earning_stops_at_the_horizon() {
        let earner = Earner {
            sequence: AtomicU32::new(0),
            millionths: AtomicU32::new(0),
            base: AtomicU64::new(0),
            since_ns: AtomicU64::new(0),
            horizon_ns: AtomicU64::new(0),
        };
        earner.set(500_000, pack(3, 100), 1000, 2000);
        assert_eq!(earner.earned_at(900), pack(3, 100));
        assert_eq!(earner.earned_at(2000), pack(3, 600));
        assert_eq!(earner.earned_at(9000), pack(3, 1100));
        earner.set(500_000, pack(3, 1100), 0, 2000);
        assert_eq!(earner.earned_at(9000), pack(3, 1100), "it waits");
    }
}
