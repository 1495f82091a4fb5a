//! Translation: superblocks into the cache.
//!
//! One call makes a chain of blocks that follow each other in memory: after a call the block at the return
//! address, after a loop's backward jump the code behind it, and so on. A junction between two blocks of a
//! chain is a five-byte nop that can be turned into a jump when the second one is flushed.
//!
//! The program's instructions are copied byte for byte. Only control transfers and system calls are replaced
//! (`callret.rs` and below), and RIP-relative displacements adjusted.

use crate::access::may_stop;
use crate::addrmap::Point;
use crate::block::{Block, Exit, ExitKind, NONE, prefetch};
use crate::bump::{Bump, add_rcx};
use crate::cache::Arena;
use crate::client::Client;
use crate::emit::{Asm, Reg, patch_rel32, reg};
use crate::engine::Engine;
use crate::instrument::{spill, unspill};
use crate::liveness::{self, Ahead};
use crate::modrm::{Mem, Size};
use crate::pages;
use crate::state::off;
use crate::superblock::{End, INSNS_MAX, Insn, Kind};
use alloc::vec::Vec;
use core::ops::Range;
use iced_x86::{
    Code, Encoder, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand, OpKind, Register,
};

/// Blocks made in one go.
const CHAIN_MAX: usize = 4;

/// A call's out-of-line part, emitted behind the chain.
pub(crate) struct Tail {
    /// Displacement of the `call`.
    pub site: u64,
    /// The program's return address.
    pub ret: u64,
    /// Where that address lies as a constant.
    pub pool: u64,
    /// The callee, or `None` when it is in r11.
    pub target: Option<u64>,
    /// The block.
    pub block: u32,
    /// An indirect call with a cache at its site.
    pub cached: bool,
    /// Registers that are lent on the way, for a direct call.
    pub lent: u16,
}

/// An exit whose stub is emitted behind the block.
pub(crate) struct Pending {
    site: u64,
    target: u64,
    counter: Option<Bump>,
    /// The client's name for the path, if its counter is taken later.
    path: Option<u32>,
    /// Registers that are lent there and must be given back.
    lent: (u16, [Reg; crate::events::SCRATCH_MAX]),
    /// A tail call, and whether flags are live on it.
    tail: Option<(crate::edges::Edge, bool)>,
}

/// Where code goes while a chain is made.
pub(crate) struct Streams {
    pub hot: Asm,
    pub cold: Asm,
    pub arena: usize,
    pub tails: Vec<Tail>,
    pending: Vec<Pending>,
}

/// The most that a call of [`Engine::translate`] can meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// No room for code.
    CacheFull,
    /// The program may not execute this address.
    NotExecutable {
        /// The instruction.
        pc: u64,
        /// The first byte that cannot be fetched.
        at: u64,
    },
    /// An instruction that the engine cannot run.
    Unsupported(u64),
}

impl<C: Client> Engine<C> {
    /// Translates the block at `pc` and some that follow it.
    pub fn translate(&mut self, pc: u64) -> Result<u32, Trouble> {
        if self.boot.flags & wire::boot::flags::VERBOSE != 0 {
            crate::bug::Line::new().text(b"farsight: translate ").hex(pc).print();
        }
        prefetch(pc);
        self.cache.reserve_stubs(self.blocks.exits.len());
        let a = self.cache.arena_for(pc, &self.regions).ok_or(Trouble::CacheFull)?;
        self.blocks.keep_ahead();
        self.maps.keep_ahead();
        self.cache.arena(a).keep_ahead();
        let mut s = self.streams(a);
        s.hot.align(16);
        let mut first = NONE;
        let mut at = pc;
        let mut junction = NONE;
        let mut lent = 0;
        for depth in 0..CHAIN_MAX {
            let max = if self.single_step() { 1 } else { INSNS_MAX };
            let mut sb = core::mem::take(&mut self.sb);
            self.decode(&mut sb, at, max);
            self.sb = sb;
            if self.trust_is_betrayed() {
                if depth == 0 {
                    self.end_trust();
                    return self.translate(pc);
                }
                // Perhaps control never gets there: what lies behind a call of `abort` means nothing.
                self.cut_junction(&mut s.cold, junction);
                break;
            }
            let trouble = match self.sb.end {
                End::NotExecutable { pc, at } => Some(Trouble::NotExecutable { pc, at }),
                End::Unsupported { pc } => Some(Trouble::Unsupported(pc)),
                _ => None,
            };
            if let Some(trouble) = trouble {
                if depth == 0 {
                    return Err(trouble);
                }
                // Perhaps control never gets there: leave the question to the dispatcher.
                self.cut_junction(&mut s.cold, junction);
                break;
            }
            if depth == 0 {
                if core::mem::take(&mut self.plan.called) {
                    (junction, lent) = self.entrance_ahead(&mut s, pc);
                } else {
                    lent = self.emit_prefix(&mut s);
                }
            }
            let id = self.block(&mut s, lent);
            if junction != NONE {
                self.blocks.exits[junction as usize].to = id;
                self.add_incoming(id, junction);
            }
            if first == NONE {
                first = id;
            }
            let Some(next) = self.after(&mut s, id) else { break };
            lent = self.lent_at_end();
            let more = depth + 1 < CHAIN_MAX
                && s.hot.room() > 1 << 18
                && self.blocks.find(next).is_none()
                && self.can_chain(next);
            if !more {
                let site = jmp_exit(&mut s.hot);
                self.direct_exit(&mut s, id, site, next, lent);
                self.finish_block(&mut s, id);
                break;
            }
            let site = s.hot.junction();
            junction = self.new_exit(Exit { lent, ..Exit::new(id, ExitKind::Junction, next, site) });
            self.finish_block(&mut s, id);
            self.plan.hint = lent;
            at = next;
        }
        self.plan.hint = 0;
        self.tails(&mut s);
        self.keep_streams(s);
        Ok(first)
    }

    /// Emits the entrance of the routine at `pc` before its first block, which has been decoded. Returns the junction
    /// between them, and the registers that are lent there.
    fn entrance_ahead(&mut self, s: &mut Streams, pc: u64) -> (u32, u16) {
        let (id, lent) = self.emit_entrance(s, pc, self.plan.borrowed);
        let site = s.hot.junction();
        let junction = self.new_exit(Exit { lent, ..Exit::new(id, ExitKind::Junction, pc, site) });
        self.finish_block(s, id);
        (junction, lent)
    }

    /// The free parts of an arena's streams, to be given back by [`Engine::keep_streams`].
    pub(crate) fn streams(&mut self, a: usize) -> Streams {
        let arena = self.cache.arena(a);
        // SAFETY: the streams' free parts belong to whoever holds the engine lock.
        unsafe {
            Streams {
                hot: Asm::new(arena.hot, arena.hot_end()),
                cold: Asm::new(arena.cold, arena.cold_end()),
                arena: a,
                tails: core::mem::take(&mut self.spare.0),
                pending: core::mem::take(&mut self.spare.1),
            }
        }
    }

    /// What was emitted stays.
    pub(crate) fn keep_streams(&mut self, s: Streams) {
        let arena = self.cache.arena(s.arena);
        arena.hot = s.hot.here();
        arena.cold = s.cold.here();
        self.spare = (s.tails, s.pending);
    }

    /// May a chain go on at `next`? Not when nothing can be decoded there: the program may never get there.
    fn can_chain(&self, next: u64) -> bool {
        self.regions.executable_end(next).is_some_and(|end| end - next >= 16)
    }

    /// Emits the body of the decoded superblock, up to its last instruction.
    ///
    /// `lent`: registers that are lent where control falls into it.
    fn block(&mut self, s: &mut Streams, lent: u16) -> u32 {
        let id = self.blocks.list.len() as u32;
        let entry = s.hot.here();
        let exits = self.blocks.exits.len() as u32;
        self.blocks.list.push(Block {
            pc: self.sb.pc,
            entry,
            warm: entry,
            base: entry,
            hot_end: entry,
            incoming: NONE,
            exits,
            exit_count: 0,
            arena: s.arena as u16,
            bump: u8::MAX,
            map: self.maps.next(),
            borrowed: self.plan.borrowed,
            live: true,
            source: 0,
        });
        self.blocks.set(self.sb.pc, id);
        self.cache.arena(s.arena).note(entry, s.cold.here(), id);
        let mut pages = core::mem::take(&mut self.page_list);
        match self.sb.straight() {
            Some(code) => {
                pages::distinct([(code.start, (code.end - code.start) as usize)].into_iter(), &mut pages)
            }
            None => pages::distinct(self.sb.insns.iter().map(|i| (i.pc(), i.ins.len())), &mut pages),
        }
        if pages.is_empty() {
            pages.push(self.sb.pc & !0xfff);
        }

        let n = self.sb.insns.len();
        let counting = self.counting;
        let mut bump = None;
        if counting {
            self.client.block(&self.sb);
            bump = self.place_bump(n);
            self.blocks.list[id as usize].bump = bump.map_or(u8::MAX, |b| b.0 as u8);
        }
        if self.protect_code(&pages, id) {
            let hash = self.sb.insns.iter().fold(1, |h, i| hash_bytes(h, i.pc(), i.ins.len()));
            self.blocks.list[id as usize].source = hash;
        }
        self.page_list = pages;
        let mut side = 0;
        self.lend(s, id, lent);
        let lent = (self.plan.borrowed, self.plan.scratch);
        let bump_at = bump.map_or(n, |b| b.0);
        let mut next = 0;
        loop {
            let quiet = self.next_event(n).min(if next <= bump_at { bump_at } else { n });
            let k = self.copy_run(s, entry, next..quiet);
            next = k + 1;
            if k >= n {
                break;
            }
            let insn = self.sb.insns[k];
            let bumped = bump.is_some_and(|b| b.0 == k);
            if let Some((at, counters)) = bump
                && at == k
            {
                self.maps.add(s.hot.here() - entry, insn.ins.len(), Point::Before, 0);
                counters.emit(&mut s.hot);
            }
            let noted = self.has_events(k, &insn);
            if noted {
                if !bumped {
                    self.maps.add(s.hot.here() - entry, insn.ins.len(), Point::Before, 0);
                }
                self.note_events(s, k, &insn);
            }
            if insn.kind == Kind::End {
                self.plan.bound = self.bound_table(s);
                if !self.stays_lent() && !self.shares_return() && self.plan.bound.is_none() {
                    self.take_back(s);
                }
                if noted && !self.shares_return() {
                    self.maps.set_noted();
                }
            }
            match insn.kind {
                Kind::Plain | Kind::RipRelative(_) => {
                    self.copy(s, entry, &insn, bumped || noted);
                    if noted {
                        self.maps.noted();
                        self.note_after(s, k, &insn);
                    }
                }
                Kind::InlinedJump => {
                    self.maps
                        .jump(insn.ins.len(), insn.ins.near_branch_target().wrapping_sub(insn.next()) as i64);
                }
                Kind::SideExit | Kind::Again => {
                    let target = insn.side_exit().expect("such a jump leaves on the side");
                    let live = self.live_exits.get(side).is_some_and(|live| *live);
                    let taken = insn.kind == Kind::SideExit;
                    let tail = if taken { self.tail_of(&insn, target).map(|t| (t, live)) } else { None };
                    let (path, counter) = if self.counts_later() && tail.is_none() {
                        (self.client.side_path(&self.sb, k + 1), None)
                    } else if counting {
                        (None, self.bump_of(k + 1, !live))
                    } else {
                        (None, None)
                    };
                    side += 1;
                    self.map_copy(entry, &insn, s.hot.here());
                    let site =
                        if taken { cond_exit(&mut s.hot, &insn) } else { cond_exit_else(&mut s.hot, &insn) };
                    s.pending.push(Pending { site, target, counter, path, lent, tail });
                    if !taken {
                        self.maps.go_on(insn.ins.near_branch_target().wrapping_sub(insn.next()) as i64);
                    }
                }
                Kind::End => {}
            }
        }
        if let Some((at, counters)) = bump
            && at == n
        {
            counters.emit(&mut s.hot);
        }
        id
    }

    /// Where in the last stretch the path's counters are bumped: before which instruction, and what.
    fn place_bump(&mut self, n: usize) -> Option<(usize, Bump)> {
        let first = self.sb.insns.iter().rposition(|i| i.side_exit().is_some()).map_or(0, |k| k + 1);
        let ends_with_insn = self.sb.insns.last().is_some_and(|i| i.kind == Kind::End);
        let last = if ends_with_insn { n - 1 } else { n };
        let ahead = Ahead {
            regions: &self.regions,
            returns_kill: self.returns_kill_flags(),
            calls_kill: self.calls_kill_flags(),
            home: self.sb.pc,
            memo: &self.memo,
        };
        let dead = if self.counts_later() && !self.events().inline() {
            liveness::dead_place(&self.sb, ahead, first, last)
        } else {
            liveness::superblock(&self.sb, ahead, &mut self.live_before, &mut self.live_exits);
            (first..=last).rev().find(|&k| !self.live_before[k])
        };
        Some((dead.unwrap_or(last), self.bump_of(n, dead.is_some())?))
    }

    /// What the path of the first `n` instructions adds, where flags are dead or not.
    fn bump_of(&mut self, n: usize, flags_dead: bool) -> Option<Bump> {
        let counter = self.client.path_counter(&self.sb, n)?;
        let amount = self.client.path_amount(&self.sb, n);
        Some(Bump::new(counter, amount, flags_dead).and(self.client.path_cost(&self.sb, n)))
    }

    /// Copies the first ones of these instructions, as far as nothing but their bytes matters. Returns the first other one.
    fn copy_run(&mut self, s: &mut Streams, entry: u64, run: Range<usize>) -> usize {
        for k in run.clone() {
            let Insn { ins, kind, facts, .. } = &self.sb.insns[k];
            let repeated = ins.has_rep_prefix() || ins.has_repne_prefix();
            if *kind != Kind::Plain || repeated || !facts.goes_on() {
                return k;
            }
            self.maps.copied(s.hot.here() - entry, ins.len());
            // SAFETY: the instruction was just decoded from these bytes, under the same lock.
            unsafe { s.hot.instruction(ins.ip(), ins.len()) };
        }
        run.end.max(run.start)
    }

    /// Copies one instruction.
    fn copy(&mut self, s: &mut Streams, entry: u64, insn: &Insn, bumped: bool) {
        let ins = &insn.ins;
        let strings = if self.counting && (ins.has_rep_prefix() || ins.has_repne_prefix()) {
            self.client.string_counters(insn)
        } else {
            None
        };
        if let Some(c) = strings {
            // (A bump in front has its own point, and between the two nothing is mapped.)
            if !bumped {
                self.maps.add(s.hot.here() - entry, ins.len(), Point::Before, 0);
            }
            for counter in c.each() {
                add_rcx(&mut s.hot, counter, false);
            }
        }
        let at = s.hot.here();
        match insn.kind {
            Kind::RipRelative(d) => {
                let disp = ins.ip_rel_memory_address().wrapping_sub(at + ins.len() as u64) as i64;
                if let (Ok(disp), false) = (i32::try_from(disp), ins.memory_base() == Register::EIP) {
                    self.map_copy(entry, insn, at);
                    // SAFETY: the instruction was just decoded from these bytes, under the same lock.
                    unsafe { s.hot.instruction(ins.ip(), ins.len()) };
                    s.hot.overwrite(at + u64::from(d), disp);
                } else {
                    self.copy_far(s, entry, insn);
                }
            }
            _ => {
                self.map_copy(entry, insn, at);
                // SAFETY: the instruction was just decoded from these bytes, under the same lock.
                unsafe { s.hot.instruction(ins.ip(), ins.len()) };
                if !insn.facts.goes_on() && ins.flow_control() == FlowControl::Interrupt {
                    // Traps report the address behind them, which may be a junction.
                    self.maps.reopen();
                    self.maps.add(s.hot.here() - entry, ins.len(), Point::After, 0);
                    self.maps.conclude();
                }
            }
        }
        if let Some(c) = strings
            && may_stop(ins)
        {
            for counter in c.each() {
                add_rcx(&mut s.hot, counter, true);
            }
        }
    }

    /// The copy of `insn` is at `at`, and no more is mapped for it.
    fn map_copy(&mut self, entry: u64, insn: &Insn, at: u64) {
        self.maps.add(at - entry, insn.ins.len(), Point::Copy, 0);
        self.maps.conclude();
    }

    /// Copies an instruction whose RIP-relative operand is out of reach, through a register that it does not use.
    fn copy_far(&mut self, s: &mut Streams, entry: u64, insn: &Insn) {
        let scratch = self.unused_register(&insn.ins);
        let target = insn.ins.ip_rel_memory_address();
        let mut ins = insn.ins;
        ins.set_memory_base(GPR64[usize::from(scratch)]);
        ins.set_memory_displacement64(0);
        ins.set_memory_displ_size(0);
        self.maps.add(s.hot.here() - entry, ins.len(), Point::Before, 0);
        s.hot.store_gs(off::SPILL_X, scratch);
        s.hot.mov_imm64(scratch, target);
        self.maps.add(s.hot.here() - entry, insn.ins.len(), Point::Borrowed, scratch);
        self.maps.conclude();
        self.encode(&mut s.hot, &ins);
        s.hot.load_gs(scratch, off::SPILL_X);
    }

    /// Encodes an instruction made by us. Few programs need it, and iced makes a megabyte of tables first.
    fn encode(&mut self, a: &mut Asm, ins: &Instruction) {
        let encoder = self.encoder.get_or_insert_with(|| Encoder::new(64));
        encoder.encode(ins, a.here()).expect("an instruction made from a decoded one can be encoded");
        let bytes = encoder.take_buffer();
        a.bytes(&bytes);
        encoder.set_buffer(Vec::new());
    }

    fn unused_register(&mut self, ins: &Instruction) -> Reg {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(ins);
        let used: Vec<Register> =
            info.used_registers().iter().map(|u| u.register().full_register()).collect();
        [11u8, 10, 9, 8, 15, 14, 13, 12, 3, 5]
            .into_iter()
            .find(|r| !used.contains(&GPR64[usize::from(*r)]))
            .unwrap_or(reg::R11)
    }

    /// Emits what ends the superblock. Returns the address to go on at, if control falls out of the block.
    fn after(&mut self, s: &mut Streams, id: u32) -> Option<u64> {
        let entry = self.blocks.list[id as usize].base;
        let last = self.sb.insns.last().copied();
        let next = match self.sb.end {
            End::Jump { target } => {
                if let Some(l) = last
                    && l.kind == Kind::End
                {
                    self.map_copy(entry, &l, s.hot.here());
                }
                Some(target)
            }
            End::Cond { target, next } => {
                let l = last.expect("a conditional end has its jump");
                self.map_copy(entry, &l, s.hot.here());
                let site = cond_exit(&mut s.hot, &l);
                let tail = self.tail_of(&l, target).map(|t| (t, true));
                let lent = (self.plan.borrowed, self.plan.scratch);
                s.pending.push(Pending { site, target, counter: None, path: None, lent, tail });
                Some(next)
            }
            End::Call { target, next } => {
                let l = last.expect("a call end has its call");
                if self.reuse_call(s, id, &l) {
                    None
                } else {
                    self.map_copy(entry, &l, s.hot.here());
                    self.emit_call(s, id, Some(target), next, false);
                    Some(next)
                }
            }
            End::CallIndirect { next } => {
                let l = last.expect("an indirect call end has its call");
                if self.reuse_call(s, id, &l) {
                    self.finish_block(s, id);
                    return None;
                }
                self.maps.add(s.hot.here() - entry, l.ins.len(), Point::Copy, 0);
                self.load_target(s, entry, &l.ins);
                self.maps.add(s.hot.here() - entry, l.ins.len(), Point::Spilled, 0);
                self.emit_call(s, id, None, next, l.ins.is_ip_rel_memory_operand());
                Some(next)
            }
            End::JumpIndirect => {
                let l = last.expect("an indirect jump end has its jump");
                self.maps.add(s.hot.here() - entry, l.ins.len(), Point::Copy, 0);
                let forwards = self.in_forwarder();
                match self.plan.bound {
                    Some(table) => self.emit_bound(s, id, table, forwards),
                    None => {
                        self.load_target(s, entry, &l.ins);
                        self.emit_indirect(s, id, l.ins.is_ip_rel_memory_operand(), forwards);
                    }
                }
                None
            }
            End::Return { pop } => {
                let l = last.expect("a return end has its return");
                if self.shares_return() {
                    self.emit_shared_return(s, entry, &l);
                } else {
                    self.emit_return(s, entry, &l, pop);
                }
                None
            }
            End::Syscall { next } => {
                let l = last.expect("a syscall end has its syscall");
                self.emit_syscall(s, id, entry, &l, next);
                Some(next)
            }
            End::Invalid { .. } | End::NotExecutable { .. } | End::Unsupported { .. } => {
                // Raises SIGILL at the program's address. `translate` lets only `Invalid` come here.
                self.maps.add(s.hot.here() - entry, 2, Point::Copy, 0);
                s.hot.bytes(&[0x0f, 0x0b]);
                None
            }
        };
        if next.is_none() {
            self.finish_block(s, id);
        }
        next
    }

    /// The target of an indirect branch into r11. The program's r11 is in `spill_t`, and other registers are the program's;
    /// or those that are lent at returns are lent, and no others.
    fn load_target(&mut self, s: &mut Streams, entry: u64, ins: &Instruction) {
        let lent = self.lent_at_returns();
        if lent & self.plan.borrowed & 1 << reg::R11 == 0 {
            s.hot.store_gs(off::SPILL_T, reg::R11);
        }
        spill(&mut s.hot, lent & !self.plan.borrowed);
        // A fault of the load finds r11 unchanged, or in the slot: equal either way.
        self.maps.add(s.hot.here() - entry, ins.len(), Point::Spilled, 0);
        self.emit_load_target(s, entry, ins);
        if lent != 0 {
            unspill(&mut s.hot, self.plan.borrowed & !lent);
        }
    }

    fn emit_load_target(&mut self, s: &mut Streams, entry: u64, ins: &Instruction) {
        if ins.op_kind(0) == OpKind::Register {
            let r = number(ins.op_register(0)).expect("a 64-bit register");
            if r != reg::R11 {
                s.hot.mov(reg::R11, r);
            }
            return;
        }
        if ins.is_ip_rel_memory_operand() {
            let target = ins.ip_rel_memory_address();
            match i32::try_from(target.wrapping_sub(s.hot.here() + 7) as i64) {
                Err(_) => {
                    s.hot.mov_imm64(reg::R11, target);
                    self.maps.add(s.hot.here() - entry, ins.len(), Point::Spilled, 0);
                    s.hot.bytes(&[0x4d, 0x8b, 0x1b]); // mov r11, [r11]
                    return;
                }
                Ok(disp) if ins.memory_base() == Register::RIP && ins.segment_prefix() == Register::None => {
                    s.hot.bytes(&[0x4c, 0x8b, 0x1d]); // mov r11, [rip+disp]
                    s.hot.d32(disp);
                    return;
                }
                Ok(_) => {}
            }
        }
        if let Some(mem) = plain_operand(ins) {
            s.hot.load(Size::Q, reg::R11, &mem);
            return;
        }
        let mem = MemoryOperand::new(
            ins.memory_base(),
            ins.memory_index(),
            ins.memory_index_scale(),
            ins.memory_displacement64() as i64,
            ins.memory_displ_size(),
            false,
            ins.segment_prefix(),
        );
        let load = Instruction::with2(Code::Mov_r64_rm64, Register::R11, mem).expect("a load can be made");
        self.encode(&mut s.hot, &load);
    }

    /// Stubs of a finished block.
    pub(crate) fn finish_block(&mut self, s: &mut Streams, id: u32) {
        self.maps.finish();
        self.blocks.list[id as usize].hot_end = s.hot.here();
        // (Taken out and put back: their memory serves all blocks of a chain.)
        let mut pending = core::mem::take(&mut s.pending);
        for p in pending.drain(..) {
            if let Some(path) = p.path {
                let exit =
                    Exit { path, lent: p.lent.0, ..Exit::new(id, ExitKind::Counted, p.target, p.site) };
                self.exit_to(s, exit, None);
                continue;
            }
            if p.counter.is_none() && p.tail.is_none() {
                self.direct_exit(s, id, p.site, p.target, p.lent.0);
                continue;
            }
            let stub = s.cold.here();
            // SAFETY: a displacement that this chain emitted; nothing runs it yet.
            unsafe { patch_rel32(p.site, stub) };
            if let Some(counters) = p.counter {
                counters.emit(&mut s.cold);
            }
            if let Some((edge, flags_live)) = p.tail {
                self.note_exit_edge(s, edge, p.lent, flags_live);
            }
            let site = jmp_exit(&mut s.cold);
            self.direct_exit(s, id, site, p.target, p.lent.0);
        }
        s.pending = pending;
        let first = self.blocks.list[id as usize].exits;
        self.blocks.list[id as usize].exit_count = (self.blocks.exits.len() as u32 - first) as u16;
    }

    /// Registers the jump with its displacement at `site` as an exit to `target`, linked if possible.
    pub(crate) fn direct_exit(
        &mut self,
        s: &mut Streams,
        from: u32,
        site: u64,
        target: u64,
        lent: u16,
    ) -> u32 {
        let to = self.blocks.find(target);
        self.exit_to(s, Exit { lent, ..Exit::new(from, ExitKind::Jump, target, site) }, to)
    }

    /// The same for a known block and another kind.
    pub(crate) fn exit_to(&mut self, s: &mut Streams, exit: Exit, to: Option<u32>) -> u32 {
        let id = self.new_exit(exit);
        match to {
            Some(to) if self.in_reach(exit.site, to) => self.link_in(Some(&mut s.cold), id, to),
            _ => {
                let arena = self.cache.arena(s.arena);
                let stub = exit_stub(&mut s.cold, arena, id, exit.lent);
                self.blocks.exits[id as usize].stub = stub;
                // SAFETY: a displacement that this chain emitted; nothing runs it yet.
                unsafe { patch_rel32(exit.site, stub) };
            }
        }
        id
    }

    pub(crate) fn new_exit(&mut self, e: Exit) -> u32 {
        self.blocks.exits.push(e);
        self.blocks.exits.len() as u32 - 1
    }
}

/// The general registers by machine number.
pub(crate) const GPR64: [Register; 16] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSP,
    Register::RBP,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
    Register::R10,
    Register::R11,
    Register::R12,
    Register::R13,
    Register::R14,
    Register::R15,
];

/// The machine number of a 64-bit general register.
fn number(r: Register) -> Option<Reg> {
    GPR64.iter().position(|g| *g == r).map(|n| n as Reg)
}

/// A stub that asks the engine for exit `id`.
pub(crate) fn exit_stub(cold: &mut Asm, arena: &Arena, id: u32, lent: u16) -> u64 {
    let at = cold.here();
    crate::instrument::unspill(cold, lent);
    cold.store_gs_imm32(off::EXIT_ID, id);
    cold.jmp(arena.to_exit);
    at
}

/// A patchable jump.
pub(crate) fn jmp_exit(a: &mut Asm) -> u64 {
    a.prefix_patch(1);
    let here = a.here();
    a.jmp(here)
}

/// A conditional jump with a patchable displacement.
fn cond_exit(a: &mut Asm, insn: &Insn) -> u64 {
    // (loope and loopne have condition codes too.)
    if insn.ins.is_jcc_short_or_near() {
        let cond = insn.ins.condition_code() as u8;
        a.prefix_patch(2);
        let here = a.here();
        return a.jcc(cond - 1, here);
    }
    // jrcxz and loop have 8-bit displacements only: over a jump that goes around the far one.
    // SAFETY: the instruction was just decoded from these bytes, under the same lock.
    let bytes = unsafe { core::slice::from_raw_parts(insn.pc() as *const u8, insn.ins.len()) };
    let n = bytes.len() - 1;
    a.align_patch(n as u64 + 1 + 2 + 1);
    a.bytes(&bytes[..n]);
    a.bytes(&[2, 0xeb, 5]);
    let here = a.here();
    a.jmp(here)
}

/// A conditional jump, taken where that of the program is not, with a patchable displacement.
fn cond_exit_else(a: &mut Asm, insn: &Insn) -> u64 {
    let cond = insn.ins.condition_code() as u8;
    a.prefix_patch(2);
    let here = a.here();
    a.jcc((cond - 1) ^ 1, here)
}

/// Mixes the program's bytes at `pc` into a hash.
pub(crate) fn hash_bytes(mut h: u64, pc: u64, len: usize) -> u64 {
    // SAFETY: called for executable memory only, under the engine lock.
    for b in unsafe { core::slice::from_raw_parts(pc as *const u8, len) } {
        h = (h ^ u64::from(*b)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    h | 1
}

/// The memory operand of `ins`, if it is made of 64-bit registers and a displacement alone.
fn plain_operand(ins: &Instruction) -> Option<Mem> {
    let base = match ins.memory_base() {
        Register::None => None,
        r => Some(number(r)?),
    };
    let index = match ins.memory_index() {
        Register::None => None,
        r => Some((number(r)?, ins.memory_index_scale().trailing_zeros() as u8)),
    };
    let plain = ins.segment_prefix() == Register::None;
    let disp = i32::try_from(ins.memory_displacement64() as i64).ok();
    disp.filter(|_| plain).map(|disp| Mem { gs: false, base, index, disp })
}
