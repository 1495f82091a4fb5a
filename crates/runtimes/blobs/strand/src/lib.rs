//! Samples inside strands, as the library that is preloaded beside the span runtime.

use wire::strand::{Inside, StrandLog};

preload::interpose!(strand_rt::Strands);

/// See `strand_rt::ask`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_strand_ask(version: u64, table: *mut [u64; 2], functions: usize) -> u64 {
    // SAFETY: passed on.
    unsafe { strand_rt::ask(version, table, functions) }
}

/// See `strand_rt::thread`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_strand_thread(word: *const u64) -> *mut StrandLog {
    // SAFETY: passed on.
    unsafe { strand_rt::thread(word) }
}

/// See `strand_rt::inside`.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_strand_inside(base: u64, out: *mut Inside) -> usize {
    // SAFETY: passed on.
    unsafe { strand_rt::inside(base, out) }
}
