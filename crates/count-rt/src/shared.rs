//! The shared mapping, as the engine's side writes it.
//!
//! Only this file touches it. The collector may read at any time, even after a SIGKILL: an entry of a table is
//! written before the length that covers it.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, compiler_fence};
use engine::region::read_file;
use wire::boot::{Boot, flags};
use wire::count::*;
use wire::slab::{COUNTERS_OFFSET, TOTALS_OFFSET};

pub(crate) struct Shared {
    base: u64,
    want_maps: bool,
}

impl Shared {
    /// # Safety
    /// The boot block names a live mapping with the layout of `wire::count`.
    pub(crate) unsafe fn new(boot: &Boot) -> Shared {
        Shared { base: boot.shared_base, want_maps: boot.flags & flags::WANT_MAPS != 0 }
    }

    fn header(&self) -> *mut Header {
        self.base as *mut Header
    }

    /// Exits in use.
    pub(crate) fn exits(&self) -> u32 {
        // SAFETY: the header is mapped (see `new`), and only the holder of the engine lock writes it.
        unsafe { (*self.header()).exits }
    }

    /// Makes the exit table longer by `n` entries that say nothing yet; the caller knows that they fit.
    pub(crate) fn extend(&mut self, n: u32) {
        // SAFETY: the header is mapped, and only the holder of the engine lock writes it; fresh entries are zeroes.
        unsafe { (&raw mut (*self.header()).exits).write_volatile(self.exits() + n) };
    }

    /// Fills entry `i`, whose counter nothing uses yet.
    pub(crate) fn set_exit(&mut self, i: u32, d: ExitDesc) {
        debug_assert!(i < self.exits());
        // SAFETY: inside the exit table of the mapping; written under the engine lock.
        unsafe { ((self.base + EXITS_OFFSET) as *mut ExitDesc).add(i as usize).write_volatile(d) };
    }

    /// Appends to the exit table; the last entry is overwritten when it is full.
    pub(crate) fn add_exit(&mut self, d: ExitDesc) {
        let n = u64::from(self.exits()).min(EXITS_MAX - 1);
        // SAFETY: inside the exit table of the mapping; written under the engine lock.
        unsafe {
            ((self.base + EXITS_OFFSET) as *mut ExitDesc).add(n as usize).write_volatile(d);
            compiler_fence(Ordering::Release);
            (&raw mut (*self.header()).exits).write_volatile(n as u32 + 1);
        }
    }

    pub(crate) fn problem(&mut self, bit: u32) {
        // SAFETY: the header is mapped, and only the holder of the engine lock writes it.
        unsafe { (*self.header()).problems |= bit };
    }

    fn totals(slab: u64) -> *mut ThreadTotals {
        (slab + TOTALS_OFFSET) as *mut ThreadTotals
    }

    /// Takes `credited` away from a thread's extra counts and adds `done`.
    pub(crate) fn correct(&mut self, slab: u64, done: &Totals, credited: &Totals) {
        // SAFETY: the shared page of a live slab; its thread is in the engine, so nothing else writes it.
        unsafe {
            let extra = &mut (*Self::totals(slab)).extra;
            extra.add_scaled(done, 1);
            extra.add_scaled(credited, u64::MAX);
        }
    }

    pub(crate) fn thread_start(&mut self, slab: u64, tid: u32, counts: bool) {
        // SAFETY: the header and the shared page of a slab that was just taken.
        unsafe {
            (*Self::totals(slab)).tid = if counts { tid } else { 0 };
            let h = &mut *self.header();
            h.threads += u32::from(counts);
            let index = (slab - self.base - FIXED_BYTES) / wire::slab::STRIDE;
            h.slabs = h.slabs.max(index as u32 + 1);
        }
    }

    /// Sums a thread up and empties its slab for the next one.
    pub(crate) fn thread_end(&mut self, slab: u64, _tid: u32) {
        let exits = self.exits() as usize;
        // SAFETY: the exit table and the counters are mapped up to `exits`, which bounds every counter that
        // translated code may use; the slab's thread is here and counts nothing meanwhile.
        let (descs, counters, t) = unsafe {
            (
                core::slice::from_raw_parts((self.base + EXITS_OFFSET) as *const ExitDesc, exits),
                core::slice::from_raw_parts_mut((slab + COUNTERS_OFFSET) as *mut u64, exits),
                &mut *Self::totals(slab),
            )
        };
        let mut sum = t.extra;
        for (d, c) in descs.iter().zip(counters.iter_mut()) {
            if *c != 0 {
                sum.add_scaled(&Totals::from(*d), *c);
                *c = 0;
            }
        }
        let counted = t.tid;
        *t = ThreadTotals::default();
        if counted == 0 {
            return;
        }
        // SAFETY: the header and the table of ended threads are mapped; the index is checked.
        unsafe {
            let h = &mut *self.header();
            if u64::from(h.ended) < ENDED_MAX {
                let r = ThreadRecord { tid: counted, done: 1, totals: sum };
                ((self.base + ENDED_OFFSET) as *mut ThreadRecord).add(h.ended as usize).write_volatile(r);
                compiler_fence(Ordering::Release);
                h.ended += 1;
            } else {
                h.overflow.add_scaled(&sum, 1);
            }
        }
    }

    /// Copies `/proc/self/maps`, so that the collector can name addresses after the process is gone.
    pub(crate) fn save_maps(&mut self) {
        if !self.want_maps {
            return;
        }
        let mut text: Vec<u8> = Vec::new();
        read_file(b"/proc/self/maps\0", &mut text);
        let n = text.len().min(MAPS_MAX as usize);
        // SAFETY: inside the room for maps.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), (self.base + MAPS_OFFSET) as *mut u8, n);
            (*self.header()).maps_bytes = n as u64;
        }
    }
}
