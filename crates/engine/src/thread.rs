//! Threads: their slabs, and how they start and end.

use crate::bug::Line;
use crate::client::{Client, SlabLayout};
use crate::engine::{Engine, Shared, entry};
use crate::events::Events;
use crate::follow::Follow;
use crate::generation::forget_returns;
use crate::kernel::{SS_DISABLE, sig};
use crate::state::{CLIENT_AREA_BYTES, CLIENT_AREA_OFFSET, ENGINE_STACK_TOP, ThreadState, off};
use crate::sys::{self, mm, nr};
use crate::{appmem, heap, respite, signal, trampoline};
use alloc::boxed::Box;
use alloc::vec::Vec;
use wire::slab;

/// Which slabs are in use.
pub struct Slabs {
    layout: SlabLayout,
    /// Slabs that were ever taken.
    pub taken: u64,
    free: Vec<u32>,
}

impl Slabs {
    /// None taken yet.
    pub fn new(layout: SlabLayout) -> Slabs {
        Slabs { layout, taken: 0, free: Vec::new() }
    }

    /// Address of a slab.
    pub fn address(&self, slab: u32) -> u64 {
        self.layout.base + u64::from(slab) * self.layout.stride
    }

    fn take(&mut self) -> Option<(u32, bool)> {
        if let Some(s) = self.free.pop() {
            return Some((s, false));
        }
        if self.taken >= self.layout.count {
            return None;
        }
        self.taken += 1;
        Some((self.taken as u32 - 1, true))
    }

    /// The slabs in use.
    pub fn in_use(&self) -> impl Iterator<Item = u32> {
        (0..self.taken as u32).filter(|s| !self.free.contains(s))
    }

    /// Slabs in use.
    pub fn live(&self) -> u64 {
        self.taken - self.free.len() as u64
    }

    /// In the child of a fork: all slabs but this one are free.
    pub fn keep_only(&mut self, slab: u32) {
        self.free = (0..self.taken as u32).rev().filter(|s| *s != slab).collect();
    }

    /// Gives a slab back.
    pub fn give(&mut self, slab: u32) {
        self.free.push(slab);
    }
}

impl<C: Client> Engine<C> {
    /// A state for a new thread, complete but for registers and signals. It starts in the generation of the cache that
    /// its parent is in. `None`: too many threads, or no memory.
    pub(crate) fn new_thread(
        &mut self,
        shared: usize,
        parent: Option<&ThreadState>,
    ) -> Option<&'static mut ThreadState> {
        let (slab, fresh) = self.slabs.take()?;
        let at = self.slabs.address(slab);
        if fresh {
            sys::map_anonymous(at, slab::PRIVATE_BYTES, mm::RW, mm::MAP_FIXED)?;
        }
        let state = at as *mut ThreadState;
        let (generation, return_miss, return_fill) = parent
            .map_or((self.generation, self.return_miss, self.return_fill), |p| {
                (p.generation, p.return_miss, p.return_fill)
            });
        // SAFETY: the state of a thread that has left it, or zeroes.
        if !fresh && unsafe { (*state).generation } != generation {
            forget_returns(at);
        }
        // SAFETY: the slab's private part was mapped above or by an earlier thread that has left it; zeroes are a
        // valid state, and nobody else uses the slab.
        let st = unsafe {
            core::ptr::write_bytes(state, 0, 1);
            let area = (at + CLIENT_AREA_OFFSET) as *mut u8;
            if !fresh && C::EVENTS != Events::NONE {
                core::ptr::write_bytes(area, 0, CLIENT_AREA_BYTES as usize);
            }
            &mut *state
        };
        st.this = state;
        st.engine_sp = at + ENGINE_STACK_TOP - 64;
        st.entry = entry::<C> as *const () as usize;
        st.enter_exit = trampoline::enter_exit as *const () as usize;
        st.enter_indirect = trampoline::enter_indirect as *const () as usize;
        st.enter_syscall = trampoline::enter_syscall as *const () as usize;
        st.enter_client = trampoline::enter_client as *const () as usize;
        let cached = if C::SHARED_RETURNS { trampoline::enter_cached_lent } else { trampoline::enter_cached };
        st.enter_cached = cached as *const () as usize;
        st.enter_efault = trampoline::enter_efault as *const () as usize;
        st.master = signal::master::<C> as *const () as usize;
        st.return_miss = return_miss;
        st.return_fill = return_fill;
        st.generation = generation;
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

const VM: u64 = 0x100;
const VFORK: u64 = 0x4000;
const CLEAR_SIGHAND: u64 = 1 << 32;

/// `clone`, `clone3`, `fork`, `vfork`. `next` is the program address after the call.
pub(crate) fn clone<C: Client>(
    shared: &'static Shared<C>,
    st: &mut ThreadState,
    n: u64,
    a: [u64; 6],
    next: u64,
) -> i64 {
    let (flags, stack) = match n {
        nr::FORK => (0, 0),
        nr::VFORK => (VM | VFORK, 0),
        nr::CLONE => (a[0], a[1]),
        _ => match (appmem::read::<[u64; 7]>(a[0]), a[1] >= 64) {
            (Some(c), true) => (c[0], if c[5] == 0 { 0 } else { c[5].wrapping_add(c[6]) }),
            // SAFETY: the program's own call, which the kernel refuses.
            _ => return unsafe { sys::call(n, a) },
        },
    };
    if flags & VM == 0 {
        return fork(shared, st, n, a, Child { flags, stack, next });
    }
    let vfork = flags & VFORK != 0;
    signal::block_all();
    let child = shared.lock.lock().new_thread(st.engine, Some(st));
    let Some(child) = child else {
        signal::set_kernel_mask(st.signals.mask);
        Line::new()
            .text(b"farsight: the program asks for more threads at once than this mode has room for")
            .print();
        return -11; // EAGAIN, as when the kernel has no room for another thread
    };
    child.gpr = st.gpr;
    child.gpr[0] = 0;
    if stack != 0 {
        child.gpr[4] = stack;
    }
    child.rflags = st.rflags;
    child.resume = st.resume;
    child.xmm.0 = st.xmm.0;
    child.signals.mask = st.signals.mask;
    child.signals.altstack.flags = SS_DISABLE;
    let own = vfork || flags & 0x800 == 0;
    if own {
        let mut table = *shared.lock.lock().actions(st);
        if flags & CLEAR_SIGHAND != 0 {
            table.0.iter_mut().filter(|t| t.handler > 1).for_each(|t| *t = Default::default());
        }
        child.signals.own_actions = Box::leak(Box::new(table));
        child.signals.vfork_child = true;
        child.signals.altstack = st.signals.altstack;
    }
    let child: *mut ThreadState = child;
    // SAFETY: the program's own call. The child never touches this stack: it takes its own before anything else.
    let r = unsafe { clone_call(n, a.as_ptr(), child) };
    if sys::failed(r) || vfork {
        let mut e = shared.lock.lock();
        // SAFETY: there is no child, or it has exec'd or ended: nobody uses its state.
        let c = unsafe { &mut *child };
        if !c.signals.own_actions.is_null() {
            // SAFETY: leaked above, for this child alone.
            drop(unsafe { Box::from_raw(c.signals.own_actions) });
        }
        e.client.thread_end(child as u64, 0);
        e.slabs.give(c.slab);
    }
    signal::set_kernel_mask(st.signals.mask);
    r
}

/// Makes a clone call; the child goes to its state and reports to the engine.
#[unsafe(naked)]
unsafe extern "C" fn clone_call(n: u64, args: *const u64, child: *mut ThreadState) -> i64 {
    core::arch::naked_asm!(
        "push rbx",
        "mov rbx, rdx",
        "mov rax, rdi",
        "mov rdi, [rsi]",
        "mov rdx, [rsi+16]",
        "mov r10, [rsi+24]",
        "mov r8, [rsi+32]",
        "mov r9, [rsi+40]",
        "mov rsi, [rsi+8]",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "pop rbx",
        "ret",
        "2:",
        "wrgsbase rbx",
        "mov rsp, [rbx + {sp}]",
        "mov rdi, rbx",
        "mov esi, 5",
        "call [rbx + {entry}]",
        "jmp {leave}",
        sp = const off::ENGINE_SP,
        entry = const off::ENTRY,
        leave = sym trampoline::leave,
    )
}

/// A new thread's first steps in the engine.
pub(crate) fn started<C: Client>(shared: &Shared<C>, st: &mut ThreadState) {
    st.tid = sys::gettid();
    signal::set_engine_altstack(st);
    let counts = !st.signals.vfork_child;
    shared.lock.lock().client.thread_start(st.this as u64, st.tid, counts);
    signal::set_kernel_mask(st.signals.mask);
}

/// What a fork asks for.
struct Child {
    flags: u64,
    stack: u64,
    /// Program address after the call.
    next: u64,
}

/// A fork: the child has its own copy of everything, and goes on natively unless it is followed.
fn fork<C: Client>(shared: &Shared<C>, st: &mut ThreadState, n: u64, a: [u64; 6], child: Child) -> i64 {
    const NEW_PIDS: u64 = 0x2000_0000;
    signal::block_all();
    let mut e = shared.lock.lock();
    let still = heap::hold_still();
    // SAFETY: the program's own call; the locks are held, so that the child's copy is whole.
    let r = unsafe { sys::call(n, a) };
    drop(still);
    if r != 0 {
        drop(e);
        signal::set_kernel_mask(st.signals.mask);
        return r;
    }
    if child.stack != 0 {
        st.gpr[4] = child.stack;
    }
    // A signal that was queued meanwhile is the parent's, and so is a timer.
    respite::forget(st);
    st.signals.queued = 0;
    st.pend = 0;
    st.tid = sys::gettid();
    // (Where process ids are others, the launcher could not find the child.)
    if child.flags & NEW_PIDS == 0 && e.follow_fork(st) {
        drop(e);
        signal::set_kernel_mask(st.signals.mask);
        return 0;
    }
    e.detach(st);
    st.resume = child.next;
    drop(e);
    0
}

impl<C: Client> Engine<C> {
    /// Gives the process back to itself: handlers, masks and protections become the program's own. The caller
    /// then leaves the engine to a program address.
    pub(crate) fn detach(&mut self, st: &mut ThreadState) {
        self.give_process_back(st);
        let alt = st.signals.altstack;
        // SAFETY: the kernel reads one structure and one word.
        unsafe {
            sys::call(nr::SIGALTSTACK, [&raw const alt as u64, 0, 0, 0, 0, 0]);
            sys::call(nr::RT_SIGPROCMASK, [2, &raw const st.signals.mask as u64, 0, 8, 0, 0]);
        }
    }

    /// The part of it that is for all threads: page permissions and handlers.
    pub(crate) fn give_process_back(&mut self, st: &ThreadState) {
        let pages: Vec<u64> = self.pages.protected().collect();
        for page in pages {
            if let Some(r) = self.regions.get(page) {
                // SAFETY: the permission that the program asked for.
                unsafe { sys::call(nr::MPROTECT, [page, 4096, r.prot.into(), 0, 0, 0]) };
            }
        }
        let actions = *self.actions(st);
        for s in 1..65u32 {
            let app = &actions.0[s as usize];
            if app.handler > 1 || sig::SYNC & sig::bit(s.min(32)) != 0 && s < 32 {
                signal::set_kernel_action(s, app);
            }
        }
    }
}

/// `exit`: the thread ends; its slab may be taken the moment the lock opens, so nothing of it is used then.
pub(crate) fn exit<C: Client>(shared: &'static Shared<C>, st: &mut ThreadState, a: [u64; 6]) -> ! {
    respite::stop(st);
    signal::block_all();
    if !st.signals.vfork_child {
        let mut e = shared.lock.lock();
        if e.slabs.live() == 1
            && let Some(follow) = Follow::new(&e.boot)
        {
            follow.ends(Some(a[0]));
        }
        e.client.thread_end(st.this as u64, st.tid);
        e.slabs.give(st.slab);
        core::mem::forget(e);
        let held = shared.lock.flag();
        // SAFETY: opens the lock that was just taken, then ends the thread without touching a stack.
        unsafe {
            core::arch::asm!("mov byte ptr [{}], 0", "mov eax, 60", "syscall", "ud2", in(reg) held, in("rdi") a[0],
                             options(noreturn))
        }
    }
    loop {
        // SAFETY: ends the thread.
        unsafe { sys::call(nr::EXIT, a) };
    }
}
