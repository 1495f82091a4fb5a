//! OpenMP on gcc's libgomp, by its entry points.
//!
//! A thread of a team works while it is inside a region or a task, and is idle in between (see [`preload::gomp`]). The
//! frame of the wrapper is alive on the creating thread's stack for as long as the region is, so the registers kept in it lead
//! to the region's logical callers.
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
use preload::gomp::{Body, Meeting, Team};
use preload::{Thread, thread};
use sampler::Frame;
use sampler::regs::Regs;
use wire::idle::task;

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

impl Team for Idle {
    /// The region that the task was created in.
    type Token = *const Met;

    #[inline(always)]
    unsafe fn region<R>(body: Body, data: *mut c_void, call: impl FnOnce(Body, *mut c_void) -> R) -> R {
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

    /// Tasks that run inside it count as work.
    #[inline(always)]
    fn waiting<R>(_: Meeting, call: impl FnOnce() -> R) -> R {
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

    fn creates_task() -> Option<Self::Token> {
        current().map(|thread| thread.local().stays.region())
    }

    #[inline(always)]
    unsafe fn run_task(region: Self::Token, body: Body, data: *mut c_void) {
        // SAFETY: the caller's.
        unsafe { stay(region, task::OMP_TASK, body, data) }
    }
}
