//! How to get from a frame to its caller, for one pc, in 24 bytes.
//!
//! Almost all code on x86-64 follows one shape:
//! ```text
//! CFA   = reg + offset                 usually rsp or rbp
//!       | [reg + offset] + addend      frames that realign the stack
//! pc'   = [CFA - 8]        rsp' = CFA
//! reg'  = [CFA + 8k] | [base + 8k] | reg      for rbx, rbp, r12 .. r15
//! ```
//! The rest are the frames of signal handlers, the ends of stacks, and code without unwind information.

use crate::regs::{PRESERVED, RBP, RSP, Regs};
use crate::stack::Stack;

/// What a pc needs to find its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The usual shape.
    Frame(FrameRule),
    /// The trampoline under a signal handler: the interrupted registers lie above the stack pointer.
    Signal,
    /// The outermost frame of a stack.
    Root,
    /// No unwind information, or of a kind that is not understood.
    Unknown,
}

/// The usual shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameRule {
    /// Register that the frame address is computed from.
    pub cfa_register: u8,
    /// Whether the frame address is read from memory there.
    pub cfa_in_memory: bool,
    /// What to add to the register, in bytes.
    pub cfa_offset: i32,
    /// What to add to the word read from memory, in bytes.
    pub cfa_addend: i8,
    /// Register that [`Place::Based`] offsets are relative to.
    pub base_register: u8,
    /// Where the preserved registers are, in the order of [`PRESERVED`].
    pub saved: [Place; 6],
}

/// Where a preserved register of the caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Still in the register.
    Same,
    /// Nowhere any more.
    Lost,
    /// At this many words from the frame address.
    Framed(i16),
    /// At this many words from the base register.
    Based(i16),
}

/// Why a rule could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The stack cannot be read where the rule says.
    Unreadable,
    /// The frame address does not lie above the stack pointer.
    NoProgress,
    /// The rule needs a register whose value is not known.
    LostRegister,
}

/// Bytes from the start of a signal frame's `ucontext` to its general registers.
const GREGS_OFFSET: u64 = 40;

impl FrameRule {
    /// The rule at a function's first instruction, and in many stubs: the return address is on top.
    pub const ENTRY: Self = Self {
        cfa_register: crate::regs::RSP,
        cfa_in_memory: false,
        cfa_offset: 8,
        cfa_addend: 0,
        base_register: 0,
        saved: [Place::Same; 6],
    };
}

/// Registers of the code that a signal interrupted, from the trampoline's frame.
pub fn interrupted(regs: &mut Regs, stack: &mut Stack) -> Result<(), Fault> {
    let start = regs.sp().wrapping_add(GREGS_OFFSET);
    let mut ok = true;
    let found = Regs::from_gregs(|i| {
        stack.read(start.wrapping_add(8 * i as u64)).unwrap_or_else(|| {
            ok = false;
            0
        })
    });
    if !ok {
        return Err(Fault::Unreadable);
    }
    *regs = found;
    Ok(())
}

// A rule as three words:
//   0: kind 0..8 | cfa register 8..12 | base register 12..16 | in memory 16 | addend 24..32 | offset 32..64
//   1, 2: an 18-bit place for each of three registers: tag 0..2, words 2..18; the top ten bits stay free
const FRAME: u64 = 1;
const SIGNAL: u64 = 2;
const ROOT: u64 = 3;
const UNKNOWN: u64 = 4;
const IN_MEMORY: u64 = 1 << 16;
const PLACE_BITS: u32 = 18;
const PLACES: u64 = (1 << (3 * PLACE_BITS)) - 1;
const SAME: u64 = 0;
const LOST: u64 = 1;
const FRAMED: u64 = 2;
const BASED: u64 = 3;
/// Bits of the second and third word that `pack` leaves zero and `unpack` ignores.
pub const SPARE_FROM: u32 = 54;

/// A rule as it is kept in the cache and followed: walks never unpack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed(pub [u64; 3]);

/// What to do with a packed rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// [`Packed::apply`] it.
    Frame,
    /// See [`Rule::Signal`].
    Signal,
    /// See [`Rule::Root`].
    Root,
    /// See [`Rule::Unknown`].
    Unknown,
}

/// Where a rule finds the caller's rbp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BpPlace {
    /// In rbp.
    Same,
    /// At some distance from the frame address.
    Framed,
    /// Elsewhere, or nowhere.
    Elsewhere,
}

impl Packed {
    /// Which kind of rule it is.
    #[inline(always)]
    pub fn kind(self) -> Kind {
        match self.0[0] & 255 {
            FRAME => Kind::Frame,
            SIGNAL => Kind::Signal,
            ROOT => Kind::Root,
            _ => Kind::Unknown,
        }
    }

    /// The register at a constant distance from which the frame address is, if it is that of the stack or of the frame.
    #[inline(always)]
    pub(crate) fn cfa_from(self) -> Option<u8> {
        let register = (self.0[0] >> 8 & 15) as u8;
        (self.0[0] & IN_MEMORY == 0 && (register == RSP || register == RBP)).then_some(register)
    }

    /// Where the caller's rbp is, and at what distance in words.
    #[inline(always)]
    pub(crate) fn bp_place(self) -> (BpPlace, i16) {
        let place = self.0[1] >> PLACE_BITS;
        match place & 3 {
            SAME => (BpPlace::Same, 0),
            FRAMED => (BpPlace::Framed, (place >> 2) as u16 as i16),
            _ => (BpPlace::Elsewhere, 0),
        }
    }

    /// Turns a frame's registers into its caller's, by a rule of the usual shape.
    #[inline(always)]
    pub fn apply(self, regs: &mut Regs, stack: &mut Stack) -> Result<(), Fault> {
        let [first, low, high] = self.0;
        let from = regs.get((first >> 8 & 15) as u8).ok_or(Fault::LostRegister)?;
        let mut cfa = from.wrapping_add_signed((first >> 32) as u32 as i32 as i64);
        if first & IN_MEMORY != 0 {
            cfa = stack.read(cfa).ok_or(Fault::Unreadable)?.wrapping_add_signed((first >> 24) as i8 as i64);
        }
        if cfa <= regs.sp() {
            return Err(Fault::NoProgress);
        }
        let pc = stack.read(cfa.wrapping_sub(8)).ok_or(Fault::Unreadable)?;
        let (lower, upper) = PRESERVED.split_at(3);
        if (low | high) & PLACES != 0 {
            let base = regs.get((first >> 12 & 15) as u8);
            for (places, registers) in [(low & PLACES, lower), (high & PLACES, upper)] {
                let mut left = places;
                for &register in registers {
                    if left == 0 {
                        break; // a zero place is a register that still has its value
                    }
                    let words = (left >> 2) as u16 as i16 as i64;
                    let saved_from = match left & 3 {
                        SAME => None,
                        LOST => {
                            regs.forget(register);
                            None
                        }
                        FRAMED => Some(cfa),
                        _ => Some(base.ok_or(Fault::LostRegister)?),
                    };
                    if let Some(from) = saved_from {
                        let at = from.wrapping_add_signed(8 * words);
                        regs.set(register, stack.read(at).ok_or(Fault::Unreadable)?);
                    }
                    left >>= PLACE_BITS;
                }
            }
        }
        regs.step_to(pc, cfa);
        Ok(())
    }
}

impl Rule {
    /// The rule as three words.
    pub fn pack(self) -> Packed {
        Packed(match self {
            Rule::Signal => [SIGNAL, 0, 0],
            Rule::Root => [ROOT, 0, 0],
            Rule::Unknown => [UNKNOWN, 0, 0],
            Rule::Frame(f) => {
                let first = FRAME
                    | (f.cfa_register as u64 & 15) << 8
                    | (f.base_register as u64 & 15) << 12
                    | (f.cfa_in_memory as u64) << 16
                    | (f.cfa_addend as u8 as u64) << 24
                    | (f.cfa_offset as u32 as u64) << 32;
                let half = |from: usize| {
                    let mut word = 0;
                    for (i, place) in f.saved.iter().skip(from).take(3).enumerate() {
                        let bits = match *place {
                            Place::Same => SAME,
                            Place::Lost => LOST,
                            Place::Framed(words) => FRAMED | (words as u16 as u64) << 2,
                            Place::Based(words) => BASED | (words as u16 as u64) << 2,
                        };
                        word |= bits << (PLACE_BITS * i as u32);
                    }
                    word
                };
                [first, half(0), half(3)]
            }
        })
    }

    /// The rule that `pack` gave.
    pub fn unpack(Packed([first, low, high]): Packed) -> Self {
        match first & 255 {
            FRAME => {
                let place = |word: u64, i: u32| {
                    let bits = word >> (PLACE_BITS * i);
                    let words = (bits >> 2) as u16 as i16;
                    match bits & 3 {
                        SAME => Place::Same,
                        LOST => Place::Lost,
                        FRAMED => Place::Framed(words),
                        _ => Place::Based(words),
                    }
                };
                Rule::Frame(FrameRule {
                    cfa_register: (first >> 8 & 15) as u8,
                    base_register: (first >> 12 & 15) as u8,
                    cfa_in_memory: first & IN_MEMORY != 0,
                    cfa_addend: (first >> 24) as u8 as i8,
                    cfa_offset: (first >> 32) as u32 as i32,
                    saved: [
                        place(low, 0),
                        place(low, 1),
                        place(low, 2),
                        place(high, 0),
                        place(high, 1),
                        place(high, 2),
                    ],
                })
            }
            SIGNAL => Rule::Signal,
            ROOT => Rule::Root,
            _ => Rule::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_survives_packing() {
        let odd = FrameRule {
            cfa_register: 10,
            cfa_in_memory: true,
            cfa_offset: -40,
            cfa_addend: -8,
            base_register: 6,
            saved: [
                Place::Based(0),
                Place::Framed(-2),
                Place::Same,
                Place::Lost,
                Place::Framed(i16::MIN),
                Place::Based(i16::MAX),
            ],
        };
        for rule in [Rule::Frame(odd), Rule::Frame(FrameRule::ENTRY), Rule::Signal, Rule::Root, Rule::Unknown]
        {
            assert_eq!(Rule::unpack(rule.pack()), rule);
        }
    }
}
