//! Reads: which of them are first reads, and whose.

use super::*;

/// Where the code that counts a first read leaves its straight path.
struct Counted {
    /// The stamp is older than the caller's.
    far: u64,
    /// Of two cells: the stamp of the upper one is newer than the top's.
    newer: Option<u64>,
    /// Of two cells: their stamps differ.
    differ: Option<u64>,
    /// Where the top stamp is stored.
    store: u64,
}

/// Counts a read whose stamp R is not the top's, and flags say how it compares; X is the top frame. Falls out where that
/// is done, with R lost.
fn count(a: &mut Asm, [s, x, r]: [Reg; 3], cells: u8, offset: i32) -> Counted {
    let size = size_of_cells(cells);
    let (mut newer, mut differ) = (None, None);
    if cells == 2 {
        newer = Some(a.jcc_later(cc::A));
        a.alu_load(Alu::Cmp, Size::D, r, &stamp(s, offset + 4));
        differ = Some(a.jcc_later(cc::NE));
    }
    a.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, OWN), cells.into());
    a.alu_load(Alu::Cmp, size, r, &Mem::base(x, STAMP - FRAME));
    let far = a.jcc_later(cc::B);
    let store = a.here();
    a.load(size, r, &Mem::base(x, TOP));
    a.store(size, &stamp(s, offset), r);
    Counted { far, newer, differ, store }
}

/// What callers gain by far first reads of `n` cells with the stamp R: X is the top frame, and lost. The jump that is
/// returned is taken where there is no stamp, with nothing done. At each site of its own, so that the processor can learn
/// how far each one searches: shared by all, it costs 5 to 10 % more time.
pub(super) fn far(c: &mut Asm, [x, r]: [Reg; 2], n: i32) -> u64 {
    c.op_reg(Size::D, &[0x85], r, r); // test r, r
    let zero = c.jcc_later(cc::E);
    c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, FAR - FRAME), n);
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(x, STAMP - 2 * FRAME), r);
    let found = jcc_short(c, cc::BE);
    let next = c.here();
    c.lea(x, &Mem::base(x, -FRAME));
    c.alu_store(Alu::Cmp, Size::D, &Mem::base(x, STAMP - 2 * FRAME), r);
    c.jcc(cc::A, next);
    land_short(c, found);
    c.alu_store_imm(Alu::Sub, Size::Q, &Mem::base(x, FAR - 2 * FRAME), n);
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
        let (counted, behind);
        if likely {
            let jump = jcc_short(e.hot, known);
            counted = count(e.hot, e.scratch, cells, offset);
            land_short(e.hot, jump);
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
            counted = count(c, e.scratch, cells, offset);
            behind = c.here();
            if self.in_loop {
                self.hold_again(c, e.scratch);
            }
            c.jmp(to);
        }
        let c = &mut *e.cold;
        land(c, counted.far);
        let zero = far(c, [x, r], cells.into());
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        c.jmp(counted.store);
        land(c, zero);
        jump_shared(c, [s, r], offset / 4, first, counted.store);
        if let (Some(newer), Some(differ)) = (counted.newer, counted.differ) {
            land(c, newer);
            c.alu_load(Alu::Cmp, Size::D, r, &stamp(s, offset + 4));
            c.jcc(cc::E, counted.store);
            land(c, differ);
            jump_shared(c, [s, r], offset / 4, mixed, behind);
        }
    }
}
