//! The code that is emitted at accesses, calls and returns, and the routines that it shares.
//!
//! The sequences are those of `inputsize::core`, with the thread's words in memory ([`crate::layout::gs`]) instead of
//! registers: three scratch registers, S (address, then index of the cell), X and R. What rarely happens is out of line
//! in the cold stream; what happens rarely there goes to *shared routines*, made once for each choice of registers and
//! jumped to with the way back in R.
//!
//! ```text
//! read, 4 bytes           read, 8 bytes                 write, 4n bytes
//!   lea  S, [operand]       lea  S, [operand]             lea  S, [operand]
//!   test S, 3               test S, 3                     test S, 3
//!   jnz  unaligned          jnz  unaligned                jnz  unaligned
//!   pext S, S, MASK         pext S, S, MASK               pext S, S, MASK
//!   mov  X, stamp           mov  X, stamps                mov  X, MARKS          ; trms only,
//!   cmp  X, TOP             cmp  X, TOP                   mov  X, [X+S]          ; n bytes
//!   jb   cold               jne  cold                     cmp  X, ME
//! back:                   back:                           jne  foreign
//!                                                       back:
//!                                                         mov  X, TOP
//!                                                         mov  stamps, X
//! ```
//! First reads are counted out of line, but in the first superblock of a routine, where what is not on the stack is
//! mostly read for the first time: there the straight path counts, and leaps over it where it need not.
//!
//! # Must never
//! Change a register that is not scratch, touch the program's stack, or leave flags changed where they are live.

use crate::layout::{FOLD, FOLDED_MARK, Frame, STAMPS, flag, gs};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem::offset_of;
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

/// Emits.
pub struct Code {
    metric: Metric,
    /// log2 of the bytes of a cell.
    shift: u32,
    time: bool,
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

/// Makes the jump with its displacement at `site` lead here.
fn land(a: &Asm, site: u64) {
    // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
    unsafe { patch_rel32(site, a.here()) };
}

/// The flags say whether a read may be a first one (`cond`): leaves the straight path then, or, where that is `likely`,
/// leaps over what counts it otherwise. Returns the leap, or the place behind the jump.
fn leave_for_first(e: &mut Emit<'_>, cond: u8, likely: bool) -> (Option<u64>, u64) {
    const NOT: u8 = 1;
    if likely {
        return (Some(e.hot.jcc_later(cond ^ NOT)), 0);
    }
    let cold = e.cold.here();
    e.hot.jcc(cond, cold);
    (None, e.hot.here())
}

/// The flags say whether a first read is near: goes back then. What follows in the cold stream is about far ones.
/// `done` are jumps that also lead back. Returns where back is.
fn return_if_near(e: &mut Emit<'_>, known: Option<u64>, behind: u64, done: &[u64]) -> u64 {
    let back = match known {
        None => {
            e.cold.jcc(cc::AE, behind);
            behind
        }
        Some(known) => {
            let is_far = e.hot.jcc_later(cc::B);
            land(e.hot, known);
            land(e.cold, is_far);
            e.hot.here()
        }
    };
    for &site in done {
        // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
        unsafe { patch_rel32(site, back) };
    }
    back
}

/// What callers gain by far first reads of `n` cells with the stamp X: R is the top frame, and both are lost. Goes
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

impl Code {
    /// For a run with these choices.
    pub fn new(metric: Metric, shift: u32, time: bool) -> Code {
        Code { metric, shift, time, shared: BTreeMap::new() }
    }

    /// An access. `at_entry`: in the first superblock of a routine, where what is not on the stack is mostly read for
    /// the first time.
    pub fn access(&mut self, e: &mut Emit<'_>, a: &Access, at_entry: bool) {
        let likely = at_entry && a.operand.base != Some(reg::RSP);
        let s = e.scratch[0];
        e.lea(s, &a.operand);
        e.keep_flags();
        let whole = matches!(a.bytes, 1 | 2 | 4 | 8 | 16 | 32 | 64) && self.shift == 2;
        if !whole {
            if a.kind != Kind::Write {
                // (It leaves the address in S.)
                self.generic(e, Routine::Read(a.bytes));
            }
            if a.kind != Kind::Read {
                self.generic(e, Routine::Write(a.bytes));
            }
            return;
        }
        let done = self.check_alignment(e, a);
        e.hot.pext(s, s, &Mem::gs(gs::MASK));
        if a.kind != Kind::Write {
            match a.bytes {
                1 | 2 | 4 => self.read_one(e, likely),
                _ => (0..a.bytes as i32 / 8).for_each(|pair| self.read_pair(e, pair * 8, likely)),
            }
        }
        if a.kind != Kind::Read {
            self.write(e, a.bytes.div_ceil(4), a.kind == Kind::Write);
        }
        if let Some(jump) = done {
            let to = e.hot.here();
            // SAFETY: a displacement that was just emitted in the cold stream; nothing runs it yet.
            unsafe { patch_rel32(jump, to) };
        }
    }

    /// Sends accesses that straddle cells to the general routines, unless there can be none. Returns the jump that
    /// must lead behind the aligned case.
    fn check_alignment(&mut self, e: &mut Emit<'_>, a: &Access) -> Option<u64> {
        let mask = match a.bytes {
            1 => return None,
            2 => 1,
            _ => 3,
        };
        let o = &a.operand;
        let fixed = o.index.is_none() && (o.base == Some(reg::RSP) || o.base.is_none());
        if fixed && o.disp as u8 & mask == 0 {
            return None;
        }
        let [s, _, r] = e.scratch;
        test_imm8(e.hot, s, mask);
        let read = (a.kind != Kind::Write).then(|| self.routine(e, Routine::Read(a.bytes)));
        let write = (a.kind != Kind::Read).then(|| self.routine(e, Routine::Write(a.bytes)));
        let stub = e.cold.here();
        e.hot.jcc(cc::NE, stub);
        if let (Some(read), Some(_)) = (read, write) {
            // Read, then write: the routine leaves the address in S.
            const STEP: u64 = 7 + 5;
            let back = e.cold.here() + STEP;
            lea_code(e.cold, r, back);
            e.cold.jmp(read);
            debug_assert_eq!(e.cold.here(), back);
        }
        // The way back is not known yet: the end of the access. A jump there follows.
        const STEP: u64 = 7 + 5;
        let back = e.cold.here() + STEP;
        lea_code(e.cold, r, back);
        e.cold.jmp(write.or(read).unwrap_or(back));
        let here = e.cold.here();
        Some(e.cold.jmp(here))
    }

    /// A whole access by a general routine.
    fn generic(&mut self, e: &mut Emit<'_>, routine: Routine) {
        let r = e.scratch[2];
        let to = self.routine(e, routine);
        const STEP: u64 = 7 + 5;
        let back = e.hot.here() + STEP;
        lea_code(e.hot, r, back);
        e.hot.jmp(to);
        debug_assert_eq!(e.hot.here(), back);
    }

    fn read_one(&mut self, e: &mut Emit<'_>, likely: bool) {
        let [s, x, r] = e.scratch;
        let first = self.routine(e, Routine::First(1));
        e.hot.load(Size::D, x, &stamp(s, 0));
        e.hot.alu_load(Alu::Cmp, Size::D, x, &Mem::gs(gs::TOP));
        let (known, cold) = leave_for_first(e, cc::B, likely);
        let c = if likely { &mut *e.hot } else { &mut *e.cold };
        c.load(Size::D, r, &Mem::gs(gs::TOP));
        c.store(Size::D, &stamp(s, 0), r);
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(r, OWN), 1);
        c.alu_load(Alu::Cmp, Size::D, x, &Mem::base(r, STAMP - FRAME));
        let back = return_if_near(e, known, cold, &[]);
        let c = &mut *e.cold;
        let zero = far(c, [x, r], 1, back);
        land(c, zero);
        lea_code(c, r, back);
        c.jmp(first);
    }

    fn read_pair(&mut self, e: &mut Emit<'_>, offset: i32, likely: bool) {
        let [s, x, r] = e.scratch;
        let first = self.routine(e, Routine::First(2));
        let mixed = self.routine(e, Routine::Mixed);
        e.hot.load(Size::Q, x, &stamp(s, offset));
        e.hot.alu_load(Alu::Cmp, Size::Q, x, &Mem::gs(gs::TOP));
        let (known, cold) = leave_for_first(e, cc::NE, likely);
        let c = if likely { &mut *e.hot } else { &mut *e.cold };
        c.rorx(r, x, 32);
        c.alu(Alu::Cmp, Size::Q, r, x);
        let different = c.jcc_later(cc::NE);
        c.load(Size::Q, r, &Mem::gs(gs::TOP));
        c.store(Size::Q, &stamp(s, offset), r);
        c.alu(Alu::Cmp, Size::Q, x, r);
        let newer = c.jcc_later(cc::AE);
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(r, OWN), 2);
        c.alu_load(Alu::Cmp, Size::Q, x, &Mem::base(r, STAMP - FRAME));
        let back = return_if_near(e, known, cold, &[newer]);
        let c = &mut *e.cold;
        let zero = far(c, [x, r], 2, back);
        land(c, zero);
        // The routines take the index of the cell itself, and S is needed for what follows.
        let moved = |c: &mut Asm, to: u64| {
            if offset == 0 {
                lea_code(c, r, back);
                c.jmp(to);
                return;
            }
            c.store(Size::Q, &Mem::gs(gs::KEPT), s);
            c.lea(s, &Mem::base(s, offset / 4));
            const STEP: u64 = 7 + 5;
            let after = c.here() + STEP;
            lea_code(c, r, after);
            c.jmp(to);
            debug_assert_eq!(c.here(), after);
            c.load(Size::Q, s, &Mem::gs(gs::KEPT));
            c.jmp(back);
        };
        moved(c, first);
        land(c, different);
        moved(c, mixed);
    }

    fn write(&mut self, e: &mut Emit<'_>, cells: u32, stamps: bool) {
        let [s, x, r] = e.scratch;
        if self.metric != Metric::Rms {
            // 16 cells (64 bytes) are two times 8.
            for part in 0..cells.div_ceil(8) {
                let n = cells.min(8);
                let foreign = self.routine(e, Routine::Foreign(n as u8));
                let offset = part as i32 * 8;
                e.hot.load(Size::Q, x, &Mem::gs(gs::MARKS));
                e.hot.load(Size::of(n), x, &Mem::index(x, s, 0, offset));
                e.hot.alu_load(Alu::Cmp, Size::of(n), x, &Mem::gs(gs::ME));
                let cold = e.cold.here();
                e.hot.jcc(cc::NE, cold);
                let back = e.hot.here();
                let c = &mut *e.cold;
                if offset != 0 {
                    c.lea(s, &Mem::base(s, offset));
                }
                const STEP: u64 = 7 + 5;
                let after = c.here() + STEP;
                lea_code(c, r, after);
                c.jmp(foreign);
                debug_assert_eq!(c.here(), after);
                if offset != 0 {
                    c.lea(s, &Mem::base(s, -offset));
                }
                c.jmp(back);
            }
        }
        if stamps {
            e.hot.load(Size::Q, x, &Mem::gs(gs::TOP));
            match cells {
                1 => e.hot.store(Size::D, &stamp(s, 0), x),
                _ => (0..cells as i32 / 2).for_each(|pair| e.hot.store(Size::Q, &stamp(s, pair * 8), x)),
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
                    const STEP: u64 = 7 + 5;
                    let after = c.here() + STEP;
                    lea_code(c, r, after);
                    c.jmp(foreign);
                    debug_assert_eq!(c.here(), after);
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

    /// Where costs are time: what it cost so far, by the clock.
    fn read_clock(&self, h: &mut Asm) {
        const RDX: Reg = 2;
        if !self.time {
            return;
        }
        h.store(Size::Q, &Mem::gs(gs::KEPT), reg::RAX);
        h.store(Size::Q, &Mem::gs(gs::COUNT), RDX);
        h.bytes(&[0x0f, 0x31]); // rdtsc
        h.op_reg(Size::Q, &[0xc1], 4, RDX); // shl rdx, 32
        h.bytes(&[32]);
        h.alu(Alu::Or, Size::Q, reg::RAX, RDX);
        h.alu_load(Alu::Sub, Size::Q, reg::RAX, &Mem::gs(gs::STOLEN));
        h.store(Size::Q, &Mem::gs(gs::COST), reg::RAX);
        h.load(Size::Q, reg::RAX, &Mem::gs(gs::KEPT));
        h.load(Size::Q, RDX, &Mem::gs(gs::COUNT));
    }

    /// A routine is entered by a call: `routine` may carry [`FOLD`].
    pub fn enter(&mut self, e: &mut Emit<'_>, routine: u32) {
        e.keep_flags();
        self.read_clock(e.hot);
        let [s, x, _] = e.scratch;
        let h = &mut *e.hot;
        h.load(Size::Q, s, &Mem::gs(gs::SSP));
        h.lea(x, &Mem::base(reg::RSP, e.return_address_offset));
        h.alu_load(Alu::Cmp, Size::Q, x, &Mem::base(s, SP));
        let odd = h.jcc_later(cc::AE);
        self.push(e, routine, odd);
    }

    /// A routine is entered by a jump. Mostly the one that jumps ends; after a call of a PLT entry none does.
    pub fn tail(&mut self, e: &mut Emit<'_>, routine: u32) {
        e.keep_flags();
        self.read_clock(e.hot);
        let [s, x, _] = e.scratch;
        let h = &mut *e.hot;
        h.load(Size::Q, s, &Mem::gs(gs::SSP));
        h.alu_load(Alu::Cmp, Size::Q, reg::RSP, &Mem::base(s, SP));
        let none = h.jcc_later(cc::B);
        let odd = h.jcc_later(cc::NE);
        self.pop(e, None);
        // `pop` leaves the caller's frame in S.
        land(e.hot, none);
        e.hot.lea(x, &Mem::base(reg::RSP, 0));
        self.push(e, routine, odd);
    }

    /// Makes a frame above the one in S, for a routine with its return address at X. The jump `odd` leads to the slow
    /// path.
    fn push(&mut self, e: &mut Emit<'_>, routine: u32, odd: u64) {
        let [s, x, r] = e.scratch;
        let h = &mut *e.hot;
        let next = |field: i32| Mem::base(s, FRAME + field);
        let mut odd = alloc::vec![odd];
        h.store(Size::Q, &next(SP), x);
        h.load(Size::Q, r, &Mem::gs(gs::COUNTER));
        h.alu_load(Alu::Add, Size::Q, r, &Mem::gs(gs::ONE));
        odd.push(h.jcc_later(cc::C));
        h.store(Size::Q, &Mem::gs(gs::COUNTER), r);
        h.store(Size::Q, &next(STAMP), r);
        h.store(Size::Q, &Mem::gs(gs::TOP), r);
        h.load(Size::Q, x, &Mem::gs(gs::COST));
        h.store(Size::Q, &next(ENTERED), x);
        h.op_reg(Size::D, &[0x31], x, x); // xor x, x
        h.store(Size::Q, &next(FAR), x);
        h.store(Size::Q, &next(CALLEES), x);
        h.store(Size::Q, &next(OWN), x);
        h.store_imm(Size::Q, &next(ROUTINE), (routine & !FOLD) as i32);
        h.lea(s, &Mem::base(s, FRAME));
        h.store(Size::Q, &Mem::gs(gs::SSP), s);
        if routine & FOLD != 0 {
            h.alu_store_imm(Alu::Cmp, Size::Q, &Mem::gs(gs::MASK), 0);
            let folded = h.jcc_later(cc::E);
            h.store_imm(Size::D, &Mem::base(s, ROUTINE), routine as i32);
            h.load(Size::Q, x, &Mem::gs(gs::COLD));
            h.store(Size::Q, &Mem::base(s, OLDER), x);
            h.store(Size::Q, &Mem::gs(gs::COLD), s);
            h.store_imm(Size::Q, &Mem::gs(gs::MASK), 0);
            h.mov_imm64(x, FOLDED_MARK);
            h.store(Size::Q, &Mem::gs(gs::ME), x);
            for i in 0..8 {
                h.store(Size::Q, &Mem::gs(STAMPS + i * 8), r);
            }
            land(h, folded);
        }
        let back = h.here();
        let c = &mut *e.cold;
        odd.into_iter().for_each(|site| land(c, site));
        c.lea(x, &Mem::base(reg::RSP, e.return_address_offset));
        let kind = if routine & FOLD != 0 { token::ENTER_FOLD } else { token::ENTER };
        e.call_out_cold(kind | routine & !FOLD, x);
        e.cold.jmp(back);
    }

    /// A return.
    pub fn ret(&mut self, e: &mut Emit<'_>) {
        let s = e.scratch[0];
        e.keep_flags();
        self.read_clock(e.hot);
        e.hot.load(Size::Q, s, &Mem::gs(gs::SSP));
        e.hot.alu_load(Alu::Cmp, Size::Q, reg::RSP, &Mem::base(s, SP));
        let odd = e.hot.jcc_later(cc::NE);
        self.pop(e, Some(odd));
    }

    /// Writes the record of the frame in S and drops it; S is the caller's frame then. The jump `odd` leads to the slow
    /// path.
    fn pop(&mut self, e: &mut Emit<'_>, odd: Option<u64>) {
        let [s, x, r] = e.scratch;
        let h = &mut *e.hot;
        let of = |field: i32| Mem::base(s, field);
        h.load(Size::Q, r, &Mem::gs(gs::LOG));
        h.load(Size::D, x, &of(ROUTINE));
        h.store(Size::D, &Mem::base(r, 0), x);
        h.load(Size::D, x, &of(STAMP));
        h.store(Size::D, &Mem::base(r, 4), x);
        h.load(Size::Q, x, &Mem::gs(gs::COST));
        h.alu_load(Alu::Sub, Size::Q, x, &of(ENTERED));
        h.store(Size::Q, &Mem::base(r, 16), x);
        h.alu_store(Alu::Add, Size::Q, &of(CALLEES - FRAME), x);
        h.alu_load(Alu::Sub, Size::Q, x, &of(CALLEES));
        h.store(Size::Q, &Mem::base(r, 24), x);
        h.load(Size::Q, x, &of(FAR));
        h.alu_store(Alu::Add, Size::Q, &of(FAR - FRAME), x);
        h.alu_load(Alu::Add, Size::Q, x, &of(OWN));
        h.store(Size::Q, &Mem::base(r, 8), x);
        h.alu_load(Alu::Cmp, Size::Q, s, &Mem::gs(gs::COLD));
        let rare = h.jcc_later(cc::E);
        let pop = h.here();
        h.lea(r, &Mem::base(r, 32));
        h.store(Size::Q, &Mem::gs(gs::LOG), r);
        h.load(Size::Q, x, &of(STAMP - FRAME));
        h.store(Size::Q, &Mem::gs(gs::TOP), x);
        h.lea(s, &Mem::base(s, -FRAME));
        h.store(Size::Q, &Mem::gs(gs::SSP), s);
        h.alu_load(Alu::Cmp, Size::Q, r, &Mem::gs(gs::LOG_END));
        let full = h.jcc_later(cc::AE);
        let back = h.here();
        let c = &mut *e.cold;
        land(c, rare);
        // The outermost folded work: accesses count again.
        c.op_mem(Size::D, &[0xf7], 0, &of(FLAGS)); // test flags, FACTS | HANDLER
        c.d32((flag::FACTS | flag::HANDLER) as i32);
        let facts = c.jcc_later(cc::NE);
        c.load(Size::Q, x, &of(OLDER));
        c.store(Size::Q, &Mem::gs(gs::COLD), x);
        c.load(Size::Q, x, &Mem::gs(gs::MASK_ON));
        c.store(Size::Q, &Mem::gs(gs::MASK), x);
        c.load(Size::Q, x, &Mem::gs(gs::ME_ON));
        c.store(Size::Q, &Mem::gs(gs::ME), x);
        c.jmp(pop);
        // What was passed on to the caller is passed on again by the slow path: take it back.
        land(c, facts);
        c.load(Size::Q, x, &Mem::base(r, 16));
        c.alu_store(Alu::Sub, Size::Q, &of(CALLEES - FRAME), x);
        c.load(Size::Q, x, &of(FAR));
        c.alu_store(Alu::Sub, Size::Q, &of(FAR - FRAME), x);
        if let Some(odd) = odd {
            land(c, odd);
        }
        c.lea(x, &Mem::base(reg::RSP, 0));
        e.call_out_cold(token::RETURN, x);
        e.cold.load(Size::Q, s, &Mem::gs(gs::SSP));
        e.cold.jmp(back);
        land(e.cold, full);
        e.call_out_cold(token::FULL, x);
        e.cold.jmp(back);
    }
}
