//! Waits that no hook has seen: system calls that the program makes without libc.
//!
//! A thread that was off its core for a good part of the time since its last sample, and not in a wait or a pause that we
//! know of, is asked for its voluntary switches. More of those than waits that hooks saw, several times: somebody calls the kernel
//! by instructions of its own. Then all threads are armed ([`preload::dispatch`]) at their next samples, and such waits
//! are hooked like others from there on. Where that is not permitted, they are inferred from CPU time: a thread is excused
//! from delays in proportion to the time off its core, whoever it waited for; the result says so.
//!
//! Costs nothing as long as threads are on their cores, or hooks know why not.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use preload::{Thread, dispatch, sys};
use wire::causal::{Shared, unseen};

use crate::ledger::Passed;
use crate::runtime::{Causal, Local};

/// Part of the time off its core from which on a thread is asked.
const PART: u64 = 8;
/// Voluntary switches that a wait may take: a condition sleeps for itself and for its mutex.
const SWITCHES_PER_WAIT: u64 = 2;
/// Samples that must find more than that.
const SUSPICIONS: u32 = 3;

/// Whether threads are to be armed.
static WANTED: AtomicBool = AtomicBool::new(false);

/// What is kept per thread.
pub struct Watch {
    /// Waits since the kernel was last asked.
    waits: Cell<u64>,
    switches: Cell<Option<u64>>,
    suspicions: Cell<u32>,
}

impl Watch {
    pub const fn new() -> Self {
        Self { waits: Cell::new(0), switches: Cell::new(None), suspicions: Cell::new(0) }
    }

    /// Another thread has the slot.
    pub fn begin(&self) {
        self.waits.set(0);
        self.switches.set(None);
        self.suspicions.set(0);
    }

    /// So many waits have been seen by hooks, or were pauses of ours.
    #[inline(always)]
    pub fn waited(&self, times: u64) {
        self.waits.set(self.waits.get() + times);
    }

    /// Whether there have been more waits than were seen.
    fn suspects(&self, passed: &Passed) -> bool {
        self.waited(passed.pauses);
        if passed.off_ns < passed.wall_ns / PART {
            return false;
        }
        let now = voluntary_switches();
        let waits = self.waits.replace(0);
        let Some(before) = self.switches.replace(Some(now)) else { return false };
        if now.saturating_sub(before) > SWITCHES_PER_WAIT * waits + 1 {
            self.suspicions.set(self.suspicions.get() + 1);
        }
        self.suspicions.get() >= SUSPICIONS
    }
}

/// At a sample, in its handler.
pub fn look(thread: &'static Thread<Local>, shared: &Shared, passed: &Passed, blocked: u64) {
    if !WANTED.load(Relaxed) {
        if !thread.local().watch.suspects(passed) {
            return;
        }
        WANTED.store(true, Relaxed);
    }
    if dispatch::arm::<Causal>(thread, blocked) {
        shared.unseen.store(unseen::CAUGHT, Relaxed);
        shared.counts.caught.store(dispatch::caught(), Relaxed);
    } else if shared.unseen.load(Relaxed) == unseen::NONE {
        shared.unseen.store(unseen::INFERRED, Relaxed);
        shared.credit_unexplained.store(1, Relaxed);
    }
}

/// How often the calling thread has given its core away.
fn voluntary_switches() -> u64 {
    // SAFETY: plain data, filled by the call.
    let mut usage: libc::rusage = unsafe { core::mem::zeroed() };
    let args = [libc::RUSAGE_THREAD as usize, &raw mut usage as usize, 0, 0, 0, 0];
    // SAFETY: a live record.
    let _ = unsafe { sys::raw(libc::SYS_getrusage, args) };
    usage.ru_nvcsw as u64
}
