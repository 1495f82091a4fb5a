//! rayon, on unmodified release binaries.
//!
//! A job that is not run where it was created (stolen, or injected from outside of the pool) is run by
//! `<StackJob as Job>::execute(this)`, called through a function pointer and hence never inlined. `this` lies in
//! the frame of `join`, `scope` or `install`, which cannot return before the job is done; the launcher has read
//! from the function's code which preserved register keeps it. A `HeapJob` (`scope.spawn`, `spawn`) lies on the
//! heap; among its words is a pointer to its scope, again in a live frame; a `spawn` without a scope has none.
//!
//! A thread whose innermost landmark is `wait_until_cold` looks for work.

use crate::agent::{Agent, Bichord, Creator};
use crate::{Local, landmark};
use preload::Thread;
use sampler::Frame;
use wire::idle::{landmark as kind, task};

/// The agent.
#[derive(Debug)]
pub struct Rayon;

impl Rayon {
    /// Whether an address is one of rayon's landmarks.
    #[inline]
    pub fn claims(pc: u64) -> bool {
        landmark::any() && landmark::at(pc).is_some()
    }
}

impl Agent for Rayon {
    fn step(&self, frame: &Frame, _: &Thread<Local>, _: bool) -> Bichord {
        let Some(found) = landmark::at(frame.regs.lookup_pc()) else { return Bichord::Native };
        let job = frame.regs.get(found.register as u8);
        match (found.kind, job) {
            (kind::IDLE, _) => Bichord::Idle,
            // Before its first instructions have run the job is where it was passed.
            (kind::STACK_JOB, Some(job)) => Bichord::Created(task::RAYON_STACK, Creator::Frame(job)),
            (kind::HEAP_JOB, Some(job)) => Bichord::Created(task::RAYON_HEAP, Creator::Pointer(job)),
            (kind::STACK_JOB, None) => Bichord::Created(task::RAYON_STACK, Creator::Unknown),
            (kind::HEAP_JOB, None) => Bichord::Created(task::RAYON_HEAP, Creator::Unknown),
            _ => Bichord::Native,
        }
    }
}
