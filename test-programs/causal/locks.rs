//! Rust's own locks, which reach the kernel without libc's. Arguments: rounds, steps of the first work, of the second,
//! kind: `mutex` (two threads, most of their time inside a `Mutex`), `channel` (a pipeline over a bounded channel),
//! `condvar` (threads that take turns).
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::Instant;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn point(name: &CStr) -> &'static AtomicUsize {
    static NOWHERE: AtomicUsize = AtomicUsize::new(0);
    // SAFETY: dlsym takes any handle and a name that ends with a nul; if the function is there, it has the signature of
    // coz.h and returns a counter that lives as long as the process.
    unsafe {
        let get = dlsym(std::ptr::null_mut(), c"_coz_get_counter".as_ptr());
        if get.is_null() {
            return &NOWHERE;
        }
        let get: unsafe extern "C" fn(c_int, *const c_char) -> *const AtomicUsize = std::mem::transmute(get);
        get(1, name.as_ptr()).as_ref().unwrap_or(&NOWHERE)
    }
}

static TICKS: AtomicUsize = AtomicUsize::new(0);
static STEPS: AtomicUsize = AtomicUsize::new(0);

// The line of a step is the one that asks for it.
#[collapse_debuginfo(yes)]
macro_rules! spin {
    ($steps:expr) => {
        // SAFETY: counts a register of its own down.
        unsafe {
            let start = std::arch::x86_64::_rdtsc();
            // (Four steps in a turn, see causal.h.)
            std::arch::asm!(".p2align 6", "2: imul {n}, {one}", "dec {n}", "jnz 2b", n = inout(reg) $steps / 4 + 1 => _, one = in(reg) 1u64, options(nostack));
            TICKS.fetch_add((std::arch::x86_64::_rdtsc() - start) as usize, Relaxed);
            STEPS.fetch_add($steps as usize, Relaxed);
        }
    };
}

unsafe extern "C" {
    fn clock() -> i64;
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |i: usize, value: u64| args.get(i).map_or(value, |a| a.parse().unwrap());
    let (rounds, first, second) = (number(1, 40_000), number(2, 200_000), number(3, 20_000));
    let kind = args.get(4).map_or("mutex", String::as_str);
    let progress = point(c"round");
    let start = Instant::now();
    let mut units = rounds;
    match kind {
        "mutex" => {
            let lock = Mutex::new(());
            units = 2 * rounds;
            let work = || {
                for _ in 0..rounds {
                    let held = lock.lock().unwrap();
                    spin!(first); // TARGET first
                    drop(held);
                    spin!(second); // TARGET second
                    progress.fetch_add(1, Relaxed);
                }
            };
            thread::scope(|s| {
                s.spawn(work);
                s.spawn(work);
            });
        }
        "channel" => {
            let (sender, receiver) = mpsc::sync_channel::<()>(8);
            thread::scope(|s| {
                s.spawn(move || {
                    for _ in 0..rounds {
                        spin!(second); // TARGET producer
                        sender.send(()).unwrap();
                    }
                });
                for () in receiver {
                    spin!(first); // TARGET consumer
                    progress.fetch_add(1, Relaxed);
                }
            });
        }
        _ => {
            let (turn, changed) = (Mutex::new(0), Condvar::new());
            let play = |mine: usize| {
                for _ in 0..rounds {
                    drop(changed.wait_while(turn.lock().unwrap(), |turn| *turn != mine).unwrap());
                    if mine == 0 {
                        spin!(first); // TARGET turn
                    } else {
                        spin!(second); // TARGET other
                        progress.fetch_add(1, Relaxed);
                    }
                    *turn.lock().unwrap() = 1 - mine;
                    changed.notify_all();
                }
            };
            thread::scope(|s| {
                s.spawn(|| play(0));
                s.spawn(|| play(1));
            });
        }
    }
    let per_step = TICKS.load(Relaxed) as f64 / STEPS.load(Relaxed) as f64;
    let per_unit = start.elapsed().as_nanos() as f64 / units as f64;
    // SAFETY: no preconditions; microseconds of CPU time.
    let cpu = unsafe { clock() } as f64 * 1000.0 / units as f64;
    println!("{per_unit:.0} ns per unit, {per_step:.6} ticks per step, {cpu:.0} ns of CPU time per unit");
}
