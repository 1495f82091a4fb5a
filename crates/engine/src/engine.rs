//! The engine's state and its entry from the cache.
//!
//! One [`Engine`] per process, under one lock. Code in the cache never takes the lock; it comes here when an
//! exit has no link, an indirect branch has no table entry, or a system call needs a look.

use crate::addrmap::AddressMaps;
use crate::block::{Blocks, ExitKind, NONE};
use crate::cache::Cache;
use crate::callret::CachedSite;
use crate::client::Client;
use crate::events::Thread;
use crate::liveness::Memo;
use crate::lock::SpinLock;
use crate::lookup::LowTables;
use crate::pages::Pages;
use crate::region::Regions;
use crate::returns::{self, Owners};
use crate::state::{Reason, ThreadState};
use crate::superblock::Superblock;
use crate::thread::Slabs;
use crate::translate::{Pending, Tail, Trouble};
use crate::trust::Trust;
use crate::{complex, handback, signal, vsyscall};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use iced_x86::Encoder;
use wire::boot::{Boot, flags};

/// Everything that the engine knows.
pub struct Engine<C> {
    /// The client.
    pub client: C,
    /// What we were told at start.
    pub boot: Boot,
    pub(crate) cache: Cache,
    pub(crate) blocks: Blocks,
    pub(crate) regions: Regions,
    pub(crate) low: LowTables,
    pub(crate) maps: AddressMaps,
    pub(crate) pages: Pages,
    /// Cached sites that are not filled yet, by exit.
    pub(crate) cached_sites: BTreeMap<u32, CachedSite>,
    /// Flushed blocks whose bytes may turn out unchanged, by program address.
    pub(crate) suspended: BTreeMap<u64, u32>,
    /// Exits of the entries for indirect branches, by program address.
    pub(crate) indirect: BTreeMap<u64, u32>,
    pub(crate) slabs: Slabs,
    pub(crate) signals: signal::Actions,
    pub(crate) sb: Superblock,
    pub(crate) memo: Memo,
    pub(crate) live_before: Vec<bool>,
    pub(crate) live_exits: Vec<bool>,
    pub(crate) page_list: Vec<u64>,
    /// Memory for the lists of a chain that is made.
    pub(crate) spare: (Vec<Tail>, Vec<Pending>),
    pub(crate) encoder: Option<Encoder>,
    pub(crate) counting: bool,
    pub(crate) trust: Trust,
    pub(crate) return_miss: u64,
    pub(crate) return_fill: u64,
    pub(crate) owners: Owners,
    /// Return addresses whose slots were claimed since the thread that translates filled its own, with their landings.
    pub(crate) claimed: Vec<(u64, u64)>,
    pub(crate) arrivals: crate::edges::Arrivals,
    pub(crate) shared_returns: crate::shared_return::SharedReturns,
    pub(crate) plan: crate::instrument::Plan,
    pub(crate) prefix: crate::counted::Prefix,
    /// Number of the present generation of the cache, and the earlier ones that threads are still in.
    pub(crate) generation: u32,
    pub(crate) old: Vec<crate::generation::Generation>,
}

/// The engine under its lock; the address of this is in every thread's state.
pub struct Shared<C> {
    /// The lock.
    pub lock: SpinLock<Engine<C>>,
    /// The engine's image: a pc in it is not the cache's.
    pub image: (u64, u64),
}

impl<C: Client> Engine<C> {
    /// One instruction per block?
    pub(crate) fn single_step(&self) -> bool {
        self.boot.flags & flags::SINGLE != 0
    }

    /// The block at `pc`, translated if need be.
    pub(crate) fn block_for(&mut self, pc: u64) -> Result<u32, Trouble> {
        match self.blocks.find(pc) {
            Some(id) => Ok(id),
            None => match self.revive(pc) {
                Some(id) => Ok(id),
                None => self.translate(pc),
            },
        }
    }

    /// Goes on at the program address `pc`: sets `resume`, or arranges for the fault that going there means.
    pub(crate) fn go_to(&mut self, st: &mut ThreadState, pc: u64) -> u32 {
        if let Some(back) = vsyscall::call(st, pc) {
            self.go_to(st, back);
            return NONE;
        }
        match self.block_for(pc) {
            Ok(id) => {
                st.resume = self.blocks.list[id as usize].entry;
                self.fill_returns(st);
                id
            }
            Err(Trouble::NotExecutable { pc, at }) => {
                self.raise_fetch_fault(st, pc, at);
                NONE
            }
            Err(_) if st.pend != 0 => {
                // The waiting signal first; then back here.
                st.resume = 0;
                st.target = pc;
                NONE
            }
            Err(Trouble::CacheFull) if !self.blocks.list.is_empty() && self.begin_generation() => {
                self.renew(st);
                // (Nothing is to be linked to the new block.)
                self.go_to(st, pc);
                NONE
            }
            Err(Trouble::Unsupported(_) | Trouble::CacheFull) => {
                self.hand_back(st, pc);
                NONE
            }
        }
    }

    /// The thread has the slots of calls that it just made lead to their landings.
    fn fill_returns(&mut self, st: &ThreadState) {
        let as_claimed = st.generation == self.generation && self.returns_kill_flags();
        for (ret, landing) in self.claimed.drain(..).filter(|_| as_claimed) {
            returns::fill(st, ret, landing);
        }
    }

    /// For tests: a bug of ours, some way into the program.
    fn fail_if_asked(&mut self) {
        const BLOCKS: usize = 2000;
        if self.boot.flags & flags::FAIL != 0 && self.blocks.list.len() > BLOCKS {
            self.boot.flags &= !flags::FAIL;
            panic!("asked to fail");
        }
    }

    /// The way to the place of the call at `pc` has counted the call, and so will the block that makes it instead.
    pub(crate) fn uncount_call(&mut self, st: &ThreadState, pc: u64) {
        let mut sb = core::mem::take(&mut self.sb);
        self.decode(&mut sb, pc, 1);
        if self.counting {
            self.client.path_cut(st.this as u64, &sb, 0, Some(1));
        }
        self.sb = sb;
    }

    /// Takes a block out of use: what leads to it asks for another.
    fn retire(&mut self, id: u32) {
        let pc = self.blocks.list[id as usize].pc;
        self.blocks.list[id as usize].live = false;
        self.blocks.dead += 1;
        if self.blocks.find(pc) == Some(id) {
            self.blocks.unset(pc);
        }
        self.unlink_incoming(id);
    }

    /// Flushes translations of a range of program addresses.
    pub(crate) fn flush(&mut self, start: u64, end: u64) {
        self.memo.forget();
        for id in self.pages.take(start, end) {
            let b = self.blocks.list[id as usize];
            if !b.live {
                continue;
            }
            self.blocks.list[id as usize].live = false;
            self.blocks.dead += 1;
            if self.blocks.find(b.pc) == Some(id) {
                self.blocks.unset(b.pc);
            }
            self.unlink_incoming(id);
            if b.source != 0 {
                self.suspended.insert(b.pc, id);
            }
        }
    }
}

impl<C: Client> Engine<C> {
    /// Flushes every translation, for good.
    pub(crate) fn flush_all(&mut self) {
        const END: u64 = 1 << 48;
        self.unprotect(0, END);
        self.flush(0, END);
        self.pages.open_all();
        self.suspended.clear();
    }
}

/// The engine's entry from the cache, on the engine's stack.
///
/// # Safety
/// Called by `trampoline.rs` alone, with the current thread's state.
pub unsafe extern "C" fn entry<C: Client>(state: *mut ThreadState, reason: u32) {
    // SAFETY: the state of this thread, which nobody else writes while the thread is in the engine.
    let st = unsafe { &mut *state };
    // SAFETY: set once at start to a leaked allocation of this type.
    let shared = unsafe { &*(st.engine as *const Shared<C>) };
    if reason == Reason::Syscall as u32 {
        crate::syscall::hooked(shared, st);
        if st.leaving.wanted {
            handback::gather(shared, st);
        }
        return;
    }
    if reason == Reason::Efault as u32 {
        crate::syscall::efault(shared, st);
        return;
    }
    if reason == Reason::Client as u32 {
        clean_call::<C>(st);
        return;
    }
    if reason == Reason::ThreadStart as u32 {
        crate::thread::started(shared, st);
        return;
    }
    translate_for(shared, st, reason);
    st.back = 0;
    if st.leaving.wanted {
        handback::gather(shared, st);
    }
}

/// Finds, or makes, the code at which the program goes on.
fn translate_for<C: Client>(shared: &Shared<C>, st: &mut ThreadState, reason: u32) {
    let mut e = shared.lock.lock();
    e.reclaim_if_full();
    let exit = (reason == Reason::Exit as u32).then(|| e.exit_of(st));
    st.back = exit.map_or(st.target, |exit| exit.target);
    e.fail_if_asked();
    let mut reason = reason;
    if st.generation != e.generation {
        if let Some(exit) = exit {
            let pc = e.leave_by(st, &exit);
            e.renew(st);
            if exit.kind == ExitKind::Call {
                e.go_to_called(st, pc);
            } else {
                e.go_to(st, pc);
            }
            return;
        }
        e.renew(st);
        if reason == Reason::Cached as u32 {
            // The site is of no use any more.
            reason = if e.events().calls { Reason::Call } else { Reason::Indirect } as u32;
        }
    }
    match reason {
        r if r == Reason::Exit as u32 => {
            let exit = e.blocks.exits[st.exit_id as usize];
            if exit.kind == ExitKind::CallSite {
                if let Some(to) = e.blocks.find_call(exit.target)
                    && e.blocks.list[to as usize].live
                {
                    e.link(st.exit_id, to);
                    st.resume = e.blocks.list[to as usize].entry;
                    return;
                }
                // Its place was flushed.
                e.uncount_call(st, exit.target);
                // A block that begins with the call would lead here again.
                if e.blocks.list[exit.from as usize].pc == exit.target {
                    e.retire(exit.from);
                }
                e.go_to(st, exit.target);
                return;
            }
            if exit.kind == ExitKind::Counted {
                return e.take_counted(st, st.exit_id);
            }
            e.plan.hint = exit.lent;
            let to = if exit.kind == ExitKind::Call {
                e.go_to_called(st, exit.target)
            } else {
                e.go_to(st, exit.target)
            };
            e.plan.hint = 0;
            if to != NONE {
                e.link(st.exit_id, to);
            }
        }
        r if r == Reason::Cached as u32 => {
            let pc = st.target;
            e.met_callee(pc);
            // (Where calls are told from jumps, only calls have cached sites.)
            let to = e.go_to_called(st, pc);
            if to != NONE {
                e.fill_cached(st.exit_id, pc, to);
            }
        }
        r if r == Reason::Indirect as u32 => {
            let pc = st.target;
            let to = e.go_to(st, pc);
            if to != NONE && !e.arrive_by_jump(st, pc, to) {
                e.indirect_entry(pc, to);
            }
        }
        r if r == Reason::Call as u32 => {
            let pc = st.target;
            e.met_callee(pc);
            let to = e.go_to_called(st, pc);
            if to != NONE {
                e.arrive_by_call(pc, to);
            }
        }
        _ => {
            let pc = st.target;
            e.go_to(st, pc);
            if st.signals.stepping {
                st.rflags |= 0x100;
            }
        }
    }
}

/// A call out of instrumentation.
fn clean_call<C: Client>(st: &mut ThreadState) {
    let (token, value, borrowed) = (st.exit_id, st.call_value, st.call_borrowed as u32);
    let mut t = Thread::new(st, borrowed);
    if token == complex::TOKEN {
        // SAFETY: `instrument.rs` put the address of a leaked description there.
        let c = unsafe { &*(value as *const complex::Complex) };
        c.run::<C>(&mut t);
    } else {
        C::called(&mut t, token, value);
    }
}
