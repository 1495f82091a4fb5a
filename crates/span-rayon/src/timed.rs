//! `join` where call sites are asked for, in time and in one run: what most runs are, and the one that must cost little.
//!
//! As in [`join`](crate::join), and with the same three readings of the clock. What is less: nobody compares strands or
//! counts instructions, so nothing asks whether; the two sides share one description of the fork; and a side that ran on its parent's thread, without a scope, leaves five numbers behind
//! ([`Light`]).

use crate::join::{Home, Unwound, Waiting};
use crate::sides::Run;
use crate::site;
use core::cell::UnsafeCell;
use core::mem::forget;
use core::panic::Location;
use span_rt::Local;
use span_rt::local::Running;
use spandag::task::{Light, Tally, Task};
use spandag::{Cost, Entry, ROOT};

/// A fork, as its sides see it.
pub struct Fork {
    home: Home,
    sides: &'static [Tally; 2],
    kind: (usize, usize),
    /// The first strand starts where one of this name ended; the others have the next names.
    tag: usize,
    /// Where both start.
    start: (Cost, Cost),
    out: [UnsafeCell<Light>; 2],
}

// SAFETY: each side writes its own part of `out`; the rest is only read, and tallies are written by their thread alone.
unsafe impl Sync for Fork {}

/// Ends the strand of a side that unwinds. What it measured is lost.
struct Panicked;

impl Drop for Panicked {
    fn drop(&mut self) {
        Local::here().leave();
    }
}

impl Run for Fork {
    #[inline(always)]
    fn first<R>(&self, f: impl FnOnce() -> R) -> R {
        self.side::<0, R>(f)
    }

    #[inline(always)]
    fn second<R>(&self, f: impl FnOnce() -> R) -> R {
        self.side::<1, R>(f)
    }
}

impl Fork {
    #[inline(always)]
    fn side<const SIDE: usize, R>(&self, f: impl FnOnce() -> R) -> R {
        let here = Local::here();
        let tally = &self.sides[SIDE];
        let mut running = Running::new(Task::at(tally.site, tally.entry, self.start), 0, self.kind);
        let base = core::ptr::from_ref(&running) as usize + size_of::<Running>();
        running.base = base;
        running.task.on(here.arena());
        let at_home = core::ptr::eq(here, self.home.0);
        // What is stolen, or runs out of order, does not leave its nodes for the parent to find.
        let direct = here.resume_timed(&raw mut running, base, self.tag + SIDE) & at_home;
        let panicked = Panicked;
        let result = f();
        forget(panicked);
        let tag = self.tag + SIDE + 1;
        // SAFETY: the parent waits for us, and nobody else has this part.
        let out = unsafe { &mut *self.out[SIDE].get() };
        if direct {
            here.end_light(&mut running, tag, tally, out);
        } else {
            here.end_stolen(&mut running, tag, out);
        }
        // Nothing is left in it.
        forget(running);
        result
    }
}

/// Forks; `join` hands the two sides to the real crate.
#[inline(always)]
pub fn fork<R>(
    at: &'static Location<'static>,
    (a, b): (&'static str, &'static str),
    join: impl FnOnce(&Fork) -> R,
) -> R {
    fork_at(move |here, parent| site::sides(here, parent, at, site::kind(at, a), (a, b)), join)
}

/// Forks at no place: to measure what that costs.
pub fn fork_nowhere<R>(join: impl FnOnce(&Fork) -> R) -> R {
    let entry = Entry { context: 0, top_site: false, top_caller: false };
    fork_at(|here, _| (here.sides((usize::MAX, 0, 0), || [(ROOT, entry); 2]), site::NO_KIND), join)
}

#[inline(always)]
fn fork_at<R>(
    find: impl FnOnce(&Local, &Running) -> (&'static [Tally; 2], (usize, usize)),
    join: impl FnOnce(&Fork) -> R,
) -> R {
    let here = Local::here();
    let mark = 0u64;
    // Addresses of live locals of one thread differ by at least 8: room for three names.
    let tag = core::ptr::from_ref(&mark) as usize;
    let parent = here.pause_timed(tag);
    let waiting = Waiting(parent);
    // SAFETY: it was just paused; its children only start below.
    let running = unsafe { waiting.task() };
    let (sides, kind) = find(here, running);
    let start = running.task.place();
    let out = [UnsafeCell::new(Light::new()), UnsafeCell::new(Light::new())];
    let fork = Fork { home: Home(here), sides, kind, tag, start, out };
    let unwound = Unwound(parent);
    let results = join(&fork);
    forget(unwound);
    // SAFETY: both have returned: nobody else has these.
    let [a, b] = fork.out.each_ref().map(|out| unsafe { &mut *out.get() });
    // SAFETY: the children have ended; this frame's task is this thread's again.
    let running = unsafe { &mut *parent };
    here.join_light(&mut running.task, (a, b), sides);
    // Nothing is left in it.
    forget(fork);
    here.resume_timed(parent, running.base, tag + 2);
    results
}
