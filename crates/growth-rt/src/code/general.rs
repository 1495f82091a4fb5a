//! Shared routines: what accesses do that straddle cells, meet no stamp or somebody else's mark.

use super::reads::far;
use super::*;
use inputsize::core::shadow::Mark;

/// The end of a general routine: the address is in S again, X the top frame.
fn end_general(c: &mut Asm, [s, x, r]: [Reg; 3]) {
    c.load(Size::Q, s, &Mem::gs(gs::ADDRESS));
    c.load(Size::Q, r, &Mem::gs(gs::HOME));
    c.load(Size::Q, x, &Mem::gs(gs::SSP));
    c.jmp_reg(r);
}

/// Counts reads of `n` cells that the kernel wrote, and goes back to where R says, with the top frame in X. The jump
/// that is returned is taken where more must be done, with nothing counted.
fn external(c: &mut Asm, [x, r]: [Reg; 2], n: i32) -> u64 {
    c.load(Size::Q, x, &Mem::gs(gs::SSP));
    test_bits(c, &Mem::base(x, FLAGS), flag::FACTS);
    let has_facts = c.jcc_later(cc::NE);
    // Is the top looked at for another reason? Else it is from now on.
    c.alu_load(Alu::Cmp, Size::Q, x, &Mem::gs(gs::COLD));
    let chained = c.jcc_later(cc::E);
    c.store(Size::Q, &Mem::gs(gs::BACK), r);
    c.load(Size::Q, r, &Mem::gs(gs::COLD));
    c.store(Size::Q, &Mem::base(x, OLDER), r);
    c.store(Size::Q, &Mem::gs(gs::COLD), x);
    c.load(Size::Q, r, &Mem::gs(gs::BACK));
    begin_facts(c, x);
    land(c, has_facts);
    for field in [INDUCED[1], INDUCED_SELF[1], FAR - FRAME] {
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, field), n);
    }
    c.jmp_reg(r);
    chained
}

impl Code {
    /// Makes a shared routine in the cold stream, after those that it needs. Returns where it begins.
    pub(super) fn emit_routine(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
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
            Routine::Cells => return self.emit_cells(e, false),
            Routine::CellsMasked => return self.emit_cells(e, true),
            Routine::Read(bytes) => {
                let cells = self.routine(e, Routine::Cells);
                let start = e.cold.here();
                self.emit_head(e, Some(bytes));
                e.cold.jmp(cells);
                return start;
            }
            Routine::ReadMasked => {
                let cells = self.routine(e, Routine::CellsMasked);
                let start = e.cold.here();
                self.emit_head(e, None);
                e.cold.jmp(cells);
                return start;
            }
            Routine::Write(bytes) => return self.emit_write(e, Some(bytes)),
            Routine::WriteMasked => return self.emit_write(e, None),
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
            Routine::Enter | Routine::Odd | Routine::Leave | Routine::Full => {
                return self.emit_edge(e, routine);
            }
        }
        start
    }

    /// Leaves the top frame in X.
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
            let marks = Mem::index(x, s, 0, 0);
            c.alu_store_imm(Alu::Cmp, Size::of(n as u32), &marks, Mark::NEVER.0.into());
            let first = c.jcc_later(cc::E);
            if self.metric == Metric::Trms {
                // All by the kernel: so many reads of external input.
                const { assert!(Mark::KERNEL.0 as i8 == -1) };
                c.alu_store_imm(Alu::Cmp, Size::of(n as u32), &marks, -1);
                out.push(c.jcc_later(cc::NE));
                out.push(external(c, [x, r], n));
            } else {
                out.push(c.jmp(c.here()));
            }
            land(c, first);
        }
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, FAR - FRAME), n);
        c.jmp_reg(r);
        if !out.is_empty() {
            out.into_iter().for_each(|site| land(c, site));
            c.store(Size::Q, &Mem::gs(gs::COUNT), s);
            e.call_out_cold(token::FIRST | n as u32, s);
            e.cold.load(Size::Q, s, &Mem::gs(gs::COUNT));
            e.cold.load(Size::Q, x, &Mem::gs(gs::SSP));
            e.cold.jmp_reg(r);
        }
    }

    /// A read of as many cells as X says, or those whose bits it has: S index.
    fn emit_cells(&mut self, e: &mut Emit<'_>, masked: bool) -> u64 {
        let [s, x, r] = e.scratch;
        let first = self.routine(e, Routine::First(1));
        let c = &mut *e.cold;
        let start = c.here();
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.load(Size::D, r, &Mem::base(r, TOP));
        let (next, out) = begin_cells(c, x, masked);
        c.alu_store(Alu::Cmp, Size::D, &stamp(s, 0), r);
        let counts = c.jcc_later(cc::B);
        let on = c.here();
        end_cells(c, e.scratch, masked, next, out);
        let done = c.here();
        c.load(Size::Q, r, &Mem::gs(gs::SSP));
        c.load(Size::D, r, &Mem::base(r, TOP));
        c.store(Size::D, &stamp(s, 0), r);
        c.load(Size::Q, x, &Mem::gs(gs::CELLS));
        c.jmp(on);
        land(c, counts);
        c.store(Size::Q, &Mem::gs(gs::CELLS), x);
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, OWN), 1);
        c.load(Size::D, r, &stamp(s, 0));
        c.alu_load(Alu::Cmp, Size::D, r, &Mem::base(x, STAMP - FRAME));
        c.jcc(cc::AE, done);
        let zero = far(c, [x, r], 1);
        c.jmp(done);
        land(c, zero);
        lea_code(c, r, done);
        c.jmp(first);
        start
    }

    /// A write of so many bytes at an address, or those whose bits X has: S.
    fn emit_write(&mut self, e: &mut Emit<'_>, bytes: Option<u32>) -> u64 {
        let [s, x, r] = e.scratch;
        let rms = self.metric == Metric::Rms;
        let foreign = if rms { 0 } else { self.routine(e, Routine::Foreign(1)) };
        let start = e.cold.here();
        self.emit_head(e, bytes);
        let c = &mut *e.cold;
        let (next, out) = begin_cells(c, x, bytes.is_none());
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
        end_cells(c, e.scratch, bytes.is_none(), next, out);
        start
    }

    /// The head of a general routine: the address in S becomes an index, and X a number of cells, for so many bytes, or
    /// from a bit for each byte one for each cell. The address and the way back are kept.
    fn emit_head(&self, e: &mut Emit<'_>, bytes: Option<u32>) {
        const RIGHT: u8 = 5;
        const EVERY_FOURTH: u64 = 0x1111_1111_1111_1111;
        let [s, x, r] = e.scratch;
        let c = &mut *e.cold;
        let cell = 1u32 << self.shift;
        c.store(Size::Q, &Mem::gs(gs::ADDRESS), s);
        c.store(Size::Q, &Mem::gs(gs::HOME), r);
        if let Some(bytes) = bytes {
            c.op_reg(Size::D, &[0x89], s, x); // mov x, s
            c.alu_imm(Alu::And, Size::D, x, cell as i32 - 1);
            c.alu_imm(Alu::Add, Size::D, x, (bytes + cell - 1) as i32);
            shift_right(c, x, self.shift as u8);
        } else {
            // A bit for each byte from the first cell's on; then each has a say in those of its cell before it.
            c.op_reg(Size::D, &[0x89], s, r); // mov r, s
            c.alu_imm(Alu::And, Size::D, r, cell as i32 - 1);
            c.shlx(x, x, r);
            for by in [1, 2] {
                c.op_reg(Size::Q, &[0x89], x, r); // mov r, x
                c.op_reg(Size::Q, &[0xc1], RIGHT, r); // shr r, by
                c.bytes(&[by]);
                c.alu(Alu::Or, Size::Q, x, r);
            }
            c.mov_imm64(r, EVERY_FOURTH);
            c.pext_reg(x, x, r);
        }
        c.pext(s, s, &Mem::gs(gs::MASK));
    }
}

/// The begin of a loop over cells: X is their number, or a mask. Returns what [`end_cells`] wants.
fn begin_cells(c: &mut Asm, x: Reg, masked: bool) -> (u64, Option<u64>) {
    let next = c.here();
    let out = masked.then(|| {
        shift_right(c, x, 1);
        c.jcc_later(cc::AE)
    });
    (next, out)
}

/// The end of a loop over cells: S is the next one's index, until X is used up.
fn end_cells(c: &mut Asm, [s, x, r]: [Reg; 3], masked: bool, next: u64, out: Option<u64>) {
    out.into_iter().for_each(|site| land(c, site));
    c.lea(s, &Mem::base(s, 1));
    if masked {
        c.op_reg(Size::Q, &[0x85], x, x); // test x, x
    } else {
        c.alu_imm(Alu::Sub, Size::D, x, 1);
    }
    c.jcc(cc::NE, next);
    end_general(c, [s, x, r]);
}
