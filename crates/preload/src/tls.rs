//! One word per thread, reached without a call.
//!
//! A `thread_local!` in a `cdylib` is reached through `__tls_get_addr`, and stable Rust has no switch for the
//! initial-exec model, nor has it `#[thread_local]`. The word is therefore declared in assembly and read with
//! the two instructions that the initial-exec model takes. A preloaded library's thread-local block is part of
//! every thread's static block from the thread's birth: no allocation ever, so the word can be read in signal
//! handlers, in constructors and in threads that no `pthread_create` of ours has seen. Its cost is one load
//! from the global offset table and one relative to `fs`, a nanosecond less than `__tls_get_addr`, and no call
//! into the dynamic linker.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.farsight_thread_word,\"awT\",@nobits",
    ".balign 8",
    ".globl farsight_thread_word",
    ".hidden farsight_thread_word",
    ".type farsight_thread_word,@object",
    ".size farsight_thread_word,8",
    "farsight_thread_word:",
    ".zero 8",
    ".popsection",
);

/// The calling thread's word; 0 in a new thread.
#[inline(always)]
pub fn get() -> usize {
    let word;
    // SAFETY: reads the eight bytes declared above in the calling thread's static TLS block; `gottpoff` is
    // resolved by the linker (or relaxed to a constant in an executable).
    unsafe {
        asm!("mov {w}, qword ptr [rip + farsight_thread_word@gottpoff]",
             "mov {w}, qword ptr fs:[{w}]",
             w = out(reg) word, options(pure, readonly, nostack, preserves_flags));
    }
    word
}

/// Sets the calling thread's word.
#[inline(always)]
pub fn set(word: usize) {
    // SAFETY: as in `get`; only this thread ever reads the word.
    unsafe {
        asm!("mov {t}, qword ptr [rip + farsight_thread_word@gottpoff]",
             "mov qword ptr fs:[{t}], {w}",
             t = out(reg) _, w = in(reg) word, options(nostack, preserves_flags));
    }
}
