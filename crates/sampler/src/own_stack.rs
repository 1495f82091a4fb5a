//! A stack of our own for what takes more than a few frames.
//!
//! Samples strike on whatever stack the program gave its signal handlers: 8 KB in Rust programs, of which the kernel's
//! frame takes almost half. Evaluating unwind tables takes more than the rest, and following a task to its creator more
//! than that. And a hook may be called near the end of a thread's small stack.
//!
//! One per thread and use: the handler's is the handler's alone, which does not nest; of another, whoever finds its thread
//! busy stays out (`Thread::busy`), our handler and hooks that the program's own handlers call alike. (A handler of the
//! program that strikes while a hook is here runs on this stack. None can strike while our handler runs, see
//! `preload::signal`, so none takes the alternate stack for free that ours has left.)

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;

const BYTES: usize = 48 << 10;

/// The memory. Lives in the thread's slot; pages that are never used are never there.
#[derive(Debug)]
#[repr(align(64))]
pub struct OwnStack(UnsafeCell<MaybeUninit<[u8; BYTES]>>);

impl OwnStack {
    /// Unused.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Runs `f` on this stack. It must not unwind and must not be used twice at once.
    pub fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Call<F, R> {
            f: Option<F>,
            result: Option<R>,
        }
        extern "C" fn enter<F: FnOnce() -> R, R>(call: *mut Call<F, R>) {
            // SAFETY: `run` passes its own live record.
            let call = unsafe { &mut *call };
            if let Some(f) = call.f.take() {
                call.result = Some(f());
            }
        }
        fn entry<F: FnOnce() -> R, R>(_: &Call<F, R>) -> extern "C" fn(*mut Call<F, R>) {
            enter::<F, R>
        }
        let mut call = Call { f: Some(f), result: None };
        let entry = entry(&call);
        let top = self.0.get() as usize + BYTES;
        // SAFETY: the stack is aligned to 16 and large enough; the called function follows the C convention, keeps
        // r12 and returns, whereupon the old stack is back.
        unsafe {
            asm!("mov r12, rsp", "mov rsp, rsi", "call rax", "mov rsp, r12",
                in("rdi") &raw mut call, in("rsi") top, inout("rax") entry => _, out("r12") _, clobber_abi("C"));
        }
        match call.result {
            Some(result) => result,
            // Only if the call above did not happen.
            None => loop {
                core::hint::spin_loop();
            },
        }
    }
}

impl Default for OwnStack {
    fn default() -> Self {
        Self::new()
    }
}
