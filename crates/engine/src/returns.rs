//! The return cache: which slot a return address has, and whose it is.
//!
//! Each thread has a table of cache addresses, 8 bytes each, in its slab. Bits 2 to 19 of a return address choose the
//! slot: calls do not end within four bytes of each other, and neighbours share a cache line. Taking these bits out
//! changes flags; where flags may be live at returns, the low 16 bits choose.
//!
//! A slot belongs to the first call whose return address has its low bits, and then needs no store at each call: the
//! owner's landing is known here, and a thread that finds its own slot empty fills it once (the one that made the call's
//! code, at once). As soon as a second call
//! has the same low bits the slot is *contended*: both calls store their landing each time (`callret.rs`). A call that can
//! store without a register does so from the start.
//!
//! One word per slot, read by code in the cache without a lock: 0, the owner's landing, or where contended slots lead.

use crate::block::prefetch;
use crate::state::{RETURN_CACHE_BYTES, RETURN_CACHE_OFFSET, ThreadState};
use crate::sys::{self, mm, nr};

/// Bits of a return address that choose the slot, where flags are dead at returns: twice their value is the offset.
pub const SLOT_BITS: u32 = 0xf_fffc;

/// How the slot is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// By [`SLOT_BITS`].
    Wide,
    /// By the low 16 bits, without touching flags.
    Plain,
}

impl Choice {
    /// Offset in the table of the slot for a return to `ret`.
    pub fn offset(self, ret: u64) -> u64 {
        match self {
            Choice::Wide => (ret & u64::from(SLOT_BITS)) * 2,
            Choice::Plain => (ret & 0xffff) * 8,
        }
    }
}

const _: () = assert!((SLOT_BITS as u64 + 4) * 2 == RETURN_CACHE_BYTES);

/// What came of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The slot belongs to the call that asked.
    Owned,
    /// It belonged to the call with this landing, and is contended from now on.
    Taken(u64),
    /// It is contended.
    Contended,
}

/// The owners of all slots, for one generation of the cache.
pub struct Owners {
    base: u64,
}

impl Owners {
    /// Slots that belong to nobody. `None`: no memory.
    pub fn new() -> Option<Owners> {
        sys::map_anonymous(0, RETURN_CACHE_BYTES, mm::RW, 0).map(|base| Owners { base })
    }

    /// Address of the first word.
    pub fn address(&self) -> u64 {
        self.base
    }

    /// The slot for a return to `ret` will be asked for soon.
    pub fn prefetch(&self, ret: u64) {
        prefetch(self.base + Choice::Wide.offset(ret));
    }

    /// A call with return address `ret` asks for its slot: for itself, with its landing, or to store there each time.
    /// `contended`: where contended slots lead.
    pub fn claim(&self, ret: u64, landing: Option<u64>, contended: u64) -> Claim {
        let word = (self.base + Choice::Wide.offset(ret)) as *mut u64;
        // SAFETY: inside our mapping, aligned, written under the engine lock; code in the cache reads it whole.
        let owner = unsafe { word.read_volatile() };
        let (next, claim) = match owner {
            0 => landing.map_or((contended, Claim::Contended), |landing| (landing, Claim::Owned)),
            _ if owner == contended => return Claim::Contended,
            _ => (contended, Claim::Taken(owner)),
        };
        // SAFETY: as above.
        unsafe { word.write_volatile(next) };
        claim
    }

    /// From now on all slots belong to nobody.
    pub fn forget(&self) {
        const DONTNEED: u64 = 4;
        // SAFETY: our own mapping; its words may become zero at any time.
        unsafe { sys::call(nr::MADVISE, [self.base, RETURN_CACHE_BYTES, DONTNEED, 0, 0, 0]) };
    }
}

/// A thread came upon a slot that is zero, in a return with the stack pointer at `sp`: has this slot and its neighbours
/// that are zero lead to where slots are filled. Each of these costs a signal, hence a whole page at once; all of them at
/// once would cost every thread the whole cache's memory.
pub fn make_empty(st: &ThreadState, sp: u64) {
    const BYTES: u64 = 4 << 10;
    // SAFETY: the return just read this word.
    let ret = unsafe { (sp as *const u64).read() };
    // (Where flags may be live, nothing is filled.)
    let choice = if st.return_fill == st.return_miss { Choice::Plain } else { Choice::Wide };
    let first = st.this as u64 + RETURN_CACHE_OFFSET + choice.offset(ret) / BYTES * BYTES;
    for slot in (first..first + BYTES).step_by(8) {
        let slot = slot as *mut u64;
        // SAFETY: in this thread's return cache, which nobody else writes.
        unsafe {
            if *slot == 0 {
                *slot = st.return_fill;
            }
        }
    }
}

/// Has this thread's slot for returns to `ret` lead to the landing of its owner, as the first return would: a thread that
/// makes code is likely to run it, and a page of slots that are all zero costs it a signal.
pub fn fill(st: &ThreadState, ret: u64, landing: u64) {
    let slot = (st.this as u64 + RETURN_CACHE_OFFSET + Choice::Wide.offset(ret)) as *mut u64;
    // SAFETY: in this thread's return cache, which nobody else writes.
    unsafe {
        if *slot == 0 || *slot == st.return_fill {
            *slot = landing;
        }
    }
}

impl Drop for Owners {
    fn drop(&mut self) {
        // SAFETY: our own mapping; no code that reads it is left.
        unsafe { sys::call(nr::MUNMAP, [self.base, RETURN_CACHE_BYTES, 0, 0, 0, 0]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_owned_until_a_second_call_asks() {
        let owners = Owners::new().unwrap();
        assert_eq!(owners.claim(0x15_1234, Some(0x100), 9), Claim::Owned);
        assert_eq!(owners.claim(0x15_1238, Some(0x200), 9), Claim::Owned);
        assert_eq!(owners.claim(0x25_1236, Some(0x300), 9), Claim::Taken(0x100));
        assert_eq!(owners.claim(0x15_1234, Some(0x100), 9), Claim::Contended);
        owners.forget();
        assert_eq!(owners.claim(0x15_1234, Some(0x100), 9), Claim::Owned);
        assert_eq!(owners.claim(0x25_1234, None, 9), Claim::Taken(0x100));
        assert_eq!(owners.claim(0x25_1238, None, 9), Claim::Contended);
        assert_eq!(owners.claim(0x25_1238, Some(0x200), 9), Claim::Contended);
    }

    #[test]
    fn a_thread_fills_slots_that_lead_nowhere() {
        let bytes = RETURN_CACHE_OFFSET + RETURN_CACHE_BYTES;
        let base = sys::map_anonymous(0, bytes, mm::RW, 0).unwrap();
        // SAFETY: zeroed memory of our own, large enough; zeroes are a valid state.
        let st = unsafe { &mut *(base as *mut ThreadState) };
        (st.this, st.return_fill) = (base as *mut ThreadState, 7);
        let slot = (base + RETURN_CACHE_OFFSET + Choice::Wide.offset(0x15_1234)) as *mut u64;
        // SAFETY: inside that memory.
        let read = || unsafe { slot.read_volatile() };
        fill(st, 0x15_1234, 0x100);
        assert_eq!(read(), 0x100);
        fill(st, 0x15_1234, 0x200);
        assert_eq!(read(), 0x100, "another's");
        // SAFETY: inside that memory.
        unsafe { slot.write_volatile(7) };
        fill(st, 0x15_1234, 0x200);
        assert_eq!(read(), 0x200);
    }
}
