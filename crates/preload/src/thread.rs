//! The threads of the program.
//!
//! Each has a slot in private memory that outlives it: the slots form an append-only list (for whoever wants
//! to visit all threads) and free ones a stack (for the next thread). The calling thread's slot is found
//! through one word of thread-local storage: 0 for a thread not met yet, 1 for one that is left alone (our own
//! threads, ended ones, a forked child), else the slot's address.
//!
//! A thread is met in `pthread_create` (its slot is taken by the parent and carries the start routine), at
//! start for the main thread, or at its first wait when libc created it behind our back. It is let go by a
//! thread-specific-data destructor that re-arms itself until the last round, so it runs after the program's
//! own destructors, whether the thread returned, called `pthread_exit` or was cancelled.
//!
//! Never: a lock. Slots are pushed and popped with compare-and-swap (the free stack with a tag against ABA).

use crate::arena::Arena;
use crate::hooks::{Hooks, Origin, Outcome, Wait};
use crate::{abi::*, dispatch, errno, process, real, sys, tls};
use core::alloc::Layout;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, compiler_fence,
};

/// Word of a thread that is left alone.
const LEFT_ALONE: usize = 1;
/// Rounds of thread-specific-data destructors that libc makes (`PTHREAD_DESTRUCTOR_ITERATIONS`).
const DESTRUCTOR_ROUNDS: u32 = 4;
/// Address space for slots: a thousandth of what a process has, enough for a million threads.
const SLOTS_BYTES_MAX: usize = 1 << 32;

/// Of the frames above `arrive` (ours, libc's `start_thread`), or of the thread's descriptor (2304 bytes in
/// glibc), which follows them in the same block: mapped in any case.
const START_FRAMES_BYTES: usize = 1024;

/// One thread of the program, or the slot that waits for the next one.
///
/// Fields without atomics are touched by the owning thread only (its signal handlers included), or by its
/// parent before it runs.
#[derive(Debug)]
#[repr(align(64))]
pub struct Thread<L> {
    local: L,
    state: AtomicU32,
    busy: AtomicU32,
    tid: AtomicU32,
    rounds: Cell<u32>,
    serial: AtomicU64,
    stack_low: AtomicUsize,
    stack_high: AtomicUsize,
    waiting: Cell<Option<Wait>>,
    /// See `dispatch`: read by the kernel, and whether it does.
    gate: AtomicU8,
    armed: Cell<bool>,
    start: Cell<Start>,
    next: AtomicPtr<Thread<L>>,
    next_free: AtomicPtr<Thread<L>>,
}

// SAFETY: `Cell` fields follow the ownership rule in the type's documentation; `local` is the runtime's to
// share, and it is only reached through `&`.
unsafe impl<L> Sync for Thread<L> {}

#[derive(Clone, Copy, Debug)]
struct Start {
    routine: Ptr,
    argument: Ptr,
    token: u64,
    stack_bytes: usize,
}

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const LIVE: u32 = 2;

static SLOTS: Arena = Arena::new();
static ALL: AtomicUsize = AtomicUsize::new(0);
/// Free slots: address (48 bits) and a tag that changes with every pop (16 bits).
static FREE_SLOTS: AtomicU64 = AtomicU64::new(0);
static SERIAL: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
static KEY: AtomicU32 = AtomicU32::new(u32::MAX);
static DEFAULT_STACK_BYTES: AtomicUsize = AtomicUsize::new(0);

impl<L> Thread<L> {
    /// What the runtime keeps for this thread.
    #[inline(always)]
    pub fn local(&self) -> &L {
        &self.local
    }

    /// The kernel's id.
    pub fn tid(&self) -> u32 {
        self.tid.load(Relaxed)
    }

    /// In a forked child: the thread has another id there.
    pub(crate) fn forked(&self) {
        self.disarmed();
        self.tid.store(sys::gettid(), Relaxed);
    }

    /// Whether the kernel looks at the gate.
    pub fn armed(&self) -> bool {
        self.armed.get()
    }

    pub(crate) fn set_armed(&self) {
        self.armed.set(true);
    }

    pub(crate) fn gate(&self) -> &AtomicU8 {
        &self.gate
    }

    /// A new thread, and the child of a fork, is not armed.
    pub(crate) fn disarmed(&self) {
        self.gate.store(0, Relaxed);
        self.armed.set(false);
    }

    /// Address of the routine that the thread was created with; 0 if nobody watched.
    pub fn routine(&self) -> usize {
        self.start.get().routine as usize
    }

    /// A number that no other thread of the process has had.
    pub fn serial(&self) -> u64 {
        self.serial.load(Relaxed)
    }

    /// Addresses between which everything from the stack pointer upwards is known to be mapped while the stack
    /// pointer lies between them; empty when unknown.
    #[inline]
    pub fn stack(&self) -> core::ops::Range<usize> {
        self.stack_low.load(Relaxed)..self.stack_high.load(Relaxed)
    }

    /// Whether the thread is inside a section of ours that its own signal handler must not enter.
    #[inline(always)]
    pub fn is_busy(&self) -> bool {
        self.busy.load(Relaxed) != 0
    }

    /// Runs `f` while the thread's signal handler keeps out (see [`Thread::is_busy`]).
    #[inline(always)]
    pub fn busy<R>(&self, f: impl FnOnce() -> R) -> R {
        let depth = self.busy.load(Relaxed);
        self.busy.store(depth + 1, Relaxed);
        // Only this thread's handler looks: a compiler fence orders it, no barrier is needed.
        compiler_fence(SeqCst);
        let result = f();
        compiler_fence(SeqCst);
        self.busy.store(depth, Relaxed);
        result
    }

    pub(crate) fn wait_begins<H: Hooks<Local = L>>(&self, wait: Wait) {
        errno::preserve(|| {
            self.settle::<H>();
            self.waiting.set(Some(wait));
            H::before_wait(self, wait);
        });
    }

    pub(crate) fn wait_ends<H: Hooks<Local = L>>(&self, wait: Wait, outcome: Outcome) {
        errno::preserve(|| {
            self.waiting.set(None);
            H::after_wait(self, wait, outcome);
        });
    }

    /// Ends a wait that was left by cancellation.
    fn settle<H: Hooks<Local = L>>(&self) {
        if let Some(left) = self.waiting.take() {
            H::after_wait(self, left, Outcome::Cancelled);
        }
    }
}

/// The calling thread, met now if need be; `None` when it is to be left alone.
#[inline(always)]
pub fn current<H: Hooks>() -> Option<&'static Thread<H::Local>> {
    let word = tls::get();
    if word > LEFT_ALONE {
        // SAFETY: a larger word is the address of a slot of this type (one `Hooks` per library), and slots
        // are never unmapped.
        Some(unsafe { &*(word as *const Thread<H::Local>) })
    } else if word == 0 {
        meet::<H>()
    } else {
        None
    }
}

/// The calling thread if it has been met, whatever context this is. For signal handlers.
#[inline(always)]
pub fn known<L>() -> Option<&'static Thread<L>> {
    let word = tls::get();
    // SAFETY: as in `current`; the caller names the library's own `Local`.
    (word > LEFT_ALONE).then(|| unsafe { &*(word as *const Thread<L>) })
}

/// From now on the calling thread is none of the program's.
pub fn leave_alone() {
    tls::set(LEFT_ALONE);
}

/// Threads that found no slot and go unprofiled.
pub fn refused() -> u64 {
    REFUSED.load(Relaxed)
}

/// Visits every live thread. A thread may end while it is visited; its slot stays readable.
pub fn for_each<H: Hooks>(mut f: impl FnMut(&'static Thread<H::Local>)) {
    for_each_slot::<H>(|slot| {
        if slot.state.load(Acquire) == LIVE {
            f(slot);
        }
    });
}

/// Visits every slot ever used, live or not: where data of ended threads is found.
pub fn for_each_slot<H: Hooks>(mut f: impl FnMut(&'static Thread<H::Local>)) {
    let mut at = ALL.load(Acquire) as *const Thread<H::Local>;
    // SAFETY: the list holds slots of this type, is append-only, and slots are never unmapped.
    while let Some(slot) = unsafe { at.as_ref() } {
        f(slot);
        at = slot.next.load(Acquire);
    }
}

/// Starts a thread of ours, which is never profiled, traced or given the program's signals.
pub fn spawn_ours(routine: extern "C" fn(Ptr) -> Ptr, argument: Ptr) -> bool {
    extern "C-unwind" fn run(slot: Ptr) -> Ptr {
        leave_alone();
        // SAFETY: `spawn_ours` passes a live pair and waits until it has been read.
        let (routine, argument) = unsafe {
            let pair = &*(slot as *const (extern "C" fn(Ptr) -> Ptr, Ptr, AtomicU32));
            let copy = (pair.0, pair.1);
            pair.2.store(1, Release);
            copy
        };
        routine(argument)
    }
    let pair = (routine, argument, AtomicU32::new(0));
    let mut thread: Word = 0;
    // SAFETY: plain data, initialized below before it is used.
    let mut attr: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    let (all, mut before) = (u64::MAX, 0u64);
    let mask = |set: *const u64, old: *mut u64| {
        let args = [libc::SIG_SETMASK as usize, set as usize, old as usize, 8, 0, 0];
        // SAFETY: both sets are live eight-byte kernel sets.
        let _ = unsafe { sys::raw(libc::SYS_rt_sigprocmask, args) };
    };
    mask(&all, &raw mut before);
    // SAFETY: the attribute is initialized before use, `pair` outlives the loop below.
    let made = unsafe {
        libc::pthread_attr_init(&mut attr);
        libc::pthread_attr_setdetachstate(&mut attr, libc::PTHREAD_CREATE_DETACHED);
        let out = &raw mut thread as Ptr;
        let code =
            real::pthread_create(out, &raw mut attr as Ptr, run as *const () as Ptr, &raw const pair as Ptr);
        libc::pthread_attr_destroy(&mut attr);
        code == 0
    };
    mask(&before, core::ptr::null_mut());
    while made && pair.2.load(Acquire) == 0 {
        sys::yield_now();
    }
    made
}

/// Makes the key, the slots and the bounds that threads need. Once, at start.
pub(crate) fn prepare<H: Hooks>() -> bool {
    extern "C" fn destructor<H: Hooks>(value: Ptr) {
        destructor_round::<H>(value);
    }
    let mut key = 0;
    // SAFETY: plain data, initialized below before it is used.
    let mut attr: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    let mut bytes = 0;
    // SAFETY: out-pointers are live; the attribute is initialized before it is read.
    let ok = unsafe {
        libc::pthread_attr_init(&mut attr);
        libc::pthread_attr_getstacksize(&attr, &mut bytes);
        libc::pthread_attr_destroy(&mut attr);
        libc::pthread_key_create(&mut key, Some(destructor::<H>)) == 0
    };
    DEFAULT_STACK_BYTES.store(bytes, Relaxed);
    KEY.store(key, Relaxed);
    ok && SLOTS.reserve(SLOTS_BYTES_MAX).is_ok()
}

/// Takes in the thread that runs the constructors.
pub(crate) fn meet_main<H: Hooks>(stack_top: usize) {
    // The kernel keeps at least 128 MB below the top free of other mappings, and the stack's limit.
    let bytes = sys::soft_limit(libc::RLIMIT_STACK).min(128 << 20);
    if let Some(slot) = take::<H>() {
        slot.stack_low.store(stack_top.saturating_sub(bytes), Relaxed);
        slot.stack_high.store(stack_top, Relaxed);
        run_as::<H>(slot, Origin::Main);
    }
}

#[cold]
#[inline(never)]
fn meet<H: Hooks>() -> Option<&'static Thread<H::Local>> {
    if !process::active() {
        if process::off() {
            leave_alone();
        }
        return None;
    }
    errno::preserve(|| {
        tls::set(LEFT_ALONE);
        let slot = take::<H>()?;
        slot.stack_low.store(0, Relaxed);
        slot.stack_high.store(0, Relaxed);
        run_as::<H>(slot, Origin::Unknown);
        Some(slot)
    })
}

/// The calling thread becomes the one that `slot` stands for.
fn run_as<H: Hooks>(slot: &'static Thread<H::Local>, origin: Origin) {
    slot.tid.store(sys::gettid(), Relaxed);
    slot.rounds.set(0);
    slot.busy.store(0, Relaxed);
    slot.waiting.set(None);
    slot.disarmed();
    slot.state.store(LIVE, Release);
    tls::set(slot as *const _ as usize);
    // SAFETY: the key was made in `prepare`. Keys below 32 need no allocation; ours is among the first.
    unsafe { libc::pthread_setspecific(KEY.load(Relaxed), slot as *const _ as *const _) };
    H::thread_started(slot, origin);
}

/// A round of thread-specific-data destructors has reached us.
fn destructor_round<H: Hooks>(value: Ptr) {
    let Some(slot) = known::<H::Local>() else { return };
    slot.rounds.set(slot.rounds.get() + 1);
    if slot.rounds.get() < DESTRUCTOR_ROUNDS {
        // SAFETY: as in `run_as`.
        unsafe { libc::pthread_setspecific(KEY.load(Relaxed), value) };
        return;
    }
    slot.settle::<H>();
    H::thread_ended(slot);
    dispatch::disarm(slot);
    leave_alone();
    give_back(slot);
}

/// The parent, and the slot that the child will run as.
type Announced<H> = (&'static Thread<<H as Hooks>::Local>, &'static Thread<<H as Hooks>::Local>);

/// Wraps a start routine: gives the slot that the child will run as, or `None` when it is to run bare.
pub(crate) fn announce<H: Hooks>(attr: Ptr, routine: Ptr, argument: Ptr) -> Option<Announced<H>> {
    let parent = current::<H>()?;
    let slot = take::<H>()?;
    let mut stack_bytes = DEFAULT_STACK_BYTES.load(Relaxed);
    if !attr.is_null() {
        // SAFETY: the program passes a valid attribute; the out-pointer is live.
        unsafe { libc::pthread_attr_getstacksize(attr as *const _, &mut stack_bytes) };
    }
    let token = errno::preserve(|| H::thread_created(parent));
    slot.start.set(Start { routine, argument, token, stack_bytes });
    Some((parent, slot))
}

/// The creation that `announce` prepared has failed.
pub(crate) fn renounce<H: Hooks>(parent: &Thread<H::Local>, slot: &'static Thread<H::Local>) {
    errno::preserve(|| H::thread_create_failed(parent, slot.start.get().token));
    give_back(slot);
}

/// First frame of an announced thread: becomes `slot` and gives what to run.
pub(crate) fn arrive<H: Hooks>(slot: Ptr) -> (Ptr, Ptr) {
    // SAFETY: `announce` made the slot for this thread alone.
    let slot = unsafe { &*(slot as *const Thread<H::Local>) };
    let start = slot.start.get();
    if !process::active() {
        leave_alone();
        return (start.routine, start.argument);
    }
    let mark = 0u8;
    let top = &raw const mark as usize;
    // The thread's block ends a little above this frame (its descriptor and thread-local storage are there),
    // so its low end lies above `top - stack_bytes`. Staying a quarter away from it costs a slower read in a
    // nearly full stack and never touches a guard page.
    slot.stack_low.store(top - start.stack_bytes.min(top) / 4 * 3, Relaxed);
    slot.stack_high.store(top + START_FRAMES_BYTES, Relaxed);
    run_as::<H>(slot, Origin::Created(start.token));
    (start.routine, start.argument)
}

/// In a forked child that goes on being profiled: the other threads are gone.
pub(crate) fn forget_others<H: Hooks>() {
    let me = tls::get();
    for_each_slot::<H>(|slot| {
        if slot as *const _ as usize != me && slot.state.load(Relaxed) == LIVE {
            give_back(slot);
        }
    });
}

fn take<H: Hooks>() -> Option<&'static Thread<H::Local>> {
    let slot = pop::<H::Local>().or_else(grow::<H>);
    match slot {
        Some(slot) => {
            slot.state.store(TAKEN, Relaxed);
            slot.serial.store(SERIAL.fetch_add(1, Relaxed), Relaxed);
        }
        None => drop(REFUSED.fetch_add(1, Relaxed)),
    }
    slot
}

fn grow<H: Hooks>() -> Option<&'static Thread<H::Local>> {
    let memory = SLOTS.take(Layout::new::<Thread<H::Local>>())?.cast::<Thread<H::Local>>();
    let none =
        Start { routine: core::ptr::null_mut(), argument: core::ptr::null_mut(), token: 0, stack_bytes: 0 };
    // SAFETY: fresh memory of the right size and alignment, seen by nobody else yet.
    let slot: &'static Thread<H::Local> = unsafe {
        memory.write(Thread {
            local: H::new_local(),
            state: AtomicU32::new(TAKEN),
            busy: AtomicU32::new(0),
            tid: AtomicU32::new(0),
            rounds: Cell::new(0),
            serial: AtomicU64::new(0),
            stack_low: AtomicUsize::new(0),
            stack_high: AtomicUsize::new(0),
            waiting: Cell::new(None),
            gate: AtomicU8::new(0),
            armed: Cell::new(false),
            start: Cell::new(none),
            next: AtomicPtr::new(core::ptr::null_mut()),
            next_free: AtomicPtr::new(core::ptr::null_mut()),
        });
        memory.as_ref()
    };
    let mut first = ALL.load(Relaxed);
    loop {
        slot.next.store(first as *mut _, Relaxed);
        match ALL.compare_exchange_weak(first, memory.as_ptr() as usize, Release, Relaxed) {
            Ok(_) => return Some(slot),
            Err(now) => first = now,
        }
    }
}

const ADDRESS: u64 = (1 << 48) - 1;

fn pop<L>() -> Option<&'static Thread<L>> {
    let mut top = FREE_SLOTS.load(Acquire);
    loop {
        // SAFETY: the address part is null or a slot, and slots are never unmapped, so that reading the next
        // link of one that another thread has just popped is harmless; the tag then fails the exchange.
        let slot: &'static Thread<L> = unsafe { ((top & ADDRESS) as *const Thread<L>).as_ref()? };
        let next = slot.next_free.load(Relaxed) as u64 | (top & !ADDRESS).wrapping_add(ADDRESS + 1);
        match FREE_SLOTS.compare_exchange_weak(top, next, AcqRel, Acquire) {
            Ok(_) => return Some(slot),
            Err(now) => top = now,
        }
    }
}

fn give_back<L>(slot: &'static Thread<L>) {
    slot.state.store(FREE, Release);
    let mut top = FREE_SLOTS.load(Relaxed);
    loop {
        slot.next_free.store((top & ADDRESS) as *mut _, Relaxed);
        let new = slot as *const _ as u64 | (top & !ADDRESS);
        match FREE_SLOTS.compare_exchange_weak(top, new, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => top = now,
        }
    }
}
