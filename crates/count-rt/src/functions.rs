//! Counting by function: the client behind `farsight count --functions`.
//!
//! Each exit's counter belongs to a function, so what a function executed itself is a sum over exits, exact by
//! construction. What it executed in all needs calls and returns: each thread keeps a shadow stack of activations with
//! the thread's running number of instructions at their entry. An activation is known by where its return address
//! lies, so frames that a longjmp or an exception leaves are found by the stack pointer. A recursion counts once: only
//! the outermost activation of a function adds to its total.
//!
//! Which function holds an address is the launcher's knowledge: it is asked when code is translated (`lookup.rs`). So
//! jumps from one function to another are seen, and libraries that are unloaded again keep their names.
//!
//! # Rules
//! As in `lib.rs`. The events run without the engine lock, in their own thread; what threads share (sums of functions)
//! is added to atomically.

use crate::Count;
use crate::lookup::{self, Known};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use engine::client::{Client, Forked, StringCounters};
use engine::events::{Emit, Events, SignalEntry, Thread};
use engine::superblock::{Insn, Superblock};
use engine::sys::{self, mm};
use wire::boot::Boot;
use wire::count::*;
use wire::slab::{COUNTERS_OFFSET, PRIVATE_BYTES, TOTALS_OFFSET};

/// Events, as they are told to `called`.
mod token {
    /// A call; its return address is on the stack.
    pub const CALLED: u32 = 0;
    pub const RETURN: u32 = 1;
    pub const JUMP: u32 = 2;
}
/// Marks a jump to a function's first instruction.
const ENTERS: u64 = 1 << 32;

/// What a thread keeps in its client area.
#[repr(C)]
struct Area {
    /// Activations by function, one number each; null in a thread that is not counted.
    active: *mut u32,
    /// The shared mapping.
    shared: u64,
}
const ACTIVE_BYTES: u64 = FUNCTIONS_MAX * 4;

/// Counts by function.
pub struct CountFunctions {
    count: Count,
    base: u64,
    /// The function of each instruction of the current superblock.
    of: Vec<u32>,
    /// Counters for paths that were cut short, by start, length and sums.
    cuts: BTreeMap<(u64, usize, [u16; 5]), u32>,
    /// Where the first thread starts, until it has.
    first: Option<u64>,
}

impl CountFunctions {
    /// A client that writes to the mapping named in the boot block.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its mapping has the layout of `wire::count`; the launcher answers
    /// questions.
    pub unsafe fn new(boot: &Boot) -> CountFunctions {
        // SAFETY: passed on.
        let count = unsafe { Count::with_counters(boot, FUNCTION_COUNTERS_MAX) };
        // SAFETY: passed on; nothing else uses the questions' place.
        unsafe { lookup::start(boot.shared_base, boot.launcher_pid) };
        CountFunctions {
            count,
            base: boot.shared_base,
            of: Vec::new(),
            cuts: BTreeMap::new(),
            first: Some(boot.regs.rip),
        }
    }

    /// A counter for the first `n` instructions of the current superblock.
    fn counter(&mut self, n: usize) -> u32 {
        let mut d = self.count.prefix(n);
        let own = self.of.first().copied().unwrap_or(0);
        d.function = own;
        let (exit, fresh) = self.count.counter(d, n < self.of.len());
        if !fresh {
            self.count.problem(problem::FUNCTIONS_PARTIAL);
            return exit;
        }
        let mut others: BTreeMap<u32, u32> = BTreeMap::new();
        for f in self.of[..n].iter().filter(|f| **f != own) {
            *others.entry(*f).or_default() += 1;
        }
        for (function, instructions) in others {
            self.count.split(Split { exit, function, instructions });
        }
        exit
    }

    /// Adds to a thread's counter for the first `n` instructions of the current superblock, outside of its path.
    fn correct(&mut self, slab: u64, pc: u64, n: usize, by: u64) {
        let d = self.count.prefix(n);
        let key = (pc, n, [d.instructions, d.loads, d.stores, d.blocks.into(), d.calls.into()]);
        let exit = match self.cuts.get(&key) {
            Some(&exit) => exit,
            None => {
                let exit = self.counter(n);
                self.cuts.insert(key, exit);
                exit
            }
        };
        let counter = (slab + COUNTERS_OFFSET + u64::from(exit) * 8) as *mut u64;
        let totals = (slab + TOTALS_OFFSET) as *mut ThreadTotals;
        // SAFETY: a counter and the totals of this slab, whose thread is in the engine.
        unsafe {
            *counter = (*counter).wrapping_add(by);
            (*totals).running = (*totals).running.wrapping_add(by.wrapping_mul(d.instructions.into()));
        }
    }

    fn emit(&mut self, e: &mut Emit<'_>, token: u32, value: u64) {
        let r = e.scratch[0];
        e.hot.mov_imm64(r, value);
        e.call_out(token, r);
    }
}

impl Client for CountFunctions {
    const EVENTS: Events = Events { calls: true, scratch: 1, ..Events::NONE };
    const FOLLOWS_FORKS: bool = true;

    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        let function = lookup::of(callee).function;
        self.emit(e, token::CALLED, function.into());
    }

    fn ret(&mut self, e: &mut Emit<'_>) {
        self.emit(e, token::RETURN, 0);
    }

    fn tail(&mut self, e: &mut Emit<'_>, target: u64) {
        let Known { function, entry, .. } = lookup::of(target);
        let enters = if entry == target { ENTERS } else { 0 };
        self.emit(e, token::JUMP, u64::from(function) | enters);
    }

    fn is_tail(&mut self, from: Option<u64>, target: u64) -> bool {
        // Where an indirect jump comes from shows when it is made.
        from.is_none_or(|from| lookup::of(from).function != lookup::of(target).function)
    }

    fn called(t: &mut Thread<'_>, token: u32, value: u64) {
        let sp = t.sp();
        let Some(mut stack) = Stack::of(t) else { return };
        match token {
            token::CALLED => stack.enter(value as u32, sp),
            token::RETURN => stack.leave(sp),
            _ => stack.jump(value as u32, value & ENTERS != 0, sp),
        }
    }

    fn signal_enter(t: &mut Thread<'_>, entry: &SignalEntry) {
        let function = lookup::of(entry.handler).function;
        if let Some(mut stack) = Stack::of(t) {
            stack.enter(function, entry.sp);
        }
    }

    fn signal_return(t: &mut Thread<'_>, pc: u64, sp: u64) {
        let function = lookup::of(pc).function;
        if let Some(mut stack) = Stack::of(t) {
            stack.jump(function, false, sp);
        }
    }

    fn block(&mut self, sb: &Superblock) {
        self.count.block(sb);
        self.of.clear();
        self.of.extend(sb.insns.iter().map(|i| lookup::of(i.pc()).function));
    }

    fn path_counter(&mut self, _sb: &Superblock, count: usize) -> Option<i32> {
        Some((COUNTERS_OFFSET + u64::from(self.counter(count)) * 8) as i32)
    }

    fn path_cost(&mut self, _sb: &Superblock, count: usize) -> Option<(i32, u32)> {
        let running = TOTALS_OFFSET as usize + core::mem::offset_of!(ThreadTotals, running);
        Some((running as i32, self.count.prefix(count).instructions.into()))
    }

    fn remapped(&mut self, start: u64, end: u64) {
        lookup::forget(start, end);
    }

    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters> {
        crate::string_counters(&mut self.count, insn)
    }

    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>) {
        self.block(sb);
        self.correct(slab, sb.pc, count.min(sb.insns.len()), 1);
        if let Some(n) = counted {
            self.correct(slab, sb.pc, n.min(sb.insns.len()), u64::MAX);
        }
    }

    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool) {
        self.count.thread_start(slab, tid, counts);
        let active = if counts { sys::map_anonymous(0, ACTIVE_BYTES, mm::RW, 0).unwrap_or(0) } else { 0 };
        let area = (slab + engine::state::CLIENT_AREA_OFFSET) as *mut Area;
        // SAFETY: the private part of a slab that was just taken.
        unsafe { area.write(Area { active: active as *mut u32, shared: self.base }) };
        // SAFETY: written just now; the thread runs no program code yet.
        if let (Some(pc), Some(mut stack)) = (self.first.take(), unsafe { Stack::at(slab, area) }) {
            stack.enter(lookup::of(pc).function, u64::MAX);
        }
    }

    fn thread_end(&mut self, slab: u64, tid: u32) {
        let area = (slab + engine::state::CLIENT_AREA_OFFSET) as *mut Area;
        // SAFETY: written by `thread_start`; the thread runs no program code any more.
        let mut stack = unsafe { Stack::at(slab, area) };
        if let Some(stack) = &mut stack {
            stack.leave_all();
            // SAFETY: the mapping that `thread_start` made, which nobody uses any more.
            unsafe {
                sys::call(sys::nr::MUNMAP, [(*area).active as u64, ACTIVE_BYTES, 0, 0, 0, 0]);
                (*area).active = core::ptr::null_mut();
            }
            self.count.keep_counters(slab);
        }
        self.count.thread_end(slab, tid);
    }

    fn forked(&mut self, boot: &Boot, child: &Forked) {
        let totals = (child.slab + TOTALS_OFFSET) as *mut ThreadTotals;
        let frames = (child.slab + SHADOW_OFFSET) as *mut Frame;
        // SAFETY: the slab of the only thread, which is here; frames are written up to the depth.
        let (running, stack) = unsafe {
            let depth = (*totals).depth as usize;
            ((*totals).running, core::slice::from_raw_parts(frames, depth).to_vec())
        };
        self.count.forked(boot, child);
        lookup::forked();
        // What is active goes on being so, from here on. SAFETY: as above, in the new mapping.
        unsafe {
            (*totals).running = running;
            (*totals).depth = stack.len() as u32;
            for (i, frame) in stack.into_iter().enumerate() {
                frames.add(i).write(Frame { entered: running, ..frame });
            }
        }
    }

    fn process_end(&mut self) {
        self.count.process_end();
    }
}

/// A thread's activations.
struct Stack<'a> {
    totals: &'a mut ThreadTotals,
    frames: *mut Frame,
    active: *mut u32,
    sums: *const [AtomicU64; 2],
    header: *mut Header,
}

impl Stack<'_> {
    fn of<'a>(t: &'a Thread<'_>) -> Option<Stack<'a>> {
        // SAFETY: the thread's own slab and area.
        unsafe { Stack::at(t.slab(), t.area().cast()) }
    }

    /// `None` for a thread that is not counted.
    ///
    /// # Safety
    /// The slab is live, its area was written by `thread_start`, and nobody else uses its stack.
    unsafe fn at<'a>(slab: u64, area: *mut Area) -> Option<Stack<'a>> {
        // SAFETY: as the caller promises; the offsets are those of `wire::count`.
        unsafe {
            if (*area).active.is_null() {
                return None;
            }
            let shared = (*area).shared;
            Some(Stack {
                totals: &mut *((slab + TOTALS_OFFSET) as *mut ThreadTotals),
                frames: (slab + SHADOW_OFFSET) as *mut Frame,
                active: (*area).active,
                sums: (shared + FUNCTIONS_OFFSET) as *const [AtomicU64; 2],
                header: shared as *mut Header,
            })
        }
    }

    fn add(&self, function: u32, field: usize, by: u64) {
        // SAFETY: numbers of functions are below `FUNCTIONS_MAX` (`lookup.rs`).
        unsafe { (&(*self.sums.add(function as usize)))[field].fetch_add(by, Ordering::Relaxed) };
    }

    fn top(&self) -> Option<Frame> {
        let depth = self.totals.depth.checked_sub(1)?;
        // SAFETY: below the depth.
        Some(unsafe { *self.frames.add(depth as usize) })
    }

    fn enter(&mut self, function: u32, slot: u64) {
        self.add(function, 0, 1);
        self.push(function, slot);
    }

    fn push(&mut self, function: u32, slot: u64) {
        if u64::from(self.totals.depth) >= SHADOW_MAX {
            // SAFETY: only ever sets a bit; a lost one would be set again by the next.
            unsafe { (*self.header).problems |= problem::FUNCTIONS_PARTIAL };
            return;
        }
        // SAFETY: numbers of functions are below `FUNCTIONS_MAX`; the depth was just checked.
        unsafe {
            let active = self.active.add(function as usize);
            let outermost = u32::from(*active == 0);
            *active += 1;
            let frame = Frame { slot, entered: self.totals.running, function, outermost };
            self.frames.add(self.totals.depth as usize).write(frame);
        }
        self.totals.depth += 1;
    }

    fn pop(&mut self, frame: Frame) {
        self.totals.depth -= 1;
        // SAFETY: a number that `push` has checked.
        unsafe { *self.active.add(frame.function as usize) -= 1 };
        if frame.outermost != 0 {
            self.add(frame.function, 1, self.totals.running.wrapping_sub(frame.entered));
        }
    }

    /// Activations whose return address lies below `sp` were left by a longjmp or an exception.
    fn drop_below(&mut self, sp: u64) {
        while let Some(top) = self.top().filter(|top| top.slot < sp) {
            self.pop(top);
        }
    }

    fn leave(&mut self, slot: u64) {
        if self.top().is_none_or(|top| top.slot != slot) {
            self.drop_below(slot);
        }
        if let Some(top) = self.top().filter(|top| top.slot == slot) {
            self.pop(top);
        }
    }

    fn jump(&mut self, function: u32, enters: bool, sp: u64) {
        if self.top().is_some_and(|top| top.function == function) {
            return;
        }
        self.drop_below(sp);
        let Some(top) = self.top() else {
            if enters {
                self.enter(function, u64::MAX);
            }
            return;
        };
        if top.function == function {
            return;
        }
        self.pop(top);
        if enters {
            self.add(function, 0, 1);
        }
        self.push(function, top.slot);
    }

    fn leave_all(&mut self) {
        while let Some(top) = self.top() {
            self.pop(top);
        }
    }
}

const _: () = assert!(SHADOW_OFFSET > PRIVATE_BYTES && size_of::<FunctionSums>() == 16);
