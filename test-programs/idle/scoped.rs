//! Scoped threads of the standard library: one thread works alone, then two work together, CPU time planned.
//! Arguments: CPU seconds alone and together, four times each.

use std::hint::black_box;

fn cpu_s() -> f64 {
    #[repr(C)]
    struct Time([i64; 2]);
    unsafe extern "C" {
        fn clock_gettime(which: i32, time: *mut Time) -> i32;
    }
    const THREAD_CPU: i32 = 3;
    let mut time = Time([0; 2]);
    // SAFETY: the record is live and of the C library's layout on x86-64.
    unsafe { clock_gettime(THREAD_CPU, &mut time) };
    time.0[0] as f64 + time.0[1] as f64 * 1e-9
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
    burn(seconds) + 2
}

fn main() {
    let argument = |i: usize| std::env::args().nth(i).and_then(|a| a.parse().ok()).unwrap_or(0.1);
    let (serial, parallel) = (argument(1), argument(2));
    let mut x = 0;
    for _ in 0..4 {
        x ^= alone(serial);
        x ^= std::thread::scope(|s| {
            let helper = s.spawn(|| together(parallel));
            together(parallel) ^ helper.join().unwrap_or(0)
        });
    }
    println!("{}", u8::from(x != 1));
}
