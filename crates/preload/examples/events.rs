//! A runtime that counts what the hooks see, for the tests and as the smallest example of one.
//!
//! `LD_PRELOAD=libevents.so FARSIGHT_EVENTS=file program` appends one line per ending to the file:
//! `ending NAME` and then `event count` pairs, summed over all threads there ever were. With
//! `FARSIGHT_EVENTS_TRACE=1` every event is also written as a line while it happens.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};
use preload::{
    AfterFork, Ending, Hooks, Interest, Lock, Origin, Outcome, Thread, Wait, Wake, process, sys, thread,
};

struct Events;

static OUT: AtomicI32 = AtomicI32::new(-1);
static TRACE: AtomicI32 = AtomicI32::new(0);

const NAMES: [&str; 14] = [
    "acquired",
    "contended",
    "released",
    "waits",
    "failed",
    "cancelled",
    "wakes",
    "created",
    "started",
    "unknown",
    "ended",
    "futex-waits",
    "futex-wakes",
    "unloaded",
];

macro_rules! trace {
    ($thread:expr, $($what:tt)*) => {
        if TRACE.load(Relaxed) != 0 {
            write_trace($thread.serial(), format_args!($($what)*));
        }
    };
}

#[derive(Default)]
struct Counts([AtomicU64; NAMES.len()]);

impl Counts {
    fn add(&self, which: usize) {
        // Only the owning thread writes: no read-modify-write instruction is needed.
        let cell = &self.0[which];
        cell.store(cell.load(Relaxed) + 1, Relaxed);
    }
}

impl Hooks for Events {
    type Local = Counts;
    const INTEREST: Interest = Interest::ALL;

    fn new_local() -> Counts {
        Counts::default()
    }

    fn start() -> bool {
        // SAFETY: before `main`, in the only thread: nobody changes the environment.
        let (path, trace) = unsafe {
            (libc::getenv(c"FARSIGHT_EVENTS".as_ptr()), libc::getenv(c"FARSIGHT_EVENTS_TRACE".as_ptr()))
        };
        if path.is_null() {
            return false;
        }
        TRACE.store(!trace.is_null() as i32, Relaxed);
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: a terminated path.
        match unsafe { sys::raw(libc::SYS_open, [path as usize, flags as usize, 0o644, 0, 0, 0]) } {
            Ok(fd) => OUT.store(fd as i32, Relaxed),
            Err(_) => {
                process::complain("cannot write the file in FARSIGHT_EVENTS");
                return false;
            }
        }
        true
    }

    fn before_wait(thread: &Thread<Counts>, wait: Wait) {
        trace!(thread, "before_wait {:?}", wait.kind);
        thread.local().add(3);
        if wait.kind == preload::WaitKind::Futex {
            thread.local().add(11);
        }
    }

    fn after_wait(thread: &Thread<Counts>, wait: Wait, outcome: Outcome) {
        trace!(thread, "after_wait {:?} {outcome:?}", wait.kind);
        match outcome {
            Outcome::Done => {}
            Outcome::Failed => thread.local().add(4),
            Outcome::Cancelled => thread.local().add(5),
        }
    }

    fn before_wake(thread: &Thread<Counts>, wake: Wake) {
        trace!(thread, "before_wake {:?}", wake.kind);
        thread.local().add(6);
        if wake.kind == preload::WakeKind::Futex {
            thread.local().add(12);
        }
    }

    fn acquired(thread: &Thread<Counts>, lock: Lock, contended: bool) {
        trace!(thread, "acquired {:?} {contended}", lock.kind);
        thread.local().add(contended as usize);
    }

    fn released(thread: &Thread<Counts>, lock: Lock) {
        trace!(thread, "released {:?}", lock.kind);
        thread.local().add(2);
    }

    fn thread_created(parent: &Thread<Counts>) -> u64 {
        parent.local().add(7);
        parent.serial() + 1000
    }

    fn thread_started(thread: &Thread<Counts>, origin: Origin) {
        trace!(thread, "started {origin:?}");
        thread.local().add(if origin == Origin::Unknown { 9 } else { 8 });
    }

    fn thread_ended(thread: &Thread<Counts>) {
        trace!(thread, "ended");
        thread.local().add(10);
    }

    fn forked(_: Option<&Thread<Counts>>) -> AfterFork {
        AfterFork::Leave
    }

    fn unloading(closed: bool) {
        if closed && let Some(thread) = thread::known::<Counts>() {
            thread.local().add(13);
        }
    }

    fn ending(ending: Ending) {
        let mut sums = [0; NAMES.len()];
        thread::for_each_slot::<Self>(|thread| {
            for (sum, count) in sums.iter_mut().zip(&thread.local().0) {
                *sum += count.load(Relaxed);
            }
        });
        let mut line = Line::default();
        use core::fmt::Write;
        let _ = write!(line, "ending {ending:?}");
        for (name, sum) in NAMES.iter().zip(sums) {
            let _ = write!(line, " {name} {sum}");
        }
        line.end(OUT.load(Relaxed));
    }
}

#[cold]
#[inline(never)]
fn write_trace(serial: u64, what: core::fmt::Arguments) {
    use core::fmt::Write;
    let mut line = Line::default();
    let _ = write!(line, "trace {serial} {what}");
    line.end(OUT.load(Relaxed));
}

/// A line that is built without allocating and written at once.
struct Line {
    bytes: [u8; 512],
    len: usize,
}

impl Default for Line {
    fn default() -> Self {
        Self { bytes: [0; 512], len: 0 }
    }
}

impl core::fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for &byte in text.as_bytes() {
            if let Some(place) = self.bytes.get_mut(self.len) {
                *place = byte;
                self.len += 1;
            }
        }
        Ok(())
    }
}

impl Line {
    fn end(mut self, fd: i32) {
        let last = self.len.min(self.bytes.len() - 1);
        self.bytes[last] = b'\n';
        sys::write_all(fd, &self.bytes[..=last]);
    }
}

preload::interpose!(Events);
