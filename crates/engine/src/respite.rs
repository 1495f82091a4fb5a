//! Time for the program between signals that strike faster than they can be handled.
//!
//! A timer of 50 microseconds leaves a program alone for most of that, natively. Here a handler takes longer, and so
//! does its delivery: where both together take longer than the period, the next signal is there before the handler has
//! returned, the kernel hands it over at once, and the program would never execute another instruction. It is slow for
//! our sake, so it is for us to let it go on.
//!
//! The rule: once [`IN_VAIN`] signals have found the program at the very place that the last handler returned to, a
//! signal that waits as a handler returns strikes a little later: asynchronous signals stay blocked in the kernel, and
//! what the handler returns to runs at full speed for [`RESPITE_NS`]. So it goes on until no signal waits at a return.
//! Handlers that were interrupted get their time as well, and thus come to an end. A timer of the kernel ends each
//! respite, because nothing in the cache would: the program may be in a loop, or sleep in a system call. Its SIGTRAP
//! does nothing but give the program's mask back, wherever the program is, and what waits is delivered as ever.
//!
//! Only signals that come whether or not the program gets on count: those of timers, of the kernel and of other
//! processes. Threads of the program that send signals are as slow as the one that gets them; and a handler that sends
//! itself the signal again may rely on it that the program behind it waits.

use crate::kernel::{SigInfo, UContext, sig};
use crate::signal::{raise_again, set_kernel_mask};
use crate::state::ThreadState;
use crate::sys::{self, nr};

/// So many signals may find the program where it was.
const IN_VAIN: u32 = 8;
/// How long it runs then, nanoseconds.
const RESPITE_NS: u64 = 100_000;

const SI_USER: i32 = 0;
const SI_QUEUE: i32 = -1;
const SI_TIMER: i32 = -2;
const SI_TKILL: i32 = -6;

/// A thread's part in this.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Respite {
    /// Where the last handler returned to.
    pub place: u64,
    /// How many signals found the program there.
    in_vain: u32,
    /// The kernel's number of the timer, plus 1; 0 while there is none.
    timer: u32,
}

/// `struct sigevent` for a signal to one thread.
#[repr(C)]
struct SigEvent {
    value: u64,
    signo: i32,
    notify: i32,
    tid: u32,
    pad: [u32; 11],
}

const _: () = assert!(size_of::<SigEvent>() == 64);

/// An asynchronous signal is delivered where the program is at `pc`.
pub(crate) fn struck(st: &mut ThreadState, info: &SigInfo, pc: u64) {
    let found = pc == st.signals.respite.place && comes_anyway(info);
    let in_vain = &mut st.signals.respite.in_vain;
    *in_vain = in_vain.saturating_add(found.into());
}

/// Does a signal come whether or not this process gets on?
fn comes_anyway(info: &SigInfo) -> bool {
    let sender = info.rest[0] as u32;
    // SAFETY: asks who we are.
    let own = || unsafe { sys::call(nr::GETPID, [0; 6]) } as u32;
    !matches!(info.code, SI_USER | SI_QUEUE | SI_TKILL) || sender != own()
}

/// A handler returns to `pc`: the mask for the kernel until the program is there.
pub(crate) fn mask_after_handler(st: &mut ThreadState, pc: u64) -> u64 {
    st.signals.respite.place = pc;
    let mask = st.signals.mask & !sig::SYNC;
    if st.signals.respite.in_vain < IN_VAIN || st.pend != 0 {
        return mask;
    }
    if waiting() & !mask & !sig::SYNC == 0 {
        st.signals.respite.in_vain = 0;
        return mask;
    }
    if start(st) { !sig::SYNC } else { mask }
}

/// Signals that wait in the kernel.
fn waiting() -> u64 {
    let mut set = 0u64;
    // SAFETY: the kernel writes one word.
    unsafe { sys::call(nr::RT_SIGPENDING, [&raw mut set as u64, 8, 0, 0, 0, 0]) };
    set
}

/// Starts the timer, anew if it runs. It goes on until it has found the program outside the engine.
fn start(st: &mut ThreadState) -> bool {
    const MONOTONIC: u64 = 1;
    const THREAD: i32 = 4;
    if st.signals.respite.timer == 0 {
        let value = st.this as u64;
        let event = SigEvent { value, signo: sig::TRAP as i32, notify: THREAD, tid: st.tid, pad: [0; 11] };
        let mut id = 0u32;
        let at = [MONOTONIC, &raw const event as u64, &raw mut id as u64, 0, 0, 0];
        // SAFETY: the kernel reads one structure and writes one number.
        if sys::failed(unsafe { sys::call(nr::TIMER_CREATE, at) }) {
            return false;
        }
        st.signals.respite.timer = id + 1;
    }
    let times = [0, RESPITE_NS, 0, RESPITE_NS];
    let id = u64::from(st.signals.respite.timer - 1);
    // SAFETY: the kernel reads two times; the timer is ours.
    !sys::failed(unsafe { sys::call(nr::TIMER_SETTIME, [id, 0, times.as_ptr() as u64, 0, 0, 0]) })
}

/// Is this the timer's signal?
pub(crate) fn is_over(st: &ThreadState, s: u32, info: &SigInfo) -> bool {
    s == sig::TRAP && info.code == SI_TIMER && info.rest[1] == st.this as u64
}

/// The time is over for a program that was interrupted outside the engine.
pub(crate) fn end(st: &mut ThreadState, uc: &mut UContext) {
    stop(st);
    if st.pend == 0 {
        uc.mask = st.signals.mask & !sig::SYNC;
    }
}

/// The program is about to wait with a mask of its own. What waits and is open in that mask ends the wait at once; what
/// is not must not end it by way of the timer, and strikes before.
pub(crate) fn before_wait(st: &mut ThreadState, mask: u64) {
    if st.signals.respite.timer != 0 && st.pend == 0 && waiting() & !st.signals.mask & mask != 0 {
        stop(st);
        set_kernel_mask(st.signals.mask);
    }
}

/// Takes the timer away: also before a thread ends, and before it leaves the engine.
pub(crate) fn stop(st: &mut ThreadState) {
    if let Some(id) = core::mem::take(&mut st.signals.respite.timer).checked_sub(1) {
        // SAFETY: our own timer.
        unsafe { sys::call(nr::TIMER_DELETE, [id.into(), 0, 0, 0, 0, 0]) };
        swallow(st);
    }
}

/// The timer's signal may have been sent already, and wait because this runs in the handler of another SIGTRAP: it must
/// not meet the program natively.
fn swallow(st: &ThreadState) {
    let set = sig::bit(sig::TRAP);
    while waiting() & set != 0 {
        let mut info = SigInfo { signo: 0, errno: 0, code: 0, pad: 0, rest: [0; 14] };
        let none = [0u64; 2];
        let at = [&raw const set as u64, &raw mut info as u64, none.as_ptr() as u64, 8, 0, 0];
        // SAFETY: the kernel reads a set and a time and writes one structure.
        let r = unsafe { sys::call(nr::RT_SIGTIMEDWAIT, at) };
        if sys::failed(r) {
            return;
        }
        if !is_over(st, sig::TRAP, &info) {
            raise_again(st, sig::TRAP, &info);
            return;
        }
    }
}

/// In the child of a fork: timers are the parent's.
pub(crate) fn forget(st: &mut ThreadState) {
    st.signals.respite = Respite::default();
}
