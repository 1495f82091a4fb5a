//! Teams of OpenMP threads: their waits, which no hook of libc's sees.
//!
//! | event (libgomp by its entry points, libomp by OMPT) | what it is |
//! |---|---|
//! | a region is met | wakes the team |
//! | a thread begins its part | its wait for a region ends, woken by who met that |
//! | it has done its part | arrives at the team's last barrier: may wake the others, and waits |
//! | the region is over, for who met it | that wait ends, woken by who arrived last |
//! | barriers, `taskwait`, turns, critical sections, locks | waits, woken by who arrives, completes a task or lets go |
//! | a task begins inside a wait | the thread runs after all; then it waits again |
//!
//! Words for who is woken (`woken`) are left under the address of the region or of the lock.
//!
//! Runtimes spin before they sleep, so CPU time of such a wait is measured and taken for a pause's: samples in it
//! count for nothing, and a thread is never paused in it, because it would not see that its wait has ended. A sample outside
//! of the OpenMP runtime's code tells that the thread works on something that was not seen to begin (`taskloop`): that ends
//! the wait.

use crate::ledger::{Place, event};
use crate::runtime::{Causal, Local, enter_segment};
use crate::shared;
use crate::woken::By;
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use preload::gomp::{Body, Meeting};
use preload::ompt::{BEGIN, Callback, Data, INITIAL, LookUp, Tool, event as ompt_event, set_callbacks};
use preload::{Hooks, Thread, Wake, WakeKind, thread};
use sampler::module;

/// Stands for the lock of unnamed critical sections.
const UNNAMED: usize = 1;
/// Marks the data of an explicit task of libomp's.
const EXPLICIT: u64 = 1;
/// Stands for every region of libomp's: a worker's wait in one ends when it is woken for the next.
const ANY_REGION: usize = 2;
const NO_MODULE: u32 = u32::MAX;

/// Whether libomp tells us of everything, under whatever entry points.
static BY_OMPT: AtomicBool = AtomicBool::new(false);
/// The module of the OpenMP runtime, once a thread has waited in it.
static MODULE: AtomicU32 = AtomicU32::new(NO_MODULE);

/// What is kept per thread.
pub struct State {
    waits: Cell<bool>,
    /// Address of the region that the thread works on.
    region: Cell<usize>,
    /// Waits that libomp has told of the begin of, and not of the end.
    depth: Cell<u32>,
}

impl State {
    /// Outside of any region.
    pub const fn new() -> Self {
        Self { waits: Cell::new(false), region: Cell::new(0), depth: Cell::new(0) }
    }

    /// Whether the thread waits for its team.
    #[inline(always)]
    pub fn waits(&self) -> bool {
        self.waits.get()
    }

    /// Another thread has the slot.
    pub fn begin(&self) {
        self.waits.set(false);
        self.region.set(0);
        self.depth.set(0);
    }
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

/// The calling thread, if libgomp's entry points are where its team is seen.
#[inline(always)]
fn current() -> Option<&'static Thread<Local>> {
    if BY_OMPT.load(Relaxed) { None } else { thread::current::<Causal>() }
}

fn wakes(thread: &Thread<Local>, object: usize) {
    Causal::before_wake(thread, Wake { kind: WakeKind::Barrier, object, most: u32::MAX });
}

fn wait_begins(thread: &Thread<Local>) {
    let Some(shared) = shared::get() else { return };
    let local = thread.local();
    if thread.is_busy() || local.team.waits() {
        return;
    }
    thread.busy(|| {
        local.ledger.settle(shared, Place::Hook);
        local.ledger.wait_begins(shared, true);
        local.ledger.spin_begins();
        local.team.waits.set(true);
    });
}

/// The wait is over, woken through `by`; `segment` begins.
fn wait_ends(thread: &Thread<Local>, by: By, segment: usize) {
    let Some(shared) = shared::get() else { return };
    let local = thread.local();
    if thread.is_busy() {
        return;
    }
    if !local.team.waits() {
        // Who met the region has woken its team.
        Causal::after_wake(thread, Wake { kind: WakeKind::Barrier, object: segment, most: 0 });
        return enter_segment(thread, shared, event::GOT, segment);
    }
    thread.busy(|| {
        local.team.waits.set(false);
        local.ledger.spin_ends();
        local.ledger.wait_ends(shared, segment, true, by);
    });
}

/// The thread ends: it may do so in the middle of a wait.
pub fn thread_ends(thread: &Thread<Local>) {
    if thread.local().team.waits() {
        wait_ends(thread, By::Call(0), 0);
    }
}

/// A sample struck in a wait: whether the thread really waits.
pub fn really_waits(thread: &Thread<Local>, pc: u64) -> bool {
    if u32::from(module::find(pc).map_or(u16::MAX, |m| m.serial())) == MODULE.load(Relaxed) {
        return true;
    }
    wait_ends(thread, By::Call(0), 0);
    false
}

fn arrives(thread: &Thread<Local>, at: usize) {
    wakes(thread, at);
    wait_begins(thread);
}

/// A parallel region of libgomp's, on the stack of the thread that met it.
struct Region {
    body: Body,
    data: *mut c_void,
}

unsafe extern "C-unwind" fn run_region(region: *mut c_void) {
    // SAFETY: `region` passes a live one.
    let Region { body, data } = unsafe { region.cast::<Region>().read() };
    let Some(thread) = thread::current::<Causal>() else {
        // SAFETY: the program's own.
        return unsafe { body(data) };
    };
    let team = &thread.local().team;
    wait_ends(thread, By::Call(region as usize), body as usize);
    let outer = team.region.replace(region as usize);
    // SAFETY: the program's own.
    unsafe { body(data) };
    arrives(thread, region as usize);
    team.region.set(outer);
}

impl preload::gomp::Team for Causal {
    /// The region that the task was created in.
    type Token = usize;

    #[inline(always)]
    unsafe fn region<R>(body: Body, data: *mut c_void, call: impl FnOnce(Body, *mut c_void) -> R) -> R {
        let Some(thread) = current() else { return call(body, data) };
        if MODULE.load(Relaxed) == NO_MODULE {
            learn_module();
        }
        let region = Region { body, data };
        let address = (&raw const region) as usize;
        wakes(thread, address);
        let result = call(run_region, address as *mut c_void);
        core::hint::black_box(&region);
        // What follows is another segment than the region itself.
        wait_ends(thread, By::Call(address), body as usize + 1);
        result
    }

    #[inline(always)]
    fn waiting<R>(meeting: Meeting, call: impl FnOnce() -> R) -> R {
        let Some(thread) = current() else { return call() };
        let object = object_of(thread, meeting);
        if meeting == Meeting::Team {
            wakes(thread, object);
        }
        wait_begins(thread);
        let result = call();
        wait_ends(thread, By::Call(object), object);
        result
    }

    #[inline(always)]
    fn taking() {
        if let Some(thread) = current() {
            Causal::before_take(thread);
        }
    }

    #[inline(always)]
    fn waking(meeting: Meeting) {
        if let Some(thread) = current() {
            wakes(thread, object_of(thread, meeting));
        }
    }

    fn creates_task() -> Option<usize> {
        current().map(|thread| thread.local().team.region.get())
    }

    unsafe fn run_task(region: usize, body: Body, data: *mut c_void) {
        let Some(thread) = current() else {
            // SAFETY: the caller's.
            return unsafe { body(data) };
        };
        let waited = thread.local().team.waits();
        wait_ends(thread, By::Call(region), body as usize);
        // SAFETY: the caller's.
        unsafe { body(data) };
        wakes(thread, region);
        if waited {
            wait_begins(thread);
        }
    }
}

fn object_of(thread: &Thread<Local>, meeting: Meeting) -> usize {
    match meeting {
        Meeting::Team | Meeting::Tasks => thread.local().team.region.get(),
        Meeting::Lock(0) => UNNAMED,
        Meeting::Lock(address) => address,
    }
}

/// Finds libgomp: the module of one of its functions.
#[cold]
fn learn_module() {
    static SLOT: preload::real::Slot = preload::real::Slot::new();
    let function = preload::gomp::real(&SLOT, c"GOMP_barrier") as u64;
    if let Some(found) = module::find(function) {
        MODULE.store(found.serial().into(), Relaxed);
    }
}

/// What `ompt_start_tool` answers.
pub static TOOL: Tool = Tool::new(initialize);

unsafe extern "C" fn initialize(look_up: LookUp, _: i32, _: *mut Data) -> i32 {
    if shared::get().is_none() {
        return 0;
    }
    let wanted = [
        (ompt_event::PARALLEL_BEGIN, parallel_begin as Callback),
        (ompt_event::PARALLEL_END, parallel_end as Callback),
        (ompt_event::TASK_CREATE, task_create as Callback),
        (ompt_event::TASK_SCHEDULE, task_schedule as Callback),
        (ompt_event::IMPLICIT_TASK, implicit_task as Callback),
        (ompt_event::SYNC_REGION_WAIT, sync_region_wait as Callback),
        (ompt_event::MUTEX_ACQUIRE, mutex_acquire as Callback),
        (ompt_event::MUTEX_ACQUIRED, mutex_acquired as Callback),
        (ompt_event::MUTEX_RELEASED, mutex_released as Callback),
    ];
    // SAFETY: libomp's own function, and callbacks of the types that these events have.
    let answer = unsafe { set_callbacks(look_up, &wanted) };
    if answer != 0 {
        BY_OMPT.store(true, Relaxed);
        if let Some(found) = module::find(look_up as *const () as u64) {
            MODULE.store(found.serial().into(), Relaxed);
        }
    }
    answer
}

fn with(f: impl FnOnce(&'static Thread<Local>, &'static State)) {
    if let Some(thread) = thread::current::<Causal>() {
        f(thread, &thread.local().team);
    }
}

unsafe extern "C" fn parallel_begin(
    _: *mut Data,
    _: *const c_void,
    _: *mut Data,
    _: u32,
    _: i32,
    _: *const c_void,
) {
    with(|thread, _| wakes(thread, ANY_REGION));
}

unsafe extern "C" fn parallel_end(_: *mut Data, _: *mut Data, _: i32, code: *const c_void) {
    with(|thread, team| {
        team.depth.set(0);
        wait_ends(thread, By::Call(ANY_REGION), code as usize + 1);
    });
}

unsafe extern "C" fn implicit_task(end: i32, _: *mut Data, _: *mut Data, _: u32, index: u32, flags: i32) {
    if flags & INITIAL != 0 {
        return;
    }
    with(|thread, team| {
        team.depth.set(0);
        if end == BEGIN {
            wait_ends(thread, By::Call(ANY_REGION), index.min(1) as usize);
        } else {
            // Workers wait for the next region now; who met it goes on.
            arrives(thread, ANY_REGION);
        }
    });
}

unsafe extern "C" fn sync_region_wait(_: i32, end: i32, _: *mut Data, _: *mut Data, code: *const c_void) {
    with(|thread, team| {
        if end == BEGIN {
            team.depth.set(team.depth.get() + 1);
            arrives(thread, ANY_REGION);
        } else {
            team.depth.set(team.depth.get().saturating_sub(1));
            if team.depth.get() == 0 {
                wait_ends(thread, By::Call(ANY_REGION), code as usize);
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
    with(|thread, _| {
        // SAFETY: libomp passes live data.
        if let Some(new) = unsafe { new.as_mut() }
            && flags & IS_EXPLICIT != 0
        {
            *new = EXPLICIT;
            wakes(thread, ANY_REGION);
        }
    });
}

unsafe extern "C" fn task_schedule(_: *mut Data, _: i32, next: *mut Data) {
    with(|thread, team| {
        // SAFETY: libomp passes live data, or null when no task follows.
        let next = unsafe { next.as_ref() }.map_or(0, |next| *next);
        if next & EXPLICIT != 0 {
            wait_ends(thread, By::Call(ANY_REGION), ANY_REGION + 1);
        } else {
            wakes(thread, ANY_REGION);
            if team.depth.get() > 0 {
                wait_begins(thread);
            }
        }
    });
}

unsafe extern "C" fn mutex_acquire(_: i32, _: u32, _: u32, _: u64, _: *const c_void) {
    with(|thread, _| wait_begins(thread));
}

unsafe extern "C" fn mutex_acquired(_: i32, lock: u64, _: *const c_void) {
    with(|thread, _| wait_ends(thread, By::Call(lock as usize), lock as usize));
}

unsafe extern "C" fn mutex_released(_: i32, lock: u64, _: *const c_void) {
    // Told after the fact: debts could not be served before. Who waits is excused until now.
    with(|thread, _| wakes(thread, lock as usize));
}
