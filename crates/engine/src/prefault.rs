//! Touching memory before it is needed.
//!
//! Translation appends to a few long lists and streams. Their pages would be faulted in one by one, which costs more
//! than filling them; one system call for a stretch of pages costs a tenth of that. Stretches are short: a page that is
//! cleared and never used costs as much as one that is.

use crate::sys;
use alloc::vec::Vec;

/// Bytes that are populated at a time, and how close to the end of them a list may come.
const STEP_BYTES: usize = 64 << 10;
const SLACK_BYTES: usize = 16 << 10;

/// How much of a list has small pages; huge ones come behind. A huge page is cleared in a third of the time that it takes
/// to make 512 small ones present, but it is cleared as a whole.
const SMALL_PAGES_BYTES: usize = 2 << 20;

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
        self.keep(list.as_ptr() as usize, list.len() * size_of::<T>(), list.capacity() * size_of::<T>());
    }

    /// The same for memory at `base` of which `used` bytes are filled and `room` may be.
    #[inline]
    pub fn keep(&mut self, base: usize, used: usize, room: usize) {
        if base != self.base {
            self.begin(base, used, room);
        }
        if used + SLACK_BYTES > self.done {
            self.populate(room);
        }
    }

    #[cold]
    fn begin(&mut self, base: usize, used: usize, room: usize) {
        *self = Prefault { base, done: used & !0xfff };
        if base & 0xfff == 0 && room > SMALL_PAGES_BYTES {
            sys::huge_pages((base + SMALL_PAGES_BYTES) as u64, (room - SMALL_PAGES_BYTES) as u64);
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
