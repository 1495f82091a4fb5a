//! Samples inside the strands of `farsight span --cost time`: which calls a strand was in when the thread's clock struck.
//!
//! A preloaded library beside the span runtime, which is compiled into the program. It does nothing until that runtime
//! asks ([`ask`], [`thread`]): then every thread that runs strands is interrupted after each period of its CPU time, its
//! stack is walked up to where the strand's task begins, and the calls of the program's own functions on the way are
//! counted in a log of the thread (`wire::strand`). The runtime reads the log when the strand ends.
//!
//! # Rules
//! - Those of `preload` and `sampler`: no heap, no locks, no panics, no symbols. Clocks and unwinding are `sampler`'s.
//! - The log is written in the handler alone, and read by its own thread alone, outside of strands, when the handler does
//!   not write.
//! - What a sample costs the strand that it interrupts is measured once ([`ask`]), for the runtime to take off.
#![no_std]

mod chains;

use chains::Chains;
use core::cell::{Cell, UnsafeCell};
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use preload::arena::Arena;
use preload::{AfterFork, Hooks, Interest, Thread, process, thread as threads};
use sampler::{Backend, Config, Frame, Regs, Sample, Sampled, ThreadSampler, module};
use wire::strand::{BODY, CALLS_MAX, Call, ENTRIES_MAX, Entry, INSIDE_MAX, Inside, StrandLog, VERSION, Word};

/// CPU time between two samples of a thread: some hundred a second say enough, and cost some percent.
const PERIOD_NS: u64 = 2_000_000;
/// Frames that are walked at most.
const FRAMES_MAX: usize = 512;
/// Address space for chains.
const CHAINS_BYTES: usize = 64 << 20;
/// Samples from which the cost of one is taken, and how soon each strikes.
const ROUNDS: usize = 9;
const SOON_NS: u64 = 30_000;
/// Ticks to wait for one: coarse timers strike once in some milliseconds.
const PATIENCE: u64 = 60_000_000;

/// The runtime.
#[derive(Debug)]
pub struct Strands;

/// What is kept per thread.
#[derive(Debug)]
pub struct Local {
    sampler: ThreadSampler,
    /// The span runtime's word, or null.
    word: Cell<*const Word>,
    log: UnsafeCell<StrandLog>,
    chains: Chains,
}

static ARENA: Arena = Arena::new();
/// Pairs of addresses, in the span runtime's memory, and their number.
static TABLE: AtomicPtr<[u64; 2]> = AtomicPtr::new(core::ptr::null_mut());
static FUNCTIONS: AtomicUsize = AtomicUsize::new(0);
/// Ticks that a sample takes away from its strand; 0 before sampling was asked for.
static COST: AtomicU64 = AtomicU64::new(0);

impl Hooks for Strands {
    type Local = Local;
    const INTEREST: Interest = Interest::NONE;

    fn new_local() -> Local {
        let nothing = Entry { chain: core::ptr::null(), count: 0 };
        Local {
            sampler: ThreadSampler::new(),
            word: Cell::new(core::ptr::null()),
            log: UnsafeCell::new(StrandLog { taken: 0, len: 0, lost: 0, entries: [nothing; ENTRIES_MAX] }),
            chains: Chains::new(),
        }
    }

    fn thread_ended(thread: &Thread<Local>) {
        if !thread.local().word.replace(core::ptr::null()).is_null() {
            thread.local().sampler.stop();
        }
    }

    fn forked(_: Option<&Thread<Local>>) -> AfterFork {
        threads::for_each::<Self>(|thread| thread.local().sampler.forked());
        AfterFork::Leave
    }

    fn unloading(closed: bool) {
        if closed { module::closed() } else { module::closing() }
    }
}

impl Sampled for Strands {
    fn sampler(local: &Local) -> &ThreadSampler {
        &local.sampler
    }

    fn sample(thread: &Thread<Local>, sample: &mut Sample) {
        let local = thread.local();
        // SAFETY: null, or the word of this thread's runtime, which is never freed.
        let base = unsafe { local.word.get().as_ref() }.map_or(0, |word| {
            // SAFETY: as above; only this thread writes it, and it has been interrupted.
            unsafe { core::ptr::from_ref(word).read_volatile() }
        });
        if base != 0 {
            local.count(base, sample);
        }
    }
}

impl Local {
    fn count(&self, base: u64, sample: &mut Sample) {
        let mut calls = [Call::default(); CALLS_MAX];
        let mut len = 0;
        sample.walk(calls_below(base, |call, _| {
            if let Some(place) = calls.get_mut(len) {
                *place = call;
                len += 1;
            }
            len < CALLS_MAX
        }));
        // SAFETY: the handler is the only writer, and does not nest.
        let log = unsafe { &mut *self.log.get() };
        log.taken += 1;
        let Some(chain) = self.chains.get(calls.get(..len).unwrap_or_default(), &ARENA) else {
            log.lost += 1;
            return;
        };
        let used = log.len as usize;
        let entries = &mut log.entries;
        if let Some(known) = entries.iter_mut().take(used).find(|e| core::ptr::eq(e.chain, chain)) {
            known.count += 1;
        } else if let Some(free) = entries.get_mut(used) {
            *free = Entry { chain, count: 1 };
            log.len += 1;
        } else {
            log.lost += 1;
        }
    }
}

/// Visits frames from the innermost on: `each` gets every call of the program's own functions that was made below `base`,
/// and where its return address lies, up to the body of a task, and says whether to go on.
fn calls_below(base: u64, mut each: impl FnMut(Call, u64) -> bool) -> impl FnMut(&Frame) -> ControlFlow<()> {
    let mut frames = 0;
    let mut callee = None;
    move |frame| {
        let sp = frame.regs.sp();
        if sp > base || frames == FRAMES_MAX {
            return ControlFlow::Break(());
        }
        frames += 1;
        let pc = frame.key.pc();
        if let Some(function) = callee.take()
            && !each(Call { function, site: pc }, sp.wrapping_sub(8))
        {
            return ControlFlow::Break(());
        }
        match function_at(if frame.key.is_exact() { pc } else { pc - 1 }) {
            Some((_, true)) => ControlFlow::Break(()),
            Some((function, false)) => {
                callee = Some(function);
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }
}

/// The calls that the calling thread is in below `base`, the innermost first; how many.
///
/// # Safety
/// There is room for [`INSIDE_MAX`] at `out`. Called outside of strands.
#[inline(never)]
pub unsafe fn inside(base: u64, out: *mut Inside) -> usize {
    let Some(thread) = threads::known::<Local>() else { return 0 };
    let mut len = 0;
    let visit = calls_below(base, |call, frame| {
        // SAFETY: by contract: there is room.
        unsafe { out.add(len).write(Inside { call, frame }) };
        len += 1;
        len < INSIDE_MAX
    });
    thread.local().sampler.walk(Regs::here(), thread.stack(), visit);
    len
}

/// The number of the function that holds an address; whether it is the body of a task.
fn function_at(pc: u64) -> Option<(u64, bool)> {
    let table = TABLE.load(Relaxed);
    if table.is_null() {
        return None;
    }
    // SAFETY: the span runtime never frees the table, and has given its length before its address.
    let table = unsafe { core::slice::from_raw_parts(table, FUNCTIONS.load(Relaxed)) };
    let n = table.partition_point(|f| f[0] <= pc).checked_sub(1)?;
    let end = table.get(n)?[1];
    (pc < end & !BODY).then_some((n as u64, end & BODY != 0))
}

/// The span runtime asks for samples of strands: `table` has `functions` pairs of addresses, in order. What a sample costs
/// its strand, in ticks; 0 if there will be none.
///
/// # Safety
/// The table is never freed. Called once, on a thread of the program.
pub unsafe fn ask(version: u64, table: *mut [u64; 2], functions: usize) -> u64 {
    if version != VERSION || !process::active() || ARENA.reserve(CHAINS_BYTES).is_err() {
        return 0;
    }
    let Some(thread) = threads::known::<Local>() else { return 0 };
    let config = Config { period_ns: PERIOD_NS, backend: Backend::Perf };
    if sampler::install::<Strands>(config).is_err() {
        return 0;
    }
    FUNCTIONS.store(functions, Relaxed);
    TABLE.store(table, Release);
    let cost = measure(thread.local());
    COST.store(cost, Relaxed);
    cost
}

/// Samples of a loop that does nothing but look at the clock: the time that is missing.
fn measure(local: &Local) -> u64 {
    let base: Word = Word::MAX;
    local.word.set(&raw const base);
    let mut costs = [0; ROUNDS];
    let mut found = 0;
    for cost in &mut costs {
        let before = local.sampler.taken();
        if local.sampler.start_soon(SOON_NS) == Backend::None {
            break;
        }
        let start = ticks();
        let (mut last, mut longest) = (start, 0);
        while local.sampler.taken() == before && last - start < PATIENCE {
            let now = ticks();
            longest = longest.max(now - last);
            last = now;
        }
        longest = longest.max(ticks() - last);
        let struck = local.sampler.taken() > before;
        local.sampler.stop();
        if !struck {
            break;
        }
        *cost = longest;
        found += 1;
    }
    local.word.set(core::ptr::null());
    // SAFETY: the clock is stopped, so there is no handler.
    let log = unsafe { &mut *local.log.get() };
    (log.taken, log.len, log.lost) = (0, 0, 0);
    // The least: other load makes gaps longer, and where runs are compared the shortest strand counts, which must not be one
    // from which too much was taken off.
    costs.iter().take(found).copied().min().unwrap_or(0)
}

fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has it, and Linux lets user code read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The calling thread will run strands, and says so in `word`: its log, or null if it is not sampled.
///
/// # Safety
/// The word is never freed, and is written by this thread alone.
pub unsafe fn thread(word: *const Word) -> *mut StrandLog {
    match threads::known::<Local>() {
        Some(thread) if COST.load(Relaxed) != 0 => {
            let local = thread.local();
            local.word.set(word);
            // SAFETY: the clock has not started, so there is no handler.
            let log = unsafe { &mut *local.log.get() };
            (log.taken, log.len, log.lost) = (0, 0, 0);
            local.sampler.start();
            local.log.get()
        }
        _ => core::ptr::null_mut(),
    }
}
