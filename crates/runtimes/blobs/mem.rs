//! The memory functions that compiled Rust code calls by name. Elsewhere libc has them; a blob has none.
//!
//! Written in assembly, so that the compiler cannot turn a loop in them back into a call to themselves.

use core::arch::asm;

/// Copies forward.
///
/// # Safety
/// As for C's `memcpy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    // Short copies are most of them, and `rep movsb` takes dozens of cycles to start.
    // SAFETY: the caller's; each form stays within `n` bytes, and lets its two parts overlap in the middle. Those up to 64
    // bytes load everything before they store, the next one the last 64 bytes before it goes upward.
    unsafe {
        match n {
            16..=32 => asm!(
                "movups {a}, [{f}]", "movups {b}, [{f} + {n} - 16]", "movups [{t}], {a}",
                "movups [{t} + {n} - 16], {b}",
                a = out(xmm_reg) _, b = out(xmm_reg) _, f = in(reg) from, t = in(reg) to, n = in(reg) n,
                options(nostack)
            ),
            8..=15 => asm!(
                "mov {a}, [{f}]", "mov {b}, [{f} + {n} - 8]", "mov [{t}], {a}", "mov [{t} + {n} - 8], {b}",
                a = out(reg) _, b = out(reg) _, f = in(reg) from, t = in(reg) to, n = in(reg) n, options(nostack)
            ),
            33..=64 => asm!(
                "movups {a}, [{f}]", "movups {b}, [{f} + 16]", "movups {c}, [{f} + {n} - 32]",
                "movups {d}, [{f} + {n} - 16]", "movups [{t}], {a}", "movups [{t} + 16], {b}",
                "movups [{t} + {n} - 32], {c}", "movups [{t} + {n} - 16], {d}",
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _, f = in(reg) from,
                t = in(reg) to, n = in(reg) n, options(nostack)
            ),
            4..=7 => asm!(
                "mov {a:e}, [{f}]", "mov {b:e}, [{f} + {n} - 4]", "mov [{t}], {a:e}", "mov [{t} + {n} - 4], {b:e}",
                a = out(reg) _, b = out(reg) _, f = in(reg) from, t = in(reg) to, n = in(reg) n, options(nostack)
            ),
            2..=3 => asm!(
                "mov {a:x}, [{f}]", "mov {b}, [{f} + {n} - 1]", "mov [{t}], {a:x}", "mov [{t} + {n} - 1], {b}",
                a = out(reg) _, b = out(reg_byte) _, f = in(reg) from, t = in(reg) to, n = in(reg) n, options(nostack)
            ),
            1 => asm!("mov {a}, [{f}]", "mov [{t}], {a}", a = out(reg_byte) _, f = in(reg) from, t = in(reg) to, options(nostack)),
            0 => {}
            65..=512 => asm!(
                "movups {e}, [{f} + {n} - 64]", "movups {g}, [{f} + {n} - 48]", "movups {h}, [{f} + {n} - 32]",
                "movups {i}, [{f} + {n} - 16]", "xor {k:e}, {k:e}",
                "2:", "movups {a}, [{f} + {k}]", "movups {b}, [{f} + {k} + 16]", "movups {c}, [{f} + {k} + 32]",
                "movups {d}, [{f} + {k} + 48]", "movups [{t} + {k}], {a}", "movups [{t} + {k} + 16], {b}",
                "movups [{t} + {k} + 32], {c}", "movups [{t} + {k} + 48], {d}", "add {k}, 64", "lea {l}, [{k} + 64]",
                "cmp {l}, {n}", "jb 2b",
                "movups [{t} + {n} - 64], {e}", "movups [{t} + {n} - 48], {g}", "movups [{t} + {n} - 32], {h}",
                "movups [{t} + {n} - 16], {i}",
                a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _, e = out(xmm_reg) _,
                g = out(xmm_reg) _, h = out(xmm_reg) _, i = out(xmm_reg) _, k = out(reg) _, l = out(reg) _,
                f = in(reg) from, t = in(reg) to, n = in(reg) n, options(nostack)
            ),
            _ => {
                asm!("rep movsb", inout("rcx") n => _, inout("rdi") to => _, inout("rsi") from => _, options(nostack))
            }
        }
    }
    to
}

/// Copies in the direction that overlapping ranges need.
///
/// # Safety
/// As for C's `memmove`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, n: usize) -> *mut u8 {
    if (to as usize).wrapping_sub(from as usize) >= n || (4..=64).contains(&n) {
        // (Short copies load everything before they store.)
        // SAFETY: the caller's; the ranges do not overlap, or the copy goes downward.
        return unsafe { memcpy(to, from, n) };
    }
    // SAFETY: the caller's; copies from the end, and leaves the direction flag clear.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") n => _, inout("rdi") to.wrapping_add(n).wrapping_sub(1) => _,
             inout("rsi") from.wrapping_add(n).wrapping_sub(1) => _, options(nostack));
    }
    to
}

/// Fills.
///
/// # Safety
/// As for C's `memset`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, n: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        asm!("rep stosb", inout("rcx") n => _, inout("rdi") to => _, in("al") byte as u8, options(nostack))
    };
    to
}

/// Compares.
///
/// # Safety
/// As for C's `memcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    let mut i = 0;
    while i < n {
        // SAFETY: the caller's; below `n`. Volatile, so that the loop stays a loop.
        let (x, y) = unsafe { (a.add(i).read_volatile(), b.add(i).read_volatile()) };
        if x != y {
            return i32::from(x) - i32::from(y);
        }
        i += 1;
    }
    0
}

/// Compares for equality.
///
/// # Safety
/// As for C's `bcmp`.
#[unsafe(no_mangle)]
unsafe extern "C" fn bcmp(a: *const u8, b: *const u8, n: usize) -> i32 {
    // SAFETY: the caller's.
    unsafe { memcmp(a, b, n) }
}

/// Length of a C string.
///
/// # Safety
/// As for C's `strlen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn strlen(s: *const u8) -> usize {
    let mut n = 0;
    // SAFETY: the caller's.
    while unsafe { s.add(n).read_volatile() } != 0 {
        n += 1;
    }
    n
}
