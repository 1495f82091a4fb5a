//! Where a thread keeps what emitted code works with: addresses relative to gs, and the frame of a pending
//! activation.
//!
//! ```text
//! slab + 0        the engine's private part
//!      + 1 M      the slot's window: wire::growth::Hot and the record buffer (shared with the collector)
//!      + 4 M      which routines have pending activations, 4 bytes per routine
//!      + 64 M     stamps, 4 bytes per cell, moved by STAMPS_SHIFT within the page
//!      + FACTS    rare facts of pending activations, 64 bytes each
//!      + FRAMES   the activations, 64 bytes each
//!      + LOST     stamps that were taken away, where both metrics are computed
//! ```
//! Only touched pages cost memory. All of it but [`Hot`] and the buffer is private to the process.

use core::mem::offset_of;
use wire::growth::{ALIKE_OFFSET, HOT_OFFSET, Hot, ROUTINES_MAX, WINDOW_BYTES};
pub use wire::growth::{FOLD, NESTED, SLOTS_MAX};

/// Bits of a cell's index: how much address space a thread's stamps tell apart.
pub const INDEX_BITS: u32 = 34;
/// Bytes of one map of stamps.
pub const STAMPS_BYTES: u64 = 4 << INDEX_BITS;
/// Room for pending activations: 2^25 of them. A displacement reaches as far back, from a frame to its facts.
pub const FRAMES_BYTES: u64 = 2 << 30;

/// Offset in a slab of a word for each routine: [`NESTED`] while an activation of it is pending, else 0.
pub const NEST: u64 = 4 << 20;

/// First page of the stamps in a slab.
const STAMPS_PAGE: u64 = 64 << 20;
/// Stamps and the program's data must not share low address bits: a store to one and a load of the other within
/// a few instructions look alike to the processor, which then waits (measured: 3 to 7 times slower).
const STAMPS_SHIFT: u64 = 0x840;

/// Displacement of the stamps from gs.
pub const STAMPS: i32 = (STAMPS_PAGE + STAMPS_SHIFT) as i32;
/// Offset of the facts in a slab.
pub const FACTS: u64 = STAMPS_PAGE + STAMPS_BYTES + (64 << 20);
/// Offset of the frames.
pub const FRAMES: u64 = FACTS + FRAMES_BYTES;
/// Callers of a caller that are looked at one after the other for the owner of a stamp. Those below are searched by
/// halves: a recursion that goes on for long would take the square of its depth otherwise.
pub const CALLERS_NEAR: u64 = 16;
/// Offset of the sentinel. The frames below it have a stamp older than all but 0: how far a search goes, is asked of the
/// frame behind the last near one, which is there for the root, too.
pub const SENTINEL: u64 = FRAMES + 64 * CALLERS_NEAR;
/// Displacement from a frame to its facts.
pub const TO_FACTS: i32 = -(FRAMES_BYTES as i64) as i32;
/// Offset of the lost stamps.
pub const LOST: u64 = FRAMES + FRAMES_BYTES + (64 << 20);

/// Slabs of a process.
#[derive(Debug, Clone, Copy)]
pub struct Slabs {
    /// Distance from one to the next.
    pub stride: u64,
    /// How many there are, hence threads that live at one time.
    pub count: u64,
    /// Whether they have room for lost stamps.
    pub lost: bool,
}

impl Slabs {
    /// For runs that compute both metrics, or one: without lost stamps more fit into an address space.
    pub const fn new(both: bool) -> Slabs {
        let end = if both { LOST + STAMPS_BYTES + (64 << 20) } else { LOST };
        let count = if both { SLOTS_MAX / 2 } else { SLOTS_MAX };
        Slabs { stride: end.next_multiple_of(1 << 30), count, lost: both }
    }

    /// Bytes of all of them.
    pub const fn bytes(self) -> u64 {
        self.stride * self.count
    }
}

/// A pending activation, as emitted code writes it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame {
    /// Its stamp, in both halves.
    pub stamp: u64,
    /// Address of its return address.
    pub sp: u64,
    /// First reads of its own.
    pub own: u64,
    /// What ancestors-to-be of first reads gain or lose: see `inputsize::core::stack`.
    pub far: i64,
    /// Cost of the thread when it was entered.
    pub entered: u64,
    /// Costs of finished callees.
    pub callees: u64,
    /// Whose activation, with [`FOLD`] and [`NESTED`].
    pub routine: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// What accesses compare stamps with and store: its stamp, or 0 while accesses are deleted.
    pub top: u64,
}

/// Bits of [`Frame::flags`].
pub mod flag {
    /// A signal handler: returns and unwinding stop here.
    pub const HANDLER: u32 = 1;
    /// It has [`super::Facts`].
    pub const FACTS: u32 = 2;
}

/// What few activations have.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Facts {
    /// Induced reads by other threads and by the kernel, those of returned callees included.
    pub induced: [u64; 2],
    /// Those by the activation itself.
    pub induced_self: [u64; 2],
    /// rms minus trms, as a partial sum like [`Frame::far`].
    pub rms_less: i64,
    /// The mask that a handler must put back.
    pub saved_mask: u64,
    /// Address of the next older frame that is looked at when it returns; 0 for none. Valid while
    /// [`Hot::cold`] leads to the frame.
    pub older: u64,
    /// Keeps it 64 bytes long.
    pub reserved: u64,
}

const _: () = assert!(NEST >= HOT_OFFSET + WINDOW_BYTES && NEST + 4 * ROUTINES_MAX <= STAMPS_PAGE);
const _: () = assert!(size_of::<Frame>() == 64 && size_of::<Facts>() == 64);

/// One added to a stamp in both halves.
pub const ONE: u64 = 1 << 32 | 1;
/// The mark of cells under folded work, and what `me` is then: no thread's.
pub const FOLDED_MARK: u64 = 0xfdfd_fdfd_fdfd_fdfd;

/// The frame's facts.
pub fn facts_of(frame: *mut Frame) -> *mut Facts {
    frame.wrapping_byte_offset(TO_FACTS as isize).cast()
}

/// Displacements from gs.
pub mod gs {
    use super::*;
    macro_rules! displacements { ($($name:ident = $field:ident),* $(,)?) => {
        $(#[doc = concat!("Of `", stringify!($field), "`.")]
        pub const $name: i32 = (HOT_OFFSET as usize + offset_of!(Hot, $field)) as i32;)*
    } }
    displacements! { SSP = ssp, COUNTER = counter, COST = cost, LOG = log,
    LOG_END = log_end, MASK = mask, MARKS = marks, SHARERS = sharers, MY_BIT = my_bit, ME = me, COLD = cold, ONE = one, MASK_ON = mask_on, ME_ON = me_on, ONLY_ME = only_me, STOLEN = stolen,
    KEPT = kept, COUNT = count, BACK = back, ADDRESS = address, HOME = home,
    CELLS = cells, ALIVE = alive, WAY = way, SPARE = spare, ALIKE_MASK = alike_mask, OLD = old, INDEX = index,
    SENTINEL = sentinel }
    /// Of the table of alike activations.
    pub const ALIKE: i32 = (HOT_OFFSET + ALIKE_OFFSET) as i32;
    /// Of the words that [`NEST`] is about.
    pub const NEST: i32 = super::NEST as i32;
}
