//! Progress points: the functions that a program looks up by name when it is profiled.
//!
//! The ABI is Coz's, unchanged, so that programs with `coz.h` or the `coz` crate work as they are; our own
//! `annotate` uses the same. A counter lies in shared memory, the program increments it by itself, and the experimenter
//! reads it: nothing here runs at a visit.

use crate::shared;
use core::ptr;
use core::sync::atomic::Ordering::*;
use preload::sys;
use wire::causal::{Counter, POINT_NAME_BYTES_MAX, Point, Shared, kind};

/// The counter of a kind and name. The same for the same arguments; null when the program is not profiled or there is
/// no room. The name is copied.
///
/// # Safety
/// `name` must be null or a terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _coz_get_counter(of: i32, name: *const libc::c_char) -> *const Counter {
    let Some(shared) = shared::get() else { return ptr::null() };
    let of = of as u32;
    if !(kind::THROUGHPUT..=kind::END).contains(&of) {
        return ptr::null();
    }
    // SAFETY: by the contract of this function.
    let name = unsafe { sys::c_bytes(name) };
    let name = name.get(..name.len().min(POINT_NAME_BYTES_MAX)).unwrap_or(name);
    let known = shared.counts.points.load(Acquire) as usize;
    for point in shared.points.iter().take(known) {
        if point.kind.load(Acquire) == of && is(point, name) {
            return &point.counter;
        }
    }
    // Two threads may make the same point at once. Then there are two of it, which the experimenter adds up.
    let at = shared.counts.points.fetch_add(1, AcqRel) as usize;
    let Some(point) = shared.points.get(at) else {
        shared.counts.points_refused.fetch_add(1, Relaxed);
        return ptr::null();
    };
    for (word, bytes) in point.name.iter().zip(name.chunks(8)) {
        word.store(word_of(bytes), Relaxed);
    }
    point.name_len.store(name.len() as u32, Relaxed);
    point.kind.store(of, Release);
    pair(shared, name);
    &point.counter
}

/// Tells the begin of a name where its end is, once there are both.
fn pair(shared: &Shared, name: &[u8]) {
    let known = shared.counts.points.load(Acquire) as usize;
    let find =
        |of: u32| shared.points.iter().take(known).position(|p| p.kind.load(Acquire) == of && is(p, name));
    if let (Some(begin), Some(end)) = (find(kind::BEGIN), find(kind::END))
        && let Some(begin) = shared.points.get(begin)
    {
        begin.end.store(end as u32 + 1, Release);
    }
}

/// Everybody is being delayed by `ns`: so are the requests in flight. In a signal handler.
pub(crate) fn delayed(shared: &Shared, ns: u64) {
    let known = shared.counts.points.load(Relaxed) as usize;
    for begin in shared.points.iter().take(known) {
        let Some(end) = begin.end.load(Acquire).checked_sub(1) else { continue };
        let Some(end) = shared.points.get(end as usize) else { continue };
        let ended = end.counter.count.load(Relaxed);
        let open = begin.counter.count.load(Relaxed).saturating_sub(ended);
        begin.delayed_ns.fetch_add(ns.saturating_mul(open), Relaxed);
    }
}

/// Part of Coz's ABI: serve all debts now.
#[unsafe(no_mangle)]
pub extern "C" fn _coz_add_delays() {
    crate::runtime::settle_now();
}

/// Part of Coz's ABI: the calling thread is about to wait for another one in a way that the profiler cannot see.
#[unsafe(no_mangle)]
pub extern "C" fn _coz_pre_block() {
    crate::runtime::custom_wait_begins();
}

/// Part of Coz's ABI: the wait is over; `skip` says that another thread ended it.
#[unsafe(no_mangle)]
pub extern "C" fn _coz_post_block(skip: i32) {
    crate::runtime::custom_wait_ends(skip != 0);
}

fn is(point: &Point, name: &[u8]) -> bool {
    point.name_len.load(Relaxed) as usize == name.len()
        && point.name.iter().zip(name.chunks(8)).all(|(word, bytes)| word.load(Relaxed) == word_of(bytes))
}

fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes) {
        *to = *from;
    }
    u64::from_le_bytes(word)
}
