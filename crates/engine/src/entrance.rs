//! Entrances: where a routine that is called begins, for clients that want to see calls.
//!
//! ```text
//!   call L
//! L: mov dword [rsp], low(ret)     ; callret.rs
//!   jmp entrance
//! entrance:                        ; once for each routine
//!   ... the client's code for the call ...
//! block at the routine's address:
//!   ...
//! ```
//! The client's code is there once for each routine, not at each of its calls: a compiler has five calls for each
//! routine, and less code is what its instruction caches need most. An entrance is a block without instructions of the
//! program: links lead to it (`ExitKind::Call`), registers are lent on the way, and it is flushed with the code behind
//! it. No address of it is mapped, so a signal that strikes there waits until the routine's first instruction is next.
//!
//! Indirect calls compare their target first (`edges.rs`) and then come here as well.

use crate::block::{Block, Exit, ExitKind, NONE};
use crate::client::Client;
use crate::edges::mask_of;
use crate::emit::{Reg, reg};
use crate::engine::Engine;
use crate::events::{Emit, SCRATCH_MAX};
use crate::instrument::{spill, unspill};
use crate::liveness::Ahead;
use crate::state::ThreadState;
use crate::translate::{Streams, jmp_exit};

/// Registers that are lent at an entrance whose block lends none, and at returns and indirect branches
/// (`shared_return.rs`).
pub(crate) const DEFAULT_LENT: [u8; 3] = [reg::R11, 10, 9];
// `Asm::table_jump_r9`, `Engine::destination` and the `enter_*_lent` routines are written for these.
const _: () = assert!(matches!(DEFAULT_LENT, [11, 10, 9]));

impl<C: Client> Engine<C> {
    /// Has the routine at `pc` an entrance? (What only leads to another routine is none.)
    pub(crate) fn has_entrance(&self, pc: u64) -> bool {
        self.events().calls && !self.is_forwarder(pc)
    }

    /// Goes on at `pc`, which has just been called: see [`Engine::go_to`]. Returns the entrance, or the block where there
    /// is none.
    pub(crate) fn go_to_called(&mut self, st: &mut ThreadState, pc: u64) -> u32 {
        if !self.has_entrance(pc) {
            return self.go_to(st, pc);
        }
        if self.blocks.find_entrance(pc).is_none() && self.blocks.find(pc).is_none() {
            self.plan.called = true;
        }
        let block = self.go_to(st, pc);
        self.plan.called = false;
        if block == NONE {
            // (A signal, a fault, a new cache: what goes on elsewhere. The call is noted in the cache, where it can be.)
            return self.renewed_call(st, pc);
        }
        let id = match self.blocks.find_entrance(pc) {
            Some(id) => id,
            None => self.entrance_alone(pc, block),
        };
        st.resume = self.blocks.list[id as usize].entry;
        id
    }

    /// If the thread goes on with the block at `pc` of a new cache, it goes through the routine's entrance.
    fn renewed_call(&mut self, st: &mut ThreadState, pc: u64) -> u32 {
        if let Some(block) = self.blocks.find(pc)
            && st.resume == self.blocks.list[block as usize].entry
        {
            let id = self.blocks.find_entrance(pc).unwrap_or_else(|| self.entrance_alone(pc, block));
            st.resume = self.blocks.list[id as usize].entry;
        }
        NONE
    }

    /// Makes the entrance of the routine at `pc`, whose block was made earlier.
    pub(crate) fn entrance_alone(&mut self, pc: u64, block: u32) -> u32 {
        let b = self.blocks.list[block as usize];
        let mut s = self.streams(b.arena.into());
        s.hot.align(16);
        let (id, lent) = self.emit_entrance(&mut s, pc, b.borrowed);
        let site = jmp_exit(&mut s.hot);
        self.exit_to(&mut s, Exit { lent, ..Exit::new(id, ExitKind::Jump, pc, site) }, Some(block));
        self.finish_block(&mut s, id);
        self.keep_streams(s);
        id
    }

    /// Emits the entrance of the routine at `pc`, up to the way to its block, which lends these registers, or none.
    /// Returns it, and the registers that are lent behind it.
    pub(crate) fn emit_entrance(&mut self, s: &mut Streams, pc: u64, lent: u16) -> (u32, u16) {
        let borrowed = if lent == 0 { mask_of(&DEFAULT_LENT) } else { lent };
        let id = self.blocks.list.len() as u32;
        let warm = s.hot.here();
        let entry = s.cold.here();
        self.blocks.list.push(Block {
            pc,
            entry,
            warm,
            base: warm,
            hot_end: warm,
            incoming: NONE,
            exits: self.blocks.exits.len() as u32,
            exit_count: 0,
            arena: s.arena as u16,
            bump: u8::MAX,
            map: self.maps.next(),
            borrowed,
            live: true,
            source: 0,
        });
        self.blocks.set_entrance(pc, id);
        self.pages.note(pc & !0xfff, id);
        self.cache.arena(s.arena).note(warm, entry, id);
        spill(&mut s.cold, borrowed);
        s.cold.jmp(warm);
        let ahead = Ahead {
            regions: &self.regions,
            returns_kill: self.returns_kill_flags(),
            calls_kill: self.calls_kill_flags(),
            home: pc,
            memo: &self.memo,
        };
        let flags_live = ahead.live(pc) != 0;
        let mut e = Emit {
            hot: &mut s.hot,
            cold: &mut s.cold,
            scratch: scratch_of(borrowed),
            flags_live,
            shared: false,
            borrowed: borrowed.into(),
            flags_kept: false,
        };
        self.client.call(&mut e, pc);
        e.restore_flags();
        if lent == 0 {
            unspill(&mut s.hot, borrowed);
        }
        (id, lent)
    }
}

/// Lent registers, given as bits, as scratch registers.
pub(crate) fn scratch_of(lent: u16) -> [Reg; SCRATCH_MAX] {
    let mut lent = (0..16).filter(|r| lent >> r & 1 != 0);
    let first = lent.next().expect("some register is lent");
    [first, lent.next().unwrap_or(first), lent.next().unwrap_or(first)]
}
