//! What a strand did inside of calls, as the engine or samples tell.

use super::{Local, Running, follow, scale};
use crate::calls::{self, Call, Event};
use core::sync::atomic::Ordering;
use spandag::task::Outcome;

impl Local {
    /// The strand that ended has cost `cost`, and what it did is in the log.
    #[cold]
    pub(super) fn take_calls(&self, running: &mut Running, cost: u64, now: u64, forks: bool) {
        // SAFETY: the log is this thread's, and never freed; the engine writes to it only while the program runs.
        let Some(log) = (unsafe { self.calls.as_mut() }) else { return running.task.strand(cost) };
        let mut copy = self.copy.take();
        let base = running.base as u64;
        // Who returns before what it spawned is waited for is no invocation: see `call_returns`.
        let forks = forks && !running.has_spawned();
        // Both closures look at the task, one after the other.
        let task = core::cell::RefCell::new(running);
        log.take(
            (base, cost, now),
            forks,
            &mut copy,
            || self.innermost_call(&task.borrow()),
            |event| {
                let running = &mut *task.borrow_mut();
                match event {
                    Event::Returns(cost, calls) => {
                        self.executed(running, cost, calls);
                        self.call_returns(running);
                    }
                    Event::Enters(cost, calls, call) => {
                        self.executed(running, cost, calls);
                        self.call_starts(running, call);
                    }
                    Event::Rest(cost, calls) => self.executed(running, cost, calls),
                }
            },
        );
        self.copy.set(copy);
    }

    /// The current task executed, and made these calls.
    fn executed(&self, running: &mut Running, cost: u64, calls: &[Call]) {
        running.task.strand(cost);
        let context = running.task.entry.context;
        calls::add_up(
            calls,
            |site| self.enter(context, site),
            |site, record| {
                if let Some(books) = self.open_books() {
                    // SAFETY: as in `end`.
                    running.task.called(site, record, scale(), unsafe { &mut *books });
                    self.busy.store(false, Ordering::Release);
                }
            },
        );
    }

    /// Where the innermost call lies that the task on this stack is in.
    pub(super) fn innermost_call(&self, running: &Running) -> Option<u64> {
        let last = running.callers.as_ref()?.last()?;
        core::ptr::eq(last.home, self).then_some(last.frame)
    }

    /// A call that forks is a task of its own.
    fn call_starts(&self, running: &mut Running, call: &Call) {
        self.call_of_site(running, calls::site(call), call.frame);
    }

    /// It returns: its caller goes on.
    pub(super) fn call_returns(&self, running: &mut Running) {
        let Some(caller) = running.callers.as_mut().and_then(|c| c.pop()) else { return };
        let mut call = core::mem::replace(&mut running.task, caller.task);
        // It is the same task for who compares runs.
        running.task.strands = call.strands;
        if let Some(opened) = &mut running.opened {
            return running.task.take_over(call, opened, scale(), self.arena());
        }
        let mut out = Outcome::default();
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            let books = unsafe { &mut *books };
            if follow::is_unwound() {
                // Whoever joins it with others may be another thread.
                out = call.finish_apart(books, scale(), self.arena()).into();
            } else {
                call.finish(books, scale(), self.arena(), &mut out);
                books.halves -= 1; // no fork
            }
            self.busy.store(false, Ordering::Release);
        }
        running.task.returned(out, scale(), self.arena());
    }

    /// The task ends, wherever it is: no call goes on.
    pub fn all_calls_return(&self, running: &mut Running) {
        while running.callers.as_ref().is_some_and(|c| !c.is_empty()) {
            self.call_returns(running);
        }
    }

    /// The log has what the task is in, and nothing else.
    pub(super) fn watch_calls(&self, running: &Running) {
        // SAFETY: as in `take_calls`.
        if let Some(log) = unsafe { self.calls.as_mut() } {
            log.begin(running.base as u64, self.innermost_call(running), self.begun.get());
        }
        // What this took is ours.
        self.begun.set(self.clock.begin());
    }

    /// What the strand that ended was doing when it was sampled.
    #[cold]
    pub(super) fn take_samples(&self, running: &mut Running, cost: u64) {
        let task = running.task.site;
        // SAFETY: as in `pause`; not the log of nobody, which has none.
        let log = unsafe { &mut *self.samples.get() };
        log.drain(task, cost, |site, record| {
            if let Some(books) = self.open_books() {
                // SAFETY: as in `end`.
                running.task.called(site, record, scale(), unsafe { &mut *books });
                self.busy.store(false, Ordering::Release);
            }
        });
        // What this took is ours.
        self.begun.set(self.clock.begin());
    }
}
