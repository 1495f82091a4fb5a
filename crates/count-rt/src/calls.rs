//! Calls of functions that the program's runtime wants to hear of, added up in a log of the thread.
//!
//! The log is the runtime's memory, and the runtime takes out what has returned whenever a strand ends. A call that goes on
//! then is either kept, and its return tells when it ended in a later strand, or taken out as well, and its return is not
//! looked at. What has returned needs no order but that: between two ends of strands the program is serial, so sums by place,
//! inside each call that was kept, are all there is to know.
//!
//! # Rules
//! As in `lib.rs`: runs in the thread that the log belongs to, without any lock, and writes nothing but the log.

use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};
use wire::running::{CALLS_MAX, Call, CallLog, TINY, state};

/// Pairs of addresses, in the runtime's memory, and their number.
static TABLE: AtomicU64 = AtomicU64::new(0);
static FUNCTIONS: AtomicU64 = AtomicU64::new(0);

/// Takes the runtime's table.
pub fn take_table(at: u64, functions: u64) {
    TABLE.store(at, Ordering::Relaxed);
    FUNCTIONS.store(functions, Ordering::Release);
}

/// The function that holds an address; whether it starts there.
pub fn function_at(pc: u64) -> Option<(u32, bool)> {
    let functions = FUNCTIONS.load(Ordering::Acquire) as usize;
    if functions == 0 {
        return None;
    }
    let table = TABLE.load(Ordering::Relaxed) as *const [u64; 2];
    // SAFETY: the runtime never frees the table, and has given its length.
    let table = unsafe { slice::from_raw_parts(table, functions) };
    let n = table.partition_point(|f| f[0] <= pc).checked_sub(1)?;
    (pc < table[n][1]).then_some((n as u32, pc == table[n][0]))
}

/// The innermost call that goes on.
fn innermost(log: &CallLog) -> Option<usize> {
    (log.open as usize).checked_sub(1).filter(|&n| n < (log.len as usize).min(CALLS_MAX))
}

/// Adds what has returned to what is known, of the entries from `from` on.
fn add(log: &mut CallLog, call: Call, from: usize) {
    let len = log.len as usize;
    let known = log.calls[from..len]
        .iter_mut()
        .find(|c| c.state == state::RETURNED && (c.function, c.site) == (call.function, call.site));
    if let Some(known) = known {
        known.count += call.count;
        known.top += call.top;
        known.own += call.own;
        known.all += call.all;
    } else if len < CALLS_MAX {
        log.calls[len] = call;
        log.len += 1;
    } else {
        log.dropped += call.count;
    }
}

/// A call starts, whose return address lies at `frame`.
///
/// # Safety
/// The log is the thread's own.
pub unsafe fn starts(log: *mut CallLog, function: u32, site: u64, frame: u64, now: u64) {
    // SAFETY: by contract.
    start(unsafe { &mut *log }, function, site, frame, now);
}

fn start(log: &mut CallLog, function: u32, site: u64, frame: u64, now: u64) {
    while let Some(n) = innermost(log).filter(|&n| log.calls[n].frame <= frame) {
        leave(log, n, now);
    }
    let len = log.len as usize;
    if len >= CALLS_MAX {
        log.dropped += 1;
        return;
    }
    log.calls[len] =
        Call { function: function.into(), site, frame, begun: now, link: log.open, ..Call::default() };
    log.len += 1;
    log.open = log.len;
}

/// A return is made, with its return address at `frame`.
///
/// # Safety
/// The log is the thread's own.
pub unsafe fn returns(log: *mut CallLog, frame: u64, now: u64) {
    // SAFETY: by contract.
    end(unsafe { &mut *log }, frame, now);
}

fn end(log: &mut CallLog, frame: u64, now: u64) {
    while let Some(n) = innermost(log) {
        match log.calls[n].frame {
            f if f > frame => return,
            f if f < frame => leave(log, n, now),
            _ => return close(log, n, now),
        }
    }
}

/// The call at `n` was left by a longjmp or an exception; its cost stays with its caller, unless the runtime knows it.
fn leave(log: &mut CallLog, n: usize, now: u64) {
    if log.calls[n].state == state::KEPT {
        return close(log, n, now);
    }
    log.open = log.calls[n].link;
    log.len = n as u64;
}

/// The call at `n` returns.
fn close(log: &mut CallLog, n: usize, now: u64) {
    let mut call = log.calls[n];
    let all = now.wrapping_sub(call.begun);
    let outer = (call.link as usize).checked_sub(1);
    let is_kept = call.state == state::KEPT;
    log.open = call.link;
    if !is_kept && all < TINY && n + 1 == log.len as usize {
        log.len = n as u64;
        return;
    }
    if let Some(outer) = outer {
        log.calls[outer].inside += all;
    }
    let own = all.saturating_sub(call.inside);
    if is_kept {
        log.calls[n] = Call { state: state::ENDED, link: log.len, own, all, ..call };
        log.settled = log.len;
        return;
    }
    let inner = n + 1..log.len as usize;
    call = Call { state: state::RETURNED, count: 1, top: 1, own, all, ..call };
    log.len = n as u64;
    let from = outer.map_or(0, |o| o + 1).max((log.settled as usize).min(n));
    add(log, call, from);
    for i in inner {
        let mut nested = log.calls[i];
        if (nested.function, nested.site) == (call.function, call.site) {
            // Inside a call from the same place: it is part of that one's sum.
            (nested.top, nested.all) = (0, 0);
        }
        // Entries only move towards the start, so what is still to come is intact.
        add(log, nested, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    fn log() -> Box<CallLog> {
        // SAFETY: words that may all be zero.
        unsafe { Box::<CallLog>::new_zeroed().assume_init() }
    }

    fn sums(log: &CallLog) -> alloc::vec::Vec<(u64, u64, u64, u64, u64)> {
        log.calls[..log.len as usize].iter().map(|c| (c.function, c.count, c.top, c.own, c.all)).collect()
    }

    #[test]
    fn calls_that_return_are_added_up_by_place() {
        let mut l = log();
        let at: *mut CallLog = &raw mut *l;
        // SAFETY: a log of this thread's.
        unsafe {
            for round in 0..1000 {
                let t = round * 10_000;
                starts(at, 1, 0x10, 0x1000, t);
                starts(at, 2, 0x20, 0x900, t + 100);
                returns(at, 0x900, t + 1100);
                starts(at, 3, 0x30, 0x900, t + 1200);
                returns(at, 0x900, t + 1250); // tiny
                returns(at, 0x1000, t + 5000);
            }
        }
        assert_eq!(sums(&l), [(1, 1000, 1000, 4_000_000, 5_000_000), (2, 1000, 1000, 1_000_000, 1_000_000)]);
    }

    #[test]
    fn recursion_counts_once_and_what_was_left_is_its_callers() {
        let mut l = log();
        let at: *mut CallLog = &raw mut *l;
        // SAFETY: a log of this thread's.
        unsafe {
            starts(at, 1, 0x10, 0x1000, 0);
            starts(at, 1, 0x11, 0x900, 1000);
            starts(at, 1, 0x11, 0x800, 2000);
            returns(at, 0x800, 3000);
            returns(at, 0x900, 4000);
            starts(at, 2, 0x12, 0x900, 4500); // left by an exception
            returns(at, 0x1000, 6000);
            // A return of what started before the log was emptied.
            returns(at, 0x2000, 7000);
        }
        assert_eq!(sums(&l), [(1, 1, 1, 3000, 6000), (1, 2, 1, 3000, 3000)]);
    }

    #[test]
    fn a_call_that_was_kept_ends_with_what_is_inside_of_it() {
        let mut l = log();
        let at: *mut CallLog = &raw mut *l;
        // SAFETY: a log of this thread's.
        unsafe {
            starts(at, 1, 0x10, 0x1000, 0);
            starts(at, 2, 0x20, 0x900, 300);
            // A strand ends here, and the next one starts at 5000; both are kept.
            for n in 0..2 {
                let call = &mut (*at).calls[n];
                (call.state, call.begun) = (state::KEPT, 5000);
            }
            starts(at, 3, 0x30, 0x800, 5100);
            returns(at, 0x800, 5400);
            returns(at, 0x900, 5600);
            starts(at, 3, 0x30, 0x900, 6000);
            returns(at, 0x900, 6500);
            starts(at, 4, 0x40, 0x900, 7000);
        }
        assert_eq!(
            sums(&l),
            [(1, 0, 0, 0, 0), (2, 0, 0, 300, 600), (3, 1, 1, 300, 300), (3, 1, 1, 500, 500), (4, 0, 0, 0, 0)]
        );
        assert_eq!(
            (l.calls[1].state, l.calls[1].link, l.calls[0].inside, l.open),
            (state::ENDED, 3, 1100, 5)
        );
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut l = log();
        let at: *mut CallLog = &raw mut *l;
        for n in 0..CALLS_MAX as u64 + 7 {
            // SAFETY: a log of this thread's.
            unsafe {
                starts(at, 1, n, 0x1000, 1000 * n);
                returns(at, 0x1000, 1000 * n + 500);
            }
        }
        assert_eq!((l.len as usize, l.dropped), (CALLS_MAX, 7));
    }
}
