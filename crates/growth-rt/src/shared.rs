//! The shared memory, as the program's side writes it: only this file touches its tables.
//!
//! The collector may read at any time, even after a SIGKILL: an entry is written before the length that covers it.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use engine::lock::SpinLock;
use engine::sys;
use wire::growth::*;

/// The shared memory.
#[derive(Clone, Copy)]
pub struct Shared {
    base: u64,
}

impl Shared {
    /// # Safety
    /// `base` is the address of a live mapping with the layout of `wire::growth`.
    pub unsafe fn new(base: u64) -> Shared {
        Shared { base }
    }

    /// A copy of the header.
    pub fn header(&self) -> Header {
        // SAFETY: the header is mapped (see `new`); fields that others change are read by the functions below.
        unsafe { (self.base as *const Header).read_volatile() }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: a field of the mapped header, aligned.
        unsafe { AtomicU32::from_ptr((self.base + offset as u64) as *mut u32) }
    }

    fn long(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a field of the mapped header, aligned.
        unsafe { AtomicU64::from_ptr((self.base + offset as u64) as *mut u64) }
    }

    /// Notes a problem.
    pub fn problem(&self, bit: u32) {
        self.word(core::mem::offset_of!(Header, problems)).fetch_or(bit, Ordering::Relaxed);
    }

    /// Notes activations that found no room, and the size error of a table.
    pub fn losses(&self, dropped: u64, size_error_ppm: u64) {
        if dropped > 0 {
            self.problem(problem::POINTS_FULL);
            self.long(core::mem::offset_of!(Header, dropped)).fetch_add(dropped, Ordering::Relaxed);
        }
        self.long(core::mem::offset_of!(Header, size_error_ppm)).fetch_max(size_error_ppm, Ordering::Relaxed);
    }

    /// Counts a renumbering.
    pub fn renumbered(&self) {
        self.long(core::mem::offset_of!(Header, renumberings)).fetch_add(1, Ordering::Relaxed);
    }

    /// Notes the clocks: `which` is 0 at the start, 1 at the end.
    pub fn clocks(&self, which: usize, tsc: u64, ns: u64) {
        self.long(core::mem::offset_of!(Header, tsc) + which * 8).store(tsc, Ordering::Relaxed);
        self.long(core::mem::offset_of!(Header, clock_ns) + which * 8).store(ns, Ordering::Relaxed);
    }

    /// Adds a thread in a slot; returns its index.
    pub fn add_thread(&self, tid: u32, slot: u32) -> u32 {
        let count = self.word(core::mem::offset_of!(Header, threads));
        let index = count.load(Ordering::Relaxed);
        if u64::from(index) >= THREADS_MAX {
            self.problem(problem::THREADS_FULL);
            return THREADS_MAX as u32 - 1;
        }
        self.set_thread(index, Thread { tid, slot: slot + 1, cost: 0 });
        count.store(index + 1, Ordering::Release);
        index
    }

    /// Changes a thread's entry.
    pub fn set_thread(&self, index: u32, thread: Thread) {
        let at = (self.base + THREADS_OFFSET) as *mut Thread;
        // SAFETY: inside the table: an index that `add_thread` gave.
        unsafe { at.add(index as usize).write_volatile(thread) };
    }

    /// Adds a routine; returns its index.
    pub fn add_routine(&self, routine: Routine) -> u32 {
        static ADDING: SpinLock<()> = SpinLock::new(());
        let _one_at_a_time = ADDING.lock();
        let count = self.word(core::mem::offset_of!(Header, routines));
        let index = count.load(Ordering::Relaxed);
        if u64::from(index) >= ROUTINES_MAX {
            self.problem(problem::ROUTINES_FULL);
            return ROUTINES_MAX as u32 - 1;
        }
        let at = (self.base + ROUTINES_OFFSET) as *mut Routine;
        // SAFETY: inside the table, checked above.
        unsafe { at.add(index as usize).write_volatile(routine) };
        count.store(index + 1, Ordering::Release);
        index
    }

    /// Adds a line (without its end) to the module table; returns its number, or `None` when there is no room.
    /// Called under the engine lock.
    pub fn add_module(&self, line: &[u8]) -> Option<u32> {
        let used = self.long(core::mem::offset_of!(Header, module_bytes));
        let at = used.load(Ordering::Relaxed);
        if at + line.len() as u64 + 1 > MODULES_BYTES_MAX {
            self.problem(problem::MODULES_FULL);
            return None;
        }
        // SAFETY: inside the table, checked above.
        unsafe {
            let to = (self.base + MODULES_OFFSET + at) as *mut u8;
            core::ptr::copy_nonoverlapping(line.as_ptr(), to, line.len());
            to.add(line.len()).write(b'\n');
        }
        used.store(at + line.len() as u64 + 1, Ordering::Release);
        let count = self.word(core::mem::offset_of!(Header, modules));
        let number = count.load(Ordering::Relaxed);
        count.store(number + 1, Ordering::Release);
        Some(number)
    }

    /// Where a slot's window lies.
    pub fn window(&self, slot: u64) -> u64 {
        self.base + WINDOWS_OFFSET + slot * WINDOW_BYTES
    }

    /// The table of points.
    pub fn points(&self) -> Points {
        Points {
            first: (self.base + POINTS_OFFSET) as *mut Point,
            count: (self.base + core::mem::offset_of!(Header, points) as u64) as *mut u64,
            max: POINTS_MAX,
        }
    }
}

/// Points whose memory is made present together, where there are more.
const POINTS_AHEAD: u64 = 512;

/// The array of points. Threads append to it together; a point is written by the thread that appended it alone.
#[derive(Clone, Copy)]
pub struct Points {
    first: *mut Point,
    count: *mut u64,
    max: u64,
}

impl Points {
    /// A new point's number; `None` when the array is full.
    pub fn append(&self) -> Option<u32> {
        // SAFETY: the word lives as long as the mapping.
        let count = unsafe { AtomicU64::from_ptr(self.count) };
        let number = count.fetch_add(1, Ordering::Relaxed);
        if number >= self.max {
            count.store(self.max, Ordering::Relaxed);
            return None;
        }
        // (Small programs have fewer.)
        if number != 0 && number.is_multiple_of(POINTS_AHEAD) {
            self.populate(number);
        }
        Some(number as u32)
    }

    /// Makes memory for the points from `number` on present: one by one, its pages cost more.
    #[cold]
    fn populate(&self, number: u64) {
        let end = (number + POINTS_AHEAD).min(self.max);
        let at = |n: u64| (self.first as u64 + n * size_of::<Point>() as u64) & !0xfff;
        if !cfg!(test) {
            sys::populate(at(number), at(end) - at(number));
        }
    }

    /// A point. The caller holds no other reference to it, and it is this thread's.
    #[inline]
    #[expect(
        clippy::mut_from_ref,
        reason = "raw shared memory: the caller upholds uniqueness, see the comment"
    )]
    pub fn get(&self, number: u32) -> &mut Point {
        // SAFETY: numbers come from `append`, hence lie inside the array; a thread uses its own points alone and
        // one at a time.
        unsafe { &mut *self.first.add(number as usize) }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> u32 {
        // SAFETY: the word lives as long as the memory of the test.
        unsafe { self.count.read() as u32 }
    }

    /// An array of `max` points, and the memory that it lies in.
    #[cfg(test)]
    pub(crate) fn for_tests(max: u64) -> (Points, alloc::vec::Vec<u64>) {
        let mut memory = alloc::vec![0u64; 1 + max as usize * size_of::<Point>() / 8];
        let count = memory.as_mut_ptr();
        // SAFETY: the word after the first is inside the vector.
        let first = unsafe { count.add(1) }.cast();
        (Points { first, count, max }, memory)
    }
}
