//! Calls and returns: an activation begins with a frame of the shadow stack. How it ends: `leave.rs`.

use super::*;

impl Code {
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
        let s = e.scratch[0];
        let h = &mut *e.hot;
        h.load(Size::Q, s, &Mem::gs(gs::SSP));
        h.alu_load(Alu::Cmp, Size::Q, reg::RSP, &Mem::base(s, SP));
        let odd = h.jcc_later(cc::AE);
        self.push(e, routine, odd);
    }

    /// A routine is entered by a jump. Mostly the one that jumps ends; after a call of a PLT entry none does.
    pub fn tail(&mut self, e: &mut Emit<'_>, routine: u32) {
        e.keep_flags();
        self.read_clock(e.hot);
        let s = e.scratch[0];
        let h = &mut *e.hot;
        h.load(Size::Q, s, &Mem::gs(gs::SSP));
        h.alu_load(Alu::Cmp, Size::Q, reg::RSP, &Mem::base(s, SP));
        let none = h.jcc_later(cc::B);
        let odd = h.jcc_later(cc::NE);
        // (It leaves the caller's frame in S.)
        self.leave_elsewhere(e);
        land(e.hot, none);
        self.push(e, routine, odd);
    }

    /// Makes a frame above the one in S, for a routine with its return address at the stack pointer. The jump `odd` leads
    /// to the slow path.
    fn push(&mut self, e: &mut Emit<'_>, routine: u32, odd: u64) {
        let [s, x, r] = e.scratch;
        let h = &mut *e.hot;
        let next = |field: i32| Mem::base(s, FRAME + field);
        let mut odd = alloc::vec![odd];
        h.store(Size::Q, &next(SP), reg::RSP);
        h.load(Size::Q, r, &Mem::gs(gs::COUNTER));
        h.alu_load(Alu::Add, Size::Q, r, &Mem::gs(gs::ONE));
        odd.push(h.jcc_later(cc::C));
        h.store(Size::Q, &Mem::gs(gs::COUNTER), r);
        h.store(Size::Q, &next(STAMP), r);
        h.alu_load(Alu::And, Size::Q, r, &Mem::gs(gs::ALIVE));
        h.store(Size::Q, &next(TOP), r);
        h.load(Size::Q, x, &Mem::gs(gs::COST));
        h.store(Size::Q, &next(ENTERED), x);
        h.op_reg(Size::D, &[0x31], x, x); // xor x, x
        h.store(Size::Q, &next(FAR), x);
        h.store(Size::Q, &next(CALLEES), x);
        h.store(Size::Q, &next(OWN), x);
        let number = (routine & !FOLD) as i32;
        let nest = Mem::gs(gs::NEST + number * 4);
        h.load(Size::D, x, &nest);
        h.alu_imm(Alu::Or, Size::D, x, number);
        h.store(Size::Q, &next(ROUTINE), x);
        h.store_imm(Size::D, &nest, NESTED as i32);
        h.lea(s, &Mem::base(s, FRAME));
        h.store(Size::Q, &Mem::gs(gs::SSP), s);
        if routine & FOLD != 0 {
            h.alu_store_imm(Alu::Cmp, Size::Q, &Mem::gs(gs::MASK), 0);
            let folded = h.jcc_later(cc::E);
            h.alu_store_imm(Alu::Or, Size::D, &Mem::base(s, ROUTINE), FOLD as i32);
            h.load(Size::Q, x, &Mem::gs(gs::COLD));
            h.store(Size::Q, &Mem::base(s, OLDER), x);
            h.store(Size::Q, &Mem::gs(gs::COLD), s);
            h.store_imm(Size::Q, &Mem::gs(gs::MASK), 0);
            h.mov_imm64(x, FOLDED_MARK);
            h.store(Size::Q, &Mem::gs(gs::ME), x);
            h.store_imm(Size::Q, &Mem::gs(gs::ALIVE), 0);
            h.store_imm(Size::Q, &Mem::base(s, TOP), 0);
            land(h, folded);
        }
        let back = h.here();
        let slow = self.routine(e, Routine::Enter);
        let c = &mut *e.cold;
        odd.into_iter().for_each(|site| land(c, site));
        c.store_imm(Size::Q, &Mem::gs(gs::CELLS), routine as i32);
        lea_code(c, r, back);
        c.jmp(slow);
    }

    /// A return.
    pub fn ret(&mut self, e: &mut Emit<'_>) {
        let s = e.scratch[0];
        e.keep_flags();
        self.read_clock(e.hot);
        e.hot.load(Size::Q, s, &Mem::gs(gs::SSP));
        e.hot.alu_load(Alu::Cmp, Size::Q, reg::RSP, &Mem::base(s, SP));
        let odd = e.hot.jcc_later(cc::NE);
        if e.shared {
            self.leave_here(e);
        } else {
            self.leave_elsewhere(e);
        }
        let back = e.hot.here();
        let slow = self.routine(e, Routine::Odd);
        let c = &mut *e.cold;
        land(c, odd);
        lea_code(c, e.scratch[2], back);
        c.jmp(slow);
    }

    /// The shared routines of calls and returns.
    pub(super) fn emit_edge(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        let [s, x, r] = e.scratch;
        let start = e.cold.here();
        match routine {
            Routine::Enter => {
                e.cold.lea(x, &Mem::base(reg::RSP, 0));
                e.call_out_cold(token::ENTER, x);
            }
            Routine::Odd => {
                e.cold.lea(x, &Mem::base(reg::RSP, 0));
                e.call_out_cold(token::RETURN, x);
                e.cold.load(Size::Q, s, &Mem::gs(gs::SSP));
            }
            Routine::Leave => return self.emit_leave(e),
            _ => e.call_out_cold(token::FULL, x),
        }
        e.cold.jmp_reg(r);
        start
    }
}
