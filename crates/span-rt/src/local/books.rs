//! The books of a thread: what tasks measured that ended on it.

use super::timed::LightFork;
use super::{Local, STOP, scale};
use core::sync::atomic::Ordering;
use spandag::task::{Books, Outcome, Spawned, Task};
use std::sync::PoisonError;

impl Local {
    /// The current task ends, on the thread of who waits for it, and directly after what came before it.
    #[inline]
    pub fn end(&self, task: &mut Task, out: &mut Outcome) {
        self.current.set(core::ptr::null_mut());
        if let Some(books) = self.open_books() {
            // SAFETY: only this thread opens its books, one at a time, and `collect` waits while `busy`.
            task.finish(unsafe { &mut *books }, scale(), self.arena(), out);
            self.busy.store(false, Ordering::Release);
        }
    }

    /// The current task ends, wherever it was started.
    #[cold]
    pub fn end_apart(&self, task: &mut Task) -> Spawned {
        self.current.set(core::ptr::null_mut());
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            let outcome = task.finish_apart(unsafe { &mut *books }, scale(), self.arena());
            self.busy.store(false, Ordering::Release);
            return outcome;
        }
        task.finish_apart(&mut Books::default(), scale(), self.arena())
    }

    /// Tasks that a fork made: two of a join, one that was spawned. Those that [`end`](Self::end) are counted there.
    #[cold]
    pub fn count_forks(&self, halves: u64) {
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            unsafe { (*books).halves += halves };
            self.busy.store(false, Ordering::Release);
        }
    }

    #[inline]
    pub(super) fn open_books(&self) -> Option<*mut Books> {
        self.busy.store(true, Ordering::Relaxed);
        // Pairs with the barrier that `collect` makes every processor run.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        if STOP.load(Ordering::Relaxed) {
            self.busy.store(false, Ordering::Release);
            return None;
        }
        Some(self.books.get())
    }

    /// Forgets what ended on this thread so far.
    pub fn clear_books(&self) {
        self.plain_forks.set(0);
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            unsafe { *books = Books::default() };
            self.busy.store(false, Ordering::Release);
        }
        self.places.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.light.iter().chain([&self.last]).for_each(LightFork::forget);
    }
}
