//! Handing the program back: from some instruction on it runs natively, as if the engine had never been there.
//!
//! For what the engine cannot run (a program that uses gs itself, far transfers) and for an exhausted code cache. The
//! program's stack and registers hold nothing of the engine's, so all it takes is to give handlers, masks, page
//! permissions and gs back and to jump. Only a process with one thread can be handed back: the others may
//! stand anywhere in the cache. The engine lock stays taken for ever, and nothing enters the engine again.

use crate::client::Client;
use crate::engine::Engine;
use crate::state::{ThreadState, off};
use core::arch::naked_asm;
use core::sync::atomic::AtomicU64;

/// The last two values, when gs is no longer ours.
static RAX: AtomicU64 = AtomicU64::new(0);
static PC: AtomicU64 = AtomicU64::new(0);

impl<C: Client> Engine<C> {
    /// Goes on natively at `pc` with the registers in `st`. Returns if that cannot be.
    pub(crate) fn hand_back(&mut self, st: &mut ThreadState, pc: u64) {
        if self.slabs.live() != 1 || st.signals.vfork_child {
            return;
        }
        self.client.handed_back();
        self.client.process_end();
        self.detach(st);
        st.resume = pc;
        // SAFETY: the state is complete, and this thread, the only one, is on the engine's stack.
        unsafe { leave_native() }
    }
}

/// Restores the program's registers, empties gs and jumps to `resume`.
///
/// # Safety
/// gs points at a complete state; this is the process's only thread.
#[unsafe(naked)]
unsafe extern "C" fn leave_native() -> ! {
    naked_asm!(
        "movaps xmm0, gs:[{xmm}+0]", "movaps xmm1, gs:[{xmm}+16]", "movaps xmm2, gs:[{xmm}+32]",
        "movaps xmm3, gs:[{xmm}+48]", "movaps xmm4, gs:[{xmm}+64]", "movaps xmm5, gs:[{xmm}+80]",
        "movaps xmm6, gs:[{xmm}+96]", "movaps xmm7, gs:[{xmm}+112]", "movaps xmm8, gs:[{xmm}+128]",
        "movaps xmm9, gs:[{xmm}+144]", "movaps xmm10, gs:[{xmm}+160]", "movaps xmm11, gs:[{xmm}+176]",
        "movaps xmm12, gs:[{xmm}+192]", "movaps xmm13, gs:[{xmm}+208]", "movaps xmm14, gs:[{xmm}+224]",
        "movaps xmm15, gs:[{xmm}+240]",
        "mov rax, gs:[{gpr}]",
        "mov [rip + {rax}], rax",
        "mov rax, gs:[{resume}]",
        "mov [rip + {pc}], rax",
        "push gs:[{rflags}]",
        "popfq",
        "mov rcx, gs:[{gpr}+1*8]", "mov rdx, gs:[{gpr}+2*8]", "mov rbx, gs:[{gpr}+3*8]",
        "mov rsp, gs:[{gpr}+4*8]", "mov rbp, gs:[{gpr}+5*8]", "mov rsi, gs:[{gpr}+6*8]",
        "mov rdi, gs:[{gpr}+7*8]", "mov r8, gs:[{gpr}+8*8]", "mov r9, gs:[{gpr}+9*8]",
        "mov r10, gs:[{gpr}+10*8]", "mov r11, gs:[{gpr}+11*8]", "mov r12, gs:[{gpr}+12*8]",
        "mov r13, gs:[{gpr}+13*8]", "mov r14, gs:[{gpr}+14*8]", "mov r15, gs:[{gpr}+15*8]",
        "mov eax, 0",
        "wrgsbase rax",
        "mov rax, [rip + {rax}]",
        "jmp [rip + {pc}]",
        gpr = const off::GPR, rflags = const off::RFLAGS, xmm = const off::XMM, resume = const off::RESUME,
        rax = sym RAX, pc = sym PC
    )
}
