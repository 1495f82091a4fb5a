//! Threads: their slabs, and how they start and end.

use crate::client::Client;
use crate::engine::{Engine, entry};
use crate::state::{ENGINE_STACK_TOP, ThreadState};
use crate::sys::{self, mm};
use crate::trampoline;
use alloc::vec::Vec;
use wire::slab;

/// Which slabs are in use.
pub struct Slabs {
    base: u64,
    count: u64,
    /// Slabs that were ever taken.
    pub taken: u64,
    free: Vec<u32>,
}

impl Slabs {
    /// `count` slabs from `base` on.
    pub fn new(base: u64, count: u64) -> Slabs {
        Slabs { base, count, taken: 0, free: Vec::new() }
    }

    /// Address of a slab.
    pub fn address(&self, slab: u32) -> u64 {
        self.base + u64::from(slab) * slab::STRIDE
    }

    fn take(&mut self) -> Option<(u32, bool)> {
        if let Some(s) = self.free.pop() {
            return Some((s, false));
        }
        if self.taken >= self.count {
            return None;
        }
        self.taken += 1;
        Some((self.taken as u32 - 1, true))
    }

    /// Gives a slab back.
    pub fn give(&mut self, slab: u32) {
        self.free.push(slab);
    }
}

impl<C: Client> Engine<C> {
    /// A state for a new thread, complete but for registers and signals. `None`: too many threads, or no memory.
    pub(crate) fn new_thread(&mut self, shared: usize) -> Option<&'static mut ThreadState> {
        let (slab, fresh) = self.slabs.take()?;
        let at = self.slabs.address(slab);
        if fresh {
            sys::map_anonymous(at, slab::PRIVATE_BYTES, mm::RW, mm::MAP_FIXED)?;
        }
        let state = at as *mut ThreadState;
        // SAFETY: the slab's private part was mapped above or by an earlier thread that has left it; zeroes are a
        // valid state, and nobody else uses the slab.
        let st = unsafe {
            core::ptr::write_bytes(state, 0, 1);
            &mut *state
        };
        st.this = state;
        st.engine_sp = at + ENGINE_STACK_TOP - 64;
        st.entry = entry::<C> as *const () as usize;
        st.enter_exit = trampoline::enter_exit as *const () as usize;
        st.enter_indirect = trampoline::enter_indirect as *const () as usize;
        st.enter_syscall = trampoline::enter_syscall as *const () as usize;
        st.enter_client = trampoline::enter_client as *const () as usize;
        st.return_miss = self.return_miss;
        st.engine = shared;
        st.slab = slab;
        Some(st)
    }
}

/// Points gs at a state.
///
/// # Safety
/// The processor and kernel allow `wrgsbase`, and `state` is this thread's.
pub unsafe fn set_gs(state: u64) {
    // SAFETY: as the caller promises; the program's gs is not in use (checked at translation).
    unsafe { core::arch::asm!("wrgsbase {}", in(reg) state, options(nostack, nomem)) };
}
