//! Touching memory before it is needed.
//!
//! Translation appends to a few long lists. Their pages would be faulted in one by one, which costs more than
//! filling them; one system call for a stretch of pages costs a tenth of that.

use crate::sys;
use alloc::vec::Vec;

/// Bytes that are populated at a time, and how close to the end of them a list may come.
const STEP_BYTES: usize = 128 << 10;
const SLACK_BYTES: usize = 24 << 10;

/// How far one list's memory is populated.
#[derive(Default)]
pub struct Prefault {
    base: usize,
    done: usize,
}

impl Prefault {
    /// Keeps the part of `list` that is filled next populated.
    #[inline]
    pub fn keep_ahead<T>(&mut self, list: &Vec<T>) {
        let used = list.len() * size_of::<T>();
        if list.as_ptr() as usize != self.base {
            *self = Prefault { base: list.as_ptr() as usize, done: used & !0xfff };
        }
        if used + SLACK_BYTES > self.done {
            self.populate(list.capacity() * size_of::<T>());
        }
    }

    #[cold]
    fn populate(&mut self, room: usize) {
        let bytes = STEP_BYTES.min(room.saturating_sub(self.done) & !0xfff);
        if bytes != 0 && self.base & 0xfff == 0 {
            sys::populate((self.base + self.done) as u64, bytes as u64);
        }
        // (If the kernel cannot, pages are faulted in one by one.)
        self.done += STEP_BYTES;
    }
}
