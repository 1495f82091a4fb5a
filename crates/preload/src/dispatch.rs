//! System calls that the program makes without libc, caught by the kernel (syscall user dispatch, Linux 5.11).
//!
//! A thread that is *armed* gets `SIGSYS` for every system call whose instruction is not in libc's code. Ours come from there,
//! too, once a thread is armed: through a `syscall` instruction of libc's own ([`sys::go_through`]).
//!
//! | call | what becomes of it |
//! |---|---|
//! | futex operations | made by the handler, as if the program had called `syscall`: hooks and all |
//! | harmless ones ([`MADE_FOR_IT`]) | made by the handler |
//! | others (`clone`, signal masks, ...) | the thread's gate is opened and the instruction run again; [`rearm`] closes it |
//!
//! A caught call takes 2 us more (measured in a virtual machine), any other of an armed thread 0.1 us. Nobody is
//! armed unless a runtime asks.
//!
//! # Never
//! - in a program that has an action of its own for `SIGSYS`, or gets one: then all gates stay open for ever;
//! - a thread that blocks `SIGSYS`: the kernel would kill the program at the next call. The wrappers keep that signal out of
//!   the program's sets and masks once [`prepare`] was called; [`arm`] and [`rearm`] are told what the thread blocks, and
//!   who changes its mask without libc has its gate opened by that very call;
//! - in a program with code of Go's, which sets actions without libc, with masks of their own.

use crate::abi::*;
use crate::hooks::Hooks;
use crate::thread::Thread;
use crate::{errno, process, real, signal, sys, thread, wrap};
use core::ffi::c_void;
use core::mem::zeroed;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

const PR_SET_SYSCALL_USER_DISPATCH: usize = 59;
const PR_SYS_DISPATCH_OFF: usize = 0;
const PR_SYS_DISPATCH_ON: usize = 1;
/// `si_code` of a caught call.
const SYS_USER_DISPATCH: i32 = 2;
/// States of a thread's gate, as the kernel reads them.
const OPEN: u8 = 0;
const CLOSED: u8 = 1;
/// Bytes of a `syscall` instruction.
const INSTRUCTION_BYTES: i64 = 2;
/// Owner and kind of the note that Go's linker leaves.
const GO: &[u8] = b"\x04\0\0\0Go\0\0";
/// Where in a small function of libc's its `syscall` instruction and return are looked for.
const LOOK_BYTES: usize = 24;

/// Calls that are the same from a handler: they look neither at the stack nor at the thread's signals.
const MADE_FOR_IT: [i64; 17] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_poll,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_madvise,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_tgkill,
    libc::SYS_epoll_wait,
    libc::SYS_epoll_ctl,
    libc::SYS_close,
];

/// Where libc's code is; no bytes before [`prepare`] or if that failed.
static LIBC_START: AtomicUsize = AtomicUsize::new(0);
static LIBC_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Address of libc's instruction.
static INSTRUCTION: AtomicUsize = AtomicUsize::new(0);
static INSTALLED: AtomicBool = AtomicBool::new(false);
static FORBIDDEN: AtomicBool = AtomicBool::new(false);
static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Caught calls so far.
pub fn caught() -> u64 {
    CAUGHT.load(Relaxed)
}

/// Finds libc's code, and keeps `SIGSYS` out of the program's masks from now on. Once, before `main`. Whether threads can be
/// armed, as far as is known.
pub fn prepare() -> bool {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, wanted: *mut c_void) -> i32 {
        // SAFETY: the linker passes a live record; its headers are mapped, and so are notes.
        unsafe {
            let (info, wanted) = (&*info, wanted as usize);
            let headers = core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into());
            for header in headers {
                let (start, bytes) = ((info.dlpi_addr + header.p_vaddr) as usize, header.p_memsz as usize);
                let is_code = header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0;
                if is_code && (start..start + bytes).contains(&wanted) {
                    LIBC_START.store(start, Relaxed);
                    LIBC_BYTES.store(bytes, Relaxed);
                }
                let note = || core::slice::from_raw_parts(start as *const u8, bytes);
                if header.p_type == libc::PT_NOTE && note().windows(GO.len()).any(|part| part == GO) {
                    FORBIDDEN.store(true, Relaxed);
                }
            }
            0
        }
    }
    static SLOT: real::Slot = real::Slot::new();
    let function = SLOT.get(c"getppid") as usize;
    if function == 0 {
        return false;
    }
    // SAFETY: code of libc's is readable, and no function lies at the very end of it.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, LOOK_BYTES) };
    let Some(at) = code.windows(3).position(|bytes| bytes == [0x0f, 0x05, 0xc3]) else { return false };
    // SAFETY: the function has the right type; its argument is an address that is only compared.
    unsafe { libc::dl_iterate_phdr(Some(visit), function as *mut c_void) };
    if LIBC_BYTES.load(Relaxed) == 0 || FORBIDDEN.load(Relaxed) {
        return false;
    }
    INSTRUCTION.store(function + at, Relaxed);
    signal::keep_open(libc::SIGSYS);
    true
}

/// Arms the calling thread. `blocked`: the signals that it blocks outside of our handler. Whether it is armed now.
pub fn arm<H: Hooks>(thread: &'static Thread<H::Local>, blocked: u64) -> bool {
    if thread.armed() {
        return rearm(thread, blocked);
    }
    if FORBIDDEN.load(Relaxed) || blocked & signal::bit(libc::SIGSYS) != 0 || !install::<H>() {
        return false;
    }
    let gate = thread.gate();
    gate.store(OPEN, Relaxed);
    let (start, bytes) = (LIBC_START.load(Relaxed), LIBC_BYTES.load(Relaxed));
    let args = [PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, start, bytes, gate.as_ptr() as usize, 0];
    // SAFETY: the gate is a byte of the thread's slot, which is never unmapped.
    if unsafe { sys::raw(libc::SYS_prctl, args) }.is_err() {
        FORBIDDEN.store(true, Relaxed);
        return false;
    }
    thread.set_armed();
    gate.store(CLOSED, Relaxed);
    true
}

/// Closes the gate of an armed thread again.
pub fn rearm<L>(thread: &Thread<L>, blocked: u64) -> bool {
    let may = thread.armed() && !FORBIDDEN.load(Relaxed) && blocked & signal::bit(libc::SIGSYS) == 0;
    if may {
        thread.gate().store(CLOSED, Relaxed);
    }
    may
}

/// Opens the calling thread's gate: it is about to change what it blocks.
pub(crate) fn open<H: Hooks>() {
    if let Some(thread) = thread::known::<H::Local>() {
        thread.gate().store(OPEN, Relaxed);
    }
}

/// The thread ends: the kernel must not look at the gate any more, which will be another thread's.
pub(crate) fn disarm<L>(thread: &Thread<L>) {
    if thread.armed() {
        let args = [PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_OFF, 0, 0, 0, 0];
        // SAFETY: no pointers.
        let _ = unsafe { sys::raw(libc::SYS_prctl, args) };
        thread.disarmed();
    }
}

/// Whether `SIGSYS` has, or had, our handler.
pub(crate) fn has_handler() -> bool {
    INSTALLED.load(Relaxed) && !FORBIDDEN.load(Relaxed)
}

/// Nobody is armed from now on: the program sets an action of its own for `SIGSYS`.
pub(crate) fn forbid<H: Hooks>() {
    if !FORBIDDEN.swap(true, SeqCst) {
        thread::for_each::<H>(|thread| thread.gate().store(OPEN, Relaxed));
    }
}

/// Installs the handler; whether that is, or has been, possible.
fn install<H: Hooks>() -> bool {
    if INSTALLED.load(Acquire) {
        return true;
    }
    if LIBC_BYTES.load(Relaxed) == 0 {
        return false;
    }
    // SAFETY: plain data; asks only.
    let default = unsafe {
        let mut old: libc::sigaction = zeroed();
        real::sigaction(libc::SIGSYS, core::ptr::null_mut(), &raw mut old as Ptr) == 0
            && old.sa_sigaction == libc::SIG_DFL
    };
    if !default {
        FORBIDDEN.store(true, Relaxed);
        return false;
    }
    sys::go_through(INSTRUCTION.load(Relaxed));
    // SAFETY: plain data; the handler has the three-argument form. Signals stay as they were, since a caught call may wait.
    let done = unsafe {
        let mut new: libc::sigaction = zeroed();
        new.sa_sigaction = on_call::<H> as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER | libc::SA_ONSTACK | libc::SA_RESTART;
        real::sigaction(libc::SIGSYS, &raw mut new as Ptr, core::ptr::null_mut()) == 0
    };
    INSTALLED.store(done, Release);
    done
}

extern "C-unwind" fn on_call<H: Hooks>(_: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes live records.
    let (code, context) = unsafe { ((*info).si_code, &mut *context.cast::<libc::ucontext_t>()) };
    let (Some(thread), SYS_USER_DISPATCH) = (thread::known::<H::Local>(), code) else {
        return die();
    };
    thread.gate().store(OPEN, Relaxed);
    let registers = &mut context.uc_mcontext.gregs;
    let word = |register: i32| registers.get(register as usize).map_or(0, |w| *w as usize);
    let number = word(libc::REG_RAX) as i64;
    let [a, b, c] = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX].map(word);
    let [d, e, f] = [libc::REG_R10, libc::REG_R8, libc::REG_R9].map(word);
    let result = if wrap::is_futex(number) {
        CAUGHT.fetch_add(1, Relaxed);
        let before = errno::get();
        // SAFETY: the program's own call.
        let result = unsafe { wrap::syscall::<H>(number, a, b, c, d, e, f) };
        let result = if result == -1 { -i64::from(errno::get()) } else { result };
        errno::set(before);
        Some(result)
    } else if MADE_FOR_IT.contains(&number) {
        // SAFETY: as above.
        Some(match unsafe { sys::raw(number, [a, b, c, d, e, f]) } {
            Ok(value) => value as i64,
            Err(sys::Errno(number)) => -i64::from(number),
        })
    } else {
        None
    };
    match result {
        Some(result) => {
            if let Some(rax) = registers.get_mut(libc::REG_RAX as usize) {
                *rax = result;
            }
            // SAFETY: a set begins with the kernel's eight bytes.
            let blocked = unsafe { (&raw const context.uc_sigmask).cast::<u64>().read() };
            rearm(thread, blocked);
        }
        None => {
            // The registers are as before the call, but for the instruction pointer.
            if let Some(rip) = registers.get_mut(libc::REG_RIP as usize) {
                *rip -= INSTRUCTION_BYTES;
            }
        }
    }
}

/// A `SIGSYS` that is not ours: by default it kills.
#[cold]
fn die() {
    process::complain("the program made a system call that it is not permitted to make");
    // SAFETY: plain data; restores the default and sends a signal to this thread.
    unsafe {
        let mut default: libc::sigaction = zeroed();
        real::sigaction(libc::SIGSYS, &raw mut default as Ptr, core::ptr::null_mut());
        let target = [sys::getpid() as usize, sys::gettid() as usize, libc::SIGSYS as usize, 0, 0, 0];
        let _ = sys::raw(libc::SYS_tgkill, target);
    }
}
