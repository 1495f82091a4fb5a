//! Arbitrary operations made into well-formed traces.
//!
//! Test generators produce lists of [`Op`], which shrink and enumerate well; [`shape`] drops or completes
//! what would make no sense (a step of a thread that has not started, a call beyond the depth limit).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Event, Step};

/// One wish of a generator. Small numbers are taken modulo what makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Which of the living threads.
    pub thread: u8,
    /// What it should do.
    pub kind: OpKind,
}

/// What a generator can wish for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    /// Call a routine, folded or not.
    Call(u8, bool),
    /// Return.
    Return,
    /// Tail call.
    Tail(u8, bool),
    /// Unwind so many activations at once.
    Unwind(u8),
    /// Enter a handler.
    Signal(u8),
    /// Leave the innermost handler.
    SigReturn,
    /// Read so many cells from this one on.
    Read(u8, u8),
    /// Write so many cells.
    Write(u8, u8),
    /// Kernel reads so many cells.
    KernelRead(u8, u8),
    /// Kernel writes so many cells.
    KernelWrite(u8, u8),
    /// Forget so many cells.
    Reset(u8, u8),
    /// Spend on a cost.
    Cost(u8, u8),
    /// End the thread; another one takes its place.
    Respawn,
}

/// Limits of a trace.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Threads that live at the same time.
    pub threads: u8,
    /// Cells that are accessed.
    pub cells: u8,
    /// Bytes between the cells: the cell size, or more to spread them over pages.
    pub stride_bytes: u64,
    /// Pending activations of a thread, the root included.
    pub depth: usize,
    /// Routines.
    pub routines: u8,
    /// Costs.
    pub costs: u8,
}

struct Shaped {
    id: u32,
    /// Stack pointers of pending activations; `None` is a handler.
    pending: Vec<Option<u64>>,
}

/// Makes a trace of the wishes. All threads end at its end.
pub fn shape(ops: &[Op], limits: Limits) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut living: BTreeMap<u8, Shaped> = BTreeMap::new();
    let mut next_id = 0;
    for op in ops {
        let seat = op.thread % limits.threads;
        let shaped = living.entry(seat).or_insert_with(|| {
            let id = next_id;
            next_id += 1;
            steps.push(Step { thread: id, event: Event::ThreadStart { routine: 0 } });
            Shaped { id, pending: Vec::from([Some(STACK_TOP)]) }
        });
        let thread = shaped.id;
        if op.kind == OpKind::Respawn {
            steps.push(Step { thread, event: Event::ThreadEnd });
            living.remove(&seat);
            continue;
        }
        steps.extend(event(op.kind, shaped, limits).map(|event| Step { thread, event }));
    }
    steps.extend(living.values().map(|shaped| Step { thread: shaped.id, event: Event::ThreadEnd }));
    steps
}

const STACK_TOP: u64 = 1 << 40;
const FIRST_CELL: u64 = 0x1000;

fn event(kind: OpKind, shaped: &mut Shaped, limits: Limits) -> Option<Event> {
    let room = shaped.pending.len() < limits.depth;
    let leaves = shaped.pending.len() > 1 && shaped.pending.last().is_some_and(Option::is_some);
    let deepest = shaped.pending.iter().flatten().copied().last().unwrap_or(STACK_TOP);
    // Routine 0 is the root's: calling it makes recursion through the root.
    let routine = |n: u8| u32::from(n % limits.routines);
    let range = |cell: u8, count: u8| {
        let cell = u64::from(cell % limits.cells);
        let count = u64::from(count).clamp(1, u64::from(limits.cells) - cell);
        (FIRST_CELL + cell * limits.stride_bytes, count * limits.stride_bytes)
    };
    Some(match kind {
        OpKind::Call(n, folded) if room => {
            let sp = deepest - 16;
            shaped.pending.push(Some(sp));
            Event::Call { routine: routine(n), sp, folded }
        }
        OpKind::Return if leaves => {
            shaped.pending.pop();
            Event::Return
        }
        OpKind::Tail(n, folded) if leaves => Event::TailCall { routine: routine(n), folded },
        OpKind::Unwind(count) if leaves => {
            let mut sp = 0;
            for _ in 0..count.max(1) {
                if shaped.pending.len() == 1 {
                    break;
                }
                let Some(Some(dead)) = shaped.pending.last().copied() else { break };
                sp = dead;
                shaped.pending.pop();
            }
            Event::Unwind { sp }
        }
        OpKind::Signal(n) if room => {
            shaped.pending.push(None);
            Event::SignalEnter { routine: routine(n) }
        }
        OpKind::SigReturn => {
            let handler = shaped.pending.iter().rposition(Option::is_none)?;
            shaped.pending.truncate(handler);
            Event::SignalExit
        }
        OpKind::Read(cell, count) => {
            let (address, size) = range(cell, count);
            Event::Read { address, size }
        }
        OpKind::Write(cell, count) => {
            let (address, size) = range(cell, count);
            Event::Write { address, size }
        }
        OpKind::KernelRead(cell, count) => {
            let (address, size) = range(cell, count);
            Event::KernelRead { address, size }
        }
        OpKind::KernelWrite(cell, count) => {
            let (address, size) = range(cell, count);
            Event::KernelWrite { address, size }
        }
        OpKind::Reset(cell, count) => {
            let (address, size) = range(cell, count);
            Event::Reset { address, size }
        }
        OpKind::Cost(which, amount) => Event::Cost { which: which % limits.costs, amount: u64::from(amount) },
        _ => return None,
    })
}
