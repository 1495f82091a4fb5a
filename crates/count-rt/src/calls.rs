//! Calls of functions that the program's runtime wants to hear of, added up in a log of the thread.
//!
//! The log is the runtime's memory, and the runtime empties it whenever a strand ends; a call that goes on then is no longer
//! in it, and its return is not looked at. What has returned needs no order: between two ends of strands the program is
//! serial, so sums by place are all there is to know.
//!
//! # Rules
//! As in `lib.rs`: runs in the thread that the log belongs to, without any lock, and writes nothing but the log.

use core::slice;
use core::sync::atomic::{AtomicU64, Ordering};
use wire::running::{CALLS_MAX, Call, CallLog, TINY};

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

/// The calls in the log, and room for more.
struct Calls<'a> {
    len: usize,
    calls: &'a mut [Call; CALLS_MAX],
}

impl Calls<'_> {
    /// The innermost call that goes on, of the first `before` entries.
    fn open(&self, before: usize) -> Option<usize> {
        self.calls[..before].iter().rposition(|c| c.frame != 0)
    }

    /// Adds what has returned to what is known, of the entries from `from` on.
    fn add(&mut self, call: Call, from: usize) {
        let known = self.calls[from..self.len]
            .iter_mut()
            .find(|c| c.frame == 0 && (c.function, c.site) == (call.function, call.site));
        if let Some(known) = known {
            known.count += call.count;
            known.top += call.top;
            known.own += call.own;
            known.all += call.all;
        } else if self.len < CALLS_MAX {
            self.calls[self.len] = call;
            self.len += 1;
        }
    }
}

/// With the calls of a log.
///
/// # Safety
/// The log is the thread's own.
unsafe fn with(log: *mut CallLog, what: impl FnOnce(&mut Calls<'_>)) {
    // SAFETY: by contract.
    let log = unsafe { &mut *log };
    let mut calls = Calls { len: (log.len as usize).min(CALLS_MAX), calls: &mut log.calls };
    what(&mut calls);
    log.len = calls.len as u64;
}

/// A call starts, whose return address lies at `frame`.
///
/// # Safety
/// The log is the thread's own.
pub unsafe fn starts(log: *mut CallLog, function: u32, site: u64, frame: u64, now: u64) {
    // SAFETY: passed on.
    unsafe { with(log, |log| start(log, function, site, frame, now)) };
}

fn start(log: &mut Calls<'_>, function: u32, site: u64, frame: u64, now: u64) {
    // What lies below was left by a longjmp or an exception; its cost stays with its caller.
    while let Some(n) = log.open(log.len).filter(|&n| log.calls[n].frame <= frame) {
        log.len = n;
    }
    if log.len < CALLS_MAX {
        log.calls[log.len] = Call { function: function.into(), site, frame, begun: now, ..Call::default() };
        log.len += 1;
    }
}

/// A return is made, with its return address at `frame`.
///
/// # Safety
/// The log is the thread's own.
pub unsafe fn returns(log: *mut CallLog, frame: u64, now: u64) {
    // SAFETY: passed on.
    unsafe { with(log, |log| end(log, frame, now)) };
}

fn end(log: &mut Calls<'_>, frame: u64, now: u64) {
    while let Some(n) = log.open(log.len) {
        match log.calls[n].frame {
            f if f > frame => return,
            f if f < frame => log.len = n, // left by a longjmp or an exception
            _ => return close(log, n, now),
        }
    }
}

/// The call at `n` returns.
fn close(log: &mut Calls<'_>, n: usize, now: u64) {
    let mut call = log.calls[n];
    let all = now.wrapping_sub(call.begun);
    let outer = log.open(n);
    if all < TINY && n + 1 == log.len {
        log.len = n;
        return;
    }
    if let Some(outer) = outer {
        log.calls[outer].inside += all;
    }
    let inner = n + 1..log.len;
    call = Call { frame: 0, count: 1, top: 1, own: all.saturating_sub(call.inside), all, ..call };
    log.len = n;
    let from = outer.map_or(0, |o| o + 1);
    log.add(call, from);
    for i in inner {
        let mut nested = log.calls[i];
        if (nested.function, nested.site) == (call.function, call.site) {
            // Inside a call from the same place: it is part of that one's sum.
            (nested.top, nested.all) = (0, 0);
        }
        // Entries only move towards the start, so what is still to come is intact.
        log.add(nested, from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> CallLog {
        CallLog { len: 0, calls: [Call::default(); CALLS_MAX] }
    }

    fn sums(log: &CallLog) -> alloc::vec::Vec<(u64, u64, u64, u64, u64)> {
        log.calls[..log.len as usize].iter().map(|c| (c.function, c.count, c.top, c.own, c.all)).collect()
    }

    #[test]
    fn calls_that_return_are_added_up_by_place() {
        let mut l = log();
        let at: *mut CallLog = &raw mut l;
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
        let at: *mut CallLog = &raw mut l;
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
}
