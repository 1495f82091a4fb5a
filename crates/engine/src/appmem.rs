//! Copies to and from the program's memory that survive bad pointers.
//!
//! The program may pass any address to a system call, or run with a broken stack pointer. These copies are one
//! `rep movsb` at a known address; the handler of SIGSEGV and SIGBUS recognises a fault there and lets the copy
//! return an error instead.

use core::arch::naked_asm;

/// Returns 0, or the number of bytes not copied.
///
/// # Safety
/// One of the two ranges is the engine's and valid; the other may be anything.
#[unsafe(naked)]
unsafe extern "C" fn copy(to: *mut u8, from: *const u8, n: usize) -> usize {
    naked_asm!(
        "mov rcx, rdx",
        ".globl farsight_copy_at",
        "farsight_copy_at:",
        "rep movsb",
        ".globl farsight_copy_out",
        "farsight_copy_out:",
        "mov rax, rcx",
        "ret"
    )
}

unsafe extern "C" {
    static farsight_copy_at: u8;
    static farsight_copy_out: u8;
}

/// If a fault at `rip` is a copy's, where to go on.
pub fn fixup(rip: u64) -> Option<u64> {
    (rip == (&raw const farsight_copy_at) as u64).then_some((&raw const farsight_copy_out) as u64)
}

/// Reads a value of the program; `None` if it may not be read.
pub fn read<T: Copy>(at: u64) -> Option<T> {
    let mut v = core::mem::MaybeUninit::<T>::uninit();
    // SAFETY: the destination is ours; a bad source ends the copy early, which is checked.
    let left = unsafe { copy(v.as_mut_ptr().cast(), at as *const u8, size_of::<T>()) };
    // SAFETY: only used for plain kernel structures, valid for any bits, all of which were copied.
    (left == 0).then(|| unsafe { v.assume_init() })
}

/// Fills `into` from the program's memory; false if some of it may not be read.
#[must_use]
pub fn read_bytes(at: u64, into: &mut [u8]) -> bool {
    // SAFETY: the destination is ours; a bad source ends the copy early, which is reported.
    unsafe { copy(into.as_mut_ptr(), at as *const u8, into.len()) == 0 }
}

/// Writes a value for the program; false if it may not be written.
#[must_use]
pub fn write<T: Copy>(at: u64, v: &T) -> bool {
    // SAFETY: the source is ours; a bad destination ends the copy early, which is reported.
    unsafe { copy(at as *mut u8, core::ptr::from_ref(v).cast(), size_of::<T>()) == 0 }
}

/// Copies `n` bytes from `from`, valid memory of ours, to the program's `to`.
///
/// # Safety
/// `from` is readable for `n` bytes.
#[must_use]
pub unsafe fn write_bytes(to: u64, from: u64, n: usize) -> bool {
    // SAFETY: as promised; a bad destination ends the copy early, which is reported.
    unsafe { copy(to as *mut u8, from as *const u8, n) == 0 }
}
