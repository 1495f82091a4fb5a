//! Handing the program back: from some instruction on it runs natively, as if the engine had never been there.
//!
//! For what the engine cannot run (a program that uses gs itself, far transfers), for an exhausted code cache, and for
//! bugs of ours that leave the program's state known. The program's stack and registers hold nothing of the engine's,
//! so all it takes is to give handlers, masks, page permissions and gs back and to go on at the program's address. The
//! thread that asks for it *gathers* the others first: each gets a SIGTRAP and parks in the signal handler where its
//! state is exact. When all stand there, the process gets its own handlers back, and each handler returns
//! to the program instead of to the cache, with the kernel restoring every register.
//!
//! # Rules
//! No lock is held while threads are waited for. Nothing enters the engine again afterwards.

use crate::client::Client;
use crate::engine::{Engine, Shared};
use crate::kernel::{UContext, sa, sig};
use crate::state::ThreadState;
use crate::sys::{self, nr};
use crate::{bug, respite, signal, thread};
use core::sync::atomic::{AtomicU32, Ordering};

/// What is going on: one of the constants below.
static PHASE: AtomicU32 = AtomicU32::new(RUNNING);
const RUNNING: u32 = 0;
const GATHERING: u32 = 1;
const NATIVE: u32 = 2;

/// How long threads get to come, milliseconds: one may sleep in a `vfork`.
const PATIENCE_MS: u32 = 10_000;

/// A thread's part in this.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Leaving {
    /// It cannot go on in the cache at `target`.
    pub wanted: bool,
    /// It is to park at the next exact state.
    pub called: bool,
    /// It gathered the others.
    pub gathers: bool,
    /// It stands in the signal handler, and the handler's frame leads to the program.
    pub parked: bool,
}

/// Are threads being gathered?
pub(crate) fn is_gathering() -> bool {
    PHASE.load(Ordering::Acquire) == GATHERING
}

impl<C: Client> Engine<C> {
    /// The program goes on natively at `pc`, with the registers in `st`, once the engine is left: see [`gather`].
    pub(crate) fn hand_back(&mut self, st: &mut ThreadState, pc: u64) {
        st.leaving.wanted = true;
        st.resume = 0;
        st.target = pc;
    }

    /// A thread that was called has an exact state, which is in `uc`: it parks.
    pub(crate) fn park(&mut self, st: &mut ThreadState, uc: &mut UContext) {
        let queued = core::mem::take(&mut st.signals.queued);
        if queued != 0 {
            let info = st.signals.info;
            signal::raise_again(st, queued, &info);
        }
        st.pend = 0;
        respite::stop(st);
        uc.rflags &= !0x100;
        uc.stack = st.signals.altstack;
        uc.mask = st.signals.mask;
        st.leaving.parked = true;
    }

    /// Other threads that are not parked, as states.
    fn others(&self, st: &ThreadState) -> alloc::vec::Vec<*const ThreadState> {
        let mine = st.this.cast_const();
        let all = self.slabs.in_use().map(|s| self.slabs.address(s) as *const ThreadState);
        // SAFETY: slabs in use are mapped; a thread's own flags are read as they are at the moment.
        all.filter(|o| *o != mine && unsafe { !(&raw const (**o).leaving.parked).read_volatile() }).collect()
    }
}

/// Gathers all threads and arranges for this one to follow them. The engine lock is open.
pub(crate) fn gather<C: Client>(shared: &Shared<C>, st: &mut ThreadState) {
    st.leaving.wanted = false;
    if st.signals.vfork_child {
        bug::fatal(b"the program does something in a vfork child that the engine cannot run");
    }
    st.leaving.called = true;
    st.pend = 1;
    if PHASE.compare_exchange(RUNNING, GATHERING, Ordering::AcqRel, Ordering::Relaxed).is_err() {
        return; // another thread gathers: parking is all that there is to do
    }
    st.leaving.gathers = true;
    {
        let mut e = shared.lock.lock();
        let mut action = e.master_action(&e.signals.0[sig::TRAP as usize]);
        action.flags |= sa::RESTART;
        signal::set_kernel_action(sig::TRAP, &action);
        e.client.handed_back();
        e.client.process_end();
    }
    // SAFETY: asks who we are.
    let pid = unsafe { sys::call(nr::GETPID, [0; 6]) } as u64;
    for waited_ms in 0..PATIENCE_MS {
        let others = shared.lock.lock().others(st);
        if others.is_empty() {
            return;
        }
        // Now and then again: a thread that was just being made did not hear the first call.
        if waited_ms % 50 == 0 {
            for other in others {
                // SAFETY: a slab in use, as above; a signal to a thread that has ended meanwhile goes nowhere.
                unsafe {
                    let tid = (&raw const (*other).tid).read_volatile();
                    if tid != 0 {
                        sys::call(nr::TGKILL, [pid, tid.into(), sig::TRAP.into(), 0, 0, 0]);
                    }
                }
            }
        }
        let ms = [0u64, 1_000_000];
        // SAFETY: the kernel reads two words.
        unsafe { sys::call(nr::NANOSLEEP, [ms.as_ptr() as u64, 0, 0, 0, 0, 0]) };
    }
    bug::fatal(b"the program cannot be handed back to native execution: a thread does not answer");
}

/// The last act of the signal handler of a parked thread: waits for the others, and gives gs back.
pub(crate) fn leave<C: Client>(shared: &Shared<C>, st: &mut ThreadState) {
    if st.leaving.gathers {
        shared.lock.lock().give_process_back(st);
        PHASE.store(NATIVE, Ordering::Release);
    }
    while PHASE.load(Ordering::Acquire) != NATIVE {
        sys::yield_now();
    }
    // SAFETY: natively nothing is there; the handler returns to the program without using gs again.
    unsafe { thread::set_gs(0) };
}

/// Where a thread goes on whose engine code met a bug of ours while the program's state was known.
///
/// # Safety
/// This thread held the engine lock and was about to lead the program to `target`; it is on the engine's stack.
pub(crate) unsafe extern "C" fn after_bug<C: Client>(st: *mut ThreadState) {
    // SAFETY: the state of this thread.
    let st = unsafe { &mut *st };
    // SAFETY: set once at start to a leaked allocation of this type.
    let shared = unsafe { &*(st.engine as *const Shared<C>) };
    // SAFETY: the caller's word.
    unsafe { shared.lock.force_unlock() };
    st.resume = 0;
    gather(shared, st);
}
