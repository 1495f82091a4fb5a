//! Shared routines for accesses that straddle cells, or touch those that a mask names. They keep the address in
//! [`gs::ADDRESS`] and the way back in [`gs::HOME`], and come back with the address in S and the top frame in X.
//!
//! An access of 4, 8, … bytes that straddles cells is a read (or write) of one cell and then of pairs: one after the
//! other in a buffer, its first cell is known from the one before, and the others are alike. What is not so simple goes
//! to a loop, which counts runs of cells with one stamp together.

use super::reads::{far_of_many, likely, search_by_halves, size_of_cells, unlikely};
use super::*;

/// How many bytes an access has that straddles cells of 4 bytes, if it is one cell and pairs, or two cells.
fn straddles(bytes: u32, shift: u32) -> bool {
    shift == 2 && matches!(bytes, 4 | 8 | 16 | 32 | 64)
}

/// The cells of a read that straddles, as pieces of one and two: (offset in stamps, cells).
fn pieces(bytes: u32) -> impl Iterator<Item = (i32, u8)> {
    let last = (bytes == 4).then_some((4, 1));
    let pairs = (0..bytes as i32 / 8).map(|pair| (4 + 8 * pair, 2));
    core::iter::once((0, 1)).chain(last).chain(pairs)
}

/// Its marks likewise, in as few pieces as can be: (offset, marks).
fn marks(bytes: u32) -> impl Iterator<Item = (i32, u32)> {
    let cells = bytes / 4;
    let eights = (0..cells.div_ceil(8)).map(move |n| (8 * n as i32, cells.min(8)));
    eights.chain([(cells as i32, 1)])
}

fn begin_general(c: &mut Asm, [s, _, r]: [Reg; 3]) {
    c.store(Size::Q, &Mem::gs(gs::ADDRESS), s);
    c.store(Size::Q, &Mem::gs(gs::HOME), r);
}

/// The end of a general routine with the top frame in X.
fn end_general(c: &mut Asm, [s, _, _]: [Reg; 3]) {
    c.load(Size::Q, s, &Mem::gs(gs::ADDRESS));
    c.jmp_gs(gs::HOME);
}

/// R becomes the top stamp, and X the top frame.
fn load_top(c: &mut Asm, [_, x, r]: [Reg; 3]) {
    c.load(Size::Q, x, &Mem::gs(gs::SSP));
    c.load(Size::Q, r, &Mem::base(x, TOP));
}

impl Code {
    /// A read of so many bytes at an address, S.
    pub(super) fn emit_read(&mut self, e: &mut Emit<'_>, bytes: u32) -> u64 {
        let cells = self.routine(e, Routine::Cells);
        if !straddles(bytes, self.shift) {
            let start = e.cold.here();
            begin_general(e.cold, e.scratch);
            self.index_and_number(e, bytes);
            e.cold.jmp(cells);
            return start;
        }
        let old = [1, 2].map(|n| self.routine(e, Routine::Old(n)));
        let [s, x, _] = e.scratch;
        let c = &mut *e.cold;
        let start = c.here();
        begin_general(c, e.scratch);
        c.pext(s, s, &Mem::gs(gs::MASK));
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        let parts: Vec<_> = pieces(bytes).map(|(at, n)| (at, n, likely(c, e.scratch, n, at))).collect();
        end_general(c, e.scratch);
        for (at, n, sites) in parts {
            let Some(differ) = unlikely(c, e.scratch, at, old[usize::from(n) - 1], sites) else { continue };
            // The rest one by one.
            land(c, differ);
            c.lea(s, &Mem::base(s, at / 4));
            c.op_reg(Size::D, &[0x31], x, x); // xor x, x
            c.alu_imm(Alu::Add, Size::D, x, bytes as i32 / 4 + 1 - at / 4);
            c.jmp(cells);
        }
        start
    }

    /// A read of the bytes at an address, S, that are set in X: of so many.
    pub(super) fn emit_read_masked(&mut self, e: &mut Emit<'_>, bytes: u32) -> u64 {
        let cells = self.routine(e, Routine::CellsMasked);
        let start = e.cold.here();
        begin_general(e.cold, e.scratch);
        index_and_mask(e.cold, e.scratch, bytes);
        e.cold.jmp(cells);
        start
    }

    /// A read of as many cells as X says, or those whose bits it has: S index.
    pub(super) fn emit_cells(&mut self, e: &mut Emit<'_>, masked: bool) -> u64 {
        let [s, x, r] = e.scratch;
        let first = self.routine(e, Routine::First(1));
        let c = &mut *e.cold;
        let start = c.here();
        if !masked {
            c.lea(x, &Mem::index(s, x, 0, 0));
            c.store(Size::Q, &Mem::gs(gs::CELLS), x);
        }
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.load(Size::Q, r, &Mem::base(r, TOP));
        let next = c.here();
        let unset = masked.then(|| {
            shift_right(c, x, 1);
            c.jcc_later(cc::AE)
        });
        c.alu_store(Alu::Cmp, Size::D, &stamp(s, 0), r);
        let counts = c.jcc_later(cc::B);
        unset.into_iter().for_each(|site| land(c, site));
        c.lea(s, &Mem::base(s, 1));
        any_left(c, e.scratch, masked);
        c.jcc(cc::NE, next);
        let out = c.here();
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        end_general(c, e.scratch);

        land(c, counts);
        self.count_run(c, e.scratch, masked, first);
        if masked {
            c.load(Size::Q, x, &Mem::gs(gs::CELLS));
        }
        any_left(c, e.scratch, masked);
        c.jcc(cc::NE, next);
        c.jmp(out);
        start
    }

    /// Counts first reads of the cells from S on that have one stamp. Leaves S behind them, R the top stamp and, if
    /// `masked`, what is left of the mask in [`gs::CELLS`].
    fn count_run(&self, c: &mut Asm, [s, x, r]: [Reg; 3], masked: bool, first: u64) {
        c.store(Size::Q, &Mem::gs(gs::COUNT), s);
        c.load(Size::D, r, &stamp(s, 0));
        let run = c.here();
        c.lea(s, &Mem::base(s, 1));
        let end = if masked {
            test_imm8(c, x, 1);
            c.jcc_later(cc::E)
        } else {
            any_left(c, [s, x, r], masked);
            c.jcc_later(cc::E)
        };
        c.alu_load(Alu::Cmp, Size::D, r, &stamp(s, 0));
        let other = c.jcc_later(cc::NE);
        if masked {
            shift_right(c, x, 1);
        }
        c.jmp(run);
        land(c, end);
        land(c, other);
        if masked {
            c.store(Size::Q, &Mem::gs(gs::CELLS), x);
        }
        c.store(Size::Q, &Mem::gs(gs::KEPT), s);
        c.op_reg(Size::Q, &[0x89], s, x); // mov x, s
        c.alu_load(Alu::Sub, Size::Q, x, &Mem::gs(gs::COUNT));
        c.load(Size::Q, s, &Mem::gs(gs::SSP));
        c.alu_store(Alu::Add, Size::Q, &Mem::base(s, OWN), x);
        c.alu_load(Alu::Cmp, Size::D, r, &Mem::base(s, STAMP - FRAME));
        let near = c.jcc_later(cc::AE);
        let old = far_of_many(c, [s, x, r]);
        land(c, near);
        let counted = c.here();
        c.load(Size::Q, s, &Mem::gs(gs::COUNT));
        load_top(c, [s, x, r]);
        let store = c.here();
        c.store(Size::D, &stamp(s, 0), r);
        next_of_run(c, s, store);
        let done = c.jmp(c.here());

        land(c, old);
        c.op_reg(Size::D, &[0x85], r, r); // test r, r
        let zero = c.jcc_later(cc::E);
        c.alu_store(Alu::Add, Size::Q, &Mem::base(s, FAR - FRAME), x);
        c.store(Size::Q, &Mem::gs(gs::OLD), r);
        c.store(Size::Q, &Mem::gs(gs::INDEX), x);
        c.op_reg(Size::Q, &[0x89], s, x); // mov x, s
        search_by_halves(c, [s, x, r]);
        c.load(Size::Q, s, &Mem::gs(gs::INDEX));
        c.alu_store(Alu::Sub, Size::Q, &Mem::base(x, FAR), s);
        c.jmp(counted);
        land(c, zero);
        if self.metric == Metric::Rms {
            c.alu_store(Alu::Add, Size::Q, &Mem::base(s, FAR - FRAME), x);
            c.jmp(counted);
            land(c, done);
            return;
        }
        // Who wrote them?
        c.load(Size::Q, s, &Mem::gs(gs::COUNT));
        let each = c.here();
        call_shared(c, r, first);
        load_top(c, [s, x, r]);
        c.store(Size::D, &stamp(s, 0), r);
        next_of_run(c, s, each);
        land(c, done);
    }

    /// A write of so many bytes at an address, S.
    pub(super) fn emit_write(&mut self, e: &mut Emit<'_>, bytes: u32) -> u64 {
        let one_by_one = self.routine(e, Routine::WriteCells);
        let start = e.cold.here();
        begin_general(e.cold, e.scratch);
        self.index_and_number(e, bytes);
        if straddles(bytes, self.shift) {
            self.emit_write_straddling(e.cold, e.scratch, bytes, one_by_one);
        } else {
            e.cold.jmp(one_by_one);
        }
        start
    }

    /// Where all marks are the thread's own, all that is left is to store stamps.
    fn emit_write_straddling(&self, c: &mut Asm, [s, x, r]: [Reg; 3], bytes: u32, one_by_one: u64) {
        if self.metric != Metric::Rms {
            for (at, n) in marks(bytes) {
                c.load(Size::Q, r, &Mem::gs(gs::MARKS));
                c.load(Size::of(n), r, &Mem::index(r, s, 0, at));
                c.alu_load(Alu::Cmp, Size::of(n), r, &Mem::gs(gs::ME));
                c.jcc(cc::NE, one_by_one);
            }
        }
        load_top(c, [s, x, r]);
        for (at, n) in pieces(bytes) {
            c.store(size_of_cells(n), &stamp(s, at), r);
        }
        end_general(c, [s, x, r]);
    }

    /// A write of the bytes at an address, S, that are set in X: of so many.
    pub(super) fn emit_write_masked(&mut self, e: &mut Emit<'_>, bytes: u32) -> u64 {
        let cells = self.routine(e, Routine::WriteCellsMasked);
        let start = e.cold.here();
        begin_general(e.cold, e.scratch);
        index_and_mask(e.cold, e.scratch, bytes);
        e.cold.jmp(cells);
        start
    }

    /// A write of as many cells as X says, or those whose bits it has: S index.
    pub(super) fn emit_write_cells(&mut self, e: &mut Emit<'_>, masked: bool) -> u64 {
        let [s, x, r] = e.scratch;
        let rms = self.metric == Metric::Rms;
        let foreign = if rms { 0 } else { self.routine(e, Routine::Foreign(1)) };
        let c = &mut *e.cold;
        let start = c.here();
        let unset = masked.then(|| {
            shift_right(c, x, 1);
            c.jcc_later(cc::AE)
        });
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
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.load(Size::D, r, &Mem::base(r, TOP));
        c.store(Size::D, &stamp(s, 0), r);
        unset.into_iter().for_each(|site| land(c, site));
        c.lea(s, &Mem::base(s, 1));
        if masked {
            c.op_reg(Size::Q, &[0x85], x, x); // test x, x
        } else {
            c.alu_imm(Alu::Sub, Size::D, x, 1);
        }
        c.jcc(cc::NE, start);
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        end_general(c, e.scratch);
        start
    }

    /// The address in S becomes an index, and X the number of cells that so many bytes there touch.
    fn index_and_number(&self, e: &mut Emit<'_>, bytes: u32) {
        let [s, x, _] = e.scratch;
        let c = &mut *e.cold;
        let cell = 1u32 << self.shift;
        c.op_reg(Size::D, &[0x89], s, x); // mov x, s
        c.alu_imm(Alu::And, Size::D, x, cell as i32 - 1);
        c.alu_imm(Alu::Add, Size::D, x, (bytes + cell - 1) as i32);
        shift_right(c, x, self.shift as u8);
        c.pext(s, s, &Mem::gs(gs::MASK));
    }
}

/// The address in S becomes an index, and the bits for bytes in X, so many of them, become bits for cells of 4 bytes.
fn index_and_mask(c: &mut Asm, [s, x, r]: [Reg; 3], bytes: u32) {
    const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
    if bytes == 64 {
        c.store(Size::Q, &Mem::gs(gs::CELLS), x);
    }
    // A bit for each byte from the first cell's on; then each has a say in those of its cell before it.
    c.op_reg(Size::D, &[0x89], s, r); // mov r, s
    c.alu_imm(Alu::And, Size::D, r, 3);
    c.shlx(x, x, r);
    for by in [1, 2] {
        c.op_reg(Size::Q, &[0x89], x, s); // mov s, x
        shift_right(c, s, by);
        c.alu(Alu::Or, Size::Q, x, s);
    }
    c.mov_imm64(s, EVERY_FOURTH);
    c.pext_reg(x, x, s);
    if bytes == 64 {
        // What was shifted out: the 17th cell.
        c.op_reg(Size::D, &[0xf7], 2, r); // not r
        c.load(Size::Q, s, &Mem::gs(gs::CELLS));
        shift_right(c, s, 1);
        c.shrx(s, s, r);
        c.op_reg(Size::Q, &[0xf7], 3, s); // neg s
        c.alu(Alu::Sbb, Size::D, s, s);
        c.alu_imm(Alu::And, Size::D, s, 1 << 16);
        c.alu(Alu::Or, Size::D, x, s);
    }
    c.load(Size::Q, s, &Mem::gs(gs::ADDRESS));
    c.pext(s, s, &Mem::gs(gs::MASK));
}

/// Flags say "not equal" if there are further cells.
fn any_left(c: &mut Asm, [s, x, _]: [Reg; 3], masked: bool) {
    if masked {
        c.op_reg(Size::Q, &[0x85], x, x); // test x, x
    } else {
        c.alu_load(Alu::Cmp, Size::Q, s, &Mem::gs(gs::CELLS));
    }
}

/// Goes on with the next cell of a run, if there is one.
fn next_of_run(c: &mut Asm, s: Reg, to: u64) {
    c.lea(s, &Mem::base(s, 1));
    c.alu_load(Alu::Cmp, Size::Q, s, &Mem::gs(gs::KEPT));
    c.jcc(cc::NE, to);
}
