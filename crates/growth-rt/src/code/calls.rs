//! Calls and returns: an activation begins with a frame of the shadow stack and ends with a record.

use super::*;
use inputsize::record::{RARE, RARE_WORDS};

/// The end of a frame with induced reads, S, whose plain record is at R: the record becomes a rare one, and the caller
/// inherits. Goes the way back with R where the last 32 bytes of the record begin; the jumps that are returned are taken
/// where more must be done, with nothing changed.
fn rare_record(c: &mut Asm, [s, x, r]: [Reg; 3]) -> Vec<u64> {
    // Facts of the caller are out of reach from here, those of the callee are in reach from the caller.
    let of = |field: i32| Mem::base(s, field);
    let callee = |field: i32| Mem::base(s, FRAME + field);
    let record = |word: i32| Mem::base(r, word * 8);
    let mut slow = Vec::new();
    test_bits(c, &of(FLAGS), flag::HANDLER);
    slow.push(c.jcc_later(cc::NE));
    test_bits(c, &of(ROUTINE), FOLD);
    slow.push(c.jcc_later(cc::NE));
    test_bits(c, &of(FLAGS - FRAME), flag::FACTS);
    let has_facts = c.jcc_later(cc::NE);
    // Is the caller looked at for another reason? Else it is from now on.
    c.load(Size::Q, x, &of(OLDER));
    c.alu(Alu::Sub, Size::Q, x, s);
    c.alu_imm(Alu::Cmp, Size::Q, x, -FRAME);
    slow.push(c.jcc_later(cc::E));
    c.alu(Alu::Add, Size::Q, x, s);
    c.lea(s, &Mem::base(s, -FRAME));
    c.store(Size::Q, &of(OLDER), x);
    c.store(Size::Q, &Mem::gs(gs::COLD), s);
    begin_facts(c, s);
    let inherit = c.jmp(c.here());
    land(c, has_facts);
    c.load(Size::Q, x, &of(OLDER));
    c.store(Size::Q, &Mem::gs(gs::COLD), x);
    c.lea(s, &Mem::base(s, -FRAME));
    land(c, inherit);
    for field in [INDUCED[0], INDUCED[1], RMS_LESS] {
        c.load(Size::Q, x, &callee(field));
        c.alu_store(Alu::Add, Size::Q, &of(field), x);
    }
    // Behind the rare part: size and costs, then whose.
    for word in [3, 2, 1] {
        c.load(Size::Q, x, &record(word));
        c.store(Size::Q, &record(word + RARE_WORDS as i32), x);
    }
    for half in [0, 4] {
        c.load(Size::D, x, &Mem::base(r, half));
        c.store(Size::D, &Mem::base(r, RARE_WORDS as i32 * 8 + half), x);
    }
    c.alu_store_imm(Alu::Or, Size::D, &record(RARE_WORDS as i32), RARE as i32);
    c.load(Size::Q, x, &record(1 + RARE_WORDS as i32));
    c.alu_load(Alu::Add, Size::Q, x, &callee(RMS_LESS));
    c.store(Size::Q, &record(0), x);
    let rest = INDUCED.into_iter().chain(INDUCED_SELF);
    for (word, field) in (1..).zip(rest) {
        c.load(Size::Q, x, &callee(field));
        c.store(Size::Q, &record(word), x);
    }
    c.lea(s, &Mem::base(s, FRAME));
    c.lea(r, &record(RARE_WORDS as i32));
    c.jmp_gs(gs::WAY);
    slow
}

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
        let [s, x, _] = e.scratch;
        let h = &mut *e.hot;
        h.load(Size::Q, s, &Mem::gs(gs::SSP));
        h.lea(x, &Mem::base(reg::RSP, 0));
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
        h.alu_load(Alu::And, Size::Q, r, &Mem::gs(gs::ALIVE));
        h.store(Size::Q, &next(TOP), r);
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
        h.lea(s, &Mem::base(s, -FRAME));
        h.store(Size::Q, &Mem::gs(gs::SSP), s);
        h.alu_load(Alu::Cmp, Size::Q, r, &Mem::gs(gs::LOG_END));
        let full = h.jcc_later(cc::AE);
        let back = h.here();
        let rest = self.routine(e, Routine::Rare((back - pop) as u8));
        let drain = self.routine(e, Routine::Full);
        let slow = odd.map(|odd| (odd, self.routine(e, Routine::Odd)));
        let c = &mut *e.cold;
        land(c, rare);
        lea_code(c, x, pop);
        c.jmp(rest);
        land(c, full);
        lea_code(c, r, back);
        c.jmp(drain);
        if let Some((odd, slow)) = slow {
            land(c, odd);
            lea_code(c, r, back);
            c.jmp(slow);
        }
    }

    /// The shared routines of calls and returns.
    pub(super) fn emit_edge(&mut self, e: &mut Emit<'_>, routine: Routine) -> u64 {
        let [s, x, r] = e.scratch;
        let odd = if matches!(routine, Routine::Rare(_)) { self.routine(e, Routine::Odd) } else { 0 };
        let of = |field: i32| Mem::base(s, field);
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
            Routine::Rare(bytes) => {
                let c = &mut *e.cold;
                c.store(Size::Q, &Mem::gs(gs::WAY), x);
                test_bits(c, &of(FLAGS), flag::FACTS | flag::HANDLER);
                let facts = c.jcc_later(cc::NE);
                // The outermost folded work: accesses count again.
                c.load(Size::Q, x, &of(OLDER));
                c.store(Size::Q, &Mem::gs(gs::COLD), x);
                c.load(Size::Q, x, &Mem::gs(gs::MASK_ON));
                c.store(Size::Q, &Mem::gs(gs::MASK), x);
                c.load(Size::Q, x, &Mem::gs(gs::ME_ON));
                c.store(Size::Q, &Mem::gs(gs::ME), x);
                c.store_imm(Size::Q, &Mem::gs(gs::ALIVE), -1);
                c.jmp_gs(gs::WAY);
                land(c, facts);
                let slow = rare_record(c, e.scratch);
                // What was passed on to the caller is passed on again by the slow path: take it back.
                slow.into_iter().for_each(|site| land(c, site));
                c.load(Size::Q, x, &Mem::base(r, 16));
                c.alu_store(Alu::Sub, Size::Q, &of(CALLEES - FRAME), x);
                c.load(Size::Q, x, &of(FAR));
                c.alu_store(Alu::Sub, Size::Q, &of(FAR - FRAME), x);
                c.load(Size::Q, r, &Mem::gs(gs::WAY));
                c.lea(r, &Mem::base(r, bytes.into()));
                c.jmp(odd);
                return start;
            }
            _ => e.call_out_cold(token::FULL, x),
        }
        e.cold.jmp_reg(r);
        start
    }
}
