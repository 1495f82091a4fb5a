//! Accesses that show only at run time: repeated string instructions, masked and gathered vectors, `xsave`, 32-bit
//! addresses.
//!
//! What can be known is worked out when the code is made ([`Complex`], leaked: code is never freed); the rest
//! happens in a clean call beside the instruction, from the program's registers. Vector and mask registers are read
//! from the processor: engine code leaves all but xmm0 to xmm15 alone, and those were saved.

use crate::access::{Kind, Operand, machine_number};
use crate::client::Client;
use crate::events::{Masked, Piece, Thread};
use crate::processor::Processor;
use iced_x86::{CodeSize, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};

/// Token of the clean calls that are the engine's own.
pub(crate) const TOKEN: u32 = u32::MAX;

/// Where a vector's mask is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mask {
    /// All elements.
    None,
    /// A mask register.
    K(u8),
    /// The top bits of a vector register's elements of this many bytes.
    Vector(u8, usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A string instruction with elements of this many bytes: what it does at rsi and at rdi.
    String { bytes: u64, source: Option<Kind>, destination: Option<Kind> },
    /// `count` elements of `bytes`, one after the other.
    Elements { bytes: u64, count: u64, mask: Mask, packed: bool },
    /// Elements at base + index * scale.
    Gather { bytes: u64, count: u64, mask: Mask, index: u8, index_bytes: usize, scale: u64 },
    /// The state components that edx:eax names.
    Xsave { compact: bool },
}

/// One such instruction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Complex {
    pc: u64,
    shape: Shape,
    kind: Kind,
    operand: Operand,
    narrow: bool,
    after: bool,
}

impl Complex {
    /// What is known of `ins` beforehand; `after`: its accesses are worked out behind it.
    pub(crate) fn new(
        factory: &mut InstructionInfoFactory,
        ins: &Instruction,
        after: bool,
    ) -> Option<Complex> {
        let info = factory.info(ins);
        let m = info.used_memory().iter().find(|m| !matches!(m.access(), OpAccess::NoMemAccess))?;
        let kind = match m.access() {
            OpAccess::Read | OpAccess::CondRead => Kind::Read,
            OpAccess::Write | OpAccess::CondWrite => Kind::Write,
            _ => Kind::ReadWrite,
        };
        let size = m.memory_size();
        let element = size.element_size().max(1);
        let operand = Operand {
            fs: m.segment() == Register::FS,
            base: machine_number(m.base()),
            index: machine_number(m.index()).map(|n| (n, m.scale().trailing_zeros() as u8)),
            disp: m.displacement() as i64,
        };
        let mask = if ins.has_op_mask() { Mask::K(ins.op_mask().number() as u8) } else { Mask::None };
        let shape = if ins.is_string_instruction() {
            string_shape(ins, ins.memory_size().size() as u64)?
        } else if m.index().is_vector_register() {
            // The other vector operand holds the data; in AVX2 a third one is the mask.
            let data = (0..ins.op_count()).map(|i| ins.op_register(i)).find(|r| r.is_vector_register());
            let index_bytes = if matches!(m.vsib_size(), 8) { 8 } else { 4 };
            let data_bytes = data.map_or(64, |r| r.size());
            let count = (data_bytes / element).min(m.index().size() / index_bytes);
            let mask = match mask {
                Mask::None => Mask::Vector(ins.op_register(ins.op_count() - 1).number() as u8, element),
                k => k,
            };
            Shape::Gather {
                bytes: element as u64,
                count: count as u64,
                mask,
                index: m.index().number() as u8,
                index_bytes,
                scale: m.scale().into(),
            }
        } else if size.size() == 0 {
            let compact = matches!(
                ins.mnemonic(),
                Mnemonic::Xsavec | Mnemonic::Xsavec64 | Mnemonic::Xsaves | Mnemonic::Xsaves64
            );
            Shape::Xsave { compact }
        } else {
            let packed = matches!(
                ins.mnemonic(),
                Mnemonic::Vpcompressb
                    | Mnemonic::Vpcompressw
                    | Mnemonic::Vpcompressd
                    | Mnemonic::Vpcompressq
                    | Mnemonic::Vcompressps
                    | Mnemonic::Vcompresspd
                    | Mnemonic::Vpexpandb
                    | Mnemonic::Vpexpandw
                    | Mnemonic::Vpexpandd
                    | Mnemonic::Vpexpandq
                    | Mnemonic::Vexpandps
                    | Mnemonic::Vexpandpd
            );
            let mask = match ins.mnemonic() {
                Mnemonic::Vmaskmovps | Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovd | Mnemonic::Vpmaskmovq => {
                    // `vmaskmov reg, mask, mem` and `vmaskmov mem, mask, reg`.
                    Mask::Vector(ins.op_register(1).number() as u8, vector_element(ins.mnemonic()))
                }
                Mnemonic::Maskmovdqu | Mnemonic::Vmaskmovdqu => {
                    let last = ins.op_count() - 1;
                    Mask::Vector(ins.op_register(last).number() as u8, 1)
                }
                _ => mask,
            };
            let element = match mask {
                Mask::Vector(_, n) => n,
                _ => element,
            };
            Shape::Elements {
                bytes: element as u64,
                count: (size.size() / element).max(1) as u64,
                mask,
                packed,
            }
        };
        let narrow = matches!(m.address_size(), CodeSize::Code32 | CodeSize::Code16);
        Some(Complex { pc: ins.ip(), shape, kind, operand, narrow, after })
    }

    /// The access, if a mask register alone decides what it is.
    pub(crate) fn masked(&self) -> Option<Masked> {
        match self.shape {
            Shape::Elements { bytes, count, mask: Mask::K(mask), packed: false } if !self.narrow => {
                Some(Masked { kind: self.kind, operand: self.operand, mask, bytes, count })
            }
            _ => None,
        }
    }

    /// Works the accesses out and tells the client.
    pub(crate) fn run<C: Client>(&self, t: &mut Thread<'_>) {
        let pc = self.pc;
        let narrow = |a: u64| if self.narrow { a & 0xffff_ffff } else { a };
        let piece = |t: &mut Thread<'_>, kind, addr, bytes| {
            if bytes != 0 {
                C::range(t, &Piece { kind, addr, bytes, pc });
            }
        };
        match self.shape {
            Shape::String { bytes, source, destination } => {
                const RCX: u8 = 1;
                const DIRECTION: u64 = 0x400;
                let left = narrow(t.gpr(RCX));
                let n = if self.after { narrow(t.state.string_count).wrapping_sub(left) } else { left };
                let backward = t.state.rflags & DIRECTION != 0;
                let total = n.saturating_mul(bytes);
                for (kind, r) in [(source, 6u8), (destination, 7)] {
                    let Some(kind) = kind else { continue };
                    let at = narrow(t.gpr(r));
                    let base = if r == 6 && self.operand.fs { fs_base() } else { 0 };
                    let low = match (self.after, backward) {
                        (false, false) => at,
                        (false, true) => at.wrapping_add(bytes).wrapping_sub(total),
                        (true, false) => at.wrapping_sub(total),
                        (true, true) => at.wrapping_add(bytes),
                    };
                    piece(t, kind, base.wrapping_add(low), total);
                }
            }
            Shape::Elements { bytes, count, mask, packed } => {
                let base = self.base(t);
                let bits = mask_bits(t, mask, count);
                if packed {
                    piece(t, self.kind, base, u64::from(bits.count_ones()) * bytes);
                    return;
                }
                // Runs of neighbours in one piece.
                let (mut left, mut at) = (bits, 0);
                while left != 0 {
                    let gap = left.trailing_zeros();
                    let run = (left >> gap).trailing_ones();
                    at += u64::from(gap);
                    piece(t, self.kind, base.wrapping_add(at * bytes), u64::from(run) * bytes);
                    at += u64::from(run);
                    left = left.checked_shr(gap + run).unwrap_or(0);
                }
            }
            Shape::Gather { bytes, count, mask, index, index_bytes, scale } => {
                let base = self.base(t);
                let bits = mask_bits(t, mask, count);
                let v = vector(t, index);
                for k in 0..count {
                    if bits >> k & 1 != 0 {
                        let at = k as usize * index_bytes;
                        let i = if index_bytes == 8 {
                            u64::from_le_bytes(v[at..at + 8].try_into().unwrap_or_default())
                        } else {
                            i32::from_le_bytes(v[at..at + 4].try_into().unwrap_or_default()) as u64
                        };
                        let addr = narrow(base.wrapping_add(i.wrapping_mul(scale)));
                        piece(t, self.kind, addr, bytes);
                    }
                }
            }
            Shape::Xsave { compact } => {
                let base = self.base(t);
                let wanted = t.gpr(0) & 0xffff_ffff | t.gpr(2) << 32;
                const LEGACY: u64 = 512 + 64;
                piece(t, self.kind, base, LEGACY);
                let mut offset = LEGACY;
                for (i, c) in Processor::get().components.iter().enumerate() {
                    if wanted >> i & 1 == 0 || c.bytes == 0 {
                        continue;
                    }
                    if compact {
                        if c.aligned {
                            offset = offset.next_multiple_of(64);
                        }
                        piece(t, self.kind, base.wrapping_add(offset), c.bytes);
                        offset += c.bytes;
                    } else {
                        piece(t, self.kind, base.wrapping_add(c.offset), c.bytes);
                    }
                }
            }
        }
    }

    fn base(&self, t: &Thread<'_>) -> u64 {
        let o = &self.operand;
        let mut a = o.disp as u64;
        if let Some(b) = o.base {
            a = a.wrapping_add(t.gpr(b));
        }
        if let Some((i, s)) = o.index {
            a = a.wrapping_add(t.gpr(i) << s);
        }
        if self.narrow {
            a &= 0xffff_ffff;
        }
        if o.fs { a.wrapping_add(fs_base()) } else { a }
    }
}

fn string_shape(ins: &Instruction, bytes: u64) -> Option<Shape> {
    use Mnemonic::*;
    let (source, destination) = match ins.mnemonic() {
        Movsb | Movsw | Movsd | Movsq => (Some(Kind::Read), Some(Kind::Write)),
        Stosb | Stosw | Stosd | Stosq | Insb | Insw | Insd => (None, Some(Kind::Write)),
        Lodsb | Lodsw | Lodsd | Lodsq | Outsb | Outsw | Outsd => (Some(Kind::Read), None),
        Cmpsb | Cmpsw | Cmpsd | Cmpsq => (Some(Kind::Read), Some(Kind::Read)),
        Scasb | Scasw | Scasd | Scasq => (None, Some(Kind::Read)),
        _ => return None,
    };
    Some(Shape::String { bytes, source, destination })
}

fn vector_element(m: Mnemonic) -> usize {
    if matches!(m, Mnemonic::Vmaskmovpd | Mnemonic::Vpmaskmovq) { 8 } else { 4 }
}

fn fs_base() -> u64 {
    let v;
    // SAFETY: FSGSBASE was checked by the launcher.
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) v, options(nomem, nostack)) };
    v
}

fn mask_bits(t: &Thread<'_>, mask: Mask, count: u64) -> u64 {
    let all = if count >= 64 { u64::MAX } else { (1 << count) - 1 };
    match mask {
        Mask::None => all,
        Mask::K(k) => mask_register(k) & all,
        Mask::Vector(r, bytes) => {
            let v = vector(t, r);
            (0..count as usize)
                .filter(|k| v.get((k + 1) * bytes - 1).is_some_and(|top| top & 0x80 != 0))
                .fold(0, |m, k| m | 1 << k)
        }
    }
}

/// The program's value of a vector register; what the processor does not have is zero.
fn vector(t: &Thread<'_>, n: u8) -> [u8; 64] {
    let mut v = [0u8; 64];
    let to = v.as_mut_ptr();
    macro_rules! stores { ($op:literal, $reg:literal: $($n:literal)*) => { match n {
        $($n => {
            // SAFETY: writes one register to the buffer; the program's instruction that led here names a register of
            // this width, so the processor and the kernel support it.
            unsafe { core::arch::asm!(concat!($op, " [{}], ", $reg, stringify!($n)), in(reg) to, options(nostack)) }
        })*
        _ => {}
    } } }
    let processor = Processor::get();
    if processor.avx512 {
        stores!("vmovups", "zmm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    } else if processor.avx {
        stores!("vmovups", "ymm": 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
    if let Some(low) = t.state.xmm.0.get(usize::from(n)) {
        v[..8].copy_from_slice(&low[0].to_le_bytes());
        v[8..16].copy_from_slice(&low[1].to_le_bytes());
    }
    v
}

fn mask_register(n: u8) -> u64 {
    let v: u64;
    macro_rules! reads { ($($n:literal)*) => { match n {
        $($n => {
            // SAFETY: reads a mask register; the program's instruction that led here uses one.
            unsafe { core::arch::asm!(concat!("kmovw {0:e}, k", stringify!($n)), out(reg) v, options(nomem, nostack)) }
        })*
        _ => v = u64::MAX,
    } } }
    macro_rules! reads_wide { ($($n:literal)*) => { match n {
        $($n => {
            // SAFETY: as above, with AVX512BW.
            unsafe { core::arch::asm!(concat!("kmovq {0}, k", stringify!($n)), out(reg) v, options(nomem, nostack)) }
        })*
        _ => v = u64::MAX,
    } } }
    if Processor::get().wide_masks {
        reads_wide!(0 1 2 3 4 5 6 7);
    } else {
        reads!(0 1 2 3 4 5 6 7);
    }
    v
}
