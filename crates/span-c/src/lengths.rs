//! Work and span of the program as a whole, in time: what rewritten programs compute themselves.
//!
//! `farsight/cilk_rt.h` has the algorithm, inline: a frame is a variable of the function that it belongs to. It is that of
//! [`spandag::whole`], with lengths in fractions of a tick, which needs no stack of ours and calls us only to read
//! the clock. What is here: the numbers that it computes with, the reading, and the result.
//!
//! # Rules
//! - The layout is that of `struct farsight_lengths`.
//! - Only the thread that `thread` names touches the rest.

use crate::main_thread::{Main, thread};
use crate::straight::{FRACTION, Straight};
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};
use span_rt::clock;
use spandag::serial::Totals;

/// `struct farsight_lengths`.
#[repr(C)]
pub struct Lengths {
    /// Thread pointer of the thread whose these are; 0 in other modes.
    thread: AtomicUsize,
    numbers: UnsafeCell<Numbers>,
}

#[repr(C)]
#[derive(Default)]
struct Numbers {
    straight: Straight,
    here: u64,
    extra: u64,
    burden: u64,
    furthest: u64,
    spawns: u64,
    syncs: u64,
    near: u64,
    work: u64,
}

// SAFETY: only the thread that it names uses the numbers.
unsafe impl Sync for Lengths {}

static LENGTHS: Lengths =
    Lengths { thread: AtomicUsize::new(0), numbers: UnsafeCell::new(Numbers::nothing()) };

impl Numbers {
    const fn nothing() -> Self {
        Numbers {
            straight: Straight::nothing(),
            here: 0,
            extra: 0,
            burden: 0,
            furthest: 0,
            spawns: 0,
            syncs: 0,
            near: 0,
            work: 0,
        }
    }
}

/// Where they are.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_lengths() -> *const Lengths {
    &raw const LENGTHS
}

/// The strand ends.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_read(near: c_int) {
    if let Some(main) = Main::get() {
        read(main, near != 0);
    }
}

/// The next strand starts now.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_restart() {
    if let Some(main) = Main::get() {
        numbers().straight.forget();
        main.restart();
    }
}

fn numbers() -> &'static mut Numbers {
    // SAFETY: asked for by the main thread alone; no caller keeps the reference across a call into the program.
    unsafe { &mut *LENGTHS.numbers.get() }
}

fn read(main: &mut Main, near: bool) {
    let (cost, now) = main.clock.end(main.begun);
    main.begun = now;
    let l = numbers();
    let (passed, left) = l.straight.settle(cost);
    l.work += passed;
    l.here += left;
    l.straight.follows(near);
}

/// Measures what a hook costs that reads the clock.
pub fn calibrate(main: &mut Main) {
    const ROUNDS: u64 = 640;
    let reads = core::hint::black_box(farsight_read as extern "C" fn(c_int));
    let mut reading = u64::MAX;
    for _ in 0..10 {
        let start = clock::tsc();
        (0..ROUNDS).for_each(|_| reads(0));
        reading = reading.min((clock::tsc() - start) / ROUNDS);
    }
    clock::HOOK.store(reading, Ordering::Relaxed);
    *numbers() = Numbers::nothing();
    main.restart();
}

/// Whether programs compute themselves.
pub fn are_computed() -> bool {
    LENGTHS.thread.load(Ordering::Relaxed) != 0
}

/// Does something that only measures hooks: lengths stay as they are.
pub fn as_pattern(what: impl FnOnce()) {
    let saved = core::mem::take(numbers());
    numbers().straight.start(0);
    numbers().straight.follows(true);
    numbers().near = 1;
    what();
    *numbers() = saved;
}

/// Readings of the clock are shared from now on; a hook without one costs `hook` ticks.
pub fn start_straight(hook: u64) {
    numbers().straight.start(hook);
}

/// From now on programs compute themselves.
pub fn start(burden: u64) {
    numbers().burden = burden * FRACTION;
    LENGTHS.thread.store(thread(), Ordering::Relaxed);
}

/// The end of the program, if it did.
pub fn finish(main: &mut Main) -> Option<Totals> {
    if LENGTHS.thread.swap(0, Ordering::Relaxed) == 0 {
        return None;
    }
    read(main, false);
    let l = numbers();
    // What it has not waited for counts as waited for.
    let span = l.here.max(l.furthest);
    let burdened = (l.here + l.extra).max(span);
    let [work, span, burdened] = [l.work, span, burdened].map(|fractions| fractions / FRACTION);
    let mut totals = Totals {
        work: work.max(span),
        span,
        burdened,
        spawns: l.spawns,
        syncs: l.syncs,
        ..Totals::default()
    };
    totals.only_whole();
    Some(totals)
}
