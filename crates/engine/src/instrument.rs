//! Instrumentation inside superblocks: which registers are lent to the client, and where its code goes.
//!
//! A superblock that has events lends registers that none of its instructions mentions. Their values go to
//! `borrow` slots at the block's start and come back before its last instruction and on its side exits:
//! ```text
//! entry: mov gs:[borrow+11*8], r11     ; all registers are the program's
//!        mov gs:[borrow+10*8], r10
//!        ...                            ; body, with the client's code
//!        mov r11, gs:[borrow+11*8]
//!        mov r10, gs:[borrow+10*8]      ; all registers are the program's
//!        last instruction
//! ```
//! A block that ends in a jump to or a call of a known address keeps them lent: the exit leads behind the spills of the next block
//! if that lends the same ones (so that loops spill nothing), or through a stub that makes the difference.
//!
//! Because the block does not mention them, the slots hold their values all along: a fault or signal at a mapped
//! address of the body takes them from there (`addrmap.rs`, `BORROWED`). A superblock ends early where too few
//! registers would be left over.

use crate::access::{Access, Accesses, Finder, Found};
use crate::addrmap::Point;
use crate::block::prefetch;
use crate::client::Client;
use crate::complex::{self, Complex};
use crate::edges::Edge;
use crate::emit::{Asm, Reg};
use crate::engine::Engine;
use crate::entrance::scratch_of;
use crate::events::{Emit, Events, SCRATCH_MAX, call_out, wanted};
use crate::state::off;
use crate::superblock::{End, Insn, Kind, Superblock};
use crate::translate::Streams;
use alloc::boxed::Box;
use alloc::vec::Vec;
use iced_x86::InstructionInfoFactory;

/// Order in which registers are lent: those that compilers use last. Never rax (flags go through it) and rsp.
const LENT: [Reg; 14] = [11, 10, 9, 8, 15, 14, 13, 12, 3, 5, 7, 6, 2, 1];

/// The same, as bits.
const LENT_BITS: u16 = {
    let (mut bits, mut i) = (0, 0);
    while i < LENT.len() {
        bits |= 1 << LENT[i];
        i += 1;
    }
    bits
};

/// What is known about the superblock being made.
pub(crate) struct Plan {
    finder: Finder,
    factory: InstructionInfoFactory,
    accesses: Vec<Access>,
    /// Instructions with other ones.
    others: Vec<(usize, Accesses)>,
    /// Next access to be emitted.
    cursor: usize,
    /// What the last instruction is to the client.
    pub edge: Option<Edge>,
    /// Lent to the client.
    pub scratch: [Reg; SCRATCH_MAX],
    /// The same, as bits; 0 when the block has no events.
    pub borrowed: u16,
    /// Registers to lend by preference: those that the block before lends.
    pub hint: u16,
    /// The word that the block ends with a jump through, if its target is compared with at the jump.
    pub bound: Option<u64>,
    /// The block that is made next begins a routine that is being called: its entrance comes before it.
    pub called: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            finder: Finder::default(),
            factory: InstructionInfoFactory::new(),
            accesses: Vec::new(),
            others: Vec::new(),
            cursor: 0,
            edge: None,
            scratch: [LENT[0]; SCRATCH_MAX],
            borrowed: 0,
            hint: 0,
            bound: None,
            called: false,
        }
    }
}

impl Plan {
    /// What instruction `k` accesses, if that is to be worked out at run time.
    fn other(&self, k: usize) -> Option<Accesses> {
        self.others.iter().find(|other| other.0 == k).map(|other| other.1)
    }
}

impl<C: Client> Engine<C> {
    /// The events that are wanted in this run.
    pub(crate) fn events(&self) -> Events {
        if self.counting { C::EVENTS } else { Events::NONE }
    }

    /// Decodes a superblock, and ends it where it would use too many registers.
    pub(crate) fn decode(&mut self, sb: &mut Superblock, pc: u64, max: usize) {
        sb.decode(&self.regions, pc, max);
        self.prefetch(sb);
        let mut events = self.events();
        if !events.inline() {
            return;
        }
        if events.calls {
            self.end_at_tail(sb);
        }
        if !self.client.sees_accesses(pc) {
            events = events.without_accesses();
        }
        let plan = &mut self.plan;
        plan.accesses.clear();
        plan.others.clear();
        plan.cursor = 0;
        plan.edge = None;
        plan.borrowed = 0;
        let (mut used, mut free) = (0u16, LENT.len());
        let mut needed = false;
        for k in 0..sb.insns.len() {
            let insn = &sb.insns[k];
            let first = plan.accesses.len();
            let Found { accesses: kind, mentions, writes } = plan.finder.find(insn, k, &mut plan.accesses);
            if mentions & !used != 0 {
                free = (LENT_BITS & !(used | mentions)).count_ones() as usize;
            }
            if free < events.scratch.max(1) && k > 0 {
                plan.accesses.truncate(first);
                sb.end = End::Jump { target: sb.insns[k].pc() };
                sb.insns.truncate(k);
                break;
            }
            used |= mentions;
            if plan.accesses[first..].iter().any(|a| !wanted(&events, a)) {
                plan.accesses.retain(|a| a.index != k || wanted(&events, a));
            }
            let kind = if events.data { kind } else { Accesses::Simple };
            if kind != Accesses::Simple {
                plan.others.push((k, kind));
            }
            sb.insns[k].writes = writes;
            needed |= plan.accesses.len() > first || kind != Accesses::Simple;
        }
        if events.calls
            && let Some(last) = sb.insns.last().filter(|i| i.kind == Kind::End)
        {
            self.plan.edge = self.edge_of(last);
            needed |= self.plan.edge.is_some();
        }
        if needed {
            let plan = &mut self.plan;
            let hint = plan.hint;
            let mut choice = [LENT[0]; LENT.len() + SCRATCH_MAX];
            let mut n = 0;
            for preferred in [hint & !used, !hint & !used] {
                for r in LENT {
                    choice[n] = r;
                    n += usize::from(preferred >> r & 1);
                }
            }
            choice[n] = LENT[0];
            for (slot, r) in plan.scratch.iter_mut().zip(choice).take(events.scratch.max(1)) {
                *slot = r;
                plan.borrowed |= 1 << r;
            }
        } else if self.plan.hint != 0 && self.plan.hint & (used | !LENT_BITS) == 0 {
            // Nothing needs them, and nothing needs them back.
            let plan = &mut self.plan;
            plan.borrowed = plan.hint;
            plan.scratch = scratch_of(plan.hint);
        }
    }

    /// Brings nearer what will be asked about where a superblock may go, while there is other work: each answer is a cache
    /// miss.
    fn prefetch(&self, sb: &Superblock) {
        let side_exits = sb.insns.iter().filter(|i| i.kind == Kind::SideExit);
        for target in side_exits.map(|i| i.ins.near_branch_target()) {
            prefetch(target);
            self.memo.prefetch(target);
            self.blocks.prefetch_at(target);
        }
        let (to, behind) = match sb.end {
            End::Jump { target } => (Some(target), None),
            End::Cond { target, next } | End::Call { target, next } => (Some(target), Some(next)),
            End::CallIndirect { next } | End::Syscall { next } => (None, Some(next)),
            _ => (None, None),
        };
        for pc in to.into_iter().chain(behind) {
            prefetch(pc);
            self.memo.prefetch(pc);
            self.blocks.prefetch_at(pc);
        }
        if let (End::Call { next, .. } | End::CallIndirect { next }, Some(call)) = (sb.end, sb.insns.last()) {
            self.blocks.prefetch_call(call.pc(), to);
            self.owners.prefetch(next);
        }
    }

    /// Ends a superblock at the first jump that is a tail call: what the path adds is counted before its last
    /// instruction's events, not before those in its middle.
    fn end_at_tail(&mut self, sb: &mut Superblock) {
        let tail = (0..sb.insns.len())
            .find(|&k| sb.insns[k].kind == Kind::InlinedJump && self.edge_of(&sb.insns[k]).is_some());
        if let Some(k) = tail {
            sb.end = End::Jump { target: sb.insns[k].ins.near_branch_target() };
            sb.insns[k].kind = Kind::End;
            sb.insns.truncate(k + 1);
        }
    }

    /// Lends registers at the start of block `id`; `lent` are where control falls into it.
    pub(crate) fn lend(&mut self, s: &mut Streams, id: u32, lent: u16) {
        let borrowed = self.plan.borrowed;
        if borrowed | lent == 0 {
            return;
        }
        if lent == 0 {
            if let Some(i) = self.sb.insns.first() {
                self.maps.add(0, i.ins.len(), Point::Before, 0);
            }
            spill(&mut s.hot, borrowed);
        } else {
            unspill(&mut s.hot, lent & !borrowed);
            spill(&mut s.hot, borrowed & !lent);
            // Those who come with nothing lent.
            let entry = if borrowed == 0 { s.hot.here() } else { s.cold.here() };
            if borrowed != 0 {
                spill(&mut s.cold, borrowed);
                let warm = s.hot.here();
                s.cold.jmp(warm);
            }
            self.blocks.list[id as usize].entry = entry;
        }
        self.blocks.list[id as usize].warm = s.hot.here();
        self.maps.set_borrowed(borrowed != 0);
    }

    /// Do registers stay lent across the last instruction of the decoded superblock, until its jump?
    pub(crate) fn stays_lent(&self) -> bool {
        match self.sb.end {
            End::Jump { .. } | End::Cond { .. } | End::Call { .. } => true,
            End::CallIndirect { .. } | End::JumpIndirect => self.lent_at_returns() != 0,
            _ => false,
        }
    }

    /// Registers that are lent where control falls out of the decoded superblock, or jumps to a known address.
    pub(crate) fn lent_at_end(&self) -> u16 {
        match self.sb.end {
            End::Jump { .. } | End::Cond { .. } => self.plan.borrowed,
            End::Call { .. } | End::CallIndirect { .. } => self.lent_at_returns(),
            _ => 0,
        }
    }

    /// Takes the registers back before the last instruction.
    pub(crate) fn take_back(&mut self, s: &mut Streams) {
        unspill(&mut s.hot, self.plan.borrowed);
        self.maps.set_borrowed(false);
    }

    /// The next of the `n` instructions that has events, as far as is known; `n` if none has.
    pub(crate) fn next_event(&self, n: usize) -> usize {
        let plan = &self.plan;
        if plan.borrowed == 0 {
            return n;
        }
        if !plan.others.is_empty() {
            return 0;
        }
        plan.accesses.get(plan.cursor).map_or(n, |a| a.index)
    }

    /// Has instruction `k` events that are noted before it?
    pub(crate) fn has_events(&mut self, k: usize, insn: &Insn) -> bool {
        if self.plan.borrowed == 0 {
            return false;
        }
        let simple = self.plan.accesses.get(self.plan.cursor).is_some_and(|a| a.index == k);
        simple || self.plan.other(k).is_some() || insn.kind == Kind::End && self.plan.edge.is_some()
    }

    /// Emits what notes the events of instruction `k`, before it.
    pub(crate) fn note_events(&mut self, s: &mut Streams, k: usize, insn: &Insn) {
        let flags_live = self.live_before[k];
        while let Some(&a) = self.plan.accesses.get(self.plan.cursor).filter(|a| a.index == k) {
            self.plan.cursor += 1;
            let mut e = emit(s, &self.plan, flags_live);
            self.client.access(&mut e, &self.sb, &a);
            e.restore_flags();
        }
        match self.plan.other(k) {
            None | Some(Accesses::Simple) => {}
            Some(Accesses::Complex) => self.complex_access(s, insn, flags_live),
            Some(Accesses::ComplexAfter) => s.hot.store_gs(off::STRING_COUNT, crate::emit::reg::RCX),
        }
        if insn.kind == Kind::End && !self.shares_return() {
            self.note_edge(s, flags_live);
        }
    }

    /// Emits what notes events of instruction `k` that show only behind it.
    pub(crate) fn note_after(&mut self, s: &mut Streams, k: usize, insn: &Insn) {
        if self.plan.borrowed != 0 && self.plan.other(k) == Some(Accesses::ComplexAfter) {
            let c = Complex::new(&mut self.plan.factory, &insn.ins, true);
            c.into_iter().for_each(|c| self.complex_call(s, c));
        }
    }

    fn complex_access(&mut self, s: &mut Streams, insn: &Insn, flags_live: bool) {
        let Some(c) = Complex::new(&mut self.plan.factory, &insn.ins, false) else { return };
        if let Some(masked) = c.masked() {
            let mut e = emit(s, &self.plan, flags_live);
            if self.client.masked(&mut e, &masked) {
                return e.restore_flags();
            }
        }
        self.complex_call(s, c);
    }

    fn complex_call(&mut self, s: &mut Streams, c: Complex) {
        let c: &'static Complex = Box::leak(Box::new(c));
        let r = self.plan.scratch[0];
        s.hot.mov_imm64(r, core::ptr::from_ref(c) as u64);
        call_out(&mut s.hot, self.plan.borrowed.into(), complex::TOKEN, r);
    }
}

/// An emission site in the body of a block.
pub(crate) fn emit<'a>(s: &'a mut Streams, plan: &Plan, flags_live: bool) -> Emit<'a> {
    Emit {
        hot: &mut s.hot,
        cold: &mut s.cold,
        scratch: plan.scratch,
        flags_live,
        shared: false,
        borrowed: plan.borrowed.into(),
        flags_kept: false,
    }
}

/// The registers that are given as bits.
pub(crate) fn each(mut registers: u16) -> impl Iterator<Item = Reg> {
    core::iter::from_fn(move || {
        let r = registers.trailing_zeros() as Reg;
        let some = registers != 0;
        registers &= registers.wrapping_sub(1);
        some.then_some(r)
    })
}

/// Values of these registers into their slots.
pub(crate) fn spill(a: &mut Asm, registers: u16) {
    for r in each(registers) {
        a.store_gs(off::borrow(r), r);
    }
}

/// And back.
pub(crate) fn unspill(a: &mut Asm, registers: u16) {
    for r in each(registers) {
        a.load_gs(r, off::borrow(r));
    }
}
