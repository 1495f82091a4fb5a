//! `join` where only the program as a whole is asked for: lengths, and nothing about tasks.
//!
//! A side that runs on its parent's thread is no task of its own: the parent's goes on with it. For the second side it goes
//! back to where the first one started, and at the end it is where the later of the two ended:
//! ```text
//! mark ── first ──── a          the parent's task does both
//!   └──── second ─────── b      then goes on at max(a, b)
//! ```
//! A side that was stolen, or runs before the first one has ended, is a task that starts at the same place.

use crate::join::{Home, Slot, Unwound, Waiting};
use crate::sides::Run;
use core::cell::Cell;
use core::mem::forget;
use core::panic::Location;
use core::sync::atomic::{AtomicBool, Ordering};
use span_rt::Local;
use span_rt::local::{self, Running};
use spandag::task::{Mark, Outcome, Task};
use spandag::{Cost, Entry, Site};

/// A fork, as its sides see it.
pub struct Fork {
    home: Home,
    parent: Waiting,
    mark: Mark,
    /// For a side that was stolen: who it is, and where on the program's path it starts.
    who: (Site, Entry),
    start: (Cost, Cost),
    tag: usize,
    /// Where the first side ended. Only the thread that forked looks at it.
    first: Cell<Option<Mark>>,
    /// The second side was the parent's as well.
    both: Cell<bool>,
    out: [Slot<Option<Outcome>>; 2],
    /// Where the fork is: what strands have been like there.
    place: usize,
    /// A side runs elsewhere, or out of order: what follows the first one may be waiting.
    apart: AtomicBool,
}

// SAFETY: the cells are used by the thread that forked alone; each slot by one side. The rest is only read.
unsafe impl Sync for Fork {}

/// Ends the strand of a side that unwinds.
struct Panicked<'a>(&'a Fork);

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        let here = Local::here();
        let current = here.pause();
        // SAFETY: the parent's task, which this thread was going on with.
        let mark = unsafe { (*current).task.mark() };
        if self.0.first.get().is_none() {
            self.0.first.set(Some(mark));
        }
        here.leave();
    }
}

impl Run for Fork {
    #[inline(always)]
    fn first<R>(&self, f: impl FnOnce() -> R) -> R {
        let here = Local::here();
        if !core::ptr::eq(here, self.home.0) {
            return self.apart(here, 0, f);
        }
        here.resume_plain(self.parent.0, self.tag);
        let panicked = Panicked(self);
        let result = f();
        forget(panicked);
        // Time that passes while the other side is waited for is nobody's: the clock is read before.
        let alone = !self.apart.load(Ordering::Relaxed);
        let habit = alone.then_some(&here.plain_habits(self.place)[1]);
        let running = here.pause_plain(self.tag + 1, habit);
        // SAFETY: the parent's task: what it started since has ended.
        self.first.set(Some(unsafe { (*running).task.mark() }));
        result
    }

    #[inline(always)]
    fn second<R>(&self, f: impl FnOnce() -> R) -> R {
        let here = Local::here();
        if !core::ptr::eq(here, self.home.0) || self.first.get().is_none() {
            return self.apart(here, 1, f);
        }
        // SAFETY: the first side has ended, and the parent waits for us.
        unsafe { (*self.parent.0).task.back(self.mark) };
        here.resume_plain(self.parent.0, self.tag + 1);
        let panicked = Panicked(self);
        let result = f();
        forget(panicked);
        here.pause_plain(self.tag + 2, Some(&here.plain_habits(self.place)[2]));
        self.both.set(true);
        result
    }
}

impl Fork {
    /// A side as a task of its own.
    #[inline(never)]
    fn apart<R>(&self, here: &Local, side: usize, f: impl FnOnce() -> R) -> R {
        struct Left;
        impl Drop for Left {
            fn drop(&mut self) {
                Local::here().leave();
            }
        }
        self.apart.store(true, Ordering::Relaxed);
        let task = Task::at(self.who.0, self.who.1, self.start);
        let mut running = Running::new(task, 0, (0, 0));
        running.base = core::ptr::from_ref(&running) as usize + size_of::<Running>();
        running.task.on(here.arena());
        here.resume(&raw mut running);
        let left = Left;
        let result = f();
        forget(left);
        here.pause();
        // SAFETY: the parent waits for us, and nobody else has this slot.
        unsafe { *self.out[side].0 = Some(here.end_apart(&mut running.task).into()) };
        result
    }
}

/// Forks; `join` hands the two sides to the real crate.
#[inline(always)]
pub fn fork<R>(at: &'static Location<'static>, join: impl FnOnce(&Fork) -> R) -> R {
    let here = Local::here();
    let mut outcomes = [None::<Outcome>, None];
    // Addresses of live locals of one thread differ by at least 8: room for three names.
    let tag = core::ptr::from_ref(&outcomes) as usize;
    let place = core::ptr::from_ref(at) as usize;
    let parent = here.pause_plain(tag, Some(&here.plain_habits(place)[0]));
    // SAFETY: it was just paused.
    let task = unsafe { &mut (*parent).task };
    let out = outcomes.each_mut().map(|o| Slot(core::ptr::from_mut(o)));
    let fork = Fork {
        home: Home(here),
        parent: Waiting(parent),
        mark: task.mark(),
        who: (task.site, task.entry),
        start: task.place(),
        tag,
        first: Cell::new(None),
        both: Cell::new(false),
        out,
        place,
        apart: AtomicBool::new(false),
    };
    here.count_plain();
    let unwound = Unwound(parent);
    let results = join(&fork);
    forget(unwound);
    // SAFETY: both sides have ended.
    let task = unsafe { &mut (*parent).task };
    let burden = local::burden();
    match (fork.both.get(), fork.first.get()) {
        (true, Some(first)) => task.meet(first, burden),
        _ => meet_others(task, fork.mark, burden, &mut outcomes),
    }
    // Nothing is left in them.
    forget(outcomes);
    here.resume_plain(parent, tag + 2);
    results
}

#[cold]
#[inline(never)]
fn meet_others(task: &mut Task, mark: Mark, burden: Cost, outcomes: &mut [Option<Outcome>; 2]) {
    for outcome in outcomes.iter_mut().filter_map(Option::take) {
        let end = task.end_of(outcome, mark);
        task.meet(end, 0);
    }
    task.meet(mark, burden);
}
