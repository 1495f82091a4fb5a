//! Time of the thread itself: the time-stamp counter, without what was lost to others.
//!
//! A span is a maximum, so every preemption lands on it. The kernel tells of preemptions for free: at each one
//! (and at migration and signal delivery) it clears `rseq_cs` of the thread's registered `struct rseq` if that
//! names a critical section which the thread is not in. So we point it at one that nobody is ever in, and test a
//! word of our own thread when a strand ends. Only if it was cleared do we ask how much processor time the thread
//! really had:
//! ```text
//! lost = (tsc - tsc₀) - f · (cpu - cpu₀)        since the last reference, at most the strand itself
//! ```
//! The counter is read before the word: a preemption between the two then counts for the next strand, whose
//! start it precedes; the word is set again before the next reading.
//!
//! Where glibc has not registered rseq (before 2.35, or forbidden), time is raw and the record says so.

use crate::env::{Cost, settings};
use crate::libc;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

/// The critical section that nobody is in. The kernel wants its signature before the abort address.
#[repr(C, align(32))]
struct CriticalSection {
    version: u32,
    flags: u32,
    start: u64,
    len: u64,
    abort: u64,
}

#[repr(C, align(16))]
struct AbortPlace {
    signature: u32,
    code: [u8; 12],
}

static ABORT: AbortPlace = AbortPlace { signature: 0x5305_3053, code: [0xcc; 12] };

/// One empty range at address 4096: never executed.
fn section() -> u64 {
    static SECTION: OnceLock<CriticalSection> = OnceLock::new();
    let place = SECTION.get_or_init(|| CriticalSection {
        version: 0,
        flags: 0,
        start: 4096,
        len: 1,
        abort: ABORT.code.as_ptr() as u64,
    });
    core::ptr::from_ref(place) as u64
}

/// Clock of one thread.
pub struct Clock {
    /// `rseq_cs` of the thread, or a word of ours that never changes.
    word: *mut u64,
    own_word: Cell<u64>,
    tsc0: Cell<u64>,
    cpu0_ns: Cell<u64>,
    /// Costs that the program reported, if that is the mode.
    units: Cell<u64>,
    /// The thread's number of executed instructions, if that is the mode and somebody counts.
    instructions: *const u64,
    /// Strands from which something was subtracted, and how much.
    pub repaired: Cell<u64>,
    /// In ticks.
    pub lost: Cell<u64>,
}

/// Ticks and nanoseconds when the process started.
fn origin() -> (u64, u64) {
    static ORIGIN: OnceLock<(u64, u64)> = OnceLock::new();
    *ORIGIN.get_or_init(|| {
        let pairs = (0..5).map(|_| {
            let before = tsc();
            let ns = libc::ns(libc::CLOCK_MONOTONIC);
            let after = tsc();
            (after - before, before + (after - before) / 2, ns)
        });
        pairs.min().map_or((0, 0), |(_, tsc, ns)| (tsc, ns))
    })
}

/// Ticks per 2³² nanoseconds, from the start of the process to now.
pub fn rate() -> u64 {
    let (tsc0, ns0) = origin();
    loop {
        let (t, ns) = (tsc(), libc::ns(libc::CLOCK_MONOTONIC));
        // Shorter than this, the reading of the two clocks itself would show.
        if ns > ns0 + 200_000 {
            return ((u128::from(t - tsc0) << 32) / u128::from(ns - ns0)) as u64;
        }
        core::hint::spin_loop();
    }
}

/// Starts the process's clock.
pub fn start() {
    origin();
}

/// Nanoseconds as ticks.
pub fn ticks(ns: u64) -> u64 {
    ((u128::from(ns) * u128::from(rate())) >> 32) as u64
}

/// The counter.
#[inline(always)]
pub fn tsc() -> u64 {
    // SAFETY: every x86-64 processor has it, and Linux lets user code read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Ticks that a strand of nothing shows, to be taken off every strand.
pub static HOOK: AtomicU64 = AtomicU64::new(0);

impl Clock {
    /// The clock of this thread.
    pub fn new() -> Self {
        let word = if settings().raw || settings().cost != Cost::Time { None } else { rseq_word() };
        Self {
            word: word.unwrap_or(core::ptr::null_mut()),
            own_word: Cell::new(1),
            tsc0: Cell::new(0),
            cpu0_ns: Cell::new(0),
            units: Cell::new(0),
            instructions: core::ptr::null(),
            repaired: Cell::new(0),
            lost: Cell::new(0),
        }
    }

    /// To be called once the clock is where it stays.
    pub fn settle(&mut self) {
        self.settle_with(core::ptr::null_mut());
    }

    /// The same, and calls are to be told of in `log`, where instructions are counted.
    pub fn settle_with(&mut self, log: *mut crate::calls::CallLog) {
        if settings().cost == Cost::Instructions {
            self.instructions = counted(log);
        }
        if self.word.is_null() {
            self.word = self.own_word.as_ptr();
        }
        self.refer();
    }

    /// Whether preemptions are seen.
    pub fn sees_preemption(&self) -> bool {
        !core::ptr::eq(self.word, self.own_word.as_ptr())
    }

    /// A word that is not 0 as long as this thread was not preempted and got no signal, if there is one: then all that passes
    /// is time.
    pub fn calm(&self) -> Option<*const u64> {
        (self.sees_preemption() && !is_counted()).then_some(self.word.cast_const())
    }

    fn refer(&self) {
        // SAFETY: `word` is this thread's own `rseq_cs`, or `own_word`; both live as long as the thread.
        unsafe { self.word.write_volatile(if self.sees_preemption() { section() } else { 1 }) };
        self.cpu0_ns.set(libc::ns(libc::CLOCK_THREAD_CPUTIME_ID));
        self.tsc0.set(tsc());
    }

    #[inline(always)]
    fn preempted(&self) -> bool {
        // SAFETY: as in `refer`.
        unsafe { self.word.read_volatile() == 0 }
    }

    /// A strand starts.
    #[inline(always)]
    pub fn begin(&self) -> u64 {
        if is_counted() {
            return self.count();
        }
        if self.preempted() {
            self.refer();
        }
        tsc()
    }

    /// A strand starts after something of ours that [`HOOK`] does not cover.
    pub fn begin_late(&self) -> u64 {
        let now = self.begin();
        if is_counted() { now } else { now.saturating_sub(HOOK.load(Ordering::Relaxed)) }
    }

    /// The strand that started at `begun` ends: its cost, and the time at which the next one may start.
    #[inline(always)]
    pub fn end(&self, begun: u64) -> (u64, u64) {
        if is_counted() {
            let now = self.count();
            return ((now - begun).saturating_sub(HOOK.load(Ordering::Relaxed)), now);
        }
        let now = tsc();
        let cost = now.saturating_sub(begun);
        if self.preempted() {
            return self.repair(cost, now);
        }
        (cost.saturating_sub(HOOK.load(Ordering::Relaxed)), now)
    }

    #[cold]
    #[inline(never)]
    fn repair(&self, cost: u64, now: u64) -> (u64, u64) {
        let cpu = libc::ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let ran = ((u128::from(cpu - self.cpu0_ns.get()) * u128::from(rate())) >> 32) as u64;
        let lost = (now - self.tsc0.get().min(now)).saturating_sub(ran).min(cost);
        self.repaired.set(self.repaired.get() + 1);
        self.lost.set(self.lost.get() + lost);
        self.refer();
        ((cost - lost).saturating_sub(HOOK.load(Ordering::Relaxed)), tsc())
    }

    /// Reads the number that is the clock. Never inlined: the engine counts whole stretches of code, and a called
    /// function starts a new one, so that everything before the call is in the number, and nothing after it.
    #[inline(never)]
    fn count(&self) -> u64 {
        if self.instructions.is_null() {
            return self.units.get();
        }
        // SAFETY: a word of the engine's, which lives as long as the thread.
        unsafe { self.instructions.read_volatile() }
    }

    /// Whether instructions are to be counted and nobody does.
    pub fn misses_engine(&self) -> bool {
        settings().cost == Cost::Instructions && self.instructions.is_null()
    }

    /// The program reports a cost.
    pub fn spend(&self, units: u64) {
        self.units.set(self.units.get() + units);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether costs are numbers that do not pass by themselves: then nothing is handed over from one strand to the next.
#[inline(always)]
pub fn is_counted() -> bool {
    COUNTED.load(Ordering::Relaxed) != 0
}

/// Takes the clock that the settings ask for. To be called before the first strand.
pub fn choose() {
    COUNTED.store(u64::from(settings().cost != Cost::Time), Ordering::Relaxed);
}

static COUNTED: AtomicU64 = AtomicU64::new(0);

/// Says something to the engine that counts instructions, if there is one: a system call that does not exist. Its number and
/// the names are those of the tool's `wire::running`.
///
/// # Safety
/// What the two words lead to is what an engine that knows `name` expects.
pub unsafe fn ask_engine(name: [u8; 8], first: i64, second: i64) {
    const NUMBER: i64 = 0xfa51;
    // SAFETY: the kernel knows no such call and touches nothing; for who answers, by contract.
    unsafe { libc::syscall(NUMBER, i64::from_le_bytes(name), first, second) };
}

/// Where the number of instructions that this thread has executed is, if it runs under an engine that counts them.
fn counted(log: *mut crate::calls::CallLog) -> *const u64 {
    let mut word = 0u64;
    // SAFETY: whoever answers writes to the word, and into the log while the thread lives.
    unsafe { ask_engine(*b"FSRUNNIN", &raw mut word as i64, log as i64) };
    // Behind the compiler's back.
    let word = core::hint::black_box(word);
    word as *const u64
}

/// Where the kernel clears `rseq_cs`, if glibc registered this thread.
fn rseq_word() -> Option<*mut u64> {
    static OFFSET: OnceLock<Option<isize>> = OnceLock::new();
    let offset = (*OFFSET.get_or_init(|| {
        // SAFETY: both are data symbols of glibc, an `isize` and a `u32`; absent before 2.35.
        unsafe {
            let offset = libc::dlsym(core::ptr::null_mut(), c"__rseq_offset".as_ptr());
            let size = libc::dlsym(core::ptr::null_mut(), c"__rseq_size".as_ptr());
            if offset.is_null() || size.is_null() || *size.cast::<u32>() == 0 {
                return None;
            }
            Some(*offset.cast::<isize>())
        }
    }))?;
    let thread: isize;
    // SAFETY: the first word of the thread block holds its own address (x86-64 ABI for TLS).
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly, pure)) };
    // struct rseq { u32 cpu_id_start, cpu_id; u64 rseq_cs; u32 flags; ... }
    let area = (thread + offset) as *mut u32;
    // SAFETY: glibc registered the area; cpu_id is negative when the registration failed.
    let cpu = unsafe { area.add(1).read_volatile() } as i32;
    (cpu >= 0).then_some((thread + offset + 8) as *mut u64)
}

/// The program reports that it did `units` of work on this thread.
pub fn spend(units: u64) {
    crate::local::Local::here().clock.spend(units);
}
