//! Reads: which of them are first reads, and whose.

use super::*;

/// Where the code that counts a first read leaves its straight path.
struct Counted {
    /// There is no stamp.
    zero: u64,
    /// Where the top stamp is stored.
    store: u64,
}

/// Where code leaves its straight path that tells apart the two stamps of a read whose stamps R are not the top's.
struct Apart {
    /// The upper one is newer than the top's.
    newer: u64,
    /// They differ.
    differ: u64,
}

/// If two cells are read, goes on with those that have one stamp; flags say how R compares with the top's.
fn tell_apart(a: &mut Asm, [s, _, r]: [Reg; 3], cells: u8, offset: i32) -> Option<Apart> {
    (cells == 2).then(|| {
        let newer = a.jcc_later(cc::A);
        a.alu_load(Alu::Cmp, Size::D, r, &stamp(s, offset + 4));
        Apart { newer, differ: a.jcc_later(cc::NE) }
    })
}

/// Counts a first read of cells that have the stamp R; X is the top frame. Falls out where that is done, with R lost.
fn count(a: &mut Asm, [s, x, r]: [Reg; 3], cells: u8, offset: i32) -> Counted {
    let size = size_of_cells(cells);
    a.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, OWN), cells.into());
    a.alu_load(Alu::Cmp, Size::D, r, &Mem::base(x, STAMP - FRAME));
    let near = jcc_short(a, cc::AE);
    let zero = far(a, [x, r], cells.into());
    a.load(Size::Q, x, &Mem::gs(gs::SSP));
    land_short(a, near);
    let store = a.here();
    a.load(size, r, &Mem::base(x, TOP));
    a.store(size, &stamp(s, offset), r);
    Counted { zero, store }
}

/// What callers gain by far first reads of `n` cells with the stamp R: X is the top frame, and lost. The jump that is
/// returned is taken where there is no stamp, with nothing done. At each site of its own, so that the processor can learn
/// how far each one searches, and next to it: the way to another cache line and back costs more than the search.
pub(super) fn far(c: &mut Asm, [x, r]: [Reg; 2], n: i32) -> u64 {
    c.op_reg(Size::D, &[0x85], r, r); // test r, r
    let zero = c.jcc_later(cc::E);
    c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, FAR - FRAME), n);
    let next = c.here();
    c.lea(x, &Mem::base(x, -FRAME));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(x, STAMP - FRAME), r);
    jcc_short_back(c, cc::A, next);
    c.alu_store_imm(Alu::Sub, Size::Q, &Mem::base(x, FAR - FRAME), n);
    zero
}

fn size_of_cells(cells: u8) -> Size {
    if cells == 1 { Size::D } else { Size::Q }
}

impl Code {
    /// Reads one cell, or two in one. `likely`: it may well be a first read.
    pub(super) fn read(&mut self, e: &mut Emit<'_>, cells: u8, offset: i32, likely: bool) {
        let [s, x, r] = e.scratch;
        let size = size_of_cells(cells);
        let first = self.routine(e, Routine::First(cells));
        let mixed = if cells == 2 { self.routine(e, Routine::Mixed) } else { 0 };
        self.hold_x(e);
        if self.in_loop {
            e.hot.alu_store(Alu::Cmp, size, &stamp(s, offset), x);
        } else {
            e.hot.load(size, r, &stamp(s, offset));
            e.hot.alu_load(Alu::Cmp, size, r, &Mem::base(x, TOP));
            self.held.r = false;
        }
        let (known, counts) = if cells == 1 { (cc::AE, cc::B) } else { (cc::E, cc::NE) };
        let (apart, counted, behind);
        if likely {
            let known = jcc_short(e.hot, known);
            apart = tell_apart(e.hot, e.scratch, cells, offset);
            counted = count(e.hot, e.scratch, cells, offset);
            land_short(e.hot, known);
            behind = e.hot.here();
        } else {
            let cold = e.cold.here();
            e.hot.jcc(counts, cold);
            let to = e.hot.here();
            let c = &mut *e.cold;
            if self.in_loop {
                c.load(size, r, &stamp(s, offset));
                c.load(Size::Q, x, &Mem::gs(gs::SSP));
            }
            apart = tell_apart(c, e.scratch, cells, offset);
            counted = count(c, e.scratch, cells, offset);
            behind = c.here();
            if self.in_loop {
                self.hold_again(c, e.scratch);
            }
            c.jmp(to);
        }
        let c = &mut *e.cold;
        land(c, counted.zero);
        jump_shared(c, [s, r], offset / 4, first, counted.store);
        if let Some(Apart { newer, differ }) = apart {
            land(c, newer);
            c.alu_load(Alu::Cmp, Size::D, r, &stamp(s, offset + 4));
            c.jcc(cc::E, counted.store);
            land(c, differ);
            jump_shared(c, [s, r], offset / 4, mixed, behind);
        }
    }
}
