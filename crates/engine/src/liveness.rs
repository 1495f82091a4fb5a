//! Which arithmetic flags matter where.
//!
//! Instrumentation may change flags only where the program will not read them. Inside a superblock the answer
//! is exact; at its exits a short look at the code ahead decides, and when that ends without an answer the
//! flags count as live. At returns the ABI makes them dead; `conservative` switches that off, for hand-written
//! assembly that returns values in flags.

use crate::region::Regions;
use crate::superblock::{End, Kind, Superblock};
use alloc::vec::Vec;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, RflagsBits};

/// The six arithmetic flags.
pub const ALL: u32 =
    RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

/// Instructions looked at beyond an exit.
const AHEAD_MAX: usize = 12;
/// Direct jumps followed on the way.
const JUMPS_MAX: usize = 3;

/// The flags that an instruction is sure to overwrite.
pub fn killed(ins: &Instruction) -> u32 {
    // iced reports these as modifying flags; with a zero count they leave them alone.
    match ins.mnemonic() {
        Mnemonic::Shl
        | Mnemonic::Shr
        | Mnemonic::Sar
        | Mnemonic::Sal
        | Mnemonic::Rol
        | Mnemonic::Ror
        | Mnemonic::Rcl
        | Mnemonic::Rcr
        | Mnemonic::Shld
        | Mnemonic::Shrd => {
            let last = ins.op_count() - 1;
            let sure = ins.op_kind(last) == OpKind::Immediate8 && ins.immediate8() & 31 != 0;
            if !sure {
                return 0;
            }
        }
        Mnemonic::Cmpsb
        | Mnemonic::Cmpsw
        | Mnemonic::Cmpsd
        | Mnemonic::Cmpsq
        | Mnemonic::Scasb
        | Mnemonic::Scasw
        | Mnemonic::Scasd
        | Mnemonic::Scasq
            if ins.has_rep_prefix() || ins.has_repne_prefix() =>
        {
            return 0;
        }
        _ => {}
    }
    ins.rflags_modified() & ALL
}

/// The flags that an instruction reads.
pub fn read(ins: &Instruction) -> u32 {
    ins.rflags_read() & ALL
}

/// The flags that may be read before they are written, starting at `pc`.
pub fn ahead(regions: &Regions, pc: u64, conservative: bool) -> u32 {
    let mut open = ALL;
    let mut live = 0;
    let mut left = AHEAD_MAX;
    let mut jumps = JUMPS_MAX;
    let mut at = pc;
    'run: loop {
        // SAFETY: the holder of `regions` holds the engine lock; the bytes are dropped with the decoder.
        let code = unsafe { regions.code(at, AHEAD_MAX * 15) };
        let mut d = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
        while d.can_decode() && left > 0 {
            left -= 1;
            let mut ins = Instruction::default();
            d.decode_out(&mut ins);
            if ins.is_invalid() {
                return live | open;
            }
            live |= read(&ins) & open;
            open &= !killed(&ins);
            if open == 0 {
                return live;
            }
            match ins.flow_control() {
                FlowControl::Next | FlowControl::ConditionalBranch => {
                    if ins.flow_control() == FlowControl::ConditionalBranch
                        && ins.op_kind(0) == OpKind::NearBranch64
                    {
                        // Both ways: look at the taken side with a short budget of its own.
                        if jumps == 0 {
                            return live | open;
                        }
                        live |= ahead_straight(regions, ins.near_branch_target(), open, conservative);
                        if live & open == open {
                            return live;
                        }
                    }
                }
                FlowControl::UnconditionalBranch if jumps > 0 && ins.op_kind(0) == OpKind::NearBranch64 => {
                    jumps -= 1;
                    at = ins.near_branch_target();
                    continue 'run;
                }
                FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
                    if !conservative && ins.mnemonic() != Mnemonic::Syscall =>
                {
                    return live;
                }
                _ => return live | open,
            }
        }
        return live | open;
    }
}

/// A shorter look: no branches.
fn ahead_straight(regions: &Regions, pc: u64, mut open: u32, conservative: bool) -> u32 {
    let mut live = 0;
    // SAFETY: as in `ahead`.
    let code = unsafe { regions.code(pc, 6 * 15) };
    let mut d = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
    for _ in 0..6 {
        if !d.can_decode() {
            break;
        }
        let mut ins = Instruction::default();
        d.decode_out(&mut ins);
        if ins.is_invalid() {
            break;
        }
        live |= read(&ins) & open;
        open &= !killed(&ins);
        if open == 0 {
            return live;
        }
        match ins.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return
                if !conservative && ins.mnemonic() != Mnemonic::Syscall =>
            {
                return live;
            }
            _ => break,
        }
    }
    live | open
}

/// Fills `before` with the flags live before each instruction of `sb`, and returns those live at its side exits
/// (one per [`Kind::SideExit`], in order).
pub fn superblock(
    sb: &Superblock,
    regions: &Regions,
    conservative: bool,
    before: &mut Vec<u32>,
    at_exits: &mut Vec<u32>,
) {
    before.clear();
    before.resize(sb.insns.len() + 1, 0);
    at_exits.clear();
    let mut live = match sb.end {
        End::Jump { target } => ahead(regions, target, conservative),
        End::Cond { target, next } => {
            ahead(regions, target, conservative) | ahead(regions, next, conservative)
        }
        End::Call { target, .. } => ahead(regions, target, conservative),
        End::Syscall { next } => ahead(regions, next, conservative),
        End::Return { .. } if !conservative => 0,
        _ => ALL,
    };
    before[sb.insns.len()] = live;
    for (k, insn) in sb.insns.iter().enumerate().rev() {
        if insn.kind == Kind::SideExit {
            let out = ahead(regions, insn.ins.near_branch_target(), conservative);
            at_exits.push(out);
            live |= out;
        }
        live = live & !killed(&insn.ins) | read(&insn.ins);
        before[k] = live;
    }
    at_exits.reverse();
}
