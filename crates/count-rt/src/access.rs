//! How many loads and stores one execution of an instruction makes, as `wire::count` defines them.

use iced_x86::{Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess};

/// (loads, stores) of one execution; for a string instruction, of one iteration.
pub fn accesses(factory: &mut InstructionInfoFactory, ins: &Instruction) -> (u16, u16) {
    if matches!(
        ins.mnemonic(),
        Mnemonic::Clflush | Mnemonic::Clflushopt | Mnemonic::Clwb | Mnemonic::Cldemote
    ) {
        return (0, 0);
    }
    let mut loads = 0;
    let mut stores = 0;
    for m in factory.info_options(ins, InstructionInfoOptions::NO_REGISTER_USAGE).used_memory() {
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
