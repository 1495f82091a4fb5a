//! The hooks: when accounts are settled.
//!
//! | event | what happens |
//! |---|---|
//! | sample | attributed and counted; on the selected target it is to be earned; then debts are served |
//! | before taking a lock | debts are served, because others may wait for the lock once it is held |
//! | before waking others, ending, creating a thread | debts are served, so that whoever is woken inherits none |
//! | before waiting for another thread | debts are served: whoever waits anyway loses nothing by arriving later |
//! | after it | excused from what accrued meanwhile; never a pause, a lock may be held |
//! | after sleeping, input, output | nothing: the device did not wait for anybody, so the delays are still owed |

use crate::attribute::{Found, attribute};
use crate::ledger::{Beginner, Ledger, Passed, Place, event};
use crate::unseen::{self, Watch};
use crate::woken::{self, By};
use crate::{pause, shared, team};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};
use preload::{
    AfterFork, Ending, Hooks, Interest, Lock, Origin, Outcome, Thread, Wait, WaitKind, Wake, WakeKind,
    dispatch, process, seat, sys, thread,
};
use sampler::{Backend, Config, Sample, Sampled, ThreadSampler, module};
use wire::causal::{Shared, ThreadCell, VARIABLE, epoch, flags, pack, state};

/// Longest wait for the experimenter's go, in steps of 100 us.
const GO_STEPS_MAX: u32 = 100_000;
/// A sample stands for no more than this many times its CPU time.
const STRETCH_MAX: u64 = 20;

/// The runtime.
pub struct Causal;

/// What it keeps per thread.
pub struct Local {
    sampler: ThreadSampler,
    pub(crate) ledger: Ledger,
    pub(crate) team: team::State,
    pub(crate) watch: Watch,
}

static PERIOD_NS: AtomicU64 = AtomicU64::new(0);
/// Cells of threads handed out.
static CELLS: AtomicU32 = AtomicU32::new(0);

impl Hooks for Causal {
    type Local = Local;
    const INTEREST: Interest = Interest::SYNC
        .and(Interest::LOCKS)
        .and(Interest::WAKES)
        .and(Interest::SLEEP)
        .and(Interest::POLL)
        .and(Interest::IO)
        .and(Interest::CHILD)
        .and(Interest::TAKES);

    fn new_local() -> Local {
        Local {
            sampler: ThreadSampler::new(),
            ledger: Ledger::new(cell()),
            team: team::State::new(),
            watch: Watch::new(),
        }
    }

    fn start() -> bool {
        let Some(shared) = shared::open() else { return false };
        let bits = shared.flags.load(Relaxed);
        shared.pid.store(sys::getpid(), Relaxed);
        let backend = if bits & flags::TIMER != 0 { Backend::Timer } else { Backend::Perf };
        let period_ns = shared.period_ns.load(Relaxed);
        PERIOD_NS.store(period_ns, Relaxed);
        dispatch::prepare();
        if let Err(reason) = sampler::install::<Self>(Config { period_ns, backend }) {
            process::complain(reason);
            shared.state.store(state::FAILED, Release);
            return false;
        }
        shared.state.store(state::READY, Release);
        if bits & flags::WAIT != 0 {
            let mut steps = 0;
            while shared.go.load(Acquire) == 0 && steps < GO_STEPS_MAX {
                let step = libc::timespec { tv_sec: 0, tv_nsec: 100_000 };
                // SAFETY: a live record.
                let _ = unsafe { sys::raw(libc::SYS_nanosleep, [&raw const step as usize, 0, 0, 0, 0, 0]) };
                steps += 1;
            }
        }
        shared.state.store(state::RUNNING, Release);
        true
    }

    fn keep_preload() -> bool {
        seat::is_followed(VARIABLE)
    }

    #[inline(always)]
    fn before_take(thread: &Thread<Local>) {
        if let Some(shared) = shared::get()
            && thread.local().ledger.may_owe(shared)
        {
            settle(thread, shared);
        }
    }

    #[inline(always)]
    fn before_wake(thread: &Thread<Local>, wake: Wake) {
        let Some(shared) = shared::get() else { return };
        let waited_for = match wake.kind {
            WakeKind::Output => true,
            // Most locks are let go with nobody behind them, whatever threads wait for elsewhere.
            WakeKind::Mutex => shared.counts.waiting.load(Relaxed) != 0 && may_have_waiters(wake.object),
            _ => shared.counts.waiting.load(Relaxed) != 0,
        };
        if waited_for || thread.local().ledger.may_owe(shared) {
            wakes(thread, shared, wake);
        } else {
            thread.local().ledger.wakes_nobody();
        }
        enter_segment(thread, shared, event::GAVE, wake.object);
    }

    #[inline(always)]
    fn after_wake(thread: &Thread<Local>, _: Wake) {
        if let Some(shared) = shared::get()
            && !is_inside(thread)
        {
            thread.busy(|| thread.local().ledger.wake_ends(shared));
        }
    }

    #[inline(always)]
    fn acquired(thread: &Thread<Local>, lock: Lock, contended: bool) {
        if !contended && let Some(shared) = shared::get() {
            enter_segment(thread, shared, event::GOT, lock.address);
        }
    }

    fn before_wait(thread: &Thread<Local>, wait: Wait) {
        let Some(shared) = shared::get() else { return };
        if is_inside(thread) {
            return;
        }
        let for_thread = is_for_thread(wait.kind);
        thread.local().watch.waited(1);
        thread.busy(|| {
            if for_thread {
                thread.local().ledger.settle(shared, Place::Hook);
            }
            thread.local().ledger.wait_begins(shared, for_thread);
            if listens(wait.kind) {
                woken::listen(true);
            }
        });
    }

    fn after_wait(thread: &Thread<Local>, wait: Wait, outcome: Outcome) {
        let Some(shared) = shared::get() else { return };
        if is_inside(thread) {
            return;
        }
        thread.busy(|| {
            if listens(wait.kind) {
                woken::listen(false);
            }
            let for_thread = is_for_thread(wait.kind);
            let by = match wait.kind {
                _ if outcome != Outcome::Done => By::Nobody,
                WaitKind::Poll => By::Output,
                WaitKind::Input if woken::is_between_threads(wait.object as i32) => By::Output,
                _ if for_thread => By::Call(wait.object),
                _ => By::Nobody,
            };
            thread.local().ledger.wait_ends(shared, wait.object, for_thread, by);
        });
    }

    fn thread_created(parent: &Thread<Local>) -> u64 {
        let Some(shared) = shared::get() else { return 0 };
        settle(parent, shared);
        // What the parent still owes is less than a pause is worth; what it earns meanwhile is not the child's debt.
        shared.global_at(pause::now_ns())
    }

    fn thread_started(thread: &Thread<Local>, origin: Origin) {
        let Some(shared) = shared::get() else { return };
        let now = shared.global_at(pause::now_ns());
        let paid = match origin {
            // It inherits its parent's account; what accrued since is its own.
            Origin::Created(paid) => paid,
            Origin::Main => pack(epoch(now), 0),
            Origin::Unknown => now,
        };
        let local = thread.local();
        local.team.begin();
        local.watch.begin();
        let cpu_ns = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
        let beginner = Beginner { tid: thread.tid(), serial: thread.serial(), routine: thread.routine() };
        local.ledger.begin(shared, paid, beginner, cpu_ns);
        let count = match local.sampler.start() {
            Backend::Perf => &shared.counts.perf_threads,
            Backend::Timer => &shared.counts.timer_threads,
            Backend::None => &shared.counts.blind_threads,
        };
        count.fetch_add(1, Relaxed);
    }

    fn thread_ended(thread: &Thread<Local>) {
        let Some(shared) = shared::get() else { return };
        thread.local().sampler.stop();
        team::thread_ends(thread);
        thread.busy(|| thread.local().ledger.end(shared));
        // SAFETY: no preconditions. Who joins waits for this number.
        woken::leave_word(unsafe { libc::pthread_self() } as usize, shared.global_at(pause::now_ns()));
    }

    fn forked(thread: Option<&Thread<Local>>) -> AfterFork {
        thread::for_each::<Self>(|thread| thread.local().sampler.forked());
        let (Some(shared), Some(thread)) = (shared::move_to_own(), thread) else {
            shared::cut_off();
            return AfterFork::Leave;
        };
        woken::forget();
        shared.pid.store(sys::getpid(), Relaxed);
        shared.counts.threads.store(CELLS.load(Relaxed), Relaxed);
        thread.local().ledger.forked();
        Self::thread_started(thread, Origin::Main);
        shared.state.store(state::RUNNING, Release);
        AfterFork::Follow
    }

    fn unloading(closed: bool) {
        if closed {
            module::closed();
            if let Some(shared) = shared::get() {
                shared.counts.unloads.fetch_add(1, Release);
            }
        } else {
            module::closing();
        }
    }

    fn ending(ending: Ending) {
        let Some(shared) = shared::get() else { return };
        let mut missed = 0;
        thread::for_each_slot::<Self>(|thread| missed += thread.local().sampler.missed());
        shared.counts.missed.store(missed, Relaxed);
        let reached = if ending == Ending::Exec { state::EXECUTED } else { state::ENDED };
        shared.state.store(reached, Release);
    }
}

impl Sampled for Causal {
    fn sampler(local: &Local) -> &ThreadSampler {
        &local.sampler
    }

    fn sample(thread: &Thread<Local>, sample: &mut Sample) {
        let Some(shared) = shared::get() else { return };
        let blocked = sample.blocked;
        if thread.local().team.waits() && team::really_waits(thread, sample.regs.pc()) {
            return;
        }
        let found = attribute(shared, sample);
        thread.busy(|| {
            let local = thread.local();
            let counts = &shared.counts;
            // A timer strikes when the kernel's tick lets it: its samples stand for what has passed.
            let passed_ns = match local.sampler.backend() {
                Backend::Timer => sample.cpu_ns(),
                _ => PERIOD_NS.load(Relaxed),
            };
            let cpu_ns = sys::clock_ns(libc::CLOCK_THREAD_CPUTIME_ID);
            let passed = local.ledger.pass_time(shared, cpu_ns);
            if let Some(thread) = thread::known::<Local>() {
                unseen::look(thread, shared, &passed, blocked);
            }
            let Passed { wanted_ns, ran_ns, .. } = passed;
            counts.wanted_ns.fetch_add(wanted_ns, Relaxed);
            counts.sampled_ns.fetch_add(ran_ns, Relaxed);
            // What the sample stands for, stretched by the load of other programs.
            let stretch = |ns: u64| {
                let most = ns.saturating_mul(STRETCH_MAX);
                let stretched = u128::from(ns) * u128::from(wanted_ns) / u128::from(ran_ns.max(1));
                u64::try_from(stretched).unwrap_or(most).clamp(ns, most)
            };
            if !local.ledger.sample_is_ours(passed_ns) {
                counts.samples.fetch_add(1, Relaxed);
                let target = if let Found::Target(target) = found { target } else { 0 };
                local.ledger.sampled(shared, target, stretch(passed_ns));
                match found {
                    Found::Target(target) => {
                        if let Some(count) = shared.samples.get(target as usize) {
                            count.fetch_add(1, Relaxed);
                        }
                    }
                    Found::OutOfScope => drop(counts.out_of_scope.fetch_add(1, Relaxed)),
                    Found::Cut => drop(counts.cut.fetch_add(1, Relaxed)),
                    Found::Unresolved => drop(counts.unresolved.fetch_add(1, Relaxed)),
                }
            }
            local.ledger.settle(shared, Place::Handler);
        });
    }
}

/// Whether the thread is in a section of ours, or inside a wait already: what happens there is a part of it.
#[inline(always)]
fn is_inside(thread: &Thread<Local>) -> bool {
    thread.is_busy() || thread.local().team.waits()
}

#[inline(always)]
pub(crate) fn enter_segment(thread: &Thread<Local>, shared: &Shared, event: u64, object: usize) {
    if !is_inside(thread) {
        thread.busy(|| thread.local().ledger.enter_segment(shared, event, object));
    }
}

#[cold]
#[inline(never)]
fn settle(thread: &Thread<Local>, shared: &Shared) {
    if !is_inside(thread) {
        thread.busy(|| thread.local().ledger.settle(shared, Place::Hook));
    }
}

/// Whether somebody may sleep on a mutex that the caller holds: its first word is 1 if nobody does (glibc; 2 or a thread's
/// id otherwise).
#[inline(always)]
fn may_have_waiters(mutex: usize) -> bool {
    // SAFETY: the program is about to unlock this mutex, so it is mapped, aligned, and starts with the lock word.
    unsafe { (*(mutex as *const AtomicU32)).load(Relaxed) != 1 }
}

/// Serves all debts, then leaves word for who is woken.
#[cold]
#[inline(never)]
fn wakes(thread: &Thread<Local>, shared: &Shared, wake: Wake) {
    settle(thread, shared);
    if wake.kind != WakeKind::Output {
        let now = pause::now_ns();
        let global = shared.global_at(now);
        woken::leave_word(wake.object, global);
        if !is_inside(thread) {
            thread.local().ledger.wake_begins(global, now);
        }
    } else if woken::are_listeners() {
        woken::output(wake.object as i32, shared.global_at(pause::now_ns()));
    }
}

/// Serves all debts of the calling thread.
pub(crate) fn settle_now() {
    if let (Some(shared), Some(thread)) = (shared::get(), thread::current::<Causal>()) {
        settle(thread, shared);
    }
}

/// The calling thread waits in a way of its own.
pub(crate) fn custom_wait_begins() {
    if let Some(thread) = thread::current::<Causal>() {
        Causal::before_wait(thread, Wait { kind: WaitKind::Futex, object: 0 });
    }
}

/// It does not any more.
pub(crate) fn custom_wait_ends(woken: bool) {
    if let Some(thread) = thread::current::<Causal>() {
        let outcome = if woken { Outcome::Done } else { Outcome::Failed };
        Causal::after_wait(thread, Wait { kind: WaitKind::Futex, object: 0 }, outcome);
    }
}

fn is_for_thread(kind: WaitKind) -> bool {
    use WaitKind::*;
    match kind {
        Mutex | Read | Write | Spin | Condition | Barrier | Semaphore | Join | Futex | FutexLock | Signal => {
            true
        }
        Sleep | Poll | Input | Output | Connection | Storage | Child => false,
    }
}

/// Whether such a wait may end by another thread's output.
fn listens(kind: WaitKind) -> bool {
    matches!(kind, WaitKind::Input | WaitKind::Poll)
}

/// A cell for a new slot: a shared one while there are any, then one that nobody looks at.
fn cell() -> *mut ThreadCell {
    static SPARE: preload::arena::Arena = preload::arena::Arena::new();
    const SPARE_BYTES: usize = 1 << 30;
    if let Some(shared) = shared::get() {
        let at = CELLS.fetch_add(1, Relaxed);
        if let Some(cell) = shared.threads.get(at as usize) {
            shared.counts.threads.fetch_max(at + 1, Relaxed);
            return &raw const *cell as *mut ThreadCell;
        }
    }
    let _ = SPARE.reserve(SPARE_BYTES);
    match SPARE.take(core::alloc::Layout::new::<ThreadCell>()) {
        Some(memory) => memory.cast::<ThreadCell>().as_ptr(),
        // Threads without memory share an account: wrong delays for them, but no fault.
        None => {
            static LAST: ThreadCell = ThreadCell {
                doing: AtomicU32::new(0),
                tid: AtomicU32::new(0),
                paid: AtomicU64::new(0),
                spun_ns: AtomicU64::new(0),
                earner: AtomicU64::new(0),
            };
            &raw const LAST as *mut ThreadCell
        }
    }
}
