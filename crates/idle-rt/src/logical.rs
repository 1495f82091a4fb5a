//! The logical unwind: from registers to a line of notes.
//!
//! ```text
//! own stack, innermost first          creator's stack                creator's creator's stack
//! BOTH BOTH BOTH [task frame] ------> LOGICAL LOGICAL [task frame] -> LOGICAL LOGICAL ... start
//!                PHYSICAL PHYSICAL ... start
//! ```
//! Each agent is asked at each frame that is logically the program's; once a task frame is met, the rest of the
//! stack is the scheduler's, whatever is on it (a thread that waits for its own task runs unrelated ones).

use crate::agent::{Bichord, Creator, agent_of, is_claimed};
use crate::note::{DEPTH, Line, frame, mark};
use crate::{Idle, Local, OURS, creator, ompt, publish};
use core::ops::ControlFlow;
use core::sync::atomic::Ordering::Relaxed;
use preload::Thread;
use preload::sys;
use sampler::regs::Regs;
use sampler::trail::Trail;
use sampler::{Frame, Next, Stop};
use wire::idle::{chord, mark as marks};

/// Creators followed for one path. A recursion of `join` alone makes none: its jobs run where they were made.
const HOPS_MAX: usize = 64;
/// Times that a stack is looked at: its thread may run meanwhile.
const TRIES_MAX: usize = 3;
/// Words of a job on the heap in which its scope is looked for.
const JOB_WORDS: u64 = 24;

/// What an unwind has found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// The thread looks for work.
    pub idle: bool,
    /// The path is a task's; whether its creator was found.
    pub task: Option<bool>,
    /// The physical path reached the start of the thread.
    pub whole: bool,
}

/// Fills `line` with the path of `thread` (the calling one) from `regs`. Frames of our own at the inner end are
/// left out. `trail` is of the last walk whose line this was; the outermost notes, which are as they were, are not
/// pushed then but shared.
pub fn unwind(thread: &Thread<Local>, regs: Regs, line: &mut Line, trail: &mut Trail<DEPTH>) -> Found {
    line.clear();
    // The last line must have a node for each of these frames, and for the thread; it has not if memory has run out.
    if line.last_len() < trail.shareable() + 1 {
        trail.forget();
    }
    let local = thread.local();
    let ours = OURS.load(Relaxed) as u16;
    let mut idle = false;
    let mut leading = true;
    let mut room = true;
    let mut serials = 0;
    let mut inner = false;
    let mut task: Option<(u64, Creator, Regs)> = None;
    let (stop, shared) = local.sampler.walk_again(regs, thread.stack(), trail, |f| {
        serials = serials.max(f.key.serial());
        if leading && f.key.serial() == ours {
            return ControlFlow::Continue(Next::MustVisit);
        }
        leading = false;
        if task.is_some() {
            room = line.push_outer(frame(f.key, chord::PHYSICAL));
            return if room { ControlFlow::Continue(Next::VisitAll) } else { ControlFlow::Break(()) };
        }
        let mut next = Next::MustVisit;
        let class = match agent_of(f).step(f, thread, inner) {
            Bichord::Native => {
                if !is_claimed(f) {
                    next = Next::MayShare;
                }
                chord::BOTH
            }
            Bichord::Hidden => chord::PHYSICAL,
            Bichord::Idle => {
                idle = true;
                chord::BOTH
            }
            Bichord::Created(kind, creator) if !idle => {
                task = Some((kind, creator, *f.regs));
                line.push_outer(frame(f.key, chord::PHYSICAL));
                // The frames outside of a task stand for something else than they do without it.
                return ControlFlow::Continue(Next::VisitAll);
            }
            Bichord::Created(..) => chord::BOTH,
        };
        inner |= class == chord::BOTH && !ompt::claims(f);
        room = line.push(frame(f.key, class));
        if room { ControlFlow::Continue(next) } else { ControlFlow::Break(()) }
    });
    publish::modules(serials);
    let mut found = Found { idle, task: None, whole: stop == Stop::Root };
    if let Some((kind, creator, regs)) = task {
        let start = line.len();
        let known = follow(thread, kind, creator, regs, line);
        if !known {
            line.cut(start);
            line.push(mark(marks::ORPHAN, kind));
        }
        found.task = Some(known);
        line.join_outer();
    }
    if shared > 0 {
        line.share(shared + 1);
    } else {
        line.push(mark(marks::THREAD, local.origin.load(Relaxed)));
    }
    found
}

/// Pushes the creator's frames, and those of its creator, up to the start of a thread.
fn follow(thread: &Thread<Local>, kind: u64, creator: Creator, regs: Regs, line: &mut Line) -> bool {
    let mut kind = kind;
    let mut creator = creator;
    // Registers from which the calling thread's own stack can be walked.
    let own = regs;
    for _ in 0..HOPS_MAX {
        line.push(mark(marks::TASK, kind));
        let (found, owner) = match creator {
            Creator::Frame(address) => match step(thread, own, address, line) {
                Some(found) => found,
                None => return false,
            },
            Creator::Pointer(job) => {
                let mut found = None;
                for i in 0..JOB_WORDS {
                    let at = job.wrapping_add(8 * i);
                    if (i == 0 || at & 4095 < 8) && !sys::readable(at as usize) || at & 7 != 0 {
                        break;
                    }
                    // SAFETY: the page was found readable; jobs are aligned.
                    let word = unsafe { core::ptr::read_volatile(at as *const u64) };
                    let start = line.len();
                    found = step(thread, own, word, line);
                    if found.is_some() {
                        break;
                    }
                    line.cut(start);
                }
                match found {
                    Some(found) => found,
                    None => return false,
                }
            }
            Creator::Registers(from, slot) => match step_registers(thread, from, slot, line) {
                Some(found) => found,
                None => return false,
            },
            Creator::Unknown => return false,
        };
        match found {
            Some((next_kind, next)) => (kind, creator) = (next_kind, next),
            None => {
                line.push(mark(marks::THREAD, owner));
                return true;
            }
        }
    }
    false
}

/// The next task met on the creator's stack if there is one, and where the creating thread came from.
type Step = Option<(Option<(u64, Creator)>, u64)>;

fn step(thread: &Thread<Local>, own: Regs, address: u64, line: &mut Line) -> Step {
    let owner = creator::owner::<Idle>(address)?;
    let here = core::ptr::eq(owner, thread).then_some(own).filter(|regs| regs.sp() <= address);
    let start = line.len();
    for _ in 0..TRIES_MAX {
        let mut next = None;
        let reached =
            creator::walk(&thread.local().sampler, owner, here, address, |f| take(f, owner, &mut next, line));
        if reached && !matches!(next, Some((_, Creator::Unknown))) {
            return Some((next, owner.local().origin.load(Relaxed)));
        }
        line.cut(start);
        if here.is_some() {
            break;
        }
    }
    None
}

fn step_registers(thread: &Thread<Local>, from: Regs, slot: usize, line: &mut Line) -> Step {
    let mut next = None;
    let mut owner = None;
    preload::thread::for_each::<Idle>(|t| {
        if core::ptr::from_ref(t) as usize == slot {
            owner = Some(t);
        }
    });
    let owner = owner?;
    // The owner waits for the task in one of these frames.
    let stop = thread.local().sampler.walk(from, owner.stack(), |f| take(f, owner, &mut next, line));
    (next.is_some() || stop == Stop::Root).then_some((next, owner.local().origin.load(Relaxed)))
}

/// Takes a creator's frame in; the walk ends where a task frame says who came before.
fn take(
    f: &Frame,
    owner: &Thread<Local>,
    next: &mut Option<(u64, Creator)>,
    line: &mut Line,
) -> ControlFlow<()> {
    match agent_of(f).step(f, owner, true) {
        Bichord::Created(kind, creator) => {
            *next = Some((kind, creator));
            ControlFlow::Break(())
        }
        Bichord::Hidden => ControlFlow::Continue(()),
        Bichord::Native | Bichord::Idle => {
            if f.key.serial() != OURS.load(Relaxed) as u16 {
                line.push(frame(f.key, chord::LOGICAL));
            }
            ControlFlow::Continue(())
        }
    }
}
