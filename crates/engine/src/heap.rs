//! The engine's memory: power-of-two size classes carved from its own mappings.
//!
//! Never the program's malloc: translation can start inside it. Freed blocks go to a list per class and are
//! reused; big ones are mapped and unmapped singly. A spinlock guards the lists; it is only ever contended
//! by threads that hold no other lock of the engine (see `lock.rs`), and never taken in a signal handler.

use crate::lock::{Guard, SpinLock};
use crate::sys;
use core::alloc::{GlobalAlloc, Layout};

/// The largest class is 64 KB; anything bigger is mapped singly.
const CLASSES: usize = 13;
const SMALLEST_SHIFT: usize = 4;
/// At least as large as the largest class, so that an aligned block always fits.
const CHUNK_BYTES: usize = 256 << 10;
const _: () = assert!(1 << (CLASSES - 1 + SMALLEST_SHIFT) <= CHUNK_BYTES);

struct Lists {
    free: [usize; CLASSES],
    cur: usize,
    end: usize,
}

static LISTS: SpinLock<Lists> = SpinLock::new(Lists { free: [0; CLASSES], cur: 0, end: 0 });

/// The allocator; a runtime declares one as its `#[global_allocator]`.
#[derive(Default)]
pub struct Heap;

impl Heap {
    /// The one heap.
    pub const fn new() -> Heap {
        Heap
    }
}

/// Keeps the heap as it is while a fork copies it: nobody allocates until this is dropped, in either process.
pub(crate) struct Still {
    _lists: Guard<'static, Lists>,
}

/// See [`Still`].
pub(crate) fn hold_still() -> Still {
    Still { _lists: LISTS.lock() }
}

fn class_of(layout: Layout) -> usize {
    let size = layout.size().max(layout.align()).max(1 << SMALLEST_SHIFT);
    (usize::BITS - (size - 1).leading_zeros()) as usize - SMALLEST_SHIFT
}

// SAFETY: blocks of a class are at least as large and as aligned as the class size, hand out each address to
// one owner at a time (the lists are under a lock), and come from live private mappings.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let class = class_of(layout);
        if class >= CLASSES {
            let bytes = (layout.size() as u64).next_multiple_of(4096);
            return sys::map_anonymous(0, bytes, sys::mm::RW, 0).unwrap_or(0) as *mut u8;
        }
        let size = 1usize << (class + SMALLEST_SHIFT);
        let mut l = LISTS.lock();
        let head = l.free[class];
        if head != 0 {
            // SAFETY: a block on a free list holds the address of the next one in its first word.
            l.free[class] = unsafe { *(head as *const usize) };
            return head as *mut u8;
        }
        let at = l.cur.next_multiple_of(size);
        if at + size > l.end {
            let bytes = (CHUNK_BYTES + size) as u64;
            let Some(chunk) = sys::map_anonymous(0, bytes, sys::mm::RW, sys::mm::MAP_POPULATE) else {
                return core::ptr::null_mut();
            };
            l.cur = chunk as usize;
            l.end = chunk as usize + CHUNK_BYTES + size;
        }
        let at = l.cur.next_multiple_of(size);
        l.cur = at + size;
        at as *mut u8
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        let class = class_of(layout);
        if class >= CLASSES {
            let bytes = (layout.size() as u64).next_multiple_of(4096);
            // SAFETY: the block was mapped singly by `alloc` with this length, and its owner gives it up.
            unsafe { sys::call(sys::nr::MUNMAP, [ptr as u64, bytes, 0, 0, 0, 0]) };
            return;
        }
        let mut l = LISTS.lock();
        // SAFETY: the owner gives the block up; it is at least 16 bytes long.
        unsafe { *(ptr as *mut usize) = l.free[class] };
        l.free[class] = ptr as usize;
    }
}
