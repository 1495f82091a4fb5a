//! The shared mapping, as the engine's side writes it.
//!
//! Only this file touches it. The collector may read at any time, even after a SIGKILL: an entry of a table is
//! written before the length that covers it.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, compiler_fence};
use engine::client::Forked;
use engine::region::read_file;
use engine::sys;
use wire::boot::{Boot, flags};
use wire::count::*;
use wire::slab::{COUNTERS_OFFSET, PRIVATE_BYTES, STRIDE, TOTALS_OFFSET};

pub(crate) struct Shared {
    base: u64,
    /// Length of what follows the fixed part.
    slabs_bytes: u64,
    want_maps: bool,
}

impl Shared {
    /// # Safety
    /// The boot block names a live mapping with the layout of `wire::count`.
    pub(crate) unsafe fn new(boot: &Boot) -> Shared {
        let slabs_bytes = boot.slab_count * STRIDE;
        Shared { base: boot.shared_base, slabs_bytes, want_maps: boot.flags & flags::WANT_MAPS != 0 }
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

    /// Appends to the table of splits.
    pub(crate) fn add_split(&mut self, split: Split) {
        // SAFETY: the header is mapped, and only the holder of the engine lock writes it.
        let n = unsafe { (*self.header()).splits };
        if u64::from(n) >= SPLITS_MAX {
            return self.problem(problem::FUNCTIONS_PARTIAL);
        }
        // SAFETY: inside the table of splits of the mapping; written under the engine lock.
        unsafe {
            ((self.base + SPLITS_OFFSET) as *mut Split).add(n as usize).write_volatile(split);
            compiler_fence(Ordering::Release);
            (&raw mut (*self.header()).splits).write_volatile(n + 1);
        }
    }

    /// Adds a thread's counters to those of the threads that have ended.
    pub(crate) fn keep_counters(&mut self, slab: u64) {
        let exits = self.exits() as usize;
        // SAFETY: both ranges are mapped up to `exits`; the slab's thread counts nothing any more, and the sums are
        // only touched under the engine lock.
        let (from, to) = unsafe {
            (
                core::slice::from_raw_parts((slab + COUNTERS_OFFSET) as *const u64, exits),
                core::slice::from_raw_parts_mut((self.base + ENDED_COUNTERS_OFFSET) as *mut u64, exits),
            )
        };
        for (to, from) in to.iter_mut().zip(from).filter(|(_, from)| **from != 0) {
            *to = to.wrapping_add(*from);
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

    /// In the child of a fork: the mapping becomes the child's own, with the descriptions of counters that translated
    /// code uses and nothing counted.
    pub(crate) fn forked(&mut self, child: &Forked) {
        // SAFETY: the header is mapped, and this is the process's only thread.
        let header = unsafe { *self.header() };
        let exits = u64::from(header.exits) * size_of::<ExitDesc>() as u64;
        let splits = u64::from(header.splits) * size_of::<Split>() as u64;
        if let Some(window) = sys::map_shared(0, FIXED_BYTES, child.fd, 0) {
            for (offset, bytes) in [(EXITS_OFFSET, exits), (SPLITS_OFFSET, splits)] {
                // SAFETY: both mappings hold the tables, and nothing writes to either meanwhile.
                unsafe {
                    let (from, to) = ((self.base + offset) as *const u8, (window + offset) as *mut u8);
                    core::ptr::copy_nonoverlapping(from, to, bytes as usize);
                }
            }
            // SAFETY: the mapping that was just made.
            unsafe { sys::call(sys::nr::MUNMAP, [window, FIXED_BYTES, 0, 0, 0, 0]) };
        }
        // The shared parts alone: the private ones hold states, stacks and return caches, ours among them.
        let slabs = self.base + FIXED_BYTES;
        let mut pieces = alloc::vec![(self.base, FIXED_BYTES)];
        for i in 0..child.slabs_taken {
            pieces.push((slabs + i * STRIDE + PRIVATE_BYTES, STRIDE - PRIVATE_BYTES));
        }
        let rest = child.slabs_taken * STRIDE;
        pieces.push((slabs + rest, self.slabs_bytes - rest));
        for (at, bytes) in pieces.into_iter().filter(|p| p.1 != 0) {
            sys::map_shared(at, bytes, child.fd, at - self.base);
        }
        let fresh = Header {
            magic: header.magic,
            version: header.version,
            exits: header.exits,
            splits: header.splits,
            ask: Ask { asked: header.ask.asked, answered: header.ask.asked, ..header.ask },
            ..Header::default()
        };
        // SAFETY: the header of the new mapping.
        unsafe { self.header().write_volatile(fresh) };
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
