//! What one instruction adds to the counts, by the definitions of `wire::count`:
//!
//! ```text
//! block    jmp, jcc, jrcxz, loop, call, ret - taken or not; not syscall, not int
//! call     call, direct or indirect
//! load     one per memory operand that is read, whatever its width, implicit stack operands included
//! store    likewise for writes; read-modify-write is one of each; cmpxchg too
//! none     lea, nop, prefetch, cache-line hints
//! rep      loads and stores once per iteration, the instruction itself once
//! ```
//!
//! Never looks at machine state: conditional, masked and gathering operands count whatever their condition.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
};

/// What one execution (of a `rep` string: one iteration) adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// Memory reads.
    pub loads: u64,
    /// Memory writes.
    pub stores: u64,
    /// A control transfer.
    pub block: bool,
    /// A call.
    pub call: bool,
    /// A string instruction with a repeat prefix: traps once per iteration.
    pub rep: bool,
    /// `syscall`: the only instruction that may end the thread.
    pub syscall: bool,
    /// Length in bytes.
    pub length: u64,
}

/// Decodes the instruction at the start of `bytes`; `None` when there is none (it will raise SIGILL).
pub fn classify(bytes: &[u8], pc: u64) -> Option<Effect> {
    let instruction = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode();
    if instruction.is_invalid() {
        return None;
    }
    let code = instruction.code();
    let mut effect = Effect {
        rep: instruction.is_string_instruction()
            && (instruction.has_rep_prefix() || instruction.has_repne_prefix()),
        syscall: code == Code::Syscall,
        length: instruction.len() as u64,
        ..Effect::default()
    };
    // iced calls `syscall` a call: test it first.
    if !effect.syscall {
        match instruction.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall => (effect.block, effect.call) = (true, true),
            FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::ConditionalBranch
            | FlowControl::Return => effect.block = true,
            _ => {}
        }
    }
    if !is_hint(&instruction) {
        let mut factory = InstructionInfoFactory::new();
        for operand in factory.info(&instruction).used_memory() {
            let (load, store) = match operand.access() {
                OpAccess::Read | OpAccess::CondRead => (1, 0),
                OpAccess::Write | OpAccess::CondWrite => (0, 1),
                OpAccess::ReadWrite | OpAccess::ReadCondWrite => (1, 1),
                OpAccess::None | OpAccess::NoMemAccess => (0, 0),
            };
            effect.loads += load;
            effect.stores += store;
        }
    }
    Some(effect)
}

/// Instructions with a memory operand that neither read nor write what the program can see.
fn is_hint(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Lea
            | Mnemonic::Nop
            | Mnemonic::Reservednop
            | Mnemonic::Prefetch
            | Mnemonic::Prefetchw
            | Mnemonic::Prefetchwt1
            | Mnemonic::Prefetchnta
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Clflush
            | Mnemonic::Clflushopt
            | Mnemonic::Clwb
            | Mnemonic::Cldemote
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], loads: u64, stores: u64, block: bool, call: bool) {
        let e = classify(bytes, 0x1000).unwrap();
        assert_eq!((e.loads, e.stores, e.block, e.call), (loads, stores, block, call), "{bytes:02x?}");
    }

    #[test]
    fn one_of_each_kind() {
        check(&[0x90], 0, 0, false, false); // nop
        check(&[0x48, 0x8b, 0x07], 1, 0, false, false); // mov rax, [rdi]
        check(&[0x48, 0x89, 0x07], 0, 1, false, false); // mov [rdi], rax
        check(&[0x48, 0x01, 0x07], 1, 1, false, false); // add [rdi], rax
        check(&[0xf0, 0x48, 0x0f, 0xb1, 0x0f], 1, 1, false, false); // lock cmpxchg [rdi], rcx
        check(&[0x48, 0x87, 0x07], 1, 1, false, false); // xchg [rdi], rax
        check(&[0x48, 0x8d, 0x07], 0, 0, false, false); // lea rax, [rdi]
        check(&[0x0f, 0x1f, 0x07], 0, 0, false, false); // nop [rdi]
        check(&[0x0f, 0x18, 0x0f], 0, 0, false, false); // prefetcht0 [rdi]
        check(&[0x0f, 0xae, 0x3f], 0, 0, false, false); // clflush [rdi]
        check(&[0x50], 0, 1, false, false); // push rax
        check(&[0x58], 1, 0, false, false); // pop rax
        check(&[0xff, 0x37], 1, 1, false, false); // push [rdi]
        check(&[0xc9], 1, 0, false, false); // leave
        check(&[0xe8, 0, 0, 0, 0], 0, 1, true, true); // call
        check(&[0xff, 0x17], 1, 1, true, true); // call [rdi]
        check(&[0xc3], 1, 0, true, false); // ret
        check(&[0xc2, 8, 0], 1, 0, true, false); // ret 8
        check(&[0xeb, 0], 0, 0, true, false); // jmp
        check(&[0xff, 0x27], 1, 0, true, false); // jmp [rdi]
        check(&[0x74, 0], 0, 0, true, false); // je
        check(&[0xe2, 0], 0, 0, true, false); // loop
        check(&[0xe3, 0], 0, 0, true, false); // jrcxz
        check(&[0x0f, 0x05], 0, 0, false, false); // syscall
        check(&[0xa4], 1, 1, false, false); // movsb
        check(&[0xa6], 2, 0, false, false); // cmpsb
        check(&[0xd7], 1, 0, false, false); // xlat
        check(&[0x0f, 0xc7, 0x0f], 1, 1, false, false); // cmpxchg8b [rdi]
        check(&[0xf6, 0x07, 1], 1, 0, false, false); // test byte [rdi], 1
        check(&[0x0f, 0x44, 0x07], 1, 0, false, false); // cmove eax, [rdi]
        check(&[0xc4, 0xe2, 0x6d, 0x90, 0x04, 0x8f], 1, 0, false, false); // vpgatherdd ymm0, [rdi+ymm1*4], ymm2
        check(&[0xc4, 0xe2, 0x75, 0x8e, 0x07], 0, 1, false, false); // vpmaskmovd [rdi], ymm1, ymm0
    }

    #[test]
    fn repeated_strings_are_marked() {
        let e = classify(&[0xf3, 0xa4], 0).unwrap();
        assert_eq!((e.rep, e.loads, e.stores), (true, 1, 1));
        assert!(classify(&[0xf2, 0xae], 0).unwrap().rep);
        assert!(!classify(&[0xf3, 0xc3], 0).unwrap().rep); // repz ret
        assert!(!classify(&[0xf3, 0x90], 0).unwrap().rep); // pause
    }

    #[test]
    fn no_instruction() {
        assert_eq!(classify(&[0x06], 0), None);
        assert!(classify(&[0x0f, 0x05], 0).unwrap().syscall);
    }
}
