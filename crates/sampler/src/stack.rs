//! Reads of an interrupted stack that cannot fault.
//!
//! Between the stack pointer and the top of its own stack a thread's memory is mapped by construction; those
//! reads are plain loads. Anything else (coroutines, alternate stacks, threads whose bounds nobody knows, a
//! wild frame pointer) is asked of the kernel first, once per page and walk.

use core::ops::Range;
use preload::sys;

const PAGE: u64 = 4096;

/// A view of one thread's stack during one walk.
#[derive(Clone, Debug)]
pub struct Stack {
    trusted: Range<u64>,
    probed: Range<u64>,
}

impl Stack {
    /// For a walk that starts at stack pointer `sp` in a thread whose stack lies in `bounds`: what lies between the two is
    /// taken to be mapped. That need not be the calling thread.
    #[inline]
    pub fn new(sp: u64, bounds: Range<usize>) -> Self {
        let bounds = bounds.start as u64..bounds.end as u64;
        // The red zone below the stack pointer belongs to the frame.
        let trusted = if bounds.contains(&sp) { (sp - 128).max(bounds.start)..bounds.end } else { 0..0 };
        Self { trusted, probed: 0..0 }
    }

    /// The word at `address`, unless it cannot be read.
    #[inline(always)]
    pub fn read(&mut self, address: u64) -> Option<u64> {
        let within = |range: &Range<u64>| address >= range.start && address.wrapping_add(8) <= range.end;
        if within(&self.trusted) || within(&self.probed) || self.probe(address) {
            // SAFETY: mapped, as argued in the module, and it stays so while its thread is in this handler.
            // Unaligned for the sake of programs that misalign their stack; volatile because it is foreign.
            Some(unsafe { core::ptr::read_unaligned(address as *const u64) })
        } else {
            None
        }
    }

    /// Whether a frame that ends at `sp` is the first of all, where the kernel left the number of arguments, the
    /// arguments, and then the environment, at which the main thread's bounds end. The dynamic linker's entry is such a
    /// frame, and has no unwind information.
    #[cold]
    pub fn is_first(&mut self, sp: u64) -> bool {
        let environment = self.trusted.end;
        environment != 0
            && self.read(sp).is_some_and(|arguments| {
                let words = arguments.checked_add(2).and_then(|n| n.checked_mul(8));
                words.and_then(|bytes| sp.checked_add(bytes)) == Some(environment)
            })
    }

    #[cold]
    fn probe(&mut self, address: u64) -> bool {
        // Both ends, since a word can straddle two pages. Addresses near zero or in the kernel's half are
        // refused by the kernel like any other.
        let Some(last) = address.checked_add(7) else { return false };
        if !sys::readable(address as usize) || !sys::readable((last & !7) as usize) {
            return false;
        }
        let page = address & !(PAGE - 1);
        if last < page + PAGE {
            self.probed = page..page + PAGE;
        } else {
            self.probed = address..last + 1;
        }
        true
    }
}
