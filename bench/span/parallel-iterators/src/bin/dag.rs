//! Known graphs of spinning strands: prints the work and span that they have, in nanoseconds of this processor.
//!
//! `dag SHAPE N [STEPS]`, the same steps in every run. What a strand costs when nothing disturbs it is the lowest fifth of
//! many measurements: not the least, because now and then a processor runs faster for some milliseconds.

use std::arch::asm;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// In registers: through memory, what a step costs would depend on where the stack is.
fn spin(steps: u64) {
    let mut x = 1u64;
    for _ in 0..steps {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // SAFETY: no instruction at all; the compiler only must not know what is in `x`.
        unsafe { asm!("/* {0} */", inout(reg) x, options(pure, nomem, nostack, preserves_flags)) };
    }
    black_box(x);
}

/// The undisturbed time of `steps`.
fn undisturbed(steps: u64) -> Duration {
    let mut times: Vec<Duration> = (0..120)
        .map(|_| {
            let start = Instant::now();
            spin(steps);
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 5]
}

fn tree(depth: u32, s: u64) {
    if depth == 0 {
        return spin(s);
    }
    rayon::join(|| tree(depth - 1, s), || tree(depth - 1, s));
}

fn skewed(n: u32, s: u64) {
    if n == 0 {
        return;
    }
    spin(s);
    rayon::join(|| skewed(n - 1, s), || spin(s));
}

fn chain(n: u32, s: u64) {
    for _ in 0..n {
        rayon::join(|| spin(s), || ());
    }
}

fn wide(n: u32, s: u64) {
    use rayon::prelude::*;
    (0..n).into_par_iter().with_max_len(1).for_each(|_| spin(s));
}

fn rounds(n: u32, s: u64) {
    for _ in 0..n {
        rayon::scope(|t| {
            t.spawn(|_| spin(s));
            t.spawn(|_| spin(3 * s));
            spin(2 * s);
        });
    }
}

fn run(shape: &str, n: u32, s: u64) {
    match shape {
        "tree" => tree(n, s),
        "skewed" => skewed(n, s),
        "chain" => chain(n, s),
        "wide" => wide(n, s),
        _ => rounds(n, s),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let shape = args.get(1).map_or("tree", String::as_str);
    let n: u32 = args.get(2).and_then(|a| a.parse().ok()).unwrap_or(6);
    let steps: u64 = args.get(3).and_then(|a| a.parse().ok()).unwrap_or(200_000);
    // Starting threads disturbs who runs meanwhile, at the same place in every run.
    rayon::broadcast(|_| ());
    let before = undisturbed(steps);
    // The graph hangs off one join, whose first side is the site to look at.
    rayon::join(|| run(shape, n, steps), || ());
    let (work, span) = match shape {
        "tree" => (1 << n, 1),
        "skewed" => (2 * n, n + 1),
        "chain" => (n, n),
        "wide" => (n, 1),
        _ => (6 * n, 3 * n),
    };
    let one = before.min(undisturbed(steps)).as_nanos() as u64;
    println!("{} {}", u64::from(work) * one, u64::from(span) * one);
}
