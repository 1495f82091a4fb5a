//! The code that is emitted at accesses, calls and returns, and the routines that it shares.
//!
//! The sequences are those of `inputsize::core`, with the thread's words in memory ([`crate::layout::gs`]) instead of
//! registers: three scratch registers, S (address, then index of the cell), X and R. What rarely happens is out of line
//! in the cold stream; what happens rarely there goes to *shared routines*, made once for each choice of registers and
//! jumped to with the way back in R.
//!
//! ```text
//! read, 8 bytes, [base+d]    in a loop                  write, 4n bytes
//!   test base, 3               test base, 3               test base, 3
//!   jnz  unaligned             jnz  unaligned             jnz  unaligned
//!   pext S, base, MASK         pext S, base, R            pext S, base, MASK
//!   mov  R, stamp+d            cmp  stamps+d, X           mov  R, MARKS          ; trms only,
//!   cmp  R, stamp+d+4          jne  cold                  mov  R, [R+S+d/4]      ; n bytes
//!   jne  differ              back:                        cmp  R, ME
//!   cmp  R, [X+top]                                       jne  foreign
//!   jae  known                                          back:
//!   add  [X+own], 2                                       mov  R, [X+top]
//!   cmp  R, [X-1 frame]                                   mov  stamps+d, R
//!   jae  near
//!   ... far: search, and X again
//! near:
//!   mov  R, [X+top]
//!   mov  stamps+d, R
//! known:
//! ```
//! (A read of 4 bytes or less does not ask whether two stamps differ.)
//! Most reads of most programs are the first of their cells by an activation: activations are short. So the straight
//! path counts, and leaps over that where it need not; jumps out of line and back cost programs with much code more than
//! the counting does. X is the thread's top frame from the first access of a superblock to its end.
//!
//! In a superblock that jumps back to itself most reads are no first reads. There X is the top stamp and R the mask, both
//! held from one access to the next, and what counts is out of line; so it is everywhere for reads off the stack pointer.
//!
//! S is held, too: a further access off the same base needs no `pext`, and one off the stack pointer no test. Addresses
//! that are not a base alone are computed in S before (`lea`), and tested there.
//!
//! # Must never
//! Change a register that is not scratch, touch the program's stack, or leave flags changed where they are live.

mod calls;
mod cells;
mod general;
mod leave;
mod near;
mod reads;
mod stretch;

use crate::layout::{CALLERS_NEAR, FOLD, FOLDED_MARK, Facts, Frame, NESTED, STAMPS, TO_FACTS, flag, gs};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::mem::offset_of;
use core::ops::Range;
use engine::access::{Access, Kind};
use engine::emit::{Asm, Reg, patch_rel32, reg};
use engine::events::{Emit, Masked};
use engine::modrm::{Alu, Mem, Size};
use near::Near;
use reads::Straight;
use stretch::Stretches;
use wire::growth::Metric;

/// Condition codes.
mod cc {
    pub const C: u8 = 2;
    pub const AE: u8 = 3;
    pub const B: u8 = 2;
    pub const E: u8 = 4;
    pub const NE: u8 = 5;
    pub const A: u8 = 7;
    pub const S: u8 = 8;
    pub const NS: u8 = 9;
}

/// What a clean call is about: the upper 4 bits of its token. The rest is its payload.
pub mod token {
    /// A routine is entered in an odd way: which, is in `Hot::cells`; `value`: where its return address is.
    pub const ENTER: u32 = 1 << 28;
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Routine {
    /// First stamps of 1 or 2 cells: S index. Counted as own reads already.
    First(u8),
    /// Far first reads of 1 or 2 cells with the stamp in [`gs::OLD`], or none there: S index, X the top frame. Counted as
    /// own reads already.
    Old(u8),
    /// A read of two cells with different stamps: S index.
    Mixed,
    /// A read of as many cells as X says: S index, the way back in [`gs::HOME`].
    Cells,
    /// A read of the cells whose bits are set in X, likewise.
    CellsMasked,
    /// A read of so many bytes at an address: S.
    Read(u32),
    /// A write likewise.
    Write(u32),
    /// A read of the bytes at an address, S, whose bits are set in X, of so many.
    ReadMasked(u32),
    /// A write likewise.
    WriteMasked(u32),
    /// A write of as many cells as X says: S index, the way back in [`gs::HOME`].
    WriteCells,
    /// A write of the cells whose bits are set in X, likewise.
    WriteCellsMasked,
    /// Marks of so many cells are not the thread's own: S index.
    Foreign(u8),
    /// A routine is entered in an odd way: which, is in [`gs::CELLS`].
    Enter,
    /// A return that does not match, S: the top frame. Comes back with the caller's.
    Odd,
    /// The end of the activation whose frame is S, with the way back in [`gs::WAY`]. Comes back with the caller's.
    Leave,
    /// The buffer is full.
    Full,
}

/// How far from a cell whose index S is, in bytes, accesses may lie that use it. While folded work runs, all indices
/// are 0: cells that far from it are nobody's ([`crate::shadow::FOLDED_CELLS`]).
pub const REACH: Range<i32> = -512..512;

/// What scratch registers hold from one access of a superblock to the next.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// X is the top frame; in a loop, the top stamp.
    x: bool,
    /// R is the top stamp; in a loop, the mask.
    r: bool,
}

/// `test dword [m], bits`
fn test_bits(c: &mut Asm, m: &Mem, bits: u32) {
    c.op_mem(Size::D, &[0xf7], 0, m);
    c.d32(bits as i32);
}

/// The frame has facts from now on: none yet.
fn begin_facts(c: &mut Asm, frame: Reg) {
    for field in [INDUCED[0], INDUCED[1], INDUCED_SELF[0], INDUCED_SELF[1], RMS_LESS] {
        c.store_imm(Size::Q, &Mem::base(frame, field), 0);
    }
    c.alu_store_imm(Alu::Or, Size::D, &Mem::base(frame, FLAGS), flag::FACTS as i32);
}

/// Where the cells of an access are.
struct Found {
    /// They begin so many bytes after the cell whose index S is.
    offset: i32,
    /// The displacement of the way back from what makes the access if it straddles cells.
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
    /// Whether the superblock jumps back to itself.
    in_loop: bool,
    held: Held,
    shared: BTreeMap<Asked, Vec<u64>>,
    near: Near,
    stretches: Stretches,
}

/// What a shared routine is for: its kind, its registers, what the engine must know of those, and a detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    what: u64,
    detail: u32,
}

impl Asked {
    #[inline(always)]
    fn new(routine: Routine, [s, x, r]: [Reg; 3], context: u32) -> Asked {
        let (kind, detail) = match routine {
            Routine::First(n) => (0, n.into()),
            Routine::Mixed => (1, 0),
            Routine::Cells => (2, 0),
            Routine::CellsMasked => (3, 0),
            Routine::Read(bytes) => (4, bytes),
            Routine::Write(bytes) => (5, bytes),
            Routine::ReadMasked(bytes) => (6, bytes),
            Routine::WriteMasked(bytes) => (7, bytes),
            Routine::Foreign(n) => (8, n.into()),
            Routine::Enter => (9, 0),
            Routine::Odd => (10, 0),
            Routine::Leave => (11, 0),
            Routine::Full => (12, 0),
            Routine::WriteCells => (13, 0),
            Routine::WriteCellsMasked => (14, 0),
            Routine::Old(n) => (15, n.into()),
        };
        let registers = u32::from_le_bytes([s, x, r, kind]);
        Asked { what: u64::from(context) << 32 | u64::from(registers), detail }
    }
}

const fn frame(field: usize) -> i32 {
    field as i32
}

/// Where a rare fact is, from its frame.
const fn fact(field: usize) -> i32 {
    TO_FACTS + field as i32
}

/// A word and the one behind it.
const fn both(at: i32) -> [i32; 2] {
    [at, at + 8]
}

const STAMP: i32 = frame(offset_of!(Frame, stamp));
const SP: i32 = frame(offset_of!(Frame, sp));
const OWN: i32 = frame(offset_of!(Frame, own));
const FAR: i32 = frame(offset_of!(Frame, far));
const ENTERED: i32 = frame(offset_of!(Frame, entered));
const CALLEES: i32 = frame(offset_of!(Frame, callees));
const ROUTINE: i32 = frame(offset_of!(Frame, routine));
const FLAGS: i32 = frame(offset_of!(Frame, flags));
const TOP: i32 = frame(offset_of!(Frame, top));
const OLDER: i32 = fact(offset_of!(Facts, older));
/// Induced reads: by other threads, by the kernel; then those of the activation itself.
const INDUCED: [i32; 2] = both(fact(offset_of!(Facts, induced)));
const INDUCED_SELF: [i32; 2] = both(fact(offset_of!(Facts, induced_self)));
const RMS_LESS: i32 = fact(offset_of!(Facts, rms_less));
const FRAME: i32 = size_of::<Frame>() as i32;

/// The stamps of the cell with its index in `s`, `offset` bytes on.
fn stamp(s: Reg, offset: i32) -> Mem {
    Mem::gs_index(s, 2, STAMPS + offset)
}

/// X becomes the top frame or, in a loop, the top stamp.
fn load_x(a: &mut Asm, x: Reg, in_loop: bool) {
    a.load(Size::Q, x, &Mem::gs(gs::SSP));
    if in_loop {
        a.load(Size::Q, x, &Mem::base(x, TOP));
    }
}

fn test_imm8(a: &mut Asm, r: Reg, imm: u8) {
    a.op_reg(Size::B, &[0xf6], 0, r);
    a.bytes(&[imm]);
}

fn shift_right(a: &mut Asm, r: Reg, n: u8) {
    a.op_reg(Size::Q, &[0xc1], 5, r);
    a.bytes(&[n]);
}

/// A register of the program's where these are scratch registers.
fn spare(scratch: [Reg; 3]) -> Reg {
    // Those that calls do not preserve and that pass no result: hardly anybody waits for them after a return.
    [6, 7, 8, 9].into_iter().find(|r| !scratch.contains(r)).expect("three registers are not four")
}

/// `lea r, [rip to `to`]`
#[inline]
fn lea_code(a: &mut Asm, r: Reg, to: u64) {
    const BYTES: u64 = 7;
    let head = u32::from_le_bytes([0x48 | (r >> 3) << 2, 0x8d, (r & 7) << 3 | 5, 0]);
    let d = to.wrapping_sub(a.here() + BYTES);
    a.two_words(head.into(), 3, d as u32, 4);
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

/// A jump over less than 128 bytes; where its displacement is.
fn jcc_short(a: &mut Asm, cond: u8) -> u64 {
    a.bytes(&[0x70 | cond, 0]);
    a.here() - 1
}

/// A jump back over less than 128 bytes.
fn jcc_short_back(a: &mut Asm, cond: u8, to: u64) {
    let by = to as i64 - (a.here() as i64 + 2);
    a.bytes(&[0x70 | cond, i8::try_from(by).expect("a short jump is short") as u8]);
}

/// Makes the short jump with its displacement at `site` lead here.
fn land_short(a: &Asm, site: u64) {
    let by = i8::try_from(a.here() - (site + 1)).expect("a short jump is short");
    // SAFETY: a displacement that was just emitted in this stream; nothing runs it yet.
    unsafe { (site as *mut i8).write(by) };
}

/// Makes the jump with its displacement at `site` lead here.
fn land(a: &Asm, site: u64) {
    // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
    unsafe { patch_rel32(site, a.here()) };
}

impl Code {
    /// For a run with these choices.
    pub fn new(metric: Metric, shift: u32, time: bool) -> Code {
        Code {
            metric,
            shift,
            time,
            in_loop: false,
            held: Held::default(),
            shared: BTreeMap::new(),
            near: Near::new(),
            stretches: Stretches::new(),
        }
    }

    /// The cache that shared routines are in is no longer added to.
    pub fn forget_routines(&mut self) {
        self.shared.clear();
        self.near.forget();
    }

    /// A superblock begins; `in_loop`: it jumps back to itself.
    pub fn begin(&mut self, in_loop: bool) {
        self.in_loop = in_loop;
        self.held = Held::default();
    }

    /// An access. `from_held`: S is the index of the cell so many bytes before the access, and whether its base is
    /// aligned is all that must be checked. Returns the same for the next access: how many bytes before this one the
    /// cell lies whose index S is; `None` if that is of no use.
    pub fn access(&mut self, e: &mut Emit<'_>, a: &Access, from_held: Option<i32>) -> Option<i32> {
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
        let likely = !self.in_loop && a.operand.base != Some(reg::RSP);
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
        if let Some(way) = unaligned {
            let mut to = e.hot.here();
            // General routines leave the top frame in X.
            if self.held.r || self.held.x && self.in_loop {
                let again = e.cold.here();
                self.hold_again(e.cold, e.scratch);
                e.cold.jmp(to);
                to = again;
            }
            // SAFETY: a displacement that was just emitted in a stream of the same cache; nothing runs it yet.
            unsafe { patch_rel32(way, to) };
        }
        next
    }

    /// An access of the bytes that a mask register names; false if it is one of another kind, with nothing emitted.
    pub fn masked(&mut self, e: &mut Emit<'_>, a: &Masked) -> bool {
        if a.bytes != 1 || !matches!(a.count, 16 | 32 | 64) || self.shift != 2 {
            return false;
        }
        let routine = match a.kind {
            Kind::Read => Routine::ReadMasked(a.count as u32),
            Kind::Write => Routine::WriteMasked(a.count as u32),
            Kind::ReadWrite => return false,
        };
        let [s, x, _] = e.scratch;
        e.lea(s, &a.operand);
        e.hot.kmov(x, a.mask, a.count as u32);
        e.keep_flags();
        self.generic(e, routine);
        self.held = Held::default();
        true
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
        if !self.in_loop {
            return e.hot.pext(s, from, &Mem::gs(gs::MASK));
        }
        if !self.held.r {
            e.hot.load(Size::Q, r, &Mem::gs(gs::MASK));
            self.held.r = true;
        }
        e.hot.pext_reg(s, from, r);
    }

    /// X becomes what it is to be.
    fn hold_x(&mut self, e: &mut Emit<'_>) {
        if !self.held.x {
            load_x(e.hot, e.scratch[1], self.in_loop);
            self.held.x = true;
        }
    }

    /// What is held, after code that has used the registers otherwise.
    fn hold_again(&self, c: &mut Asm, [_, x, r]: [Reg; 3]) {
        if self.held.x {
            load_x(c, x, self.in_loop);
        }
        if self.held.r {
            c.load(Size::Q, r, &if self.in_loop { Mem::gs(gs::MASK) } else { Mem::base(x, TOP) });
        }
    }

    /// Sends accesses off a base that is not aligned to the general routines. Returns the displacement of
    /// the way back, behind the aligned case. (What S is then does not matter: further accesses off the base do not use it either.)
    fn check_base(&mut self, e: &mut Emit<'_>, a: &Access, base: Reg, disp: i32) -> Option<u64> {
        if base == reg::RSP {
            return None;
        }
        test_imm8(e.hot, base, 3);
        Some(self.leave_for_general(e, a, Some(&Mem::base(base, disp))))
    }

    /// Sends accesses that straddle cells to the general routines, unless there can be none. S is the address. Returns
    /// the displacement of the way back, behind the aligned case.
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
        if let (Some(read), Some(_)) = (read, write) {
            call_shared(c, r, read);
        }
        lea_code(c, r, 0);
        let way = c.here() - 4;
        c.jmp(write.or(read).unwrap_or(0));
        way
    }

    /// A whole access by a general routine.
    fn generic(&mut self, e: &mut Emit<'_>, routine: Routine) {
        let to = self.routine(e, routine);
        call_shared(e.hot, e.scratch[2], to);
    }

    fn write(&mut self, e: &mut Emit<'_>, offset: i32, cells: u32, stamps: bool) {
        let [s, x, r] = e.scratch;
        let top = if self.in_loop { x } else { r };
        if self.metric != Metric::Rms {
            // 16 cells (64 bytes) are two times 8.
            for part in 0..cells.div_ceil(8) {
                let n = cells.min(8);
                let foreign = self.routine(e, Routine::Foreign(n as u8));
                let cell = offset / 4 + part as i32 * 8;
                e.hot.load(Size::Q, top, &Mem::gs(gs::MARKS));
                e.hot.load(Size::of(n), top, &Mem::index(top, s, 0, cell));
                e.hot.alu_load(Alu::Cmp, Size::of(n), top, &Mem::gs(gs::ME));
                if self.in_loop {
                    self.held.x = false;
                } else {
                    self.held.r = false;
                }
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
            if self.in_loop {
                self.hold_x(e);
            } else if !self.held.r {
                self.hold_x(e);
                e.hot.load(Size::Q, r, &Mem::base(x, TOP));
                self.held.r = true;
            }
            let at = |pair: i32| stamp(s, offset + pair * 8);
            match cells {
                1 => e.hot.store(Size::D, &at(0), top),
                _ => (0..cells as i32 / 2).for_each(|pair| e.hot.store(Size::Q, &at(pair), top)),
            }
        }
    }

    /// Where a shared routine is, in reach of both streams.
    #[inline(always)]
    fn routine(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        match self.near.get(e, routine) {
            Some(at) if is_near(e, at) => at,
            _ => self.routine_of(e, routine),
        }
    }

    #[inline(never)]
    fn routine_of(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        let asked = Asked::new(routine, e.scratch, e.context());
        let known = self.shared.get(&asked).and_then(|all| all.iter().copied().find(|&at| is_near(e, at)));
        let at = known.unwrap_or_else(|| {
            let at = self.emit_routine(e, routine);
            self.shared.entry(asked).or_default().push(at);
            at
        });
        self.near.set(e, routine, at);
        at
    }
}

/// Is a shared routine in reach?
fn is_near(e: &Emit<'_>, at: u64) -> bool {
    at.abs_diff(e.cold.here()) < 1 << 30
}
