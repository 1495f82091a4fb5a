//! The wrappers: one generic function per line of the table, grouped by what is waited for.
//!
//! All follow three shapes. *Taking* tries without blocking first, so that a free lock costs one real call and
//! no event but `acquired`. *Waiting* surrounds the real call with `before_wait` and `after_wait`. *Waking*
//! surrounds it with `before_wake` and `after_wake`. A thread that is to be left alone gets the real call and
//! nothing else.
//!
//! # Safety of every function here
//! The caller keeps the contract of the C function of that name. Arguments are handed on untouched, except
//! signal sets (from which our own signal is taken out) and start routines (which are wrapped). No frame here
//! has a destructor: a forced unwind passes through.
#![allow(clippy::missing_safety_doc, non_snake_case)]

mod blocking;
mod condition;
mod ending;
mod futex;
mod lock;
mod signals;
mod threads;

pub use blocking::*;
pub use condition::*;
pub use ending::*;
pub use futex::*;
pub use lock::*;
pub use signals::*;
pub use threads::*;

use crate::hooks::{Hooks, Interest, Outcome, Wait, WaitKind, Wake, WakeKind};
use crate::thread::{self, Thread};

/// Surrounds `call` with the events of a wait. `done` tells a completed wait from a failed one.
#[inline(always)]
fn waiting<H: Hooks, R: Copy>(
    wanted: Interest,
    kind: WaitKind,
    object: usize,
    done: impl FnOnce(R) -> bool,
    call: impl FnOnce() -> R,
) -> R {
    if !H::INTEREST.wants(wanted) {
        return call();
    }
    let Some(thread) = thread::current::<H>() else { return call() };
    waiting_as::<H, R>(thread, Wait { kind, object }, done, call)
}

#[inline(always)]
fn waiting_as<H: Hooks, R: Copy>(
    thread: &Thread<H::Local>,
    wait: Wait,
    done: impl FnOnce(R) -> bool,
    call: impl FnOnce() -> R,
) -> R {
    thread.wait_begins::<H>(wait);
    let result = call();
    thread.wait_ends::<H>(wait, if done(result) { Outcome::Done } else { Outcome::Failed });
    result
}

/// Says that a lock or semaphore is about to be taken.
#[inline(always)]
fn taking<H: Hooks>() {
    if H::INTEREST.wants(Interest::TAKES)
        && let Some(thread) = thread::current::<H>()
    {
        H::before_take(thread);
    }
}

/// Surrounds `call` with the events of a wake.
#[inline(always)]
fn waking<H: Hooks, R>(kind: WakeKind, object: usize, most: u32, call: impl FnOnce() -> R) -> R {
    if !H::INTEREST.wants(Interest::WAKES) {
        return call();
    }
    let Some(thread) = thread::current::<H>() else { return call() };
    let wake = Wake { kind, object, most };
    H::before_wake(thread, wake);
    let result = call();
    H::after_wake(thread, wake);
    result
}
