//! Agents: what they are asked, and what they may answer.
//!
//! A logical unwind is driven by the physical one. At each frame that starts a p-chord the return address says
//! which agent to ask ([`agent_of`]); code that nobody claims belongs to the native agent, whose frames mean
//! themselves. An agent answers with a [`Bichord`]; it keeps no state, takes no lock and allocates nothing, for
//! it runs in signal handlers.
//!
//! | answer | association | meaning |
//! |---|---|---|
//! | `Native` | 1-1 | the frame is a frame of the program |
//! | `Hidden` | 1-0 | the frame is the runtime's own |
//! | `Created(creator)` | 1-M | the frame runs a task: its logical callers are the creator's frames, and the rest of this stack is the scheduler's |
//! | `Idle` | M-0 | the thread looks for work: this is no sample of work at all |

use crate::{Local, omp, rayon};
use preload::Thread;
use sampler::Frame;
use sampler::regs::Regs;

/// Where the logical callers of a task are to be found.
#[derive(Clone, Copy, Debug)]
pub enum Creator {
    /// In whatever frame this address lies in: the creator waits for the task, so the frame is alive.
    Frame(u64),
    /// In the frame that one of the words at this address points into.
    Pointer(u64),
    /// From these registers outwards.
    Registers(Regs, usize),
    /// Nobody knows.
    Unknown,
}

/// What the frame at the start of a p-chord means.
#[derive(Clone, Copy, Debug)]
pub enum Bichord {
    /// One frame, one logical frame.
    Native,
    /// One frame, no logical frame.
    Hidden,
    /// One frame, many logical frames. The number says what kind of task it is (`wire::idle::task`).
    Created(u64, Creator),
    /// The thread looks for work.
    Idle,
}

/// Knows one model of parallel programs.
pub trait Agent: Sync {
    /// What a frame of `owner`'s stack means; `inner` says that a frame of the program stands further in. Called for
    /// frames that the agent claims.
    fn step(&self, frame: &Frame, owner: &Thread<Local>, inner: bool) -> Bichord;
}

/// Frames that mean themselves.
#[derive(Debug)]
pub struct Native;

impl Agent for Native {
    fn step(&self, _: &Frame, _: &Thread<Local>, _: bool) -> Bichord {
        Bichord::Native
    }
}

/// Whether an agent other than the native one claims a frame: what it answers may change from one sample to the next.
#[inline]
pub fn is_claimed(frame: &Frame) -> bool {
    rayon::Rayon::claims(frame.regs.lookup_pc()) || omp::OpenMp::claims(frame)
}

/// The agent that claims a frame.
#[inline]
pub fn agent_of(frame: &Frame) -> &'static dyn Agent {
    if rayon::Rayon::claims(frame.regs.lookup_pc()) {
        &rayon::Rayon
    } else if omp::OpenMp::claims(frame) {
        &omp::OpenMp
    } else {
        &Native
    }
}
