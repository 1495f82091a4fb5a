//! The client behind `farsight growth`: input size and cost of every routine activation.
//!
//! | module | holds |
//! |---|---|
//! | [`code`] | what is emitted at accesses, calls and returns |
//! | [`filter`] | which accesses need nothing |
//! | [`activation`] | a thread's pending activations, and the slow paths of emitted code |
//! | [`shadow`] | stamps, marks and sharers in raw memory |
//! | [`ingest`], [`table`] | records added up per (routine, size) |
//! | [`routines`], [`elf`] | which routines there are and where they begin |
//! | [`effects`] | what system calls do to memory |
//! | [`shared`], [`layout`], [`process`] | where everything lies |
//!
//! The algorithm and why it is right: `inputsize` and `docs/input-size.md`. `docs/growth.md` has the whole picture.
//!
//! # Rules
//! Runs inside the program: see the engine's rules. Nothing here allocates per access or activation, but when a table
//! grows. Threads share nothing but the shadow, the routines (under the engine lock) and the array of points.
#![no_std]

extern crate alloc;

pub mod activation;
pub mod alike;
pub mod code;
pub mod cost;
pub mod effects;
pub mod elf;
pub mod filter;
pub mod ingest;
pub mod layout;
pub mod process;
pub mod routines;
pub mod shadow;
pub mod shared;
pub mod table;

use activation::Local;
use alloc::boxed::Box;
use code::{Code, token};
use cost::Costs;
use engine::access::{Access, Kind};
use engine::client::{Client, SlabLayout, StringCounters};
use engine::events::{Emit, Events, Masked, Piece, SignalEntry, Thread};
use engine::state::CLIENT_AREA_OFFSET;
use engine::superblock::{Insn, Superblock};
use filter::Filter;
use inputsize::Cell;
use process::Process;
use routines::Routines;
use wire::boot::Boot;
use wire::growth::{Cost, Metric, problem};

/// The client.
pub struct Growth {
    process: &'static Process,
    routines: Routines,
    code: Code,
    costs: Costs,
    filter: Filter,
}

impl Growth {
    /// A client that writes to the mapping named in the boot block. `None` when the address space has no room.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its mapping has the layout of `wire::growth`.
    pub unsafe fn new(boot: &Boot) -> Option<Growth> {
        // SAFETY: passed on.
        let process: &'static Process = Box::leak(Box::new(unsafe { Process::new(boot) }?));
        let shift = process.shared.header().cell_shift;
        process.shared.clocks(0, cost::ticks(), cost::clock_ns());
        Some(Growth {
            process,
            routines: Routines::new(process.shared, process.fold),
            code: Code::new(process.metric, shift, process.cost == Cost::Time),
            costs: Costs::new(process.cost),
            filter: Filter::new(process.metric != Metric::Rms),
        })
    }

    /// Forgets the routines of memory that is gone.
    fn forget_unmapped(&mut self) {
        for (start, end) in self.process.take_unmapped() {
            self.routines.forget(start, end);
        }
    }

    fn routine(&mut self, address: u64) -> u32 {
        self.forget_unmapped();
        self.routines.get(address)
    }
}

/// The thread's own state.
fn local<'a>(slab: u64) -> Option<&'a mut Local> {
    // SAFETY: `thread_start` put it there, `thread_end` takes it away; in between only its own thread comes here.
    unsafe { (*((slab + CLIENT_AREA_OFFSET) as *const *mut Local)).as_mut() }
}

impl Client for Growth {
    const EVENTS: Events =
        Events { data: true, stack: true, control: false, calls: true, syscalls: true, scratch: 3 };

    const SHARED_RETURNS: bool = true;
    const SIDE_PATHS: bool = true;

    fn slabs(&self, _boot: &Boot) -> SlabLayout {
        let layout::Slabs { stride, count, .. } = self.process.layout;
        SlabLayout { base: self.process.slabs, count, stride }
    }

    fn sees_accesses(&mut self, pc: u64) -> bool {
        // (The first question about a superblock.)
        self.forget_unmapped();
        !self.routines.is_folded(pc)
    }

    fn access(&mut self, e: &mut Emit<'_>, sb: &Superblock, a: &Access) {
        if let Some(kind) = self.filter.needed(sb, a) {
            let from_held = self.filter.from_held(a);
            let held = self.code.access(e, &Access { kind, ..*a }, from_held);
            self.filter.hold(a, held);
        }
    }

    fn masked(&mut self, e: &mut Emit<'_>, access: &Masked) -> bool {
        self.code.masked(e, access)
    }

    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        let routine = self.routine(callee);
        self.code.enter(e, routine);
    }

    fn ret(&mut self, e: &mut Emit<'_>) {
        self.code.ret(e);
    }

    fn tail(&mut self, e: &mut Emit<'_>, target: u64) {
        let routine = self.routine(target);
        self.code.tail(e, routine);
    }

    fn is_tail(&mut self, from: Option<u64>, target: u64) -> bool {
        self.routines.is_tail(from, target)
    }

    fn called(t: &mut Thread<'_>, token: u32, value: u64) {
        let Some(local) = local(t.slab()) else { return };
        let payload = token & !token::KIND;
        let cells = |n: u32| (0..u64::from(n)).map(move |i| Cell(value + i));
        local.own_work(|local| match token & token::KIND {
            token::ENTER => {
                let routine = local.hot().cells as u32;
                local.enter(routine, value);
            }
            token::RETURN => local.ret(value),
            token::FULL => local.drain(),
            token::FIRST => cells(payload).for_each(|cell| local.far_first(cell)),
            token::FOREIGN => cells(payload).for_each(|cell| local.before_write(cell)),
            _ => {}
        });
    }

    fn range(t: &mut Thread<'_>, piece: &Piece) {
        let Some(local) = local(t.slab()) else { return };
        local.own_work(|local| {
            if piece.kind != Kind::Write {
                local.read(piece.addr, piece.bytes);
            }
            if piece.kind != Kind::Read {
                local.write(piece.addr, piece.bytes);
            }
        });
    }

    fn after_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6], result: i64) {
        if let Some(local) = local(t.slab()) {
            local.own_work(|local| effects::after(local, n, args, result));
        }
    }

    fn signal_enter(t: &mut Thread<'_>, entry: &SignalEntry) {
        if let Some(local) = local(t.slab()) {
            let routine = local.process.handler(entry.handler);
            local.enter_handler(routine, entry.sp);
        }
    }

    fn signal_return(t: &mut Thread<'_>, _pc: u64, _sp: u64) {
        if let Some(local) = local(t.slab()) {
            local.leave_handler();
        }
    }

    fn block(&mut self, sb: &Superblock) {
        let at_entry = self.routines.begins(sb.pc);
        self.filter.begin(at_entry);
        self.code.begin(sb.jumps_to_itself());
        self.costs.block(sb);
    }

    fn cache_begun(&mut self) {
        self.code.forget_routines();
    }

    fn path_counter(&mut self, _sb: &Superblock, count: usize) -> Option<i32> {
        (self.costs.of(count) > 0).then_some(layout::gs::COST)
    }

    // (A path is what it costs.)
    fn side_path(&mut self, _sb: &Superblock, count: usize) -> Option<u32> {
        Some(self.costs.of(count)).filter(|&amount| amount > 0)
    }

    fn counter_of(&mut self, _path: u32) -> i32 {
        layout::gs::COST
    }

    fn amount_of(&self, path: u32) -> u32 {
        path
    }

    fn path_amount(&mut self, _sb: &Superblock, count: usize) -> u32 {
        self.costs.of(count)
    }

    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters> {
        self.costs.string(insn)
    }

    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>) {
        self.costs.block(sb);
        let (done, credited) = (self.costs.of(count), counted.map_or(0, |n| self.costs.of(n)));
        if let Some(local) = local(slab) {
            let hot = local.hot();
            hot.cost = hot.cost.wrapping_add(done.into()).wrapping_sub(credited.into());
        }
    }

    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool) {
        let root = self.routines.root();
        let local = Local::start(self.process, slab, tid, root, counts);
        if local.is_none() {
            self.process.shared.problem(problem::THREAD_UNSEEN);
            engine::bug::report(b"no memory for the shadow of a thread", slab, tid.into());
        }
        let at = local.map_or(core::ptr::null_mut(), |local| Box::into_raw(Box::new(local)));
        // SAFETY: the client's area of a slab whose thread does not run yet.
        unsafe { ((slab + CLIENT_AREA_OFFSET) as *mut *mut Local).write(at) };
    }

    fn thread_end(&mut self, slab: u64, _tid: u32) {
        let place = (slab + CLIENT_AREA_OFFSET) as *mut *mut Local;
        // SAFETY: put there by `thread_start`; the thread is here or gone, and nobody uses it any more.
        let local = unsafe {
            let local = place.read();
            place.write(core::ptr::null_mut());
            if local.is_null() {
                return;
            }
            Box::from_raw(local)
        };
        let mut local = local;
        local.end();
    }

    fn process_end(&mut self) {
        self.process.shared.clocks(1, cost::ticks(), cost::clock_ns());
        // SAFETY: gs points at this thread's state in all engine code.
        let slab = unsafe { (*engine::state::current()).this as u64 };
        if let Some(local) = local(slab) {
            local.end_process();
        }
    }
}
