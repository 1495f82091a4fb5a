//! Signals: the master handler, and delivery to the program's handlers.
//!
//! The kernel knows one handler for everything that the program handles, on an alternate stack of the engine. It
//! queues *one* asynchronous signal per thread and blocks the others in the kernel until that one is delivered, so
//! queueing, priorities and `sigpending` stay the kernel's. Delivery happens where the program's state is exact:
//! - at a mapped address of the cache, at once;
//! - elsewhere in the cache, after single-stepping to the next such address;
//! - inside the engine, when it leaves (the pending word is tested there).
//!
//! Delivery writes a genuine frame with the program's registers and pc to the program's stack and redirects the
//! kernel's own frame to the indirect-branch entry with the handler as target: nothing is translated here.
//! `rt_sigreturn` works the other way round. Faults of instructions are delivered at once, or, without a handler,
//! executed again natively, so that the process dies where and how it would have.
//!
//! Signals that strike faster than they can be handled here do not stop the program: `respite.rs`.
//!
//! Where the program has set the alignment check, an access of a client's code that a program's access straddling cells
//! made odd would fault: the rest of that code runs step by step without the check, up to the program's own access.
//!
//! SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP are never blocked in the kernel.

use crate::addrmap::{Mapped, Point};
use crate::appmem;
use crate::client::Client;
use crate::engine::{Engine, Shared};
use crate::events::{Events, SignalEntry, Thread};
use crate::kernel::*;
use crate::state::{self, SIGNAL_STACK_BYTES, SIGNAL_STACK_OFFSET, ThreadState, off};
use crate::sys::{self, nr};
use crate::{bug, handback, respite, returns, trampoline};
use core::arch::naked_asm;
use iced_x86::{Decoder, DecoderOptions};

const TRAP_FLAG: u64 = 0x100;
const ALIGNMENT_CHECK: u64 = 0x4_0000;
const TRAP_TRACE: i32 = 2;
const SI_TKILL: i32 = -6;
const HANDLER_CLEARS: u64 = 0x400 | TRAP_FLAG | 0x1_0000;

/// A thread's signal state.
#[repr(C)]
pub struct ThreadSignals {
    /// The mask that the program believes in.
    pub mask: u64,
    /// Its alternate stack.
    pub altstack: Stack,
    /// A signal that waits for delivery, 0 for none.
    pub queued: u32,
    /// The signal interrupted a call with a mask of its own.
    pub waited: bool,
    /// Leave the current block at the next point: its code has changed.
    pub leave_block: bool,
    /// The program single-steps itself with the trap flag.
    pub stepping: bool,
    /// The instruction that it is at.
    pub step_pc: u64,
    /// This is a vfork child, whose handlers are its own although its memory is not.
    pub vfork_child: bool,
    /// What is known about the queued signal.
    pub info: SigInfo,
    /// Mask of a system call that waits with a mask of its own.
    pub wait_mask: u64,
    /// Cache address behind that call, 0 when none is being made.
    pub wait_site: u64,
    /// The program's alignment check is off until the next point.
    pub unaligned: bool,
    /// Time for the program between signals.
    pub respite: respite::Respite,
    /// A vfork child's own handlers.
    pub own_actions: *mut Actions,
}

/// The program's handlers, by signal number.
#[derive(Clone, Copy)]
pub struct Actions(pub [SigAction; 65]);

impl Default for Actions {
    fn default() -> Self {
        Actions([SigAction::default(); 65])
    }
}

unsafe extern "C" {
    static farsight_leave_check: u8;
    static farsight_leave_pending: u8;
    static farsight_leave_end: u8;
}

#[unsafe(naked)]
extern "C" fn restorer() {
    naked_asm!("mov eax, 15", "syscall")
}

/// Sets the kernel's action for a signal.
pub(crate) fn set_kernel_action(s: u32, a: &SigAction) -> i64 {
    // SAFETY: the kernel reads one structure.
    unsafe { sys::call(nr::RT_SIGACTION, [s.into(), core::ptr::from_ref(a) as u64, 0, 8, 0, 0]) }
}

/// Sets the kernel's mask for this thread.
pub(crate) fn set_kernel_mask(mask: u64) {
    let m = mask & !sig::SYNC & !sig::UNBLOCKABLE;
    // SAFETY: the kernel reads one word.
    unsafe { sys::call(nr::RT_SIGPROCMASK, [2, &raw const m as u64, 0, 8, 0, 0]) };
}

/// Blocks everything and returns nothing: used around thread creation and exit.
pub(crate) fn block_all() {
    let m = u64::MAX;
    // SAFETY: the kernel reads one word.
    unsafe { sys::call(nr::RT_SIGPROCMASK, [2, &raw const m as u64, 0, 8, 0, 0]) };
}

/// Tells the kernel about this thread's engine signal stack.
pub(crate) fn set_engine_altstack(st: &ThreadState) {
    let s = engine_stack(st);
    // SAFETY: the kernel reads one structure; the stack lies in this thread's slab.
    unsafe { sys::call(nr::SIGALTSTACK, [&raw const s as u64, 0, 0, 0, 0, 0]) };
}

fn engine_stack(st: &ThreadState) -> Stack {
    Stack { sp: st.this as u64 + SIGNAL_STACK_OFFSET, flags: 0, pad: 0, size: SIGNAL_STACK_BYTES }
}

impl<C: Client> Engine<C> {
    /// First thread: read what was inherited, take the synchronous signals over.
    pub(crate) fn start_signals(&mut self, st: &mut ThreadState) {
        let mut mask = 0u64;
        // SAFETY: the kernel writes one word, and one structure each.
        unsafe {
            sys::call(nr::RT_SIGPROCMASK, [0, 0, &raw mut mask as u64, 8, 0, 0]);
            for s in 1..65 {
                let a = &raw mut self.signals.0[s as usize];
                sys::call(nr::RT_SIGACTION, [s, 0, a as u64, 8, 0, 0]);
            }
        }
        st.signals.mask = mask;
        st.signals.altstack.flags = SS_DISABLE;
        set_engine_altstack(st);
        self.take_sync_signals();
        set_kernel_mask(mask);
    }

    pub(crate) fn take_sync_signals(&self) {
        for s in (1..32u32).filter(|s| sig::SYNC & sig::bit(*s) != 0) {
            set_kernel_action(s, &self.master_action(&self.signals.0[s as usize]));
        }
    }

    /// What the kernel is told for a signal that the program handles.
    pub(crate) fn master_action(&self, app: &SigAction) -> SigAction {
        // Signals of our own must not show where the program handles none (see `respite.rs`, `handback.rs`).
        let own = if app.handler <= SIG_IGN { sa::RESTART } else { 0 };
        SigAction {
            handler: enter_master as *const () as u64,
            flags: sa::SIGINFO | sa::ONSTACK | sa::RESTORER | own | app.flags & sa::KERNEL,
            restorer: restorer as *const () as u64,
            mask: !sig::SYNC,
        }
    }

    /// The handlers that count for this thread.
    pub(crate) fn actions(&mut self, st: &ThreadState) -> &mut Actions {
        if st.signals.own_actions.is_null() {
            &mut self.signals
        } else {
            // SAFETY: a vfork child's table, which lives until its parent goes on.
            unsafe { &mut *st.signals.own_actions }
        }
    }

    /// What the cache address `at` means.
    pub(crate) fn mapped(&self, at: u64) -> Option<(u32, Mapped)> {
        let id = self.cache.block_at(at)?;
        let b = &self.blocks.list[id as usize];
        let hot = (b.base..=b.hot_end).contains(&at);
        let known = hot.then(|| self.maps.walk(b.map, b.pc).find(|(o, _)| *o == at - b.base)).flatten();
        // Where a block is entered that lends registers, nothing has been lent yet. That place may lie in the cold
        // stream, which has no map.
        // (Behind an entrance, a call is still to be noted.)
        let entered = || (at == b.entry && !self.maps.is_empty(b.map)).then(|| Mapped::entry(b.pc));
        known.map(|(_, m)| m).or_else(entered).map(|m| (id, m))
    }

    /// Jumping to `pc` faults: queue a SIGSEGV and let `leave` deliver it there.
    pub(crate) fn raise_fetch_fault(&mut self, st: &mut ThreadState, pc: u64, at: u64) {
        const MAPERR: i32 = 1;
        const ACCERR: i32 = 2;
        let code = if self.regions.get(at).is_some() { ACCERR } else { MAPERR };
        let mut rest = [0; 14];
        rest[0] = at;
        st.signals.queued = sig::SEGV;
        st.signals.info = SigInfo { signo: sig::SEGV as i32, errno: 0, code, pad: 0, rest };
        st.pend = 1;
        st.resume = 0;
        st.target = pc;
    }

    /// Control leaves block `id` at `m`: the client's counts must say so.
    pub(crate) fn cut(&mut self, st: &ThreadState, id: u32, m: &Mapped, rcx: u64) {
        if !self.counting {
            return;
        }
        let b = self.blocks.list[id as usize];
        let done = if m.point == Point::After { m.index + 1 } else { m.index };
        let mut sb = core::mem::take(&mut self.sb);
        let max = if self.single_step() { 1 } else { crate::superblock::INSNS_MAX };
        self.decode(&mut sb, b.pc, max);
        let past = m.index > b.bump.into() || m.index == usize::from(b.bump) && m.point != Point::Before;
        let counted = past.then_some(sb.insns.len());
        self.client.path_cut(st.this as u64, &sb, done, counted);
        if let Some(i) = sb.insns.get(m.index)
            && m.point == Point::Copy
            && (i.ins.has_rep_prefix() || i.ins.has_repne_prefix())
            && let Some(c) = self.client.string_counters(i)
        {
            for disp in c.each() {
                let at = (st.this as u64).wrapping_add(disp as u64) as *mut u64;
                // SAFETY: a counter in this thread's slab; the thread is here.
                unsafe { *at = (*at).wrapping_sub(rcx) };
            }
        }
        self.sb = sb;
    }

    /// Puts the program's registers into `uc`, which was interrupted at a mapped address.
    fn recover(&self, st: &ThreadState, id: u32, m: &Mapped, uc: &mut UContext) {
        match m.point {
            Point::Spilled => uc.set_gpr(gpr::R11, st.spill_t),
            Point::Borrowed => uc.set_gpr(m.reg.into(), st.spill_x),
            Point::Before | Point::Copy | Point::After | Point::SyscallWindow | Point::Jump => {}
        }
        if m.point == Point::After {
            uc.set_gpr(gpr::RCX, m.pc);
        }
        if m.borrowed {
            let lent = self.blocks.list[id as usize].borrowed;
            for r in (0..16).filter(|r| lent >> r & 1 != 0) {
                uc.set_gpr(r, st.borrow[r]);
            }
        }
        uc.rip = m.pc;
    }

    /// Delivers the queued signal. `uc` holds the program's registers and pc.
    fn deliver(&mut self, st: &mut ThreadState, uc: &mut UContext) {
        let s = st.signals.queued;
        let info = st.signals.info;
        let pc = uc.rip;
        st.signals.queued = 0;
        st.pend = 0;
        let mask = st.signals.mask;
        let action = self.actions(st).0[s as usize];
        let forced = info.code > 0 && sig::SYNC & sig::bit(s) != 0;
        if !forced {
            respite::struck(st, &info, pc);
        }
        let dies =
            action.handler == SIG_DFL || forced && (action.handler == SIG_IGN || mask & sig::bit(s) != 0);
        if dies {
            set_kernel_action(s, &SigAction::default());
            uc.mask = mask & !sig::bit(s);
            if forced && s != sig::TRAP {
                // Natively, at the program's own address: the same fault, the same core. `uc` holds all of it.
                uc.stack = st.signals.altstack;
                return;
            }
            raise_again(st, s, &info);
            self.resume_at(st, uc, pc);
            return;
        }
        if action.handler == SIG_IGN {
            uc.mask = mask & !sig::SYNC;
            self.resume_at(st, uc, pc);
            return;
        }
        if !self.push_frame(st, uc, &action, &info) {
            // As the kernel does when a frame cannot be written.
            set_kernel_action(sig::SEGV, &SigAction::default());
            raise_again(st, sig::SEGV, &info);
            uc.mask = 0;
            return;
        }
        if action.flags & sa::RESETHAND != 0 {
            self.actions(st).0[s as usize] = SigAction::default();
            if sig::SYNC & sig::bit(s) == 0 {
                set_kernel_action(s, &SigAction::default());
            }
        }
        if C::EVENTS != Events::NONE {
            let entry =
                SignalEntry { signal: s, handler: action.handler, interrupted: pc, sp: uc.gpr(gpr::RSP) };
            for n in 0..16 {
                st.gpr[n] = uc.gpr(n);
            }
            C::signal_enter(&mut Thread::new(st, 0), &entry);
        }
        let own = if action.flags & sa::NODEFER != 0 { 0 } else { sig::bit(s) };
        let base = if core::mem::take(&mut st.signals.waited) { st.signals.wait_mask } else { mask };
        st.signals.mask = (base | action.mask | own) & !sig::UNBLOCKABLE;
        uc.mask = st.signals.mask & !sig::SYNC;
        uc.rflags &= !HANDLER_CLEARS;
        self.resume_at(st, uc, action.handler);
    }

    /// Makes the kernel's frame go on in the cache at the program address `pc`, with `uc`'s registers.
    fn resume_at(&self, st: &mut ThreadState, uc: &mut UContext, pc: u64) {
        st.spill_t = uc.gpr(gpr::R11);
        st.spill_s = uc.gpr(gpr::RCX);
        uc.set_gpr(gpr::R11, pc);
        uc.rip = trampoline::enter_resume as *const () as u64;
        uc.rflags &= !TRAP_FLAG;
        uc.stack = engine_stack(st);
    }

    /// Writes the program's signal frame and points `uc` at it. False if the stack cannot take it.
    fn push_frame(
        &mut self,
        st: &mut ThreadState,
        uc: &mut UContext,
        action: &SigAction,
        info: &SigInfo,
    ) -> bool {
        const RED_ZONE: u64 = 128;
        let alt = st.signals.altstack;
        let rsp = uc.gpr(gpr::RSP);
        let on_alt = alt.flags & SS_DISABLE == 0 && rsp.wrapping_sub(alt.sp) <= alt.size && rsp > alt.sp;
        let use_alt = action.flags & sa::ONSTACK != 0 && alt.flags & SS_DISABLE == 0 && !on_alt;
        let mut sp = if use_alt { alt.sp + alt.size } else { rsp.wrapping_sub(RED_ZONE) };
        // SAFETY: `uc` is a copy of, or is, the kernel's frame.
        let fp_bytes = unsafe { uc.fpstate_bytes() };
        let mut frame = Frame { restorer: action.restorer, uc: *uc, info: *info };
        if fp_bytes != 0 {
            sp = sp.wrapping_sub(fp_bytes as u64) & !63;
            // SAFETY: the kernel's state is readable for its own length.
            if !unsafe { appmem::write_bytes(sp, uc.fpstate, fp_bytes) } {
                return false;
            }
            frame.uc.fpstate = sp;
        }
        sp = (sp.wrapping_sub(size_of::<Frame>() as u64) & !15).wrapping_sub(8);
        if use_alt && sp < alt.sp {
            return false;
        }
        frame.uc.link = 0;
        frame.uc.stack = alt;
        if alt.flags & SS_AUTODISARM != 0 && use_alt {
            st.signals.altstack = Stack { flags: SS_DISABLE, ..Stack::default() };
        }
        frame.uc.mask = st.signals.mask;
        if !core::mem::take(&mut st.signals.stepping) {
            frame.uc.rflags &= !TRAP_FLAG;
        }
        if !appmem::write(sp, &frame) {
            return false;
        }
        uc.set_gpr(gpr::RSP, sp);
        uc.set_gpr(gpr::RDI, info.signo as u64);
        uc.set_gpr(gpr::RSI, sp + core::mem::offset_of!(Frame, info) as u64);
        uc.set_gpr(gpr::RDX, sp + core::mem::offset_of!(Frame, uc) as u64);
        uc.set_gpr(gpr::RAX, 0);
        true
    }

    /// The engine was left (or is being left) with a signal pending: the truth is in the state.
    fn deliver_leaving(&mut self, st: &mut ThreadState, uc: &mut UContext) {
        for n in 0..16 {
            uc.set_gpr(n, st.gpr[n]);
        }
        uc.rflags = st.rflags;
        let pc = if st.resume == 0 {
            st.target
        } else {
            match self.mapped(st.resume) {
                Some((id, m)) if !m.borrowed && !m.noted => {
                    self.cut(st, id, &m, st.gpr[gpr::RCX]);
                    m.pc
                }
                _ if C::EVENTS.inline() => {
                    // In the middle or at the end of instrumentation: step on from there.
                    uc.rip = st.resume;
                    uc.rflags |= TRAP_FLAG;
                    return;
                }
                _ => bug::report(b"a signal found no program address", 0, st.resume),
            }
        };
        uc.rip = pc;
        if st.leaving.called {
            self.park(st, uc);
        } else {
            self.deliver(st, uc);
        }
    }

    /// Is the instruction at a mapped address a repeated string instruction? It may take long: signals do not wait
    /// for its end.
    fn is_repeated(&self, m: &Mapped) -> bool {
        // SAFETY: the engine lock is held; the bytes are dropped at once.
        let code = unsafe { self.regions.code(m.pc, 15) };
        let ins = Decoder::with_ip(64, code, m.pc, DecoderOptions::NONE).decode();
        ins.is_string_instruction() && (ins.has_rep_prefix() || ins.has_repne_prefix())
    }

    /// A system call from the cache has returned with a signal waiting: the client hears of the call first.
    fn syscall_returned(&self, st: &mut ThreadState, m: &Mapped, uc: &UContext) {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        if !self.events().syscalls || m.point != Point::After {
            return;
        }
        // SAFETY: inside the cache, behind an emitted instruction.
        let before = unsafe { ((uc.rip - 2) as *const [u8; 2]).read_unaligned() };
        if before == SYSCALL {
            for n in 0..16 {
                st.gpr[n] = uc.gpr(n);
            }
            crate::syscall::tell_after::<C>(st);
        }
    }

    /// A signal that arrived (or a step that ended) in the cache at `uc.rip`: deliver here, or step on.
    fn deliver_in_cache(&mut self, st: &mut ThreadState, uc: &mut UContext) {
        // Interrupted in sigsuspend and the like: the handler runs under the call's mask.
        let waited = st.signals.wait_site == uc.rip && uc.gpr(gpr::RAX) as i64 == -crate::sys::errno::EINTR;
        st.signals.waited = waited;
        match self.mapped(uc.rip) {
            // Behind the noting of the instruction's events: it must be executed first, or they would be noted twice.
            Some((id, m)) if !m.noted || !st.signals.leave_block && self.is_repeated(&m) => {
                self.syscall_returned(st, &m, uc);
                self.cut(st, id, &m, uc.gpr(gpr::RCX));
                self.recover(st, id, &m, uc);
                if st.leaving.called {
                    self.park(st, uc);
                } else if st.signals.queued != 0 {
                    st.signals.leave_block = false;
                    self.deliver(st, uc);
                } else {
                    st.signals.leave_block = false;
                    let pc = uc.rip;
                    uc.mask = st.signals.mask & !sig::SYNC;
                    self.resume_at(st, uc, pc);
                }
            }
            _ => uc.rflags |= TRAP_FLAG,
        }
    }

    /// The program's own trap flag: one SIGTRAP for each of its instructions, whatever they became here.
    fn stepped(&mut self, st: &mut ThreadState, info: &SigInfo, uc: &mut UContext) {
        let Some((id, m)) = self.mapped(uc.rip).filter(|(_, m)| !m.noted) else {
            // In the middle of an instruction's code. (It may have cleared the flag: natively there is one more trap.)
            st.signals.stepping |= uc.rflags & TRAP_FLAG != 0;
            uc.rflags |= TRAP_FLAG;
            return;
        };
        if !core::mem::replace(&mut st.signals.stepping, true) && self.follows_popf(id, m.index) {
            // The flag was set by the instruction before: the next one is still to be executed.
            st.signals.step_pc = m.pc;
        }
        if m.pc == st.signals.step_pc {
            uc.rflags |= TRAP_FLAG;
            return;
        }
        self.cut(st, id, &m, uc.gpr(gpr::RCX));
        self.recover(st, id, &m, uc);
        st.signals.queued = sig::TRAP;
        st.signals.info = *info;
        st.signals.info.rest[0] = m.pc;
        st.signals.step_pc = 0;
        self.deliver(st, uc);
    }

    /// Is the instruction before number `index` of a block a `popf`?
    fn follows_popf(&self, id: u32, index: usize) -> bool {
        const POPF: u8 = 0x9d;
        let b = &self.blocks.list[id as usize];
        let before = index.checked_sub(1).and_then(|i| self.maps.instructions(b.map, b.pc).nth(i));
        // SAFETY: the engine lock is held; the bytes are dropped at once.
        before.is_some_and(|(at, len)| unsafe { self.regions.code(at, len) }.last() == Some(&POPF))
    }

    /// Was the fault a store to a page that is only protected because code was translated from it? Then the store is
    /// tried again; afterwards its block, perhaps stale now, is left.
    fn stored_to_code(&mut self, st: &mut ThreadState, s: u32, uc: &mut UContext) -> bool {
        const WRITE: u64 = 2;
        let stored = s == sig::SEGV && uc.err & WRITE != 0 && self.code_written(uc.cr2);
        if stored {
            st.signals.leave_block = true;
            uc.rflags |= TRAP_FLAG;
        }
        stored
    }

    /// A fault of an instruction in the cache.
    fn fault(&mut self, st: &mut ThreadState, s: u32, info: &SigInfo, uc: &mut UContext) {
        let Some((id, m)) = self.mapped(uc.rip) else {
            if s == sig::BUS && C::EVENTS.inline() && uc.rflags & ALIGNMENT_CHECK != 0 {
                st.signals.unaligned = true;
                uc.rflags = uc.rflags & !ALIGNMENT_CHECK | TRAP_FLAG;
                return;
            }
            bug::report(b"a fault at an unmapped place in the cache", uc.cr2, uc.rip);
        };
        let (at, rcx) = (uc.rip, uc.gpr(gpr::RCX));
        self.cut(st, id, &m, rcx);
        self.recover(st, id, &m, uc);
        let mut info = *info;
        // Where the faulting address is the instruction's own.
        if matches!(s, sig::ILL | sig::FPE) || s == sig::TRAP && info.rest[0] == at {
            info.rest[0] = uc.rip;
        }
        st.signals.queued = s;
        st.signals.info = info;
        st.signals.leave_block = false;
        self.deliver(st, uc);
    }
}

impl<C: Client> Engine<C> {
    /// A step without the program's alignment check has ended: the check comes back where its own instruction is next.
    fn realign(&mut self, st: &mut ThreadState, uc: &mut UContext) {
        if self.mapped(uc.rip).is_none() {
            uc.rflags |= TRAP_FLAG;
            return;
        }
        st.signals.unaligned = false;
        uc.rflags |= ALIGNMENT_CHECK;
        if !st.signals.stepping {
            uc.rflags &= !TRAP_FLAG;
        }
        if st.signals.queued != 0 || st.leaving.called {
            self.deliver_in_cache(st, uc);
        }
    }
}

/// Sends a signal to this thread again, with what was known about it.
pub(crate) fn raise_again(st: &ThreadState, s: u32, info: &SigInfo) {
    // SAFETY: sends a signal to this very thread; the kernel reads one structure.
    unsafe {
        let pid = sys::call(nr::GETPID, [0; 6]) as u64;
        let at = core::ptr::from_ref(info) as u64;
        let r = sys::call(nr::RT_TGSIGQUEUEINFO, [pid, st.tid.into(), s.into(), at, 0, 0]);
        if sys::failed(r) {
            sys::call(nr::TGKILL, [pid, st.tid.into(), s.into(), 0, 0, 0]);
        }
    }
}

/// What the kernel calls: a program that asks for alignment checks must not spread them to the handler.
#[unsafe(naked)]
extern "C" fn enter_master() {
    naked_asm!("pushfq", "and dword ptr [rsp], ~0x40000", "popfq", "jmp gs:[{}]", const off::MASTER)
}

/// The handler of all signals.
pub(crate) unsafe extern "C" fn master<C: Client>(s: i32, info: *mut SigInfo, uc: *mut UContext) {
    let s = s as u32;
    // SAFETY: gs points at this thread's state whenever signals are not all blocked, and the kernel passes a frame
    // that is ours until we return.
    let (st, info, uc) = unsafe { (&mut *state::current(), &*info, &mut *uc) };
    // SAFETY: set once at start to a leaked allocation of this type.
    let shared = unsafe { &*(st.engine as *const Shared<C>) };
    let pc = uc.rip;
    let in_engine = pc.wrapping_sub(shared.image.0) < shared.image.1 - shared.image.0;
    let sync = sig::SYNC & sig::bit(s) != 0 && info.code > 0;
    if sync && in_engine {
        engine_fault(shared, st, s, info, uc);
    } else if sync {
        let waits = st.signals.queued != 0 || st.signals.leave_block || st.leaving.called;
        if s == sig::TRAP && st.signals.unaligned && uc.rflags & TRAP_FLAG != 0 {
            shared.lock.lock().as_of(st.generation, |e| e.realign(st, uc));
        } else if s == sig::TRAP && waits && uc.rflags & TRAP_FLAG != 0 {
            uc.rflags &= !TRAP_FLAG;
            shared.lock.lock().as_of(st.generation, |e| e.deliver_in_cache(st, uc));
        } else if s == sig::TRAP && info.code == TRAP_TRACE {
            shared.lock.lock().as_of(st.generation, |e| e.stepped(st, info, uc));
        } else if pc == 0 && s == sig::SEGV {
            // A return whose slot in the return cache is zero.
            returns::make_empty(st, uc.gpr(gpr::RSP));
            uc.rip = st.return_fill;
        } else {
            let mut e = shared.lock.lock();
            if !e.stored_to_code(st, s, uc) {
                e.as_of(st.generation, |e| e.fault(st, s, info, uc));
            }
        }
    } else if s == sig::TRAP && info.code == SI_TKILL && handback::is_gathering() {
        st.leaving.called = true;
        pend(shared, st, uc, in_engine);
    } else if respite::is_over(st, s, info) {
        // (Inside the engine it is not the time for it: it comes again.)
        if !in_engine {
            respite::end(st, uc);
            if st.pend != 0 {
                shared.lock.lock().as_of(st.generation, |e| e.deliver_in_cache(st, uc));
            }
        }
    } else if st.signals.queued != 0 {
        // A second one got past the mask: the program's mask was restored just after the first was queued, or it is
        // one of the synchronous signals, sent by a process. The kernel keeps it for us, blocked this time.
        raise_again(st, s, info);
        uc.mask = !sig::SYNC;
    } else {
        st.signals.queued = s;
        st.signals.info = *info;
        pend(shared, st, uc, in_engine);
    }
    if st.leaving.parked {
        handback::leave(shared, st);
    }
}

/// Something waits for this thread: it gets it here if its state is the program's, or where it next leaves the engine.
fn pend<C: Client>(shared: &Shared<C>, st: &mut ThreadState, uc: &mut UContext, in_engine: bool) {
    st.pend = 1;
    uc.mask = !sig::SYNC;
    if !in_engine {
        shared.lock.lock().as_of(st.generation, |e| e.deliver_in_cache(st, uc));
    } else if leaving(uc.rip) {
        shared.lock.lock().as_of(st.generation, |e| e.deliver_leaving(st, uc));
    }
}

/// Is this where the engine has been left but for the registers, which are in the state?
fn leaving(pc: u64) -> bool {
    let start = (&raw const farsight_leave_check) as u64;
    let end = (&raw const farsight_leave_end) as u64;
    (start..end).contains(&pc)
}

/// A synchronous signal inside the engine.
fn engine_fault<C: Client>(
    shared: &Shared<C>,
    st: &mut ThreadState,
    s: u32,
    info: &SigInfo,
    uc: &mut UContext,
) {
    let pending = (&raw const farsight_leave_pending) as u64 + 1;
    if s == sig::TRAP && uc.rip == pending {
        let mut e = shared.lock.lock();
        if st.signals.queued != 0 || st.leaving.called {
            e.as_of(st.generation, |e| e.deliver_leaving(st, uc));
        } else {
            st.pend = 0;
        }
        return;
    }
    if s == sig::TRAP && uc.rflags & TRAP_FLAG != 0 {
        if (st.signals.stepping || st.signals.unaligned) && st.signals.queued == 0 && !st.leaving.called {
            return;
        }
        // Single-stepped into the engine: it will look at the pending word when it leaves.
        uc.rflags &= !TRAP_FLAG;
        st.signals.leave_block = false;
        return;
    }
    if let Some(to) = appmem::fixup(uc.rip) {
        uc.rip = to;
        return;
    }
    let (address, at) = (info.rest[0], uc.rip.wrapping_sub(shared.image.0));
    if st.back == 0 {
        bug::report(b"a fault in the engine", address, at);
    }
    // The program stands before a known instruction with all its registers saved.
    bug::survived(b"a fault in the engine", address, at);
    st.target = core::mem::take(&mut st.back);
    uc.set_gpr(gpr::RSP, st.engine_sp);
    uc.set_gpr(gpr::RDI, st.this as u64);
    uc.set_gpr(gpr::RDX, handback::after_bug::<C> as *const () as u64);
    uc.rip = trampoline::call_and_leave as *const () as u64;
    uc.rflags &= !(TRAP_FLAG | 0x400);
}
