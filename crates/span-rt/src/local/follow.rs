//! Calls that fork, where time is measured: the stack says which calls a task is in when it forks.
//!
//! A task that is not a side of a join, `main` first of all, is inside of calls of the program's own functions when it
//! forks. Each is an invocation with a work and a span of its own: it becomes a task that its caller waits for, as where
//! instructions are counted ([`Suspended`]). Nobody tells when such a call begins and returns, so what counts for it is what
//! happens from the first fork in it to the last: a strand is the innermost call's that the task was in at both of its
//! ends.
//!
//! Calls from one place that follow each other, with nothing forked between them, cannot be told apart: they are one
//! invocation. Of a side of a join its closure is the site.

use super::{Local, Running};
use crate::calls::{self, Suspended};
use crate::stack;
use core::sync::atomic::{AtomicBool, Ordering};
use spandag::Site;
use spandag::task::Task;

/// Calls that are followed on one stack: deeper ones are part of their callers.
const DEPTH_MAX: usize = 24;

static ON: AtomicBool = AtomicBool::new(false);

/// Follows calls from now on, if there is a list of functions and costs are time.
pub(super) fn start() {
    let is_time = crate::env::settings().cost == crate::env::Cost::Time;
    ON.store(is_time && !super::is_whole() && calls::table().is_some(), Ordering::Relaxed);
}

/// Whether calls are followed.
#[inline(always)]
pub(super) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A call that the task is in: its site, and where its return address lies.
#[derive(Clone, Copy)]
struct Inside {
    site: Site,
    frame: u64,
}

impl Local {
    /// The strand of a task that is followed has ended and has cost `cost`. `forks`: calls that it is in now become tasks.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_calls(&self, running: &mut Running, cost: u64, forks: bool) {
        let mut chain = [Inside { site: 0, frame: 0 }; DEPTH_MAX];
        let chain = calls_around(running.base, &mut chain);
        // Calls on other stacks, or on the part of this one that is not looked at, go on.
        let base = running.base as u64;
        let elsewhere = running.callers.as_ref().map_or(0, |callers| {
            let is_here = |c: &Suspended| core::ptr::eq(c.home, self) && c.frame < base;
            callers.iter().rposition(|c| !is_here(c)).map_or(0, |last| last + 1)
        });
        let known = |running: &Running| running.callers.as_ref().map_or(0, |c| c.len()) - elsewhere;
        // What has returned, from the innermost; `chain` has the outermost first.
        loop {
            let depth = known(running);
            let Some(innermost) = depth.checked_sub(1) else { break };
            let goes_on = chain.get(innermost).is_some_and(|call| {
                running.task.site == call.site && self.innermost_call(running) == Some(call.frame)
            });
            if goes_on {
                break;
            }
            self.call_returns(running);
        }
        running.task.strand(cost);
        if forks {
            for call in &chain[known(running).min(chain.len())..] {
                self.call_of_site(running, call.site, call.frame);
            }
        }
        // What this took is ours.
        self.begun.set(self.clock.begin());
    }

    /// The stack address up to which the task's own calls lie: samples are divided inside the innermost call.
    #[inline(always)]
    pub fn strand_base(&self, running: &Running) -> usize {
        if running.is_followed { self.innermost_base(running) } else { running.base }
    }

    #[cold]
    #[inline(never)]
    fn innermost_base(&self, running: &Running) -> usize {
        self.innermost_call(running).map_or(running.base, |frame| frame as usize)
    }

    /// As [`pause_to_fork`](Self::pause_to_fork); the next strand that starts under the name `tag` on this thread follows.
    #[cold]
    #[inline(never)]
    pub fn pause_followed(&self, tag: usize) {
        self.pause_to_fork();
        self.hand_over(tag, self.paused_at());
    }

    /// A call that forks is a task of its own.
    pub(super) fn call_of_site(&self, running: &mut Running, site: Site, frame: u64) {
        let mut task = running.task.child(site, self.enter(running.task.entry.context, site));
        task.on(self.arena());
        let task: Task = core::mem::replace(&mut running.task, task);
        running.callers.get_or_insert_default().push(Suspended { task, frame, home: self });
    }
}

/// The calls of the program's own functions that lie below `base` on this stack, the outermost first.
fn calls_around(base: usize, chain: &mut [Inside; DEPTH_MAX]) -> &[Inside] {
    let mut len = 0;
    // Where the function that the next frame is of goes on.
    let mut inside = None;
    stack::walk(base, |frame, address| {
        let callee = inside.replace(address as u64).and_then(|at: u64| calls::function_of(at - 1));
        if let Some(function) = callee {
            let frame = frame as u64 + 8;
            // Of too many the outermost stay.
            if len == DEPTH_MAX {
                chain.copy_within(1.., 0);
                len -= 1;
            }
            chain[len] = Inside { site: calls::site_of(function, address as u64), frame };
            len += 1;
        }
    });
    let chain = &mut chain[..len];
    chain.reverse();
    chain
}
