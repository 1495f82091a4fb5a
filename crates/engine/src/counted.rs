//! Counted exits: the taken side of a conditional jump in a superblock, when passages along it are counted.
//!
//! Most are never taken. So nothing is made for them but a stub that asks the engine, and no counter is taken, until
//! the first passage. Then the code that counts is put where it costs least:
//! ```text
//!   jcc C                       ; in the block that is left
//!   ...
//! C: inc gs:[counter]           ; if the target is not translated yet: right before it
//! target's block: ...
//!   ...
//! C: inc gs:[counter]           ; otherwise on its own
//!   jmp target's block
//! ```
//! Registers that are lent in the block that is left stay lent on the way. Unlinking points the `jcc` back at its stub; the
//! next passage makes new code with the same counter. Under the engine lock.

use crate::block::{Exit, NONE};
use crate::bump::Bump;
use crate::client::Client;
use crate::emit::{Asm, patch_rel32};
use crate::engine::Engine;
use crate::instrument::{spill, unspill};
use crate::liveness::Ahead;
use crate::state::ThreadState;
use crate::translate::Streams;

/// Code that counts, to be emitted before the next block that is translated.
#[derive(Default)]
pub(crate) struct Prefix {
    /// The block that is left, what its exit adds, and the registers that are lent there.
    wanted: Option<(u32, Bump, u16)>,
    /// Where it was emitted, 0 if it was not.
    at: u64,
}

impl<C: Client> Engine<C> {
    /// Are side exits counted exits?
    pub(crate) fn counts_later(&self) -> bool {
        C::SIDE_PATHS && self.counting
    }

    /// The counted exit `id` is taken, and leads to its stub: counts this passage, makes code that counts the next
    /// ones, and goes on at the target.
    pub(crate) fn take_counted(&mut self, st: &mut ThreadState, id: u32) {
        let exit = self.blocks.exits[id as usize];
        // (A change of what is looked at flushes the target, and this code with its link.)
        let ahead = Ahead {
            regions: &self.regions,
            returns_kill: self.returns_kill_flags(),
            calls_kill: self.calls_kill_flags(),
            home: exit.target,
            memo: &self.memo,
        };
        let flags_dead = ahead.live(exit.target) == 0;
        let bump = self.count_passage(st, exit.path, flags_dead);
        self.prefix = Prefix { wanted: Some((exit.from, bump, exit.lent)), at: 0 };
        self.plan.hint = exit.lent;
        let to = self.go_to(st, exit.target);
        self.plan.hint = 0;
        let Prefix { at, .. } = core::mem::take(&mut self.prefix);
        // (Another thread may have been here before; translating may have flushed the block.)
        if to == NONE
            || self.blocks.exits[id as usize].to != NONE
            || !self.blocks.list[exit.from as usize].live
        {
            return;
        }
        let at = if at != 0 { Some(at) } else { self.counting_jump(&exit, to, &bump) };
        if let Some(at) = at {
            // SAFETY: a displacement aligned for patching; the code is complete before it becomes reachable.
            unsafe { patch_rel32(exit.site, at) };
            self.add_incoming(to, id);
        }
    }

    /// Counts one passage of this thread along a path. Returns what counts the next ones.
    pub(crate) fn count_passage(&mut self, st: &ThreadState, path: u32, flags_dead: bool) -> Bump {
        let (disp, amount) = (self.client.counter_of(path), self.client.amount_of(path));
        let counter = (st.this as u64).wrapping_add(disp as u64) as *mut u64;
        // SAFETY: a counter in this thread's slab; the thread is here.
        unsafe { *counter = (*counter).wrapping_add(amount.into()) };
        Bump::new(disp, amount, flags_dead)
    }

    /// Emits what is wanted before the block that comes next, which has been decoded. Returns the registers that are lent
    /// behind it.
    pub(crate) fn emit_prefix(&mut self, s: &mut Streams) -> u16 {
        let Some((from, bump, lent)) = self.prefix.wanted else { return 0 };
        if usize::from(self.blocks.list[from as usize].arena) != s.arena {
            return 0;
        }
        self.prefix.at = s.hot.here();
        self.cache.arena(s.arena).note(s.hot.here(), s.cold.here(), from);
        bump.emit(&mut s.hot);
        lent
    }

    /// Emits code that counts a passage by `exit` and goes on in block `to`.
    fn counting_jump(&mut self, exit: &Exit, to: u32, bump: &Bump) -> Option<u64> {
        let (goal, from, into) = self.way_into(exit.lent, to);
        let index = self.cache.arena_of(exit.site)?;
        let arena = self.cache.arena(index);
        if !arena.has_room() {
            return None;
        }
        // SAFETY: the free part of the hot stream belongs to the holder of the engine lock.
        let mut a = unsafe { Asm::new(arena.hot, arena.hot_end()) };
        let at = a.here();
        arena.note(at, arena.cold, exit.from);
        bump.emit(&mut a);
        unspill(&mut a, from);
        spill(&mut a, into);
        a.jmp_anywhere(goal);
        arena.hot = a.here();
        Some(at)
    }
}
