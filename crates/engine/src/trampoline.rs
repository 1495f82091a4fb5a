//! The assembly between the cache and the engine's Rust code.
//!
//! An `enter_*` routine is reached by a jump from the cache with every register holding the program's value
//! (or with r11 and rcx spilled, or with registers lent: each says which). It saves the program's registers, flags and the low
//! vector registers, calls the engine on its own stack and leaves to `resume`. The stack of the program is
//! never touched. Upper halves of vector registers, mask registers and x87 state stay in place: engine code
//! is compiled for SSE2 alone.

use crate::state::{ThreadState, off};
use core::arch::naked_asm;

/// Notes the target in r11, gives r11 and rcx back to the program, and enters for the reason given.
macro_rules! enter_with_target {
    ($reason:literal) => {
        naked_asm!(
            "mov gs:[{target}], r11",
            "mov rcx, gs:[{s}]",
            "mov r11, gs:[{t}]",
            "mov gs:[{rax}], rax",
            concat!("mov eax, ", $reason),
            "jmp {common}",
            target = const off::TARGET,
            s = const off::SPILL_S,
            t = const off::SPILL_T,
            rax = const off::gpr(0),
            common = sym common
        )
    };
}

/// A direct exit.
#[unsafe(naked)]
pub extern "C" fn enter_exit() {
    naked_asm!("mov gs:[{rax}], rax", "mov eax, 0", "jmp {common}", rax = const off::gpr(0), common = sym common)
}

/// The same from code that has r9, r10 and r11 lent (`shared_return.rs`).
macro_rules! enter_with_target_lent {
    ($reason:literal) => {
        naked_asm!(
            "mov gs:[{target}], r11",
            "mov r9, gs:[{r9}]",
            "mov r10, gs:[{r10}]",
            "mov r11, gs:[{r11}]",
            "mov gs:[{rax}], rax",
            concat!("mov eax, ", $reason),
            "jmp {common}",
            target = const off::TARGET,
            r9 = const off::borrow(9),
            r10 = const off::borrow(10),
            r11 = const off::borrow(11),
            rax = const off::gpr(0),
            common = sym common
        )
    };
}

/// As [`enter_indirect`], with registers lent.
#[unsafe(naked)]
pub extern "C" fn enter_indirect_lent() {
    enter_with_target_lent!("1")
}

/// As [`enter_call`], with registers lent.
#[unsafe(naked)]
pub extern "C" fn enter_call_lent() {
    enter_with_target_lent!("8")
}

/// As [`enter_cached`], with registers lent.
#[unsafe(naked)]
pub extern "C" fn enter_cached_lent() {
    enter_with_target_lent!("7")
}

/// An indirect branch: target in r11, program's r11 and rcx in the spill slots.
#[unsafe(naked)]
pub extern "C" fn enter_indirect() {
    enter_with_target!("1")
}

/// An indirect call, where calls are told from jumps: as [`enter_indirect`].
#[unsafe(naked)]
pub extern "C" fn enter_call() {
    enter_with_target!("8")
}

/// Goes on at the program address in r11, registers as for [`enter_indirect`]: after signals.
#[unsafe(naked)]
pub extern "C" fn enter_resume() {
    enter_with_target!("9")
}

/// A system call that is looked at.
#[unsafe(naked)]
pub extern "C" fn enter_syscall() {
    naked_asm!("mov gs:[{rax}], rax", "mov eax, 2", "jmp {common}", rax = const off::gpr(0), common = sym common)
}

/// A client's call.
#[unsafe(naked)]
pub extern "C" fn enter_client() {
    naked_asm!("mov gs:[{rax}], rax", "mov eax, 3", "jmp {common}", rax = const off::gpr(0), common = sym common)
}

/// A cached indirect branch: target in r11, the program's r11 spilled.
#[unsafe(naked)]
pub extern "C" fn enter_cached() {
    naked_asm!(
        "mov gs:[{target}], r11",
        "mov r11, gs:[{t}]",
        "mov gs:[{rax}], rax",
        "mov eax, 7",
        "jmp {common}",
        target = const off::TARGET,
        t = const off::SPILL_T,
        rax = const off::gpr(0),
        common = sym common
    )
}

/// A system call that returned EFAULT.
#[unsafe(naked)]
pub extern "C" fn enter_efault() {
    naked_asm!("mov gs:[{rax}], rax", "mov eax, 6", "jmp {common}", rax = const off::gpr(0), common = sym common)
}

#[unsafe(naked)]
extern "C" fn common() {
    naked_asm!(
        "mov gs:[{gpr}+1*8], rcx", "mov gs:[{gpr}+2*8], rdx", "mov gs:[{gpr}+3*8], rbx",
        "mov gs:[{gpr}+4*8], rsp", "mov gs:[{gpr}+5*8], rbp", "mov gs:[{gpr}+6*8], rsi",
        "mov gs:[{gpr}+7*8], rdi", "mov gs:[{gpr}+8*8], r8", "mov gs:[{gpr}+9*8], r9",
        "mov gs:[{gpr}+10*8], r10", "mov gs:[{gpr}+11*8], r11", "mov gs:[{gpr}+12*8], r12",
        "mov gs:[{gpr}+13*8], r13", "mov gs:[{gpr}+14*8], r14", "mov gs:[{gpr}+15*8], r15",
        "mov rsp, gs:[{sp}]",
        "pushfq",
        "pop rcx",
        "mov gs:[{rflags}], rcx",
        // A program with alignment checks, a set direction flag or single-stepping must not spread them to us.
        "test ecx, 0x40500",
        "jz 2f",
        "push 2",
        "popfq",
        "2:",
        "movaps gs:[{xmm}+0], xmm0", "movaps gs:[{xmm}+16], xmm1", "movaps gs:[{xmm}+32], xmm2",
        "movaps gs:[{xmm}+48], xmm3", "movaps gs:[{xmm}+64], xmm4", "movaps gs:[{xmm}+80], xmm5",
        "movaps gs:[{xmm}+96], xmm6", "movaps gs:[{xmm}+112], xmm7", "movaps gs:[{xmm}+128], xmm8",
        "movaps gs:[{xmm}+144], xmm9", "movaps gs:[{xmm}+160], xmm10", "movaps gs:[{xmm}+176], xmm11",
        "movaps gs:[{xmm}+192], xmm12", "movaps gs:[{xmm}+208], xmm13", "movaps gs:[{xmm}+224], xmm14",
        "movaps gs:[{xmm}+240], xmm15",
        "mov rdi, gs:[{this}]",
        "mov esi, eax",
        "call gs:[{entry}]",
        "jmp {leave}",
        gpr = const off::GPR, sp = const off::ENGINE_SP, rflags = const off::RFLAGS, xmm = const off::XMM,
        this = const off::THIS, entry = const off::ENTRY, leave = sym leave
    )
}

/// Restores the program's registers and goes on at `resume`. Runs on the engine's stack.
///
/// From `leave_check` on, the saved registers are the truth: a signal that arrives later in this routine takes
/// them from the state (see `signal.rs`).
#[unsafe(naked)]
pub extern "C" fn leave() {
    naked_asm!(
        "movaps xmm0, gs:[{xmm}+0]", "movaps xmm1, gs:[{xmm}+16]", "movaps xmm2, gs:[{xmm}+32]",
        "movaps xmm3, gs:[{xmm}+48]", "movaps xmm4, gs:[{xmm}+64]", "movaps xmm5, gs:[{xmm}+80]",
        "movaps xmm6, gs:[{xmm}+96]", "movaps xmm7, gs:[{xmm}+112]", "movaps xmm8, gs:[{xmm}+128]",
        "movaps xmm9, gs:[{xmm}+144]", "movaps xmm10, gs:[{xmm}+160]", "movaps xmm11, gs:[{xmm}+176]",
        "movaps xmm12, gs:[{xmm}+192]", "movaps xmm13, gs:[{xmm}+208]", "movaps xmm14, gs:[{xmm}+224]",
        "movaps xmm15, gs:[{xmm}+240]",
        "cmp qword ptr gs:[{pend}], 0",
        "jne 3f",
        ".globl farsight_leave_check",
        "farsight_leave_check:",
        "push gs:[{rflags}]",
        "popfq",
        "mov rax, gs:[{gpr}]", "mov rcx, gs:[{gpr}+1*8]", "mov rdx, gs:[{gpr}+2*8]",
        "mov rbx, gs:[{gpr}+3*8]", "mov rsp, gs:[{gpr}+4*8]", "mov rbp, gs:[{gpr}+5*8]",
        "mov rsi, gs:[{gpr}+6*8]", "mov rdi, gs:[{gpr}+7*8]", "mov r8, gs:[{gpr}+8*8]",
        "mov r9, gs:[{gpr}+9*8]", "mov r10, gs:[{gpr}+10*8]", "mov r11, gs:[{gpr}+11*8]",
        "mov r12, gs:[{gpr}+12*8]", "mov r13, gs:[{gpr}+13*8]", "mov r14, gs:[{gpr}+14*8]",
        "mov r15, gs:[{gpr}+15*8]",
        "jmp gs:[{resume}]",
        ".globl farsight_leave_pending",
        "3:",
        "farsight_leave_pending:",
        // The handler sees this address, takes the program's registers from the state and delivers the signal.
        "int3",
        "jmp farsight_leave_check",
        ".globl farsight_leave_end",
        "farsight_leave_end:",
        "nop",
        gpr = const off::GPR, rflags = const off::RFLAGS, xmm = const off::XMM, pend = const off::PEND,
        resume = const off::RESUME
    )
}

/// Calls rdx with rdi, on the engine's stack, and leaves.
#[unsafe(naked)]
pub extern "C" fn call_and_leave() {
    naked_asm!("call rdx", "jmp {leave}", leave = sym leave)
}

/// Switches to the thread's engine stack, then calls the engine as if from the cache: how a thread begins.
///
/// # Safety
/// `state` is complete and gs points at it; nothing on the current stack is needed any more.
pub unsafe fn start(state: *mut ThreadState) -> ! {
    // SAFETY: leaves the current stack for good, as the caller allows.
    unsafe {
        core::arch::asm!(
            "mov rsp, [rdi + {sp}]", "mov esi, 4", "call [rdi + {entry}]", "jmp {leave}",
            in("rdi") state, sp = const off::ENGINE_SP, entry = const off::ENTRY, leave = sym leave,
            options(noreturn)
        )
    }
}
