//! Who waited for which lock, and for how long while whom it belonged to.
//!
//! A lock gets a record when somebody first waits for it. The record integrates the number of waiting threads
//! over time (`effort::Integral`). Whoever lets the lock go takes the part of the integral that nobody has been
//! charged with yet: the time that others waited while it held the lock. So every nanosecond of waiting is
//! charged exactly once, to the holder at that time, however many wait and however the lock is handed on.
//!
//! With `pthread` locks acquisitions are seen, and the time between a release and the next acquisition is kept
//! apart. Locks on bare futexes (Rust, C++20) show only waits and wakes; a holder that somebody waits for must
//! wake at its release, so releases under contention are all seen, and the hand-over counts as holding.
//!
//! Records are found through a fixed table of chains; nothing collides, nothing is evicted.

use crate::effort::Integral;
use crate::{ARENA, effort, header};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};
use preload::{Wait, WaitKind};
use wire::idle::Lock;

const BUCKETS: usize = 4096;
/// Blame below this is left for the next release: not worth a walk.
const BLAME_MIN_NS: u64 = 1_000;

static TABLE: AtomicPtr<AtomicUsize> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the table. Once, at start.
pub fn install() -> Result<(), &'static str> {
    let table = ARENA.take_array::<AtomicUsize>(BUCKETS).ok_or("no memory for the table of locks")?;
    TABLE.store(table.as_ptr(), Release);
    Ok(())
}

/// A record, by reference to its words.
#[derive(Clone, Copy)]
struct Record(*mut Lock);

macro_rules! field {
    ($record:expr, $field:ident) => {
        // SAFETY: records are never freed; the word is accessed as an atomic everywhere.
        unsafe { AtomicU64::from_ptr(&raw mut (*$record.0).$field) }
    };
}

impl Record {
    fn integral(self) -> Integral {
        // SAFETY: the pair is the record's first 16 bytes, aligned by its type.
        unsafe { Integral::new(self.0.cast()) }
    }
}

fn rate(waiting: u64, ns: u64) -> u64 {
    waiting * ns
}

/// Waits that are for a lock, or for somebody who signals.
fn concerns(wait: Wait) -> bool {
    use WaitKind::*;
    matches!(wait.kind, Mutex | Read | Write | Condition | Semaphore | Barrier | Futex | FutexLock)
}

fn bucket(address: usize) -> Option<&'static AtomicUsize> {
    let table = TABLE.load(Acquire);
    let hash = (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
    // SAFETY: null or a table of `BUCKETS` words, and the hash has 12 bits.
    unsafe { table.as_ref()?.as_ptr().cast::<AtomicUsize>().add(hash as usize).as_ref() }
}

fn find_from(first: usize, address: usize) -> Option<Record> {
    let mut at = first as *mut Lock;
    // SAFETY: chains hold records, which are never freed.
    unsafe {
        while !at.is_null() {
            if (*at).address == address as u64 {
                return Some(Record(at));
            }
            at = (*at).chain as *mut Lock;
        }
    }
    None
}

/// The record of an object that somebody has waited for.
#[inline]
fn known(address: usize) -> Option<Record> {
    match bucket(address)?.load(Acquire) {
        0 => None,
        first => find_from(first, address),
    }
}

fn known_or_new(wait: Wait) -> Option<Record> {
    let bucket = bucket(wait.object)?;
    let mut first = bucket.load(Acquire);
    if let Some(found) = find_from(first, wait.object) {
        return Some(found);
    }
    let memory = ARENA.take_array::<Lock>(1)?;
    // SAFETY: the header stays mapped.
    let count = unsafe { AtomicU64::from_ptr(&raw mut (*header()).lock_count) };
    let record = memory.as_ptr();
    // SAFETY: fresh memory that nobody else sees before the exchange below.
    unsafe {
        (*record).address = wait.object as u64;
        (*record).kind = wait.kind as u32;
        (*record).number = count.fetch_add(1, Relaxed) as u32 + 1;
    }
    loop {
        // SAFETY: as above.
        unsafe { (*record).chain = first as u64 };
        match bucket.compare_exchange(first, record as usize, AcqRel, Acquire) {
            Ok(_) => break,
            Err(now) => {
                first = now;
                if let Some(found) = find_from(now, wait.object) {
                    return Some(found);
                }
            }
        }
    }
    // SAFETY: the header stays mapped.
    let head = unsafe { AtomicU64::from_ptr(&raw mut (*header()).locks) };
    let mut next = head.load(Acquire);
    loop {
        field!(Record(record), next).store(next, Relaxed);
        match head.compare_exchange(next, ARENA.offset_of(memory), AcqRel, Acquire) {
            Ok(_) => return Some(Record(record)),
            Err(now) => next = now,
        }
    }
}

/// A thread begins to wait at `ns`.
pub fn wait_begins(wait: Wait, ns: u64) {
    if !concerns(wait) {
        return;
    }
    if let Some(record) = known_or_new(wait) {
        let (_, waiting, _) = record.integral().change(ns, 1, rate);
        if waiting == 0 {
            // Nothing was charged while nobody waited; the integral has stood still.
        }
        field!(record, contended).fetch_add(1, Relaxed);
    }
}

/// It has waited for `waited` up to `ns`. The lock's number, 0 without one.
pub fn wait_ends(wait: Wait, ns: u64, waited: u64) -> usize {
    if !concerns(wait) {
        return 0;
    }
    let Some(record) = known(wait.object) else { return 0 };
    record.integral().change(ns, -1, rate);
    field!(record, wait_ns).fetch_add(waited, Relaxed);
    record.0 as usize
}

/// The wait that has just ended, of the lock that `wait_ends` gave, was at this node.
pub fn longest(lock: usize, waited: u64, slot: u32, node: u32) {
    if lock == 0 {
        return;
    }
    let record = Record(lock as *mut Lock);
    if field!(record, longest_ns).fetch_max(waited, Relaxed) < waited {
        field!(record, longest_at).store(u64::from(slot) << 32 | u64::from(node), Relaxed);
    }
}

/// A lock was acquired, with or without waiting.
#[inline]
pub fn acquired(address: usize) {
    let Some(record) = known(address) else { return };
    field!(record, acquisitions).fetch_add(1, Relaxed);
    // Since the last release it was nobody's.
    let now = record.integral().at(effort().now_ns(), rate).sum;
    let before = field!(record, charged).swap(now, Relaxed);
    field!(record, handed_over).fetch_add(now.saturating_sub(before), Relaxed);
}

/// An object is let go. Its number and the waiting time that the holder answers for, if that is worth a word.
#[inline]
pub fn charge(address: usize) -> Option<(u64, u64)> {
    let record = known(address)?;
    let now = record.integral().at(effort().now_ns(), rate).sum;
    let charged = field!(record, charged);
    let ns = now.saturating_sub(charged.load(Relaxed));
    if ns < BLAME_MIN_NS {
        return None;
    }
    let before = charged.swap(now, Relaxed);
    // SAFETY: written once, before the record was shown.
    let number = unsafe { (*record.0).number };
    Some((number.into(), now.saturating_sub(before)))
}
