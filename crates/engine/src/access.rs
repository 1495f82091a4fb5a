//! Which memory an instruction accesses.
//!
//! Most accesses have a size and an address that follow from the general registers: [`Access`]. The rest
//! ([`Complex`]: repeated string instructions, masked and gathered vectors, `xsave`, 32-bit addressing) is worked
//! out at run time, in `complex.rs`. Prefetches, cache hints, `lea` and `nop` access nothing.

use crate::emit::reg;
use crate::facts::{Facts, Form, Use};
use crate::superblock::Insn;
use alloc::vec::Vec;
use iced_x86::{
    CodeSize, Instruction, InstructionInfo, InstructionInfoFactory, InstructionInfoOptions, MemorySize,
    Mnemonic, OpAccess, OpKind, Register,
};

/// Direction of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A load and a store of the same memory.
    ReadWrite,
}

/// What an access is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// An operand.
    Data,
    /// The implicit operand of `push`, `pop`, `enter`, `leave` and the like.
    Stack,
    /// The return address of a call or a return, and the table entry that a PLT jumps through.
    Control,
}

/// An address: `segment base + base + index * scale + disp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operand {
    /// Relative to the fs base?
    pub fs: bool,
    /// Machine number of the base register.
    pub base: Option<u8>,
    /// Machine number of the index register, and the binary logarithm of its scale.
    pub index: Option<(u8, u8)>,
    /// Displacement; for a RIP-relative operand the whole address.
    pub disp: i64,
}

/// One access with a known size, at an address that follows from the registers before the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Index of its instruction in the superblock.
    pub index: usize,
    /// Direction.
    pub kind: Kind,
    /// Purpose.
    pub class: Class,
    /// Length.
    pub bytes: u32,
    /// Where.
    pub operand: Operand,
}

/// What one instruction accesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accesses {
    /// Those that were appended to the list, perhaps none.
    Simple,
    /// To be worked out at run time, before the instruction.
    Complex,
    /// To be worked out at run time, after the instruction: the number of iterations shows only then.
    ComplexAfter,
}

/// What [`Finder::find`] tells of an instruction. General registers are bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its accesses.
    pub accesses: Accesses,
    /// Registers that it mentions in any way.
    pub mentions: u16,
    /// Registers that it writes or may write.
    pub writes: u16,
}

/// Finds accesses; keeps iced's buffers.
pub struct Finder {
    factory: InstructionInfoFactory,
}

impl Default for Finder {
    fn default() -> Self {
        Finder { factory: InstructionInfoFactory::new() }
    }
}

impl Finder {
    /// Appends the accesses of `insn` to `out`.
    #[inline]
    pub fn find(&mut self, insn: &Insn, index: usize, out: &mut Vec<Access>) -> Found {
        match find_common(&insn.ins, insn.facts, index, out) {
            Some(found) => found,
            None => self.ask(&insn.ins, index, out),
        }
    }

    /// The same, asked of iced.
    #[inline(never)]
    fn ask(&mut self, ins: &Instruction, index: usize, out: &mut Vec<Access>) -> Found {
        let info = self.factory.info_options(ins, InstructionInfoOptions::NONE);
        let (mut mentions, mut writes) = (0u16, 0u16);
        for used in info.used_registers() {
            let Some(n) = machine_number(used.register()) else { continue };
            mentions |= 1 << n;
            if matches!(
                used.access(),
                OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
            ) {
                writes |= 1 << n;
            }
        }
        Found { accesses: append(info, ins, index, out), mentions, writes }
    }
}

/// Answers for the instructions that programs are made of, without the lists that iced makes for each: nine in ten.
#[inline]
fn find_common(ins: &Instruction, facts: Facts, index: usize, out: &mut Vec<Access>) -> Option<Found> {
    const RSP: u16 = 1 << reg::RSP;
    let found = |mentions, writes| Some(Found { accesses: Accesses::Simple, mentions, writes });
    let mut on_stack = |kind, class, disp| {
        let operand = Operand { fs: false, base: Some(reg::RSP), index: None, disp };
        out.push(Access { index, kind, class, bytes: 8, operand });
    };
    if facts.form() == Form::Operands {
        return find_operands(ins, facts, index, out);
    }
    match facts.form() {
        Form::Other | Form::Operands => None,
        Form::Push => {
            on_stack(Kind::Write, Class::Stack, -8);
            let operand = if ins.op0_kind() == OpKind::Register { bit(ins.op0_register()) } else { 0 };
            found(RSP | operand, RSP)
        }
        Form::Pop => {
            on_stack(Kind::Read, Class::Stack, 0);
            found(RSP | bit(ins.op0_register()), RSP | bit(ins.op0_register()))
        }
        Form::Call => {
            on_stack(Kind::Write, Class::Control, -8);
            found(RSP, RSP)
        }
        Form::Return => {
            on_stack(Kind::Read, Class::Control, 0);
            found(RSP, RSP)
        }
    }
}

/// The same for [`Form::Operands`].
#[inline]
fn find_operands(ins: &Instruction, facts: Facts, index: usize, out: &mut Vec<Access>) -> Option<Found> {
    let (mut mentions, mut writes) = (0, 0);
    let mut in_memory = None;
    let kinds = [(ins.op0_kind(), ins.op0_register()), (ins.op1_kind(), ins.op1_register())];
    for ((kind, register), used) in kinds.into_iter().zip(facts.uses()) {
        match kind {
            OpKind::Register if used != Use::None => {
                mentions |= bit(register);
                writes |= if matches!(used, Use::Write | Use::ReadWrite) { bit(register) } else { 0 };
            }
            OpKind::Memory if used != Use::None => in_memory = Some(used),
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return None,
            _ => {}
        }
    }
    if facts.third_is_read() && ins.op2_kind() == OpKind::Register {
        mentions |= bit(ins.op2_register());
    }
    if let Some(used) = in_memory {
        let (base, index_register) = (ins.memory_base(), ins.memory_index());
        let wide = |r: Register| matches!(r, Register::None | Register::RIP) || r.is_gpr64();
        let none = base == Register::None && index_register == Register::None;
        let fs = ins.segment_prefix() == Register::FS;
        if !wide(base)
            || !wide(index_register)
            || none && ins.memory_displ_size() != 8
            || !fs && ins.segment_prefix() != Register::None
        {
            return None;
        }
        mentions |= bit(base) | bit(index_register);
        let kind = match used {
            Use::Read => Some(Kind::Read),
            Use::Write => Some(Kind::Write),
            Use::ReadWrite => Some(Kind::ReadWrite),
            Use::None | Use::Address => None,
        };
        if let Some(kind) = kind {
            let scale = ins.memory_index_scale().trailing_zeros() as u8;
            let operand = Operand {
                fs,
                base: machine_number(base),
                index: machine_number(index_register).map(|n| (n, scale)),
                disp: ins.memory_displacement64() as i64,
            };
            out.push(Access { index, kind, class: Class::Data, bytes: facts.bytes(), operand });
        }
    }
    Some(Found { accesses: Accesses::Simple, mentions, writes })
}

/// Appends the accesses of `ins`, whose `info` this is.
fn append(info: &InstructionInfo, ins: &Instruction, index: usize, out: &mut Vec<Access>) -> Accesses {
    if is_hint(ins.mnemonic()) {
        return Accesses::Simple;
    }
    let repeated = ins.is_string_instruction() && (ins.has_rep_prefix() || ins.has_repne_prefix());
    if repeated {
        return if may_stop(ins) { Accesses::ComplexAfter } else { Accesses::Complex };
    }
    let first = out.len();
    for m in info.used_memory() {
        let kind = match m.access() {
            OpAccess::Read | OpAccess::CondRead => Kind::Read,
            OpAccess::Write | OpAccess::CondWrite => Kind::Write,
            OpAccess::ReadWrite | OpAccess::ReadCondWrite => Kind::ReadWrite,
            OpAccess::None | OpAccess::NoMemAccess => continue,
        };
        let bytes = size_of_access(ins, m.memory_size());
        let vector_index = m.index().is_vector_register();
        let narrow = m.address_size() == CodeSize::Code32 || m.address_size() == CodeSize::Code16;
        if bytes == 0 || vector_index || narrow || is_masked(ins) {
            out.truncate(first);
            return Accesses::Complex;
        }
        let (base, disp) = match m.base() {
            Register::None | Register::RIP | Register::EIP => (None, m.displacement() as i64),
            r => (machine_number(r), m.displacement() as i64),
        };
        let index_register = machine_number(m.index()).map(|n| (n, m.scale().trailing_zeros() as u8));
        out.push(Access {
            index,
            kind,
            class: class_of(ins, m.base(), m.displacement() as i64, m.index()),
            bytes,
            operand: Operand { fs: m.segment() == Register::FS, base, index: index_register, disp },
        });
    }
    Accesses::Simple
}

/// May `ins`, repeated, stop before rcx is 0?
pub(crate) fn may_stop(ins: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(ins.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq)
}

/// Machine number of a general register, 8-bit forms included.
#[inline]
pub fn machine_number(r: Register) -> Option<u8> {
    let n = NUMBERS[r as usize % NUMBERS.len()];
    (n != NO_NUMBER).then_some(n)
}

/// The same as a bit; 0 for other registers.
#[inline]
fn bit(r: Register) -> u16 {
    machine_number(r).map_or(0, |n| 1 << n)
}

const NO_NUMBER: u8 = u8::MAX;

/// Machine numbers by register.
const NUMBERS: [u8; 256] = {
    let mut numbers = [NO_NUMBER; 256];
    let mut n = 0;
    while n < 16 {
        // (iced's order: al to bl, ah to bh, spl to r15b.)
        numbers[Register::AL as usize + n + if n < 4 { 0 } else { 4 }] = n as u8;
        numbers[Register::AX as usize + n] = n as u8;
        numbers[Register::EAX as usize + n] = n as u8;
        numbers[Register::RAX as usize + n] = n as u8;
        n += 1;
    }
    let mut n = 0;
    while n < 4 {
        numbers[Register::AH as usize + n] = n as u8;
        n += 1;
    }
    numbers
};

fn is_hint(m: Mnemonic) -> bool {
    matches!(m, Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb | Mnemonic::Cldemote)
}

/// Element by element under a mask?
pub(crate) fn is_masked(ins: &Instruction) -> bool {
    ins.has_op_mask()
        || matches!(
            ins.mnemonic(),
            Mnemonic::Vmaskmovps
                | Mnemonic::Vmaskmovpd
                | Mnemonic::Vpmaskmovd
                | Mnemonic::Vpmaskmovq
                | Mnemonic::Maskmovdqu
                | Mnemonic::Vmaskmovdqu
                | Mnemonic::Maskmovq
        )
}

/// Bytes, 0 where they are not fixed.
pub(crate) fn size_of_access(ins: &Instruction, m: MemorySize) -> u32 {
    let _ = ins;
    match m {
        MemorySize::Xsave | MemorySize::Xsave64 => 0,
        m => m.size() as u32,
    }
}

/// Implicit stack operands are told from explicit ones by the instruction, and by their base.
fn class_of(ins: &Instruction, base: Register, disp: i64, index: Register) -> Class {
    use Mnemonic::*;
    let on_stack = base == Register::RSP && index == Register::None;
    match ins.mnemonic() {
        Call if on_stack && disp == -8 && !(ins.memory_base() == Register::RSP && explicit(ins) == disp) => {
            Class::Control
        }
        Call => Class::Data,
        Ret if on_stack => Class::Control,
        Jmp if ins.is_ip_rel_memory_operand() => Class::Control,
        Pushfq | Popfq | Pushf | Popf | Enter => Class::Stack,
        Leave => Class::Stack,
        Push if on_stack && disp < 0 && !(ins.memory_base() == Register::RSP && explicit(ins) == disp) => {
            Class::Stack
        }
        Pop if on_stack && disp == 0 && !has_memory_operand(ins) => Class::Stack,
        Pop if on_stack && disp == 0 && ins.memory_base() != Register::RSP => Class::Stack,
        _ => Class::Data,
    }
}

fn has_memory_operand(ins: &Instruction) -> bool {
    (0..ins.op_count()).any(|i| ins.op_kind(i) == iced_x86::OpKind::Memory)
}

/// Displacement of the explicit memory operand.
fn explicit(ins: &Instruction) -> i64 {
    if has_memory_operand(ins) { ins.memory_displacement64() as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    type Found = Vec<(Kind, Class, u32, Operand)>;

    fn of(bytes: &[u8]) -> (Accesses, u16, Found) {
        let ins = Decoder::with_ip(64, bytes, 0x1000, DecoderOptions::NONE).decode();
        let mut out = Vec::new();
        let found = Finder::default().find(&Insn::plain(ins), 0, &mut out);
        (found.accesses, found.mentions, out.iter().map(|a| (a.kind, a.class, a.bytes, a.operand)).collect())
    }

    fn at(base: u8, disp: i64) -> Operand {
        Operand { fs: false, base: Some(base), index: None, disp }
    }

    #[test]
    fn stack_operands_are_told_from_data() {
        // push rbx
        assert_eq!(of(&[0x53]).2, [(Kind::Write, Class::Stack, 8, at(4, -8))]);
        // pop rbx
        assert_eq!(of(&[0x5b]).2, [(Kind::Read, Class::Stack, 8, at(4, 0))]);
        // push [rdi+8]
        let (_, used, a) = of(&[0xff, 0x77, 0x08]);
        assert_eq!(used, 1 << 7 | 1 << 4);
        assert!(a.contains(&(Kind::Write, Class::Stack, 8, at(4, -8))));
        assert!(a.contains(&(Kind::Read, Class::Data, 8, at(7, 8))));
        // call [rax]
        let a = of(&[0xff, 0x10]).2;
        assert!(a.contains(&(Kind::Write, Class::Control, 8, at(4, -8))));
        assert!(a.contains(&(Kind::Read, Class::Data, 8, at(0, 0))));
        // jmp [rip+0x10], as in a PLT
        let o = Operand { fs: false, base: None, index: None, disp: 0x1016 };
        assert_eq!(of(&[0xff, 0x25, 0x10, 0, 0, 0]).2, [(Kind::Read, Class::Control, 8, o)]);
        // ret
        assert_eq!(of(&[0xc3]).2, [(Kind::Read, Class::Control, 8, at(4, 0))]);
        // leave: the saved frame pointer, at rbp
        assert_eq!(of(&[0xc9]).2, [(Kind::Read, Class::Stack, 8, at(5, 0))]);
    }

    #[test]
    fn operands_have_their_size_and_kind() {
        // add [rax+rcx*4+0x10], edx
        let o = Operand { fs: false, base: Some(0), index: Some((1, 2)), disp: 0x10 };
        assert_eq!(of(&[0x01, 0x54, 0x88, 0x10]).2, [(Kind::ReadWrite, Class::Data, 4, o)]);
        // mov rax, fs:[0x28]
        let o = Operand { fs: true, base: None, index: None, disp: 0x28 };
        let a = of(&[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0]).2;
        assert_eq!(a, [(Kind::Read, Class::Data, 8, o)]);
        // movups xmm0, [rip+0x10]
        let o = Operand { fs: false, base: None, index: None, disp: 0x1017 };
        assert_eq!(of(&[0x0f, 0x10, 0x05, 0x10, 0, 0, 0]).2, [(Kind::Read, Class::Data, 16, o)]);
        // lea, nop [rax], prefetcht0 [rax], clflush [rax]
        for none in [&[0x48, 0x8d, 0x00][..], &[0x0f, 0x1f, 0x00], &[0x0f, 0x18, 0x08], &[0x0f, 0xae, 0x38]] {
            assert_eq!(of(none).2, []);
        }
    }

    #[test]
    fn machine_numbers_are_those_of_iced() {
        for r in Register::values() {
            let full = r.full_register();
            assert_eq!(machine_number(r), full.is_gpr64().then(|| full.number() as u8), "{r:?}");
        }
    }

    /// All encodings with one opcode byte, or two, and most combinations of prefixes.
    #[test]
    fn common_instructions_are_what_iced_says() {
        let prefixes: [&[u8]; 9] =
            [&[], &[0x66], &[0xf2], &[0xf3], &[0xf0], &[0x64], &[0x65], &[0x67], &[0x2e]];
        let rex: [&[u8]; 7] = [&[], &[0x40], &[0x41], &[0x42], &[0x44], &[0x48], &[0x4f]];
        let mut finder = Finder::default();
        let (mut want, mut got) = (Vec::new(), Vec::new());
        let (mut random, mut answered) = (1u64, 0);
        for (prefix, rex, two) in
            prefixes.iter().flat_map(|p| rex.iter().flat_map(move |r| [(p, r, false), (p, r, true)]))
        {
            for opcode in 0..=255u8 {
                for modrm in 0..=255u8 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let mut code = [prefix, *rex].concat();
                    code.extend(two.then_some(0x0f));
                    code.extend([opcode, modrm]);
                    code.extend((random >> 8).to_le_bytes());
                    code.extend([0; 4]);
                    let ins = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE).decode();
                    if ins.is_invalid() {
                        continue;
                    }
                    got.clear();
                    let Some(found) = find_common(&ins, Facts::of(&ins), 0, &mut got) else { continue };
                    answered += 1;
                    want.clear();
                    assert_eq!(found, finder.ask(&ins, 0, &mut want), "{code:x?} {:?}", ins.code());
                    assert_eq!(got, want, "{code:x?} {:?}", ins.code());
                }
            }
        }
        assert!(answered > 1_000_000, "{answered}");
    }

    #[test]
    fn what_needs_a_look_at_run_time() {
        assert_eq!(of(&[0xf3, 0xa4]).0, Accesses::Complex); // rep movsb
        assert_eq!(of(&[0xf3, 0xa6]).0, Accesses::ComplexAfter); // repe cmpsb
        assert_eq!(of(&[0xf2, 0xae]).0, Accesses::ComplexAfter); // repne scasb
        assert_eq!(of(&[0xa4]).0, Accesses::Simple); // movsb
        assert_eq!(of(&[0xa4]).2.len(), 2);
        assert_eq!(of(&[0x0f, 0xae, 0x20]).0, Accesses::Complex); // xsave [rax]
        assert_eq!(of(&[0x67, 0x8b, 0x00]).0, Accesses::Complex); // mov eax, [eax]
        assert_eq!(of(&[0xc4, 0xe2, 0x75, 0x8c, 0x00]).0, Accesses::Complex); // vpmaskmovd ymm0, ymm1, [rax]
        assert_eq!(of(&[0xc4, 0xe2, 0x75, 0x92, 0x04, 0x90]).0, Accesses::Complex); // vgatherdps
    }
}
