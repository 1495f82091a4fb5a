//! What the parts of a sample cost: `cargo run --release -p sampler --example sample-cost`.
//!
//! Each line is the best of several repetitions, in nanoseconds of this thread's CPU time.

use core::hint::black_box;
use core::ops::ControlFlow;
use preload::arena::Arena;
use preload::sys;
use sampler::clock::{Backend, Clock};
use sampler::stack::Stack;
use sampler::tree::{ROOT, Tree};
use sampler::{Regs, cache, cfi, module, unwind};

const DEPTH: usize = 22;

fn main() {
    assert!(module::start());
    recurse(DEPTH, &mut || {
        let mut scratch = cfi::Scratch::new();
        let top = &raw const scratch as usize;
        let mut keys = [0u64; 256];
        let mut depth = 0;
        let mut walk = |bounds: core::ops::Range<usize>, keys: &mut [u64; 256]| {
            let regs = Regs::here();
            depth = 0;
            unwind::walk(regs, Stack::new(regs.sp(), bounds), &mut scratch, |frame| {
                keys[depth] = frame.key.0;
                depth += 1;
                ControlFlow::Continue(())
            });
            depth as f64
        };
        let trusted = top - 65536..top + 65536;
        let frames = walk(trusted.clone(), &mut keys);
        println!("{:8.0} frames in the stack that is walked", frames);
        let cached = best(2000, || walk(trusted.clone(), &mut keys));
        println!("{cached:8.0} per walk, {:.1} per frame", cached / frames);
        let probed = best(2000, || walk(0..0, &mut keys));
        println!("{probed:8.0} per walk of a stack with unknown bounds");
        let cold = best(50, || {
            cache::forget();
            walk(trusted.clone(), &mut keys)
        });
        println!("{cold:8.0} per walk with an empty cache, {:.0} per distinct pc at most", cold / frames);
        let arena = Arena::new();
        arena.reserve(1 << 24).unwrap();
        let tree = Tree::<2>::new();
        let path = best(2000, || tree.path(&arena, ROOT, keys.iter().take(frames as usize).rev().copied()));
        println!("{path:8.0} per path into the tree, {:.1} per frame", path / frames);
    });
    let clock = best(2000, || sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID));
    println!("{clock:8.0} per reading of the thread's CPU clock");
    for backend in [Backend::Perf, Backend::Timer] {
        let clock = Clock::new();
        let signal = libc::SIGSTKFLT;
        let found = clock.start(backend, 1_000_000_000, 1_000_000_000, signal);
        clock.stop();
        let start = best(200, || {
            clock.start(backend, 1_000_000_000, 1_000_000_000, signal);
            clock.stop();
        });
        println!("{start:8.0} to start and stop a thread's clock ({found:?})");
    }
}

#[inline(never)]
fn recurse(depth: usize, f: &mut dyn FnMut()) {
    if depth == 0 {
        f();
    } else {
        recurse(depth - 1, f);
    }
    black_box(depth);
}

fn best<R>(count: u32, mut f: impl FnMut() -> R) -> f64 {
    (0..7)
        .map(|_| {
            let start = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            for _ in 0..count {
                black_box(f());
            }
            (sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID) - start) as f64 / count as f64
        })
        .fold(f64::MAX, f64::min)
}
