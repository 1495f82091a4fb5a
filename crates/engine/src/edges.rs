//! Calls, returns and tail jumps as events.
//!
//! | transfer | where the client's code goes |
//! |---|---|
//! | call | in the callee's entrance (`entrance.rs`), to which indirect ones come through a stub that compares: the *arrival* |
//! | return | before the return, or in code that all returns share (`shared_return.rs`) |
//! | direct jump that is a tail call | before the jump, or on the way out of a conditional one |
//! | indirect jump that is a tail call | in its arrival |
//!
//! Indirect calls and jumps use separate tables, so that the stub knows which it was. A *forwarder* (`jmp [rip+x]`, as
//! in a PLT) is no routine: a call of it is noted when its jump arrives, and a tail jump to it is a return.

use crate::block::{Exit, ExitKind, NONE};
use crate::client::Client;
use crate::emit::{Asm, patch_rel32, reg};
use crate::engine::Engine;
use crate::entrance::scratch_of;
use crate::events::{Emit, borrowed};
use crate::instrument::{emit, spill, unspill};
use crate::liveness::{Ahead, Memo};
use crate::state::{ThreadState, off};
use crate::superblock::{End, Insn, Kind};
use crate::translate::Streams;
use alloc::collections::BTreeMap;
use iced_x86::FlowControl;

/// What a control transfer is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Return,
    Tail(u64),
}

/// Where an edge is noted in the cold stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// On the way out of a block.
    Exit { flags_live: bool },
    /// In code that many places share, where flags are dead.
    Shared,
}

/// Stubs where indirect branches arrive, by program address: the exit to the block or entrance. For jumps also where a
/// thread enters that comes from the engine.
#[derive(Default)]
pub(crate) struct Arrivals {
    calls: BTreeMap<u64, u32>,
    jumps: BTreeMap<u64, (u32, u64)>,
}

/// Registers that an arrival's code may use.
const ARRIVAL: [u8; 3] = [reg::R11, reg::RCX, 9];

impl<C: Client> Engine<C> {
    /// What the transfer `insn` is, if it is to be noted before it.
    pub(crate) fn edge_of(&mut self, insn: &Insn) -> Option<Edge> {
        if !self.events().calls {
            return None;
        }
        let ins = &insn.ins;
        match ins.flow_control() {
            FlowControl::Return if insn.kind == Kind::End => Some(Edge::Return),
            FlowControl::UnconditionalBranch if insn.kind != Kind::Plain => {
                self.tail_of(insn, ins.near_branch_target())
            }
            _ => None,
        }
    }

    /// Is the jump `insn` to `target` a tail call?
    pub(crate) fn tail_of(&mut self, insn: &Insn, target: u64) -> Option<Edge> {
        if !self.events().calls || !self.client.is_tail(Some(insn.pc()), target) {
            return None;
        }
        Some(if self.is_forwarder(target) { Edge::Return } else { Edge::Tail(target) })
    }

    /// Emits the edge of `insn`, the last one, before it.
    pub(crate) fn note_edge(&mut self, s: &mut Streams, flags_live: bool) {
        let Some(edge) = self.plan.edge else { return };
        let mut e = emit(s, &self.plan, flags_live);
        self.emit_edge(&mut e, edge);
    }

    fn emit_edge(&mut self, e: &mut Emit<'_>, edge: Edge) {
        match edge {
            Edge::Return => self.client.ret(e),
            Edge::Tail(target) => self.client.tail(e, target),
        }
        e.restore_flags();
    }

    /// Emits a tail edge on the way out of a conditional jump, in the cold stream. `lent`: registers of the block that
    /// are still lent, 0 for none.
    pub(crate) fn note_exit_edge(
        &mut self,
        s: &mut Streams,
        edge: Edge,
        lent: (u16, [u8; 3]),
        flags_live: bool,
    ) {
        let (mask, scratch) = if lent.0 == 0 { (mask_of(&ARRIVAL), ARRIVAL) } else { lent };
        if lent.0 == 0 {
            spill(&mut s.cold, mask);
        }
        self.emit_edge_in_cold(&mut s.cold, edge, (mask, scratch), Site::Exit { flags_live }, |_, cold| {
            if lent.0 == 0 {
                unspill(cold, mask);
            }
        });
    }

    /// Emits an edge, and what follows it, into the cold stream: its straight path goes there; what is rare goes behind it,
    /// over a jump unless control never comes to the end.
    pub(crate) fn emit_edge_in_cold(
        &mut self,
        cold: &mut Asm,
        edge: Edge,
        (mask, scratch): (u16, [u8; 3]),
        site: Site,
        then: impl FnOnce(&mut Self, &mut Asm),
    ) {
        let side = cold.here();
        let room = 4096;
        // SAFETY: part of the free cold stream, which belongs to the holder of the engine lock.
        let mut rare = unsafe { Asm::new(side + room, side + 2 * room) };
        let mut e = Emit {
            hot: cold,
            cold: &mut rare,
            scratch,
            flags_live: site == Site::Exit { flags_live: true },
            shared: site == Site::Shared,
            borrowed: mask.into(),
            flags_kept: false,
        };
        self.emit_edge(&mut e, edge);
        then(self, cold);
        if rare.here() != side + room {
            let at = cold.jmp(side);
            let end = rare.here();
            // SAFETY: the same stream, whose next byte this is.
            *cold = unsafe { Asm::new(end, cold.here() + cold.room() as u64) };
            // SAFETY: a displacement that was just emitted; nothing runs it yet.
            unsafe { patch_rel32(at, end) };
        }
    }

    /// Is the code at `pc` nothing but a jump through a table of addresses?
    pub(crate) fn is_forwarder(&self, pc: u64) -> bool {
        // SAFETY: the engine lock is held; the bytes are dropped at once.
        let code = unsafe { self.regions.code(pc, 16) };
        let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
        let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
        code.starts_with(&[0xff, 0x25])
    }

    /// Is the decoded superblock a forwarder?
    pub(crate) fn in_forwarder(&self) -> bool {
        self.events().calls && self.sb.end == End::JumpIndirect && self.is_forwarder(self.sb.pc)
    }

    /// The table for indirect branches of a kind.
    pub(crate) fn branch_table(&self, call: bool) -> u32 {
        if call && self.events().calls { self.low.calls() } else { self.low.branches() }
    }

    /// A thread is about to arrive at `pc` by an indirect call that the table did not know.
    pub(crate) fn met_callee(&mut self, pc: u64) {
        if !self.arrivals.calls.contains_key(&pc) {
            self.watch_callee(pc);
        }
    }

    /// A thread is about to go on at `pc`, in block or entrance `to`, and came by an indirect call that the table did not
    /// know.
    pub(crate) fn arrive_by_call(&mut self, pc: u64, to: u32) {
        if let Some(&exit) = self.arrivals.calls.get(&pc) {
            if self.blocks.exits[exit as usize].to == NONE {
                self.link(exit, to);
            }
            return;
        }
        let lent = self.blocks.list[to as usize].borrowed;
        let arena = self.cache.arena(self.blocks.list[to as usize].arena.into());
        // SAFETY: the free part of the streams belongs to the holder of the engine lock.
        let (mut a, mut cold) =
            unsafe { (Asm::new(arena.hot, arena.hot_end()), Asm::new(arena.cold, arena.cold_end())) };
        let at = self.destination(&mut a, &mut cold, pc, self.low.get_call(pc));
        let site = self.emit_way_on(&mut a, lent);
        let kind = if self.has_entrance(pc) { ExitKind::Call } else { ExitKind::Jump };
        let exit = self.arrival_made(to, at, [a, cold], Exit { lent, ..Exit::new(NONE, kind, pc, site) });
        self.arrivals.calls.insert(pc, exit);
        self.low.set_call(pc, at);
    }

    /// A thread arrived at `pc`, whose block is `to`, by an indirect jump that the table did not know. True if that is an
    /// event: the thread then goes on in the stub that notes it.
    pub(crate) fn arrive_by_jump(&mut self, st: &mut ThreadState, pc: u64, to: u32) -> bool {
        if !self.events().calls {
            return false;
        }
        if let Some(&(exit, enter)) = self.arrivals.jumps.get(&pc) {
            if self.blocks.exits[exit as usize].to == NONE {
                self.link(exit, to);
            }
            st.resume = enter;
            return true;
        }
        if !self.client.is_tail(None, pc) {
            return false;
        }
        let edge = if self.is_forwarder(pc) { Edge::Return } else { Edge::Tail(pc) };
        st.resume = self.tail_arrival(pc, to, edge);
        true
    }

    /// Makes the stub for tail jumps to `pc`. Returns where a thread enters it that comes from the engine.
    fn tail_arrival(&mut self, pc: u64, to: u32, edge: Edge) -> u64 {
        // (The stub outlives changes of the code there.)
        let ahead = Ahead {
            regions: &self.regions,
            returns_kill: false,
            calls_kill: false,
            home: 0,
            memo: &Memo::none(),
        };
        let flags_live = ahead.live(pc) != 0;
        let arena = self.cache.arena(self.blocks.list[to as usize].arena.into());
        // SAFETY: the free part of the streams belongs to the holder of the engine lock.
        let (mut a, mut cold) =
            unsafe { (Asm::new(arena.hot, arena.hot_end()), Asm::new(arena.cold, arena.cold_end())) };
        let at = self.destination(&mut a, &mut cold, pc, self.low.get(pc));
        let body = a.here();
        let lent = self.blocks.list[to as usize].borrowed;
        let mut e = Emit {
            hot: &mut a,
            cold: &mut cold,
            scratch: ARRIVAL,
            flags_live,
            shared: false,
            borrowed: 1 << 9 | borrowed::R11_SPILLED | borrowed::RCX_SPILLED,
            flags_kept: false,
        };
        let between = self.lent_at_returns();
        if between == 0 {
            e.hot.store_gs(off::borrow(9), 9);
            self.emit_edge(&mut e, edge);
            a.load_gs(9, off::borrow(9));
        } else {
            (e.scratch, e.borrowed) = (scratch_of(between), between.into());
            self.emit_edge(&mut e, edge);
        }
        let site = self.emit_way_on(&mut a, lent);
        let enter = cold.here();
        if between == 0 {
            cold.store_gs(off::SPILL_S, reg::RCX);
            cold.store_gs(off::SPILL_T, reg::R11);
        }
        spill(&mut cold, between);
        cold.jmp(body);
        let exit =
            self.arrival_made(to, at, [a, cold], Exit { lent, ..Exit::new(NONE, ExitKind::Jump, pc, site) });
        self.arrivals.jumps.insert(pc, (exit, enter));
        self.low.set(pc, at);
        enter
    }

    /// The stub at `at` is complete: its code stays, and its exit leads to `to`.
    fn arrival_made(&mut self, to: u32, at: u64, [a, cold]: [Asm; 2], exit: Exit) -> u32 {
        let arena = self.cache.arena(self.blocks.list[to as usize].arena.into());
        arena.note(at, arena.cold, to);
        (arena.hot, arena.cold) = (a.here(), cold.here());
        let exit = self.new_exit(exit);
        self.link(exit, to);
        exit
    }
}

pub(crate) fn mask_of(registers: &[u8]) -> u16 {
    registers.iter().fold(0, |m, r| m | 1 << r)
}
