//! OpenMP: a tool in the sense of OMPT, which LLVM's libomp asks for when it starts.
//!
//! | event | meaning |
//! |---|---|
//! | parallel begin … end | a scope of the encountering task; the implicit tasks of the team start where it stands |
//! | barrier | all implicit tasks of the team end, and new ones start where the longest ended |
//! | task create, complete | a task spawned into a scope of the creating task |
//! | taskgroup | another scope inside of that one; its end waits for it |
//! | taskwait | the creating task waits for all of its scopes |
//! | waiting for any of these, or for a lock | belongs to nobody |
//!
//! A barrier is settled by the first thread that leaves it: then all have arrived and all tasks have completed.
//! `depend` orders siblings: a task starts where the last of those that it depends on ended. Who depends on whom follows
//! from the addresses alone, so it is the same whatever has happened to complete before.

use core::ffi::{c_char, c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use span_rt::Local;
use span_rt::end;
use span_rt::env::settings;
use span_rt::local::{self, Running};
use span_rt::sites::{self, Key};
use spandag::dump::{Kind, Place};
use spandag::task::{Finish, Gather, Opened, Spawned};
use spandag::{Cost, Entry, Site};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// `ompt_data_t`.
type Data = *mut *mut c_void;
type Lookup = extern "C" fn(*const c_char) -> *mut c_void;
type SetCallback = extern "C" fn(c_int, *const c_void) -> c_int;

#[repr(C)]
struct StartResult {
    initialize: extern "C" fn(Lookup, c_int, Data) -> c_int,
    finalize: extern "C" fn(Data),
    data: u64,
}

static START: StartResult = StartResult { initialize, finalize, data: 0 };
static ACTIVE: AtomicBool = AtomicBool::new(false);

const BEGIN: c_int = 1;
const EXPLICIT_TASK: c_int = 4;
const INITIAL_TASK: c_int = 1;
const COMPLETE: c_int = 1;
const CANCELLED: c_int = 3;
const SWITCH: c_int = 7;
const TASKWAIT: c_int = 5;
const TASKGROUP: c_int = 6;
const REDUCTION: c_int = 7;
/// `ompt_dependence_type_in`; all others write.
const READS: c_int = 1;

/// Children that were spawned into one scope of a task.
struct Children {
    opened: Cost,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    gather: Gather,
    /// Where those go that end after their creator has: to whoever waits for the creator.
    forward: Option<Arc<Children>>,
}

impl Children {
    fn add(self: &Arc<Self>, outcome: Spawned) {
        let mut at = self.clone();
        loop {
            let mut state = lock(&at.state);
            match state.forward.clone() {
                Some(next) => {
                    drop(state);
                    at = next;
                }
                None => {
                    return state.gather.add(outcome, at.opened, local::scale(), Local::here().arena());
                }
            }
        }
    }
}

/// Where a task ended, once it has; for siblings that depend on it.
type End = Arc<Mutex<Option<Finish>>>;

/// What siblings did with an address that `depend` names: the last that wrote it, and those that read it since.
#[derive(Default)]
struct Uses {
    writer: Option<End>,
    readers: Vec<End>,
}

/// A scope of a task that was spawned into, and what was, if anything.
type Waited = (Option<Box<Opened>>, Option<Arc<Children>>);

/// A task of OpenMP.
struct OmpTask {
    running: Running,
    /// What it has spawned since it last waited; the scope is the running task's.
    children: Option<Arc<Children>>,
    /// The same for the groups of tasks around the one that it is in, the outermost first.
    around: Vec<Waited>,
    /// It has forked: whether calls in it are followed has been decided.
    forked: bool,
    /// Who waits for it.
    parent: Option<Arc<Children>>,
    waiting: bool,
    phase: u64,
    /// The region that an implicit task belongs to. The region holds its tasks in turn, until the last of them lets go:
    /// a worker may come out of the last barrier when its region is long over.
    region: Option<Arc<Region>>,
    /// Of an explicit task: who created it. It waits for its children, or its region does.
    creator: *mut OmpTask,
    /// What its children depend on each other for.
    uses: HashMap<usize, Uses>,
    /// Whom it waits for before it starts, and who waits for its end.
    before: Vec<End>,
    end: Option<End>,
}

/// A parallel region.
struct Region {
    owner: *mut Running,
    site: Site,
    entry: Entry,
    state: Mutex<RegionState>,
}

// SAFETY: the owner is used by whoever holds the lock on the state, while it waits; the rest does not change.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

struct RegionState {
    opened: Option<Opened>,
    gather: Gather,
    arrived: Vec<*mut OmpTask>,
    /// The implicit tasks, which stay where they are.
    tasks: Vec<*mut OmpTask>,
    phase: u64,
}

impl Drop for RegionState {
    fn drop(&mut self) {
        for task in self.tasks.drain(..) {
            // SAFETY: made by `implicit_task`; whoever could still use one would hold the region.
            drop(unsafe { Box::from_raw(task) });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the runtime asks for. Nothing if the program is not being profiled.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(_version: c_uint, _runtime: *const c_char) -> *const c_void {
    if settings().out.is_none() {
        return core::ptr::null();
    }
    core::ptr::from_ref(&START).cast()
}

extern "C" fn initialize(lookup: Lookup, _device: c_int, _data: Data) -> c_int {
    let set = lookup(c"ompt_set_callback".as_ptr());
    if set.is_null() {
        return 0;
    }
    // SAFETY: the interface says that this is its type.
    let set: SetCallback = unsafe { core::mem::transmute(set) };
    local::start();
    // The program runs already: what this takes is not its own. Calls that it is in go on.
    if span_rt::calls::is_on() {
        Local::here().pause_to_fork();
    } else {
        Local::here().pause_current();
    }
    span_rt::samples::start();
    local::unwind();
    let info = lookup(c"ompt_get_task_info".as_ptr());
    // SAFETY: the interface says that this is its type; null is none.
    _ = TASK_INFO.set(unsafe { core::mem::transmute::<*mut c_void, Option<TaskInfo>>(info) });
    Local::here().resume_current();
    ACTIVE.store(true, Ordering::Relaxed);
    let callbacks: [(c_int, *const c_void); 10] = [
        (3, parallel_begin as *const c_void),
        (4, parallel_end as *const c_void),
        (5, task_create as *const c_void),
        (6, task_schedule as *const c_void),
        (7, implicit_task as *const c_void),
        (16, sync_region_wait as *const c_void),
        (18, dependences as *const c_void),
        (23, sync_region as *const c_void),
        (26, mutex_acquire as *const c_void),
        (27, mutex_acquired as *const c_void),
    ];
    for (number, callback) in callbacks {
        set(number, callback);
    }
    1
}

extern "C" fn finalize(_data: Data) {
    write();
}

/// Writes the record, once.
pub fn write() {
    if !ACTIVE.swap(false, Ordering::Relaxed) {
        return;
    }
    let Some(collected) = local::collect() else { return };
    let problems = end::problems(&collected);
    let facts = [
        ("threads", collected.threads.to_string()),
        ("repaired", collected.repaired.0.to_string()),
        ("lost-ticks", collected.repaired.1.to_string()),
    ];
    end::write("openmp", collected.totals, &facts, problems);
}

/// Where something was called from, and what: the runtime takes some tasks of the thread that opened a region to be created
/// where the region was.
fn site(here: &Local, code: *const c_void, kind: Kind, what: &str) -> Site {
    let number = usize::from(kind == Kind::Loop);
    here.site((code as usize, 5 + number), || {
        sites::site(Key::Stack(vec![code as usize, number]), || Place {
            kind,
            callee: what.into(),
            stack: vec![code as u64],
            ..Place::default()
        })
    })
}

/// `ompt_get_task_info`.
type TaskInfo =
    extern "C" fn(c_int, *mut c_int, *mut Data, *mut *const Frame, *mut Data, *mut c_int) -> c_int;
static TASK_INFO: OnceLock<Option<TaskInfo>> = OnceLock::new();

/// `ompt_frame_t`: where the runtime called the task, and where the task called the runtime.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    exit: u64,
    enter: u64,
    flags: [c_int; 2],
}

/// That of the task which runs on this thread (0), or of one around it.
fn frame_of(level: c_int) -> Option<Frame> {
    let info = (*TASK_INFO.get()?)?;
    let (mut flags, mut thread, mut frame) = (0, 0, core::ptr::null());
    let (mut task, mut parallel) = (core::ptr::null_mut(), core::ptr::null_mut());
    let known =
        info(level, &raw mut flags, &raw mut task, &raw mut frame, &raw mut parallel, &raw mut thread);
    // SAFETY: null, or the frame of a task that goes on.
    (known == 2).then(|| unsafe { frame.as_ref() }.copied()).flatten()
}

/// What is behind a `ompt_data_t`, if we put something there.
fn behind<T>(data: Data) -> *mut T {
    if data.is_null() {
        return core::ptr::null_mut();
    }
    // SAFETY: the runtime hands out pointers to its own words.
    unsafe { (*data).cast() }
}

extern "C" fn parallel_begin(
    _task: Data,
    _frame: *const c_void,
    parallel: Data,
    _requested: c_uint,
    _flags: c_int,
    code: *const c_void,
) {
    let here = Local::here();
    let owner = here.pause_to_fork();
    // SAFETY: this thread's current task, just paused.
    let running = unsafe { &mut *owner };
    let site = site(here, code, Kind::Loop, "parallel region");
    let entry = here.enter(running.task.entry.context, site);
    let region = Arc::new(Region {
        owner,
        site,
        entry,
        state: Mutex::new(RegionState {
            opened: None,
            gather: Gather::default(),
            arrived: Vec::new(),
            tasks: Vec::new(),
            phase: 0,
        }),
    });
    let id = Arc::as_ptr(&region) as usize;
    lock(&region.state).opened = Some(running.task.open(id, local::scale(), here.arena()));
    // SAFETY: the runtime's word for this region. `parallel_end` takes the reference back.
    unsafe { *parallel = Arc::into_raw(region).cast_mut().cast() };
    here.leave();
}

impl Region {
    /// A task of the team, starting where the region stands.
    fn child(&self, base: usize) -> Running {
        // SAFETY: the owner waits for the region; it is changed only under the lock, which the caller holds.
        let task = unsafe { &(*self.owner).task }.child(self.site, self.entry);
        Running::followed(task, base)
    }

    /// All that arrived end; the region goes on where the longest ended.
    fn settle(&self, state: &mut RegionState) {
        let here = Local::here();
        let scale = local::scale();
        let Some(opened) = state.opened.take() else { return };
        for task in core::mem::take(&mut state.arrived) {
            // SAFETY: its thread waits in the barrier, and its children have completed.
            let task = unsafe { &mut *task };
            task.join_children();
            let next = self.child(task.running.base);
            let mut running = core::mem::replace(&mut task.running, next);
            here.count_forks(2);
            state.gather.add(here.end_apart(&mut running.task), opened.at(), scale, here.arena());
        }
        // SAFETY: the owner waits, and we hold the lock.
        let owner = unsafe { &mut *self.owner };
        owner.task.close(opened, core::mem::take(&mut state.gather), scale, here.arena());
        state.opened = Some(owner.task.open(core::ptr::from_ref(self) as usize, scale, here.arena()));
        state.phase += 1;
    }
}

impl OmpTask {
    fn new(running: Running) -> Self {
        OmpTask {
            running,
            children: None,
            around: Vec::new(),
            forked: false,
            parent: None,
            waiting: false,
            phase: 0,
            region: None,
            creator: core::ptr::null_mut(),
            uses: HashMap::new(),
            before: Vec::new(),
            end: None,
        }
    }

    /// A group starts: what is spawned in it is waited for at its end, and what was before is not.
    fn start_group(&mut self) {
        self.around.push((self.running.opened.take(), self.children.take()));
        self.look_around();
    }

    /// It ends, and was waited for.
    fn end_group(&mut self) {
        self.join_last();
        if let Some((opened, children)) = self.around.pop() {
            (self.running.opened, self.children) = (opened, children);
        }
        self.look_around();
    }

    fn look_around(&mut self) {
        self.running.is_behind = self.around.iter().any(|(opened, _)| opened.is_some());
    }

    /// All children were waited for.
    fn join_children(&mut self) {
        self.join_last();
        for n in (0..self.around.len()).rev() {
            (self.running.opened, self.children) = core::mem::take(&mut self.around[n]);
            self.join_last();
        }
        self.running.is_behind = false;
    }

    fn join_last(&mut self) {
        if let (Some(opened), Some(children)) = (self.running.opened.take(), self.children.take()) {
            let gather = core::mem::take(&mut lock(&children.state).gather);
            self.running.task.close(*opened, gather, local::scale(), Local::here().arena());
        }
    }
}

extern "C" fn parallel_end(parallel: Data, _task: Data, _flags: c_int, _code: *const c_void) {
    let region = behind::<Region>(parallel);
    if region.is_null() {
        return;
    }
    // SAFETY: the reference that `parallel_begin` left; all of the team's tasks have begun.
    let region = unsafe { Arc::from_raw(region) };
    // SAFETY: the runtime's word for this region.
    unsafe { *parallel = core::ptr::null_mut() };
    let here = Local::here();
    let mut state = lock(&region.state);
    region.settle(&mut state);
    if let Some(opened) = state.opened.take() {
        let gather = core::mem::take(&mut state.gather);
        // SAFETY: the region is over; the owner is this thread's again.
        unsafe { (*region.owner).task.close(opened, gather, local::scale(), here.arena()) };
    }
    drop(state);
    here.resume(region.owner);
}

extern "C" fn implicit_task(
    endpoint: c_int,
    parallel: Data,
    task: Data,
    _team: c_uint,
    _index: c_uint,
    flags: c_int,
) {
    if flags & INITIAL_TASK != 0 {
        return; // the program itself, or a worker that has nothing to do yet
    }
    let here = Local::here();
    if endpoint == BEGIN {
        let region = behind::<Region>(parallel);
        if region.is_null() {
            return;
        }
        // SAFETY: made by `parallel_begin`, and it does not end before all of its tasks have begun.
        let region = unsafe {
            Arc::increment_strong_count(region);
            Arc::from_raw(region)
        };
        let mut state = lock(&region.state);
        // The task around it, if this is that one's thread, has entered the runtime.
        let base = frame_of(1).map_or(0, |frame| frame.enter as usize);
        let (running, phase) = (region.child(here.within_stack(base)), state.phase);
        let made = OmpTask { phase, region: Some(region.clone()), ..OmpTask::new(running) };
        let made = Box::into_raw(Box::new(made));
        state.tasks.push(made);
        drop(state);
        // SAFETY: the runtime's word for this task.
        unsafe { *task = made.cast() };
        // SAFETY: just made; it stays where it is.
        here.resume(unsafe { &raw mut (*made).running });
        return;
    }
    let ended = behind::<OmpTask>(task);
    if ended.is_null() {
        return;
    }
    here.leave();
    // What it did after the last barrier is nothing: the region's end is one. It stays allocated as long as the region:
    // its team's last barrier may still be settled.
    // SAFETY: the runtime's word for this task.
    unsafe { *task = core::ptr::null_mut() };
    // SAFETY: the region, which holds the task, is alive as long as this reference to it.
    drop(unsafe { (*ended).region.take() });
}

extern "C" fn sync_region(kind: c_int, endpoint: c_int, _parallel: Data, task: Data, _code: *const c_void) {
    if kind == REDUCTION {
        return; // the wait at its end counts
    }
    let waits = behind::<OmpTask>(task);
    if kind == TASKWAIT {
        return wait(waits, endpoint, OmpTask::join_children);
    }
    if kind == TASKGROUP {
        // SAFETY: null, or the task of this thread. The wait at its end counts.
        if let (BEGIN, Some(task)) = (endpoint, unsafe { waits.as_mut() }) {
            task.start_group();
        }
        return;
    }
    if waits.is_null() {
        return;
    }
    let here = Local::here();
    // SAFETY: it was made here and is alive: the task's thread is this one.
    let waits_for = unsafe { &mut *waits };
    let Some(region) = waits_for.region.clone() else { return };
    if endpoint == BEGIN {
        here.pause();
        // The task ends here, and another one goes on in the calls that it is in.
        here.all_calls_return(&mut waits_for.running);
        here.leave();
        waits_for.waiting = true;
        lock(&region.state).arrived.push(waits);
        return;
    }
    let mut state = lock(&region.state);
    if state.opened.is_none() {
        return; // the region is over
    }
    if state.phase == waits_for.phase {
        region.settle(&mut state);
    }
    waits_for.running = region.child(waits_for.running.base);
    waits_for.phase = state.phase;
    waits_for.waiting = false;
    drop(state);
    here.resume(&raw mut waits_for.running);
}

extern "C" fn sync_region_wait(
    kind: c_int,
    endpoint: c_int,
    _parallel: Data,
    task: Data,
    _code: *const c_void,
) {
    if kind == TASKGROUP {
        wait(behind(task), endpoint, OmpTask::end_group);
    }
}

/// A task waits for its children, or some of them.
fn wait(task: *mut OmpTask, endpoint: c_int, join: fn(&mut OmpTask)) {
    if task.is_null() {
        return;
    }
    let here = Local::here();
    // SAFETY: the task of this thread.
    let task = unsafe { &mut *task };
    if endpoint == BEGIN {
        here.pause();
        here.leave();
        task.waiting = true;
    } else {
        task.waiting = false;
        join(task);
        here.resume(&raw mut task.running);
    }
}

extern "C" fn task_create(
    creator: Data,
    _frame: *const c_void,
    task: Data,
    flags: c_int,
    _dependences: c_int,
    code: *const c_void,
) {
    let creator = behind::<OmpTask>(creator);
    if flags & EXPLICIT_TASK == 0 || creator.is_null() {
        return;
    }
    let here = Local::here();
    // SAFETY: the task that runs on this thread.
    let from = unsafe { &mut *creator };
    if !from.forked {
        from.forked = true;
        from.running.is_followed |= local::follows_calls() && here.may_follow();
    }
    here.pause_to_fork();
    let site = site(here, code, Kind::Spawn, "task");
    let entry = here.enter(from.running.task.entry.context, site);
    let id = creator as usize;
    let children = from.children.get_or_insert_with(|| {
        let opened = from.running.task.open(id, local::scale(), here.arena());
        let children = Arc::new(Children { opened: opened.at(), state: Mutex::default() });
        from.running.opened = Some(Box::new(opened));
        children
    });
    let (at, children) = (children.opened, children.clone());
    let costs = (local::burden(), local::scale());
    let way = from.running.way_of_child(3);
    from.running.task.strands += 1;
    let mut child = from.running.task.spawn((site, entry), id, at, true, costs, here.arena());
    child.way = way;
    let running = Running::new(child, usize::MAX, (0, 0));
    let made = OmpTask { parent: Some(children), creator, ..OmpTask::new(running) };
    // SAFETY: the runtime's word for the new task.
    unsafe { *task = Box::into_raw(Box::new(made)).cast() };
    here.resume(&raw mut from.running);
}

/// `ompt_dependence_t`.
#[repr(C)]
struct Dependence {
    variable: usize,
    kind: c_int,
}

/// A task that was just created depends on siblings.
extern "C" fn dependences(task: Data, list: *const Dependence, count: c_int) {
    let task = behind::<OmpTask>(task);
    if task.is_null() || list.is_null() {
        return;
    }
    // SAFETY: made by `task_create`; it has not started. Its creator is what runs on this thread.
    let (task, creator) = unsafe { (&mut *task, (*task).creator) };
    if creator.is_null() {
        return;
    }
    // SAFETY: as above; the runtime hands out that many.
    let (creator, list) =
        unsafe { (&mut *creator, core::slice::from_raw_parts(list, count.max(0) as usize)) };
    let end = task.end.get_or_insert_default().clone();
    for dependence in list {
        let uses = creator.uses.entry(dependence.variable).or_default();
        task.before.extend(uses.writer.clone());
        if dependence.kind == READS {
            uses.readers.push(end.clone());
        } else {
            task.before.append(&mut uses.readers);
            uses.writer = Some(end.clone());
        }
    }
}

extern "C" fn task_schedule(prior: Data, status: c_int, next: Data) {
    if !matches!(status, COMPLETE | CANCELLED | SWITCH | 2 | 4) {
        return;
    }
    let here = Local::here();
    let old = behind::<OmpTask>(prior);
    if !old.is_null() {
        // SAFETY: the task that ran on this thread.
        if !unsafe { (*old).waiting } {
            here.pause();
        }
        here.leave();
        // SAFETY: as above.
        let explicit = unsafe { (*old).parent.is_some() };
        if explicit && matches!(status, COMPLETE | CANCELLED) {
            // SAFETY: made by `task_create`; the runtime is done with it.
            let mut task = *unsafe { Box::from_raw(old) };
            // SAFETY: the runtime's word for this task.
            unsafe { *prior = core::ptr::null_mut() };
            let children = task.children.clone();
            task.join_children();
            here.all_calls_return(&mut task.running);
            if let Some(parent) = task.parent.take() {
                let outcome = here.end_apart(&mut task.running.task);
                if let Some(end) = task.end.take() {
                    *lock(&end) = Some(outcome.finish(task.running.task.site));
                }
                if let Some(children) = children {
                    lock(&children.state).forward = Some(parent.clone());
                }
                here.count_forks(2);
                parent.add(outcome);
            }
        }
    }
    let new = behind::<OmpTask>(next);
    if !new.is_null() {
        // SAFETY: a task that the runtime now runs on this thread; those that it waits for have completed.
        let starts = unsafe { &mut *new };
        if starts.running.base == usize::MAX {
            let base = frame_of(0).map_or(0, |frame| frame.exit as usize);
            starts.running.base = here.within_stack(base);
        }
        for before in core::mem::take(&mut starts.before) {
            starts.running.task.after(lock(&before).iter());
        }
    }
    // SAFETY: a task that the runtime now runs on this thread.
    if !new.is_null() && !unsafe { (*new).waiting } {
        // SAFETY: as above.
        here.resume(unsafe { &raw mut (*new).running });
    }
}

extern "C" fn mutex_acquire(_kind: c_int, _hint: c_uint, _imp: c_uint, _id: u64, _code: *const c_void) {
    Local::here().pause_current();
}

extern "C" fn mutex_acquired(_kind: c_int, _id: u64, _code: *const c_void) {
    Local::here().resume_current();
}
