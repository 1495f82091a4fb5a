//! System calls, made directly: the engine shares no libc with the program.
//!
//! The only place that knows numbers of system calls and layouts of the kernel's structures. Nothing here
//! touches errno, thread-local storage or the program's memory beyond what the caller passes.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

/// Numbers of the system calls that the engine makes or looks at.
pub mod nr {
    #![allow(missing_docs)]
    pub const READ: u64 = 0;
    pub const WRITE: u64 = 1;
    pub const OPEN: u64 = 2;
    pub const CLOSE: u64 = 3;
    pub const FSTAT: u64 = 5;
    pub const MMAP: u64 = 9;
    pub const MPROTECT: u64 = 10;
    pub const MUNMAP: u64 = 11;
    pub const BRK: u64 = 12;
    pub const RT_SIGACTION: u64 = 13;
    pub const RT_SIGPROCMASK: u64 = 14;
    pub const RT_SIGRETURN: u64 = 15;
    pub const PREAD64: u64 = 17;
    pub const SCHED_YIELD: u64 = 24;
    pub const MREMAP: u64 = 25;
    pub const MADVISE: u64 = 28;
    pub const SHMAT: u64 = 30;
    pub const NANOSLEEP: u64 = 35;
    pub const GETPID: u64 = 39;
    pub const CLONE: u64 = 56;
    pub const FORK: u64 = 57;
    pub const VFORK: u64 = 58;
    pub const EXECVE: u64 = 59;
    pub const EXIT: u64 = 60;
    pub const KILL: u64 = 62;
    pub const SHMDT: u64 = 67;
    pub const GETTIMEOFDAY: u64 = 96;
    pub const GETPPID: u64 = 110;
    pub const RT_SIGPENDING: u64 = 127;
    pub const RT_SIGTIMEDWAIT: u64 = 128;
    pub const RT_SIGSUSPEND: u64 = 130;
    pub const SIGALTSTACK: u64 = 131;
    pub const PRCTL: u64 = 157;
    pub const ARCH_PRCTL: u64 = 158;
    pub const GETTID: u64 = 186;
    pub const TIME: u64 = 201;
    pub const FUTEX: u64 = 202;
    pub const TGKILL: u64 = 234;
    pub const CLOCK_GETTIME: u64 = 228;
    pub const TIMER_CREATE: u64 = 222;
    pub const TIMER_SETTIME: u64 = 223;
    pub const TIMER_DELETE: u64 = 226;
    pub const EXIT_GROUP: u64 = 231;
    pub const OPENAT: u64 = 257;
    pub const PSELECT6: u64 = 270;
    pub const PPOLL: u64 = 271;
    pub const EPOLL_PWAIT: u64 = 281;
    pub const SIGNALFD4: u64 = 289;
    pub const RT_TGSIGQUEUEINFO: u64 = 297;
    pub const GETCPU: u64 = 309;
    pub const PROCESS_VM_READV: u64 = 310;
    pub const EXECVEAT: u64 = 322;
    pub const PKEY_MPROTECT: u64 = 329;
    pub const RSEQ: u64 = 334;
    pub const CLONE3: u64 = 435;
    pub const EPOLL_PWAIT2: u64 = 441;
    pub const MAP_SHADOW_STACK: u64 = 453;
}

/// Protection and mapping bits.
pub mod mm {
    #![allow(missing_docs)]
    pub const PROT_READ: u64 = 1;
    pub const PROT_WRITE: u64 = 2;
    pub const PROT_EXEC: u64 = 4;
    pub const RW: u64 = 3;
    pub const RWX: u64 = 7;
    pub const MAP_SHARED: u64 = 1;
    pub const MAP_PRIVATE: u64 = 2;
    pub const MAP_TYPE: u64 = 0xf;
    pub const MAP_FIXED: u64 = 0x10;
    pub const MAP_ANONYMOUS: u64 = 0x20;
    pub const MAP_NORESERVE: u64 = 0x4000;
    pub const MAP_POPULATE: u64 = 0x8000;
    pub const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;
}

/// Error numbers, as the kernel returns them negated.
pub mod errno {
    #![allow(missing_docs)]
    pub const ESRCH: i64 = 3;
    pub const EINTR: i64 = 4;
    pub const ENOMEM: i64 = 12;
    pub const EFAULT: i64 = 14;
    pub const EEXIST: i64 = 17;
    pub const EINVAL: i64 = 22;
    pub const ENOSYS: i64 = 38;
    pub const ETIMEDOUT: i64 = 110;
}

/// A system call with six arguments. A result in `-4095..0` is a negated error number.
///
/// # Safety
/// The caller answers for what the system call does to this process's memory.
#[inline(always)]
pub unsafe fn call(n: u64, a: [u64; 6]) -> i64 {
    let ret: i64;
    // SAFETY: the kernel preserves all registers but rax, rcx and r11, which are declared; effects on memory
    // are the caller's obligation.
    unsafe {
        asm!("syscall", inlateout("rax") n as i64 => ret, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
             in("r10") a[3], in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _,
             options(nostack));
    }
    ret
}

/// Is this result of a system call an error?
pub fn failed(ret: i64) -> bool {
    (-4095..0).contains(&ret)
}

/// Shared memory of a file: in place of what is at `at`, or anywhere when that is 0. `None` when the kernel refuses.
pub fn map_shared(at: u64, bytes: u64, fd: u64, offset: u64) -> Option<u64> {
    let fixed = if at == 0 { 0 } else { mm::MAP_FIXED };
    let flags = mm::MAP_SHARED | mm::MAP_NORESERVE | fixed;
    // SAFETY: replaces mappings of ours only: the caller names an address of theirs, or none.
    let r = unsafe { call(nr::MMAP, [at, bytes, mm::RW, flags, fd, offset]) };
    if failed(r) {
        return None;
    }
    no_dump(r as u64, bytes);
    Some(r as u64)
}

/// Where the engine's own memory comes from: beside its image, never in the holes of the program's map, which the
/// program may expect to find empty or to get from its next `mmap`.
static NEXT_OWN: AtomicU64 = AtomicU64::new(0x2a40_0000_0000);

/// Anonymous private memory at `hint`, or in the engine's own range when `hint` is 0. `None` when the kernel
/// refuses.
pub fn map_anonymous(hint: u64, bytes: u64, prot: u64, extra_flags: u64) -> Option<u64> {
    let hint = match hint {
        0 => NEXT_OWN.fetch_add(bytes.next_multiple_of(4096), Ordering::Relaxed),
        h => h,
    };
    let flags = mm::MAP_PRIVATE | mm::MAP_ANONYMOUS | mm::MAP_NORESERVE | extra_flags;
    // SAFETY: a new anonymous mapping; MAP_FIXED is only passed over memory that the engine owns.
    let r = unsafe { call(nr::MMAP, [hint, bytes, prot, flags, u64::MAX, 0]) };
    if failed(r) { None } else { Some(r as u64) }
}

/// Asks for huge pages: a sixth of the page faults of a short run were for code cache memory.
pub fn huge_pages(at: u64, bytes: u64) {
    const HUGEPAGE: u64 = 14;
    // SAFETY: advice about our own memory.
    unsafe { call(nr::MADVISE, [at, bytes, HUGEPAGE, 0, 0, 0]) };
}

/// Makes pages of our own present, ready to be written.
pub fn populate(at: u64, bytes: u64) {
    const POPULATE_WRITE: u64 = 23;
    // SAFETY: advice about our own memory; nothing is overwritten.
    unsafe { call(nr::MADVISE, [at, bytes, POPULATE_WRITE, 0, 0, 0]) };
}

/// Leaves a range out of core dumps.
pub fn no_dump(at: u64, bytes: u64) {
    const DONTDUMP: u64 = 16;
    // SAFETY: advice about our own memory.
    unsafe { call(nr::MADVISE, [at, bytes, DONTDUMP, 0, 0, 0]) };
}

/// Writes text to standard error, for the one line about a bug and for verbose runs.
pub fn print(text: &[u8]) {
    // SAFETY: reads `text` only.
    unsafe { call(nr::WRITE, [2, text.as_ptr() as u64, text.len() as u64, 0, 0, 0]) };
}

/// Ends the process.
pub fn exit_group(code: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(nr::EXIT_GROUP, [code as u64, 0, 0, 0, 0, 0]) };
    }
}

/// The calling thread's id.
pub fn gettid() -> u32 {
    // SAFETY: no memory is touched.
    unsafe { call(nr::GETTID, [0; 6]) as u32 }
}

/// Lets other threads run.
pub fn yield_now() {
    // SAFETY: no memory is touched.
    unsafe { call(nr::SCHED_YIELD, [0; 6]) };
}
