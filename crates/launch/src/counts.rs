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

/// All counts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts {
    /// Over all threads.
    pub totals: Totals,
    /// Threads that ever ran.
    pub threads: u32,
    /// Those with their own numbers (all but overflowing ones).
    pub by_thread: Vec<Thread>,
    /// Executions of instructions by superblock address: (address, instructions, calls).
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
        problems.push("the engine met a bug and let the program run natively: counts are partial".to_owned());
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
    let mut totals = h.overflow;
    for t in &by_thread {
        totals.add_scaled(&t.totals, 1);
    }
    by_thread.sort_by_key(|t| t.tid);
    Counts { totals, threads: h.threads, by_thread, problems }
}
