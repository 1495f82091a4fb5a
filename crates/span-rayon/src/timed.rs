//! `join` where call sites are asked for, in time and in one run: what most runs are, and the one that must cost little.
//!
//! As in [`join`](crate::join), and with the same three readings of the clock, which short strands share. What is less: nobody compares strands or
//! counts instructions, so nothing asks whether; the two sides share one description of the fork; and a side that ran on its parent's thread, without a scope, leaves five numbers behind
//! ([`Light`]).

use crate::join::{Home, Torn, Waiting};
use crate::sides::Run;
use crate::site;
use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, forget};
use core::panic::Location;
use core::sync::atomic::{AtomicU8, Ordering};
use span_rt::Local;
use span_rt::local::{Fresh, Place, Running};
use spandag::task::Light;
use spandag::{Entry, ROOT};

/// A fork, as its sides see it.
pub struct Fork {
    home: Home,
    place: &'static Place,
    fresh: Fresh,
    /// The first strand starts where one of this name ended; the others have the next names.
    tag: usize,
    /// Written by each side when it ends; if one unwinds, nobody looks at them.
    out: [UnsafeCell<MaybeUninit<Light>>; 2],
    /// What does not happen to most forks: [`APART`] and [`OWNS`].
    marks: AtomicU8,
}

/// A side runs elsewhere, or out of order: what follows the first one may be waiting.
const APART: u8 = 1;
/// What a side has written owns memory.
const OWNS: [u8; 2] = [2, 4];

// SAFETY: each side writes its own part of `out`; the rest is only read, and tallies are written by their thread alone.
unsafe impl Sync for Fork {}

/// Ends the strand of a side that unwinds. What it measured is lost.
struct Panicked(*mut MaybeUninit<Running>);

impl Drop for Panicked {
    fn drop(&mut self) {
        // SAFETY: in the frame that unwinds, which does nothing else with it; started on this thread.
        Local::here().lose_timed(unsafe { &mut *self.0 });
    }
}

/// What is left of a fork one of whose sides unwound, when both have ended.
struct Lost<'a>(&'a Fork);

impl Drop for Lost<'_> {
    fn drop(&mut self) {
        let marks = self.0.marks.load(Ordering::Relaxed);
        for (out, owns) in self.0.out.iter().zip(OWNS) {
            if marks & owns != 0 {
                // SAFETY: the mark says that it was written, and nobody else will look at it.
                unsafe { (*out.get()).assume_init_drop() };
            }
        }
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
        let tally = &self.place.sides[SIDE];
        let mut running = MaybeUninit::uninit();
        let at_home = core::ptr::eq(here, self.home.0);
        // What is stolen, or runs out of order, does not leave its nodes for the parent to find.
        let direct = here.start_timed(&mut running, self.tag + SIDE, &self.fresh, tally) & at_home;
        if !direct {
            self.marks.fetch_or(APART, Ordering::Relaxed);
        }
        let panicked = Panicked(&raw mut running);
        let result = f();
        forget(panicked);
        let tag = self.tag + SIDE + 1;
        // SAFETY: the parent waits for us, and nobody else has this part.
        let out = unsafe { &mut *self.out[SIDE].get() };
        if direct {
            // Time that passes while the other side is waited for is nobody's: the clock is read before.
            let alone = SIDE == 1 || self.marks.load(Ordering::Relaxed) & APART == 0;
            let habit = alone.then_some(&self.place.habits[1 + SIDE]);
            if here.end_light(&mut running, tag, tally, habit, out) {
                self.marks.fetch_or(OWNS[SIDE], Ordering::Relaxed);
            }
        } else {
            here.end_stolen(&mut running, tag, out);
            self.marks.fetch_or(OWNS[SIDE], Ordering::Relaxed);
        }
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
    let kind = site::kind(at, a);
    fork_at(
        kind,
        |here, parent| site::last_place(here, parent, kind),
        |here, parent| site::place(here, parent, at, kind, (a, b)),
        join,
    )
}

/// Forks at no place: to measure what that costs.
pub fn fork_nowhere<R>(join: impl FnOnce(&Fork) -> R) -> R {
    let entry = Entry { context: 0, top_site: false, top_caller: false };
    let key = (usize::MAX, 0, 0);
    fork_at(
        site::NO_KIND,
        |here, _| here.last_place(key).map(|place| (place, site::NO_KIND)),
        |here, _| (here.place(key, || [(ROOT, entry); 2]), site::NO_KIND),
        join,
    )
}

/// A place, and the kind that the sides have there.
type Found = (&'static Place, (usize, usize));

#[inline(always)]
fn fork_at<R>(
    kind: (usize, usize),
    last: impl FnOnce(&Local, &Running) -> Option<Found>,
    find: impl FnOnce(&Local, &Running) -> Found,
    join: impl FnOnce(&Fork) -> R,
) -> R {
    let here = Local::here();
    let mark = 0u64;
    // Addresses of live locals of one thread differ by at least 8: room for three names.
    let tag = core::ptr::from_ref(&mark) as usize;
    let parent = here.current();
    let waiting = Waiting(parent);
    // SAFETY: this thread's own; its children only start below.
    let running = unsafe { waiting.task() };
    // A piece of an operation of rayon's that splits itself is in no call.
    let last = if running.is_followed && !running.is_piece_of(kind) {
        here.pause_followed(tag);
        None // where it is now depends on the calls that it is in
    } else {
        let last = last(here, running);
        here.pause_timed(tag, last.map(|(place, _)| &place.habits[0]));
        last
    };
    // SAFETY: as above.
    let running = unsafe { waiting.task() };
    let (place, kind) = match last {
        Some(found) => found,
        None => find(here, running),
    };
    let out = [const { UnsafeCell::new(MaybeUninit::uninit()) }; 2];
    let fresh = Fresh { start: running.task.place(), kind };
    let fork = Fork { home: Home(here), place, fresh, tag, out, marks: AtomicU8::new(0) };
    let (torn, lost) = (Torn(parent), Lost(&fork));
    let results = join(&fork);
    forget((torn, lost));
    // SAFETY: both have returned: they were written, and nobody else has them.
    let [a, b] = fork.out.each_ref().map(|out| unsafe { (*out.get()).assume_init_mut() });
    // SAFETY: the children have ended; this frame's task is this thread's again.
    let running = unsafe { &mut *parent };
    here.join_light(&mut running.task, (a, b), &place.sides);
    here.resume_timed(parent, here.strand_base(running), tag + 2);
    results
}
