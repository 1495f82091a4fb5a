//! Return addresses of this thread, by frame pointers: ten nanoseconds, where unwinding takes microseconds.
//!
//! The tool compiles every crate of the program with frame pointers. Where foreign code without them lies between,
//! the chain is cut short or skips callers; it is never followed outside the stack.

use crate::libc;

/// More frames are never needed to leave rayon's own.
pub const FRAMES_MAX: usize = 48;

/// Return addresses, innermost first.
#[derive(Clone, Copy)]
pub struct Trace {
    frames: [usize; FRAMES_MAX],
    len: usize,
}

impl Trace {
    /// The addresses.
    pub fn frames(&self) -> &[usize] {
        &self.frames[..self.len]
    }

    /// From the caller up to the stack address `base`.
    #[inline(never)]
    pub fn up_to(base: usize) -> Self {
        let mut trace = Trace { frames: [0; FRAMES_MAX], len: 0 };
        walk(base, |_, address| {
            if trace.len < FRAMES_MAX {
                trace.frames[trace.len] = address;
                trace.len += 1;
            }
        });
        trace
    }
}

/// Frames that are walked at most.
const WALKED_MAX: usize = 64;

/// Every frame from the caller's up to the stack address `base`: where it lies, and its return address, which lies 8 above.
#[inline(always)]
pub fn walk(base: usize, mut each: impl FnMut(usize, usize)) {
    let mut frame: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    let mark = 0u64;
    let mut low = core::ptr::from_ref(&mark) as usize;
    for _ in 0..WALKED_MAX {
        if frame <= low || !frame.is_multiple_of(8) || frame.saturating_add(16) > base {
            break;
        }
        // SAFETY: aligned, above a live local of ours, and below the end of this thread's stack: mapped.
        let (next, address) =
            unsafe { ((frame as *const usize).read(), (frame as *const usize).add(1).read()) };
        if address < 4096 {
            break;
        }
        each(frame, address);
        low = frame;
        frame = next;
    }
}

/// The highest address of this thread's stack.
pub fn top() -> usize {
    let mut attr = libc::pthread_attr_t([0; 8]);
    let mut start = core::ptr::null_mut();
    let mut bytes = 0;
    // SAFETY: the attribute is initialized by the first call, used by the second and destroyed by the third.
    unsafe {
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attr) != 0 {
            return 0;
        }
        libc::pthread_attr_getstack(&raw const attr, &raw mut start, &raw mut bytes);
        libc::pthread_attr_destroy(&raw mut attr);
    }
    start as usize + bytes
}
