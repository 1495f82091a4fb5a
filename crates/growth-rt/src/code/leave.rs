//! The end of an activation: what its caller inherits, and where it is counted.
//!
//! ```text
//!   cmp  S, cold                ; rare facts, or folded work that ends
//!   je   rare
//! plain:
//!   ...                         ; R: whose activation, X: size, then cost; the caller inherits
//!   crc32 R, X                  ; (last that of the cost: it is known latest)
//!   and  R, the table's mask
//!   cmp  [R+cost], X            ; four times: alike?
//!   jne  miss
//!   ...
//!   add  [R+calls], 1
//!   js   overflow
//! counted:
//!   lea  S, [S-frame]
//!   mov  ssp, S
//! ```
//! S is the frame, and the caller's in the end; R is the entry. Numbers are fetched again for each use: loads are cheap, and
//! what a return costs is above all the stores. `alike.rs` says how entries make room for each other, which takes a
//! register more: one of the program's that lies in [`gs::SPARE`] meanwhile.
//!
//! A program may be killed anywhere. So an entry that moves is nowhere for a moment, never in two places.

use super::*;
use wire::growth::{ALIKE_WORDS, Alike, RARE, RARE_WORDS};

/// Bytes of an entry of the table of alike activations.
const ENTRY: i32 = size_of::<Alike>() as i32;
const KEY: i32 = offset_of!(Alike, key) as i32;
const CALLS: i32 = offset_of!(Alike, calls) as i32;
const N: i32 = offset_of!(Alike, n) as i32;
const COST: i32 = offset_of!(Alike, cost) as i32;
const OWN_COST: i32 = offset_of!(Alike, own) as i32;

/// Where the code leaves its straight path and comes back to it.
struct Straight {
    rare: u64,
    misses: Vec<u64>,
    overflow: u64,
    plain: u64,
    counted: u64,
    back: u64,
}

/// A field of the entry whose offset is in `e`.
fn entry(e: Reg, field: i32) -> Mem {
    Mem { gs: true, base: Some(e), index: None, disp: gs::ALIKE + field }
}

/// `crc32 to, from`
fn crc32(c: &mut Asm, to: Reg, from: Reg) {
    c.bytes(&[0xf2, 0x48 | (to >> 3) << 2 | from >> 3, 0x0f, 0x38, 0xf1, 0xc0 | (to & 7) << 3 | from & 7]);
}

/// X becomes the size of the activation whose frame is S.
fn size(c: &mut Asm, s: Reg, x: Reg) {
    c.load(Size::Q, x, &Mem::base(s, FAR));
    c.alu_load(Alu::Add, Size::Q, x, &Mem::base(s, OWN));
}

/// X becomes its cost.
fn cost(c: &mut Asm, s: Reg, x: Reg) {
    c.load(Size::Q, x, &Mem::gs(gs::COST));
    c.alu_load(Alu::Sub, Size::Q, x, &Mem::base(s, ENTERED));
}

/// Looks whether the entry at E has its numbers; X is its cost, and lost. The jumps that are returned are taken if not.
fn compare(c: &mut Asm, s: Reg, x: Reg, e: Reg) -> Vec<u64> {
    let mut misses = Vec::new();
    let mut differ = |c: &mut Asm, size: Size, field: i32| {
        c.alu_store(Alu::Cmp, size, &entry(e, field), x);
        misses.push(c.jcc_later(cc::NE));
    };
    differ(c, Size::Q, COST);
    c.alu_load(Alu::Sub, Size::Q, x, &Mem::base(s, CALLEES));
    differ(c, Size::Q, OWN_COST);
    size(c, s, x);
    differ(c, Size::Q, N);
    c.load(Size::D, x, &Mem::base(s, ROUTINE));
    differ(c, Size::D, KEY);
    misses
}

/// The caller inherits what its own callers gain by far first reads; X is lost.
fn inherit_far(c: &mut Asm, s: Reg, x: Reg) {
    c.load(Size::Q, x, &Mem::base(s, FAR));
    c.alu_store(Alu::Add, Size::Q, &Mem::base(s, FAR - FRAME), x);
}

/// No activation of the routine in `key` is pending any more, unless it was a nested one.
fn unnest(c: &mut Asm, key: Reg) {
    c.op_reg(Size::D, &[0x85], key, key); // test key, key
    let nested = jcc_short(c, cc::S);
    c.store_imm(Size::D, &Mem::gs_index(key, 2, gs::NEST), 0);
    land_short(c, nested);
}

/// The straight path. S is the frame; falls out with the caller's there.
fn straight(c: &mut Asm, scratch: [Reg; 3]) -> Straight {
    let [s, x, e] = scratch;
    c.alu_load(Alu::Cmp, Size::Q, s, &Mem::gs(gs::COLD));
    let rare = c.jcc_later(cc::E);
    let plain = c.here();
    c.load(Size::D, e, &Mem::base(s, ROUTINE));
    unnest(c, e);
    size(c, s, x);
    crc32(c, e, x);
    cost(c, s, x);
    crc32(c, e, x);
    c.alu_store(Alu::Add, Size::Q, &Mem::base(s, CALLEES - FRAME), x);
    c.alu_load(Alu::And, Size::D, e, &Mem::gs(gs::ALIKE_MASK));
    let misses = compare(c, s, x, e);
    inherit_far(c, s, x);
    c.alu_store_imm(Alu::Add, Size::D, &entry(e, CALLS), 1);
    let overflow = c.jcc_later(cc::S);
    let counted = c.here();
    c.lea(s, &Mem::base(s, -FRAME));
    c.store(Size::Q, &Mem::gs(gs::SSP), s);
    Straight { rare, misses, overflow, plain, counted, back: c.here() }
}

/// What neither entry has: the neighbour's activations go to the buffer, the first one's to the neighbour, and this one
/// is the first in its place. The last scratch register is the neighbour.
fn replace(c: &mut Asm, scratch: [Reg; 3]) {
    let ([s, x, e], r) = (scratch, spare(scratch));
    let of = |field: i32| Mem::base(s, field);
    c.store(Size::Q, &Mem::gs(gs::SPARE), r);
    c.alu_store_imm(Alu::Cmp, Size::D, &entry(e, CALLS), 0);
    let free = c.jcc_later(cc::E);
    c.load(Size::Q, r, &Mem::gs(gs::LOG));
    for word in 0..ALIKE_WORDS as i32 {
        c.load(Size::Q, x, &entry(e, word * 8));
        c.store(Size::Q, &Mem::base(r, word * 8), x);
    }
    c.store_imm(Size::D, &entry(e, CALLS), 0);
    c.alu_imm(Alu::Add, Size::Q, r, ENTRY);
    c.store(Size::Q, &Mem::gs(gs::LOG), r);
    land(c, free);
    c.op_reg(Size::D, &[0x89], e, r); // mov r, e
    c.alu_imm(Alu::Xor, Size::D, r, ENTRY);
    for word in 1..ALIKE_WORDS as i32 {
        c.load(Size::Q, x, &entry(r, word * 8));
        c.store(Size::Q, &entry(e, word * 8), x);
    }
    c.load(Size::Q, x, &entry(r, 0));
    c.store_imm(Size::D, &entry(r, CALLS), 0);
    c.store(Size::Q, &entry(e, 0), x);
    size(c, s, x);
    c.store(Size::Q, &entry(r, N), x);
    cost(c, s, x);
    c.store(Size::Q, &entry(r, COST), x);
    c.alu_load(Alu::Sub, Size::Q, x, &of(CALLEES));
    c.store(Size::Q, &entry(r, OWN_COST), x);
    c.load(Size::D, x, &of(ROUTINE));
    c.store(Size::D, &entry(r, KEY), x);
    c.store_imm(Size::D, &entry(r, CALLS), 1);
    c.load(Size::Q, r, &Mem::gs(gs::SPARE));
}

/// The end of a frame with induced reads, S: the caller inherits, and the activation goes to the buffer. The jumps that
/// are returned are taken where more must be done, with nothing changed.
fn leave_facts(c: &mut Asm, [s, x, r]: [Reg; 3]) -> Vec<u64> {
    // Facts of the caller are out of reach from here, those of the callee are in reach from the caller.
    let of = |field: i32| Mem::base(s, field);
    let callee = |field: i32| Mem::base(s, FRAME + field);
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
    c.load(Size::Q, r, &Mem::gs(gs::LOG));
    let word = |at: i32| Mem::base(r, at * 8);
    let rare = |at: i32| word(ALIKE_WORDS as i32 + at);
    c.load(Size::Q, x, &callee(FAR));
    c.alu_store(Alu::Add, Size::Q, &of(FAR), x);
    c.alu_load(Alu::Add, Size::Q, x, &callee(OWN));
    c.store(Size::Q, &Mem::base(r, N), x);
    c.alu_load(Alu::Add, Size::Q, x, &callee(RMS_LESS));
    c.store(Size::Q, &rare(0), x);
    c.load(Size::Q, x, &Mem::gs(gs::COST));
    c.alu_load(Alu::Sub, Size::Q, x, &callee(ENTERED));
    c.store(Size::Q, &Mem::base(r, COST), x);
    c.alu_store(Alu::Add, Size::Q, &of(CALLEES), x);
    c.alu_load(Alu::Sub, Size::Q, x, &callee(CALLEES));
    c.store(Size::Q, &Mem::base(r, OWN_COST), x);
    for (at, field) in (1..).zip(INDUCED.into_iter().chain(INDUCED_SELF)) {
        c.load(Size::Q, x, &callee(field));
        c.store(Size::Q, &rare(at), x);
    }
    c.load(Size::D, x, &callee(ROUTINE));
    unnest(c, x);
    c.alu_imm(Alu::Or, Size::D, x, RARE as i32);
    c.store(Size::D, &Mem::base(r, KEY), x);
    c.store_imm(Size::D, &Mem::base(r, CALLS), 1);
    c.alu_imm(Alu::Add, Size::Q, r, (ALIKE_WORDS + RARE_WORDS) as i32 * 8);
    c.store(Size::Q, &Mem::gs(gs::LOG), r);
    c.lea(s, &Mem::base(s, FRAME));
    slow
}

impl Code {
    /// Ends the activation whose frame is in S, in code that many places share.
    pub(super) fn leave_here(&mut self, e: &mut Emit<'_>) {
        let rest = [self.routine(e, Routine::Odd), self.routine(e, Routine::Full)];
        let from = straight(e.hot, e.scratch);
        emit_rest(e.cold, e.scratch, &from, rest);
    }

    /// The same by a routine.
    pub(super) fn leave_elsewhere(&mut self, e: &mut Emit<'_>) {
        let to = self.routine(e, Routine::Leave);
        let r = e.scratch[2];
        const STEP: u64 = 7 + 9 + 5;
        let back = e.hot.here() + STEP;
        lea_code(e.hot, r, back);
        e.hot.store(Size::Q, &Mem::gs(gs::WAY), r);
        e.hot.jmp(to);
        debug_assert_eq!(e.hot.here(), back);
    }

    /// That routine.
    pub(super) fn emit_leave(&mut self, e: &mut Emit<'_>) -> u64 {
        let rest = [self.routine(e, Routine::Odd), self.routine(e, Routine::Full)];
        let start = e.cold.here();
        let from = straight(e.cold, e.scratch);
        e.cold.jmp_gs(gs::WAY);
        emit_rest(e.cold, e.scratch, &from, rest);
        start
    }
}

/// Everything off the straight path.
fn emit_rest(c: &mut Asm, scratch: [Reg; 3], from: &Straight, [odd, drain]: [u64; 2]) {
    let [s, x, r] = scratch;
    let of = |field: i32| Mem::base(s, field);
    // The counter of calls is full: what is counted goes away as if others had needed the place.
    land(c, from.overflow);
    c.alu_store_imm(Alu::Sub, Size::D, &entry(r, CALLS), 1);
    let full = c.jmp(c.here());
    from.misses.iter().for_each(|&site| land(c, site));
    inherit_far(c, s, x);
    land(c, full);
    cost(c, s, x);
    c.alu_imm(Alu::Xor, Size::D, r, ENTRY);
    let others = compare(c, s, x, r);
    c.alu_store_imm(Alu::Add, Size::D, &entry(r, CALLS), 1);
    c.jcc(cc::NS, from.counted);
    c.alu_store_imm(Alu::Sub, Size::D, &entry(r, CALLS), 1);
    others.into_iter().for_each(|site| land(c, site));
    replace(c, scratch);
    let logged = c.here();
    c.load(Size::Q, r, &Mem::gs(gs::LOG));
    c.alu_load(Alu::Cmp, Size::Q, r, &Mem::gs(gs::LOG_END));
    c.jcc(cc::B, from.counted);
    lea_code(c, r, from.counted);
    c.jmp(drain);

    land(c, from.rare);
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
    c.alu_store_imm(Alu::And, Size::D, &of(ROUTINE), !FOLD as i32);
    c.jmp(from.plain);
    land(c, facts);
    let slow = leave_facts(c, scratch);
    c.jmp(logged);
    slow.into_iter().for_each(|site| land(c, site));
    lea_code(c, r, from.back);
    c.jmp(odd);
}
