//! Memory that may be taken anywhere, signal handlers included, and is never given back.
//!
//! ```text
//! base                         used (atomic)                limit
//!  |--- taken, in this order ---|------ untouched pages ------|
//! ```
//! One reservation, no commitment: pages exist once they are touched. Taking memory is a compare-and-swap on
//! `used`. Running out is an answer (`None`) that callers count, not a failure.
//!
//! An arena over a file shares what is written with the launcher: nothing needs to be flushed, and whatever
//! ends the program, `SIGKILL` included, leaves the data behind. Positions in it are offsets from `base`.
//!
//! Never: freed piecemeal, moved, or used by a forked child (the child must not write into the parent's file;
//! `process` cuts it off), unless that has a file of its own ([`Arena::share_anew`]).

use crate::sys;
use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering::*};

/// A bump allocator over one reservation. Zeroed memory.
#[derive(Debug)]
pub struct Arena {
    base: AtomicUsize,
    used: AtomicUsize,
    limit: AtomicUsize,
}

impl Arena {
    /// An arena without memory, for a `static`. [`Arena::reserve`] or [`Arena::share`] gives it some.
    pub const fn new() -> Self {
        Self { base: AtomicUsize::new(0), used: AtomicUsize::new(0), limit: AtomicUsize::new(0) }
    }

    /// Reserves up to `bytes` of private memory; less (down to a 64th) where address space is limited.
    pub fn reserve(&self, bytes: usize) -> sys::Result<()> {
        let mut want = bytes;
        loop {
            match sys::map_anonymous(want) {
                Ok(base) => return self.adopt(base, want, 0),
                Err(e) if want / 2 < bytes / 64 => return Err(e),
                Err(_) => want /= 2,
            }
        }
    }

    /// Puts the arena over file `fd`, which is grown (sparsely) to `bytes`. The first `header` bytes are left
    /// to the caller.
    pub fn share(&self, fd: i32, bytes: usize, header: usize) -> sys::Result<()> {
        sys::truncate(fd, bytes)?;
        let base = sys::map_shared(fd, bytes)?;
        self.adopt(base, bytes, header)
    }

    /// In a forked child: the memory becomes that of file `fd`, at the same address; nothing is taken of it yet but the
    /// header.
    ///
    /// # Safety
    /// The arena is over a file of `bytes`, and nothing that was taken from it is used any more.
    pub unsafe fn share_anew(&self, fd: i32, bytes: usize, header: usize) -> sys::Result<()> {
        sys::truncate(fd, bytes)?;
        // SAFETY: replaces our own mapping of this length, of which nobody uses anything, by contract.
        unsafe { sys::map_shared_at(self.base(), fd, bytes) }?;
        self.used.store(header, Relaxed);
        Ok(())
    }

    fn adopt(&self, base: *mut u8, bytes: usize, used: usize) -> sys::Result<()> {
        if self.base.compare_exchange(0, base as usize, AcqRel, Relaxed).is_err() {
            // SAFETY: the mapping is fresh and nobody else has seen it.
            unsafe { sys::unmap(base, bytes) };
            return Ok(());
        }
        self.used.store(used, Relaxed);
        self.limit.store(bytes, Release);
        Ok(())
    }

    /// Takes zeroed memory; `None` when the arena is full or has none.
    pub fn take(&self, layout: Layout) -> Option<NonNull<u8>> {
        let limit = self.limit.load(Acquire);
        let base = self.base.load(Relaxed);
        let mut used = self.used.load(Relaxed);
        loop {
            let start = used.checked_next_multiple_of(layout.align())?;
            let end = start.checked_add(layout.size())?;
            if end > limit {
                return None;
            }
            match self.used.compare_exchange_weak(used, end, Relaxed, Relaxed) {
                Ok(_) => return NonNull::new((base + start) as *mut u8),
                Err(now) => used = now,
            }
        }
    }

    /// Takes zeroed memory for `count` values of `T`.
    pub fn take_array<T>(&self, count: usize) -> Option<NonNull<T>> {
        Some(self.take(Layout::array::<T>(count).ok()?)?.cast())
    }

    /// Position of `address` in the arena.
    pub fn offset_of<T>(&self, address: NonNull<T>) -> u64 {
        (address.as_ptr() as usize).wrapping_sub(self.base.load(Relaxed)) as u64
    }

    /// Start of the memory; null without any.
    pub fn base(&self) -> *mut u8 {
        self.base.load(Relaxed) as *mut u8
    }

    /// Bytes taken so far.
    pub fn used(&self) -> usize {
        self.used.load(Relaxed)
    }
}

impl Default for Arena {
    fn default() -> Self {
        Self::new()
    }
}
