//! What a thread knows: its clock, the task that it runs, and what it has looked up before.
//!
//! The current task lives in the stack frame of whoever runs it; a thread points to it. A foreign task can only
//! run on this stack inside a call to the parallel runtime, and whoever makes such a call writes the whole state
//! again when it returns ([`Local::resume`]). So nothing needs to be saved per task, and stealing needs no care.

mod follow;
mod timed;

use timed::LightFork;
pub use timed::{ForkKey, Fresh, Place};

use crate::calls::{self, Call, CallLog, Event, Suspended};
use crate::clock::{self, Clock};
use crate::env::{Cost, settings};
use crate::samples::{self, StrandLog};
use crate::share::{Habit, Sharing};
use crate::{repeat, sites, stack};
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, Ordering, fence};
use spandag::task::{Books, Gather, Opened, Outcome, Spawned, Tally, Task};
use spandag::{Arena, Context, Entry, Scale, Site};
use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};

/// In ticks, about 20 µs; in instructions, about as much.
const HEAVY_TICKS: u64 = 50_000;
const ENTRY_SLOTS: usize = 64;
const SITE_SLOTS: usize = 256;
const FORK_SLOTS: usize = 64;
const HABITS: usize = 64;

/// A task and what its thread needs to know of it.
pub struct Running {
    /// The task.
    pub task: Task,
    /// Stack address above which frames belong to other tasks.
    pub base: usize,
    /// What kind of operation it belongs to: tasks of one kind are pieces of one operation.
    pub kind: (usize, usize),
    /// Calls in which it forks are followed: it is no side of a join.
    pub is_followed: bool,
    /// The tasks around this one that wait for a call which forks, the outermost first. Then
    /// `task` is the innermost call's.
    pub callers: Option<Box<Vec<Suspended>>>,
}

impl Running {
    /// A task that runs below `base`.
    #[inline(always)]
    pub fn new(task: Task, base: usize, kind: (usize, usize)) -> Running {
        Running { task, base, kind, is_followed: false, callers: None }
    }

    /// The same, and calls in which it forks are invocations of their own.
    pub fn followed(task: Task, base: usize) -> Running {
        Running { is_followed: follow::is_on(), ..Running::new(task, base, (0, 0)) }
    }

    /// Whether a fork of `kind` is a piece of an operation that splits itself.
    #[inline]
    pub fn is_piece_of(&self, kind: (usize, usize)) -> bool {
        self.kind == kind && self.callers.as_ref().is_none_or(|c| c.is_empty())
    }

    /// The way of the task on `side` of a fork that this one makes now: its name in other runs.
    #[inline]
    pub fn way_of_child(&self, side: u64) -> u64 {
        if repeat::is_on() { repeat::way(self.task.way, self.task.strands, side) } else { 0 }
    }

    #[cold]
    fn repeated(&mut self, cost: u64) -> u64 {
        self.task.strands += 1;
        if self.task.way == 0 {
            return cost; // what it does is not the same in every run
        }
        repeat::strand(repeat::way(self.task.way, self.task.strands, 2), cost)
    }
}

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
    /// Where the engine tells of calls; null in other modes.
    calls: *mut CallLog,
    /// For a copy of them.
    copy: Cell<Vec<Call>>,
    /// Samples of the strand that runs.
    samples: Cell<*mut StrandLog>,
}

/// A fork of two that was looked up: what was forked, in which context, and what that means for the two sides.
struct Fork {
    place: Cell<usize>,
    closure: Cell<usize>,
    context: Cell<Context>,
    sides: Cell<[(Site, Entry); 2]>,
}

impl Fork {
    const fn none() -> Fork {
        Fork {
            place: Cell::new(0),
            closure: Cell::new(0),
            context: Cell::new(0),
            sides: Cell::new([(0, Entry { context: 0, top_site: false, top_caller: false }); 2]),
        }
    }
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
static ROOT: AtomicPtr<Running> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that the program's task belongs to.
static ROOT_HOME: AtomicPtr<Local> = AtomicPtr::new(core::ptr::null_mut());
static ROOT_SCOPE: Mutex<Option<(Gather, Option<Opened>)>> = Mutex::new(None);
static STOP: AtomicBool = AtomicBool::new(false);
static BURDEN: AtomicU64 = AtomicU64::new(0);
static WHOLE: AtomicBool = AtomicBool::new(false);
static MODE: AtomicU8 = AtomicU8::new(Mode::Full as u8);
/// For threads of which nothing tells for free that nothing has happened.
static NEVER_CALM: u64 = 0;
static HEAVY: AtomicU64 = AtomicU64::new(HEAVY_TICKS);

struct Shared(*const Local);
// SAFETY: other threads read only the books and counters, and only under the protocol of `collect`.
unsafe impl Send for Shared {}

/// The scope that stands for the whole program: what is spawned and never waited for ends in it.
pub const PROGRAM: usize = 1;

/// Looks at the settings. To be called before the first task.
pub fn choose() {
    WHOLE.store(settings().whole, Ordering::Relaxed);
    let one_run = settings().cost != Cost::Instructions && settings().strands.is_none();
    let mode = match (one_run, settings().whole) {
        (true, false) => Mode::Timed,
        (true, true) => Mode::Plain,
        _ => Mode::Full,
    };
    MODE.store(mode as u8, Ordering::Relaxed);
}

/// Starts the clock and the task of the whole program, on the main thread. Later calls do nothing.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        clock::start();
        clock::choose();
        repeat::choose();
        choose();
        if settings().cost == Cost::Time {
            BURDEN.store(clock::ticks(settings().burden_ns), Ordering::Relaxed);
        } else {
            BURDEN.store(settings().burden_ns, Ordering::Relaxed);
        }
        rescale(1);
        crate::watch::start();
        calls::start();
        follow::start();
        let here = Local::here();
        let mut root = Box::new(Running::followed(sites::root(), here.stack_top));
        root.task.way = 1;
        root.task.on(here.arena());
        ROOT_HOME.store(core::ptr::from_ref(here).cast_mut(), Ordering::Release);
        let opened = root.task.open(PROGRAM, scale(), here.arena());
        *ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner) = Some((Gather::default(), Some(opened)));
        let root = Box::into_raw(root);
        ROOT.store(root, Ordering::Release);
        here.refresh();
        // From here on: what was prepared above is ours.
        here.resume(root);
    });
}

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
        self.heavy.set(HEAVY.load(Ordering::Relaxed));
        self.burden.set(burden());
        self.calm.set(self.clock.calm().unwrap_or(&raw const NEVER_CALM));
        self.sharing.start_if_known();
    }

    /// Strands of this thread are sampled from now on.
    pub fn be_sampled(&self) {
        self.samples.set(StrandLog::of_thread(self.strand.as_ptr()));
    }

    /// The strand that runs ends: the task that it belongs to. A thread that the program started itself gets a
    /// task of its own.
    #[inline]
    pub fn pause(&self) -> *mut Running {
        self.pause_as(false)
    }

    /// The same, because the task forks and will wait: calls that it is in are invocations whose children these are.
    #[inline]
    pub fn pause_to_fork(&self) -> *mut Running {
        self.pause_as(true)
    }

    #[inline(always)]
    fn pause_as(&self, forks: bool) -> *mut Running {
        if !self.fresh.get().is_null() {
            self.make_now();
        }
        let current = self.current.get();
        if current.is_null() {
            return self.adopt();
        }
        self.strand.set(0);
        let (cost, now) = self.clock.end(self.begun.get());
        let mut cost = self.sharing.settle(cost);
        self.begun.set(now);
        // SAFETY: the current task's frame is below us on this stack, and only this thread uses it.
        let running = unsafe { &mut *current };
        // SAFETY: the log of this thread, or of nobody; whoever samples us writes only while a strand runs.
        let sampled = unsafe { (&raw const (*self.samples.get()).taken).read_volatile() };
        if sampled != 0 {
            cost = cost.saturating_sub(sampled * samples::cost());
        }
        let cost = if repeat::is_on() { running.repeated(cost) } else { cost };
        if calls::is_on() {
            self.take_calls(running, cost, now, forks);
            return current;
        }
        if running.is_followed {
            self.follow_calls(running, cost, forks);
        } else {
            running.task.strand(cost);
        }
        if sampled != 0 {
            self.take_samples(running, cost);
        }
        current
    }

    /// The strand that ended has cost `cost`, and what it did is in the log.
    #[cold]
    fn take_calls(&self, running: &mut Running, cost: u64, now: u64, forks: bool) {
        // SAFETY: the log is this thread's, and never freed; the engine writes to it only while the program runs.
        let Some(log) = (unsafe { self.calls.as_mut() }) else { return running.task.strand(cost) };
        let mut copy = self.copy.take();
        let base = running.base as u64;
        // Both closures look at the task, one after the other.
        let task = core::cell::RefCell::new(running);
        log.take(
            (base, cost, now),
            forks,
            &mut copy,
            || self.innermost_call(&task.borrow()),
            |event| {
                let running = &mut *task.borrow_mut();
                match event {
                    Event::Returns(cost, calls) => {
                        self.executed(running, cost, calls);
                        self.call_returns(running);
                    }
                    Event::Enters(cost, calls, call) => {
                        self.executed(running, cost, calls);
                        self.call_starts(running, call);
                    }
                    Event::Rest(cost, calls) => self.executed(running, cost, calls),
                }
            },
        );
        self.copy.set(copy);
    }

    /// The current task executed, and made these calls.
    fn executed(&self, running: &mut Running, cost: u64, calls: &[Call]) {
        running.task.strand(cost);
        let context = running.task.entry.context;
        calls::add_up(
            calls,
            |site| self.enter(context, site),
            |site, record| {
                if let Some(books) = self.open_books() {
                    // SAFETY: as in `end`.
                    running.task.called(site, record, scale(), unsafe { &mut *books });
                    self.busy.store(false, Ordering::Release);
                }
            },
        );
    }

    /// Where the innermost call lies that the task on this stack is in.
    fn innermost_call(&self, running: &Running) -> Option<u64> {
        let last = running.callers.as_ref()?.last()?;
        core::ptr::eq(last.home, self).then_some(last.frame)
    }

    /// A call that forks is a task of its own.
    fn call_starts(&self, running: &mut Running, call: &Call) {
        self.call_of_site(running, calls::site(call), call.frame);
    }

    /// It returns: its caller goes on.
    fn call_returns(&self, running: &mut Running) {
        let Some(caller) = running.callers.as_mut().and_then(|c| c.pop()) else { return };
        let mut call = core::mem::replace(&mut running.task, caller.task);
        let mut out = Outcome::default();
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            let books = unsafe { &mut *books };
            call.finish(books, scale(), self.arena(), &mut out);
            books.halves -= 1; // no fork
            self.busy.store(false, Ordering::Release);
        }
        running.task.returned(out, scale(), self.arena());
    }

    /// The task ends, wherever it is: no call goes on.
    fn all_calls_return(&self, running: &mut Running) {
        while running.callers.as_ref().is_some_and(|c| !c.is_empty()) {
            self.call_returns(running);
        }
    }

    /// What the strand that ended was doing when it was sampled.
    #[cold]
    fn take_samples(&self, running: &mut Running, cost: u64) {
        let task = running.task.site;
        // SAFETY: as in `pause`; not the log of nobody, which has none.
        let log = unsafe { &mut *self.samples.get() };
        log.drain(task, cost, |site, record| {
            if let Some(books) = self.open_books() {
                // SAFETY: as in `end`.
                running.task.called(site, record, scale(), unsafe { &mut *books });
                self.busy.store(false, Ordering::Release);
            }
        });
        // What this took is ours.
        self.begun.set(self.clock.begin());
    }

    /// As [`pause`](Self::pause), where only lengths are kept ([`Mode::Plain`]). The next strand that starts under the name
    /// `tag` on this thread starts where this one ended.
    #[inline(always)]
    pub fn pause_plain(&self, tag: usize, habit: Option<&Habit>) -> *mut Running {
        let current = self.current.get();
        if current.is_null() {
            return self.adopt();
        }
        self.tag.set(tag);
        let cost = self.cost_shared(habit, |habit| {
            let (cost, now) = self.clock.end(self.begun.get());
            self.begun.set(now);
            match habit {
                Some(habit) => self.sharing.read(cost, habit),
                None => self.sharing.settle(cost),
            }
        });
        // SAFETY: as in `pause`.
        unsafe { &mut *current }.task.stretch(cost);
        current
    }

    /// A strand of `running` starts, as said by [`pause_plain`](Self::pause_plain), or now.
    #[inline(always)]
    pub fn resume_plain(&self, running: *mut Running, tag: usize) {
        self.current.set(running);
        if self.tag.get() != tag {
            self.begin_anew();
        }
        self.tag.set(0);
    }

    /// What strands have been like at a place that forks, where only lengths are kept. Places may share them: then they
    /// are what both have.
    #[inline(always)]
    pub fn plain_habits(&self, place: usize) -> &[Habit; 3] {
        &self.habits[(place >> 3 ^ place >> 9) % HABITS]
    }

    /// Forks are counted without a look at call sites.
    #[inline(always)]
    pub fn count_plain(&self) {
        self.plain_forks.set(self.plain_forks.get() + 1);
    }

    /// When the strand that was paused last ended.
    #[inline]
    pub fn paused_at(&self) -> u64 {
        self.begun.get()
    }

    #[cold]
    fn adopt(&self) -> *mut Running {
        start();
        let current = self.current.get();
        if !current.is_null() {
            return current; // this was the main thread's first
        }
        let mut root = Box::new(Running::followed(sites::root(), self.stack_top));
        root.task.on(self.arena());
        let root = Box::into_raw(root);
        self.own_root.set(root);
        self.resume(root);
        root
    }

    /// A strand of `running` starts now.
    #[inline]
    pub fn resume(&self, running: *mut Running) {
        // Whatever ended here before is no longer what the next strand follows.
        self.tag.set(0);
        self.current.set(running);
        self.sharing.forget();
        self.begun.set(self.clock.begin());
        self.strand_runs(running);
    }

    /// Samples are taken from here on.
    #[inline(always)]
    fn strand_runs(&self, running: *mut Running) {
        // SAFETY: the task that this thread runs now; only this thread uses it.
        let running = unsafe { &*running };
        self.strand.set(self.strand_base(running) as u64);
        if calls::is_on() {
            self.watch_calls(running);
        }
    }

    /// The log has what the task is in, and nothing else.
    fn watch_calls(&self, running: &Running) {
        // SAFETY: as in `take_calls`.
        if let Some(log) = unsafe { self.calls.as_mut() } {
            log.begin(running.base as u64, self.innermost_call(running), self.begun.get());
        }
        // What this took is ours.
        self.begun.set(self.clock.begin());
    }

    /// The strand that runs ends, if one does.
    pub fn pause_current(&self) {
        if !self.current.get().is_null() {
            self.pause();
        }
    }

    /// The task that was paused goes on.
    pub fn resume_current(&self) {
        let current = self.current.get();
        if !current.is_null() {
            self.resume(current);
        }
    }

    /// A strand of `running` started when the last task of `tag` ended on this thread, or starts now. Whether it was
    /// the former.
    #[inline]
    pub fn resume_after(&self, running: *mut Running, tag: usize) -> bool {
        self.current.set(running);
        let follows = self.tag.get() == tag;
        // Between the two, the runtime may have woken a worker, which takes microseconds. That is a part of the fork's
        // cost and hardly ever worth a reading of the clock, but here it is: where runs are compared, and counted.
        let handed_over = follows && !clock::is_counted() && !repeat::is_on();
        self.begun.set(if handed_over { self.stamp.get() } else { self.clock.begin() });
        self.tag.set(0);
        self.strand_runs(running);
        follows
    }

    /// The nodes of this thread.
    #[expect(clippy::mut_from_ref, reason = "nobody keeps the reference: see below")]
    #[inline(always)]
    pub fn arena(&self) -> &mut Arena {
        // SAFETY: only this thread uses its nodes (and `collect`, once the program is over); callers pass the
        // reference to one operation on a task, which calls nothing of ours.
        unsafe { &mut *self.arena.get() }
    }

    /// Says that the strand which starts next on this thread under the name `tag` starts at `stamp`.
    #[inline]
    pub fn hand_over(&self, tag: usize, stamp: u64) {
        self.tag.set(tag);
        self.stamp.set(stamp);
    }

    /// The current task ends, on the thread of who waits for it, and directly after what came before it.
    #[inline]
    pub fn end(&self, task: &mut Task, out: &mut Outcome) {
        self.current.set(core::ptr::null_mut());
        if let Some(books) = self.open_books() {
            // SAFETY: only this thread opens its books, one at a time, and `collect` waits while `busy`.
            task.finish(unsafe { &mut *books }, scale(), self.arena(), out);
            self.busy.store(false, Ordering::Release);
        }
    }

    /// The current task ends, wherever it was started.
    #[cold]
    pub fn end_apart(&self, task: &mut Task) -> Spawned {
        self.current.set(core::ptr::null_mut());
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            let outcome = task.finish_apart(unsafe { &mut *books }, scale(), self.arena());
            self.busy.store(false, Ordering::Release);
            return outcome;
        }
        task.finish_apart(&mut Books::default(), scale(), self.arena())
    }

    /// Tasks that a fork made: two of a join, one that was spawned. Those that [`end`](Self::end) are counted there.
    #[cold]
    pub fn count_forks(&self, halves: u64) {
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            unsafe { (*books).halves += halves };
            self.busy.store(false, Ordering::Release);
        }
    }

    #[inline]
    fn open_books(&self) -> Option<*mut Books> {
        self.busy.store(true, Ordering::Relaxed);
        // Pairs with the barrier that `collect` makes every processor run.
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
        if STOP.load(Ordering::Relaxed) {
            self.busy.store(false, Ordering::Release);
            return None;
        }
        Some(self.books.get())
    }

    /// What happens when `site` is invoked in `context`.
    #[inline]
    pub fn enter(&self, context: Context, site: Site) -> Entry {
        let key = u64::from(context) << 32 | u64::from(site);
        let slot = &self.entries[(site as usize ^ (context as usize).wrapping_mul(7)) % ENTRY_SLOTS];
        let (known, entry) = slot.get();
        if known == key {
            return entry;
        }
        let entry = sites::enter(context, site);
        slot.set((key, entry));
        entry
    }

    /// The site that was looked up under `key`, or what `find` says.
    #[inline]
    pub fn site(&self, key: (usize, usize), find: impl FnOnce() -> Site) -> Site {
        let slot = &self.known[(key.0 >> 3 ^ key.1 ^ key.1 >> 6) % SITE_SLOTS];
        let (known, site) = slot.get();
        if known == key {
            return site;
        }
        let site = find();
        slot.set((key, site));
        site
    }

    /// The two sides of a fork of `kind` in `context`, looked up before or found.
    #[inline]
    pub fn fork(
        &self,
        kind: (usize, usize),
        context: Context,
        find: impl FnOnce() -> [(Site, Entry); 2],
    ) -> [(Site, Entry); 2] {
        let slot = &self.forks[(kind.0 >> 3 ^ kind.1 ^ (context as usize).wrapping_mul(7)) % FORK_SLOTS];
        if (slot.place.get(), slot.closure.get()) == kind && slot.context.get() == context {
            return slot.sides.get();
        }
        let sides = find();
        slot.place.set(kind.0);
        slot.closure.set(kind.1);
        slot.context.set(context);
        slot.sides.set(sides);
        sides
    }

    /// No task runs on this thread until one is resumed.
    #[inline]
    pub fn leave(&self) {
        self.fresh.set(core::ptr::null());
        self.current.set(core::ptr::null_mut());
    }

    /// Forgets what ended on this thread so far.
    pub fn clear_books(&self) {
        self.plain_forks.set(0);
        if let Some(books) = self.open_books() {
            // SAFETY: as in `end`.
            unsafe { *books = Books::default() };
            self.busy.store(false, Ordering::Release);
        }
        self.places.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.light.iter().chain([&self.last]).for_each(LightFork::forget);
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

/// Whether only the program as a whole is asked for, and no call sites.
#[inline(always)]
pub fn is_whole() -> bool {
    WHOLE.load(Ordering::Relaxed)
}

/// What forks have to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Strands are compared with other runs, or instructions counted and calls told of.
    Full,
    /// Neither, and call sites are asked for: what most runs are.
    Timed,
    /// Neither, and nothing is kept but lengths.
    Plain,
}

/// What forks have to do.
#[inline(always)]
pub fn mode() -> Mode {
    match MODE.load(Ordering::Relaxed) {
        1 => Mode::Timed,
        2 => Mode::Plain,
        _ => Mode::Full,
    }
}

/// How large things are now.
#[inline]
pub fn scale() -> Scale {
    if WHOLE.load(Ordering::Relaxed) {
        return Scale::WHOLE;
    }
    Scale { sites: sites::COUNT.load(Ordering::Relaxed), heavy: HEAVY.load(Ordering::Relaxed) }
}

/// Paths shorter than this are not followed in detail, when there are few sites.
pub fn heavy() -> u64 {
    settings().heavy.unwrap_or(if settings().cost == Cost::Units { 0 } else { HEAVY_TICKS })
}

/// There are more sites: paths must be longer to be followed in detail.
pub(crate) fn rescale(sites: usize) {
    HEAVY.store(heavy().saturating_mul(1 + sites as u64 / 16), Ordering::Relaxed);
}

/// What a fork costs, in the unit of costs.
#[inline]
pub fn burden() -> u64 {
    BURDEN.load(Ordering::Relaxed)
}

/// Whether this is the task of the whole program.
pub fn is_root(running: *const Running) -> bool {
    core::ptr::eq(running, ROOT.load(Ordering::Acquire))
}

/// A task ends that nobody waits for.
pub fn gather(outcome: Spawned) {
    if let Some((gather, _)) = &mut *ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner) {
        gather.add(outcome, 0, scale(), Local::here().arena());
    }
}

/// What all threads measured, once the program is over.
pub struct Collected {
    /// The totals.
    pub totals: spandag::serial::Totals,
    /// Threads that took part.
    pub threads: usize,
    /// Strands whose clock was repaired, and the ticks taken off.
    pub repaired: (u64, u64),
    /// Whether preemptions were seen.
    pub sees_preemption: bool,
    /// Instructions were to be counted, and nobody did.
    pub misses_engine: bool,
    /// The program ended while the main task was waiting.
    pub cut_short: bool,
    /// Samples of strands that found no room.
    pub samples_lost: u64,
    /// Calls that did.
    pub calls_dropped: u64,
}

/// Ends the program's task and adds up. Nothing is recorded after it.
pub fn collect() -> Option<Collected> {
    const MEMBARRIER: i64 = 324;
    const REGISTER: i64 = 16;
    const EXPEDITED: i64 = 8;
    let here = Local::here();
    let root = ROOT.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if root.is_null() {
        return None;
    }
    let cut_short = here.current.get() != root;
    if !cut_short {
        here.pause();
        here.current.set(core::ptr::null_mut());
    }
    // SAFETY: made by `start`; taken out of `ROOT`, so only once. If the main task is waiting in a call that will
    // never return, nobody looks at it any more.
    let mut running = *unsafe { Box::from_raw(root) };
    let scale = scale();
    // SAFETY: locals are never freed. If this is another thread than the program's, that one is waiting or will never
    // come back.
    let home = unsafe { &*ROOT_HOME.load(Ordering::Acquire) };
    home.all_calls_return(&mut running);
    if let Some((gather, Some(opened))) = ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        running.task.close(opened, gather, scale, home.arena());
    }
    let outcome = home.end_apart(&mut running.task);
    STOP.store(true, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    // SAFETY: no memory is involved.
    unsafe {
        crate::libc::syscall(MEMBARRIER, REGISTER, 0i64, 0i64);
        crate::libc::syscall(MEMBARRIER, EXPEDITED, 0i64, 0i64);
    }
    let mut all = Books::default();
    let (mut repaired, mut lost, mut samples_lost, mut calls_dropped) = (0, 0, 0, 0);
    let locals = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for Shared(local) in &*locals {
        // SAFETY: locals are never freed.
        let local = unsafe { &**local };
        let mut patience = 1_000_000;
        while local.busy.load(Ordering::Acquire) && patience > 0 {
            core::hint::spin_loop();
            patience -= 1;
        }
        if patience > 0 {
            // SAFETY: its thread is not in its books, and will not open them again: it sees `STOP`.
            all.merge(unsafe { &*local.books.get() });
            let places = local.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.values().flat_map(|place| &place.sides).for_each(|tally| tally.settle(&mut all));
            all.halves += 2 * local.plain_forks.get();
        }
        repaired += local.clock.repaired.get();
        lost += local.clock.lost.get();
        // SAFETY: logs are never freed; a word that is being written is as good before as after.
        samples_lost += unsafe { (&raw const (*local.samples.get()).lost).read_volatile() };
        // SAFETY: as above.
        calls_dropped += unsafe { local.calls.as_ref() }.map_or(0, |log| log.dropped);
    }
    let mut totals = Outcome::from(outcome).totals(all, sites::COUNT.load(Ordering::Relaxed), home.arena());
    if is_whole() {
        totals.only_whole();
    }
    Some(Collected {
        threads: locals.len(),
        totals,
        repaired: (repaired, lost),
        sees_preemption: here.clock.sees_preemption(),
        misses_engine: here.clock.misses_engine(),
        cut_short,
        samples_lost,
        calls_dropped,
    })
}
