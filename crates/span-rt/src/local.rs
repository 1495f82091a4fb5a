//! What a thread knows: its clock, the task that it runs, and what it has looked up before.
//!
//! The current task lives in the stack frame of whoever runs it; a thread points to it. A foreign task can only
//! run on this stack inside a call to the parallel runtime, and whoever makes such a call writes the whole state
//! again when it returns ([`Local::resume`]). So nothing needs to be saved per task, and stealing needs no care.

mod books;
mod called;
mod follow;
mod lookup;
mod mode;
mod plain;
mod program;
mod running;
mod strand;
mod timed;

pub use follow::{is_on as follows_calls, unwind};
pub(crate) use mode::rescale;
pub use mode::{Mode, burden, choose, heavy, is_whole, mode, scale};
pub use program::{Collected, PROGRAM, collect, gather, is_root, start};
pub use running::Running;
pub use timed::{ForkKey, Fresh, Place};

use crate::calls::{Call, CallLog};
use crate::clock::{self, Clock};
use crate::env::{Cost, settings};
use crate::samples::{self, StrandLog};
use crate::share::{Habit, Sharing};
use crate::stack;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, Ordering};
use lookup::Fork;
use spandag::task::{Books, Tally};
use spandag::{Arena, Entry, Site};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use timed::LightFork;

const ENTRY_SLOTS: usize = 64;
const SITE_SLOTS: usize = 256;
const FORK_SLOTS: usize = 64;
const HABITS: usize = 64;

/// One thread. What every fork touches comes first.
#[repr(C)]
pub struct Local {
    current: Cell<*mut Running>,
    /// If not null, the current task has not been made yet, and this is what of.
    fresh: Cell<*const Fresh>,
    fresh_tally: Cell<*const Tally>,
    begun: Cell<u64>,
    /// When the last task ended on this thread, and whose child it was: the next strand may start there.
    stamp: Cell<u64>,
    tag: Cell<usize>,
    /// While a strand runs, the base of its task; whoever takes samples looks at it.
    strand: Cell<u64>,
    /// In [`Mode::Timed`]: 0 if more has happened than that time has passed.
    calm: Cell<*const u64>,
    /// What the statics say: they are as good as fields only where they are defined.
    hook: Cell<u64>,
    heavy: Cell<u64>,
    burden: Cell<u64>,
    /// Ticks that may be spent on calls in which tasks fork; at most [`allowance_max`](Self::allowance_max).
    allowance: Cell<i64>,
    allowance_max: Cell<i64>,
    /// Readings that strands share; see [`Mode`].
    pub sharing: Sharing,
    /// The fork that was looked up last.
    last: LightFork,
    arena: UnsafeCell<Arena>,
    /// Its clock.
    pub clock: Clock,
    stack_top: usize,
    books: UnsafeCell<Books>,
    busy: AtomicBool,
    entries: [Cell<(u64, Entry)>; ENTRY_SLOTS],
    known: [Cell<((usize, usize), Site)>; SITE_SLOTS],
    forks: [Fork; FORK_SLOTS],
    /// Forks of light tasks: those that were looked up last, and all.
    light: [LightFork; FORK_SLOTS],
    places: Mutex<HashMap<ForkKey, &'static Place>>,
    /// The task of a thread that the program started itself.
    own_root: Cell<*mut Running>,
    /// Forks where only lengths are kept, and what strands have been like there.
    plain_forks: Cell<u64>,
    habits: [[Habit; 3]; HABITS],
    /// There came a time when calls that tasks fork in were not looked at.
    skipped: Cell<bool>,
    /// Where the engine tells of calls; null in other modes.
    calls: *mut CallLog,
    /// For a copy of them.
    copy: Cell<Vec<Call>>,
    /// Samples of the strand that runs.
    samples: Cell<*mut StrandLog>,
}

thread_local! {
    static HERE: Cell<*const Local> = const { Cell::new(core::ptr::null()) };
    static END: ThreadEnd = const { ThreadEnd };
}

struct ThreadEnd;

impl Drop for ThreadEnd {
    fn drop(&mut self) {
        let here = HERE.get();
        if !here.is_null() {
            // SAFETY: locals are leaked on purpose, so that records outlive threads.
            unsafe { &*here }.thread_ends();
        }
    }
}

static ALL: Mutex<Vec<Shared>> = Mutex::new(Vec::new());
static STOP: AtomicBool = AtomicBool::new(false);
/// For threads of which nothing tells for free that nothing has happened.
static NEVER_CALM: u64 = 0;

struct Shared(*const Local);
// SAFETY: other threads read only the books and counters, and only under the protocol of `collect`.
unsafe impl Send for Shared {}

impl Local {
    /// This thread's.
    #[inline(always)]
    pub fn here() -> &'static Local {
        let here = HERE.get();
        if here.is_null() {
            return Self::first();
        }
        // SAFETY: leaked when it was made.
        unsafe { &*here }
    }

    #[cold]
    fn first() -> &'static Local {
        let mut local = Box::new(Local {
            clock: Clock::new(),
            current: Cell::new(core::ptr::null_mut()),
            fresh: Cell::new(core::ptr::null()),
            fresh_tally: Cell::new(core::ptr::null()),
            begun: Cell::new(0),
            stamp: Cell::new(0),
            tag: Cell::new(0),
            stack_top: stack::top(),
            books: UnsafeCell::default(),
            arena: UnsafeCell::default(),
            busy: AtomicBool::new(false),
            entries: [const { Cell::new((u64::MAX, Entry { context: 0, top_site: false, top_caller: false })) };
                ENTRY_SLOTS],
            known: [const { Cell::new(((0, 0), 0)) }; SITE_SLOTS],
            forks: [const { Fork::none() }; FORK_SLOTS],
            light: [const { LightFork::none() }; FORK_SLOTS],
            places: Mutex::default(),
            sharing: Sharing::new(),
            own_root: Cell::new(core::ptr::null_mut()),
            plain_forks: Cell::new(0),
            habits: [const { [const { Habit::new() }; 3] }; HABITS],
            calls: core::ptr::null_mut(),
            copy: Cell::default(),
            strand: Cell::new(0),
            calm: Cell::new(&raw const NEVER_CALM),
            last: LightFork::none(),
            hook: Cell::new(0),
            heavy: Cell::new(0),
            burden: Cell::new(0),
            allowance: Cell::new(0),
            allowance_max: Cell::new(0),
            skipped: Cell::new(false),
            samples: Cell::new(StrandLog::nobody()),
        });
        if settings().cost == Cost::Instructions {
            local.calls = CallLog::leaked();
        }
        local.clock.settle_with(local.calls);
        let local: &'static Local = Box::leak(local);
        local.refresh();
        HERE.set(local);
        END.with(|_| ());
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(Shared(local));
        if samples::cost() != 0 {
            local.be_sampled();
        }
        local
    }

    /// Looks at what may have changed.
    pub fn refresh(&self) {
        self.hook.set(clock::HOOK.load(Ordering::Relaxed));
        self.heavy.set(mode::HEAVY.load(Ordering::Relaxed));
        self.burden.set(burden());
        self.calm.set(self.clock.calm().unwrap_or(&raw const NEVER_CALM));
        self.sharing.start_if_known();
        self.allow_following();
    }

    /// Strands of this thread are sampled from now on.
    pub fn be_sampled(&self) {
        self.samples.set(StrandLog::of_thread(self.strand.as_ptr()));
    }

    /// That address if it lies on this thread's stack, above the caller's frame; else its end.
    pub fn within_stack(&self, address: usize) -> usize {
        let mark = 0u64;
        let here = core::ptr::from_ref(&mark) as usize;
        if (here..self.stack_top).contains(&address) { address } else { self.stack_top }
    }

    /// The nodes of this thread.
    #[expect(clippy::mut_from_ref, reason = "nobody keeps the reference: see below")]
    #[inline(always)]
    pub fn arena(&self) -> &mut Arena {
        // SAFETY: only this thread uses its nodes (and `collect`, once the program is over); callers pass the
        // reference to one operation on a task, which calls nothing of ours.
        unsafe { &mut *self.arena.get() }
    }

    /// No task runs on this thread until one is resumed.
    #[inline]
    pub fn leave(&self) {
        self.fresh.set(core::ptr::null());
        self.current.set(core::ptr::null_mut());
    }

    fn thread_ends(&self) {
        let root = self.own_root.replace(core::ptr::null_mut());
        if root.is_null() {
            return;
        }
        if self.current.get() == root {
            self.pause();
        }
        // SAFETY: made by `adopt`, and nobody else has it.
        let mut running = *unsafe { Box::from_raw(root) };
        self.all_calls_return(&mut running);
        gather(self.end_apart(&mut running.task));
    }
}
