//! Links between blocks: exits that jump straight to their target, and how they are undone.
//!
//! Patches are single aligned stores of a displacement, or of a whole five-byte jump inside one 8-byte word, so
//! that threads running through see the old or the new code. Under the engine lock.

use crate::block::{Exit, ExitKind, NONE};
use crate::client::Client;
use crate::emit::{Asm, patch_rel32};
use crate::engine::Engine;
use crate::instrument::{spill, unspill};
use crate::translate::exit_stub;

impl<C: Client> Engine<C> {
    /// Does a displacement at `site` reach block `to`?
    pub(crate) fn in_reach(&self, site: u64, to: u32) -> bool {
        i32::try_from(self.blocks.list[to as usize].entry.wrapping_sub(site + 4) as i64).is_ok()
    }

    /// Makes exit `id` jump to block `to`.
    pub(crate) fn link(&mut self, id: u32, to: u32) {
        self.link_in(None, id, to);
    }

    /// The same, while `cold` is the stream that stubs beside the exit go to.
    ///
    /// An exit may leave with registers lent to the client. A block with the same ones is entered behind its
    /// spills; one with others through a stub that makes the difference.
    pub(crate) fn link_in(&mut self, cold: Option<&mut Asm>, id: u32, to: u32) {
        let e = self.blocks.exits[id as usize];
        if matches!(e.kind, ExitKind::Syscall | ExitKind::Cached | ExitKind::Counted)
            || e.to != NONE
            || e.from != NONE && !self.blocks.list[e.from as usize].live
        {
            return;
        }
        let (goal, from, into) = self.way_into(e.lent, to);
        if from | into == 0 && self.in_reach(e.site, to) {
            // SAFETY: `site` is a displacement that was aligned for patching when it was emitted.
            unsafe { patch_rel32(e.site, goal) };
            return self.add_incoming(to, id);
        }
        // Another arena, or other registers: through a stub beside the exit.
        let arena = self.cache.arena_of(e.site).expect("exits lie in arenas");
        let a = self.cache.arena(arena);
        if !a.has_room() {
            return;
        }
        let stub = |cold: &mut Asm| {
            let at = cold.here();
            unspill(cold, from);
            spill(cold, into);
            cold.jmp_anywhere(goal);
            at
        };
        let at = match cold {
            Some(cold) => stub(cold),
            None => {
                // SAFETY: the free part of the cold stream belongs to the holder of the engine lock.
                let mut cold = unsafe { Asm::new(a.cold, a.cold_end()) };
                a.note_cold(cold.here(), e.from);
                let at = stub(&mut cold);
                self.cache.arena(arena).cold = cold.here();
                at
            }
        };
        // SAFETY: as above; the stub is complete before the patch makes it reachable.
        unsafe { patch_rel32(e.site, at) };
        self.add_incoming(to, id);
    }

    /// How control gets into block `to` with these registers lent: where it goes, and which registers are given back and
    /// lent before.
    pub(crate) fn way_into(&self, lent: u16, to: u32) -> (u64, u16, u16) {
        let b = self.blocks.list[to as usize];
        if lent == 0 { (b.entry, 0, 0) } else { (b.warm, lent & !b.borrowed, b.borrowed & !lent) }
    }

    /// Notes that exit `id` is linked to `to`.
    pub(crate) fn add_incoming(&mut self, to: u32, id: u32) {
        let block = &mut self.blocks.list[to as usize];
        let e = &mut self.blocks.exits[id as usize];
        e.to = to;
        e.next_incoming = block.incoming;
        block.incoming = id;
    }

    /// Undoes all links to `block`: its predecessors ask the engine again.
    pub(crate) fn unlink_incoming(&mut self, block: u32) {
        let mut id = core::mem::replace(&mut self.blocks.list[block as usize].incoming, NONE);
        while id != NONE {
            let e = self.blocks.exits[id as usize];
            let arena_index = self.cache.arena_of(e.site).expect("exits lie in arenas");
            let arena = self.cache.arena(arena_index);
            // SAFETY: the free part of the cold stream belongs to the holder of the engine lock.
            let mut cold = unsafe { Asm::new(arena.cold, arena.cold_end()) };
            arena.note_cold(cold.here(), e.from);
            self.cut_exit(&mut cold, id);
            self.cache.arena(arena_index).cold = cold.here();
            let e: &mut Exit = &mut self.blocks.exits[id as usize];
            e.to = NONE;
            id = core::mem::replace(&mut e.next_incoming, NONE);
        }
    }

    /// Points an exit at its stub, made in `cold` if there is none.
    fn cut_exit(&mut self, cold: &mut Asm, id: u32) {
        let e = self.blocks.exits[id as usize];
        let arena = self.cache.arena_of(e.site).expect("exits lie in arenas");
        let stub = if e.stub != 0 { e.stub } else { exit_stub(cold, self.cache.arena(arena), id, e.lent) };
        self.blocks.exits[id as usize].stub = stub;
        match e.kind {
            // SAFETY: a displacement aligned for patching.
            ExitKind::Jump | ExitKind::CallSite | ExitKind::Call | ExitKind::Counted => unsafe {
                patch_rel32(e.site, stub)
            },
            ExitKind::Junction => {
                let word = ((e.site - 1) & !7) as *mut u64;
                let shift = ((e.site - 1) & 7) as usize;
                let rel = (stub.wrapping_sub(e.site + 4) as u32).to_le_bytes();
                // SAFETY: the five bytes of a junction lie in one aligned word of our cache; the other bytes
                // are written back as they were, and only the holder of the engine lock patches.
                unsafe {
                    let mut bytes = word.read_volatile().to_le_bytes();
                    bytes[shift] = 0xe9;
                    bytes[shift + 1..shift + 5].copy_from_slice(&rel);
                    word.write_volatile(u64::from_le_bytes(bytes));
                }
                self.blocks.exits[id as usize].kind = ExitKind::Jump;
            }
            ExitKind::Syscall | ExitKind::Cached => {}
        }
    }

    /// Turns a junction whose block could not be made into an exit.
    pub(crate) fn cut_junction(&mut self, cold: &mut Asm, id: u32) {
        self.cut_exit(cold, id);
    }
}
