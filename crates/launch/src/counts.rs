//! Reading what the counting runtime wrote.

use crate::results::Results;
use wire::count::*;
use wire::slab::{COUNTERS_OFFSET, STRIDE, TOTALS_OFFSET};

/// One thread's counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread {
    /// Kernel thread id.
    pub tid: u32,
    /// What it executed.
    pub totals: Totals,
}

/// What one function executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FunctionCounts {
    /// Times that it was entered.
    pub calls: u64,
    /// Instructions of its own.
    pub own: u64,
    /// Instructions of its own and of what it called; a recursion counts once.
    pub total: u64,
}

/// All counts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Over all threads.
    pub totals: Totals,
    /// Threads that ever ran.
    pub threads: u32,
    /// Those with their own numbers (all but overflowing ones).
    pub by_thread: Vec<Thread>,
    /// What is missing or doubtful.
    pub problems: Vec<String>,
}

/// Writes the header that the runtime expects.
pub fn prepare(r: &Results) {
    r.put(0, Header { magic: MAGIC, version: wire::VERSION, ..Header::default() });
}

/// Sums up.
pub fn read(r: &Results) -> Counts {
    let h: Header = r.get(0);
    let mut problems = Vec::new();
    if h.magic != MAGIC || h.version != wire::VERSION {
        problems.push("the runtime wrote no counts".to_owned());
    }
    if h.problems & problem::DETACHED != 0 {
        problems.push("the program did something that the engine cannot run, and went on natively from there: counts are partial".to_owned());
    }
    let exits: &[ExitDesc] = r.slice(EXITS_OFFSET, h.exits as usize);
    let ended: &[ThreadRecord] = r.slice(ENDED_OFFSET, h.ended as usize);
    let mut by_thread: Vec<Thread> = ended.iter().map(|t| Thread { tid: t.tid, totals: t.totals }).collect();
    for i in 0..u64::from(h.slabs) {
        let slab = FIXED_BYTES + i * STRIDE;
        let t: ThreadTotals = r.get(slab + TOTALS_OFFSET);
        if t.tid == 0 {
            continue;
        }
        let mut totals = t.extra;
        let counters: &[u64] = r.slice(slab + COUNTERS_OFFSET, exits.len());
        for (d, c) in exits.iter().zip(counters) {
            if *c != 0 {
                totals.add_scaled(&Totals::from(*d), *c);
            }
        }
        by_thread.push(Thread { tid: t.tid, totals });
    }
    if h.problems & problem::FUNCTIONS_PARTIAL != 0 {
        problems.push(
            "what functions executed is partial: a recursion was too deep, or the program has too much code"
                .to_owned(),
        );
    }
    let mut totals = h.overflow;
    for t in &by_thread {
        totals.add_scaled(&t.totals, 1);
    }
    by_thread.sort_by_key(|t| t.tid);
    Counts { totals, threads: h.threads, by_thread, problems }
}

/// Sums up by function: the entry of number n is that of the function which the answers gave that number, up to
/// `count`; entry 0 is what has none. For runs that counted functions.
pub fn read_functions(r: &Results, count: usize) -> Vec<FunctionCounts> {
    let h: Header = r.get(0);
    let exits: &[ExitDesc] = r.slice(EXITS_OFFSET, h.exits as usize);
    let sums: &[FunctionSums] = r.slice(FUNCTIONS_OFFSET, count.min(FUNCTIONS_MAX as usize));
    let mut functions: Vec<FunctionCounts> =
        sums.iter().map(|s| FunctionCounts { calls: s.calls, own: 0, total: s.total }).collect();
    let mut times: Vec<u64> = r.slice::<u64>(ENDED_COUNTERS_OFFSET, exits.len()).to_vec();
    for i in 0..u64::from(h.slabs) {
        let slab = FIXED_BYTES + i * STRIDE;
        let t: ThreadTotals = r.get(slab + TOTALS_OFFSET);
        if t.tid == 0 {
            continue;
        }
        for (sum, c) in times.iter_mut().zip(r.slice::<u64>(slab + COUNTERS_OFFSET, exits.len())) {
            *sum = sum.wrapping_add(*c);
        }
        // What is active when the program ends has been so until then.
        for f in r.slice::<Frame>(slab + SHADOW_OFFSET, u64::from(t.depth).min(SHADOW_MAX) as usize) {
            if let Some(sums) = functions.get_mut(f.function as usize).filter(|_| f.outermost != 0) {
                sums.total = sums.total.wrapping_add(t.running.wrapping_sub(f.entered));
            }
        }
    }
    let mut add = |function: u32, instructions: u64| {
        if let Some(f) = functions.get_mut(function as usize) {
            f.own = f.own.wrapping_add(instructions);
        }
    };
    for (d, c) in exits.iter().zip(&times) {
        add(d.function, c.wrapping_mul(d.instructions.into()));
    }
    for s in r.slice::<Split>(SPLITS_OFFSET, h.splits as usize) {
        let Some((d, c)) = exits.get(s.exit as usize).zip(times.get(s.exit as usize)) else { continue };
        let moved = c.wrapping_mul(s.instructions.into());
        add(s.function, moved);
        add(d.function, moved.wrapping_neg());
    }
    for f in &mut functions {
        // A function that is only ever run into, never called or jumped to, has no activations of its own.
        f.total = f.total.max(f.own);
    }
    functions
}
