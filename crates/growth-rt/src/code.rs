//! The code that is emitted at accesses, calls and returns, and the routines that it shares.
//!
//! The sequences are those of `inputsize::core`, with the thread's words in memory ([`crate::layout::gs`]) instead of
//! registers: three scratch registers, S (address, then index of the cell), X and R. What rarely happens is out of line
//! in the cold stream; what happens rarely there goes to *shared routines*, made once for each choice of registers and
//! jumped to with the way back in R.
//!
//! ```text
//! read, 4 bytes, [base+d]    8 bytes                    write, 4n bytes
//!   test base, 3               test base, 3               test base, 3
//!   jnz  unaligned             jnz  unaligned             jnz  unaligned
//!   pext S, base, R            pext S, base, R            pext S, base, R
//!                                                         mov  X, MARKS          ; trms only,
//!                                                         mov  X, [X+S+d/4]      ; n bytes
//!                                                         cmp  X, ME
//!                                                         jne  foreign
//!                                                       back:
//!                                                         mov  X, TOP
//!   cmp  stamp+d, X            cmp  stamps+d, X           mov  stamps+d, X
//!   jb   cold                  jne  cold
//! back:                      back:
//! ```
//! *Held* in registers from one access of a superblock to the next are the top stamp in X, the mask in R, and the index
//! in S: a further access off the same base needs no `pext`, and one off the stack pointer no test. Code out of line
//! uses the registers otherwise and brings back what is held. Addresses that are not a base alone are computed in S
//! before (`lea`), and tested there.
//!
//! First reads are counted out of line, but in the first superblock of a routine, where what is not on the stack is
//! mostly read for the first time: there the straight path counts, and leaps over it where it need not.
//!
//! # Must never
//! Change a register that is not scratch, touch the program's stack, or leave flags changed where they are live.

mod calls;

use crate::layout::{FOLD, FOLDED_MARK, Frame, STAMPS, flag, gs};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::ops::Range;
use engine::access::{Access, Kind};
use engine::emit::{Asm, Reg, patch_rel32, reg};
use engine::events::Emit;
use engine::modrm::{Alu, Mem, Size};
use wire::growth::Metric;

/// Condition codes.
mod cc {
    pub const C: u8 = 2;
    pub const AE: u8 = 3;
    pub const B: u8 = 2;
    pub const E: u8 = 4;
    pub const NE: u8 = 5;
    pub const BE: u8 = 6;
    pub const A: u8 = 7;
}

/// What a clean call is about: the upper 4 bits of its token. The rest is its payload.
pub mod token {
    /// A routine is entered in an odd way; payload: the routine, `value`: where its return address is.
    pub const ENTER: u32 = 1 << 28;
    /// The same for a routine that folds.
    pub const ENTER_FOLD: u32 = 2 << 28;
    /// A return that does not match the top frame, or whose end needs more than emitted code does.
    pub const RETURN: u32 = 3 << 28;
    /// The record buffer is full.
    pub const FULL: u32 = 4 << 28;
    /// First stamps; payload: cells, `value`: the first one's index. Counted as own reads already.
    pub const FIRST: u32 = 5 << 28;
    /// Marks are not the thread's own; payload: cells, `value`: the first one's index.
    pub const FOREIGN: u32 = 6 << 28;
    /// The bits that tell them apart.
    pub const KIND: u32 = 15 << 28;
}

/// A shared routine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Routine {
    /// A read of 1 or 2 cells `offset` bytes from the one with the index S, whose stamp is not X, the top's. Whether R
    /// is to be the `mask` again.
    Counts { cells: u8, offset: i16, mask: bool },
    /// First stamps of 1 or 2 cells: S index. Counted as own reads already.
    First(u8),
    /// A read of two cells with different stamps: S index.
    Mixed,
    /// A read of as many cells as X says: S index, the way back in [`gs::HOME`].
    Cells,
    /// A read of so many bytes at an address: S.
    Read(u32),
    /// A write likewise.
    Write(u32),
    /// Marks of so many cells are not the thread's own: S index.
    Foreign(u8),
}

/// How far from a cell whose index S is, in bytes, accesses may lie that use it. While folded work runs, all indices
/// are 0: cells that far from it are nobody's ([`crate::shadow::FOLDED_CELLS`]).
pub const REACH: Range<i32> = -512..512;

/// Reads that get code of their own for counting first reads, so that the processor learns how far each one searches. In
/// programs with more, the code is what costs: further ones share it.
const SITES_MAX: u32 = 16_000;

/// What scratch registers hold from one access of a superblock to the next.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// X is the top stamp.
    top: bool,
    /// R is the mask.
    mask: bool,
}

/// Where the cells of an access are.
struct Found {
    /// They begin so many bytes after the cell whose index S is.
    offset: i32,
    /// The jump behind what makes the access if it straddles cells.
    unaligned: Option<u64>,
    /// What [`Code::access`] returns.
    next: Option<i32>,
}

/// Emits.
pub struct Code {
    metric: Metric,
    /// log2 of the bytes of a cell.
    shift: u32,
    time: bool,
    /// Reads that were emitted.
    sites: u32,
    /// Whether the superblock has accesses enough to hold the mask.
    many: bool,
    held: Held,
    /// Where routines are, by what they are for, their registers, and what the engine must know of those.
    shared: BTreeMap<(Routine, [Reg; 3], u32), Vec<u64>>,
}

const fn frame(field: usize) -> i32 {
    field as i32
}

const STAMP: i32 = frame(offset_of!(Frame, stamp));
const SP: i32 = frame(offset_of!(Frame, sp));
const OWN: i32 = frame(offset_of!(Frame, own));
const FAR: i32 = frame(offset_of!(Frame, far));
const ENTERED: i32 = frame(offset_of!(Frame, entered));
const CALLEES: i32 = frame(offset_of!(Frame, callees));
const ROUTINE: i32 = frame(offset_of!(Frame, routine));
const FLAGS: i32 = frame(offset_of!(Frame, flags));
const OLDER: i32 = frame(offset_of!(Frame, older));
const FRAME: i32 = size_of::<Frame>() as i32;

/// The stamps of the cell with its index in `s`, `offset` bytes on.
fn stamp(s: Reg, offset: i32) -> Mem {
    Mem::gs_index(s, 2, STAMPS + offset)
}

fn test_imm8(a: &mut Asm, r: Reg, imm: u8) {
    a.op_reg(Size::B, &[0xf6], 0, r);
    a.bytes(&[imm]);
}

fn shift_right(a: &mut Asm, r: Reg, n: u8) {
    a.op_reg(Size::Q, &[0xc1], 5, r);
    a.bytes(&[n]);
}

/// `lea r, [rip to `to`]`
fn lea_code(a: &mut Asm, r: Reg, to: u64) {
    a.bytes(&[0x48 | (r >> 3) << 2, 0x8d, (r & 7) << 3 | 5]);
    let d = to.wrapping_sub(a.here() + 4);
    a.d32(d as i32);
}

/// Goes to a shared routine that comes back here.
fn call_shared(c: &mut Asm, r: Reg, routine: u64) {
    const STEP: u64 = 7 + 5;
    let after = c.here() + STEP;
    lea_code(c, r, after);
    c.jmp(routine);
    debug_assert_eq!(c.here(), after);
}

/// Goes to a shared routine for the cell `cells` after the one whose index S is, and then to `back`.
fn jump_shared(c: &mut Asm, [s, r]: [Reg; 2], cells: i32, routine: u64, back: u64) {
    if cells == 0 {
        lea_code(c, r, back);
        c.jmp(routine);
        return;
    }
    c.lea(s, &Mem::base(s, cells));
    call_shared(c, r, routine);
    c.lea(s, &Mem::base(s, -cells));
    c.jmp(back);
}

/// Makes the jump with its displacement at `site` lead here.
fn land(a: &Asm, site: u64) {
    // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
    unsafe { patch_rel32(site, a.here()) };
}

/// What callers gain by far first reads of `n` cells with the stamp X: R is the top frame, and both are lost. Goes to
/// `back`; the jump that is returned is taken where there is no stamp, with nothing done. At each site of its own, so
/// that the processor can learn how far each one searches.
fn far(c: &mut Asm, [x, r]: [Reg; 2], n: i32, back: u64) -> u64 {
    c.op_reg(Size::D, &[0x85], x, x); // test x, x
    let zero = c.jcc_later(cc::E);
    c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(r, FAR - FRAME), n);
    c.lea(r, &Mem::base(r, -2 * FRAME));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(r, STAMP), x);
    let found = c.jcc_later(cc::BE);
    let next = c.here();
    c.lea(r, &Mem::base(r, -FRAME));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(r, STAMP), x);
    c.jcc(cc::A, next);
    land(c, found);
    c.alu_store_imm(Alu::Sub, Size::Q, &Mem::base(r, FAR), n);
    c.jmp(back);
    zero
}

/// Counts a read whose stamp is not the top's, `offset` bytes from the cell in S; X is the top stamp, and all but S is
/// lost. Falls out where that is done. Returns jumps: to the far case, and for two cells to where nothing is to be done
/// and to where they differ.
fn count_near(c: &mut Asm, [s, x, r]: [Reg; 3], cells: u8, offset: i32) -> [Option<u64>; 3] {
    let size = if cells == 1 { Size::D } else { Size::Q };
    let (mut newer, mut different) = (None, None);
    c.load(size, r, &stamp(s, offset));
    if cells == 2 {
        c.rorx(x, r, 32);
        c.alu(Alu::Cmp, Size::Q, x, r);
        different = Some(c.jcc_later(cc::NE));
        c.load(Size::Q, x, &Mem::gs(gs::TOP));
    }
    c.store(size, &stamp(s, offset), x);
    if cells == 2 {
        c.alu(Alu::Cmp, Size::Q, r, x);
        newer = Some(c.jcc_later(cc::AE));
    }
    c.load(Size::Q, x, &Mem::gs(gs::SSP));
    c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, OWN), cells.into());
    c.alu_load(Alu::Cmp, size, r, &Mem::base(x, STAMP - FRAME));
    [Some(c.jcc_later(cc::B)), newer, different]
}

/// What the jumps of [`count_near`] lead to; goes to `back` then. `rare` are the routines for cells without a stamp and
/// for two that differ.
fn count_far(
    c: &mut Asm,
    [s, x, r]: [Reg; 3],
    (cells, offset): (u8, i32),
    [is_far, newer, different]: [Option<u64>; 3],
    back: u64,
    [first, mixed]: [u64; 2],
) {
    if let Some(site) = is_far {
        land(c, site);
    }
    let zero = far(c, [r, x], cells.into(), back);
    land(c, zero);
    jump_shared(c, [s, r], offset / 4, first, back);
    if let Some(site) = newer {
        // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
        unsafe { patch_rel32(site, back) };
    }
    if let Some(site) = different {
        land(c, site);
        jump_shared(c, [s, r], offset / 4, mixed, back);
    }
}

impl Code {
    /// For a run with these choices.
    pub fn new(metric: Metric, shift: u32, time: bool) -> Code {
        Code { metric, shift, time, sites: 0, many: false, held: Held::default(), shared: BTreeMap::new() }
    }

    /// A superblock begins; `many`: it has enough accesses to hold the mask in a register.
    pub fn begin(&mut self, many: bool) {
        self.many = many;
        self.held = Held::default();
    }

    /// An access. `at_entry`: in the first superblock of a routine, where what is not on the stack is mostly read for
    /// the first time. `from_held`: S is the index of the cell so many bytes before the access, and whether its base is
    /// aligned is all that must be checked. Returns the same for the next access: how many bytes before this one the
    /// cell lies whose index S is; `None` if that is of no use.
    pub fn access(
        &mut self,
        e: &mut Emit<'_>,
        a: &Access,
        at_entry: bool,
        from_held: Option<i32>,
    ) -> Option<i32> {
        let whole = matches!(a.bytes, 1 | 2 | 4 | 8 | 16 | 32 | 64) && self.shift == 2;
        if !whole {
            e.lea(e.scratch[0], &a.operand);
            e.keep_flags();
            if a.kind != Kind::Write {
                // (It leaves the address in S.)
                self.generic(e, Routine::Read(a.bytes));
            }
            if a.kind != Kind::Read {
                self.generic(e, Routine::Write(a.bytes));
            }
            self.held = Held::default();
            return None;
        }
        let likely = at_entry && a.operand.base != Some(reg::RSP);
        let Found { offset, unaligned, next } = self.find(e, a, from_held);
        if a.kind != Kind::Write {
            match a.bytes {
                1 | 2 | 4 => self.read(e, 1, offset, likely),
                _ => (0..a.bytes as i32 / 8).for_each(|pair| self.read(e, 2, offset + pair * 8, likely)),
            }
        }
        if a.kind != Kind::Read {
            self.write(e, offset, a.bytes.div_ceil(4), a.kind == Kind::Write);
        }
        if let Some(jump) = unaligned {
            land(e.cold, jump);
            self.hold_again(e.cold, e.scratch);
            let to = e.hot.here();
            e.cold.jmp(to);
        }
        next
    }

    /// Emits what brings the index of a cell to S: of the access itself or, where that is shorter, of one nearby.
    fn find(&mut self, e: &mut Emit<'_>, a: &Access, from_held: Option<i32>) -> Found {
        let [s, _, _] = e.scratch;
        let o = &a.operand;
        let plain = !o.fs && o.index.is_none();
        // Where flags are kept, rax is not the program's behind that.
        let base = o.base.filter(|&b| plain && !(e.flags_live && b == reg::RAX));
        let disp = i32::try_from(o.disp).ok();
        // In one cell, or in whole ones, if the base is aligned.
        let fits = |disp: i32| disp & 3 == 0 || a.bytes == 1 || a.bytes == 2 && disp & 3 != 3;
        let absolute = plain && o.base.is_none();
        // Bytes and half cells are often read off a base that is not aligned (strings, bytecode).
        let whole = |base: Reg| a.bytes >= 4 || base == reg::RSP;
        if let (Some(offset), Some(disp)) = (from_held, disp)
            && REACH.contains(&offset)
            && fits(offset)
            && (absolute || base.is_some_and(whole))
        {
            e.keep_flags();
            let unaligned = base.and_then(|base| self.check_base(e, a, base, disp));
            return Found { offset: offset & !3, unaligned, next: Some(offset) };
        }
        if let (Some(base), Some(disp)) = (base, disp)
            && REACH.contains(&disp)
            && fits(disp)
            && whole(base)
        {
            e.keep_flags();
            let unaligned = self.check_base(e, a, base, disp);
            self.index_of(e, base);
            return Found { offset: disp & !3, unaligned, next: Some(disp) };
        }
        if let (1, Some(base), Some(0)) = (a.bytes, base, disp) {
            e.keep_flags();
            self.index_of(e, base);
            return Found { offset: 0, unaligned: None, next: None };
        }
        e.lea(s, o);
        e.keep_flags();
        let unaligned = self.check_address(e, a);
        self.index_of(e, s);
        let aligned = plain && a.bytes >= 4 && o.disp & 3 == 0;
        Found { offset: 0, unaligned, next: aligned.then_some(0) }
    }

    /// S becomes the index of the cell that holds the byte at the address in `from`.
    fn index_of(&mut self, e: &mut Emit<'_>, from: Reg) {
        let [s, _, r] = e.scratch;
        if !self.many {
            return e.hot.pext(s, from, &Mem::gs(gs::MASK));
        }
        if !self.held.mask {
            e.hot.load(Size::Q, r, &Mem::gs(gs::MASK));
            self.held.mask = true;
        }
        e.hot.pext_reg(s, from, r);
    }

    /// X becomes the top stamp.
    fn hold_top(&mut self, e: &mut Emit<'_>) {
        if !self.held.top {
            e.hot.load(Size::Q, e.scratch[1], &Mem::gs(gs::TOP));
            self.held.top = true;
        }
    }

    /// What is held, after code that has used the registers otherwise.
    fn hold_again(&self, c: &mut Asm, [_, x, r]: [Reg; 3]) {
        if self.held.top {
            c.load(Size::Q, x, &Mem::gs(gs::TOP));
        }
        if self.held.mask {
            c.load(Size::Q, r, &Mem::gs(gs::MASK));
        }
    }

    /// Sends accesses off a base that is not aligned to the general routines. Returns the jump that must lead behind
    /// the aligned case. (What S is then does not matter: further accesses off the base do not use it either.)
    fn check_base(&mut self, e: &mut Emit<'_>, a: &Access, base: Reg, disp: i32) -> Option<u64> {
        if base == reg::RSP {
            return None;
        }
        test_imm8(e.hot, base, 3);
        Some(self.leave_for_general(e, a, Some(&Mem::base(base, disp))))
    }

    /// Sends accesses that straddle cells to the general routines, unless there can be none. S is the address. Returns
    /// the jump that must lead behind the aligned case.
    fn check_address(&mut self, e: &mut Emit<'_>, a: &Access) -> Option<u64> {
        let mask = match a.bytes {
            1 => return None,
            2 => 1,
            _ => 3,
        };
        let o = &a.operand;
        let fixed = !o.fs && o.index.is_none() && (o.base == Some(reg::RSP) || o.base.is_none());
        if fixed && o.disp as u8 & mask == 0 {
            return None;
        }
        test_imm8(e.hot, e.scratch[0], mask);
        Some(self.leave_for_general(e, a, None))
    }

    /// If flags say "not equal", the access is made by general routines: its address is in S, or `address`.
    fn leave_for_general(&mut self, e: &mut Emit<'_>, a: &Access, address: Option<&Mem>) -> u64 {
        let [s, _, r] = e.scratch;
        let read = (a.kind != Kind::Write).then(|| self.routine(e, Routine::Read(a.bytes)));
        let write = (a.kind != Kind::Read).then(|| self.routine(e, Routine::Write(a.bytes)));
        let stub = e.cold.here();
        e.hot.jcc(cc::NE, stub);
        let c = &mut *e.cold;
        if let Some(address) = address {
            c.lea(s, address);
        }
        // Read, then write: the routines leave the address in S.
        for routine in [read, write].into_iter().flatten() {
            call_shared(c, r, routine);
        }
        let here = c.here();
        c.jmp(here)
    }

    /// A whole access by a general routine.
    fn generic(&mut self, e: &mut Emit<'_>, routine: Routine) {
        let to = self.routine(e, routine);
        call_shared(e.hot, e.scratch[2], to);
    }

    /// Reads one cell, or two in one.
    fn read(&mut self, e: &mut Emit<'_>, cells: u8, offset: i32, likely: bool) {
        let [s, x, r] = e.scratch;
        self.sites += 1;
        let out_of_line = !likely && self.sites > SITES_MAX;
        let counts = out_of_line
            .then(|| self.routine(e, Routine::Counts { cells, offset: offset as i16, mask: self.held.mask }));
        let rare = [self.routine(e, Routine::First(cells)), self.routine(e, Routine::Mixed)];
        self.hold_top(e);
        let (size, cond) = if cells == 1 { (Size::D, cc::B) } else { (Size::Q, cc::NE) };
        e.hot.alu_store(Alu::Cmp, size, &stamp(s, offset), x);
        if let Some(counts) = counts {
            let cold = e.cold.here();
            e.hot.jcc(cond, cold);
            let back = e.hot.here();
            lea_code(e.cold, r, back);
            e.cold.jmp(counts);
            return;
        }
        if !likely {
            let cold = e.cold.here();
            e.hot.jcc(cond, cold);
            let [is_far, newer, different] = count_near(e.cold, e.scratch, cells, offset);
            let back = e.cold.here();
            self.hold_again(e.cold, e.scratch);
            let behind = e.hot.here();
            e.cold.jmp(behind);
            count_far(e.cold, e.scratch, (cells, offset), [is_far, newer, different], back, rare);
            return;
        }
        // What counts it needs the registers.
        self.held = Held::default();
        const NOT: u8 = 1;
        let known = e.hot.jcc_later(cond ^ NOT);
        let jumps = count_near(e.hot, e.scratch, cells, offset);
        land(e.hot, known);
        let back = e.hot.here();
        count_far(e.cold, e.scratch, (cells, offset), jumps, back, rare);
    }

    fn write(&mut self, e: &mut Emit<'_>, offset: i32, cells: u32, stamps: bool) {
        let [s, x, r] = e.scratch;
        if self.metric != Metric::Rms {
            // 16 cells (64 bytes) are two times 8.
            for part in 0..cells.div_ceil(8) {
                let n = cells.min(8);
                let foreign = self.routine(e, Routine::Foreign(n as u8));
                let cell = offset / 4 + part as i32 * 8;
                e.hot.load(Size::Q, x, &Mem::gs(gs::MARKS));
                e.hot.load(Size::of(n), x, &Mem::index(x, s, 0, cell));
                e.hot.alu_load(Alu::Cmp, Size::of(n), x, &Mem::gs(gs::ME));
                self.held.top = false;
                let cold = e.cold.here();
                e.hot.jcc(cc::NE, cold);
                let back = e.hot.here();
                let c = &mut *e.cold;
                if cell != 0 {
                    c.lea(s, &Mem::base(s, cell));
                }
                call_shared(c, r, foreign);
                if cell != 0 {
                    c.lea(s, &Mem::base(s, -cell));
                }
                self.hold_again(c, e.scratch);
                c.jmp(back);
            }
        }
        if stamps {
            self.hold_top(e);
            let at = |pair: i32| stamp(s, offset + pair * 8);
            match cells {
                1 => e.hot.store(Size::D, &at(0), x),
                _ => (0..cells as i32 / 2).for_each(|pair| e.hot.store(Size::Q, &at(pair), x)),
            }
        }
    }

    /// Where a shared routine is, in reach of both streams.
    fn routine(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        let key = (routine, e.scratch, e.context());
        let here = e.cold.here();
        let near = |at: u64| at.abs_diff(here) < 1 << 30;
        if let Some(&at) = self.shared.get(&key).and_then(|all| all.iter().find(|&&at| near(at))) {
            return at;
        }
        let at = self.emit_routine(e, routine);
        self.shared.entry(key).or_default().push(at);
        at
    }

    /// Makes a shared routine in the cold stream, after those that it needs. Returns where it begins.
    fn emit_routine(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        let [s, x, r] = e.scratch;
        let start = e.cold.here();
        match routine {
            Routine::First(n) => self.emit_first(e, n.into()),
            Routine::Counts { cells, offset, mask } => {
                let offset = i32::from(offset);
                let rare = [self.routine(e, Routine::First(cells)), self.routine(e, Routine::Mixed)];
                let c = &mut *e.cold;
                let start = c.here();
                c.store(Size::Q, &Mem::gs(gs::WAY), r);
                let jumps = count_near(c, e.scratch, cells, offset);
                let back = c.here();
                c.load(Size::Q, x, &Mem::gs(gs::TOP));
                if mask {
                    c.load(Size::Q, r, &Mem::gs(gs::MASK));
                }
                c.jmp_gs(gs::WAY);
                count_far(c, e.scratch, (cells, offset), jumps, back, rare);
                return start;
            }
            Routine::Mixed => {
                let cells = self.routine(e, Routine::Cells);
                let c = &mut *e.cold;
                let start = c.here();
                c.store(Size::Q, &Mem::gs(gs::ADDRESS), s);
                c.store(Size::Q, &Mem::gs(gs::HOME), r);
                c.op_reg(Size::D, &[0x31], x, x); // xor x, x
                c.alu_imm(Alu::Add, Size::D, x, 2);
                c.jmp(cells);
                return start;
            }
            Routine::Cells => {
                let first = self.routine(e, Routine::First(1));
                let c = &mut *e.cold;
                let start = c.here();
                c.load(Size::D, r, &Mem::gs(gs::TOP));
                let next = c.here();
                c.alu_store(Alu::Cmp, Size::D, &stamp(s, 0), r);
                let counts = c.jcc_later(cc::B);
                let on = c.here();
                c.lea(s, &Mem::base(s, 1));
                c.alu_imm(Alu::Sub, Size::D, x, 1);
                c.jcc(cc::NE, next);
                c.load(Size::Q, s, &Mem::gs(gs::ADDRESS));
                c.load(Size::Q, r, &Mem::gs(gs::HOME));
                c.jmp_reg(r);
                let done = c.here();
                c.load(Size::D, r, &Mem::gs(gs::TOP));
                c.load(Size::Q, x, &Mem::gs(gs::CELLS));
                c.jmp(on);
                land(c, counts);
                c.store(Size::Q, &Mem::gs(gs::CELLS), x);
                c.load(Size::D, x, &stamp(s, 0));
                c.store(Size::D, &stamp(s, 0), r);
                c.load(Size::Q, r, &Mem::gs(gs::SSP));
                c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(r, OWN), 1);
                c.alu_load(Alu::Cmp, Size::D, x, &Mem::base(r, STAMP - FRAME));
                c.jcc(cc::AE, done);
                let zero = far(c, [x, r], 1, done);
                land(c, zero);
                lea_code(c, r, done);
                c.jmp(first);
                return start;
            }
            Routine::Read(bytes) => {
                let cells = self.routine(e, Routine::Cells);
                let start = e.cold.here();
                self.emit_head(e, bytes);
                e.cold.jmp(cells);
                return start;
            }
            Routine::Write(bytes) => {
                let rms = self.metric == Metric::Rms;
                let foreign = if rms { 0 } else { self.routine(e, Routine::Foreign(1)) };
                let start = e.cold.here();
                self.emit_head(e, bytes);
                let c = &mut *e.cold;
                let next = c.here();
                if !rms {
                    c.store(Size::Q, &Mem::gs(gs::CELLS), x);
                    c.load(Size::Q, x, &Mem::gs(gs::MARKS));
                    c.load(Size::B, x, &Mem::index(x, s, 0, 0));
                    c.alu_load(Alu::Cmp, Size::B, x, &Mem::gs(gs::ME));
                    let own = c.jcc_later(cc::E);
                    call_shared(c, r, foreign);
                    land(c, own);
                    c.load(Size::Q, x, &Mem::gs(gs::CELLS));
                }
                c.load(Size::D, r, &Mem::gs(gs::TOP));
                c.store(Size::D, &stamp(s, 0), r);
                c.lea(s, &Mem::base(s, 1));
                c.alu_imm(Alu::Sub, Size::D, x, 1);
                c.jcc(cc::NE, next);
                c.load(Size::Q, s, &Mem::gs(gs::ADDRESS));
                c.load(Size::Q, r, &Mem::gs(gs::HOME));
                c.jmp_reg(r);
                return start;
            }
            Routine::Foreign(n) => {
                let c = &mut *e.cold;
                let n = u32::from(n);
                let mut out = Vec::new();
                // All cells on one page, of which this thread alone holds stamps: the marks become its own.
                c.op_reg(Size::D, &[0x89], s, x); // mov x, s
                c.alu_imm(Alu::And, Size::D, x, 1023);
                c.alu_imm(Alu::Cmp, Size::D, x, 1024 - n as i32);
                out.push(c.jcc_later(cc::A));
                c.op_reg(Size::Q, &[0x89], s, x);
                shift_right(c, x, 10);
                c.store(Size::Q, &Mem::gs(gs::BACK), r);
                c.load(Size::Q, r, &Mem::gs(gs::SHARERS));
                c.load(Size::Q, x, &Mem::index(r, x, 3, 0));
                c.load(Size::Q, r, &Mem::gs(gs::BACK));
                c.alu_load(Alu::Cmp, Size::Q, x, &Mem::gs(gs::ONLY_ME));
                out.push(c.jcc_later(cc::NE));
                c.load(Size::Q, x, &Mem::gs(gs::MARKS));
                c.lea(x, &Mem::index(x, s, 0, 0));
                c.load(Size::Q, r, &Mem::gs(gs::ME));
                c.store(Size::of(n), &Mem::base(x, 0), r);
                c.load(Size::Q, r, &Mem::gs(gs::BACK));
                c.jmp_reg(r);
                out.into_iter().for_each(|site| land(c, site));
                // S must survive: the stamps are stored next.
                c.store(Size::Q, &Mem::gs(gs::KEPT), s);
                e.call_out_cold(token::FOREIGN | n, s);
                e.cold.load(Size::Q, s, &Mem::gs(gs::KEPT));
                e.cold.jmp_reg(r);
            }
        }
        start
    }

    fn emit_first(&self, e: &mut Emit<'_>, n: i32) {
        let [s, x, r] = e.scratch;
        let c = &mut *e.cold;
        let mut out = Vec::new();
        if self.metric != Metric::Rms {
            // Plain if the thread is among the sharers of the page, and nobody wrote.
            if n > 1 {
                c.lea(x, &Mem::base(s, 1));
                c.op_reg(Size::D, &[0xf7], 0, x); // test x, 1023
                c.d32(1023);
                out.push(c.jcc_later(cc::E));
            }
            c.op_reg(Size::Q, &[0x89], s, x); // mov x, s
            shift_right(c, x, 10);
            c.store(Size::Q, &Mem::gs(gs::BACK), r);
            c.load(Size::Q, r, &Mem::gs(gs::SHARERS));
            c.load(Size::Q, x, &Mem::index(r, x, 3, 0));
            c.load(Size::Q, r, &Mem::gs(gs::BACK));
            c.op_mem(Size::Q, &[0x85], x, &Mem::gs(gs::MY_BIT)); // test x, my bit
            out.push(c.jcc_later(cc::E));
            c.load(Size::Q, x, &Mem::gs(gs::MARKS));
            c.alu_store_imm(Alu::Cmp, Size::of(n as u32), &Mem::index(x, s, 0, 0), 0);
            out.push(c.jcc_later(cc::NE));
        }
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, FAR - FRAME), n);
        c.jmp_reg(r);
        if !out.is_empty() {
            out.into_iter().for_each(|site| land(c, site));
            c.store(Size::Q, &Mem::gs(gs::COUNT), s);
            e.call_out_cold(token::FIRST | n as u32, s);
            e.cold.load(Size::Q, s, &Mem::gs(gs::COUNT));
            e.cold.jmp_reg(r);
        }
    }

    /// The head of a general routine: `bytes` at the address in S become an index in S and a number of cells in X; the
    /// address and the way back are kept.
    fn emit_head(&self, e: &mut Emit<'_>, bytes: u32) {
        let [s, x, r] = e.scratch;
        let c = &mut *e.cold;
        let cell = 1u32 << self.shift;
        c.store(Size::Q, &Mem::gs(gs::ADDRESS), s);
        c.store(Size::Q, &Mem::gs(gs::HOME), r);
        c.op_reg(Size::D, &[0x89], s, x); // mov x, s
        c.alu_imm(Alu::And, Size::D, x, cell as i32 - 1);
        c.alu_imm(Alu::Add, Size::D, x, (bytes + cell - 1) as i32);
        shift_right(c, x, self.shift as u8);
        c.pext(s, s, &Mem::gs(gs::MASK));
    }
}
