//! Additions to counters in a thread's slab, with and without flags.
//!
//! What is emitted here may be anywhere in a block: it changes no register, and flags only where they are dead.

use crate::emit::{Asm, reg};
use crate::modrm::{Alu, Mem, Size};
use crate::state::off;

/// What a passage along a path adds to which counters.
#[derive(Clone, Copy)]
pub(crate) struct Bump {
    counter: i32,
    amount: u32,
    /// A second counter, and what it grows by.
    cost: Option<(i32, u32)>,
    flags_dead: bool,
}

impl Bump {
    /// Adds to one counter.
    pub(crate) fn new(counter: i32, amount: u32, flags_dead: bool) -> Bump {
        Bump { counter, amount, cost: None, flags_dead }
    }

    /// And to a second one, if there is one.
    pub(crate) fn and(self, cost: Option<(i32, u32)>) -> Bump {
        Bump { cost, ..self }
    }

    pub(crate) fn emit(&self, a: &mut Asm) {
        bump_counter(a, self.counter, self.flags_dead, self.amount);
        if let Some((counter, amount)) = self.cost {
            bump_counter(a, counter, self.flags_dead, amount);
        }
    }
}

/// Adds to a counter.
fn bump_counter(a: &mut Asm, counter: i32, flags_dead: bool, amount: u32) {
    match (flags_dead, amount) {
        (_, 0) => return,
        (true, 1) => return a.inc_gs(counter),
        (true, n) => return a.alu_store_imm(Alu::Add, Size::Q, &Mem::gs(counter), n as i32),
        (false, _) => {}
    }
    a.store_gs(off::SPILL_X, reg::R11);
    a.load_gs(reg::R11, counter);
    a.add_lea(reg::R11, amount as i32);
    a.store_gs(counter, reg::R11);
    a.load_gs(reg::R11, off::SPILL_X);
}

/// Adds rcx to a counter, or takes it away: `a - b` is `!(!a + b)`. Leaves flags alone.
pub(crate) fn add_rcx(a: &mut Asm, counter: i32, negative: bool) {
    const NOT_R11: [u8; 3] = [0x49, 0xf7, 0xd3];
    a.store_gs(off::SPILL_X, reg::R11);
    a.load_gs(reg::R11, counter);
    if negative {
        a.bytes(&NOT_R11);
    }
    a.add_lea_reg(reg::R11, reg::RCX);
    if negative {
        a.bytes(&NOT_R11);
    }
    a.store_gs(counter, reg::R11);
    a.load_gs(reg::R11, off::SPILL_X);
}
