//! A serial part and a `join` of two equal parts, four times, CPU time planned: idleness is known by construction.
//! Arguments: CPU seconds alone and together.

use std::hint::black_box;

fn cpu_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the record is live.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

#[inline(never)]
fn burn(seconds: f64) -> u64 {
    let mut x = 1u64;
    let end = cpu_s() + seconds;
    while cpu_s() < end {
        for _ in 0..2000 {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
        }
    }
    x
}

#[inline(never)]
fn alone(seconds: f64) -> u64 {
    burn(seconds) + 1
}

#[inline(never)]
fn together(seconds: f64) -> u64 {
    let (a, b) = rayon::join(|| burn(seconds), || burn(seconds));
    a ^ b
}

fn main() {
    let argument = |i: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(0.1);
    let (serial, parallel) = (argument(1), argument(2));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool");
    let x = (0..4).fold(0, |x, _| x ^ pool.install(|| alone(serial) ^ together(parallel)));
    println!("{}", u8::from(x != 1));
}
