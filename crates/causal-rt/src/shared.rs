//! The memory that the experimenter sees, and finding it.

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::*};
use preload::sys;
use wire::causal::{BYTES, Shared, VARIABLE, VERSION};

static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());

/// The shared memory; `None` before the start and when there is none.
#[inline(always)]
pub fn get() -> Option<&'static Shared> {
    // SAFETY: null or a mapping of the whole structure that is never unmapped, all of it atomics.
    unsafe { SHARED.load(Relaxed).as_ref() }
}

/// Maps the file that the environment names, and takes the variable away. Before `main`.
pub fn open() -> Option<&'static Shared> {
    let mut name = [0u8; 32];
    name.get_mut(..VARIABLE.len())?.copy_from_slice(VARIABLE.as_bytes());
    // SAFETY: a terminated name; before `main`, in the only thread, nobody changes the environment.
    let path = unsafe { libc::getenv(name.as_ptr().cast()) };
    if path.is_null() {
        return None;
    }
    let flags = (libc::O_RDWR | libc::O_CLOEXEC) as usize;
    // SAFETY: a terminated path.
    let opened = unsafe { sys::raw(libc::SYS_open, [path as usize, flags, 0, 0, 0, 0]) };
    // SAFETY: as above; what `path` points to is not used any more.
    unsafe { libc::unsetenv(name.as_ptr().cast()) };
    let fd = opened.ok()? as i32;
    let mapped = sys::map_shared(fd, BYTES);
    sys::close(fd);
    let shared = mapped.ok()?.cast::<Shared>();
    // SAFETY: the experimenter has given the file the whole length; all fields are atomics.
    let view = unsafe { &*shared };
    if view.version.load(Acquire) != VERSION {
        return None;
    }
    SHARED.store(shared, Release);
    Some(view)
}

/// In a forked child: what it does must not reach the parent's experimenter. The program goes on incrementing
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
