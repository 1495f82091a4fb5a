//! System calls without libc: no `errno`, no cancellation point, no interposed symbol.
//!
//! Results are the kernel's: a value, or a negative error number in the last 4095 values. Safe to use in
//! signal handlers, between `vfork` and `exec`, and before libc has started.

use core::arch::asm;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// A failed system call: the positive error number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// Result of a system call.
pub type Result<T> = core::result::Result<T, Errno>;

/// Address of an instruction `syscall` with a return behind it; 0 while our own will do.
static THROUGH: AtomicUsize = AtomicUsize::new(0);

/// System calls are made by the instruction at `address` from now on. A return must follow it.
pub(crate) fn go_through(address: usize) {
    THROUGH.store(address, Relaxed);
}

/// Makes system call `n` with six arguments (unused ones are ignored by the kernel).
///
/// # Safety
/// The call must be sound for this process: pointers valid for what the kernel reads or writes through them.
#[inline(always)]
pub unsafe fn raw(n: libc::c_long, args: [usize; 6]) -> Result<usize> {
    let [a, b, c, d, e, f] = args;
    let out: isize;
    let through = THROUGH.load(Relaxed);
    if through != 0 {
        // SAFETY: as below; the instruction called returns at once, and the compiler keeps the stack below free.
        unsafe {
            asm!("call {through}", through = in(reg) through, inlateout("rax") n as isize => out,
                in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
                lateout("rcx") _, lateout("r11") _);
        }
        return if (-4095..0).contains(&out) { Err(Errno(-out as i32)) } else { Ok(out as usize) };
    }
    // SAFETY: the x86-64 system call convention: number in rax, arguments as below, rcx and r11 clobbered,
    // all other registers kept. The caller vouches for what the call does.
    unsafe {
        asm!("syscall", inlateout("rax") n as isize => out,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if (-4095..0).contains(&out) { Err(Errno(-out as i32)) } else { Ok(out as usize) }
}

/// Kernel id of the calling thread.
#[inline]
pub fn gettid() -> u32 {
    // SAFETY: no pointers.
    unsafe { raw(libc::SYS_gettid, [0; 6]) }.map_or(0, |v| v as u32)
}

/// Kernel id of the process.
#[inline]
pub fn getpid() -> u32 {
    // SAFETY: no pointers.
    unsafe { raw(libc::SYS_getpid, [0; 6]) }.map_or(0, |v| v as u32)
}

/// Private anonymous memory, zeroed, not counted against overcommit until it is touched.
pub fn map_anonymous(bytes: usize) -> Result<*mut u8> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing.
    unsafe { raw(libc::SYS_mmap, [0, bytes, prot as usize, flags as usize, usize::MAX, 0]) }
        .map(|p| p as *mut u8)
}

/// The first `bytes` of file `fd`, shared with whoever else maps it.
pub fn map_shared(fd: i32, bytes: usize) -> Result<*mut u8> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE) as usize;
    // SAFETY: as in `map_anonymous`; touching pages past the end of the file is the caller's concern.
    unsafe { raw(libc::SYS_mmap, [0, bytes, prot, flags, fd as usize, 0]) }.map(|p| p as *mut u8)
}

/// The first `bytes` of file `fd` in the place of what is at `start`.
///
/// # Safety
/// The range must be a mapping of ours that nothing refers to.
pub unsafe fn map_shared_at(start: *mut u8, fd: i32, bytes: usize) -> Result<()> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED) as usize;
    // SAFETY: by contract.
    unsafe { raw(libc::SYS_mmap, [start as usize, bytes, prot, flags, fd as usize, 0]) }.map(drop)
}

/// Sleeps while `word` (in memory that processes share) is `value`, at most `ns`; may wake early.
pub fn futex_wait(word: &AtomicU32, value: u32, ns: u64) {
    let time = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
    let args = [
        core::ptr::from_ref(word) as usize,
        libc::FUTEX_WAIT as usize,
        value as usize,
        &raw const time as usize,
        0,
        0,
    ];
    // SAFETY: both are live.
    let _ = unsafe { raw(libc::SYS_futex, args) };
}

/// Wakes who sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    let args = [core::ptr::from_ref(word) as usize, libc::FUTEX_WAKE as usize, i32::MAX as usize, 0, 0, 0];
    // SAFETY: the word is live.
    let _ = unsafe { raw(libc::SYS_futex, args) };
}

/// Reads a file into `to`, as much as there is room for. The number of bytes.
pub fn read_into(path: &CStr, to: &mut [u8]) -> usize {
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
    // SAFETY: a terminated path.
    let Ok(fd) = (unsafe { raw(libc::SYS_open, [path.as_ptr() as usize, flags, 0, 0, 0, 0]) }) else {
        return 0;
    };
    let mut done = 0;
    while let Some(rest) = to.get_mut(done..).filter(|rest| !rest.is_empty()) {
        // SAFETY: the buffer is a live slice.
        match unsafe { raw(libc::SYS_read, [fd, rest.as_mut_ptr() as usize, rest.len(), 0, 0, 0]) } {
            Ok(n) if n > 0 => done += n,
            Err(Errno(libc::EINTR)) => {}
            _ => break,
        }
    }
    close(fd as i32);
    done
}

/// Where a link leads, into `to`. The number of bytes; 0 if it is none.
pub fn read_link(path: &CStr, to: &mut [u8]) -> usize {
    let args = [path.as_ptr() as usize, to.as_mut_ptr() as usize, to.len(), 0, 0, 0];
    // SAFETY: a terminated path and a live slice.
    unsafe { raw(libc::SYS_readlink, args) }.unwrap_or(0)
}

/// Gives back memory of `map_anonymous` or `map_shared`.
///
/// # Safety
/// Nothing may refer to the range any more.
pub unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: by the contract of this function.
    let _ = unsafe { raw(libc::SYS_munmap, [start as usize, bytes, 0, 0, 0, 0]) };
}

/// Advice about a range of memory of ours.
pub fn advise(start: *mut u8, bytes: usize, advice: i32) -> Result<()> {
    // SAFETY: the advices used here (WIPEONFORK, DONTFORK) change what a child sees, not our own view.
    unsafe { raw(libc::SYS_madvise, [start as usize, bytes, advice as usize, 0, 0, 0]) }.map(drop)
}

/// Sets a file's length.
pub fn truncate(fd: i32, bytes: usize) -> Result<()> {
    // SAFETY: no pointers.
    unsafe { raw(libc::SYS_ftruncate, [fd as usize, bytes, 0, 0, 0, 0]) }.map(drop)
}

/// Writes all of `bytes`, giving up at the first error.
pub fn write_all(fd: i32, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let args = [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
        // SAFETY: the buffer is a live slice.
        match unsafe { raw(libc::SYS_write, args) } {
            Ok(n) if n > 0 => bytes = bytes.get(n..).unwrap_or(&[]),
            Err(Errno(libc::EINTR)) => {}
            _ => return,
        }
    }
}

/// Closes a descriptor of ours.
pub fn close(fd: i32) {
    // SAFETY: the caller owns the descriptor; no pointers.
    let _ = unsafe { raw(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Reads a clock in nanoseconds; 0 if the clock does not exist.
#[inline]
pub fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is live and of the kernel's layout.
    let _ = unsafe { raw(libc::SYS_clock_gettime, [clock as usize, &raw mut ts as usize, 0, 0, 0, 0]) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}

/// Gives the rest of the time slice away.
pub fn yield_now() {
    // SAFETY: no pointers.
    let _ = unsafe { raw(libc::SYS_sched_yield, [0; 6]) };
}

/// Whether the eight bytes at `address` can be read.
///
/// `rt_sigprocmask` copies its new set in before it looks at `how`; with a nonsense `how` it changes nothing
/// and answers `EFAULT` for unreadable memory, `EINVAL` otherwise. Unlike `process_vm_readv` no sandbox
/// forbids it. A null set would not be copied at all, so the first page is answered here.
pub fn readable(address: usize) -> bool {
    if address < 4096 {
        return false;
    }
    let args = [usize::MAX >> 1, address, 0, 8, 0, 0];
    // SAFETY: the kernel checks the pointer itself; the invalid `how` keeps the mask as it is.
    !matches!(unsafe { raw(libc::SYS_rt_sigprocmask, args) }, Err(Errno(libc::EFAULT)))
}

/// The soft limit of a resource, `usize::MAX` for none.
pub fn soft_limit(resource: libc::__rlimit_resource_t) -> usize {
    let mut limit = libc::rlimit64 { rlim_cur: 0, rlim_max: 0 };
    let args = [0, resource as usize, 0, &raw mut limit as usize, 0, 0];
    // SAFETY: pid 0 is this process; the result pointer is live.
    match unsafe { raw(libc::SYS_prlimit64, args) } {
        Ok(_) => usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX),
        Err(_) => usize::MAX,
    }
}

/// Copies a C string's bytes, without the terminator.
///
/// # Safety
/// `start` must be null or a terminated string that stays put for `'a`.
pub unsafe fn c_bytes<'a>(start: *const libc::c_char) -> &'a [u8] {
    if start.is_null() {
        return &[];
    }
    // SAFETY: by the contract of this function.
    unsafe {
        let mut n = 0;
        while *start.add(n) != 0 {
            n += 1;
        }
        &*ptr::slice_from_raw_parts(start.cast(), n)
    }
}
