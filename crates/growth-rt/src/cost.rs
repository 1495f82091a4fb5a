//! What one execution of a path costs: basic blocks, instructions or memory accesses, as `wire::count` defines them.
//! Time is taken at calls and returns instead.

use crate::layout::gs;
use alloc::vec::Vec;
use count_rt::AccessCounter;
use engine::client::StringCounters;
use engine::superblock::{Insn, Kind, Superblock};
use engine::sys;
use iced_x86::{FlowControl, Mnemonic};
use wire::growth::Cost;

/// Costs of the current superblock.
pub struct Costs {
    cost: Cost,
    accesses: AccessCounter,
    /// `prefix[k]`: what the first `k` instructions cost.
    prefix: Vec<u32>,
}

impl Costs {
    /// Of this kind.
    pub fn new(cost: Cost) -> Costs {
        Costs { cost, accesses: AccessCounter::default(), prefix: Vec::new() }
    }

    /// A superblock is about to be translated.
    pub fn block(&mut self, sb: &Superblock) {
        self.prefix.clear();
        let mut sum = 0;
        self.prefix.push(0);
        let Costs { cost, accesses, prefix } = self;
        prefix.extend(sb.insns.iter().map(|insn| {
            sum += one(*cost, accesses, insn);
            sum
        }));
    }

    /// What its first `count` instructions cost.
    pub fn of(&self, count: usize) -> u32 {
        self.prefix.get(count).or(self.prefix.last()).copied().unwrap_or(0)
    }

    /// Where the iterations of a string instruction are counted.
    pub fn string(&mut self, insn: &Insn) -> Option<StringCounters> {
        if self.cost != Cost::Memory || !insn.ins.is_string_instruction() {
            return None;
        }
        let (loads, stores) = self.accesses.count(&insn.ins);
        Some(StringCounters {
            loads: (loads > 0).then_some(gs::COST),
            stores: (stores > 0).then_some(gs::COST),
            loads_each: loads,
        })
    }
}

/// What an instruction costs.
#[inline]
fn one(cost: Cost, accesses: &mut AccessCounter, insn: &Insn) -> u32 {
    let ins = &insn.ins;
    match cost {
        Cost::Blocks if insn.facts.goes_on() => 0,
        Cost::Blocks if matches!(insn.kind, Kind::SideExit | Kind::Again | Kind::InlinedJump) => 1,
        Cost::Blocks => {
            let plain = matches!(ins.flow_control(), FlowControl::Interrupt | FlowControl::Exception);
            u32::from(!plain && ins.mnemonic() != Mnemonic::Syscall)
        }
        Cost::Instructions => 1,
        Cost::Memory => {
            let repeated = ins.has_rep_prefix() || ins.has_repne_prefix();
            if repeated && ins.is_string_instruction() {
                return 0;
            }
            let (loads, stores) = accesses.count(ins);
            u32::from(loads) + u32::from(stores)
        }
        Cost::Time => 0,
    }
}

/// The time-stamp counter.
pub fn ticks() -> u64 {
    // SAFETY: reads a counter that every x86-64 processor has.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The monotonic clock.
pub fn clock_ns() -> u64 {
    const CLOCK_GETTIME: u64 = 228;
    const MONOTONIC: u64 = 1;
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes two words.
    unsafe { sys::call(CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    time[0] * 1_000_000_000 + time[1]
}
