//! Memory operands for the assembler: general forms, for what clients emit.
//!
//! [`Mem`] is an operand as the processor knows it, but for RIP-relative ones. Encodings are the shortest. Nothing
//! here knows what the code is for.

use crate::emit::{Asm, Reg};

/// A memory operand: `[base + index * 2^scale + disp]`, relative to the gs base or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mem {
    /// Relative to the gs base?
    pub gs: bool,
    /// Base register.
    pub base: Option<Reg>,
    /// Index register, never rsp, and the binary logarithm of its scale.
    pub index: Option<(Reg, u8)>,
    /// Displacement.
    pub disp: i32,
}

impl Mem {
    /// `gs:[disp]`
    pub const fn gs(disp: i32) -> Mem {
        Mem { gs: true, base: None, index: None, disp }
    }

    /// `gs:[index * 2^scale + disp]`
    pub const fn gs_index(index: Reg, scale: u8, disp: i32) -> Mem {
        Mem { gs: true, base: None, index: Some((index, scale)), disp }
    }

    /// `[base + disp]`
    pub const fn base(base: Reg, disp: i32) -> Mem {
        Mem { gs: false, base: Some(base), index: None, disp }
    }

    /// `[base + index * 2^scale + disp]`
    pub const fn index(base: Reg, index: Reg, scale: u8, disp: i32) -> Mem {
        Mem { gs: false, base: Some(base), index: Some((index, scale)), disp }
    }
}

/// Operand size of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// 8 bits.
    B,
    /// 16 bits.
    W,
    /// 32 bits.
    D,
    /// 64 bits.
    Q,
}

impl Size {
    /// The size of `bytes` = 1, 2, 4 or 8.
    pub const fn of(bytes: u32) -> Size {
        match bytes {
            1 => Size::B,
            2 => Size::W,
            4 => Size::D,
            _ => Size::Q,
        }
    }
}

/// Two-operand arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Alu {
    /// `add`
    Add = 0,
    /// `or`
    Or = 1,
    /// `adc`
    Adc = 2,
    /// `sbb`
    Sbb = 3,
    /// `and`
    And = 4,
    /// `sub`
    Sub = 5,
    /// `xor`
    Xor = 6,
    /// `cmp`
    Cmp = 7,
}

/// Bytes of an instruction, at most 8, the first one lowest.
#[derive(Clone, Copy)]
struct Head {
    bytes: u64,
    bits: u32,
}

impl Head {
    #[inline(always)]
    fn of(bytes: &[u8]) -> Head {
        let mut head = Head { bytes: 0, bits: 0 };
        bytes.iter().for_each(|byte| head.push(*byte));
        head
    }

    #[inline(always)]
    fn push(&mut self, byte: u8) {
        self.append(Head { bytes: byte.into(), bits: 8 });
    }

    #[inline(always)]
    fn append(&mut self, more: Head) {
        self.bytes |= more.bytes << self.bits;
        self.bits += more.bits;
    }
}

/// A [`Mem`] in one register. The encoder is given this: most operands are made where they are used, and what is written
/// to memory byte by byte and read at once makes the processor wait.
#[derive(Clone, Copy)]
struct Packed(u64);

/// In place of a register: none.
const NO_REGISTER: u8 = 0x80;

impl Packed {
    #[inline(always)]
    fn new(m: &Mem) -> Packed {
        let base = m.base.unwrap_or(NO_REGISTER);
        let (index, scale) = m.index.unwrap_or((NO_REGISTER, 0));
        let registers = u64::from(base) << 32 | u64::from(index) << 40 | u64::from(scale) << 48;
        Packed(u64::from(m.disp as u32) | registers | u64::from(m.gs) << 56)
    }

    fn disp(self) -> i32 {
        self.0 as i32
    }

    fn base(self) -> u8 {
        (self.0 >> 32) as u8
    }

    fn index(self) -> u8 {
        (self.0 >> 40) as u8
    }

    fn scale(self) -> u8 {
        (self.0 >> 48) as u8
    }

    fn gs(self) -> bool {
        self.0 >> 56 != 0
    }

    /// The REX bits for the index and the base: X and B.
    fn rex(self) -> (u8, u8) {
        (self.index() >> 3 & 1, self.base() >> 3 & 1)
    }
}

impl Asm {
    /// An instruction with ModRM, SIB and displacement of `m`, and `reg` in the middle field.
    #[inline(always)]
    fn with_operand(&mut self, mut head: Head, reg: Reg, m: Packed) {
        let mid = (reg & 7) << 3;
        let (base, index, disp) = (m.base(), m.index(), m.disp());
        let inner = if index == NO_REGISTER { 0x20 } else { m.scale() << 6 | (index & 7) << 3 };
        let disp_bytes;
        if base == NO_REGISTER {
            head.push(mid | 4);
            head.push(inner | 5);
            disp_bytes = 4;
        } else {
            let mode;
            (mode, disp_bytes) = match i8::try_from(disp) {
                Ok(0) if base & 7 != 5 => (0, 0),
                Ok(_) => (0x40, 1),
                Err(_) => (0x80, 4),
            };
            if index != NO_REGISTER || base & 7 == 4 {
                head.push(mode | mid | 4);
                head.push(inner | base & 7);
            } else {
                head.push(mode | mid | base & 7);
            }
        }
        self.two_words(head.bytes, head.bits as usize / 8, disp as u32, disp_bytes);
    }

    /// A legacy-encoded instruction with a register and a memory operand.
    #[inline(always)]
    pub fn op_mem(&mut self, size: Size, opcode: &[u8], reg: Reg, m: &Mem) {
        self.legacy(size, Head::of(opcode), reg, Packed::new(m));
    }

    #[inline(never)]
    fn legacy(&mut self, size: Size, opcode: Head, reg: Reg, m: Packed) {
        let mut head = Head::of(&[]);
        if m.gs() {
            head.push(0x65);
        }
        if size == Size::W {
            head.push(0x66);
        }
        let (x, b) = m.rex();
        let rex = u8::from(size == Size::Q) << 3 | reg >> 3 << 2 | x << 1 | b;
        // Without REX, byte registers 4 to 7 would be ah to bh.
        if rex != 0 || size == Size::B && reg >= 4 {
            head.push(0x40 | rex);
        }
        head.append(opcode);
        self.with_operand(head, reg, m);
    }

    /// A legacy-encoded instruction with two registers.
    #[inline(always)]
    pub fn op_reg(&mut self, size: Size, opcode: &[u8], reg: Reg, rm: Reg) {
        self.legacy_reg(size, Head::of(opcode), reg, rm);
    }

    #[inline(never)]
    fn legacy_reg(&mut self, size: Size, opcode: Head, reg: Reg, rm: Reg) {
        let mut head = Head::of(&[]);
        if size == Size::W {
            head.push(0x66);
        }
        let rex = u8::from(size == Size::Q) << 3 | (reg >> 3) << 2 | rm >> 3;
        if rex != 0 || size == Size::B && (reg >= 4 || rm >= 4) {
            head.push(0x40 | rex);
        }
        head.append(opcode);
        head.push(0xc0 | (reg & 7) << 3 | (rm & 7));
        self.two_words(head.bytes, head.bits as usize / 8, 0, 0);
    }

    /// `mov reg, [m]`; narrow loads are zero-extended.
    #[inline(always)]
    pub fn load(&mut self, size: Size, reg: Reg, m: &Mem) {
        match size {
            Size::B => self.op_mem(Size::D, &[0x0f, 0xb6], reg, m),
            Size::W => self.op_mem(Size::D, &[0x0f, 0xb7], reg, m),
            _ => self.op_mem(size, &[0x8b], reg, m),
        }
    }

    /// `mov [m], reg`
    #[inline(always)]
    pub fn store(&mut self, size: Size, m: &Mem, reg: Reg) {
        self.op_mem(size, &[if size == Size::B { 0x88 } else { 0x89 }], reg, m);
    }

    /// `mov [m], imm`, sign-extended to 64 bits for [`Size::Q`].
    #[inline(always)]
    pub fn store_imm(&mut self, size: Size, m: &Mem, imm: i32) {
        self.op_mem(size, &[if size == Size::B { 0xc6 } else { 0xc7 }], 0, m);
        match size {
            Size::B => self.bytes(&[imm as u8]),
            Size::W => self.bytes(&(imm as u16).to_le_bytes()),
            _ => self.d32(imm),
        }
    }

    /// `lea reg, [m]`; a gs base is not added.
    #[inline(always)]
    pub fn lea(&mut self, reg: Reg, m: &Mem) {
        self.op_mem(Size::Q, &[0x8d], reg, &Mem { gs: false, ..*m });
    }

    /// `op reg, [m]`
    #[inline(always)]
    pub fn alu_load(&mut self, op: Alu, size: Size, reg: Reg, m: &Mem) {
        self.op_mem(size, &[(op as u8) << 3 | if size == Size::B { 2 } else { 3 }], reg, m);
    }

    /// `op [m], reg`
    #[inline(always)]
    pub fn alu_store(&mut self, op: Alu, size: Size, m: &Mem, reg: Reg) {
        self.op_mem(size, &[(op as u8) << 3 | u8::from(size != Size::B)], reg, m);
    }

    /// `op a, b`
    pub fn alu(&mut self, op: Alu, size: Size, a: Reg, b: Reg) {
        self.op_reg(size, &[(op as u8) << 3 | u8::from(size != Size::B)], b, a);
    }

    /// `op [m], imm`
    #[inline(always)]
    pub fn alu_store_imm(&mut self, op: Alu, size: Size, m: &Mem, imm: i32) {
        match (size, i8::try_from(imm)) {
            (Size::B, _) => {
                self.op_mem(size, &[0x80], op as u8, m);
                self.bytes(&[imm as u8]);
            }
            (_, Ok(short)) => {
                self.op_mem(size, &[0x83], op as u8, m);
                self.bytes(&[short as u8]);
            }
            _ => {
                self.op_mem(size, &[0x81], op as u8, m);
                if size == Size::W { self.bytes(&(imm as u16).to_le_bytes()) } else { self.d32(imm) }
            }
        }
    }

    /// `op a, imm`
    pub fn alu_imm(&mut self, op: Alu, size: Size, a: Reg, imm: i32) {
        match i8::try_from(imm) {
            Ok(short) => {
                self.op_reg(size, &[0x83], op as u8, a);
                self.bytes(&[short as u8]);
            }
            Err(_) => {
                self.op_reg(size, &[0x81], op as u8, a);
                self.d32(imm);
            }
        }
    }

    /// A VEX-encoded instruction with a memory operand. `map` is 2 (0F38) or 3 (0F3A), `pp` the implied prefix.
    #[inline(always)]
    fn vex_mem(&mut self, map: u8, pp: u8, opcode: u8, reg: Reg, v: Reg, m: &Mem) {
        self.vex(map, u32::from(pp) | u32::from(opcode) << 8, reg, v, Packed::new(m));
    }

    #[inline(never)]
    fn vex(&mut self, map: u8, pp_opcode: u32, reg: Reg, v: Reg, m: Packed) {
        let mut head = Head::of(&[]);
        if m.gs() {
            head.push(0x65);
        }
        let (x, b) = m.rex();
        head.push(0xc4);
        head.push((1 - (reg >> 3)) << 7 | (1 - x) << 6 | (1 - b) << 5 | map);
        head.push(0x80 | (!v & 15) << 3 | pp_opcode as u8);
        head.push((pp_opcode >> 8) as u8);
        self.with_operand(head, reg, m);
    }

    fn vex_reg(&mut self, map: u8, pp: u8, opcode: u8, reg: Reg, v: Reg, rm: Reg) {
        self.bytes(&[0xc4, (1 - (reg >> 3)) << 7 | 0x40 | (1 - (rm >> 3)) << 5 | map]);
        self.bytes(&[0x80 | (!v & 15) << 3 | pp, opcode, 0xc0 | (reg & 7) << 3 | (rm & 7)]);
    }

    /// `pext dst, src, [mask]`; leaves flags alone.
    pub fn pext(&mut self, dst: Reg, src: Reg, mask: &Mem) {
        self.vex_mem(2, 2, 0xf5, dst, src, mask);
    }

    /// `pext dst, src, mask`; leaves flags alone.
    pub fn pext_reg(&mut self, dst: Reg, src: Reg, mask: Reg) {
        self.vex_reg(2, 2, 0xf5, dst, src, mask);
    }

    /// `rorx dst, src, n`; leaves flags alone.
    pub fn rorx(&mut self, dst: Reg, src: Reg, n: u8) {
        self.vex_reg(3, 3, 0xf0, dst, 0, src);
        self.bytes(&[n]);
    }

    /// `kmov dst, k<mask>`: the low 16, 32 or 64 bits of a mask register; leaves flags alone.
    pub fn kmov(&mut self, dst: Reg, mask: u8, bits: u32) {
        let (wide, prefix) = match bits {
            16 => (0, 0),
            32 => (0, 3),
            _ => (0x80, 3),
        };
        self.bytes(&[0xc4, (1 - (dst >> 3)) << 7 | 0x61, wide | 0x78 | prefix, 0x93]);
        self.bytes(&[0xc0 | (dst & 7) << 3 | (mask & 7)]);
    }

    /// `shlx dst, src, count`; leaves flags alone.
    pub fn shlx(&mut self, dst: Reg, src: Reg, count: Reg) {
        self.vex_reg(2, 1, 0xf7, dst, count, src);
    }

    /// `shrx dst, src, count`; leaves flags alone.
    pub fn shrx(&mut self, dst: Reg, src: Reg, count: Reg) {
        self.vex_reg(2, 3, 0xf7, dst, count, src);
    }

    /// `rdfsbase reg`
    pub fn rdfsbase(&mut self, reg: Reg) {
        self.bytes(&[0xf3, 0x48 | reg >> 3, 0x0f, 0xae, 0xc0 | (reg & 7)]);
    }

    /// `jmp reg`
    pub fn jmp_reg(&mut self, reg: Reg) {
        self.op_reg(Size::D, &[0xff], 4, reg);
    }

    /// Saves the arithmetic flags in ah and al; [`Asm::unlahf`] brings them back.
    pub fn lahf(&mut self) {
        self.bytes(&[0x9f, 0x0f, 0x90, 0xc0]); // lahf; seto al
    }

    /// The flags that [`Asm::lahf`] saved.
    pub fn unlahf(&mut self) {
        self.bytes(&[0x04, 0x7f, 0x9e]); // add al, 0x7f; sahf
    }

    /// A jump whose target comes later: its 32-bit displacement is at the returned address.
    pub fn jcc_later(&mut self, cond: u8) -> u64 {
        let here = self.here();
        self.jcc(cond, here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

    fn text(f: impl Fn(&mut Asm)) -> String {
        let mut buf = [0u8; 4096];
        let at = buf.as_mut_ptr() as u64;
        // SAFETY: the buffer is ours and outlives the stream.
        let mut a = unsafe { Asm::new(at, at + 4096) };
        f(&mut a);
        let n = (a.here() - at) as usize;
        let mut d = Decoder::with_ip(64, &buf[..n], 0x1000, DecoderOptions::NONE);
        let mut out = String::new();
        while d.can_decode() {
            let i = d.decode();
            assert!(!i.is_invalid());
            if !out.is_empty() {
                out.push_str("; ");
            }
            IntelFormatter::new().format(&i, &mut out);
        }
        out
    }

    #[test]
    fn every_base_index_and_displacement_is_what_it_says() {
        for base in 0..16u8 {
            for index in (0..16u8).filter(|i| *i != 4) {
                for disp in [0, 8, -128, 0x1234, -0x1234_5678] {
                    let m = Mem::index(base, index, 3, disp);
                    let got = text(|a| a.load(Size::Q, 9, &m));
                    let names = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
                    let name = |r: u8| if r < 8 { names[r as usize].to_owned() } else { format!("r{r}") };
                    let plain = got.replace(' ', "");
                    assert!(plain.starts_with(&format!("movr9,[{}+{}*8", name(base), name(index))), "{got}");
                    let d = text(|a| a.load(Size::Q, 9, &Mem::base(base, disp)));
                    assert!(d.contains(&name(base)), "{d}");
                }
            }
        }
    }

    #[test]
    fn the_forms_that_clients_use() {
        type Case<'a> = (&'a str, &'a dyn Fn(&mut Asm));
        let cases: &[Case<'_>] = &[
            ("cmp gs:[r11*4+840h],r10d", &|a| {
                a.alu_store(Alu::Cmp, Size::D, &Mem::gs_index(11, 2, 0x840), 10)
            }),
            ("pext r11,r11,gs:[40h]", &|a| a.pext(11, 11, &Mem::gs(0x40))),
            ("rorx r10,rbx,20h", &|a| a.rorx(10, 3, 32)),
            ("shrx rcx,r9,rdx", &|a| a.shrx(1, 9, 2)),
            ("shlx r10,rbx,r9", &|a| a.shlx(10, 3, 9)),
            ("kmovw r10d,k1", &|a| a.kmov(10, 1, 16)),
            ("kmovd esi,k7", &|a| a.kmov(6, 7, 32)),
            ("kmovq r9,k2", &|a| a.kmov(9, 2, 64)),
            ("rdfsbase r9", &|a| a.rdfsbase(9)),
            ("inc qword ptr gs:[10h]", &|a| a.op_mem(Size::Q, &[0xff], 0, &Mem::gs(0x10))),
            ("mov byte ptr [rsi+1],7", &|a| a.store_imm(Size::B, &Mem::base(6, 1), 7)),
            ("mov [rsp],sil", &|a| a.store(Size::B, &Mem::base(4, 0), 6)),
            ("mov [r13],r8w", &|a| a.store(Size::W, &Mem::base(13, 0), 8)),
            ("movzx r8d,byte ptr [r12+2]", &|a| a.load(Size::B, 8, &Mem::base(12, 2))),
            ("add qword ptr [r11+18h],2", &|a| a.alu_store_imm(Alu::Add, Size::Q, &Mem::base(11, 0x18), 2)),
            ("cmp r10,r11", &|a| a.alu(Alu::Cmp, Size::Q, 10, 11)),
            ("cmp r10,gs:[8]", &|a| a.alu_load(Alu::Cmp, Size::Q, 10, &Mem::gs(8))),
            ("lea r11,[rsp-8]", &|a| a.lea(11, &Mem::base(4, -8))),
            ("jmp r10", &|a| a.jmp_reg(10)),
            ("sub r9d,12345678h", &|a| a.alu_imm(Alu::Sub, Size::D, 9, 0x1234_5678)),
        ];
        for (want, f) in cases {
            assert_eq!(&text(f), want);
        }
    }
}
