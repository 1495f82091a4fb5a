//! The integral of `cores / working` over time, which threads claim piece by piece (see `wire::idle`).
//!
//! ```text
//! now   working threads, 16 bits | ns since start, 48 bits
//! sum   integral up to then, in 1/256 ns
//! ```
//! Both words change together by one 16-byte compare-and-swap, so that threads which begin and end to wait at
//! the same time lose nothing. Whoever closes an interval in which nobody worked adds it to `nobody_ns`.
//!
//! Lock-free and signal-safe; the clock is the kernel's vdso, which neither blocks nor touches `errno`.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering::*};
use wire::idle::{EFFORT_BITS, Header};

const TIME_BITS: u32 = 48;
const TIME: u64 = (1 << TIME_BITS) - 1;

/// A moment: time since start and the integral then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// ns since the runtime's start.
    pub ns: u64,
    /// The integral.
    pub sum: u64,
}

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub fn clock_ns() -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the record is live. With a valid clock the call cannot fail, so `errno` stays.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// A 16-byte cell of (count, time) and an integral. Lives in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Integral {
    cell: *mut u64,
}

impl Integral {
    /// # Safety
    /// `cell` must point to two words, aligned to 16, that stay mapped, and be changed through this type only.
    pub unsafe fn new(cell: *mut u64) -> Self {
        Self { cell }
    }

    fn words(self) -> (&'static AtomicU64, &'static AtomicU64) {
        // SAFETY: by the contract of `new`.
        unsafe { (AtomicU64::from_ptr(self.cell), AtomicU64::from_ptr(self.cell.add(1))) }
    }

    /// A consistent pair: the sum changes only together with the time.
    fn load(self) -> (u64, u64) {
        let (now, sum) = self.words();
        loop {
            let before = now.load(Acquire);
            let total = sum.load(Acquire);
            if now.load(Acquire) == before {
                return (before, total);
            }
            core::hint::spin_loop();
        }
    }

    /// Changes the count by `by` at `ns` and adds the interval that ends here, `rate(count)` per ns. The moment,
    /// the count before, and the length of the interval.
    pub fn change(self, ns: u64, by: i64, rate: impl Fn(u64, u64) -> u64) -> (Moment, u64, u64) {
        let (mut now, mut sum) = self.load();
        loop {
            let (count, then) = (now >> TIME_BITS, now & TIME);
            let at = ns.max(then);
            let total = sum.wrapping_add(rate(count, at - then));
            let next = count.saturating_add_signed(by).min(u64::from(u16::MAX));
            let (old, new) = (pair(now, sum), pair(next << TIME_BITS | at & TIME, total));
            // SAFETY: aligned and mapped by the contract of `new`; every x86-64 processor since 2006 has the
            // instruction.
            let found = unsafe { exchange(self.cell.cast(), old, new) };
            if found == old {
                return (Moment { ns: at, sum: total }, count, at - then);
            }
            (now, sum) = (found as u64, (found >> 64) as u64);
        }
    }

    /// The integral at `ns`.
    pub fn at(self, ns: u64, rate: impl Fn(u64, u64) -> u64) -> Moment {
        let (now, sum) = self.load();
        let (count, then) = (now >> TIME_BITS, now & TIME);
        let at = ns.max(then);
        Moment { ns: at, sum: sum.wrapping_add(rate(count, at - then)) }
    }
}

/// Compares and swaps 16 bytes, and gives what was there. Written out because the compiler calls a library for
/// it otherwise.
///
/// # Safety
/// `at` must be valid for atomic accesses and aligned to 16.
unsafe fn exchange(at: *mut u128, old: u128, new: u128) -> u128 {
    let (mut low, mut high) = (old as u64, (old >> 64) as u64);
    // SAFETY: by contract; rbx, which the compiler keeps for itself, is put back.
    unsafe {
        asm!("xchg rbx, rsi", "lock cmpxchg16b [rdi]", "xchg rbx, rsi",
            in("rdi") at, inlateout("rsi") new as u64 => _, in("rcx") (new >> 64) as u64,
            inlateout("rax") low, inlateout("rdx") high, options(nostack));
    }
    pair(low, high)
}

fn pair(low: u64, high: u64) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// The run's effort.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    integral: Integral,
    header: *mut Header,
    cores: u64,
    start_ns: u64,
}

impl Effort {
    /// # Safety
    /// `header` must be the header of the shared file, mapped for good.
    pub unsafe fn new(header: *mut Header) -> Self {
        // SAFETY: the pair is the header's first 16 bytes; see `wire::idle::Header`.
        let integral = unsafe { Integral::new((&raw mut (*header).effort_now).cast()) };
        // SAFETY: by contract.
        let (cores, start_ns) = unsafe { (u64::from((*header).cores), (*header).start_ns) };
        Self { integral, header, cores: cores.max(1), start_ns }
    }

    fn rate(self) -> impl Fn(u64, u64) -> u64 {
        let cores = self.cores;
        move |working, ns| match working {
            0 => 0,
            working => ((u128::from(ns * cores) << EFFORT_BITS) / u128::from(working)) as u64,
        }
    }

    /// ns since the runtime's start.
    #[inline]
    pub fn now_ns(self) -> u64 {
        clock_ns().saturating_sub(self.start_ns)
    }

    /// One more working thread, or one less.
    pub fn change(self, by: i64) -> Moment {
        let (moment, working, ns) = self.integral.change(self.now_ns(), by, self.rate());
        if working == 0 {
            // SAFETY: the header stays mapped.
            let nobody = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).nobody_ns) };
            nobody.fetch_add(ns, Relaxed);
        }
        moment
    }

    /// The integral at a reading of `CLOCK_MONOTONIC` that was taken just now.
    pub fn look(self, wall_ns: u64) -> Moment {
        self.integral.at(wall_ns.saturating_sub(self.start_ns), self.rate())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[repr(align(16))]
    struct Cell([u64; 2]);

    #[test]
    fn integrates_what_a_naive_sum_does() {
        let cell = std::boxed::Box::leak(std::boxed::Box::new(Cell([0; 2])));
        // SAFETY: aligned, leaked.
        let integral = unsafe { Integral::new(cell.0.as_mut_ptr()) };
        let rate = |count: u64, ns: u64| count * ns;
        let (mut count, mut then, mut naive, mut random) = (0i64, 0u64, 0u64, 1u64);
        for _ in 0..10_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let by = if count == 0 || random >> 63 == 0 { 1 } else { -1 };
            let ns = then + (random >> 50) % 1000;
            naive += count as u64 * (ns - then);
            let (moment, before, length) = integral.change(ns, by, rate);
            assert_eq!((moment.sum, before, length), (naive, count as u64, ns - then));
            (count, then) = (count + by, ns);
        }
        assert_eq!(integral.at(then + 7, rate).sum, naive + 7 * count as u64);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let cell = std::boxed::Box::leak(std::boxed::Box::new(Cell([0; 2])));
        let at = cell.0.as_mut_ptr() as usize;
        let rate = |count: u64, ns: u64| if count == 0 { 0 } else { ns };
        let clock = std::sync::Arc::new(AtomicU64::new(0));
        let idle = std::sync::Arc::new(AtomicU64::new(0));
        let threads: std::vec::Vec<_> = (0..4)
            .map(|_| {
                let (clock, idle) = (clock.clone(), idle.clone());
                std::thread::spawn(move || {
                    // SAFETY: aligned, leaked.
                    let integral = unsafe { Integral::new(at as *mut u64) };
                    for i in 0..20_000 {
                        let ns = clock.fetch_add(1, SeqCst);
                        let (_, before, length) = integral.change(ns, if i % 2 == 0 { 1 } else { -1 }, rate);
                        if before == 0 {
                            idle.fetch_add(length, Relaxed);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        let end = cell.0[0] & TIME;
        assert_eq!(cell.0[0] >> TIME_BITS, 0, "all have left");
        assert_eq!(cell.0[1] + idle.load(Relaxed), end, "every interval was counted once");
    }
}
