//! Code whose meaning the runtime must know while the program runs: given by the launcher as addresses of the
//! executable, since nothing in here reads symbols.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};
use preload::sys;
use wire::idle::Landmark;

/// Sorted by address, in the executable's own addresses. Private memory, so that forked children have it too.
static TABLE: AtomicPtr<Landmark> = AtomicPtr::new(core::ptr::null_mut());
static LEN: AtomicUsize = AtomicUsize::new(0);
static BIAS: AtomicUsize = AtomicUsize::new(0);

/// Takes the table in. Once, at start.
///
/// # Safety
/// `table` must point to `len` landmarks, sorted.
pub unsafe fn install(table: *const Landmark, len: usize, bias: usize) -> Result<(), &'static str> {
    if len == 0 {
        return Ok(());
    }
    let copy = sys::map_anonymous(len * size_of::<Landmark>()).map_err(|_| "no memory for landmarks")?;
    // SAFETY: by contract; the copy is fresh memory, aligned to pages.
    unsafe { copy.cast::<Landmark>().copy_from_nonoverlapping(table, len) };
    BIAS.store(bias, Relaxed);
    TABLE.store(copy.cast(), Relaxed);
    LEN.store(len, Release);
    Ok(())
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
