//! Code whose meaning the runtime must know while the program runs: given by the launcher as addresses of the
//! executable, since nothing in here reads symbols.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use wire::idle::Landmark;

/// Sorted by address; in shared memory, in the executable's own addresses.
static TABLE: AtomicPtr<Landmark> = AtomicPtr::new(core::ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);
static BIAS: AtomicUsize = AtomicUsize::new(0);

/// Takes the table in. Once, at start.
///
/// # Safety
/// `table` must point to `len` landmarks, sorted, that stay mapped and unchanged.
pub unsafe fn install(table: *const Landmark, len: usize, bias: usize) {
    BIAS.store(bias, Relaxed);
    TABLE.store(table.cast_mut(), Relaxed);
    LEN.store(len, Release);
}

/// Whether there are any.
#[inline]
pub fn any() -> bool {
    LEN.load(Relaxed) != 0
}

/// The landmark at an address of the process.
#[inline]
pub fn at(pc: u64) -> Option<&'static Landmark> {
    let len = LEN.load(Acquire);
    if len == 0 {
        return None;
    }
    let address = pc.wrapping_sub(BIAS.load(Relaxed) as u64);
    // SAFETY: by the contract of `install`.
    let table = unsafe { &*core::ptr::slice_from_raw_parts(TABLE.load(Relaxed), len) };
    let after = table.partition_point(|l| l.start <= address);
    table.get(after.checked_sub(1)?).filter(|l| address < l.end)
}
