//! The process in the profile: its beginning, its end, its names, and what becomes of a forked child.
//!
//! ```text
//! started    (followed: names written, landmarks waited for)  begin
//! forked     memory of its own at the parent's addresses, everything that led into the parent's forgotten  begin
//! ended      the time and the CPU time, for whoever cannot ask the kernel: the launcher is not a child's parent
//! ```
//! A process that is followed (`preload::seat`) also lists what it executes, so that the launcher can say which of these
//! programs could not be followed.
//!
//! Never: waits longer than a fraction of a second for the launcher; writes into the parent's memory in a child that
//! has its own.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};
use preload::{AfterFork, Ending, Executing, Hooks, Origin, Thread, seat, sys, thread};
use sampler::module;
use wire::idle::{self, Executed, Header, ended, executed, problem};

use crate::{ARENA, Idle, Local, effort, header, lock, publish, slot};

/// Longest wait for landmarks: the launcher reads the executable's symbols, once for all processes that run it.
const GO_NS_MAX: u64 = 500_000_000;
/// Programs that are listed.
const EXECUTED_MAX: u32 = 64;

static FOLLOWED: AtomicBool = AtomicBool::new(false);
static EXECUTED: AtomicU32 = AtomicU32::new(0);

/// A word of the header.
fn word(field: impl FnOnce(*mut Header) -> *mut u32) -> &'static AtomicU32 {
    // SAFETY: only after the header was mapped, for good; callers name one of its words.
    unsafe { AtomicU32::from_ptr(field(header())) }
}

/// Likewise.
fn long(field: impl FnOnce(*mut Header) -> *mut u64) -> &'static AtomicU64 {
    // SAFETY: as in `word`.
    unsafe { AtomicU64::from_ptr(field(header())) }
}

macro_rules! field {
    ($kind:ident, $field:ident) => {
        // SAFETY: takes the address of a field of the mapped header.
        $kind(|header| unsafe { &raw mut (*header).$field })
    };
}

/// Whether executed programs and forked children are profiled too.
pub fn is_followed() -> bool {
    FOLLOWED.load(Relaxed)
}

/// Says who this is, and waits for what the launcher knows of the program. Before `main`, in a run that is followed.
pub fn introduce() {
    FOLLOWED.store(true, Relaxed);
    // SAFETY: both ranges are inside the first page of the file, which nobody else writes.
    let (program, command) = unsafe {
        let range = |offset: u64, bytes: usize| {
            &mut *core::ptr::slice_from_raw_parts_mut(ARENA.base().add(offset as usize), bytes)
        };
        (range(idle::PROGRAM_OFFSET, idle::PROGRAM_BYTES), range(idle::COMMAND_OFFSET, idle::COMMAND_BYTES))
    };
    field!(word, program_len).store(sys::read_link(c"/proc/self/exe", program) as u32, Relaxed);
    field!(word, command_len).store(sys::read_into(c"/proc/self/cmdline", command) as u32, Relaxed);
    field!(word, asked).store(1, Release);
    seat::call();
    let go = field!(word, go);
    let until = effort::clock_ns() + GO_NS_MAX;
    while go.load(Acquire) == 0 {
        let now = effort::clock_ns();
        if now >= until {
            break;
        }
        sys::futex_wait(go, 0, until - now);
    }
}

/// The profile begins here.
pub fn begin(header: &mut Header) {
    header.start_ns = effort::clock_ns();
    header.start_cpu_ns = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
    header.start_process_cpu_ns = sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    header.base = core::ptr::from_ref(header) as u64;
}

/// The process is about to end, or to become another program.
pub fn ending(ending: Ending) {
    let how = if ending == Ending::Exec { ended::EXEC } else { ended::ENDED };
    field!(long, end_ns).store(crate::effort().now_ns(), Relaxed);
    field!(long, end_cpu_ns).store(sys::clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID), Relaxed);
    field!(word, ended).store(how, Release);
}

/// In a forked child.
pub fn forked(own: Option<&Thread<Local>>) -> AfterFork {
    thread::for_each::<Idle>(|thread| thread.local().sampler.forked());
    let fd = match own {
        Some(_) if is_followed() => seat::open_forked(),
        _ => None,
    };
    let (Some(own), Some(fd)) = (own, fd) else {
        field!(long, problems).fetch_or(problem::FORKED, Relaxed);
        return AfterFork::Leave;
    };
    let program_len = field!(word, program_len).load(Relaxed);
    let command_len = field!(word, command_len).load(Relaxed);
    let backend = field!(word, backend).load(Relaxed);
    // SAFETY: this is the only thread; what led into the old memory is forgotten below, before anything is taken.
    let moved = unsafe {
        let mut names = [0u8; idle::PROGRAM_BYTES + idle::COMMAND_BYTES];
        let at = ARENA.base().add(idle::PROGRAM_OFFSET as usize);
        names.as_mut_ptr().copy_from_nonoverlapping(at, names.len());
        let moved = ARENA.share_anew(fd, idle::FILE_BYTES as usize, idle::ARENA_OFFSET as usize);
        if moved.is_ok() {
            at.copy_from_nonoverlapping(names.as_ptr(), names.len());
        }
        moved
    };
    sys::close(fd);
    if moved.is_err() {
        return AfterFork::Leave;
    }
    let _ = sys::advise(ARENA.base(), idle::FILE_BYTES as usize, libc::MADV_DONTDUMP);
    thread::for_each_slot::<Idle>(|thread| {
        let local = thread.local();
        local.sampler.forked();
        local.tree.forget();
        local.slot.forget();
        // SAFETY: the only thread, outside of its handler, whose clock stands still.
        unsafe { (*local.line.get()).forget() };
        local.stays.forked(core::ptr::eq(thread, own));
        local.ompt.forked();
        local.wait_start_ns.set(0);
    });
    slot::forked();
    publish::forked();
    module::forked();
    EXECUTED.store(0, Relaxed);
    // SAFETY: the new header, which only this thread knows.
    let header = unsafe { &mut *header() };
    (header.program_len, header.command_len, header.backend) = (program_len, command_len, backend);
    if lock::install().is_err() {
        return AfterFork::Leave;
    }
    begin(header);
    Idle::thread_started(own, Origin::Main);
    field!(word, asked).store(1, Release);
    seat::call();
    AfterFork::Follow
}

/// Another program is about to be executed.
pub fn executing(program: Executing<'_>) {
    let flags = if program.searched { executed::SEARCHED } else { 0 }
        | if program.led { 0 } else { executed::CUT_OFF };
    let head = field!(long, executed);
    let mut at = head.load(Acquire);
    while at != 0 {
        // SAFETY: records of the arena, complete before the list shows them, never freed.
        let record = unsafe { &*ARENA.base().add(at as usize).cast::<Executed>() };
        if record.path.get(..record.path_len as usize) == Some(program.path) && record.flags == flags {
            return;
        }
        at = record.next;
    }
    let mut path = [0; 256];
    if program.path.len() > path.len() || EXECUTED.fetch_add(1, Relaxed) >= EXECUTED_MAX {
        return;
    }
    for (to, &from) in path.iter_mut().zip(program.path) {
        *to = from;
    }
    let Some(memory): Option<NonNull<Executed>> = ARENA.take_array(1) else { return };
    let mut next = head.load(Acquire);
    loop {
        // SAFETY: fresh memory that nobody sees before the exchange.
        unsafe { memory.write(Executed { next, path_len: program.path.len() as u32, flags, path }) };
        match head.compare_exchange(next, ARENA.offset_of(memory), AcqRel, Acquire) {
            Ok(_) => return,
            Err(now) => next = now,
        }
    }
}
