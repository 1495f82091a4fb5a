//! Which function holds an address: asked of the launcher, and remembered.
//!
//! One question at a time goes through the shared header (`wire::count::Ask`). The launcher answers with the function's
//! number and the range of addresses for which the answer holds. It knows symbols; we know when memory was remapped,
//! and then forget and tell it to look again. A followed child may outlive the launcher: nobody answers then, and what it
//! counts nobody reads.
//!
//! # Rules
//! The lock is taken with the engine lock held or without it, never the other way round; questions are asked while
//! code is made and when a handler starts, never in the middle of the program's code.

use alloc::collections::BTreeMap;
use core::sync::atomic::{AtomicU32, Ordering};
use engine::lock::SpinLock;
use engine::sys::{self, errno, nr};
use wire::count::{Ask, FUNCTIONS_MAX, Header};

/// What is known of an address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// First address behind the range.
    end: u64,
    /// The function's number, below `FUNCTIONS_MAX`.
    pub function: u32,
    /// Its first instruction.
    pub entry: u64,
}

struct Lookup {
    ask: *mut Ask,
    launcher: u64,
    /// By first address; ranges do not overlap.
    ranges: BTreeMap<u64, Known>,
}

// SAFETY: the pointer leads to the shared mapping, which all threads have; the lock admits one at a time.
unsafe impl Send for Lookup {}

static LOOKUP: SpinLock<Lookup> =
    SpinLock::new(Lookup { ask: core::ptr::null_mut(), launcher: 0, ranges: BTreeMap::new() });

/// # Safety
/// `shared` is the shared mapping, whose launcher answers questions.
pub(crate) unsafe fn start(shared: u64, launcher: u32) {
    let mut l = LOOKUP.lock();
    // SAFETY: the header is at the start of the mapping.
    l.ask = unsafe { &raw mut (*(shared as *mut Header)).ask };
    l.launcher = launcher.into();
}

/// In the child of a fork: another thread of the parent may have been asking, or in the middle of a change.
pub(crate) fn forked() {
    // SAFETY: this is the process's only thread, and it is not asking.
    unsafe { LOOKUP.force_unlock() };
    core::mem::forget(core::mem::take(&mut LOOKUP.lock().ranges));
}

/// The function that holds `address`.
pub(crate) fn of(address: u64) -> Known {
    let mut l = LOOKUP.lock();
    if let Some((_, known)) = l.ranges.range(..=address).next_back()
        && address < known.end
    {
        return *known;
    }
    let (start, known) = l.put(address);
    // An answer for a range that reaches into others that are known (a function whose parts lie apart) holds for the
    // address alone.
    let overlaps = l.ranges.range(..known.end).next_back().is_some_and(|(s, k)| *s >= start || k.end > start);
    let (start, known) =
        if overlaps { (address, Known { end: address + 1, ..known }) } else { (start, known) };
    l.ranges.insert(start, known);
    known
}

/// What is known of these addresses holds no longer.
pub(crate) fn forget(start: u64, end: u64) {
    let mut l = LOOKUP.lock();
    let first = l.ranges.range(..start).next_back().filter(|(_, k)| k.end > start).map(|(s, _)| *s);
    let stale: alloc::vec::Vec<u64> =
        first.into_iter().chain(l.ranges.range(start..end).map(|(s, _)| *s)).collect();
    for s in stale {
        l.ranges.remove(&s);
    }
    // SAFETY: the shared header, of which only the holder of this lock writes this field.
    unsafe { (*l.ask).generation += 1 };
}

impl Lookup {
    fn put(&mut self, address: u64) -> (u64, Known) {
        const WAIT: u64 = 0;
        const WAKE: u64 = 1;
        let ask = self.ask;
        // SAFETY: the shared header; the two numbers are only touched as atomics by either side, and the rest belongs
        // to the asker until the question is out, and again once it is answered.
        unsafe {
            (&raw mut (*ask).address).write_volatile(address);
            let asked = AtomicU32::from_ptr(&raw mut (*ask).asked);
            let answered = AtomicU32::from_ptr(&raw mut (*ask).answered);
            let number = asked.load(Ordering::Relaxed).wrapping_add(1);
            asked.store(number, Ordering::Release);
            sys::call(nr::FUTEX, [&raw const (*ask).asked as u64, WAKE, 1, 0, 0, 0]);
            loop {
                let seen = answered.load(Ordering::Acquire);
                if seen == number {
                    break;
                }
                const NOW_AND_THEN: [u64; 2] = [0, 200_000_000];
                let time = NOW_AND_THEN.as_ptr() as u64;
                let word = &raw const (*ask).answered as u64;
                let r = sys::call(nr::FUTEX, [word, WAIT, seen.into(), time, 0, 0]);
                let alive = || sys::call(nr::KILL, [self.launcher, 0, 0, 0, 0, 0]) != -errno::ESRCH;
                if r == -errno::ETIMEDOUT && !alive() {
                    return (address, Known { end: address + 1, function: 0, entry: 0 });
                }
            }
            let a = ask.read_volatile();
            let function = if u64::from(a.function) < FUNCTIONS_MAX { a.function } else { 0 };
            (a.start.min(address), Known { end: a.end.max(address + 1), function, entry: a.entry })
        }
    }
}
