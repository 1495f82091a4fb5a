//! What an instruction's code alone says about it, in one word.
//!
//! iced answers each question from a table of its own, and translation asks ten of every instruction: how control goes
//! on, which flags it reads and writes, what its operands are used for. Here all answers about one code lie together
//! ([`Facts`]), asked of iced when the code is first met. A program uses some two hundred codes.
//!
//! What depends on more than the code is not in here: [`Facts::flags`] says so by `None`, [`Facts::form`] by
//! [`Form::Other`], and who asks goes on with iced.

use core::sync::atomic::{AtomicU32, Ordering};
use iced_x86::{
    Code, EncodingKind, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
    RflagsBits,
};

/// The six arithmetic flags.
pub const FLAGS: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// See the module's documentation.
///
/// | bits | |
/// |---|---|
/// | 0 to 5 | flags that are modified |
/// | 6 to 11 | flags that are read |
/// | 12 to 17 | [`bit`] |
/// | 18 to 20 | [`Form`] |
/// | 21 to 23, 24 to 26 | [`Use`] of the first and the second operand |
/// | 27 | the third operand is read |
/// | 28 to 30 | log2 of the bytes of a memory operand |
/// | 31 | whether all this is known |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts(u32);

mod bit {
    /// Which flags are read and modified depends on more than the code.
    pub const FLAGS_VARY: u32 = 1 << 12;
    pub const GOES_ON: u32 = 1 << 13;
    pub const IS_STRING: u32 = 1 << 14;
    pub const IS_ADDRESS: u32 = 1 << 15;
    pub const ORDERS: u32 = 1 << 16;
    pub const IS_SYSTEM: u32 = 1 << 17;
    pub const KNOWN: u32 = 1 << 31;
}

const READ: u32 = 6;
const FORM: u32 = 18;
const USES: [u32; 2] = [21, 24];
const THIRD_IS_READ: u32 = 1 << 27;
const BYTES: u32 = 28;

/// Which registers and which memory an instruction uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Form {
    /// Another one: iced knows.
    Other = 0,
    /// Its operands and nothing else.
    Operands,
    /// Pushes 8 bytes: its operand, a register or immediate.
    Push,
    /// Pops 8 bytes into its operand, a register.
    Pop,
    /// Pushes a return address; the callee is known.
    Call,
    /// Pops one.
    Return,
}

/// What an instruction does with one of its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Use {
    /// Nothing.
    None = 0,
    /// Reads it.
    Read,
    /// Writes it, perhaps on a condition.
    Write,
    /// Both.
    ReadWrite,
    /// Takes its address; of a register, its value.
    Address,
}

const FORMS: [Form; 8] =
    [Form::Other, Form::Operands, Form::Push, Form::Pop, Form::Call, Form::Return, Form::Other, Form::Other];

const NO_USE: Use = Use::None;
const ALL_USES: [Use; 8] =
    [Use::None, Use::Read, Use::Write, Use::ReadWrite, Use::Address, NO_USE, NO_USE, NO_USE];

impl Facts {
    /// None at all.
    pub const NONE: Facts = Facts(0);

    /// About an instruction.
    #[inline]
    pub fn of(ins: &Instruction) -> Facts {
        let known = KNOWN.get(ins.code() as usize).map_or(0, |word| word.load(Ordering::Relaxed));
        if known & bit::KNOWN != 0 { Facts(known) } else { learn(ins) }
    }

    /// The arithmetic flags that it modifies and those that it reads, if the code says that.
    #[inline]
    pub fn flags(self) -> Option<(u32, u32)> {
        (self.0 & bit::FLAGS_VARY == 0).then_some((self.0 & FLAGS, self.0 >> READ & FLAGS))
    }

    /// Does control always go on behind it ([`FlowControl::Next`])?
    #[inline]
    pub fn goes_on(self) -> bool {
        self.0 & bit::GOES_ON != 0
    }

    /// A string instruction (`movs`, `stos`, ...)?
    #[inline]
    pub fn is_string(self) -> bool {
        self.0 & bit::IS_STRING != 0
    }

    /// One whose memory operand is only an address: `lea`, `nop`?
    #[inline]
    pub fn is_address(self) -> bool {
        self.0 & bit::IS_ADDRESS != 0
    }

    /// One that orders memory accesses even without a lock prefix: `xchg`, fences, `cpuid`?
    #[inline]
    pub fn orders(self) -> bool {
        self.0 & bit::ORDERS != 0
    }

    /// One that the engine does not run: it changes the gs base, or begins a transaction?
    #[inline]
    pub fn is_system(self) -> bool {
        self.0 & bit::IS_SYSTEM != 0
    }

    /// What it uses.
    #[inline]
    pub fn form(self) -> Form {
        FORMS[(self.0 >> FORM & 7) as usize]
    }

    /// For [`Form::Operands`]: what the first two operands are used for.
    #[inline]
    pub fn uses(self) -> [Use; 2] {
        USES.map(|shift| ALL_USES[(self.0 >> shift & 7) as usize])
    }

    /// For [`Form::Operands`]: whether a third operand is read.
    #[inline]
    pub fn third_is_read(self) -> bool {
        self.0 & THIRD_IS_READ != 0
    }

    /// For [`Form::Operands`]: length of an operand in memory.
    #[inline]
    pub fn bytes(self) -> u32 {
        1 << (self.0 >> BYTES & 7)
    }
}

/// Room for all codes.
const CODES: usize = 5000;

/// What was learned so far, by code. Threads may learn the same twice.
static KNOWN: [AtomicU32; CODES] = [const { AtomicU32::new(0) }; CODES];

#[cold]
#[inline(never)]
fn learn(ins: &Instruction) -> Facts {
    let code = ins.code();
    let mut word = bit::KNOWN;
    word |= match flags_vary(code.mnemonic()) {
        true => bit::FLAGS_VARY,
        false => ins.rflags_modified() & FLAGS | (ins.rflags_read() & FLAGS) << READ,
    };
    let mut set = |on: bool, bit: u32| word |= if on { bit } else { 0 };
    set(code.flow_control() == FlowControl::Next, bit::GOES_ON);
    set(code.is_string_instruction(), bit::IS_STRING);
    set(matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop), bit::IS_ADDRESS);
    set(orders(code.mnemonic()), bit::ORDERS);
    set(is_system(code.mnemonic()), bit::IS_SYSTEM);
    let form = form_of(ins);
    word |= (form as u32) << FORM;
    if form == Form::Operands {
        word |= uses_of(ins);
    }
    if let Some(place) = KNOWN.get(code as usize) {
        place.store(word, Ordering::Relaxed);
    }
    Facts(word)
}

/// Shifts by zero leave flags alone, and so may repeated comparisons (see `liveness.rs`).
fn flags_vary(m: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(m, Shl | Shr | Sar | Sal | Rol | Ror | Rcl | Rcr | Shld | Shrd)
        || matches!(m, Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq)
}

fn orders(m: Mnemonic) -> bool {
    matches!(m, Mnemonic::Xchg | Mnemonic::Mfence | Mnemonic::Lfence | Mnemonic::Sfence | Mnemonic::Cpuid)
}

/// See [`Facts::is_system`].
fn is_system(m: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(m, Rdgsbase | Wrgsbase | Swapgs | Lgs | Xbegin)
}

fn form_of(ins: &Instruction) -> Form {
    let code = ins.code();
    let size = ins.memory_size().size();
    match code {
        Code::Push_r64 | Code::Pushq_imm8 | Code::Pushq_imm32 => Form::Push,
        Code::Pop_r64 => Form::Pop,
        Code::Call_rel32_64 => Form::Call,
        Code::Retnq => Form::Return,
        Code::Jmp_rel8_64 | Code::Jmp_rel32_64 => Form::Operands,
        _ if code.is_jcc_short_or_near() => Form::Operands,
        _ if code.encoding() == EncodingKind::Legacy
            && ins.op_count() <= 3
            && (size == 0 || size.is_power_of_two() && size <= 64)
            && uses_operands_alone(code.mnemonic(), ins.op_count()) =>
        {
            Form::Operands
        }
        _ => Form::Other,
    }
}

/// Has an instruction no other operands than those that can be seen? Those that programs are made of.
fn uses_operands_alone(m: Mnemonic, count: u32) -> bool {
    use Mnemonic::*;
    match m {
        Mov | Movzx | Movsx | Movsxd | Lea | Add | Adc | Sub | Sbb | And | Or | Xor | Cmp | Test | Inc
        | Dec | Neg | Not | Bswap | Bt | Bts | Btr | Btc | Bsf | Bsr | Tzcnt | Lzcnt | Popcnt | Xadd
        | Endbr64 | Nop => true,
        Shl | Shr | Sar | Sal | Rol | Ror | Shld | Shrd => true,
        Imul => count > 1,
        Seta | Setae | Setb | Setbe | Sete | Setne | Setg | Setge | Setl | Setle | Seto | Setno | Sets
        | Setns | Setp | Setnp => true,
        Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovne | Cmovg | Cmovge | Cmovl | Cmovle | Cmovo
        | Cmovno | Cmovs | Cmovns | Cmovp | Cmovnp => true,
        Movaps | Movapd | Movups | Movupd | Movdqa | Movdqu | Movd | Movq | Movss | Movhps | Movlps
        | Movhpd | Movlpd => true,
        // (Without operands in registers it is the string instruction.)
        Movsd => count == 2,
        Pxor | Por | Pand | Pandn | Xorps | Xorpd | Andps | Andpd | Pcmpeqb | Pcmpeqd | Pmovmskb | Paddd
        | Paddq | Psubd | Psubq | Pshufd | Punpcklqdq | Punpckldq => true,
        Addss | Addsd | Subss | Subsd | Mulss | Mulsd | Divss | Divsd | Ucomiss | Ucomisd | Comiss
        | Comisd | Cvtsi2sd | Cvtsi2ss | Cvttsd2si | Cvttss2si | Cvtss2sd | Cvtsd2ss => true,
        _ => false,
    }
}

/// What the operands are used for, and how long one in memory is.
fn uses_of(ins: &Instruction) -> u32 {
    let mut ins = *ins;
    // A register that is cleared is not read: what else the instruction does shows with two different ones.
    if ins.op0_register() == ins.op1_register() && ins.op1_register() != Register::None {
        let other = if ins.op0_register() == Register::RCX { Register::RDX } else { Register::RCX };
        ins.set_op1_register(other);
    }
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&ins);
    let of = |access: OpAccess| match access {
        OpAccess::None => Use::None,
        OpAccess::Read | OpAccess::CondRead => Use::Read,
        OpAccess::Write | OpAccess::CondWrite => Use::Write,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => Use::ReadWrite,
        OpAccess::NoMemAccess => Use::Address,
    };
    let mut first = of(info.op0_access());
    if matches!(ins.mnemonic(), Mnemonic::Movss | Mnemonic::Movsd) {
        // (A part of a vector register stays, but registers of that kind are nobody's concern here.)
        first = Use::Write;
    }
    let uses = (first as u32) << USES[0] | (of(info.op1_access()) as u32) << USES[1];
    let third = if info.op2_access() == OpAccess::None { 0 } else { THIRD_IS_READ };
    let bytes = ins.memory_size().size().max(1).ilog2() << BYTES;
    uses | third | bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Whichever instruction of a code comes first.
    #[test]
    fn facts_are_of_the_code_alone() {
        let modrms = [0x00, 0x05, 0x04, 0x48, 0x84, 0xc0, 0xc1, 0xc9, 0xd3, 0xe4, 0xfe];
        for prefix in [&[][..], &[0x66], &[0xf2], &[0xf3], &[0x67], &[0x48], &[0x4d], &[0x66, 0x48]] {
            for (opcode, modrm) in (0..=0xffff).flat_map(|o: u32| modrms.map(|m| (o, m))) {
                let [first, second, ..] = opcode.to_le_bytes();
                let escaped = [0x0f, second, modrm, 0x25, modrm, 2, 3, 4, 5, 6, 7, 8];
                let plain = [second, modrm, 0x25, modrm, 2, 3, 4, 5, 6, 7, 8, 9];
                let bytes = match first {
                    0 => plain,
                    1 => escaped,
                    _ => continue,
                };
                let code = [prefix, &bytes].concat();
                let ins = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE).decode();
                if !ins.is_invalid() {
                    assert_eq!(Facts::of(&ins), learn(&ins), "{code:x?} {:?}", ins.code());
                }
            }
        }
    }

    /// Those of iced, whatever the operands.
    #[test]
    fn flags_are_what_iced_says() {
        for code in (0..=0xffu8).flat_map(|o| (0..=0xff).flat_map(move |m| [[o, m, 0x25], [0x0f, o, m]])) {
            let bytes = [&code[..], &[1, 2, 3, 4, 5, 6, 7, 8, 9]].concat();
            let ins = Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE).decode();
            if let Some((modified, read)) = Facts::of(&ins).flags() {
                assert_eq!(modified, ins.rflags_modified() & FLAGS, "{code:x?}");
                assert_eq!(read, ins.rflags_read() & FLAGS, "{code:x?}");
            }
        }
    }

    #[test]
    fn there_is_room_for_all_codes() {
        assert!(Code::values().len() <= CODES);
    }
}
