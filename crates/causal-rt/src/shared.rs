//! The memory that the experimenter sees, and finding it.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use preload::{seat, sys};
use wire::causal::{BYTES, Shared, VARIABLE, VERSION};

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// The shared memory; `None` before the start and when there is none.
#[inline(always)]
pub fn get() -> Option<&'static Shared> {
    // SAFETY: null or a mapping of the whole structure that is never unmapped, all of it atomics.
    unsafe { SHARED.load(Relaxed).as_ref() }
}

/// Maps the file that the environment leads to. Before `main`.
pub fn open() -> Option<&'static Shared> {
    let shared = map(seat::open(VARIABLE)?)?;
    SHARED.store(ptr::from_ref(shared).cast_mut(), Release);
    Some(shared)
}

fn map(fd: i32) -> Option<&'static Shared> {
    let mapped = sys::map_shared(fd, BYTES);
    sys::close(fd);
    // SAFETY: the experimenter has given the file the whole length; all fields are atomics.
    let shared = unsafe { &*mapped.ok()?.cast::<Shared>() };
    (shared.version.load(Acquire) == VERSION).then_some(shared)
}

/// In a forked child that is followed: memory of its own takes the place of the parent's, at the same address, because
/// the program goes on incrementing counters there. Its progress points are known already.
pub fn move_to_own() -> Option<&'static Shared> {
    let old = get()?;
    let new = map(seat::open_forked()?)?;
    let known = old.counts.points.load(Acquire);
    for (from, to) in old.points.iter().zip(&new.points).take(known as usize) {
        to.name_len.store(from.name_len.load(Relaxed), Relaxed);
        for (from, to) in from.name.iter().zip(&to.name) {
            to.store(from.load(Relaxed), Relaxed);
        }
        to.end.store(from.end.load(Relaxed), Relaxed);
        to.kind.store(from.kind.load(Relaxed), Relaxed);
    }
    new.counts.points.store(known, Release);
    let (from, to) = (ptr::from_ref(new) as usize, ptr::from_ref(old) as usize);
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as usize;
    // SAFETY: both are our own mappings of this length, in a process with one thread; what was behind `old` stays
    // valid atomics, and `new` is not used any more.
    unsafe { sys::raw(libc::SYS_mremap, [from, BYTES, BYTES, flags, to, 0]) }.ok()?;
    Some(old)
}

/// In a forked child that is not: what it does must not reach the parent's experimenter. The program goes on incrementing
/// counters at the same addresses, so private memory takes their place.
pub fn cut_off() {
    let at = SHARED.swap(ptr::null_mut(), AcqRel);
    if at.is_null() {
        return;
    }
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE) as usize;
    // SAFETY: replaces our own mapping, in a process with one thread, by zeroed memory: valid atomics again.
    let _ = unsafe { sys::raw(libc::SYS_mmap, [at as usize, BYTES, prot, flags, usize::MAX, 0]) };
}
