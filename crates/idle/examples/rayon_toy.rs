//! A rayon program whose logical call paths are known: every leaf is below alpha, beta, gamma or serial, below main.
//! Arguments: threads of the pool, repetitions.

use std::hint::black_box;
use std::sync::Mutex;

use rayon::prelude::*;

#[inline(never)]
fn leaf(n: u64) -> u64 {
    let mut x = n | 1;
    for _ in 0..100_000u64 {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
    x
}

#[inline(never)]
fn alpha(depth: u32, n: u64) -> u64 {
    if depth == 0 {
        return leaf(n);
    }
    let (a, b) = rayon::join(|| alpha(depth - 1, 2 * n), || alpha(depth - 1, 2 * n + 1));
    a ^ b
}

#[inline(never)]
fn beta() -> u64 {
    (0..1024u64).into_par_iter().map(leaf).reduce(|| 0, |a, b| a ^ b)
}

#[inline(never)]
fn gamma() -> u64 {
    let sum = Mutex::new(0);
    rayon::scope(|s| {
        for i in 0..64 {
            let sum = &sum;
            s.spawn(move |_| *sum.lock().expect("no panics") ^= leaf(i));
        }
    });
    sum.into_inner().expect("no panics")
}

#[inline(never)]
fn serial() -> u64 {
    (0..1000).fold(0, |x, i| x ^ leaf(i))
}

fn main() {
    let argument = |i: usize| std::env::args().nth(i).and_then(|a| a.parse().ok());
    let (threads, repetitions) = (argument(1).unwrap_or(3), argument(2).unwrap_or(1));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
    let mut x = 0;
    for _ in 0..repetitions {
        x ^= pool.install(|| alpha(10, 1) ^ beta() ^ (0..8).fold(0, |x, _| x ^ gamma()));
        x ^= serial();
    }
    println!("{}", x & 1);
}
