//! The system calls about signals, as the program sees them.

use crate::appmem;
use crate::client::Client;
use crate::engine::Engine;
use crate::events::{Events, Thread};
use crate::kernel::*;
use crate::respite;
use crate::signal::{set_kernel_action, set_kernel_mask};
use crate::state::ThreadState;
use crate::sys::errno;
use crate::trampoline;
use core::arch::asm;

impl<C: Client> Engine<C> {
    /// `rt_sigaction`.
    pub(crate) fn sigaction(&mut self, st: &mut ThreadState, a: [u64; 6]) -> i64 {
        let [s, new, old, size, ..] = a;
        if size != 8 || !(1..=64).contains(&s) {
            return -errno::EINVAL;
        }
        let s = s as u32;
        if new != 0 && sig::bit(s) & sig::UNBLOCKABLE != 0 {
            return -errno::EINVAL;
        }
        let wanted = match new {
            0 => None,
            at => match appmem::read::<SigAction>(at) {
                Some(w) => Some(w),
                None => return -errno::EFAULT,
            },
        };
        let before = self.actions(st).0[s as usize];
        if let Some(mut w) = wanted {
            w.mask &= !sig::UNBLOCKABLE;
            let kernel =
                if w.handler <= SIG_IGN && sig::bit(s) & sig::SYNC == 0 { w } else { self.master_action(&w) };
            self.actions(st).0[s as usize] = w;
            set_kernel_action(s, &kernel);
        }
        if old != 0 && !appmem::write(old, &before) {
            return -errno::EFAULT;
        }
        0
    }
}

/// `rt_sigprocmask`.
pub(crate) fn sigprocmask(st: &mut ThreadState, a: [u64; 6]) -> i64 {
    const BLOCK: u64 = 0;
    const UNBLOCK: u64 = 1;
    const SETMASK: u64 = 2;
    let [how, new, old, size, ..] = a;
    if size != 8 {
        return -errno::EINVAL;
    }
    let before = st.signals.mask;
    if new != 0 {
        let Some(set) = appmem::read::<u64>(new) else { return -errno::EFAULT };
        let mask = match how {
            BLOCK => before | set,
            UNBLOCK => before & !set,
            SETMASK => set,
            _ => return -errno::EINVAL,
        };
        st.signals.mask = mask & !sig::UNBLOCKABLE;
        if st.pend == 0 {
            set_kernel_mask(st.signals.mask);
        }
    }
    if old != 0 && !appmem::write(old, &before) {
        return -errno::EFAULT;
    }
    0
}

/// `sigaltstack`.
pub(crate) fn sigaltstack(st: &mut ThreadState, a: [u64; 6]) -> i64 {
    const EPERM: i64 = 1;
    const SIZE_MIN: u64 = 2048;
    let cur = st.signals.altstack;
    let rsp = st.gpr[gpr::RSP];
    let on = cur.flags & SS_DISABLE == 0
        && cur.flags & SS_AUTODISARM == 0
        && rsp > cur.sp
        && rsp - cur.sp <= cur.size;
    let mut report = cur;
    if on {
        report.flags |= SS_ONSTACK;
    }
    if a[0] != 0 {
        let Some(new) = appmem::read::<Stack>(a[0]) else { return -errno::EFAULT };
        if on {
            return -EPERM;
        }
        let mode = new.flags & !SS_AUTODISARM;
        st.signals.altstack = match mode {
            SS_DISABLE => Stack { flags: SS_DISABLE, ..Stack::default() },
            0 | SS_ONSTACK if new.size < SIZE_MIN => return -errno::ENOMEM,
            0 | SS_ONSTACK => Stack { flags: new.flags & SS_AUTODISARM, ..new },
            _ => return -errno::EINVAL,
        };
    }
    if a[1] != 0 && !appmem::write(a[1], &report) {
        return -errno::EFAULT;
    }
    0
}

/// `rt_sigreturn`: goes on at what the program's frame says, through a copy of it on the engine's stack that leads
/// into the cache. Returns only if the frame is unreadable.
pub(crate) fn sigreturn<C: Client>(st: &mut ThreadState) -> i64 {
    let Some(mut uc) = appmem::read::<UContext>(st.gpr[gpr::RSP]) else {
        crate::bug::fatal(b"the program returned from a signal with a bad stack pointer");
    };
    if C::EVENTS != Events::NONE {
        C::signal_return(&mut Thread::new(st, 0), uc.rip, uc.gpr(gpr::RSP));
    }
    let alt = uc.stack;
    if alt.flags & SS_DISABLE != 0 || alt.size >= 2048 {
        st.signals.altstack = Stack { flags: alt.flags & (SS_DISABLE | SS_AUTODISARM), ..alt };
    }
    st.signals.mask = uc.mask & !sig::UNBLOCKABLE;
    uc.mask = respite::mask_after_handler(st, uc.rip);
    uc.stack = Stack {
        sp: st.this as u64 + crate::state::SIGNAL_STACK_OFFSET,
        flags: 0,
        pad: 0,
        size: crate::state::SIGNAL_STACK_BYTES,
    };
    st.signals.stepping = uc.rflags & 0x100 != 0;
    st.signals.step_pc = uc.rip;
    st.spill_t = uc.gpr(gpr::R11);
    st.spill_s = uc.gpr(gpr::RCX);
    uc.set_gpr(gpr::R11, uc.rip);
    uc.rip = trampoline::enter_resume as *const () as u64;
    uc.rflags &= !0x100;
    // SAFETY: the kernel reads the frame from the stack pointer and never comes back here; the target reads r11
    // and the two slots set above. Nothing on this stack is needed any more.
    unsafe { asm!("mov rsp, {}", "mov eax, 15", "syscall", "ud2", in(reg) &raw const uc, options(noreturn)) }
}
