//! Threads that give their core away while they look for work.
//!
//! A worker without work calls `sched_yield` a few dozen times before it sleeps. On a machine with other load each of
//! these calls lasts as long as others care to run, and the thread wants no core in the meantime: it is idle, not
//! preempted. Whether it looks for work is told by its callers (`landmark`); everybody else's yields are passed on.

use crate::{Idle, OURS, landmark};
use core::ops::ControlFlow;
use core::sync::atomic::Ordering::Relaxed;
use preload::{Thread, sys, thread};
use sampler::regs::Regs;
use wire::idle::landmark as kind;

/// Callers that are asked, the innermost first.
const CALLERS_MAX: usize = 6;

/// `sched_yield`.
pub fn sched_yield() {
    let looking = match thread::current::<Idle>() {
        Some(thread) if landmark::any() && looks_for_work(thread) => thread,
        _ => return sys::yield_now(),
    };
    let local = looking.local();
    looking.busy(|| local.rest());
    sys::yield_now();
    looking.busy(|| local.resume());
}

fn looks_for_work(thread: &Thread<crate::Local>) -> bool {
    let local = thread.local();
    let here = Regs::here();
    let ours = OURS.load(Relaxed) as u16;
    let (mut asked, mut looks) = (0, false);
    thread.busy(|| {
        local.stack.run(|| {
            local.sampler.walk(here, thread.stack(), |frame| {
                if frame.key.serial() != ours {
                    asked += 1;
                    if let Some(found) = landmark::at(frame.regs.lookup_pc()) {
                        looks = found.kind == kind::IDLE;
                        return ControlFlow::Break(());
                    }
                }
                if asked < CALLERS_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
        })
    });
    looks
}
