//! Calls and returns.
//!
//! The program's stack always holds the program's own return addresses, yet the processor executes a genuine
//! `call` and `ret`, so that its return predictor works. No shadow stack is kept; a per-thread *return cache*
//! (`returns.rs`) maps some bits of a return address to the *landing*, the cache address behind the call with that address.
//!
//! ```text
//!   call L                     ; pushes R, teaches the predictor
//! R: cmp dword [rsp], low(ret) ; landing: is this where the program wants to go?
//!   jne return_miss
//!   cmp dword [rsp+4], high(ret)
//!   jne return_miss
//!   lea rsp, [rsp+8]
//!   mov r11, gs:[spill_t]
//!   ... block at ret ...
//! L: mov dword [rsp], low(ret) ; the program's own return address; its high half is mostly R's
//!   jmp callee
//! ```
//! A call whose slot of the return cache is its own (`returns.rs`) leaves the slot alone: no register is needed, hence
//! none goes through memory on the way, which in a short callee is most of the time. Each thread's first return
//! through a slot fills it (`emit_return_fill`). A call whose slot is contended puts R there each time. Halves are
//! compared as they were stored: a load of the whole word would wait until both stores have left the processor.
//! (Where both addresses are below 2 GB, L stores them as constants, and the landing compares with one.)
//!
//! A return: `mov gs:[spill_t], r11; mov r11d, [rsp]; and r11d, bits; mov r11, gs:[r11*2+cache]; push r11; ret`.
//! (Where returns share their code, r11 and two more registers are lent at all of them, and at landings:
//! `shared_return.rs`.)
//! (Spilling r11 to the program's stack would be shorter, and twice as slow: it breaks store forwarding.) Where flags may
//! be live at returns it needs none.
//! Nor does the landing, unless flags are dead at all returns by assumption: what the code behind *this* landing reads
//! is not enough to know, because a return may land here that is meant for another call with the same low bits
//! (or any, after a longjmp), and goes on from here as an indirect jump. The word below the
//! stack pointer that a return scribbles on is dead at that point by any calling convention.

use crate::addrmap::Point;
use crate::block::{Block, Exit, ExitKind, NONE};
use crate::client::Client;
use crate::emit::{Asm, cc, patch_imm32, patch_rel32, reg};
use crate::engine::Engine;
use crate::instrument::{spill, unspill};
use crate::returns::{Choice, Claim, SLOT_BITS};
use crate::state::{RETURN_CACHE_OFFSET, off};
use crate::superblock::{End, Insn};
use crate::translate::{Streams, Tail, jmp_exit};
use iced_x86::Register;

/// An indirect branch with a cache of one target, which it has not met yet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CachedSite {
    /// Compares r11 with the word at `tag`; `jne` is the displacement of the jump where they differ.
    Tag { tag: u64, jne: u64 },
    /// Compares the halves of a word with the constants at `low` and `high`. `decided` is the displacement of the jump
    /// where they differ, which leads to `looked_up` in the end.
    Bound { low: u64, high: u64, decided: u64, looked_up: u64 },
}

/// `cmp dword [at], 0` with a patchable constant, whose address is returned.
fn compare_word(a: &mut Asm, at: u64) -> u64 {
    a.prefix_patch(6);
    a.bytes(&[0x81, 0x3d]);
    a.d32(at.wrapping_sub(a.here() + 8) as i32);
    let constant = a.here();
    a.d32(0);
    constant
}

impl<C: Client> Engine<C> {
    /// If the call instruction `insn` has been made elsewhere already, jumps there. Each call instruction is made
    /// once: two copies would share a slot of the return cache, and returns to one would be predicted for the
    /// other. The block that jumps has counted the call; the place that is jumped to comes behind the counting.
    pub(crate) fn reuse_call(&mut self, s: &mut Streams, block: u32, insn: &Insn) -> bool {
        let pc = insn.pc();
        if let Some(site) = self.blocks.find_call(pc)
            && self.blocks.list[site as usize].live
            && self.blocks.list[site as usize].arena == s.arena as u16
        {
            let entry = self.blocks.list[block as usize].base;
            self.maps.add(s.hot.here() - entry, insn.ins.len(), Point::Copy, 0);
            let at = jmp_exit(&mut s.hot);
            let lent = if self.stays_lent() { self.plan.borrowed } else { 0 };
            let exit = Exit { lent, ..Exit::new(block, ExitKind::CallSite, pc, at) };
            self.exit_to(s, exit, Some(site));
            return true;
        }
        let site = self.blocks.list.len() as u32;
        let b = self.blocks.list[block as usize];
        let lent = if self.stays_lent() { self.plan.borrowed } else { 0 };
        let warm = s.hot.here();
        let entry = if lent == 0 { warm } else { s.cold.here() };
        if lent != 0 {
            spill(&mut s.cold, lent);
            s.cold.jmp(warm);
        }
        self.blocks.list.push(Block {
            pc,
            entry,
            warm,
            borrowed: lent,
            incoming: NONE,
            exit_count: 0,
            source: 0,
            ..b
        });
        self.pages.note(pc & !0xfff, site);
        self.blocks.set_call(pc, site);
        false
    }

    /// A call to `target` (or to r11, with the program's r11 in `spill_t`) that returns to `ret`.
    pub(crate) fn emit_call(
        &mut self,
        s: &mut Streams,
        block: u32,
        target: Option<u64>,
        ret: u64,
        cached: bool,
    ) {
        s.cold.align(8);
        let pool = s.cold.here();
        s.cold.q64(ret);
        s.hot.prefix_patch(1);
        let here = s.hot.here();
        let site = s.hot.call(here);
        let lent = if target.is_some() { self.plan.borrowed } else { 0 };
        s.tails.push(Tail { site, ret, pool, target, block, cached, lent });
        self.landing(s, ret);
    }

    /// Where returns to `ret` arrive: r11 spilled (or lent), the program's return address on top of the stack.
    fn landing(&mut self, s: &mut Streams, ret: u64) {
        let miss = self.cache.arena(s.arena).to_return_miss;
        if self.returns_kill_flags() {
            if let Ok(short) = i32::try_from(ret) {
                s.hot.bytes(&[0x48, 0x81, 0x3c, 0x24]); // cmp qword [rsp], ret
                s.hot.d32(short);
            } else {
                s.hot.bytes(&[0x81, 0x3c, 0x24]); // cmp dword [rsp], low(ret)
                s.hot.d32(ret as i32);
                s.hot.jcc(cc::NE, miss);
                s.hot.bytes(&[0x81, 0x7c, 0x24, 0x04]); // cmp dword [rsp+4], high(ret)
                s.hot.d32((ret >> 32) as i32);
            }
            s.hot.jcc(cc::NE, miss);
        } else {
            s.hot.store_gs(off::SPILL_X, reg::RCX);
            s.hot.bytes(&[0x48, 0x8b, 0x0c, 0x24]); // mov rcx, [rsp]
            s.hot.mov_imm64(reg::R11, ret.wrapping_neg());
            s.hot.bytes(&[0x4a, 0x8d, 0x0c, 0x19]); // lea rcx, [rcx+r11]
            s.hot.bytes(&[0xe3, 14]); // jrcxz over the next two
            s.hot.load_gs(reg::RCX, off::SPILL_X);
            s.hot.jmp(miss);
            s.hot.load_gs(reg::RCX, off::SPILL_X);
        }
        s.hot.drop_stack(8);
        if self.lent_at_returns() == 0 {
            s.hot.load_gs(reg::R11, off::SPILL_T);
        }
    }

    /// A return.
    pub(crate) fn emit_return(&mut self, s: &mut Streams, entry: u64, insn: &Insn, pop: u16) {
        let len = insn.ins.len();
        self.maps.add(s.hot.here() - entry, len, Point::Copy, 0);
        if pop != 0 {
            // Rare, and the landing knows nothing of the extra bytes: an indirect jump.
            s.hot.store_gs(off::SPILL_T, reg::R11);
            self.maps.add(s.hot.here() - entry, len, Point::Spilled, 0);
            spill(&mut s.hot, self.lent_at_returns());
            s.hot.bytes(&[0x4c, 0x8b, 0x1c, 0x24]); // mov r11, [rsp]
            s.hot.drop_stack(8 + i32::from(pop));
            self.emit_table_jump(&mut s.hot, self.low.branches());
            return;
        }
        s.hot.store_gs(off::SPILL_T, reg::R11);
        self.maps.add(s.hot.here() - entry, len, Point::Spilled, 0);
        spill(&mut s.hot, self.lent_at_returns());
        self.emit_return_jump(&mut s.hot);
    }

    /// The end of a return: r11 is free, all other registers are the program's but those that are lent at returns.
    pub(crate) fn emit_return_jump(&self, a: &mut Asm) {
        match self.slot_choice() {
            Choice::Wide => {
                a.bytes(&[0x44, 0x8b, 0x1c, 0x24]); // mov r11d, [rsp]
                a.bytes(&[0x41, 0x81, 0xe3]); // and r11d, SLOT_BITS
                a.d32(SLOT_BITS as i32);
                a.bytes(&[0x65, 0x4e, 0x8b, 0x1c, 0x5d]); // mov r11, gs:[r11*2+cache]
            }
            Choice::Plain => {
                a.bytes(&[0x44, 0x0f, 0xb7, 0x1c, 0x24]); // movzx r11d, word [rsp]
                a.bytes(&[0x65, 0x4e, 0x8b, 0x1c, 0xdd]); // mov r11, gs:[r11*8+cache]
            }
        }
        a.d32(RETURN_CACHE_OFFSET as i32);
        a.bytes(&[0x41, 0x53, 0xc3]); // push r11; ret
    }

    /// The out-of-line parts of a chain's calls.
    pub(crate) fn tails(&mut self, s: &mut Streams) {
        let mut tails = core::mem::take(&mut s.tails);
        for t in tails.drain(..) {
            let at = s.hot.here();
            self.cache.arena(s.arena).note(at, s.cold.here(), t.block);
            // SAFETY: a displacement that this chain emitted; nothing runs it yet.
            unsafe { patch_rel32(t.site, at) };
            let landing = t.site + 4;
            let slot = self.return_slot(t.ret);
            let short = i32::try_from(t.ret).ok().zip(i32::try_from(landing).ok());
            let owned = self.owns_slot(s, t.ret, short.is_none().then_some(landing));
            if let Some((ret, landing)) = short {
                s.hot.store_gs_imm64(slot, landing);
                s.hot.bytes(&[0x48, 0xc7, 0x04, 0x24]); // mov qword [rsp], ret
                s.hot.d32(ret);
            } else if owned {
                s.hot.bytes(&[0xc7, 0x04, 0x24]); // mov dword [rsp], low(ret)
                s.hot.d32(t.ret as i32);
                if t.ret >> 32 != landing >> 32 {
                    s.hot.bytes(&[0xc7, 0x44, 0x24, 0x04]); // mov dword [rsp+4], high(ret)
                    s.hot.d32((t.ret >> 32) as i32);
                }
            } else if t.target.is_some() {
                s.hot.store_gs(off::SPILL_X, reg::R11);
                s.hot.load_address(reg::R11, t.ret);
                s.hot.bytes(&[0x4c, 0x89, 0x1c, 0x24]); // mov [rsp], r11
                s.hot.load_address(reg::R11, landing);
                s.hot.store_gs(slot, reg::R11);
                s.hot.load_gs(reg::R11, off::SPILL_X);
            } else {
                s.hot.pop_gs(slot);
                s.hot.push_address(t.ret, t.pool);
            }
            match t.target {
                Some(target) => {
                    let site = jmp_exit(&mut s.hot);
                    if self.has_entrance(target) {
                        let exit = Exit { lent: t.lent, ..Exit::new(t.block, ExitKind::Call, target, site) };
                        let to = self.blocks.find_entrance(target);
                        self.exit_to(s, exit, to);
                    } else {
                        self.direct_exit(s, t.block, site, target, t.lent);
                    }
                }
                None => self.emit_indirect(s, t.block, t.cached, true),
            }
        }
        s.tails = tails;
    }

    /// How slots of the return cache are chosen.
    fn slot_choice(&self) -> Choice {
        if self.returns_kill_flags() { Choice::Wide } else { Choice::Plain }
    }

    /// Displacement from gs of the return cache's slot for a return to `ret`.
    fn return_slot(&self, ret: u64) -> i32 {
        (RETURN_CACHE_OFFSET + self.slot_choice().offset(ret)) as i32
    }

    /// Does the call with this return address have its slot of the return cache to itself? Not if it has no landing to own
    /// it with, and stores there each time. If it takes the slot from another call, that one does so from now on:
    /// ```text
    ///   call L'
    /// L': pop gs:[slot]
    ///   push gs:[slot]
    ///   jmp L
    /// ```
    fn owns_slot(&mut self, s: &mut Streams, ret: u64, landing: Option<u64>) -> bool {
        if !self.returns_kill_flags() {
            return false; // landings that may change flags were there before, see `trust.rs`
        }
        let owner = match self.owners.claim(ret, landing, self.return_miss) {
            Claim::Owned => {
                self.claimed.extend(landing.map(|landing| (ret, landing)));
                return true;
            }
            Claim::Contended => return false,
            Claim::Taken(landing) => landing,
        };
        let slot = self.return_slot(ret);
        let site = owner - 4;
        let index = self.cache.arena_of(site).expect("landings lie in arenas");
        let arena = self.cache.arena(index);
        // SAFETY: the displacement of a call that was emitted under the engine lock.
        let to = owner.wrapping_add_signed(unsafe { (site as *const i32).read_unaligned() }.into());
        let store = |cold: &mut Asm| {
            let at = cold.here();
            cold.pop_gs(slot);
            cold.push_gs(slot);
            cold.jmp(to);
            // SAFETY: calls are aligned for patching; the code is complete before the patch makes it reachable.
            unsafe { patch_rel32(site, at) };
        };
        if index == s.arena {
            store(&mut s.cold);
        } else if let Some(block) = arena.block_at(site)
            && arena.has_room()
        {
            // SAFETY: the free part of the cold stream belongs to the holder of the engine lock.
            let mut cold = unsafe { Asm::new(arena.cold, arena.cold_end()) };
            arena.note_cold(cold.here(), block);
            store(&mut cold);
            arena.cold = cold.here();
        }
        false
    }

    /// A jump to r11, the program's r11 being spilled (or lent). `cached`: through a one-entry cache at the site, for calls
    /// through a table of addresses at a fixed place (GOT), whose target hardly ever changes, and for such jumps
    /// where [`Engine::emit_bound`] cannot be had:
    /// ```text
    ///   cmp r11, [tag]             ; flags are dead at such jumps
    ///   jne miss                   ; first to the engine, which fills tag and link; then to the table
    ///   mov r11, gs:[spill_t]
    ///   jmp target
    /// ```
    pub(crate) fn emit_indirect(&mut self, s: &mut Streams, block: u32, cached: bool, call: bool) {
        if !cached || !self.returns_kill_flags() || self.events().calls && !call {
            self.emit_table_jump(&mut s.hot, self.branch_table(call));
            return;
        }
        let lent = self.lent_at_returns();
        let id = self.new_exit(Exit { lent, ..Exit::new(block, ExitKind::Cached, 0, 0) });
        s.cold.align(8);
        let tag = s.cold.here();
        s.cold.q64(0);
        // Where the tag does not match, once it is filled.
        self.emit_table_jump(&mut s.cold, self.branch_table(call));
        let miss = s.cold.here();
        s.cold.store_gs_imm32(off::EXIT_ID, id);
        s.cold.jmp(self.cache.arena(s.arena).to_cached);
        s.hot.bytes(&[0x4c, 0x3b, 0x1d]); // cmp r11, [tag]
        let d = tag.wrapping_sub(s.hot.here() + 4) as i32;
        s.hot.d32(d);
        s.hot.prefix_patch(2);
        let jne = s.hot.jcc(cc::NE, miss);
        if lent == 0 {
            s.hot.load_gs(reg::R11, off::SPILL_T);
        }
        let site = jmp_exit(&mut s.hot);
        self.blocks.exits[id as usize].site = site;
        self.cached_sites.insert(id, CachedSite::Tag { tag, jne });
    }

    /// A jump through the word at `table` (PLT), whose target hardly ever changes, with a cache at its site and without a
    /// register: a fifth of the samples of sqlite3 stood where r11 comes back from memory, here and at landings.
    /// ```text
    ///   cmp dword [table], low     ; flags are dead at such jumps
    ///   jne other
    ///   cmp dword [table+4], high
    ///   jne other
    ///   jmp target                 ; at first to `other`
    /// other:                       ; out of line; here r11 is not lent
    ///   mov gs:[spill_t], r11
    ///   mov r11, [table]
    ///   jmp ask                    ; the engine, which fills in everything above; from then on to the table
    /// ```
    /// Registers stay lent on the way to the target.
    pub(crate) fn emit_bound(&mut self, s: &mut Streams, block: u32, table: u64, call: bool) {
        let lent = self.plan.borrowed;
        let id = self.new_exit(Exit { lent, ..Exit::new(block, ExitKind::Cached, 0, 0) });
        let other = s.cold.here();
        let goal = self.lent_at_returns();
        unspill(&mut s.cold, lent & !goal);
        spill(&mut s.cold, goal & !lent);
        if goal == 0 {
            s.cold.store_gs(off::SPILL_T, reg::R11);
        }
        s.cold.bytes(&[0x4c, 0x8b, 0x1d]); // mov r11, [table]
        s.cold.d32(table.wrapping_sub(s.cold.here() + 4) as i32);
        let decided = jmp_exit(&mut s.cold);
        let looked_up = s.cold.here();
        self.emit_table_jump(&mut s.cold, self.branch_table(call));
        let ask = s.cold.here();
        s.cold.store_gs_imm32(off::EXIT_ID, id);
        s.cold.jmp(self.cache.arena(s.arena).to_cached);
        let [low, high] = [0, 4].map(|k| {
            let half = compare_word(&mut s.hot, table + k);
            s.hot.jcc(cc::NE, other);
            half
        });
        let site = jmp_exit(&mut s.hot);
        // SAFETY: displacements that this chain emitted; nothing runs them yet.
        unsafe {
            patch_rel32(decided, ask);
            patch_rel32(site, other);
        }
        self.blocks.exits[id as usize].site = site;
        self.cached_sites.insert(id, CachedSite::Bound { low, high, decided, looked_up });
    }

    /// The word that the decoded superblock ends with a jump through, if [`Engine::emit_bound`] is to make it: not if it is
    /// out of reach, or the jump is an event.
    pub(crate) fn bound_table(&self, s: &Streams) -> Option<u64> {
        let jump = self.sb.insns.last().filter(|_| self.sb.end == End::JumpIndirect)?.ins;
        let plain = jump.is_ip_rel_memory_operand()
            && jump.memory_base() == Register::RIP
            && jump.segment_prefix() == Register::None;
        if !plain || !self.returns_kill_flags() || self.events().calls && !self.in_forwarder() {
            return None;
        }
        let table = jump.ip_rel_memory_address();
        // (A little is emitted until then.)
        let near = |a: &Asm| {
            i32::try_from(table.wrapping_sub(a.here()) as i64).is_ok_and(|d| d.unsigned_abs() < 0x7fff_0000)
        };
        (near(&s.hot) && near(&s.cold)).then_some(table)
    }

    /// A cached site met its target `pc` for the first time, in block or entrance `to`.
    pub(crate) fn fill_cached(&mut self, id: u32, pc: u64, to: u32) {
        // A lazily bound entry still leads to the binder: wait for the real target.
        // SAFETY: the block at `pc` was just translated from these bytes.
        let head = unsafe { core::slice::from_raw_parts(pc as *const u8, 5) };
        const PUSH_IMM32: u8 = 0x68;
        if head[0] == PUSH_IMM32 || head == [0xf3, 0x0f, 0x1e, 0xfa, PUSH_IMM32] {
            return;
        }
        let kind = if self.has_entrance(pc) { ExitKind::Call } else { ExitKind::Jump };
        let Some(cached) = self.cached_sites.remove(&id) else { return };
        let e = &mut self.blocks.exits[id as usize];
        e.target = pc;
        e.kind = kind;
        if let CachedSite::Bound { low, high, .. } = cached {
            // SAFETY: aligned for patching; until the link is made below, a match still leads to the engine.
            unsafe {
                patch_imm32(low, pc as u32);
                patch_imm32(high, (pc >> 32) as u32);
            }
        }
        self.link(id, to);
        if self.blocks.exits[id as usize].to == NONE {
            return; // no room for a link: the site stays as it is
        }
        match cached {
            // SAFETY: the link is complete before the tag makes it reachable; both words are aligned and ours.
            CachedSite::Tag { tag, jne } => unsafe {
                core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
                (tag as *mut u64).write_volatile(pc);
                patch_rel32(jne, tag + 8);
            },
            // SAFETY: a displacement that was aligned for patching when it was emitted.
            CachedSite::Bound { decided, looked_up, .. } => unsafe { patch_rel32(decided, looked_up) },
        }
    }

    /// Emits the routine for returns that landed wrongly: an indirect jump to `[rsp]`, r11 being spilled.
    pub(crate) fn emit_return_miss(&mut self) {
        let table = self.low.branches();
        let arena = self.cache.arena(0);
        // SAFETY: the free part of the hot stream belongs to whoever sets the engine up.
        let mut a = unsafe { crate::emit::Asm::new(arena.hot, arena.hot_end()) };
        self.return_miss = a.here();
        a.bytes(&[0x41, 0x5b]); // pop r11
        self.emit_table_jump(&mut a, table);
        self.cache.arena(0).hot = a.here().next_multiple_of(64);
    }

    /// Emits the routine for returns whose slot is empty: fills it, and goes to the owner's landing.
    pub(crate) fn emit_return_fill(&mut self) {
        let miss = self.return_miss;
        if !self.returns_kill_flags() {
            self.return_fill = miss; // there are no owners
            return;
        }
        let owners = self.owners.address();
        let arena = self.cache.arena(0);
        // SAFETY: the free part of the hot stream belongs to whoever sets the engine up.
        let mut a = unsafe { Asm::new(arena.hot, arena.hot_end()) };
        self.return_fill = a.here();
        a.store_gs(off::SPILL_S, reg::RCX);
        a.mov_imm64(reg::R11, owners);
        a.bytes(&[0x8b, 0x0c, 0x24]); // mov ecx, [rsp]
        a.bytes(&[0x81, 0xe1]); // and ecx, SLOT_BITS
        a.d32(SLOT_BITS as i32);
        a.bytes(&[0x4d, 0x8b, 0x1c, 0x4b]); // mov r11, [r11+rcx*2]
        a.bytes(&[0x4d, 0x85, 0xdb]); // test r11, r11
        const NOBODY: u8 = 9 + 9 + 3;
        a.bytes(&[0x74, NOBODY]); // jz over the next three
        a.bytes(&[0x65, 0x4c, 0x89, 0x1c, 0x4d]); // mov gs:[rcx*2+cache], r11
        a.d32(RETURN_CACHE_OFFSET as i32);
        a.load_gs(reg::RCX, off::SPILL_S);
        a.bytes(&[0x41, 0xff, 0xe3]); // jmp r11
        a.load_gs(reg::RCX, off::SPILL_S);
        a.jmp(miss);
        arena.hot = a.here().next_multiple_of(64);
    }

    /// Goes where the table says for the target in r11. Other registers are the program's, and r11 is in `spill_t`; or
    /// those that are lent at returns are lent here, too.
    fn emit_table_jump(&self, a: &mut Asm, table: u32) {
        if self.lent_at_returns() == 0 {
            a.store_gs(off::SPILL_S, reg::RCX);
            a.table_jump(table);
        } else {
            a.table_jump_r9(table);
        }
    }

    /// Where branches to `pc` come from the table: goes on where the word that it puts into `cold` says, `next`, unless r11
    /// is `pc`. Falls out with registers as [`Engine::emit_table_jump`] had them, but for r11 and those that it changes;
    /// where none are lent, rcx is in `spill_s` still. Returns where it begins.
    pub(crate) fn destination(&self, a: &mut Asm, cold: &mut Asm, pc: u64, next: u64) -> u64 {
        const TO_R10: [u8; 3] = [0x49, 0x89, 0xca]; // mov r10, rcx
        const FROM_R10: [u8; 3] = [0x4c, 0x89, 0xd1]; // mov rcx, r10
        let lends = self.lent_at_returns() != 0;
        cold.align(8);
        let word = cold.here();
        cold.q64(next);
        a.align(16);
        let at = a.here();
        if lends {
            a.bytes(&TO_R10);
        }
        // The branch may be meant for another entry of this slot, where flags are live: this must not change them.
        let negative = pc.wrapping_neg();
        if let Ok(disp) = i32::try_from(negative as i64) {
            a.bytes(&[0x49, 0x8d, 0x8b]); // lea rcx, [r11-pc]
            a.d32(disp);
        } else {
            a.mov_imm64(reg::RCX, negative);
            a.bytes(&[0x4a, 0x8d, 0x0c, 0x19]); // lea rcx, [rcx+r11]
        }
        if lends {
            a.bytes(&[0xe3, 9]); // jrcxz over the next two
            a.bytes(&FROM_R10);
            a.jmp_mem(word);
            a.bytes(&FROM_R10);
        } else {
            a.bytes(&[0xe3, 6]); // jrcxz over the next one
            a.jmp_mem(word);
        }
        at
    }

    /// Behind a [`Engine::destination`]: goes on with these registers lent. Returns the displacement of the jump.
    pub(crate) fn emit_way_on(&self, a: &mut Asm, lent: u16) -> u64 {
        let from = self.lent_at_returns();
        if from == 0 {
            a.load_gs(reg::RCX, off::SPILL_S);
            a.load_gs(reg::R11, off::SPILL_T);
        }
        unspill(a, from & !lent);
        spill(a, lent & !from);
        jmp_exit(a)
    }

    /// The entry for indirect branches to `pc`, whose block is `id`: compares the target in r11 with its own
    /// address. Entries that share a table slot are chained. They belong to addresses, not blocks: the last jump
    /// is an exit, linked and cut like any other, so an entry stays good when its block is flushed.
    pub(crate) fn indirect_entry(&mut self, pc: u64, id: u32) {
        if let Some(&exit) = self.indirect.get(&pc) {
            if self.blocks.exits[exit as usize].to == NONE {
                self.link(exit, id);
            }
            return;
        }
        let b = self.blocks.list[id as usize];
        let arena = self.cache.arena(b.arena.into());
        // SAFETY: the free part of the streams belongs to the holder of the engine lock.
        let (mut a, mut cold) =
            unsafe { (Asm::new(arena.hot, arena.hot_end()), Asm::new(arena.cold, arena.cold_end())) };
        arena.note_cold(cold.here(), id);
        let at = self.destination(&mut a, &mut cold, pc, self.low.get(pc));
        self.cache.arena(b.arena.into()).note(at, cold.here(), id);
        let site = self.emit_way_on(&mut a, b.borrowed);
        let arena = self.cache.arena(b.arena.into());
        (arena.hot, arena.cold) = (a.here(), cold.here());
        let exit = self.new_exit(Exit { lent: b.borrowed, ..Exit::new(NONE, ExitKind::Jump, pc, site) });
        self.link(exit, id);
        self.indirect.insert(pc, exit);
        self.low.set(pc, at);
    }
}
