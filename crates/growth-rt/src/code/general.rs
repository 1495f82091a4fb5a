//! Shared routines: what accesses do that meet no stamp or somebody else's mark.

use super::reads::search_by_halves;
use super::*;
use inputsize::core::shadow::Mark;

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
            Routine::Old(n) => return self.emit_old(e, n),
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
            Routine::Read(bytes) => return self.emit_read(e, bytes),
            Routine::ReadMasked(bytes) => return self.emit_read_masked(e, bytes),
            Routine::WriteCells => return self.emit_write_cells(e, false),
            Routine::WriteCellsMasked => return self.emit_write_cells(e, true),
            Routine::Write(bytes) => return self.emit_write(e, bytes),
            Routine::WriteMasked(bytes) => return self.emit_write_masked(e, bytes),
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
    fn emit_old(&mut self, e: &mut Emit<'_>, n: u8) -> u64 {
        let first = self.routine(e, Routine::First(n));
        let [s, x, r] = e.scratch;
        let c = &mut *e.cold;
        let start = c.here();
        c.alu_store_imm(Alu::Cmp, Size::D, &Mem::gs(gs::OLD), 0);
        c.jcc(cc::E, first);
        c.store(Size::Q, &Mem::gs(gs::INDEX), s);
        c.store(Size::Q, &Mem::gs(gs::BACK), r);
        c.alu_store_imm(Alu::Add, Size::Q, &Mem::base(x, FAR - FRAME), n.into());
        search_by_halves(c, e.scratch);
        c.alu_store_imm(Alu::Sub, Size::Q, &Mem::base(x, FAR), n.into());
        c.load(Size::Q, s, &Mem::gs(gs::INDEX));
        c.load(Size::Q, x, &Mem::gs(gs::SSP));
        c.jmp_gs(gs::BACK);
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
}
