//! The runtime of `farsight idle`: samples every thread, knows who works and who waits, and leaves per-thread
//! trees of logical calling contexts in shared memory.
//!
//! ```text
//! hooks      a thread begins or ends to wait    ->  effort: how many threads work, integrated over time
//! sample     a thread's clock strikes           ->  logical: its path, asking the agents; CPU and effort claimed
//! wait over  the path of the call that waited   ->  time blocked
//! lock let go, others waited meanwhile          ->  blame on the path that held it
//! ```
//! Policy only: interposition and threads are `preload`'s, clocks and unwinding `sampler`'s. What the numbers
//! mean stands in `wire::idle`.
//!
//! # Rules
//! - Those of `preload` and `sampler`: no heap, no locks, no panics, no symbols.
//! - A thread's own state is changed under `Thread::busy`, so that its handler never finds it half done; what is
//!   not claimed in a skipped sample is claimed by the next one. A signal handler of the program may strike there and
//!   wait, wake or lock: its hooks find the thread busy and stay out, too.
//! - All results are in the shared arena, at any time complete enough to be read after `SIGKILL`.
#![no_std]

pub mod agent;
pub mod creator;
pub mod effort;
pub mod landmark;
pub mod lock;
pub mod logical;
pub mod note;
pub mod omp;
pub mod ompt;
mod process;
mod publish;
pub mod rayon;
pub mod slot;
pub mod yields;

use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use creator::Anchor;
use effort::Effort;
use logical::Found;
use note::{DEPTH, Line, mark};
use preload::arena::Arena;
use preload::{
    AfterFork, Ending, Executing, Hooks, Interest, Lock, LockKind, Origin, Outcome, Thread, Wait, WaitKind,
    Wake, WakeKind, seat, sys, thread,
};
use sampler::own_stack::OwnStack;
use sampler::regs::Regs;
use sampler::trail::Trail;
use sampler::tree::{NodeId, Tree};
use sampler::{Backend, Config, Sample, Sampled, ThreadSampler, module};
use slot::SlotRef;
use wire::idle::{self, BLOCKED, COUNT, CPU, EFFORT_BITS, Header, IDLE, METRICS, mark as marks, problem};

/// Waits are charged to their context once this much has come together; most are shorter than a walk is worth.
const BLOCKED_MIN_NS: u64 = 20_000;

/// The runtime.
#[derive(Debug)]
pub struct Idle;

/// What is kept per thread.
#[derive(Debug)]
pub struct Local {
    sampler: ThreadSampler,
    tree: Tree<METRICS>,
    slot: SlotRef,
    line: UnsafeCell<Line>,
    trail: UnsafeCell<Trail<DEPTH>>,
    anchor: Anchor,
    stays: omp::Stays,
    ompt: ompt::State,
    stack: OwnStack,
    /// Value of the thread's `THREAD` mark.
    origin: AtomicU64,
    /// 0 while the thread works; waits may nest (a handler that runs during one).
    idle_depth: Cell<u32>,
    wait_start_ns: Cell<u64>,
    blocked_ns: Cell<u64>,
    blocked_count: Cell<u64>,
}

static ARENA: Arena = Arena::new();
static HEADER: AtomicPtr<Header> = AtomicPtr::new(core::ptr::null_mut());
/// Serial of the module that this code is in.
static OURS: AtomicU32 = AtomicU32::new(u32::MAX);

fn header() -> *mut Header {
    HEADER.load(Relaxed)
}

/// A counter of the header.
fn shared(field: impl FnOnce(*mut Header) -> *mut u64) -> &'static AtomicU64 {
    // SAFETY: hooks run only after `start`, which maps the header for good; callers name one of its words.
    unsafe { AtomicU64::from_ptr(field(header())) }
}

macro_rules! total {
    ($field:ident) => {
        // SAFETY: takes the address of a field of the mapped header.
        shared(|header| unsafe { &raw mut (*header).$field })
    };
}

fn effort() -> Effort {
    // SAFETY: as in `shared`.
    unsafe { Effort::new(header()) }
}

impl Local {
    /// The thread stops to work. Under `busy`.
    fn rest(&self) -> u64 {
        let depth = self.idle_depth.get();
        self.idle_depth.set(depth + 1);
        if depth > 0 {
            return effort().now_ns();
        }
        let moment = effort().change(-1);
        self.slot.rest(moment);
        moment.ns
    }

    /// It works again. Under `busy`.
    fn resume(&self) -> u64 {
        let depth = self.idle_depth.get();
        self.idle_depth.set(depth.saturating_sub(1));
        if depth != 1 {
            return effort().now_ns();
        }
        let moment = effort().change(1);
        self.slot.work(moment);
        moment.ns
    }

    /// Works, whatever it did before; how deep in waits it was. Under `busy`.
    fn wake(&self) -> u32 {
        let depth = self.idle_depth.get();
        if depth > 0 {
            self.idle_depth.set(1);
            self.resume();
        }
        depth
    }

    /// Is `depth` deep in waits, whatever it did before. Under `busy`.
    fn sleep(&self, depth: u32) {
        if depth == 0 {
            self.wake();
        } else if self.idle_depth.get() == 0 {
            self.rest();
        }
        self.idle_depth.set(depth);
    }

    /// The path of the calling thread from `regs` and its node, below `root` if that is given. In the thread's handler
    /// or under `busy`.
    fn unwind(&self, thread: &Thread<Local>, regs: Regs, root: Option<u64>) -> (Found, NodeId) {
        // SAFETY: used by the owning thread only, in its handler or under `busy`: one of the two at a time.
        let (line, trail) = unsafe { (&mut *self.line.get(), &mut *self.trail.get()) };
        if root.is_some() {
            // Nothing of the last path can be shared, nor of this one by the next.
            trail.forget();
        }
        let found = self.stack.run(|| logical::unwind(thread, regs, line, trail));
        if let Some(root) = root {
            line.push(root);
            trail.forget();
        }
        (found, line.node(&self.tree, &ARENA))
    }

    /// The node of the calling thread's path from `regs`.
    fn context(&self, thread: &Thread<Local>, regs: Regs, end: Option<u64>) -> NodeId {
        let (_, node) = self.unwind(thread, regs, None);
        let node = end.and_then(|mark| self.tree.child(&ARENA, node, mark)).unwrap_or(node);
        self.slot.describe(&self.tree);
        node
    }
}

impl Hooks for Idle {
    type Local = Local;
    const INTEREST: Interest = Interest::ALL;

    fn new_local() -> Local {
        Local {
            sampler: ThreadSampler::new(),
            tree: Tree::new(),
            slot: SlotRef::new(),
            line: UnsafeCell::new(Line::new()),
            trail: UnsafeCell::new(Trail::new()),
            anchor: Anchor::new(),
            stays: omp::Stays::new(),
            ompt: ompt::State::new(),
            stack: OwnStack::new(),
            origin: AtomicU64::new(0),
            idle_depth: Cell::new(0),
            wait_start_ns: Cell::new(0),
            blocked_ns: Cell::new(0),
            blocked_count: Cell::new(0),
        }
    }

    fn start() -> bool {
        match start() {
            Ok(()) => true,
            Err("") => false,
            Err(reason) => {
                preload::process::complain(reason);
                false
            }
        }
    }

    fn thread_created(parent: &Thread<Local>) -> u64 {
        let local = parent.local();
        if parent.is_busy() {
            return 0;
        }
        parent.busy(|| {
            let node = local.context(parent, Regs::here(), None);
            (u64::from(local.slot.index()) << 28 | u64::from(node.0) & ((1 << 28) - 1)) + 1
        })
    }

    fn thread_started(thread: &Thread<Local>, origin: Origin) {
        let local = thread.local();
        thread.busy(|| {
            total!(threads).fetch_add(1, Relaxed);
            let origin = match origin {
                Origin::Created(token) => token,
                Origin::Main | Origin::Unknown => 0,
            };
            local.origin.store(origin, Relaxed);
            local.idle_depth.set(0);
            local.blocked_ns.set(0);
            local.blocked_count.set(0);
            local.anchor.clear();
            // SAFETY: as in `Local::unwind`.
            unsafe { (*local.trail.get()).forget() };
            let moment = effort().change(1);
            if !local.slot.open(thread.tid()) {
                total!(problems).fetch_or(problem::FULL, Relaxed);
            }
            local.slot.work(moment);
            let backend = local.sampler.start();
            local.slot.backend(backend as u32);
        });
    }

    fn thread_ended(thread: &Thread<Local>) {
        let local = thread.local();
        thread.busy(|| {
            local.sampler.stop();
            let cpu = local.sampler.cpu_ns();
            let moment = effort().change(-1);
            local.slot.rest(moment);
            // What came after the last sample is charged to its context, if there ever was one.
            let node = match local.slot.last_node() {
                0 => local.context(thread, Regs::here(), None),
                node => NodeId(node),
            };
            let (left, used) = local.slot.close(cpu);
            local.tree.add_metric(node, CPU, left);
            local.tree.add_metric(node, IDLE, used.saturating_sub(left << EFFORT_BITS));
            local.slot.describe(&local.tree);
        });
    }

    fn before_wait(thread: &Thread<Local>, wait: Wait) {
        if thread.is_busy() || !blocks(wait) {
            return;
        }
        let local = thread.local();
        thread.busy(|| {
            if landmark::any() {
                let ours = OURS.load(Relaxed) as u16;
                let here = Regs::here();
                local.stack.run(|| {
                    local.sampler.walk(here, thread.stack(), |frame| {
                        if frame.key.serial() == ours {
                            return core::ops::ControlFlow::Continue(());
                        }
                        local.anchor.set(*frame.regs);
                        core::ops::ControlFlow::Break(())
                    })
                });
            }
            let ns = local.rest();
            local.wait_start_ns.set(ns.max(1));
            local.slot.waiting(ns.max(1));
            lock::wait_begins(wait, ns);
        });
    }

    fn after_wait(thread: &Thread<Local>, wait: Wait, _: Outcome) {
        let local = thread.local();
        let since = local.wait_start_ns.get();
        if thread.is_busy() || since == 0 {
            return;
        }
        thread.busy(|| {
            local.anchor.clear();
            local.wait_start_ns.set(0);
            local.slot.waiting(0);
            let ns = local.resume();
            let waited = ns.saturating_sub(since);
            let lock = lock::wait_ends(wait, ns, waited);
            local.blocked_ns.set(local.blocked_ns.get() + waited);
            local.blocked_count.set(local.blocked_count.get() + 1);
            if local.blocked_ns.get() >= BLOCKED_MIN_NS {
                let kind = mark(marks::WAIT, wait.kind as u64);
                let node = local.context(thread, Regs::here(), Some(kind));
                local.tree.add_metric(node, BLOCKED, local.blocked_ns.replace(0));
                local.tree.add_metric(node, COUNT, local.blocked_count.replace(0));
                lock::longest(lock, waited, local.slot.index(), node.0);
            }
        });
    }

    fn before_wake(thread: &Thread<Local>, wake: Wake) {
        let concerns = matches!(
            wake.kind,
            WakeKind::Futex | WakeKind::Semaphore | WakeKind::Condition | WakeKind::Barrier
        );
        if concerns {
            blame(thread, wake.object);
        }
    }

    fn acquired(_: &Thread<Local>, lock: Lock, _: bool) {
        lock::acquired(lock.address);
    }

    fn released(thread: &Thread<Local>, lock: Lock) {
        if lock.kind != LockKind::Spin {
            blame(thread, lock.address);
        }
    }

    fn keep_preload() -> bool {
        seat::is_followed(idle::VARIABLE)
    }

    const LEADS: &'static core::ffi::CStr = idle::VARIABLE;

    fn executing(program: Executing<'_>) {
        if process::is_followed() {
            process::executing(program);
        }
    }

    fn forked(thread: Option<&Thread<Local>>) -> AfterFork {
        process::forked(thread)
    }

    fn unloading(closed: bool) {
        if closed { module::closed() } else { module::closing() }
    }

    fn ending(ending: Ending) {
        if ending == Ending::Exec {
            total!(problems).fetch_or(problem::EXEC, Relaxed);
        }
        process::ending(ending);
        thread::for_each::<Self>(|thread| thread.local().slot.count(&thread.local().sampler));
        if thread::refused() > 0 {
            total!(problems).fetch_or(problem::THREADS, Relaxed);
        }
    }
}

impl Sampled for Idle {
    fn sampler(local: &Local) -> &ThreadSampler {
        &local.sampler
    }

    fn sample(thread: &Thread<Local>, sample: &mut Sample) {
        let local = thread.local();
        let wall_ns = effort::clock_ns();
        let cpu_ns = sample.cpu_ns_at(wall_ns);
        let (found, node) = local.unwind(thread, sample.regs, None);
        local.slot.sampled(node.0, cpu_ns, &found);
        if found.idle || local.idle_depth.get() > 0 {
            let spin = local.tree.child(&ARENA, node, mark(marks::SPIN, 0)).unwrap_or(node);
            local.tree.add_metric(spin, CPU, cpu_ns);
            local.tree.add_metric(spin, COUNT, 1);
            if local.idle_depth.get() == 0 {
                // It counted as working and was not: whoever is sampled at work next answers for it.
                total!(pool).fetch_add(local.slot.claim(effort().look(wall_ns), cpu_ns), Relaxed);
            }
        } else {
            let handed = total!(pool).swap(0, Relaxed);
            local.tree.add_metric(node, CPU, cpu_ns);
            let used = local.slot.claim(effort().look(wall_ns), cpu_ns);
            local.tree.add_metric(node, IDLE, used.saturating_sub(cpu_ns << EFFORT_BITS) + handed);
            local.tree.add_metric(node, COUNT, 1);
        }
        local.slot.describe(&local.tree);
        sample.keep_step(wall_ns, effort::clock_ns);
    }
}

/// A parallel region of OpenMP has begun.
fn count_region() {
    total!(omp_regions).fetch_add(1, Relaxed);
}

/// Whether the thread gives its core away: spinning does not, and a file on disk is read by this very thread in
/// the kernel, so that it works.
fn blocks(wait: Wait) -> bool {
    match wait.kind {
        WaitKind::Spin => false,
        WaitKind::Input | WaitKind::Output | WaitKind::Storage => !is_regular(wait.object),
        _ => true,
    }
}

fn is_regular(fd: usize) -> bool {
    // SAFETY: plain data, filled by the call.
    let mut status: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: the record is live and of the kernel's layout.
    let known = unsafe { sys::raw(libc::SYS_fstat, [fd, &raw mut status as usize, 0, 0, 0, 0]) }.is_ok();
    known && status.st_mode & libc::S_IFMT == libc::S_IFREG
}

/// The thread lets an object go: the time that others have waited for it meanwhile is this path's doing.
fn blame(thread: &Thread<Local>, object: usize) {
    if thread.is_busy() {
        return;
    }
    let Some((number, ns)) = lock::charge(object) else { return };
    let local = thread.local();
    thread.busy(|| {
        let (_, node) = local.unwind(thread, Regs::here(), Some(mark(marks::LOCK, number)));
        local.tree.add_metric(node, BLOCKED, ns);
        local.tree.add_metric(node, COUNT, 1);
        local.slot.describe(&local.tree);
    });
}

fn start() -> Result<(), &'static str> {
    let followed = seat::is_followed(idle::VARIABLE);
    let fd = seat::open(idle::VARIABLE).ok_or("")?;
    let bytes = idle::FILE_BYTES as usize;
    ARENA.share(fd, bytes, idle::ARENA_OFFSET as usize).map_err(|_| "cannot map the shared file")?;
    sys::close(fd);
    let at = ARENA.base().cast::<Header>();
    HEADER.store(at, Relaxed);
    // SAFETY: the file is at least a header long; the launcher has filled it in.
    let Header { magic, version, base, .. } = unsafe { *at };
    if magic != idle::MAGIC || version != wire::VERSION || base != 0 {
        return Err("the shared file is of another version");
    }
    let _ = sys::advise(ARENA.base(), bytes, libc::MADV_DONTDUMP);
    if followed {
        process::introduce();
    }
    // SAFETY: as above; nobody else runs yet, and the launcher has written all it will.
    let header = unsafe { &mut *at };
    let backend = if header.timer_only == 1 { Backend::Timer } else { Backend::Perf };
    let chosen = sampler::install::<Idle>(Config { period_ns: header.period_ns, backend })?;
    if let Some(own) = module::find(start as *const () as u64) {
        OURS.store(own.serial().into(), Relaxed);
    }
    // The executable has an empty path; the dynamic linker lists it first.
    let mut bias = 0;
    module::for_each(|module| {
        if module.path().is_empty() && module.serial() == 0 {
            bias = module.bias;
        }
    });
    // SAFETY: the launcher wrote that many landmarks, sorted, at that place, and `landmarks` only afterwards.
    unsafe {
        let table = ARENA.base().add(idle::LANDMARKS_OFFSET as usize).cast();
        landmark::install(table, header.landmarks as usize, bias)?;
    }
    lock::install()?;
    omp::install(header.libomp == 1);
    header.backend = chosen as u32;
    process::begin(header);
    Ok(())
}
