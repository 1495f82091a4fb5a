//! Fibonacci numbers by `join` down to a cutoff, and without: what does a task cost? Prints CPU seconds of the
//! computation. Arguments: n, cutoff (`serial` for no tasks at all), threads of the pool.

use std::hint::black_box;
use std::time::Duration;

#[inline(never)]
fn serial(n: u32) -> u64 {
    if n < 2 { u64::from(n) } else { serial(n - 1) + serial(n - 2) }
}

#[inline(never)]
fn parallel(n: u32, cutoff: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    if n <= cutoff {
        return serial(n);
    }
    let (a, b) = rayon::join(|| parallel(n - 1, cutoff), || parallel(n - 2, cutoff));
    a + b
}

/// CPU time of the whole process.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let main = text.split_whitespace().next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut ns: u64 = main;
    for task in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        if task.file_name().to_str().and_then(|n| n.parse::<u32>().ok()) == Some(std::process::id()) {
            continue;
        }
        let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        ns += text.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    }
    Duration::from_nanos(ns)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |i: usize, otherwise| words.get(i).and_then(|a| a.parse().ok()).unwrap_or(otherwise);
    let (n, threads) = (number(1, 32), number(3, 1));
    if words.get(2).is_some_and(|w| w == "serial") {
        let before = cpu();
        black_box(serial(black_box(n)));
        println!("{:.6}", (cpu() - before).as_secs_f64());
        return;
    }
    let cutoff = number(2, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build().expect("a pool");
    let before = cpu();
    black_box(pool.install(|| parallel(black_box(n), cutoff)));
    println!("{:.6}", (cpu() - before).as_secs_f64());
}
