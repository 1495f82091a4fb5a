//! What the processor and the kernel have of vector state, and where `xsave` keeps it. Asked once: on a virtual machine
//! every `cpuid` leaves the machine, which takes thousands of times as long as what is done with the answer.

use alloc::boxed::Box;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use core::sync::atomic::{AtomicPtr, Ordering};

/// A component of the state that `xsave` saves; 0 bytes where there is none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Component {
    pub(crate) bytes: u64,
    /// From the area's start, in the standard form.
    pub(crate) offset: u64,
    /// In the compact form: at a multiple of 64.
    pub(crate) aligned: bool,
}

#[derive(Debug)]
pub(crate) struct Processor {
    pub(crate) avx: bool,
    pub(crate) avx512: bool,
    /// Mask registers have 64 bits, not 16.
    pub(crate) wide_masks: bool,
    pub(crate) components: [Component; 64],
}

impl Processor {
    /// This one.
    pub(crate) fn get() -> &'static Processor {
        static KNOWN: AtomicPtr<Processor> = AtomicPtr::new(core::ptr::null_mut());
        // SAFETY: null, or leaked below and never written again.
        if let Some(known) = unsafe { KNOWN.load(Ordering::Acquire).as_ref() } {
            return known;
        }
        // Two threads may both ask and get the same answer.
        let asked: &'static Processor = Box::leak(Box::new(Processor::ask()));
        KNOWN.store(core::ptr::from_ref(asked).cast_mut(), Ordering::Release);
        asked
    }

    fn ask() -> Processor {
        let enabled = xcr0();
        let mut components = [Component::default(); 64];
        for (i, c) in components.iter_mut().enumerate().skip(2) {
            if enabled >> i & 1 != 0 {
                let r = __cpuid_count(0xd, i as u32);
                *c = Component { bytes: r.eax.into(), offset: r.ebx.into(), aligned: r.ecx & 2 != 0 };
            }
        }
        Processor {
            avx: enabled & 6 == 6,
            avx512: enabled & 0xe6 == 0xe6,
            wide_masks: __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 30 & 1 != 0,
            components,
        }
    }
}

/// The state components that the kernel has enabled.
fn xcr0() -> u64 {
    const OSXSAVE: u32 = 1 << 27;
    if __cpuid(1).ecx & OSXSAVE == 0 {
        return 0;
    }
    let (lo, hi): (u32, u32);
    // SAFETY: OSXSAVE says that the instruction is there.
    unsafe { core::arch::asm!("xgetbv", in("ecx") 0, out("eax") lo, out("edx") hi, options(nomem, nostack)) };
    u64::from(lo) | u64::from(hi) << 32
}
