//! What our own hooks cost, measured when the program starts, to be taken off what is measured then.
//!
//! Twice: before anything else, by calling hooks as a program would, which is all that programs without Cilk have; and
//! then by a tree of calls that do nothing ([`farsight_calibrate`]), which the program's own compiler has compiled, as what
//! it inlines into the program is also ours. Of a tree with N forks, in a function that is called or spawned at each node:
//! ```text
//! hooks             spawn, end of the task, wait, call: 4 N        begin and return: 2 (2 N + 1)
//! ends of strands   with call sites: all but call, and begin and return of what was spawned; else spawn, end, wait
//! ```

use crate::cilk;
use crate::lengths;
use crate::main_thread::{Main, Pending};
use crate::straight;
use core::ffi::c_int;
use core::sync::atomic::Ordering;
use span_rt::clock;
use span_rt::env::{Cost, settings};
use spandag::serial::Stack;
use spandag::whole::Whole;

const ROUNDS: u64 = 200;
/// Of each measurement, the least counts.
const TRIES: usize = 10;
const DEPTH: c_int = 7;
const FORKS: u64 = (1 << DEPTH) - 1;
const HOOKS: u64 = 4 * FORKS + 2 * (2 * FORKS + 1);

/// Measures what a strand of nothing shows: by calling what rewritten programs call, as they do.
pub fn strand() {
    let [spawn, child_end, sync] =
        core::hint::black_box([cilk::spawn_nothing, cilk::end_nothing, cilk::sync_nothing]);
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        let Some(main) = Main::get() else { return };
        fresh(main);
        for _ in 0..ROUNDS {
            spawn(false);
            child_end(false);
            sync(false);
        }
        let Some(main) = Main::get() else { return };
        least = least.min(work(main) / (3 * ROUNDS));
    }
    clock::HOOK.store(least, Ordering::Relaxed);
}

fn fresh(main: &mut Main) {
    main.stack = Stack::new(u64::MAX, 0);
    main.whole = Whole::new(0);
    main.restart();
}

fn work(main: &mut Main) -> u64 {
    let cost = main.end_strand();
    cost + if main.is_whole { main.whole.work() } else { main.stack.work() }
}

/// Measures again, with the program's own code.
///
/// # Safety
/// Called before `main`. The functions are those of the header that declares this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_calibrate(
    pattern: extern "C" fn(c_int),
    far: extern "C" fn(c_int),
    bare: extern "C" fn(c_int),
) {
    let Some(main) = Main::get() else { return };
    let stack = core::mem::replace(&mut main.stack, Stack::new(u64::MAX, 0));
    let whole = core::mem::replace(&mut main.whole, Whole::new(0));
    let spawned = main.spawned;
    if settings().cost == Cost::Instructions {
        instructions(far, bare);
    } else if settings().cost == Cost::Time && !main.anew {
        if lengths::are_computed() {
            let hook = least(|| lengths::as_pattern(|| pattern(DEPTH))).saturating_sub(least(|| bare(DEPTH)));
            lengths::start_straight(straight::hook(hook, 3 * FORKS));
        } else {
            let ends = 3 * FORKS + 2 * (FORKS + 1);
            let hooks = least(|| {
                if let Some(main) = Main::get() {
                    main.straight.start(0);
                    fresh(main);
                    main.straight.follows(true);
                    main.near = true;
                }
                pattern(DEPTH);
            });
            let hook = straight::hook(hooks.saturating_sub(least(|| bare(DEPTH))), ends);
            if let Some(main) = Main::get() {
                main.straight.start(hook);
            }
        }
    }
    let Some(main) = Main::get() else { return };
    (main.stack, main.whole, main.spawned) = (stack, whole, spawned);
    main.pending = Pending::Unknown;
    main.restart();
}

/// Every hook ends a strand. What is counted of hooks that are not a twin's is calling them.
fn instructions(pattern: extern "C" fn(c_int), bare: extern "C" fn(c_int)) {
    clock::HOOK.store(0, Ordering::Relaxed);
    let [with, without] = [pattern, bare].map(|tree| {
        if let Some(main) = Main::get() {
            fresh(main);
        }
        tree(DEPTH);
        Main::get().map_or(0, work)
    });
    clock::HOOK.store(with.saturating_sub(without) / (HOOKS + 1), Ordering::Relaxed);
}

/// Ticks.
fn least(mut what: impl FnMut()) -> u64 {
    let mut once = || {
        let start = clock::tsc();
        what();
        clock::tsc() - start
    };
    (0..TRIES).map(|_| once()).min().unwrap_or(0)
}
