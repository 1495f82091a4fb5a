//! A tree of `join`s over pieces of work of a known size, and the same program with calls in place of `join`: what does a
//! task cost? Prints CPU seconds of the computation. Arguments: depth of the tree, steps of a piece, threads of the pool
//! (0: calls).

use std::hint::black_box;
use std::time::Duration;

/// Steps of some ten nanoseconds that depend on each other, between two waits for all that came before. Without these the
/// processor would do a small piece while it is busy with the task before or the one behind: what tasks cost and what is
/// gained without them would be two things.
#[inline(never)]
fn piece(steps: u64) -> u64 {
    let mut x = steps | 1;
    // SAFETY: multiplies a register and counts another down; touches no memory and no stack.
    unsafe {
        std::arch::asm!(
            "lfence",
            "2:",
            ".rept 10", "imul {x}, {x}", ".endr",
            "dec {n}", "jnz 2b",
            "lfence",
            n = inout(reg) steps.max(1) => _, x = inout(reg) x, options(nomem, nostack)
        );
    }
    black_box(x);
    steps
}

#[inline(never)]
fn parallel(depth: u32, steps: u64) -> u64 {
    if depth == 0 {
        return piece(steps);
    }
    let (a, b) = rayon::join(|| parallel(depth - 1, steps), || parallel(depth - 1, steps));
    a + b
}

#[inline(never)]
fn elided(depth: u32, steps: u64) -> u64 {
    if depth == 0 {
        return piece(steps);
    }
    let (a, b) = (|| elided(depth - 1, steps), || elided(depth - 1, steps));
    a() + b()
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
    let (depth, steps, threads) = (number(1, 16) as u32, number(2, 1000), number(3, 1));
    if threads == 0 {
        let before = cpu();
        black_box(elided(black_box(depth), steps));
        println!("{:.6}", (cpu() - before).as_secs_f64());
        return;
    }
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads as usize).build().expect("a pool");
    let before = cpu();
    black_box(pool.install(|| parallel(black_box(depth), steps)));
    println!("{:.6}", (cpu() - before).as_secs_f64());
}
