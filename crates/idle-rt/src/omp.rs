//! OpenMP on gcc's libgomp, by its entry points.
//!
//! libgomp has no tools interface, and its waits are system calls of its own. But every region and every task is handed to
//! it as a function and an argument: the wrappers of its entry points (in the library that is preloaded) put a function of ours
//! in between. A thread of a team works while it is inside one of these, and is idle in between (in the team's
//! barrier, whether it spins or sleeps). The wrapper's frame is alive on the creating thread's stack for as long as
//! the region is, so the registers kept in it lead to the region's logical callers.
//!
//! Where libomp stands in for libgomp, these entry points are libomp's: they are left as they are, and `ompt` is told of
//! everything.
//!
//! A task stands below the region that it was created in, not below the task that created it: that frame may be gone.

use crate::agent::{Agent, Bichord, Creator};
use crate::{Idle, Local, OURS, ompt};
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use preload::{Thread, thread};
use sampler::Frame;
use sampler::regs::Regs;
use wire::idle::task;

/// What regions and tasks run.
pub type Body = unsafe extern "C-unwind" fn(*mut c_void);
/// Copies a task's argument.
pub type Copy = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void);

/// Parts of regions and tasks that one thread may be in at once; deeper ones keep their physical path.
const NESTED_MAX: usize = 32;
/// How far above a frame's stack pointer our mark in it may lie.
const FRAME_BYTES_MAX: usize = 512;

/// Whether libomp serves libgomp's entry points.
static ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// Before anything runs.
pub fn install(elsewhere: bool) {
    ELSEWHERE.store(elsewhere, Relaxed);
}

/// The calling thread, if its regions and tasks are ours to see.
fn current() -> Option<&'static Thread<Local>> {
    if ELSEWHERE.load(Relaxed) { None } else { thread::current::<Idle>() }
}

/// A parallel region: what it runs and where it was met. On the stack of the thread that met it.
#[derive(Debug)]
pub struct Region {
    body: Body,
    data: *mut c_void,
    met: Met,
}

/// Where a region was met: registers of a frame that outlives it, and the thread.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// To walk from.
    pub regs: Regs,
    /// Address of the thread's slot.
    pub slot: usize,
}

/// A stay of a thread in a region or a task.
#[derive(Clone, Copy, Debug)]
struct Stay {
    /// An address in the frame of ours that runs the body.
    mark: usize,
    region: *const Met,
    /// The thread met the region itself: its physical callers are the logical ones.
    own: bool,
    kind: u64,
}

/// What is kept per thread.
#[derive(Debug)]
pub struct Stays {
    list: [Cell<Option<Stay>>; NESTED_MAX],
    len: Cell<usize>,
}

impl Stays {
    /// None.
    pub const fn new() -> Self {
        Self { list: [const { Cell::new(None) }; NESTED_MAX], len: Cell::new(0) }
    }

    /// In a forked child: of the regions only those remain that the thread has met itself. None of another thread's.
    pub fn forked(&self, is_own: bool) {
        if !is_own {
            self.len.set(0);
        }
        for place in &self.list {
            place.set(
                place.get().map(|stay| Stay {
                    region: if stay.own { stay.region } else { core::ptr::null() },
                    ..stay
                }),
            );
        }
    }

    fn push(&self, stay: Stay) {
        if let Some(place) = self.list.get(self.len.get()) {
            place.set(Some(stay));
        }
        self.len.set(self.len.get() + 1);
    }

    fn pop(&self) {
        self.len.set(self.len.get().saturating_sub(1));
    }

    /// The region that the thread is in.
    fn region(&self) -> *const Met {
        let last = self.len.get().min(NESTED_MAX).checked_sub(1).and_then(|i| self.list.get(i));
        last.and_then(Cell::get).map_or(core::ptr::null(), |stay| stay.region)
    }

    /// The stay whose frame begins at a stack pointer.
    fn at(&self, sp: usize) -> Option<Stay> {
        let used = self.list.iter().take(self.len.get());
        used.rev().filter_map(Cell::get).find(|s| s.mark >= sp && s.mark - sp < FRAME_BYTES_MAX)
    }
}

impl Default for Stays {
    fn default() -> Self {
        Self::new()
    }
}

/// The agent: claims our own frames that run bodies.
#[derive(Debug)]
pub struct OpenMp;

impl OpenMp {
    /// Whether a frame is one of ours in the middle of a path.
    #[inline]
    pub fn claims(frame: &Frame) -> bool {
        frame.key.serial() == OURS.load(Relaxed) as u16 || ompt::claims(frame)
    }
}

impl Agent for OpenMp {
    fn step(&self, frame: &Frame, owner: &Thread<Local>, inner: bool) -> Bichord {
        if ompt::claims(frame) {
            // Around the program's own frames libomp is the scheduler; inside of them it works for them.
            return match owner.local().ompt.creator() {
                Some((kind, met)) if inner => Bichord::Created(kind, Creator::Registers(met.regs, met.slot)),
                _ => Bichord::Native,
            };
        }
        match owner.local().stays.at(frame.regs.sp() as usize) {
            Some(stay) if !stay.own && !stay.region.is_null() => {
                // SAFETY: a region outlives the stays in it: it is on the stack of the thread that waits for them.
                let (regs, slot) = unsafe { ((*stay.region).regs, (*stay.region).slot) };
                Bichord::Created(stay.kind, Creator::Registers(regs, slot))
            }
            _ => Bichord::Hidden,
        }
    }
}

/// Runs `body` as a part of `region`.
///
/// # Safety
/// As for the body itself.
#[inline(always)]
unsafe fn stay(region: *const Met, kind: u64, body: Body, data: *mut c_void) {
    let Some(thread) = thread::current::<Idle>() else {
        // SAFETY: the caller's.
        return unsafe { body(data) };
    };
    let local = thread.local();
    let mark = 0u8;
    // SAFETY: null or a region that is alive.
    let own =
        kind == task::OMP_REGION && unsafe { region.as_ref() }.is_some_and(|r| r.slot == address(thread));
    let depth = thread.busy(|| {
        local.stays.push(Stay { mark: core::hint::black_box(&raw const mark) as usize, region, own, kind });
        local.wake()
    });
    // SAFETY: the caller's.
    unsafe { body(data) };
    thread.busy(|| {
        local.stays.pop();
        // A thread of the team has nothing to do now but wait for the others.
        local.sleep(if kind == task::OMP_REGION { depth.max(1) } else { depth });
    });
    core::hint::black_box(&mark);
}

fn address(thread: &Thread<Local>) -> usize {
    core::ptr::from_ref(thread) as usize
}

unsafe extern "C-unwind" fn run_region(region: *mut c_void) {
    // SAFETY: `region` passes a live one, whose body and data are the program's.
    unsafe {
        let region = region.cast::<Region>();
        stay(&raw const (*region).met, task::OMP_REGION, (*region).body, (*region).data);
    }
}

/// Calls `call` with a body of ours in place of the program's.
///
/// # Safety
/// `call` must run the body it is given like the program's, and be over with it when it returns.
#[inline(always)]
pub unsafe fn region<R>(body: Body, data: *mut c_void, call: impl FnOnce(Body, *mut c_void) -> R) -> R {
    let Some(thread) = current() else { return call(body, data) };
    let local = thread.local();
    crate::count_region();
    let region = Region { body, data, met: Met { regs: Regs::here(), slot: address(thread) } };
    let result = call(run_region, (&raw const region).cast_mut().cast());
    // All are done; the thread itself goes on.
    thread.busy(|| local.wake());
    core::hint::black_box(&region);
    result
}

/// Surrounds a wait for other threads of the team. Tasks that run inside it count as work.
#[inline(always)]
pub fn waiting<R>(call: impl FnOnce() -> R) -> R {
    let Some(thread) = current() else { return call() };
    let local = thread.local();
    let depth = thread.busy(|| {
        let depth = local.idle_depth.get();
        local.sleep(depth + 1);
        depth
    });
    let result = call();
    thread.busy(|| {
        if depth == 0 {
            local.wake();
        } else {
            local.sleep(depth);
        }
    });
    result
}

/// What stands before a task's own argument.
#[repr(C)]
struct TaskHead {
    body: Body,
    copy: Option<Copy>,
    region: *const Met,
    /// The program's argument: its size, and where it is while the task is being created.
    bytes: usize,
    from: *mut c_void,
}

unsafe extern "C-unwind" fn run_task(head: *mut c_void) {
    // SAFETY: `copy_task` has put the program's argument behind the head.
    unsafe {
        let head = head.cast::<TaskHead>();
        let data = head.cast::<u8>().add(head_bytes()).cast();
        stay((*head).region, task::OMP_TASK, (*head).body, data);
    }
}

unsafe extern "C-unwind" fn copy_task(to: *mut c_void, from: *mut c_void) {
    // SAFETY: libgomp has made room for head and argument at `to`; `from` is the head in `task`'s frame.
    unsafe {
        let (to, from) = (to.cast::<TaskHead>(), from.cast::<TaskHead>());
        to.write(from.read());
        let data = to.cast::<u8>().add(head_bytes());
        match (*from).copy {
            Some(copy) => copy(data.cast(), (*from).from),
            None => core::ptr::copy_nonoverlapping((*from).from.cast::<u8>(), data, (*from).bytes),
        }
    }
}

/// Room for the head; arguments are aligned to at most this.
const fn head_bytes() -> usize {
    size_of::<TaskHead>().next_multiple_of(64)
}

/// Calls `call` with a task of ours that runs the program's.
///
/// # Safety
/// As for `GOMP_task`.
#[inline(always)]
pub unsafe fn task(
    body: Body,
    data: *mut c_void,
    copy: Option<Copy>,
    bytes: usize,
    align: usize,
    call: impl FnOnce(Body, *mut c_void, Option<Copy>, usize, usize),
) {
    match current() {
        Some(thread) if align <= 64 => {
            let region = thread.local().stays.region();
            let head = TaskHead { body, copy, region, bytes, from: data };
            call(
                run_task,
                (&raw const head).cast_mut().cast(),
                Some(copy_task),
                head_bytes() + bytes,
                align.max(64),
            );
        }
        _ => call(body, data, copy, bytes, align),
    }
}
