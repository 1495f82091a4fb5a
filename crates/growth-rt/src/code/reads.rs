//! Reads: which of them are first reads, and whose.

use super::*;

/// Where the code that counts a first read leaves its straight path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    /// There is no stamp, or its owner is far down.
    old: u64,
    /// Where the top stamp is stored.
    store: u64,
}

/// Where a read leaves its straight path, and what is behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Straight {
    /// The stamps of two cells differ.
    differ: Option<u64>,
    counted: Counted,
    behind: u64,
}

impl Straight {
    /// The same if the code lies so many bytes further on.
    pub(super) fn moved(&self, by: u64) -> Straight {
        let on = |at: u64| at.wrapping_add(by);
        let Counted { old, store } = self.counted;
        Straight {
            differ: self.differ.map(on),
            counted: Counted { old: on(old), store: on(store) },
            behind: on(self.behind),
        }
    }
}

/// R becomes the stamp of one cell, or of two that have the same one. The jump that is returned is taken where they
/// differ.
fn load_stamp(a: &mut Asm, [s, _, r]: [Reg; 3], cells: u8, offset: i32) -> Option<u64> {
    a.load(Size::D, r, &stamp(s, offset));
    (cells == 2).then(|| {
        a.alu_load(Alu::Cmp, Size::D, r, &stamp(s, offset + 4));
        a.jcc_later(cc::NE)
    })
}

/// Counts a first read of cells that have the stamp R; X is the top frame. Falls out where that is done, with R lost.
fn count(a: &mut Asm, [s, x, r]: [Reg; 3], cells: u8, offset: i32) -> Counted {
    let size = size_of_cells(cells);
    a.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, OWN), cells.into());
    a.alu_load(Alu::Cmp, Size::D, r, &Mem::base(x, STAMP - FRAME));
    let near = jcc_short(a, cc::AE);
    let old = far(a, [x, r], cells.into());
    a.load(Size::Q, x, &Mem::gs(gs::SSP));
    land_short(a, near);
    let store = a.here();
    a.load(size, r, &Mem::base(x, TOP));
    a.store(size, &stamp(s, offset), r);
    Counted { old, store }
}

/// What callers gain by far first reads of `n` cells with the stamp R: X is the top frame, and lost. The jump that is
/// returned is taken where there is no stamp, or its owner is far down, with nothing done. At each site of its own, so
/// that the processor can learn how far each one searches, and next to it: the way to another cache line and back costs
/// more than the search.
fn far(c: &mut Asm, [x, r]: [Reg; 2], n: i32) -> u64 {
    search(c, [x, r], |c, op, at| c.alu_store_imm(op, Size::Q, &at, n))
}

/// The same for as many cells as X says; S is the top frame, and lost.
pub(super) fn far_of_many(c: &mut Asm, [s, x, r]: [Reg; 3]) -> u64 {
    search(c, [s, r], |c, op, at| c.alu_store(op, Size::Q, &at, x))
}

/// Searches from a frame down; `change` emits what adds to a word or subtracts.
fn search(c: &mut Asm, [frame, r]: [Reg; 2], change: impl Fn(&mut Asm, Alu, Mem)) -> u64 {
    // (0, which says that there is no stamp, is older than that of any frame.)
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(frame, STAMP - FURTHEST), r);
    let old = c.jcc_later(cc::A);
    change(c, Alu::Add, Mem::base(frame, FAR - FRAME));
    let next = c.here();
    c.lea(frame, &Mem::base(frame, -FRAME));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(frame, STAMP - FRAME), r);
    jcc_short_back(c, cc::A, next);
    change(c, Alu::Sub, Mem::base(frame, FAR - FRAME));
    old
}

/// From a frame to the one that tells whether the owner of a stamp is far down.
const FURTHEST: i32 = (CALLERS_NEAR as i32 + 1) * FRAME;

/// X, the top frame, becomes the owner of the stamp in [`gs::OLD`], which is further down than others are; S and R are
/// lost. By halves and without branches: each look is at random.
pub(super) fn search_by_halves(c: &mut Asm, scratch: [Reg; 3]) {
    let ([s, x, r], old) = (scratch, spare(scratch));
    c.store(Size::Q, &Mem::gs(gs::SPARE), old);
    c.load(Size::Q, old, &Mem::gs(gs::OLD));
    // It is among so many bytes of frames, R, from X on.
    c.lea(r, &Mem::base(x, -FURTHEST));
    c.load(Size::Q, x, &Mem::gs(gs::SENTINEL));
    c.alu(Alu::Sub, Size::Q, r, x);
    let next = c.here();
    c.op_reg(Size::Q, &[0x89], r, s); // mov s, r
    shift_right(c, s, 1);
    c.alu_imm(Alu::And, Size::Q, s, -FRAME);
    c.alu(Alu::Sub, Size::Q, r, s);
    c.lea(s, &Mem::index(x, s, 0, 0));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(s, STAMP), old);
    c.bytes(&[0x48 | (x >> 3) << 2 | s >> 3, 0x0f, 0x46, 0xc0 | (x & 7) << 3 | s & 7]); // cmovbe x, s
    c.alu_imm(Alu::Cmp, Size::Q, r, FRAME);
    jcc_short_back(c, cc::A, next);
    c.load(Size::Q, old, &Mem::gs(gs::SPARE));
}

pub(super) fn size_of_cells(cells: u8) -> Size {
    if cells == 1 { Size::D } else { Size::Q }
}

/// A read of one cell, or two in one, that may well be a first read; X is the top frame.
pub(super) fn likely(a: &mut Asm, scratch: [Reg; 3], cells: u8, offset: i32) -> Straight {
    let [_, x, r] = scratch;
    let differ = load_stamp(a, scratch, cells, offset);
    a.alu_load(Alu::Cmp, Size::D, r, &Mem::base(x, TOP));
    let known = jcc_short(a, cc::AE);
    let counted = count(a, scratch, cells, offset);
    land_short(a, known);
    Straight { differ, counted, behind: a.here() }
}

/// What a read does off its straight path. The jump that is returned is taken where the two stamps differ.
pub(super) fn unlikely(
    c: &mut Asm,
    [s, _, r]: [Reg; 3],
    offset: i32,
    old: u64,
    straight: Straight,
) -> Option<u64> {
    let Straight { differ, counted, .. } = straight;
    land(c, counted.old);
    c.store(Size::Q, &Mem::gs(gs::OLD), r);
    jump_shared(c, [s, r], offset / 4, old, counted.store);
    differ
}

impl Code {
    /// Reads one cell, or two in one. `is_likely`: it may well be a first read.
    pub(super) fn read(&mut self, e: &mut Emit<'_>, cells: u8, offset: i32, is_likely: bool) {
        let [s, _, r] = e.scratch;
        let old = self.routine(e, Routine::Old(cells));
        let mixed = if cells == 2 { self.routine(e, Routine::Mixed) } else { 0 };
        self.hold_x(e);
        let straight = if is_likely {
            self.held.r = false;
            self.stretches.append(e.hot, e.scratch, cells, offset)
        } else {
            self.read_aside(e, cells, offset)
        };
        let behind = straight.behind;
        let c = &mut *e.cold;
        if let Some(differ) = unlikely(c, e.scratch, offset, old, straight) {
            land(c, differ);
            jump_shared(c, [s, r], offset / 4, mixed, behind);
        }
    }

    /// The straight path compares stamps alone, and counts out of line.
    fn read_aside(&mut self, e: &mut Emit<'_>, cells: u8, offset: i32) -> Straight {
        let [s, x, r] = e.scratch;
        let size = size_of_cells(cells);
        if self.in_loop {
            e.hot.alu_store(Alu::Cmp, size, &stamp(s, offset), x);
        } else {
            e.hot.load(size, r, &stamp(s, offset));
            e.hot.alu_load(Alu::Cmp, size, r, &Mem::base(x, TOP));
            self.held.r = false;
        }
        let cold = e.cold.here();
        e.hot.jcc(if cells == 1 { cc::B } else { cc::NE }, cold);
        let to = e.hot.here();
        let c = &mut *e.cold;
        if self.in_loop {
            c.load(Size::Q, x, &Mem::gs(gs::SSP));
        }
        let differ = load_stamp(c, e.scratch, cells, offset);
        // The two may be newer than the top's: they are stored then, to be found equal next time.
        let newer = (cells == 2).then(|| {
            c.alu_load(Alu::Cmp, Size::D, r, &Mem::base(x, TOP));
            c.jcc_later(cc::A)
        });
        let counted = count(c, e.scratch, cells, offset);
        let behind = c.here();
        if self.in_loop {
            self.hold_again(c, e.scratch);
        }
        c.jmp(to);
        // SAFETY: a displacement that was just emitted in this stream; nothing runs it yet.
        newer.into_iter().for_each(|site| unsafe { patch_rel32(site, counted.store) });
        Straight { differ, counted, behind }
    }
}
