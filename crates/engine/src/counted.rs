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
//! Unlinking points the `jcc` back at its stub; the next passage makes new code with the same counter. Under the
//! engine lock.

use crate::block::NONE;
use crate::client::Client;
use crate::emit::{Asm, patch_rel32};
use crate::engine::Engine;
use crate::liveness::Ahead;
use crate::state::ThreadState;
use crate::translate::{Bump, Streams};

/// Code that counts, to be emitted before the next block that is translated.
#[derive(Default)]
pub(crate) struct Prefix {
    /// The block that is left, and what its exit adds.
    wanted: Option<(u32, Bump)>,
    /// Where it was emitted, 0 if it was not.
    at: u64,
}

impl<C: Client> Engine<C> {
    /// Are side exits counted exits?
    pub(crate) fn counts_later(&self) -> bool {
        C::SIDE_PATHS && self.counting && !self.events().inline()
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
        let bump = Bump::one(self.count_passage(st, exit.path), flags_dead);
        self.prefix = Prefix { wanted: Some((exit.from, bump)), at: 0 };
        let to = self.go_to(st, exit.target);
        let Prefix { at, .. } = core::mem::take(&mut self.prefix);
        // (Another thread may have been here before; translating may have flushed the block.)
        if to == NONE
            || self.blocks.exits[id as usize].to != NONE
            || !self.blocks.list[exit.from as usize].live
        {
            return;
        }
        let at = if at != 0 { Some(at) } else { self.counting_jump(exit.from, exit.site, to, &bump) };
        if let Some(at) = at {
            // SAFETY: a displacement aligned for patching; the code is complete before it becomes reachable.
            unsafe { patch_rel32(exit.site, at) };
            self.add_incoming(to, id);
        }
    }

    /// Counts one passage of this thread along a path. Returns its counter.
    pub(crate) fn count_passage(&mut self, st: &ThreadState, path: u32) -> i32 {
        let disp = self.client.counter_of(path);
        let counter = (st.this as u64).wrapping_add(disp as u64) as *mut u64;
        // SAFETY: a counter in this thread's slab; the thread is here.
        unsafe { *counter = (*counter).wrapping_add(1) };
        disp
    }

    /// Emits what is wanted before the block that comes next.
    pub(crate) fn emit_prefix(&mut self, s: &mut Streams) {
        let Some((from, bump)) = self.prefix.wanted else { return };
        if usize::from(self.blocks.list[from as usize].arena) == s.arena {
            self.prefix.at = s.hot.here();
            self.cache.arena(s.arena).note(s.hot.here(), s.cold.here(), from);
            bump.emit(&mut s.hot);
        }
    }

    /// Emits code that counts and jumps to block `to`, in reach of `site`.
    fn counting_jump(&mut self, from: u32, site: u64, to: u32, bump: &Bump) -> Option<u64> {
        let goal = self.blocks.list[to as usize].entry;
        let index = self.cache.arena_of(site)?;
        let arena = self.cache.arena(index);
        if !arena.has_room() {
            return None;
        }
        // SAFETY: the free part of the hot stream belongs to the holder of the engine lock.
        let mut a = unsafe { Asm::new(arena.hot, arena.hot_end()) };
        let at = a.here();
        arena.note(at, arena.cold, from);
        bump.emit(&mut a);
        a.jmp_anywhere(goal);
        arena.hot = a.here();
        Some(at)
    }
}
