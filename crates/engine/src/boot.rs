//! The first thing that runs inside the program: sets the engine up and starts translating at the program's
//! first instruction, with its registers, stack and memory as the kernel made them.

use crate::addrmap::AddressMaps;
use crate::block::Blocks;
use crate::cache::Cache;
use crate::client::Client;
use crate::engine::{Engine, Shared};
use crate::lock::SpinLock;
use crate::lookup::LowTables;
use crate::pages::Pages;
use crate::region::Regions;
use crate::returns::Owners;
use crate::superblock::Superblock;
use crate::thread::Slabs;
use crate::trust::Trust;
use crate::{bug, signal, sys, trampoline};
use alloc::boxed::Box;
use alloc::vec::Vec;
use wire::boot::{Boot, MAGIC, flags};

/// Takes the program over. Called once, on the launcher's temporary stack.
///
/// # Safety
/// `boot` is the block that the launcher wrote; the process is otherwise as `execve` left it.
pub unsafe fn boot<C: Client>(boot: *const Boot, client: impl FnOnce(&Boot) -> C) -> ! {
    // SAFETY: as the caller promises.
    let boot = unsafe { *boot };
    if boot.magic != MAGIC || boot.version != wire::VERSION {
        bug::report(b"boot block of another version", boot.version.into(), 0);
    }
    let slab_bytes = boot.slab_count * wire::slab::STRIDE;
    let follow_bytes = if boot.follow_base == 0 { 0 } else { wire::follow::BYTES };
    let ours = [
        (boot.image_base, boot.image_base + boot.image_bytes),
        (boot.follow_base, boot.follow_base + follow_bytes),
        (boot.shared_base, boot.shared_base + boot.shared_fixed_bytes + slab_bytes),
    ];
    let mut regions = Regions::default();
    regions.read_own(&ours);
    let client = client(&boot);
    let engine = set_up(boot, client, regions);
    let shared: &'static Shared<C> =
        Box::leak(Box::new(Shared { lock: SpinLock::new(engine), image: ours[0] }));
    let state = {
        let mut e = shared.lock.lock();
        let Some(state) = e.new_thread(shared as *const Shared<C> as usize, None) else {
            bug::report(b"no memory for the first thread", 0, 0);
        };
        let st = state;
        st.tid = sys::gettid();
        st.gpr = boot.regs.gpr;
        st.rflags = boot.regs.rflags & !0x100;
        st.target = boot.regs.rip;
        let slab = st.this as u64;
        e.client.thread_start(slab, st.tid, true);
        e.start_signals(st);
        st.this
    };
    // SAFETY: FSGSBASE was checked by the launcher; the state is complete.
    unsafe {
        crate::thread::set_gs(state as u64);
        trampoline::start(state)
    }
}

/// The engine with its tables and first arena, for a program that starts at `boot.regs.rip`.
pub(crate) fn set_up<C: Client>(boot: Boot, client: C, regions: Regions) -> Engine<C> {
    let [miss, call_miss] = if C::SHARED_RETURNS {
        [trampoline::enter_indirect_lent, trampoline::enter_call_lent].map(|f| f as *const () as u64)
    } else {
        [trampoline::enter_indirect, trampoline::enter_call].map(|f| f as *const () as u64)
    };
    let call_miss = (C::EVENTS.calls && boot.flags & flags::NO_CLIENT == 0).then_some(call_miss);
    let Some(low) = LowTables::new(&regions, miss, call_miss) else {
        bug::report(b"no free address below 2 GB", 0, 0);
    };
    let Some(owners) = Owners::new() else {
        bug::report(b"no memory", 0, 0);
    };
    let layout = client.slabs(&boot);
    let mut engine = Engine {
        client,
        boot,
        cache: Cache::default(),
        blocks: Blocks::default(),
        regions,
        low,
        maps: AddressMaps::default(),
        pages: Pages::default(),
        indirect: Default::default(),
        suspended: Default::default(),
        cached_sites: Default::default(),
        slabs: Slabs::new(layout),
        arrivals: Default::default(),
        shared_returns: Default::default(),
        plan: Default::default(),
        prefix: Default::default(),
        signals: signal::Actions::default(),
        sb: Superblock::new(),
        memo: Default::default(),
        live_before: Vec::new(),
        live_exits: Vec::new(),
        page_list: Vec::new(),
        spare: Default::default(),
        encoder: None,
        counting: boot.flags & flags::NO_CLIENT == 0,
        trust: if boot.flags & flags::WATCH_FLAGS != 0 { Trust::Watching } else { Trust::Blind },
        return_miss: 0,
        return_fill: 0,
        owners,
        claimed: Vec::new(),
        generation: 0,
        old: Vec::new(),
    };
    if engine.cache.arena_for(boot.regs.rip, &engine.regions).is_none() {
        bug::report(b"no room for translated code", boot.regs.rip, 0);
    }
    engine.emit_return_miss();
    engine.emit_return_fill();
    engine.hook_syscalls();
    engine
}
