//! Calls, returns and tail jumps as events.
//!
//! | transfer | where the client's code goes |
//! |---|---|
//! | direct call | before the call, in the caller's block |
//! | indirect call | in a stub for its destination, the *arrival*: it knows the callee |
//! | return | before the return |
//! | direct jump that is a tail call | before the jump, or on the way out of a conditional one |
//! | indirect jump that is a tail call | in a stub for its destination |
//!
//! Indirect calls and jumps use separate tables, so that the stub knows which it was. A *forwarder* (`jmp [rip+x]`, as
//! in a PLT) is no routine: a call of it is noted when its jump arrives, and a tail jump to it is a return.

use crate::block::{Exit, ExitKind, NONE};
use crate::client::Client;
use crate::emit::{Asm, patch_rel32, reg};
use crate::engine::Engine;
use crate::events::{Emit, borrowed};
use crate::instrument::{emit, spill, unspill};
use crate::liveness::{Ahead, Memo};
use crate::state::{ThreadState, off};
use crate::superblock::{End, Insn, Kind};
use crate::translate::{Streams, jmp_exit};
use alloc::collections::BTreeMap;
use iced_x86::{Code, FlowControl};

/// What a control transfer is to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    Call(u64),
    Return,
    Tail(u64),
}

/// Stubs that note an arrival, by program address: the exit to the block, and where a thread enters that comes
/// from the engine.
#[derive(Default)]
pub(crate) struct Arrivals {
    calls: BTreeMap<u64, (u32, u64)>,
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
            FlowControl::Call if ins.code() != Code::Syscall && insn.kind == Kind::End => {
                let target = ins.near_branch_target();
                (!self.is_forwarder(target)).then_some(Edge::Call(target))
            }
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
    pub(crate) fn note_edge(&mut self, s: &mut Streams, insn: &Insn, flags_live: bool) {
        let Some(edge) = self.plan.edge else { return };
        let mut e = emit(s, &self.plan, flags_live);
        if matches!(edge, Edge::Call(_)) {
            e.return_address_offset = -8;
        }
        let site = Some(insn.pc());
        self.emit_edge(&mut e, edge, site);
    }

    fn emit_edge(&mut self, e: &mut Emit<'_>, edge: Edge, site: Option<u64>) {
        match edge {
            Edge::Call(callee) => self.client.call(e, callee, site),
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
        // The straight path of this code is the cold stream; what is rare goes behind it, over a jump.
        let side = s.cold.here();
        let room = 4096;
        // SAFETY: part of the free cold stream, which belongs to the holder of the engine lock.
        let mut rare = unsafe { Asm::new(side + room, side + 2 * room) };
        let mut e = Emit {
            hot: &mut s.cold,
            cold: &mut rare,
            scratch,
            flags_live,
            return_address_offset: 0,
            borrowed: mask.into(),
            flags_kept: false,
        };
        self.emit_edge(&mut e, edge, None);
        if lent.0 == 0 {
            unspill(&mut s.cold, mask);
        }
        if rare.here() != side + room {
            let at = s.cold.jmp(side);
            let end = rare.here();
            // SAFETY: the same stream, whose next byte this is.
            s.cold = unsafe { Asm::new(end, s.cold.here() + s.cold.room() as u64) };
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

    /// A thread arrived at `pc`, whose block is `to`, by an indirect call or jump that the table did not know. True
    /// if that is an event: the thread then goes on in the stub that notes it.
    pub(crate) fn arrive(&mut self, st: &mut ThreadState, pc: u64, to: u32, call: bool) -> bool {
        if !self.events().calls {
            return false;
        }
        let known = if call { self.arrivals.calls.get(&pc) } else { self.arrivals.jumps.get(&pc) };
        if let Some(&(exit, enter)) = known {
            if self.blocks.exits[exit as usize].to == NONE {
                self.link(exit, to);
            }
            st.resume = enter;
            return true;
        }
        let edge = match (call, self.is_forwarder(pc)) {
            (true, true) => None,
            (true, false) => Some(Edge::Call(pc)),
            (false, _) if !self.client.is_tail(None, pc) => return false,
            (false, true) => Some(Edge::Return),
            (false, false) => Some(Edge::Tail(pc)),
        };
        st.resume = self.arrival(pc, to, call, edge);
        true
    }

    /// Makes the stub for arrivals at `pc`.
    fn arrival(&mut self, pc: u64, id: u32, call: bool, edge: Option<Edge>) -> u64 {
        // (The stub outlives changes of the code there.)
        let ahead = Ahead {
            regions: &self.regions,
            returns_kill: false,
            calls_kill: false,
            home: 0,
            memo: &Memo::none(),
        };
        let flags_live = ahead.live(pc) != 0;
        let b = self.blocks.list[id as usize];
        let arena = self.cache.arena(b.arena.into());
        // SAFETY: the free part of the streams belongs to the holder of the engine lock.
        let (mut a, mut cold) =
            unsafe { (Asm::new(arena.hot, arena.hot_end()), Asm::new(arena.cold, arena.cold_end())) };
        cold.align(8);
        let next = cold.here();
        cold.q64(if call { self.low.get_call(pc) } else { self.low.get(pc) });
        a.align(16);
        let at = a.here();
        let arena = self.cache.arena(b.arena.into());
        arena.note(at, cold.here(), id);
        // The branch may be meant for another entry of this slot, where flags are live: this must not change them.
        a.mov_imm64(reg::RCX, pc.wrapping_neg());
        a.bytes(&[0x4a, 0x8d, 0x0c, 0x19]); // lea rcx, [rcx+r11]
        a.bytes(&[0xe3, 6]); // jrcxz over the next one
        a.jmp_mem(next);
        let body = a.here();
        if let Some(edge) = edge {
            a.store_gs(off::borrow(9), 9);
            let mut e = Emit {
                hot: &mut a,
                cold: &mut cold,
                scratch: ARRIVAL,
                flags_live,
                return_address_offset: 0,
                borrowed: 1 << 9 | borrowed::R11_SPILLED | borrowed::RCX_SPILLED,
                flags_kept: false,
            };
            self.emit_edge(&mut e, edge, None);
            a.load_gs(9, off::borrow(9));
        }
        a.load_gs(reg::RCX, off::SPILL_S);
        a.load_gs(reg::R11, off::SPILL_T);
        let site = jmp_exit(&mut a);
        let enter = cold.here();
        cold.store_gs(off::SPILL_S, reg::RCX);
        cold.store_gs(off::SPILL_T, reg::R11);
        cold.jmp(body);
        let arena = self.cache.arena(b.arena.into());
        arena.hot = a.here();
        arena.cold = cold.here();
        let exit = self.new_exit(Exit::new(NONE, ExitKind::Jump, pc, site));
        self.link(exit, id);
        if call {
            self.arrivals.calls.insert(pc, (exit, enter));
            self.low.set_call(pc, at);
        } else {
            self.arrivals.jumps.insert(pc, (exit, enter));
            self.low.set(pc, at);
        }
        enter
    }
}

fn mask_of(registers: &[u8]) -> u16 {
    registers.iter().fold(0, |m, r| m | 1 << r)
}
