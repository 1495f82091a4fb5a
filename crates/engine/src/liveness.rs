//! Which arithmetic flags matter where.
//!
//! Instrumentation may change flags only where the program will not read them. Inside a superblock the answer
//! is exact; at its exits a short look at the code ahead decides, and when that ends without an answer the
//! flags count as live. At returns, indirect calls and branches through PLT and GOT they are dead as long as `trust.rs` says
//! so. Code that may change without notice is not looked at: it is in a writable page that the looker's own code is not in.

use crate::access::may_stop;
use crate::block::prefetch;
use crate::facts::{self, Facts};
use crate::pages::PAGE_SHIFT;
use crate::region::Regions;
use crate::superblock::{End, Kind, Superblock};
use crate::sys::mm;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::Cell;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// The six arithmetic flags.
pub const ALL: u32 = facts::FLAGS;

/// Instructions looked at beyond an exit.
const AHEAD_MAX: usize = 12;
/// Direct jumps and calls followed on the way.
const JUMPS_MAX: usize = 3;
/// Instructions looked at on the taken side of a conditional jump.
const SIDE_MAX: usize = 6;

/// The flags that an instruction is sure to overwrite, and those that it reads.
#[inline]
pub fn flags(ins: &Instruction, facts: Facts) -> (u32, u32) {
    facts.flags().unwrap_or_else(|| (killed(ins), ins.rflags_read() & ALL))
}

/// The flags that an instruction is sure to overwrite, by its operands.
fn killed(ins: &Instruction) -> u32 {
    // iced reports these as modifying flags; with a zero count they leave them alone.
    match ins.mnemonic() {
        Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Sal
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr
        | Mnemonic::Shld
        | Mnemonic::Shrd => {
            let last = ins.op_count() - 1;
            let wide = ins.op0_register().is_gpr64() || ins.memory_size().size() == 8;
            let mask = if wide { 63 } else { 31 };
            let sure = ins.op_kind(last) == OpKind::Immediate8 && ins.immediate8() & mask != 0;
            if !sure {
                return 0;
            }
        }
        _ if (ins.has_rep_prefix() || ins.has_repne_prefix()) && may_stop(ins) => return 0,
        _ => {}
    }
    ins.rflags_modified() & ALL
}

/// What a look ahead knows.
#[derive(Clone, Copy)]
pub struct Ahead<'a> {
    /// The program's code.
    pub regions: &'a Regions,
    /// Are flags dead at returns?
    pub returns_kill: bool,
    /// And at indirect calls?
    pub calls_kill: bool,
    /// An address in the page whose change would be noticed.
    pub home: u64,
    /// Earlier answers.
    pub memo: &'a Memo,
}

/// Answers of [`Ahead::live`] about code that cannot change without [`Memo::forget`].
pub struct Memo {
    /// Address, generation, answer.
    slots: Vec<Cell<(u64, u32, u32)>>,
    generation: u32,
}

const MEMO_SLOTS: usize = 1 << 12;

impl Default for Memo {
    fn default() -> Self {
        Memo { slots: vec![Cell::new((0, 0, 0)); MEMO_SLOTS], generation: 1 }
    }
}

impl Memo {
    /// One that keeps nothing.
    pub fn none() -> Memo {
        Memo { slots: Vec::new(), generation: 0 }
    }

    /// Code or its protection changed.
    pub fn forget(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    /// The answer about `pc` will be asked for soon.
    pub fn prefetch(&self, pc: u64) {
        if let Some(slot) = self.slot(pc) {
            prefetch(slot.as_ptr() as u64);
        }
    }

    fn slot(&self, pc: u64) -> Option<&Cell<(u64, u32, u32)>> {
        // (Neighbours lie together, as in `block.rs`.)
        let line = (pc >> 5).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54 << 2;
        self.slots.get((line | pc >> 3 & 3) as usize)
    }
}

impl Ahead<'_> {
    /// The bytes at `at`, as far as their change would be noticed.
    fn code(&self, at: u64, bytes: usize) -> &[u8] {
        let bytes = match (self.writable(at), at >> PAGE_SHIFT == self.home >> PAGE_SHIFT) {
            (false, _) => bytes,
            (true, true) => bytes.min(0x1000 - (at & 0xfff) as usize),
            (true, false) => return &[],
        };
        // SAFETY: the holder of `regions` holds the engine lock; the bytes are dropped with the decoder.
        unsafe { self.regions.code(at, bytes) }
    }

    /// The flags that may be read before they are written, starting at `pc`.
    pub fn live(&self, pc: u64) -> u32 {
        let slot = self.memo.slot(pc);
        if let Some((known, generation, live)) = slot.map(Cell::get)
            && known == pc
            && generation == self.memo.generation
        {
            return live;
        }
        let live = self.look(pc, ALL, AHEAD_MAX, JUMPS_MAX);
        if let Some(slot) = slot
            && !self.writable(pc)
            && !self.writable(self.home)
        {
            slot.set((pc, self.memo.generation, live));
        }
        live
    }

    /// Is `ins` an indirect branch through a table of addresses at a fixed place (PLT, GOT)? The binder behind such
    /// entries keeps no flags either.
    fn bound(&self, ins: &Instruction) -> bool {
        self.returns_kill && ins.is_ip_rel_memory_operand()
    }

    fn writable(&self, at: u64) -> bool {
        self.regions.get(at).is_none_or(|r| u64::from(r.prot) & mm::PROT_WRITE != 0)
    }

    fn look(&self, pc: u64, mut open: u32, mut left: usize, mut jumps: usize) -> u32 {
        let mut live = 0;
        let mut at = pc;
        let mut ins = Instruction::default();
        'run: loop {
            let code = self.code(at, left * 15);
            // (Used where it was made: it is large, and `with_ip` would copy it.)
            let mut d = Decoder::try_with_ip(64, code, at, DecoderOptions::NONE);
            let d = d.as_mut().expect("64 bits are a mode");
            while d.can_decode() && left > 0 {
                left -= 1;
                d.decode_out(&mut ins);
                if ins.is_invalid() {
                    return live | open;
                }
                let facts = Facts::of(&ins);
                let (killed, read) = flags(&ins, facts);
                live |= read & open;
                open &= !killed;
                if open == 0 {
                    return live;
                }
                if facts.goes_on() {
                    continue;
                }
                let near = ins.op_count() > 0 && ins.op_kind(0) == OpKind::NearBranch64;
                match ins.flow_control() {
                    FlowControl::Next => {}
                    // Both ways: the taken side with a short budget of its own.
                    FlowControl::ConditionalBranch if near && jumps > 0 => {
                        live |= self.look(ins.near_branch_target(), open, SIDE_MAX, 0);
                        if live & open == open {
                            return live;
                        }
                    }
                    FlowControl::UnconditionalBranch | FlowControl::Call if near && jumps > 0 => {
                        jumps -= 1;
                        at = ins.near_branch_target();
                        continue 'run;
                    }
                    FlowControl::Return if self.returns_kill => return live,
                    FlowControl::IndirectCall if self.calls_kill => return live,
                    FlowControl::IndirectCall | FlowControl::IndirectBranch if self.bound(&ins) => {
                        return live;
                    }
                    _ => return live | open,
                }
            }
            return live | open;
        }
    }
}

/// The flags live behind `sb`.
fn behind(sb: &Superblock, ahead: Ahead<'_>) -> u32 {
    match sb.end {
        End::Jump { target } => ahead.live(target),
        End::Cond { target, next } => ahead.live(target) | ahead.live(next),
        End::Call { target, .. } => ahead.live(target),
        End::Syscall { next } => ahead.live(next),
        End::Return { .. } if ahead.returns_kill => 0,
        End::CallIndirect { .. } if ahead.calls_kill => 0,
        End::CallIndirect { .. } | End::JumpIndirect
            if sb.insns.last().is_some_and(|l| ahead.bound(&l.ins)) =>
        {
            0
        }
        _ => ALL,
    }
}

/// The last place in `first..=last` before whose instruction all flags are dead, `first` being behind all side exits.
///
/// What comes behind the superblock is only looked at if there is no such place otherwise: a comparison before the
/// last jump is all that it takes in most.
pub fn dead_place(sb: &Superblock, ahead: Ahead<'_>, first: usize, last: usize) -> Option<usize> {
    let search = |mut live: u32| {
        let mut k = sb.insns.len();
        loop {
            if live == 0 && k <= last {
                return Some(k);
            }
            if k <= first {
                return None;
            }
            k -= 1;
            let (killed, read) = flags(&sb.insns[k].ins, sb.insns[k].facts);
            live = live & !killed | read;
        }
    };
    if ahead.returns_kill && matches!(sb.end, End::Return { .. }) {
        return search(0);
    }
    search(ALL).or_else(|| match behind(sb, ahead) {
        ALL => None,
        live => search(live),
    })
}

/// Fills `before` with whether any flag is live before each instruction of `sb` (and, if no instruction ends it, behind
/// them), and `at_exits` with the same for its side exits (in order).
pub fn superblock(sb: &Superblock, ahead: Ahead<'_>, before: &mut Vec<bool>, at_exits: &mut Vec<bool>) {
    before.clear();
    before.resize(sb.insns.len() + 1, true);
    at_exits.clear();
    // What comes behind the superblock is only looked at where it makes a difference: most conditional jumps have their
    // comparison before them. `open`: flags that are live if they are behind.
    let (mut live, mut open) = (0, ALL);
    let is_live = |live: &mut u32, open: &mut u32| {
        if *live == 0 && *open != 0 {
            *live = behind(sb, ahead) & *open;
            *open = 0;
        }
        *live != 0
    };
    if sb.insns.last().is_none_or(|last| last.kind != Kind::End) {
        before[sb.insns.len()] = is_live(&mut live, &mut open);
    }
    for (k, insn) in sb.insns.iter().enumerate().rev() {
        if let Some(target) = insn.side_exit() {
            let out = ahead.live(target);
            at_exits.push(out != 0);
            live |= out;
        }
        let (killed, read) = flags(&insn.ins, insn.facts);
        live = live & !killed | read;
        open &= !(killed | read);
        before[k] = is_live(&mut live, &mut open);
    }
    at_exits.reverse();
}
