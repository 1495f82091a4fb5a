//! The signal handler, and what it hands to the runtime.
//!
//! Life of a sample: the clock strikes; the handler checks that the signal is its own (others are the
//! program's, see `preload::signal`); unless the thread is inside a section of ours ([`Thread::busy`]) the
//! runtime's [`Sampled::sample`] sees it and walks the stack as far as it likes.

use crate::cfi::Scratch;
use crate::clock::{self, Backend, Clock};
use crate::module;
use crate::own_stack::OwnStack;
use crate::phase::{Order, Phase};
use crate::regs::Regs;
use crate::stack::Stack;
use crate::trail::Trail;
use crate::unwind::{self, Frame, Next, Stop};
use core::cell::{Cell, UnsafeCell};
use core::mem::MaybeUninit;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::*};
use preload::{Hooks, Thread, signal, sys, thread};

/// How to sample.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// CPU time between two samples of a thread.
    pub period_ns: u64,
    /// `Perf` to use it where permitted, `Timer` to do without it.
    pub backend: Backend,
}

/// A runtime that takes samples.
pub trait Sampled: Hooks {
    /// Where the runtime keeps a thread's sampler.
    fn sampler(local: &Self::Local) -> &ThreadSampler;

    /// A sample of the calling thread, in its signal handler. The rules of signal context apply.
    fn sample(thread: &Thread<Self::Local>, sample: &mut Sample);
}

/// One thread's sampler: its clock, its counts and the memory that walks need.
///
/// Everything but the counts is the owning thread's alone.
#[derive(Debug)]
pub struct ThreadSampler {
    clock: Clock,
    last_cpu_ns: Cell<u64>,
    /// For samples whose CPU time is not asked of the kernel: when the last one was, and how many since it was asked.
    last_wall_ns: Cell<u64>,
    unasked: Cell<u32>,
    phase: Cell<Phase>,
    /// Thread whose clock this is, 0 once it has stopped; what that clock said at the start; and the CPU time
    /// of the threads that had this slot before.
    tid: AtomicU32,
    start_cpu_ns: AtomicU64,
    past_cpu_ns: AtomicU64,
    taken: AtomicU64,
    skipped: AtomicU64,
    ready: Cell<bool>,
    walking: Cell<bool>,
    scratch: UnsafeCell<MaybeUninit<Scratch>>,
    /// What samples run on.
    stack: OwnStack,
}

// SAFETY: see the type: shared fields are atomics, the rest is touched by the owning thread only, in its
// handler or outside of it (`walking` keeps the one from interrupting the other).
unsafe impl Sync for ThreadSampler {}

/// A sample being looked at.
#[derive(Debug)]
pub struct Sample<'a> {
    /// The interrupted registers.
    pub regs: Regs,
    /// The signals that the thread blocks, as the kernel counts them: a bit each.
    pub blocked: u64,
    stack: Range<usize>,
    sampler: &'a ThreadSampler,
}

/// Samples in a row whose CPU time is taken from the wall clock.
const UNASKED_MAX: u32 = 15;
/// Part of a period by which wall-clock time may exceed it for that.
const SLACK_PART: u64 = 16;
/// Least time before a thread's first sample.
const FIRST_MIN_NS: u64 = 10_000;

static PERIOD_NS: AtomicU64 = AtomicU64::new(0);
static BACKEND: AtomicU8 = AtomicU8::new(0);
/// Whether strikes can fall together with the kernel's tick.
static IN_STEP: AtomicBool = AtomicBool::new(false);

/// Prepares sampling: the signal, the modules. Once, in [`Hooks::start`]. The backend that new threads will
/// use, or `None` with the reason.
pub fn install<S: Sampled>(config: Config) -> Result<Backend, &'static str> {
    if !module::start() {
        return Err("no memory for the list of modules");
    }
    let wanted = match config.backend {
        Backend::Perf if clock::perf_permitted().is_ok() => Backend::Perf,
        _ => Backend::Timer,
    };
    PERIOD_NS.store(config.period_ns.max(10_000), Relaxed);
    IN_STEP.store(wanted == Backend::Perf && Phase::pays(config.period_ns, clock::tick_ns()), Relaxed);
    BACKEND.store(wanted as u8, Relaxed);
    signal::reserve(clock::signals(wanted), on_signal::<S>).ok_or("no free signal for samples")?;
    Ok(wanted)
}

extern "C" fn on_signal<S: Sampled>(number: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let thread = thread::known::<S::Local>();
    let sampler = thread.map(|thread| S::sampler(thread.local()));
    // SAFETY: `info` is the handler's second argument.
    let ours = sampler.is_some_and(|sampler| unsafe { sampler.clock.sent(info) });
    let (Some(thread), Some(sampler), true) = (thread, sampler, ours) else {
        // A last signal of a clock that has just been stopped is nobody's, unless the program uses the same
        // kind for the same number; a signal that was sent (`kill`, `sigqueue`) is always the program's.
        // SAFETY: as above.
        let code = unsafe { (*info).si_code };
        let stale = code == libc::SI_TIMER
            || (number == libc::SIGTRAP && code == clock::TRAP_PERF)
            || (number != libc::SIGTRAP && code > 0);
        if signal::program_handles() || !stale {
            signal::hand_on(number, info, context);
        }
        return;
    };
    sampler.clock.struck();
    if thread.is_busy() || sampler.walking.get() {
        sampler.skipped.fetch_add(1, Relaxed);
    } else {
        sampler.taken.fetch_add(1, Relaxed);
        // SAFETY: `context` is the handler's third argument.
        let regs = unsafe { Regs::interrupted(context) };
        // SAFETY: likewise; a set begins with the kernel's eight bytes.
        let blocked =
            unsafe { (&raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask).cast::<u64>().read() };
        let mut sample = Sample { regs, blocked, stack: thread.stack(), sampler };
        // The handler does not nest, and nobody else uses this stack.
        sampler.stack.run(|| S::sample(thread, &mut sample));
    }
}

impl ThreadSampler {
    /// A sampler whose clock stands still.
    pub const fn new() -> Self {
        Self {
            clock: Clock::new(),
            last_cpu_ns: Cell::new(0),
            last_wall_ns: Cell::new(0),
            unasked: Cell::new(0),
            phase: Cell::new(Phase::new()),
            taken: AtomicU64::new(0),
            tid: AtomicU32::new(0),
            start_cpu_ns: AtomicU64::new(0),
            past_cpu_ns: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            ready: Cell::new(false),
            walking: Cell::new(false),
            scratch: UnsafeCell::new(MaybeUninit::uninit()),
            stack: OwnStack::new(),
        }
    }

    /// Starts sampling the calling thread. In [`Hooks::thread_started`].
    pub fn start(&self) -> Backend {
        let now = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        self.start_soon(first_ns(PERIOD_NS.load(Relaxed), now))
    }

    /// Likewise, with the first sample after `first_ns`: for whoever measures what a sample costs.
    pub fn start_soon(&self, first_ns: u64) -> Backend {
        if !self.ready.replace(true) {
            // SAFETY: first use of this slot; nobody else has a reference.
            unsafe { (*self.scratch.get()).write(Scratch::new()) };
        }
        self.walking.set(false);
        let now = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        self.last_cpu_ns.set(now);
        self.last_wall_ns.set(0);
        self.phase.set(Phase::new());
        self.start_cpu_ns.store(now, Relaxed);
        self.tid.store(sys::gettid(), Release);
        signal::unblock();
        let wanted =
            if BACKEND.load(Relaxed) == Backend::Perf as u8 { Backend::Perf } else { Backend::Timer };
        let period_ns = PERIOD_NS.load(Relaxed);
        self.clock.start(wanted, first_ns, period_ns, signal::reserved())
    }

    /// Stops sampling the calling thread. In [`Hooks::thread_ended`].
    pub fn stop(&self) {
        self.clock.stop();
        let used = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) - self.start_cpu_ns.load(Relaxed);
        self.tid.store(0, Release);
        self.past_cpu_ns.fetch_add(used, Relaxed);
    }

    /// Lets go of the parent's clock, which the child has inherited, and of its counts. In [`Hooks::forked`], for every
    /// slot that the parent had.
    pub fn forked(&self) {
        self.clock.forked();
        self.tid.store(0, Relaxed);
        for count in [&self.past_cpu_ns, &self.taken, &self.skipped] {
            count.store(0, Relaxed);
        }
        self.unasked.set(0);
        self.walking.set(false);
    }

    /// What samples this thread.
    pub fn backend(&self) -> Backend {
        self.clock.backend()
    }

    /// Samples taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// CPU time of the thread, and of those that had its slot before, since sampling began. From any thread.
    pub fn cpu_ns(&self) -> u64 {
        let tid = self.tid.load(Acquire);
        let past_ns = self.past_cpu_ns.load(Relaxed);
        if tid == 0 {
            return past_ns;
        }
        // The kernel's name for the CPU clock of a thread of this process.
        let clock = !(tid as i32) << 3 | 6;
        past_ns + sys::clock_ns(clock).saturating_sub(self.start_cpu_ns.load(Relaxed))
    }

    /// Periods of CPU time that passed without a sample of their own: in the kernel, while the program had
    /// our signal blocked by means that we do not see, or between the ticks of a coarse timer.
    pub fn missed(&self) -> u64 {
        (self.cpu_ns() / PERIOD_NS.load(Relaxed).max(1)).saturating_sub(self.taken() + self.skipped())
    }

    /// Samples that struck inside a section of ours and were dropped.
    pub fn skipped(&self) -> u64 {
        self.skipped.load(Relaxed)
    }

    /// Walks the calling thread's stack from `regs`, outside of a sample: creation contexts, waits.
    pub fn walk(
        &self,
        regs: Regs,
        bounds: Range<usize>,
        visit: impl FnMut(&Frame) -> ControlFlow<()>,
    ) -> Stop {
        if !self.ready.get() || self.walking.replace(true) {
            return Stop::Visitor;
        }
        let stack = Stack::new(regs.sp(), bounds);
        // SAFETY: initialized in `start`; `walking` makes this the only reference, the handler included.
        let stop = unwind::walk(regs, stack, unsafe { (*self.scratch.get()).assume_init_mut() }, visit);
        self.walking.set(false);
        stop
    }

    /// Likewise, but only as far as things have changed since the last walk with this trail
    /// (see [`unwind::walk_again`]).
    pub fn walk_again<const D: usize>(
        &self,
        regs: Regs,
        bounds: Range<usize>,
        trail: &mut Trail<D>,
        visit: impl FnMut(&Frame) -> ControlFlow<(), Next>,
    ) -> (Stop, usize) {
        if !self.ready.get() || self.walking.replace(true) {
            trail.forget();
            return (Stop::Visitor, 0);
        }
        let stack = Stack::new(regs.sp(), bounds);
        // SAFETY: as in `walk`.
        let scratch = unsafe { (*self.scratch.get()).assume_init_mut() };
        let found = unwind::walk_again(regs, stack, scratch, trail, visit);
        self.walking.set(false);
        found
    }
}

/// A random part of a period (see `clock`), not so small that a thread's first act is to be interrupted.
fn first_ns(period_ns: u64, salt: u64) -> u64 {
    let mut z = salt ^ u64::from(sys::gettid()) << 32 ^ sys::clock_ns(libc::CLOCK_MONOTONIC);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) % period_ns.max(1)).max(FIRST_MIN_NS)
}

impl Default for ThreadSampler {
    fn default() -> Self {
        Self::new()
    }
}

impl Sample<'_> {
    /// CPU time of the thread since this was last asked, time in the kernel included: what the sample stands
    /// for. Costs a system call, so it is not taken unasked.
    pub fn cpu_ns(&mut self) -> u64 {
        let now = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        now.saturating_sub(self.sampler.last_cpu_ns.replace(now))
    }

    /// Likewise, mostly without a system call: a perf clock strikes after one period of CPU time, so if hardly more
    /// than that has passed on the wall clock (`CLOCK_MONOTONIC`, which the caller has read), all of it was CPU time.
    /// The kernel is asked now and then, and whenever more has passed; that corrects what was taken for granted.
    pub fn cpu_ns_at(&mut self, wall_ns: u64) -> u64 {
        let sampler = self.sampler;
        let passed = wall_ns.saturating_sub(sampler.last_wall_ns.replace(wall_ns));
        let period_ns = PERIOD_NS.load(Relaxed);
        let slack = period_ns / SLACK_PART;
        let unasked = sampler.unasked.get();
        if sampler.clock.backend() == Backend::Perf
            && unasked < UNASKED_MAX
            && (period_ns - slack..=period_ns + slack).contains(&passed)
        {
            sampler.unasked.set(unasked + 1);
            sampler.last_cpu_ns.set(sampler.last_cpu_ns.get() + passed);
            return passed;
        }
        sampler.unasked.set(0);
        let now = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        // Never back: what was taken for granted too much is left out of the next ones.
        let last = sampler.last_cpu_ns.get();
        sampler.last_cpu_ns.set(now.max(last));
        now.saturating_sub(last)
    }

    /// Brings the thread's clock into step with the kernel's tick (see `phase`), which makes samples cheaper. At the
    /// end of a sample that was seen at `wall_ns` (`CLOCK_MONOTONIC`, of which `now` is a reading): now and then it
    /// waits some microseconds.
    #[inline]
    pub fn keep_step(&mut self, wall_ns: u64, now: impl Fn() -> u64) {
        let sampler = self.sampler;
        if !IN_STEP.load(Relaxed) || sampler.clock.backend() != Backend::Perf {
            return;
        }
        let period_ns = PERIOD_NS.load(Relaxed);
        let mut phase = sampler.phase.get();
        match phase.struck(wall_ns, period_ns) {
            Order::Go => {}
            // Never much shorter than a period, however long this sample has taken.
            Order::At(then) => sampler.clock.restart(then.saturating_sub(now()).max(period_ns / 4)),
            Order::Whole => sampler.clock.restart(period_ns),
            Order::StartAt(then) => {
                while now() < then {
                    core::hint::spin_loop();
                }
                sampler.clock.restart(period_ns);
            }
        }
        sampler.phase.set(phase);
    }

    /// Walks the interrupted stack, the innermost frame first.
    #[inline]
    pub fn walk(&mut self, visit: impl FnMut(&Frame) -> ControlFlow<()>) -> Stop {
        self.sampler.walk(self.regs, self.stack.clone(), visit)
    }
}
