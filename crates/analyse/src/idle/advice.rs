//! What to do about a context, by how much idleness and overhead it has (Table 1 of the PPoPP 2009 paper).
//!
//! | idleness | overhead | advice |
//! |---|---|---|
//! | low | low | effectively parallel: tune the serial code |
//! | low | high | coarsen: fewer, larger tasks |
//! | high | low | refine: more, smaller tasks, or make this part parallel |
//! | high | high | switch to another way of parallelizing |
//!
//! High is a share of the context's own effort (work, overhead, idleness); a context that has little effort in the
//! run gets no advice.

use super::project::Values;

/// Share of a context's effort from which on idleness or overhead is high.
pub const HIGH: f64 = 0.10;
/// Share of the run's effort below which nothing is advised.
pub const MATTERS: f64 = 0.01;

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Advice {
    /// Too little time to matter.
    #[default]
    None,
    /// Effectively parallel: tune the serial code.
    Tune,
    /// Less parallelism: larger grains.
    Coarsen,
    /// More parallelism: smaller grains.
    Refine,
    /// Another strategy.
    Switch,
}

impl Advice {
    /// One word.
    pub fn word(self) -> &'static str {
        match self {
            Advice::None => "",
            Advice::Tune => "tune",
            Advice::Coarsen => "coarsen",
            Advice::Refine => "refine",
            Advice::Switch => "switch strategy",
        }
    }

    /// One sentence.
    pub fn sentence(self) -> &'static str {
        match self {
            Advice::None => "too little time to matter",
            Advice::Tune => "effectively parallel: make the code itself faster",
            Advice::Coarsen => "much overhead, little idleness: make fewer and larger tasks",
            Advice::Refine => "cores are idle while this runs: split it into more parallel work",
            Advice::Switch => "idle cores in spite of much overhead: parallelize in another way",
        }
    }
}

/// Share of `part` in `whole`.
pub fn share(part: i64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part.max(0) as f64 / whole as f64 }
}

/// The advice for a context of a run.
pub fn advise(context: &Values, run: &Values) -> Advice {
    let effort = context.effort_ns();
    if share(effort as i64, run.effort_ns()) < MATTERS {
        return Advice::None;
    }
    let idle = share(context.idle_ns, effort) >= HIGH;
    let overhead = share(context.overhead_ns() as i64, effort) >= HIGH;
    match (idle, overhead) {
        (false, false) => Advice::Tune,
        (false, true) => Advice::Coarsen,
        (true, false) => Advice::Refine,
        (true, true) => Advice::Switch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let run = Values { work_ns: 1_000, ..Values::default() };
        let check = |work_ns, sync_ns, idle_ns, advice| {
            assert_eq!(advise(&Values { work_ns, sync_ns, idle_ns, ..Values::default() }, &run), advice);
        };
        check(100, 1, 1, Advice::Tune);
        check(100, 50, 1, Advice::Coarsen);
        check(100, 1, 50, Advice::Refine);
        check(100, 50, 50, Advice::Switch);
        check(100, 0, -50, Advice::Tune);
        check(1, 1, 1, Advice::None);
    }
}
