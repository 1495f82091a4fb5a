//! What each executed instruction did to memory and to the call stack, from the registers before it.
//!
//! Shares no code with the engine: operands and sizes are iced's, addresses computed by iced from ptrace's registers,
//! string instructions seen one iteration at a time, because that is how the processor steps through them.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register,
};
use nix::libc::user_regs_struct;

/// Direction of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A load.
    Read,
    /// A store.
    Write,
    /// Both.
    ReadWrite,
}

/// One access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
    /// Direction.
    pub kind: Kind,
    /// First byte.
    pub address: u64,
    /// Length.
    pub bytes: u64,
}

/// A change of the call stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// A call of this address.
    Call(u64),
    /// A return to this address.
    Return(u64),
}

/// One executed instruction; a repeated string instruction is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where.
    pub pc: u64,
    /// What it accessed, sorted.
    pub accesses: Vec<Access>,
    /// What it did to the call stack.
    pub edge: Option<Edge>,
    /// A string instruction with a repeat prefix.
    pub repeated: bool,
    /// An indirect jump through memory at a fixed address, and where it went: what a PLT is made of.
    pub forwards: Option<u64>,
}

/// The step that the instruction in `bytes` takes from `before` to `after`.
pub fn step(bytes: &[u8], before: &user_regs_struct, after: &user_regs_struct) -> Step {
    let ins = Decoder::with_ip(64, bytes, before.rip, DecoderOptions::NONE).decode();
    let repeated = ins.is_string_instruction() && (ins.has_rep_prefix() || ins.has_repne_prefix());
    let mut accesses = Vec::new();
    let iterated = !repeated || before.rcx != after.rcx;
    if iterated && !hint(&ins) {
        for m in InstructionInfoFactory::new().info(&ins).used_memory() {
            let kind = match m.access() {
                OpAccess::Read | OpAccess::CondRead => Kind::Read,
                OpAccess::Write | OpAccess::CondWrite => Kind::Write,
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => Kind::ReadWrite,
                OpAccess::None | OpAccess::NoMemAccess => continue,
            };
            let address = m.virtual_address(0, |r, _, _| value(r, before));
            if let Some(address) = address {
                // (With a repeat prefix iced gives no size: it depends on the count. Here it is one iteration.)
                let size = if repeated { ins.memory_size() } else { m.memory_size() };
                accesses.push(Access { kind, address, bytes: size.size() as u64 });
            }
        }
    }
    accesses.sort_unstable();
    let edge = match ins.flow_control() {
        _ if ins.mnemonic() == Mnemonic::Syscall => None,
        FlowControl::Call | FlowControl::IndirectCall => Some(Edge::Call(after.rip)),
        FlowControl::Return => Some(Edge::Return(after.rip)),
        _ => None,
    };
    let forwards = (ins.flow_control() == FlowControl::IndirectBranch && ins.is_ip_rel_memory_operand())
        .then_some(after.rip);
    Step { pc: before.rip, accesses, edge, repeated, forwards }
}

impl Step {
    /// Another iteration of the same string instruction: accesses of a kind and place grow into ranges.
    pub fn grow(&mut self, more: &Step) {
        for a in &more.accesses {
            let neighbour = self.accesses.iter_mut().find(|o| {
                o.kind == a.kind && (o.address + o.bytes == a.address || a.address + a.bytes == o.address)
            });
            match neighbour {
                Some(o) => {
                    o.address = o.address.min(a.address);
                    o.bytes += a.bytes;
                }
                None => self.accesses.push(*a),
            }
        }
        self.accesses.sort_unstable();
    }
}

fn hint(ins: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(ins.mnemonic(), Clflush | Clflushopt | Clwb | Cldemote)
}

fn value(r: Register, regs: &user_regs_struct) -> Option<u64> {
    Some(match r {
        Register::FS => regs.fs_base,
        Register::GS => regs.gs_base,
        Register::CS | Register::DS | Register::ES | Register::SS => 0,
        _ => {
            let full = match r.full_register() {
                Register::RAX => regs.rax,
                Register::RCX => regs.rcx,
                Register::RDX => regs.rdx,
                Register::RBX => regs.rbx,
                Register::RSP => regs.rsp,
                Register::RBP => regs.rbp,
                Register::RSI => regs.rsi,
                Register::RDI => regs.rdi,
                Register::R8 => regs.r8,
                Register::R9 => regs.r9,
                Register::R10 => regs.r10,
                Register::R11 => regs.r11,
                Register::R12 => regs.r12,
                Register::R13 => regs.r13,
                Register::R14 => regs.r14,
                Register::R15 => regs.r15,
                _ => return None,
            };
            if r.size() == 4 { full & 0xffff_ffff } else { full }
        }
    })
}
