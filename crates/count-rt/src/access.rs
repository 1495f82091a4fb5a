//! How many loads and stores one execution of an instruction makes, as `wire::count` defines them.

use alloc::vec;
use alloc::vec::Vec;
use iced_x86::{
    Code, Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
};

/// Answers, and those given before.
pub struct AccessCounter {
    factory: InstructionInfoFactory,
    /// By code and by whether an operand is in memory; [`UNKNOWN`] where not asked yet.
    known: Vec<u8>,
}

const UNKNOWN: u8 = u8::MAX;

impl Default for AccessCounter {
    fn default() -> Self {
        AccessCounter {
            factory: InstructionInfoFactory::new(),
            known: vec![UNKNOWN; Code::values().len() * 2],
        }
    }
}

impl AccessCounter {
    /// (loads, stores) of one execution; for a string instruction, of one iteration.
    pub fn count(&mut self, ins: &Instruction) -> (u16, u16) {
        let memory = (0..ins.op_count()).any(|i| ins.op_kind(i) == OpKind::Memory);
        let place = ins.code() as usize * 2 + usize::from(memory);
        let known = self.known[place];
        if known != UNKNOWN {
            return (u16::from(known >> 4), u16::from(known & 15));
        }
        let (loads, stores) = self.look(ins);
        // What `enter` does depends on its operand; everything else on the code alone.
        if loads < 15 && stores < 15 && ins.mnemonic() != Mnemonic::Enter {
            self.known[place] = (loads << 4 | stores) as u8;
        }
        (loads, stores)
    }

    fn look(&mut self, ins: &Instruction) -> (u16, u16) {
        if matches!(
            ins.mnemonic(),
            Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb | Mnemonic::Cldemote
        ) {
            return (0, 0);
        }
        let mut loads = 0;
        let mut stores = 0;
        for m in self.factory.info_options(ins, InstructionInfoOptions::NO_REGISTER_USAGE).used_memory() {
            match m.access() {
                OpAccess::Read | OpAccess::CondRead => loads += 1,
                OpAccess::Write | OpAccess::CondWrite => stores += 1,
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
                    loads += 1;
                    stores += 1;
                }
                OpAccess::None | OpAccess::NoMemAccess => {}
            }
        }
        (loads, stores)
    }
}
