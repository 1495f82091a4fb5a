//! The log in shared memory.

use core::sync::atomic::{AtomicU64, Ordering};
use wire::boot::Boot;
use wire::log::{EVENTS_MAX, EVENTS_OFFSET, Event, Header};

/// Where the mapping is, for functions that run without the client.
static BASE: AtomicU64 = AtomicU64::new(0);

/// The mapping.
#[derive(Clone, Copy)]
pub(crate) struct Shared {
    base: u64,
}

impl Shared {
    /// # Safety
    /// The boot block names a live mapping with the layout of `wire::log`.
    pub(crate) unsafe fn new(boot: &Boot) -> Shared {
        BASE.store(boot.shared_base, Ordering::Release);
        Shared { base: boot.shared_base }
    }

    /// The one that [`Shared::new`] was told of.
    pub(crate) fn own() -> Shared {
        Shared { base: BASE.load(Ordering::Acquire) }
    }

    /// Takes the next place and writes an event there.
    pub(crate) fn add(self, tid: u32, what: u8, class: u8, pc: u64, address: u64, length: u64) {
        let header = self.base as *mut Header;
        // SAFETY: the header is mapped (see `new`), and this field is only ever changed atomically.
        let events = unsafe { AtomicU64::from_ptr(&raw mut (*header).events) };
        let n = events.fetch_add(1, Ordering::Relaxed);
        if n < EVENTS_MAX {
            let e = Event { what, class, reserved: 0, tid, pc, address, length };
            // SAFETY: inside the mapping; the place was taken by this call alone.
            unsafe { ((self.base + EVENTS_OFFSET) as *mut Event).add(n as usize).write_volatile(e) };
        }
    }
}
