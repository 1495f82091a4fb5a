//! Counts what the reader allocates, so that a file that asks for too much is found.
//!
//! Counts per thread: tests of the same process do not disturb each other. What zstd allocates by itself is not
//! seen; it is one context of fixed size, because the reader hands it the whole output buffer.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with a counter.
pub struct Meter;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

/// Largest number of bytes that were allocated at one time during `act`, beyond those at its start.
pub fn peak<T>(act: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = act();
    (result, PEAK.get().saturating_sub(before))
}

fn grow(bytes: usize) {
    // A thread that is ending has no counters any more, and nothing that we measure.
    let _ended = LIVE.try_with(|live| {
        live.set(live.get().wrapping_add(bytes));
        let _ended = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

fn shrink(bytes: usize) {
    let _ended = LIVE.try_with(|live| live.set(live.get().saturating_sub(bytes)));
}

// SAFETY: every call is handed to `System` unchanged, which upholds the contract of `GlobalAlloc`; the counters
// neither allocate (const thread locals without destructors) nor unwind.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`, which is that of `System.alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        shrink(layout.size());
        // SAFETY: `at` came from `System.alloc` with this layout, as the caller promises for `self`.
        unsafe { System.dealloc(at, layout) }
    }
}
