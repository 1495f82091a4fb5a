//! What interrupts a thread after each period of its CPU time.
//!
//! | backend | how | rate | descriptors |
//! |---|---|---|---|
//! | `Perf` | a task-clock event of the thread itself, user mode only; its overflow sends our signal to the thread | any | one per thread |
//! | `Timer` | a POSIX timer on the thread's CPU clock | at most the kernel's tick (250 Hz is common) | none |
//!
//! `Perf` needs no privilege up to `perf_event_paranoid` 2. Where it is refused (3 and above, seccomp, no
//! descriptors left) the thread gets a `Timer`; which one it was is part of the result.
//!
//! # Which signal
//! | delivery | signal | needs | kernel's cost per sample, measured in a virtual machine |
//! |---|---|---|---|
//! | `Trap` | `SIGTRAP`, synchronous (`sigtrap` events) | Linux 5.18 | 35 us |
//! | `Signal` | `SIGSTKFLT` through the descriptor's owner | | 55 us: it takes an interrupt of its own |
//! | (the overflow alone, for comparison) | none | | 29 us |
//!
//! Linux before 5.18 kills a program that has `SIGTRAP` blocked when such an event overflows, so there it is not
//! used. Both are standard signals, of which at most one is ever pending. A real-time signal would be queued at
//! every overflow while the program keeps it blocked, and once the queue is full the kernel falls back to
//! `SIGIO`, whose default action kills.
//!
//! # Why user mode only
//! An interrupt in user mode is delivered before the next instruction: no system call is ever interrupted by a
//! `Perf` sample, so the program sees no `EINTR` that it would not see natively. Time in the kernel is not
//! lost: the next sample can tell (`Sample::cpu_ns`). A `Timer` may strike in the kernel; `SA_RESTART`
//! covers most calls (not `poll`, `select`, `epoll_wait`, `nanosleep`, `sem_timedwait` and their kin).
//!
//! # The first period
//! is a random part of the others. A clock that began with a whole period would never see the last part of a thread's
//! life: threads of 1.9 periods would get 1 sample each, and code that runs in short-lived threads half of what it
//! deserves.
//!
//! Descriptors are moved high, out of the way of programs that expect small numbers, and at most a quarter of
//! the limit is used.

use core::cell::Cell;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};
use preload::sys::{self, Errno};

/// What interrupts a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Backend {
    /// Nothing: the thread is not sampled.
    None,
    /// A perf task-clock event.
    Perf,
    /// A POSIX CPU-time timer.
    Timer,
}

/// One thread's clock. Used by that thread only.
#[derive(Debug)]
pub struct Clock {
    backend: Cell<Backend>,
    handle: Cell<i32>,
    /// The period to go on with after the first strike; 0 once it is in force.
    later_ns: Cell<u64>,
}

/// Descriptors in use.
static DESCRIPTORS: AtomicI32 = AtomicI32::new(0);
/// Lowest number that descriptors are moved to.
const DESCRIPTOR_MIN: usize = 200;

// From the kernel's perf_event.h; `libc` has no such structures.
const PERF_TYPE_SOFTWARE: u32 = 1;
const PERF_COUNT_SW_TASK_CLOCK: u64 = 1;
const PERF_FLAG_FD_CLOEXEC: usize = 8;
const PERF_EVENT_IOC_ENABLE: usize = 0x2400;
const PERF_EVENT_IOC_DISABLE: usize = 0x2401;
const PERF_EVENT_IOC_PERIOD: usize = 0x4008_2404;
const ATTR_DISABLED: u64 = 1;
const ATTR_EXCLUDE_KERNEL: u64 = 1 << 5;
const ATTR_EXCLUDE_HV: u64 = 1 << 6;
const ATTR_REMOVE_ON_EXEC: u64 = 1 << 36;
const ATTR_SIGTRAP: u64 = 1 << 37;
/// `si_code` of a trap that an event caused.
pub(crate) const TRAP_PERF: i32 = 6;
/// Marks the traps of our events (`si_perf_data`).
const OURS: u64 = 0x6661_7273_6967_6874;
const F_SETSIG: usize = 10;
const F_SETOWN_EX: usize = 15;
const F_OWNER_TID: i32 = 0;

#[repr(C)]
struct PerfEventAttr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    unused: [u64; 8],
    sig_data: u64,
}

#[repr(C)]
struct OwnerEx {
    kind: i32,
    pid: i32,
}

impl Clock {
    /// A clock that stands still.
    pub const fn new() -> Self {
        Self { backend: Cell::new(Backend::None), handle: Cell::new(-1), later_ns: Cell::new(0) }
    }

    /// Starts the calling thread's clock: perf if `wanted` allows it, else a timer. It strikes first after
    /// `first_ns`, then every `period_ns`.
    pub fn start(&self, wanted: Backend, first_ns: u64, period_ns: u64, number: i32) -> Backend {
        self.later_ns.set(0);
        if wanted == Backend::Perf
            && let Ok(fd) = open_event(first_ns, number)
        {
            self.handle.set(fd);
            self.backend.set(Backend::Perf);
            self.later_ns.set(period_ns);
            // SAFETY: no pointers.
            let _ = unsafe { sys::raw(libc::SYS_ioctl, [fd as usize, PERF_EVENT_IOC_ENABLE, 0, 0, 0, 0]) };
            return Backend::Perf;
        }
        match create_timer(first_ns, period_ns, number) {
            Ok(id) => {
                self.handle.set(id);
                self.backend.set(Backend::Timer);
            }
            Err(_) => self.backend.set(Backend::None),
        }
        self.backend.get()
    }

    /// After a strike: the first one has a period of its own.
    #[inline]
    pub fn struck(&self) {
        let later_ns = self.later_ns.replace(0);
        if later_ns != 0 {
            self.restart(later_ns);
        }
    }

    /// Begins a period of this length now; the next ones have the same length. Of a perf clock only.
    pub fn restart(&self, period_ns: u64) {
        if self.backend.get() == Backend::Perf {
            let args =
                [self.handle.get() as usize, PERF_EVENT_IOC_PERIOD, &raw const period_ns as usize, 0, 0, 0];
            // SAFETY: the kernel reads the live word; the event is ours.
            let _ = unsafe { sys::raw(libc::SYS_ioctl, args) };
        }
    }

    /// Stops the clock for good.
    pub fn stop(&self) {
        let handle = self.handle.replace(-1);
        match self.backend.replace(Backend::None) {
            Backend::Perf => {
                // SAFETY: no pointers.
                let _ = unsafe {
                    sys::raw(libc::SYS_ioctl, [handle as usize, PERF_EVENT_IOC_DISABLE, 0, 0, 0, 0])
                };
                sys::close(handle);
                DESCRIPTORS.fetch_sub(1, Relaxed);
            }
            Backend::Timer => {
                // SAFETY: no pointers; the timer is ours.
                let _ = unsafe { sys::raw(libc::SYS_timer_delete, [handle as usize, 0, 0, 0, 0, 0]) };
            }
            Backend::None => {}
        }
    }

    /// In a forked child: lets go of what it inherited without touching the parent's event. Timers are not
    /// inherited.
    pub fn forked(&self) {
        if self.backend.replace(Backend::None) == Backend::Perf {
            sys::close(self.handle.get());
            DESCRIPTORS.fetch_sub(1, Relaxed);
        }
        self.handle.set(-1);
    }

    /// What interrupts the thread.
    #[inline]
    pub fn backend(&self) -> Backend {
        self.backend.get()
    }

    /// Whether a signal was sent by this clock.
    ///
    /// # Safety
    /// `info` must be what a signal handler was given.
    #[inline]
    pub unsafe fn sent(&self, info: *const libc::siginfo_t) -> bool {
        // SAFETY: by contract. From offset 16 on the kernel fills: for traps an address and the event's data
        // (two words); for descriptors the band (a word) and the number; for timers the timer's id.
        unsafe {
            let code = (*info).si_code;
            let words = info.cast::<i32>();
            match self.backend.get() {
                Backend::Perf if (*info).si_signo == libc::SIGTRAP => {
                    code == TRAP_PERF && *info.cast::<u64>().add(3) == OURS
                }
                // POLL_IN .. POLL_HUP
                Backend::Perf => (1..=6).contains(&code) && *words.add(6) == self.handle.get(),
                Backend::Timer => code == libc::SI_TIMER && *words.add(4) == self.handle.get(),
                Backend::None => false,
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

/// The signals that samples can come with, the cheapest first.
pub fn signals(wanted: Backend) -> impl Iterator<Item = i32> {
    let trap =
        wanted == Backend::Perf && traps_are_safe() && raw_event(1_000_000_000, true).map(sys::close).is_ok();
    trap.then_some(libc::SIGTRAP).into_iter().chain([libc::SIGSTKFLT, libc::SIGVTALRM, libc::SIGPROF])
}

/// Whether this process may have a perf event, and why not.
pub fn perf_permitted() -> sys::Result<()> {
    raw_event(1_000_000_000, false).map(sys::close)
}

/// Length of the kernel's tick if it comes at multiples of its length of `CLOCK_MONOTONIC`, else 0.
pub fn tick_ns() -> u64 {
    if kernel() < [6, 4] {
        return 0;
    }
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let args = [libc::CLOCK_MONOTONIC_COARSE as usize, &raw mut ts as usize, 0, 0, 0, 0];
    // SAFETY: the record is live.
    match unsafe { sys::raw(libc::SYS_clock_getres, args) } {
        Ok(_) => ts.tv_nsec as u64,
        Err(_) => 0,
    }
}

/// Whether the kernel is 5.18 or newer (see the module).
fn traps_are_safe() -> bool {
    kernel() >= [5, 18]
}

/// The kernel's version; zeros if it does not say.
fn kernel() -> [u32; 2] {
    // SAFETY: plain data, filled by the call.
    let mut name: libc::utsname = unsafe { core::mem::zeroed() };
    // SAFETY: the record is live.
    if unsafe { sys::raw(libc::SYS_uname, [&raw mut name as usize, 0, 0, 0, 0, 0]) }.is_err() {
        return [0; 2];
    }
    let mut numbers = [0u32; 2];
    let mut at = 0;
    for &byte in &name.release {
        match (byte as u8, numbers.get_mut(at)) {
            (digit @ b'0'..=b'9', Some(number)) => *number = *number * 10 % 100_000 + (digit - b'0') as u32,
            (b'.', Some(_)) => at += 1,
            _ => break,
        }
    }
    numbers
}

fn raw_event(period_ns: u64, trap: bool) -> sys::Result<i32> {
    /// Size of the structure before `sig_data` came, which any kernel knows.
    const SIZE_WITHOUT_TRAP: u32 = 64;
    let attr = PerfEventAttr {
        kind: PERF_TYPE_SOFTWARE,
        size: if trap { size_of::<PerfEventAttr>() as u32 } else { SIZE_WITHOUT_TRAP },
        config: PERF_COUNT_SW_TASK_CLOCK,
        sample_period: period_ns,
        sample_type: 0,
        read_format: 0,
        flags: ATTR_DISABLED
            | ATTR_EXCLUDE_KERNEL
            | ATTR_EXCLUDE_HV
            | if trap { ATTR_SIGTRAP | ATTR_REMOVE_ON_EXEC } else { 0 },
        wakeup_events: 1,
        bp_type: 0,
        unused: [0; 8],
        sig_data: OURS,
    };
    // This thread (0), any CPU (-1), no group (-1).
    let args = [&raw const attr as usize, 0, usize::MAX, usize::MAX, PERF_FLAG_FD_CLOEXEC, 0];
    // SAFETY: the attribute is live and says its own size.
    unsafe { sys::raw(libc::SYS_perf_event_open, args) }.map(|fd| fd as i32)
}

fn open_event(period_ns: u64, signal: i32) -> sys::Result<i32> {
    let limit = sys::soft_limit(libc::RLIMIT_NOFILE);
    if DESCRIPTORS.fetch_add(1, Relaxed) as usize >= limit / 4 {
        DESCRIPTORS.fetch_sub(1, Relaxed);
        return Err(Errno(libc::EMFILE));
    }
    let trap = signal == libc::SIGTRAP;
    let opened = raw_event(period_ns, trap).and_then(|low| {
        let fcntl = |fd: i32, command: usize, argument: usize| {
            // SAFETY: the only pointer passed is the live owner record below.
            unsafe { sys::raw(libc::SYS_fcntl, [fd as usize, command, argument, 0, 0, 0]) }
        };
        let high = DESCRIPTOR_MIN.min(limit / 2);
        let fd = match fcntl(low, libc::F_DUPFD_CLOEXEC as usize, high) {
            Ok(fd) => {
                sys::close(low);
                fd as i32
            }
            Err(_) => low,
        };
        if trap {
            return Ok(fd);
        }
        let owner = OwnerEx { kind: F_OWNER_TID, pid: sys::gettid() as i32 };
        let setup = fcntl(fd, F_SETOWN_EX, &raw const owner as usize)
            .and_then(|_| fcntl(fd, F_SETSIG, signal as usize))
            .and_then(|_| fcntl(fd, libc::F_SETFL as usize, (libc::O_ASYNC | libc::O_NONBLOCK) as usize));
        match setup {
            Ok(_) => Ok(fd),
            Err(e) => {
                sys::close(fd);
                Err(e)
            }
        }
    });
    if opened.is_err() {
        DESCRIPTORS.fetch_sub(1, Relaxed);
    }
    opened
}

fn create_timer(first_ns: u64, period_ns: u64, signal: i32) -> sys::Result<i32> {
    // SAFETY: plain data.
    let mut event: libc::sigevent = unsafe { core::mem::zeroed() };
    event.sigev_notify = libc::SIGEV_THREAD_ID;
    event.sigev_signo = signal;
    event.sigev_notify_thread_id = sys::gettid() as i32;
    let mut id: i32 = 0;
    let clock = libc::CLOCK_THREAD_CPUTIME_ID as usize;
    let args = [clock, &raw mut event as usize, &raw mut id as usize, 0, 0, 0];
    // SAFETY: both records are live; the kernel writes an int.
    unsafe { sys::raw(libc::SYS_timer_create, args) }?;
    let time = |ns: u64| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as i64,
        tv_nsec: (ns % 1_000_000_000) as i64,
    };
    let spec = libc::itimerspec { it_interval: time(period_ns), it_value: time(first_ns) };
    let args = [id as usize, 0, &raw const spec as usize, 0, 0, 0];
    // SAFETY: the record is live.
    match unsafe { sys::raw(libc::SYS_timer_settime, args) } {
        Ok(_) => Ok(id),
        Err(e) => {
            // SAFETY: no pointers; the timer is ours.
            let _ = unsafe { sys::raw(libc::SYS_timer_delete, [id as usize, 0, 0, 0, 0, 0]) };
            Err(e)
        }
    }
}
