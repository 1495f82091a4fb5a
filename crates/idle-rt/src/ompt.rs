//! OpenMP on clang's libomp, by its tools interface (OMPT): the runtime asks every library that exports
//! `ompt_start_tool` whether it wants to know, and then calls back.
//!
//! | callback | what it says |
//! |---|---|
//! | `parallel_begin` | a thread has met a region: the registers of the user's frame are kept until `parallel_end` |
//! | `implicit_task` | a thread of the team works on its part, or is done with it |
//! | `sync_region_wait` | it waits for others; kinds differ between versions and are all taken |
//! | `task_schedule` | inside such a wait it works on a task after all |
//!
//! A worker's last wait of a region ends only when the next region begins; it is idle in between, which is right.

use crate::omp::Met;
use crate::{Idle, Local, OURS};
use core::cell::{Cell, UnsafeCell};
use core::ffi::c_void;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use preload::ompt::{BEGIN, Callback, Data, INITIAL, LookUp, Tool, event, set_callbacks};
use preload::{Thread, thread};
use sampler::regs::Regs;
use sampler::{Frame, module};
use wire::idle::task;

/// Regions that one thread may have met at once; those of deeper ones keep their physical path.
const NESTED_MAX: usize = 8;
/// Marks the data of an explicit task.
const EXPLICIT: u64 = 1;

/// Serial of libomp, once it has asked.
static LIBOMP: AtomicU32 = AtomicU32::new(u32::MAX);

/// What is kept per thread.
#[derive(Debug)]
pub struct State {
    met: [UnsafeCell<Option<Met>>; NESTED_MAX],
    level: Cell<usize>,
    /// The region of the present implicit task, and the thread's number in its team.
    region: Cell<*const Met>,
    index: Cell<u32>,
    /// The region of the present explicit task.
    task: Cell<*const Met>,
    waits: Cell<u32>,
}

impl State {
    /// In no region.
    pub const fn new() -> Self {
        Self {
            met: [const { UnsafeCell::new(None) }; NESTED_MAX],
            level: Cell::new(0),
            region: Cell::new(core::ptr::null()),
            index: Cell::new(0),
            task: Cell::new(core::ptr::null()),
            waits: Cell::new(0),
        }
    }

    /// In a forked child, for each thread that was: libomp begins anew there.
    pub fn forked(&self) {
        self.level.set(0);
        self.index.set(0);
        self.waits.set(0);
        self.region.set(core::ptr::null());
        self.task.set(core::ptr::null());
    }

    /// Whose frames are the logical callers of what the thread does, unless they are its own.
    pub fn creator(&self) -> Option<(u64, Met)> {
        let (kind, at) = match (self.task.get(), self.index.get()) {
            (task, _) if !task.is_null() => (task::OMP_TASK, task),
            (_, 0) => return None,
            _ => (task::OMP_REGION, self.region.get()),
        };
        // SAFETY: null or a region that its thread keeps until all are done with it.
        unsafe { at.as_ref() }.map(|met| (kind, *met))
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a frame is libomp's.
#[inline]
pub fn claims(frame: &Frame) -> bool {
    u32::from(frame.key.serial()) == LIBOMP.load(Relaxed)
}

/// What `ompt_start_tool` answers.
pub static TOOL: Tool = Tool::new(initialize);

unsafe extern "C" fn initialize(look_up: LookUp, _: i32, _: *mut Data) -> i32 {
    if let Some(found) = module::find(look_up as *const () as u64) {
        LIBOMP.store(found.serial().into(), Relaxed);
    }
    let wanted = [
        (event::PARALLEL_BEGIN, parallel_begin as Callback),
        (event::PARALLEL_END, parallel_end as Callback),
        (event::TASK_CREATE, task_create as Callback),
        (event::TASK_SCHEDULE, task_schedule as Callback),
        (event::IMPLICIT_TASK, implicit_task as Callback),
        (event::SYNC_REGION_WAIT, sync_region_wait as Callback),
    ];
    // SAFETY: libomp's own function, and callbacks of the types that these events have.
    unsafe { set_callbacks(look_up, &wanted) }
}

fn with(f: impl FnOnce(&'static Thread<Local>, &'static Local)) {
    if let Some(thread) = thread::current::<Idle>() {
        thread.busy(|| f(thread, thread.local()));
    }
}

/// Registers of the innermost frame that is neither ours nor libomp's.
fn users_frame(thread: &Thread<Local>, here: Regs) -> Option<Regs> {
    let ours = OURS.load(Relaxed) as u16;
    let mut found = None;
    thread.local().sampler.walk(here, thread.stack(), |frame| {
        if frame.key.serial() == ours || claims(frame) {
            return ControlFlow::Continue(());
        }
        found = Some(*frame.regs);
        ControlFlow::Break(())
    });
    found
}

unsafe extern "C" fn parallel_begin(
    _: *mut Data,
    _: *const c_void,
    parallel: *mut Data,
    _: u32,
    _: i32,
    _: *const c_void,
) {
    let here = Regs::here();
    with(|thread, local| {
        crate::count_region();
        let state = &local.ompt;
        let level = state.level.get();
        state.level.set(level + 1);
        let regs = local.stack.run(|| users_frame(thread, here));
        // SAFETY: libomp passes live data. The place is unused: the region of this level has ended.
        unsafe {
            *parallel = 0;
            if let (Some(place), Some(regs)) = (state.met.get(level), regs) {
                *place.get() = Some(Met { regs, slot: core::ptr::from_ref(thread) as usize });
                if let Some(met) = &*place.get() {
                    *parallel = core::ptr::from_ref(met) as u64;
                }
            }
        }
    });
}

unsafe extern "C" fn parallel_end(_: *mut Data, _: *mut Data, _: i32, _: *const c_void) {
    with(|_, local| {
        local.ompt.level.set(local.ompt.level.get().saturating_sub(1));
        local.wake();
    });
}

unsafe extern "C" fn implicit_task(
    end: i32,
    parallel: *mut Data,
    own: *mut Data,
    _: u32,
    index: u32,
    flags: i32,
) {
    if flags & INITIAL != 0 {
        return;
    }
    with(|_, local| {
        let state = &local.ompt;
        // SAFETY: libomp passes live data, or null for the region once it has ended. A task's data hold what the
        // thread did before: region (an aligned address), and whether as a worker.
        unsafe {
            if end == BEGIN {
                if let Some(own) = own.as_mut() {
                    *own = state.region.get() as u64 | u64::from(state.index.get() > 0) << 1;
                }
                let region = parallel.as_ref().map_or(0, |p| *p);
                state.region.set(region as *const Met);
                state.index.set(index);
                state.waits.set(0);
                local.wake();
            } else {
                let before = own.as_ref().map_or(0, |own| *own);
                state.region.set((before & !7) as *const Met);
                let mine = state.index.replace((before >> 1 & 1) as u32);
                state.waits.set(0);
                if mine > 0 {
                    local.sleep(1);
                } else {
                    local.wake();
                }
            }
        }
    });
}

unsafe extern "C" fn sync_region_wait(_: i32, end: i32, _: *mut Data, _: *mut Data, _: *const c_void) {
    with(|_, local| {
        let waits = &local.ompt.waits;
        if end == BEGIN {
            waits.set(waits.get() + 1);
            local.sleep(1);
        } else {
            waits.set(waits.get().saturating_sub(1));
            if waits.get() == 0 {
                local.wake();
            }
        }
    });
}

unsafe extern "C" fn task_create(
    _: *mut Data,
    _: *const c_void,
    new: *mut Data,
    flags: i32,
    _: i32,
    _: *const c_void,
) {
    const IS_EXPLICIT: i32 = 4;
    with(|_, local| {
        let state = &local.ompt;
        let region = if state.task.get().is_null() { state.region.get() } else { state.task.get() };
        // SAFETY: libomp passes live data.
        if let Some(new) = unsafe { new.as_mut() }
            && flags & IS_EXPLICIT != 0
        {
            *new = region as u64 | EXPLICIT;
        }
    });
}

unsafe extern "C" fn task_schedule(_: *mut Data, _: i32, next: *mut Data) {
    with(|_, local| {
        // SAFETY: libomp passes live data, or null when no task follows.
        let next = unsafe { next.as_ref() }.map_or(0, |next| *next);
        if next & EXPLICIT != 0 {
            local.ompt.task.set((next & !EXPLICIT) as *const Met);
            local.wake();
        } else {
            local.ompt.task.set(core::ptr::null());
            if local.ompt.waits.get() > 0 {
                local.sleep(1);
            }
        }
    });
}
