//! The client behind `farsight count`.
//!
//! Each way out of a superblock gets a counter and a static description of what one execution adds
//! (`wire::count`). Only repeated string instructions and paths that a fault or signal cuts short are counted at
//! run time. Everything is written straight into the shared mapping, so nothing is lost when the program is
//! killed; summing up is the collector's work, or is done here when a thread ends and its slab is reused.
//!
//! # Rules
//! Runs inside the program, under the engine lock: see the engine's rules. Writes only to the shared mapping.
#![no_std]

extern crate alloc;

mod access;
mod calls;
mod functions;
mod lookup;
mod own;
mod running;
mod shared;

pub use access::AccessCounter;
pub use functions::CountFunctions;
pub use running::Running;

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use engine::client::{Client, Forked, StringCounters};
use engine::superblock::{Insn, Superblock};
use iced_x86::{FlowControl, Mnemonic};
use shared::Shared;
use wire::boot::Boot;
use wire::count::{EXITS_MAX, ExitDesc, Split, ThreadTotals, Totals};
use wire::slab::{COUNTERS_OFFSET, TOTALS_OFFSET};

/// Counters kept back for when the others have run out: one per distinct sum, whatever the address.
const RESERVED: u64 = 1 << 16;

/// Counters taken at a time. Whole paths and side exits fill stretches of their own: most side exits are hardly ever
/// taken, and their counters would take up half of the cache lines that the others need.
const STRETCH: u32 = 512;

/// Side exits that fit before their list has to move. Only address space is taken until they are used.
const SIDE_PATHS_RESERVED: usize = 1 << 20;

/// Counts.
pub struct Count {
    shared: Shared,
    accesses: AccessCounter,
    /// `prefix[k]`: what the first `k` instructions of the current superblock add.
    prefix: Vec<ExitDesc>,
    /// Paths to side exits, and their counters once they have one.
    side_paths: Vec<(ExitDesc, Option<u32>)>,
    by_sum: BTreeMap<[u16; 5], u32>,
    /// What is left of the current stretches, for whole paths and for side exits: (next, end).
    stretches: [(u32, u32); 2],
    /// Counters that a slab has room for.
    counters_max: u64,
}

impl Count {
    /// A client that writes to the mapping named in the boot block.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its mapping has the layout of `wire::count`.
    pub unsafe fn new(boot: &Boot) -> Count {
        // SAFETY: passed on.
        unsafe { Count::with_counters(boot, EXITS_MAX) }
    }

    /// # Safety
    /// As for `new`; slabs have room for `counters_max` counters.
    unsafe fn with_counters(boot: &Boot, counters_max: u64) -> Count {
        Count {
            // SAFETY: passed on.
            shared: unsafe { Shared::new(boot) },
            accesses: AccessCounter::default(),
            prefix: Vec::new(),
            side_paths: Vec::with_capacity(SIDE_PATHS_RESERVED),
            by_sum: BTreeMap::new(),
            stretches: [(0, 0); 2],
            counters_max,
        }
    }

    /// A counter for a path, whole or up to a side exit, and whether it is the path's alone.
    fn counter(&mut self, d: ExitDesc, side: bool) -> (u32, bool) {
        let n = self.shared.exits();
        let stretch = &mut self.stretches[usize::from(side)];
        if stretch.0 == stretch.1 && u64::from(n + STRETCH) <= self.counters_max - RESERVED {
            *stretch = (n, n + STRETCH);
            self.shared.extend(STRETCH);
        }
        if stretch.0 < stretch.1 {
            let c = stretch.0;
            stretch.0 += 1;
            self.shared.set_exit(c, d);
            return (c, true);
        }
        self.shared.problem(wire::count::problem::COUNTERS_FULL);
        let d = ExitDesc { function: 0, ..d };
        let key = [d.instructions, d.loads, d.stores, d.blocks.into(), d.calls.into()];
        if let Some(&c) = self.by_sum.get(&key) {
            return (c, false);
        }
        let c = n.min(self.counters_max as u32 - 1);
        self.shared.add_exit(d);
        self.by_sum.insert(key, c);
        (c, false)
    }

    /// What the first `n` instructions of the current superblock add.
    fn prefix(&self, n: usize) -> ExitDesc {
        self.prefix[n.min(self.prefix.len() - 1)]
    }

    fn problem(&mut self, bit: u32) {
        self.shared.problem(bit);
    }

    fn split(&mut self, split: Split) {
        self.shared.add_split(split);
    }

    fn keep_counters(&mut self, slab: u64) {
        self.shared.keep_counters(slab);
    }
}

fn extra_offset(field: usize) -> i32 {
    (TOTALS_OFFSET as usize + core::mem::offset_of!(ThreadTotals, extra) + field) as i32
}

/// Counters for the iterations of a string instruction.
fn string_counters(count: &mut Count, insn: &Insn) -> Option<StringCounters> {
    if !insn.ins.is_string_instruction() {
        return None;
    }
    let (loads, stores) = count.accesses.count(&insn.ins);
    // cmps reads twice per iteration: the engine adds the count once per counter, so both go through here.
    Some(StringCounters {
        loads: (loads > 0).then_some(extra_offset(core::mem::offset_of!(Totals, loads))),
        stores: (stores > 0).then_some(extra_offset(core::mem::offset_of!(Totals, stores))),
        loads_each: loads,
    })
}

impl Client for Count {
    const FOLLOWS_FORKS: bool = true;
    const SIDE_PATHS: bool = true;

    fn block(&mut self, sb: &Superblock) {
        self.prefix.clear();
        let mut d = ExitDesc::default();
        self.prefix.push(d);
        for insn in &sb.insns {
            let flow = insn.ins.flow_control();
            let syscall = insn.ins.mnemonic() == Mnemonic::Syscall;
            let transfer =
                !matches!(flow, FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception)
                    && !syscall;
            d.instructions += 1;
            d.blocks += u8::from(transfer);
            d.calls += u8::from(matches!(flow, FlowControl::Call | FlowControl::IndirectCall) && !syscall);
            let repeated = insn.ins.has_rep_prefix() || insn.ins.has_repne_prefix();
            if !(repeated && insn.ins.is_string_instruction()) {
                let (loads, stores) = self.accesses.count(&insn.ins);
                d.loads += loads;
                d.stores += stores;
            }
            self.prefix.push(d);
        }
    }

    fn path_counter(&mut self, sb: &Superblock, count: usize) -> Option<i32> {
        let d = self.prefix[count];
        let counter = self.counter(d, count < sb.insns.len()).0;
        Some((COUNTERS_OFFSET + u64::from(counter) * 8) as i32)
    }

    fn side_path(&mut self, _: &Superblock, count: usize) -> Option<u32> {
        self.side_paths.push((self.prefix[count], None));
        Some(self.side_paths.len() as u32 - 1)
    }

    fn counter_of(&mut self, path: u32) -> i32 {
        let (d, known) = self.side_paths[path as usize];
        let counter = known.unwrap_or_else(|| self.counter(d, true).0);
        self.side_paths[path as usize].1 = Some(counter);
        (COUNTERS_OFFSET + u64::from(counter) * 8) as i32
    }

    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters> {
        string_counters(self, insn)
    }

    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>) {
        self.block(sb);
        let done = self.prefix[count.min(self.prefix.len() - 1)];
        let credited = counted.map_or(ExitDesc::default(), |n| self.prefix[n.min(self.prefix.len() - 1)]);
        self.shared.correct(slab, &done.into(), &credited.into());
    }

    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool) {
        self.shared.thread_start(slab, tid, counts);
    }

    fn thread_end(&mut self, slab: u64, tid: u32) {
        self.shared.thread_end(slab, tid);
    }

    fn forked(&mut self, _boot: &Boot, child: &Forked) {
        self.shared.forked(child);
        self.shared.thread_start(child.slab, child.tid, true);
    }

    fn handed_back(&mut self) {
        self.shared.problem(wire::count::problem::DETACHED);
    }

    fn process_end(&mut self) {
        self.shared.save_maps();
    }
}
