//! `join`: two tasks that start where their parent stands, and a parent that waits for both.
//!
//! An undisturbed join reads the clock three times: the first task starts when its parent's strand ends, the second
//! when the first ends, and the parent goes on when the second ends. [`Local::hand_over`] says so, and holds only
//! if these really follow each other on one thread; a stolen task, and a parent that waited, read the clock.

use crate::sides::{Run, Sides};
use crate::{plain, real, site, timed};
use core::any::type_name;
use core::marker::PhantomData;
use core::mem::forget;
use core::panic::Location;
use core::sync::atomic::Ordering;
use span_rt::env::Cost;
use span_rt::local::{self, Mode, Running};
use span_rt::{Local, clock, share};
use spandag::task::Outcome;
use spandag::{Entry, Site};

/// Whether a task was taken by another thread than its parent's.
#[derive(Debug)]
pub struct FnContext {
    migrated: bool,
    not_send: PhantomData<*mut ()>,
}

impl FnContext {
    pub fn migrated(&self) -> bool {
        self.migrated
    }
}

/// A task that waits, seen by its children. They only read it.
#[derive(Clone, Copy)]
pub(crate) struct Waiting(pub *mut Running);
// SAFETY: the task is not changed until its children have ended, and all that is in it may be shared.
unsafe impl Send for Waiting {}
// SAFETY: as above.
unsafe impl Sync for Waiting {}

impl Waiting {
    /// # Safety
    /// The task must be waiting: nobody changes it as long as the result is used.
    pub unsafe fn task<'a>(self) -> &'a Running {
        // SAFETY: the frame that holds it is blocked in a call into the real crate.
        unsafe { &*self.0 }
    }
}

/// Restores a thread's state when a call into the real crate unwinds.
pub(crate) struct Unwound(pub *mut Running);

impl Drop for Unwound {
    fn drop(&mut self) {
        Local::here().resume(self.0);
    }
}

/// The same for a join: one of its sides has unwound, and both have ended.
pub(crate) struct Torn(pub *mut Running);

impl Drop for Torn {
    fn drop(&mut self) {
        let here = Local::here();
        // What the other side left behind is not looked for.
        // SAFETY: the children have ended; the frame's task is this thread's again.
        unsafe { (*self.0).task.fold(local::scale(), here.arena()) };
        here.resume(self.0);
    }
}

/// Ends the strand of a task whose closure unwinds. What it measured is lost.
struct Panicked(*mut Running);

impl Drop for Panicked {
    fn drop(&mut self) {
        let here = Local::here();
        here.leave();
        // SAFETY: in the frame that unwinds, and dropped behind this.
        unsafe { (*self.0).lose(here.arena()) };
    }
}

/// How a task of a join starts and ends.
#[derive(Clone, Copy)]
struct Side {
    parent: Waiting,
    home: Home,
    site: Site,
    entry: Entry,
    kind: (usize, usize),
    way: u64,
    /// The strand starts where one of this name ended; its end has the next name.
    tag: usize,
    /// Where its outcome goes, in the frame of the parent.
    out: Slot,
}

/// Written by one child, and read when it has ended.
pub(crate) struct Slot<T = Outcome>(pub *mut T);
impl<T> Clone for Slot<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Slot<T> {}
// SAFETY: the parent's frame outlives its children, and each has a slot of its own.
unsafe impl<T> Send for Slot<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Slot<T> {}

/// The thread of the task that forked: compared, never looked at.
#[derive(Clone, Copy)]
pub(crate) struct Home(pub *const Local);
// SAFETY: only the address is used.
unsafe impl Send for Home {}
// SAFETY: as above.
unsafe impl Sync for Home {}

impl Side {
    #[inline]
    fn run<R>(&self, f: impl FnOnce() -> R) -> R {
        let here = Local::here();
        // SAFETY: the parent waits in `join` until this has returned.
        let task = unsafe { self.parent.task() }.task.child(self.site, self.entry);
        let mut running = Running::new(task, 0, self.kind);
        running.task.way = self.way;
        running.is_followed = local::follows_calls();
        running.base = core::ptr::from_ref(&running) as usize + size_of::<Running>();
        running.task.on(here.arena());
        // What is stolen, or runs out of order, does not leave its nodes for the parent to find.
        // Without a branch: stolen or not, the strand that starts here begins with the same instructions.
        let at_home = core::ptr::eq(here, self.home.0);
        let direct = here.resume_after(&raw mut running, self.tag) & at_home;
        let panicked = Panicked(&raw mut running);
        let result = f();
        forget(panicked);
        here.pause();
        here.hand_over(self.tag + 1, here.paused_at());
        // SAFETY: the parent waits for us, and nobody else has this slot.
        let out = unsafe { &mut *self.out.0 };
        if direct {
            here.end(&mut running.task, out);
            // Nothing is left in its task: its end took it.
            drop(running.callers.take());
            forget(running);
        } else {
            *out = here.end_apart(&mut running.task).into();
            here.count_forks(1);
        }
        result
    }
}

#[track_caller]
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    match local::mode() {
        Mode::Timed => timed::fork(Location::caller(), (type_name::<A>(), type_name::<B>()), |fork| {
            let sides = &Sides::new(fork, a, b);
            // SAFETY: the real crate calls each closure once.
            real::join(|| unsafe { sides.first(|a| a()) }, || unsafe { sides.second(|b| b()) })
        }),
        Mode::Plain => plain::fork(Location::caller(), |fork| {
            let sides = &Sides::new(fork, a, b);
            // SAFETY: the real crate calls each closure once.
            real::join(|| unsafe { sides.first(|a| a()) }, || unsafe { sides.second(|b| b()) })
        }),
        Mode::Full => fork(Location::caller(), type_name::<A>(), type_name::<B>(), |sa, sb| {
            real::join(|| sa.run(a), || sb.run(b))
        }),
    }
}

#[track_caller]
#[inline]
pub fn join_context<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce(FnContext) -> RA + Send,
    B: FnOnce(FnContext) -> RB + Send,
    RA: Send,
    RB: Send,
{
    let model = span_rt::env::settings().splits_are_fixed();
    // Without a branch: where instructions are counted, stolen or not must not make a difference.
    let context =
        move |c: real::FnContext| FnContext { migrated: c.migrated() & !model, not_send: PhantomData };
    match local::mode() {
        Mode::Timed => timed::fork(Location::caller(), (type_name::<A>(), type_name::<B>()), |fork| {
            let sides = &Sides::new(fork, a, b);
            real::join_context(
                // SAFETY: the real crate calls each closure once.
                |c| unsafe { sides.first(|a| a(context(c))) },
                // SAFETY: as above.
                |c| unsafe { sides.second(|b| b(context(c))) },
            )
        }),
        Mode::Plain => plain::fork(Location::caller(), |fork| {
            let sides = &Sides::new(fork, a, b);
            real::join_context(
                // SAFETY: the real crate calls each closure once.
                |c| unsafe { sides.first(|a| a(context(c))) },
                // SAFETY: as above.
                |c| unsafe { sides.second(|b| b(context(c))) },
            )
        }),
        Mode::Full => fork(Location::caller(), type_name::<A>(), type_name::<B>(), |sa, sb| {
            real::join_context(|c| sa.run(|| a(context(c))), |c| sb.run(|| b(context(c))))
        }),
    }
}

/// Not inlined: the other two must be small.
#[inline(never)]
fn fork<RA, RB>(
    at: &'static Location<'static>,
    a: &'static str,
    b: &'static str,
    join: impl FnOnce(&Side, &Side) -> (RA, RB),
) -> (RA, RB) {
    let here = Local::here();
    let parent = here.pause_to_fork();
    let mark = 0u64;
    // Addresses of live locals of one thread differ by at least 8: room for three names.
    let tag = core::ptr::from_ref(&mark) as usize;
    here.hand_over(tag, here.paused_at());
    let waiting = Waiting(parent);
    // SAFETY: it was just paused; its children only start below.
    let p = unsafe { waiting.task() };
    let (sides, kind) = site::find_both(here, p, at, site::kind(at, a), (a, b));
    let [(site_a, entry_a), (site_b, entry_b)] = sides;
    let home = Home(here);
    let (mut out_a, mut out_b) = (Outcome::default(), Outcome::default());
    let out = Slot(&raw mut out_a);
    let way = p.way_of_child(0);
    let first = Side { parent: waiting, home, site: site_a, entry: entry_a, kind, way, tag, out };
    let out = Slot(&raw mut out_b);
    let way = p.way_of_child(1);
    let second = Side { site: site_b, entry: entry_b, way, tag: tag + 1, out, ..first };
    let torn = Torn(parent);
    let results = join(&first, &second);
    forget(torn);
    // SAFETY: the children have ended; this frame's task is this thread's again.
    unsafe { (*parent).task.join(&mut out_a, &mut out_b, local::burden(), local::scale(), here.arena()) };
    // Calls that would find nothing to free.
    if out_a.is_light() && out_b.is_light() {
        forget((out_a, out_b));
    }
    here.resume_after(parent, tag + 2);
    results
}

/// Measures what a strand of nothing shows, by joins that do nothing and are not handed to the real crate.
pub fn calibrate() {
    if span_rt::env::settings().cost == Cost::Units {
        return;
    }
    clock::choose();
    span_rt::repeat::choose();
    local::choose();
    // What is done about calls when a strand starts is measured too.
    span_rt::calls::start();
    let here = Local::here();
    clock::HOOK.store(least_of_nothing(here, |work, _| work / (3 * ROUNDS)), Ordering::Relaxed);
    if local::mode() != Mode::Full && here.clock.calm().is_some() {
        // The same where strands share readings: what is not the readings' is that of the ends without one.
        here.refresh();
        here.sharing.start(0);
        let shared = least_of_nothing(here, |work, shared| work.checked_div(shared).unwrap_or(u64::MAX));
        share::HOOK.store(shared, Ordering::Relaxed);
    }
    here.clear_books();
}

const ROUNDS: u64 = 200;

/// The least of what some rounds of joins that do nothing show: their work, and how many of their strands shared a reading.
fn least_of_nothing(here: &Local, shows: impl Fn(u64, u64) -> u64) -> u64 {
    let once = |_| {
        let mut root = Running::new(span_rt::sites::root(), 0, (0, 0));
        root.task.on(here.arena());
        here.resume(&raw mut root);
        let shared = here.sharing.strands();
        for _ in 0..ROUNDS {
            join_nothing(here, &raw mut root);
        }
        here.pause();
        here.leave();
        here.arena().truncate(0);
        shows(root.task.work(), here.sharing.strands() - shared)
    };
    (0..8).map(once).min().unwrap_or(0)
}

fn join_nothing(here: &Local, root: *mut Running) {
    let nothing = || core::hint::black_box(());
    match local::mode() {
        Mode::Timed => {
            timed::fork_nowhere(|fork| (fork.first(nothing), fork.second(nothing)));
            return;
        }
        Mode::Plain => {
            plain::fork(Location::caller(), |fork| (fork.first(nothing), fork.second(nothing)));
            return;
        }
        Mode::Full => {}
    }
    let parent = here.pause();
    let tag = 8;
    here.hand_over(tag, here.paused_at());
    let waiting = Waiting(root);
    // SAFETY: just paused, and its children only start below.
    let context = unsafe { waiting.task() }.task.entry.context;
    let entry = here.enter(context, 0);
    let (mut a, mut b) = (Outcome::default(), Outcome::default());
    let out = Slot(&raw mut a);
    let side = Side { parent: waiting, home: Home(here), site: 0, entry, kind: (0, 0), way: 0, tag, out };
    side.run(nothing);
    Side { tag: tag + 1, out: Slot(&raw mut b), ..side }.run(nothing);
    // SAFETY: they have ended.
    unsafe { (*root).task.join(&mut a, &mut b, 0, local::scale(), here.arena()) };
    here.resume_after(parent, tag + 2);
}
