//! Accesses of a superblock that need no code: those whose outcome is known when it is translated.
//!
//! - *Repeated* ones. After an access, the cell's stamp is at least that of the top activation, and a superblock lies in
//!   one activation. A further access to the same bytes changes nothing: a read ever, a write if the one before was a
//!   write too (where marks matter). Locked instructions and fences end this: another thread may have written since;
//!   so, where marks matter, does the next iteration of a loop, which may wait for just that.
//! - *The binder's entry.* A lazily bound PLT entry pushes a number and a pointer and jumps to the dynamic linker
//!   (`push [rip+a]; jmp [rip+b]`): once per function, and nobody's input.
//! - *Saved registers.* What a routine saves on entry and restores before it returns is its caller's, and control
//!   like the return address beside it: pushes of callee-saved registers at a routine's start, pops of them, `leave`.

use alloc::vec::Vec;
use engine::access::{Access, Class, Kind, Operand, machine_number};
use engine::emit::reg;
use engine::facts::Facts;
use engine::superblock::{Insn, Kind as InsnKind, Superblock};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// rbx, rbp, r12 to r15.
const CALLEE_SAVED: u16 = 1 << 3 | 1 << 5 | 0xf << 12;

/// What is known at a point of a superblock.
pub struct Filter {
    /// Whether writes need a write before them to be repeated.
    marks: bool,
    /// Whether a routine begins with the superblock.
    at_entry: bool,
    /// Instructions that are accounted for.
    next: usize,
    /// Registers that they wrote.
    written: u16,
    /// How far the stack pointer has moved.
    sp_moved: i64,
    seen: Vec<Seen>,
    /// At least the registers that their operands are made of, as bits.
    seen_registers: u16,
    /// At least one bit for each kind of operand among them.
    seen_kinds: u64,
    /// Of which operand the index of the cell is held in a register, by base and displacement (from the stack pointer
    /// that the superblock began with).
    held: Option<(Option<u8>, i64)>,
    /// The last instruction with an access that was asked about.
    asked: Option<usize>,
}

/// An access, by the displacements of its first byte and of the one behind it.
struct Seen {
    what: What,
    from: i64,
    to: i64,
    write: bool,
}

/// An operand but for its displacement.
#[derive(Clone, Copy, PartialEq, Eq)]
struct What(u32);

impl What {
    fn of(o: &Operand) -> What {
        const NONE: u8 = 0x80;
        let (index, scale) = o.index.unwrap_or((NONE, 0));
        What(u32::from_le_bytes([o.base.unwrap_or(NONE), index, scale, o.fs.into()]))
    }

    /// One of 64 bits, by a hash.
    fn bit(self) -> u64 {
        1 << (self.0.wrapping_mul(0x9e37_79b9) >> 26)
    }

    /// The registers that are part of it, as bits.
    fn registers(self) -> u16 {
        let [base, index, ..] = self.0.to_le_bytes();
        let bit = |r: u8| 1u16.checked_shl(r.into()).unwrap_or(0);
        bit(base) | bit(index)
    }
}

impl Filter {
    /// `marks`: the metric looks at who wrote a cell.
    pub fn new(marks: bool) -> Filter {
        Filter {
            marks,
            at_entry: false,
            next: 0,
            written: 0,
            sp_moved: 0,
            seen: Vec::new(),
            seen_registers: 0,
            seen_kinds: 0,
            held: None,
            asked: None,
        }
    }

    /// A superblock is about to be translated; `at_entry`: a routine begins with it.
    pub fn begin(&mut self, at_entry: bool) {
        self.at_entry = at_entry;
        self.next = 0;
        self.written = 0;
        self.sp_moved = 0;
        self.forget_seen();
        self.held = None;
        self.asked = None;
    }

    fn forget_seen(&mut self) {
        self.seen.clear();
        self.seen_registers = 0;
        self.seen_kinds = 0;
    }

    /// How far behind the cell whose index is held an access lies, if it has the same base: to be asked right after
    /// [`Filter::needed`].
    pub fn from_held(&self, a: &Access) -> Option<i32> {
        let (base, disp) = self.held?;
        let (o, at) = (&a.operand, self.displacement(a));
        let same = base == o.base && !o.fs && o.index.is_none();
        same.then_some(at - disp).and_then(|offset| i32::try_from(offset).ok())
    }

    /// The index that is held now is of the cell `before` bytes before this access.
    pub fn hold(&mut self, a: &Access, before: Option<i32>) {
        self.held = before.map(|n| (a.operand.base, self.displacement(a) - i64::from(n)));
    }

    fn displacement(&self, a: &Access) -> i64 {
        let moved = if a.operand.base == Some(reg::RSP) { self.sp_moved } else { 0 };
        a.operand.disp + moved
    }

    /// What is left of an access to be noted; accesses come in program order.
    pub fn needed(&mut self, sb: &Superblock, a: &Access) -> Option<Kind> {
        while self.next < a.index.min(sb.insns.len()) {
            let Insn { ins, kind, writes, facts } = &sb.insns[self.next];
            // What the engine finds out at run time takes a register.
            if self.held.is_some() && self.asked != Some(self.next) && may_access(ins, *facts) {
                self.held = None;
            }
            self.pass(ins, *facts, *writes);
            if self.marks && *kind == InsnKind::Again {
                self.forget_seen();
            }
            self.next += 1;
        }
        self.asked = Some(a.index);
        if a.class == Class::Stack && self.is_saved_register(&sb.insns[a.index].ins) || is_binder(sb, a.index)
        {
            return None;
        }
        let (what, from) = (What::of(&a.operand), self.displacement(a));
        let to = from.wrapping_add(a.bytes.into());
        let (mut read, mut written) = (false, false);
        if self.seen_kinds & what.bit() != 0 {
            for seen in self.seen.iter().filter(|s| s.what == what && s.from <= from && to <= s.to) {
                read = true;
                written |= seen.write;
            }
        }
        let kind = match a.kind {
            Kind::Read if read => return None,
            Kind::Write | Kind::ReadWrite if written || read && !self.marks => return None,
            Kind::ReadWrite if read => Kind::Write,
            kind => kind,
        };
        self.seen_registers |= what.registers();
        self.seen_kinds |= what.bit();
        self.seen.push(Seen { what, from, to, write: a.kind != Kind::Read });
        Some(kind)
    }

    fn is_saved_register(&self, ins: &Instruction) -> bool {
        let saved = |r: Register| machine_number(r).is_some_and(|n| CALLEE_SAVED >> n & 1 != 0);
        match ins.mnemonic() {
            Mnemonic::Push if ins.op_kind(0) == OpKind::Register => {
                let r = ins.op_register(0);
                let untouched = machine_number(r).is_some_and(|n| self.written >> n & 1 == 0);
                self.at_entry && untouched && saved(r)
            }
            Mnemonic::Pop => ins.op_kind(0) == OpKind::Register && saved(ins.op_register(0)),
            Mnemonic::Leave => true,
            _ => false,
        }
    }

    /// Accounts for an instruction that writes these registers.
    fn pass(&mut self, ins: &Instruction, facts: Facts, mut written: u16) {
        if ins.has_lock_prefix() || facts.orders() {
            self.forget_seen();
        }
        let rsp = 1u16 << reg::RSP;
        if written & rsp != 0
            && let Some(moved) = moves_stack(ins)
        {
            self.sp_moved += moved;
            written &= !rsp;
        }
        if written & self.seen_registers != 0 {
            self.seen.retain(|seen| seen.what.registers() & written == 0);
            self.seen_registers &= !written;
        }
        if self.held.is_some_and(|(base, _)| base.is_some_and(|r| written >> r & 1 != 0)) {
            self.held = None;
        }
        self.written |= written;
    }
}

/// May the instruction access memory?
fn may_access(ins: &Instruction, facts: Facts) -> bool {
    // (An operand that is not there is no memory either, and a fifth one never is.)
    let kinds = [ins.op0_kind(), ins.op1_kind(), ins.op2_kind(), ins.op3_kind()];
    facts.is_string() || kinds.contains(&OpKind::Memory) && !facts.is_address()
}

/// Is instruction `k` one of the two by which a PLT enters the dynamic linker?
fn is_binder(sb: &Superblock, k: usize) -> bool {
    let [.., push, jump] = &sb.insns[..] else { return false };
    let through_table = |ins: &Instruction, mnemonic| {
        ins.mnemonic() == mnemonic && ins.op_kind(0) == OpKind::Memory && ins.is_ip_rel_memory_operand()
    };
    k + 2 >= sb.insns.len()
        && through_table(&push.ins, Mnemonic::Push)
        && through_table(&jump.ins, Mnemonic::Jmp)
}

/// How far an instruction moves the stack pointer, if that is known.
fn moves_stack(ins: &Instruction) -> Option<i64> {
    let on_rsp =
        ins.op_count() > 0 && ins.op_kind(0) == OpKind::Register && ins.op_register(0) == Register::RSP;
    match ins.mnemonic() {
        Mnemonic::Push | Mnemonic::Pop if !on_rsp => Some(ins.stack_pointer_increment().into()),
        Mnemonic::Add | Mnemonic::Sub if on_rsp && ins.op_kind(1) != OpKind::Register => {
            let is_immediate = matches!(ins.op_kind(1), OpKind::Immediate8to64 | OpKind::Immediate32to64);
            let by = is_immediate.then(|| ins.immediate(1) as i64)?;
            Some(if ins.mnemonic() == Mnemonic::Add { by } else { -by })
        }
        Mnemonic::Lea
            if on_rsp && ins.memory_base() == Register::RSP && ins.memory_index() == Register::None =>
        {
            Some(ins.memory_displacement64() as i64)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::access::Finder;
    use engine::superblock::End;
    use iced_x86::{Decoder, DecoderOptions};

    /// What is left of the accesses of some code.
    fn left(code: &[u8], marks: bool, at_entry: bool) -> Vec<Option<Kind>> {
        let mut sb = Superblock::new();
        sb.end = End::JumpIndirect;
        for ins in Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).iter() {
            sb.insns.push(Insn::plain(ins));
        }
        let mut finder = Finder::default();
        let mut accesses = Vec::new();
        for (k, insn) in sb.insns.iter_mut().enumerate() {
            insn.writes = finder.find(insn, k, &mut accesses).writes;
        }
        let mut filter = Filter::new(marks);
        filter.begin(at_entry);
        accesses.iter().map(|a| filter.needed(&sb, a)).collect()
    }

    #[test]
    fn repeated_accesses_are_left_out() {
        // mov rax,[rdi+8]; mov ecx,[rdi+12]; mov [rdi+8],rax; mov [rdi+8],rax
        let code = [0x48, 0x8b, 0x47, 8, 0x8b, 0x4f, 12, 0x48, 0x89, 0x47, 8, 0x48, 0x89, 0x47, 8];
        assert_eq!(left(&code, true, false), [Some(Kind::Read), None, Some(Kind::Write), None]);
        assert_eq!(left(&code, false, false), [Some(Kind::Read), None, None, None]);
        // mov rax,[rdi]; add rdi,8; mov rax,[rdi]
        let code = [0x48, 0x8b, 0x07, 0x48, 0x83, 0xc7, 8, 0x48, 0x8b, 0x07];
        assert_eq!(left(&code, true, false), [Some(Kind::Read); 2]);
        // mov rax,[rdi]; lock inc dword [rsi]; mov rax,[rdi]
        let code = [0x48, 0x8b, 0x07, 0xf0, 0xff, 0x06, 0x48, 0x8b, 0x07];
        assert_eq!(left(&code, true, false), [Some(Kind::Read), Some(Kind::ReadWrite), Some(Kind::Read)]);
    }

    #[test]
    fn the_stack_pointer_is_followed() {
        // mov [rsp+8],rax; push rcx; mov rdx,[rsp+16]; sub rsp,32; mov rdx,[rsp+48]
        let code = [
            0x48, 0x89, 0x44, 0x24, 8, 0x51, 0x48, 0x8b, 0x54, 0x24, 16, 0x48, 0x83, 0xec, 32, 0x48, 0x8b,
            0x54, 0x24, 48,
        ];
        assert_eq!(left(&code, true, false), [Some(Kind::Write), Some(Kind::Write), None, None]);
    }

    #[test]
    fn the_entry_of_the_binder_is_left_out() {
        // push 3; push [rip+1]; jmp [rip+2]
        let code = [0x6a, 3, 0xff, 0x35, 1, 0, 0, 0, 0xff, 0x25, 2, 0, 0, 0];
        assert_eq!(left(&code, true, false), [Some(Kind::Write), None, None, None]);
        // jmp [rip+2] alone is any PLT entry
        assert_eq!(left(&code[8..], true, false), [Some(Kind::Read)]);
    }

    #[test]
    fn saved_registers_are_control() {
        // push rbx; xor ebp,ebp; push rbp; pop r12; pop rcx
        let code = [0x53, 0x31, 0xed, 0x55, 0x41, 0x5c, 0x59];
        let push = Some(Kind::Write);
        assert_eq!(left(&code, true, true), [None, push, None, Some(Kind::Read)]);
        assert_eq!(left(&code, true, false), [push, push, None, None]);
    }
}
