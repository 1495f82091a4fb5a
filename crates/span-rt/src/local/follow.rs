//! Calls that fork, where time is measured: the stack says which calls a task is in when it forks.
//!
//! A task is inside of calls of the program's own functions when it forks. Each is an invocation with a work and a span
//! of its own: it becomes a task that its caller waits for, as where instructions are counted ([`Suspended`]). Nobody tells
//! when such a call begins and returns, so what counts for it is what happens from the first fork in it to the last: a
//! strand is the innermost call's that the task was in at both of its ends.
//!
//! Calls from one place that follow each other, with nothing forked between them, cannot be told apart: they are one
//! invocation.
//!
//! `main`, other threads of the program and tasks that were spawned are always followed. The sides of a join may be so
//! short that a look at the stack would take longer than they do; so a thread spends no more than one part in [`PART`] of its
//! time on them. Where tasks fork some ten microseconds apart that is enough for all; else a side that is not followed
//! is followed in none of its forks, and calls in it are part of its closure. A recursion starts with its longest tasks, after
//! time in which nothing was spent, so the outermost call, which tells the work and span of the site, is followed all the same.

use super::{Local, Running};
use crate::calls::{self, Suspended};
use crate::{samples, stack};
use core::sync::atomic::{AtomicBool, Ordering};
use spandag::Site;
use spandag::task::Task;

/// Calls that are followed on one stack: deeper ones are part of their callers.
const DEPTH_MAX: usize = 24;

/// Of the time of a thread, the part that following sides of joins may take.
const PART: u64 = 32;
/// Ticks that following one takes, beside looking at the stack: a microsecond.
const FOLLOWED_TICKS: i64 = 2500;
/// Ticks that it may take at once: half a millisecond.
const ALLOWANCE_MAX: i64 = 1_250_000;

static ON: AtomicBool = AtomicBool::new(false);
static UNWOUND: AtomicBool = AtomicBool::new(false);

/// Follows calls from now on, if there is a list of functions and costs are time.
pub(super) fn start() {
    let is_time = crate::env::settings().cost == crate::env::Cost::Time;
    ON.store(is_time && !super::is_whole() && calls::table().is_some(), Ordering::Relaxed);
}

/// Whether the program was not compiled by us: stacks have no frame pointers, and have to be unwound. Where that cannot be
/// done, calls are not followed.
pub fn unwind() {
    UNWOUND.store(true, Ordering::Relaxed);
    if samples::cost() == 0 {
        ON.store(false, Ordering::Relaxed);
    }
}

/// See [`unwind`].
pub(super) fn is_unwound() -> bool {
    UNWOUND.load(Ordering::Relaxed)
}

/// Whether calls are followed.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// A call that the task is in: its site, and where its return address lies.
#[derive(Clone, Copy)]
struct Inside {
    site: Site,
    frame: u64,
}

impl Local {
    /// Looks whether calls are followed.
    pub(super) fn allow_following(&self) {
        if is_on() && self.allowance_max.get() == 0 {
            self.allowance_max.set(ALLOWANCE_MAX);
            self.allowance.set(ALLOWANCE_MAX);
        }
    }

    /// Time has passed in strands.
    #[inline(always)]
    pub(super) fn earn(&self, ticks: u64) {
        let more = self.allowance.get() + (ticks / PART) as i64;
        self.allowance.set(more.min(self.allowance_max.get()));
    }

    /// Whether a side of a join that forks for the first time is followed.
    #[inline(always)]
    pub fn may_follow(&self) -> bool {
        let may = self.allowance.get() > 0;
        if may {
            self.spend(FOLLOWED_TICKS);
        }
        may
    }

    /// Following took this long.
    #[cold]
    fn spend(&self, ticks: i64) {
        let left = self.allowance.get() - ticks;
        self.allowance.set(left);
        if left <= 0 {
            self.skipped.set(true); // the next one is
        }
    }

    /// The strand of a task that is followed has ended and has cost `cost`. `forks`: calls that it is in now become tasks.
    #[cold]
    #[inline(never)]
    pub(super) fn follow_calls(&self, running: &mut Running, cost: u64, forks: bool) {
        // As long as something is not waited for, a call may return before that: no call starts, and whether those that go on
        // have returned is asked when they wait.
        let forks_more = forks && running.has_spawned();
        if forks_more || (!forks && running.callers.as_ref().is_none_or(|c| c.is_empty())) {
            return running.task.strand(cost);
        }
        let begun = self.begun.get();
        let mut chain = [Inside { site: 0, frame: 0 }; DEPTH_MAX];
        let chain = self.calls_around(running.base, &mut chain);
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
        self.spend(self.begun.get().saturating_sub(begun) as i64);
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
        // It is the same task for who compares runs.
        (task.way, task.strands) = (running.task.way, running.task.strands);
        let task: Task = core::mem::replace(&mut running.task, task);
        running.callers.get_or_insert_default().push(Suspended { task, frame, home: self });
    }

    /// The calls of the program's own functions that lie below `base` on this stack, the outermost first.
    fn calls_around<'a>(&self, base: usize, chain: &'a mut [Inside; DEPTH_MAX]) -> &'a [Inside] {
        let mut len = 0;
        let mut found = |site, frame| {
            // Of too many the outermost stay.
            if len == DEPTH_MAX {
                chain.copy_within(1.., 0);
                len -= 1;
            }
            chain[len] = Inside { site, frame };
            len += 1;
        };
        if is_unwound() {
            for call in samples::calls_around(base, &mut [samples::Inside::default(); samples::INSIDE_MAX]) {
                let known = || calls::site_of(call.function, call.site);
                // The runtime itself may call what is the whole body of a task.
                if calls::is_ours(call.site) {
                    found(self.site((call.site as usize, 6), known), call.frame);
                }
            }
            let chain = &mut chain[..len];
            chain.reverse();
            return chain;
        }
        // Where the function that the next frame is of goes on.
        let mut inside = None;
        stack::walk(base, |frame, address| {
            let Some(at) = inside.replace(address as u64) else { return };
            if let Some(site) = self.site_of_call(at, address as u64) {
                found(site, frame as u64 + 8);
            }
        });
        let chain = &mut chain[..len];
        chain.reverse();
        chain
    }

    /// The site of the call that returns to `address`, if the function that goes on at `at` is one of the program's own.
    fn site_of_call(&self, at: u64, address: u64) -> Option<Site> {
        let site = self.site((address as usize, (at as usize).wrapping_mul(8) + 6), || {
            calls::function_of(at - 1).map_or(Site::MAX, |function| calls::site_of(function, address))
        });
        (site != Site::MAX).then_some(site)
    }
}
