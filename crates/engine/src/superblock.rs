//! Decoding: from a program address to a straight run of instructions with side exits.
//!
//! A superblock follows the fall-through of a few forward conditional jumps and the targets of direct jumps.
//! It ends at calls, returns, indirect jumps, system calls, backward conditional jumps (they are loops: both
//! ways out are equally good), undecodable bytes, and at a length limit. A short loop is there several times: what is
//! added to each passage (counts, above all: one addition waits for the one before) is added once for all of them.
//! Decoding is all that happens here; nothing is emitted and nothing but the program's code is read.

use crate::facts::Facts;
use crate::region::Regions;
use alloc::vec::Vec;
use core::ops::Range;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// Longest superblock, in instructions. Longer ones gain nothing and make faults costlier to unwind.
pub const INSNS_MAX: usize = 64;
/// Conditional jumps that one superblock falls through.
pub const SIDE_EXITS_MAX: usize = 4;
/// Iterations of a short loop in one superblock.
pub const ITERATIONS_MAX: usize = 4;
/// Instructions of a short loop.
pub const LOOP_MAX: usize = 12;

/// What is done with an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Copied as it is.
    Plain,
    /// Copied with its RIP-relative displacement adjusted; the displacement starts at this byte.
    RipRelative(u8),
    /// A conditional jump whose taken side leaves.
    SideExit,
    /// A conditional jump to the superblock's start, which follows once more: it leaves where it is not taken.
    Again,
    /// A direct jump whose target follows: nothing is emitted.
    InlinedJump,
    /// The last one, described by [`End`].
    End,
}

/// One decoded instruction.
#[derive(Clone, Copy)]
pub struct Insn {
    /// As iced sees it.
    pub ins: Instruction,
    /// What is done with it.
    pub kind: Kind,
    /// The general registers that it writes, as bits; 0 where no client has events in superblocks.
    pub writes: u16,
    /// What its code says about it.
    pub facts: Facts,
}

impl Insn {
    /// That is only copied.
    pub fn plain(ins: Instruction) -> Insn {
        Insn { ins, kind: Kind::Plain, writes: 0, facts: Facts::of(&ins) }
    }

    /// Its address.
    pub fn pc(&self) -> u64 {
        self.ins.ip()
    }

    /// The address after it.
    pub fn next(&self) -> u64 {
        self.ins.next_ip()
    }

    /// Where it leaves to, if that is on the side.
    pub fn side_exit(&self) -> Option<u64> {
        match self.kind {
            Kind::SideExit => Some(self.ins.near_branch_target()),
            Kind::Again => Some(self.next()),
            _ => None,
        }
    }
}

/// How a superblock ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Goes on at a known address. `has_insn` is false when only the length limit ended it.
    Jump {
        /// Where.
        target: u64,
    },
    /// The last instruction is a conditional jump.
    Cond {
        /// If taken.
        target: u64,
        /// If not.
        next: u64,
    },
    /// A direct call.
    Call {
        /// The callee.
        target: u64,
        /// The return address.
        next: u64,
    },
    /// An indirect call.
    CallIndirect {
        /// The return address.
        next: u64,
    },
    /// An indirect jump.
    JumpIndirect,
    /// A return that pops this many extra bytes.
    Return {
        /// Bytes.
        pop: u16,
    },
    /// A system call.
    Syscall {
        /// The address after it.
        next: u64,
    },
    /// The bytes at this address are no instruction: executing them must raise SIGILL there.
    Invalid {
        /// Where.
        pc: u64,
    },
    /// The program may not execute this address: SIGSEGV there.
    NotExecutable {
        /// Where.
        pc: u64,
        /// The first byte that cannot be fetched.
        at: u64,
    },
    /// An instruction that the engine cannot run.
    Unsupported {
        /// Where.
        pc: u64,
    },
}

/// A decoded superblock.
pub struct Superblock {
    /// First address.
    pub pc: u64,
    /// The instructions.
    pub insns: Vec<Insn>,
    /// What comes after.
    pub end: End,
    /// The first of its instructions that jumps to its start, if there is one so far down.
    back: usize,
    /// Does it follow a jump anywhere?
    jumps: bool,
}

impl Superblock {
    /// An empty one, to be filled by [`Superblock::decode`] again and again.
    pub fn new() -> Superblock {
        Superblock {
            pc: 0,
            insns: Vec::with_capacity(INSNS_MAX),
            end: End::JumpIndirect,
            back: usize::MAX,
            jumps: false,
        }
    }

    /// Is it a loop by itself: does one of its jumps lead to its start?
    pub fn jumps_to_itself(&self) -> bool {
        self.back < self.insns.len()
    }

    /// The bytes that it is made of, if they lie in one piece.
    pub fn straight(&self) -> Option<Range<u64>> {
        let last = self.insns.last().filter(|_| !self.jumps)?;
        Some(self.pc..last.next())
    }

    /// Decodes at `pc`.
    pub fn decode(&mut self, regions: &Regions, pc: u64, insns_max: usize) {
        self.pc = pc;
        self.insns.clear();
        (self.back, self.jumps) = (usize::MAX, false);
        let mut at = pc;
        let mut side_exits = 0;
        let mut iterations = 1;
        'run: loop {
            // SAFETY: the caller holds the engine lock by holding `regions`; the bytes are dropped with the decoder.
            let code = unsafe { regions.code(at, INSNS_MAX * 15) };
            if code.is_empty() {
                self.end = if at == pc { End::NotExecutable { pc, at } } else { End::Jump { target: at } };
                return;
            }
            // (Used where it was made: it is large, and `with_ip` would copy it.)
            let mut d = Decoder::try_with_ip(64, code, at, DecoderOptions::NONE);
            let d = d.as_mut().expect("64 bits are a mode");
            loop {
                if self.insns.len() >= insns_max {
                    self.end = End::Jump { target: d.ip() };
                    return;
                }
                let here = d.ip();
                let n = self.insns.len();
                // (Decoded in its place: what was just written field by field takes long to be copied.)
                self.insns.push(Insn {
                    ins: Instruction::default(),
                    kind: Kind::Plain,
                    writes: 0,
                    facts: Facts::NONE,
                });
                let Some(insn) = self.insns.last_mut() else { return };
                d.decode_out(&mut insn.ins);
                let Insn { ins, kind, facts, .. } = insn;
                *facts = Facts::of(ins);
                let goes_back = ins.op0_kind() == OpKind::NearBranch64 && ins.near_branch_target() == pc;
                if goes_back {
                    self.back = self.back.min(n);
                }
                if ins.is_invalid() {
                    let out_of_bytes =
                        d.last_error() == iced_x86::DecoderError::NoMoreBytes && code.len() < 15;
                    self.insns.truncate(n);
                    self.end = match (n == 0, out_of_bytes) {
                        (false, _) => End::Jump { target: here },
                        (true, true) => End::NotExecutable { pc: here, at: at + code.len() as u64 },
                        (true, false) => End::Invalid { pc: here },
                    };
                    return;
                }
                match classify(ins, *facts) {
                    Class::Plain => *kind = plain_kind(d, ins),
                    Class::Jump => {
                        let target = ins.near_branch_target();
                        *kind = Kind::InlinedJump;
                        let seen = self.insns.iter().any(|i| i.pc() == target);
                        if seen || n + 1 >= insns_max {
                            self.insns[n].kind = Kind::End;
                            self.end = End::Jump { target };
                            return;
                        }
                        at = target;
                        self.jumps = true;
                        continue 'run;
                    }
                    Class::Cond => {
                        let target = ins.near_branch_target();
                        let body = (n + 1) / iterations;
                        if target == pc
                            && iterations < ITERATIONS_MAX
                            && side_exits == 0
                            && body <= LOOP_MAX
                            && body * (iterations + 1) <= insns_max
                            && ins.is_jcc_short_or_near()
                        {
                            iterations += 1;
                            *kind = Kind::Again;
                            at = pc;
                            self.jumps = true;
                            continue 'run;
                        }
                        side_exits += 1;
                        if target <= here || side_exits > SIDE_EXITS_MAX || n + 1 >= insns_max {
                            *kind = Kind::End;
                            self.end = End::Cond { target, next: ins.next_ip() };
                            return;
                        }
                        *kind = Kind::SideExit;
                    }
                    Class::End(end) => {
                        *kind = Kind::End;
                        self.end = end;
                        if matches!(end, End::Unsupported { .. }) && n != 0 {
                            self.insns.truncate(n);
                            self.end = End::Jump { target: here };
                        }
                        return;
                    }
                }
            }
        }
    }
}

/// A placeholder that owns no memory, for taking another one out of its place.
impl Default for Superblock {
    fn default() -> Self {
        Superblock { pc: 0, insns: Vec::new(), end: End::JumpIndirect, back: usize::MAX, jumps: false }
    }
}

enum Class {
    Plain,
    Jump,
    Cond,
    End(End),
}

#[inline]
fn classify(ins: &Instruction, facts: Facts) -> Class {
    if facts.goes_on() && !facts.is_system() && ins.segment_prefix() != Register::GS {
        return Class::Plain;
    }
    classify_rare(ins)
}

/// All but the plain ones.
fn classify_rare(ins: &Instruction) -> Class {
    let pc = ins.ip();
    let next = ins.next_ip();
    // iced calls `syscall` a call: look at the code before the flow.
    if ins.code() == Code::Syscall {
        return Class::End(End::Syscall { next });
    }
    if Facts::of(ins).is_system() || ins.memory_segment() == Register::GS && has_memory(ins) {
        return Class::End(End::Unsupported { pc });
    }
    match ins.flow_control() {
        FlowControl::UnconditionalBranch if near_relative(ins) => Class::Jump,
        FlowControl::ConditionalBranch if near_relative(ins) => Class::Cond,
        FlowControl::Call if near_relative(ins) => {
            Class::End(End::Call { target: ins.near_branch_target(), next })
        }
        FlowControl::IndirectCall if ins.code() == Code::Call_rm64 => Class::End(End::CallIndirect { next }),
        FlowControl::IndirectBranch if ins.code() == Code::Jmp_rm64 => Class::End(End::JumpIndirect),
        FlowControl::Return => match ins.code() {
            Code::Retnq => Class::End(End::Return { pop: 0 }),
            Code::Retnq_imm16 => Class::End(End::Return { pop: ins.immediate16() }),
            _ => Class::End(End::Unsupported { pc }),
        },
        FlowControl::Next | FlowControl::Interrupt | FlowControl::Exception => Class::Plain,
        FlowControl::Call => Class::Plain, // vmcall and friends fault as natively
        _ => Class::End(End::Unsupported { pc }),
    }
}

fn has_memory(ins: &Instruction) -> bool {
    (0..ins.op_count()).any(|i| {
        !matches!(
            ins.op_kind(i),
            OpKind::Register
                | OpKind::NearBranch64
                | OpKind::NearBranch32
                | OpKind::NearBranch16
                | OpKind::Immediate8
                | OpKind::Immediate8_2nd
                | OpKind::Immediate16
                | OpKind::Immediate32
                | OpKind::Immediate64
                | OpKind::Immediate8to16
                | OpKind::Immediate8to32
                | OpKind::Immediate8to64
                | OpKind::Immediate32to64
        )
    })
}

fn near_relative(ins: &Instruction) -> bool {
    ins.op_count() > 0 && ins.op_kind(0) == OpKind::NearBranch64
}

fn plain_kind(d: &Decoder<'_>, ins: &Instruction) -> Kind {
    if ins.is_ip_rel_memory_operand() {
        let off = d.get_constant_offsets(ins);
        Kind::RipRelative(off.displacement_offset() as u8)
    } else {
        Kind::Plain
    }
}
