//! Answering the program's questions about functions while it runs (`wire::count::Ask`).
//!
//! A thread of the launcher waits for them; what to answer is the caller's business.

use crate::results::Results;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use wire::count::{Ask, Header};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// Whose address it is.
    pub pid: libc::pid_t,
    /// The address.
    pub address: u64,
    /// Changes whenever the process's map of memory has changed.
    pub generation: u64,
}

/// What is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// Number of the function, from 1.
    pub function: u32,
    /// First address for which the answer holds.
    pub start: u64,
    /// First address behind them.
    pub end: u64,
    /// The function's first instruction; 0 when not known.
    pub entry: u64,
}

impl Answer {
    /// Nothing is known of the address.
    pub(crate) const NOTHING: Answer = Answer { function: 0, start: 0, end: 0, entry: 0 };
}

/// Whoever answers, for several processes at a time.
pub(crate) type Asked<'a> = dyn Fn(Question) -> Answer + Sync + 'a;

/// How long the thread sleeps at most before it looks whether the program has ended.
const LOOK_MS: i64 = 50;

/// Where questions are put.
pub(crate) struct Desk {
    ask: *mut Ask,
    over: AtomicBool,
}

// SAFETY: the pointer leads into a shared mapping that outlives the desk; the protocol gives each field to one side
// at a time.
unsafe impl Sync for Desk {}
// SAFETY: as above; any thread may be the one that answers.
unsafe impl Send for Desk {}

/// Answers the questions of one process until it is dropped.
pub(crate) struct Clerk<'scope> {
    desk: Arc<Desk>,
    thread: Option<ScopedJoinHandle<'scope, ()>>,
}

impl Drop for Clerk<'_> {
    fn drop(&mut self) {
        self.desk.over.store(true, Ordering::Release);
        // It only fails if an answer panicked, which the scope reports.
        let _panicked = self.thread.take().map(ScopedJoinHandle::join);
    }
}

impl Desk {
    /// The desk in this memory, which must outlive it.
    pub(crate) fn new(results: &Results) -> Desk {
        Desk {
            ask: results.address(std::mem::offset_of!(Header, ask) as u64, size_of::<Ask>()).cast(),
            over: AtomicBool::new(false),
        }
    }

    /// Starts answering.
    pub(crate) fn open<'scope, 'env>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        pid: libc::pid_t,
        asked: &'env Asked<'env>,
    ) -> Clerk<'scope> {
        let desk = Arc::new(self);
        let thread = Arc::clone(&desk);
        Clerk { desk, thread: Some(scope.spawn(move || thread.serve(pid, asked))) }
    }

    fn serve(&self, pid: libc::pid_t, answer: &Asked<'_>) {
        // SAFETY: both numbers are in the mapping, aligned, and touched as atomics only.
        let (asked, answered) = unsafe {
            (
                AtomicU32::from_ptr(&raw mut (*self.ask).asked),
                AtomicU32::from_ptr(&raw mut (*self.ask).answered),
            )
        };
        let mut last = answered.load(Ordering::Acquire);
        while !self.over.load(Ordering::Acquire) {
            let number = asked.load(Ordering::Acquire);
            if number == last {
                futex_wait(asked, last);
                continue;
            }
            last = number;
            // SAFETY: the question is out and not answered: the record is ours to read and write.
            unsafe {
                let question = Question {
                    pid,
                    address: (&raw const (*self.ask).address).read_volatile(),
                    generation: (&raw const (*self.ask).generation).read_volatile(),
                };
                let a = answer(question);
                (&raw mut (*self.ask).start).write_volatile(a.start);
                (&raw mut (*self.ask).end).write_volatile(a.end);
                (&raw mut (*self.ask).entry).write_volatile(a.entry);
                (&raw mut (*self.ask).function).write_volatile(a.function);
            }
            answered.store(number, Ordering::Release);
            futex_wake(answered);
        }
    }
}

fn futex_wait(word: &AtomicU32, value: u32) {
    let time = libc::timespec { tv_sec: 0, tv_nsec: LOOK_MS * 1_000_000 };
    // SAFETY: the word and the time are live; an early return is looked at by the caller.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &raw const time) };
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word is live.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
