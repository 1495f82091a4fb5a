//! What an idle run says: work, overhead and idleness by context and by function, and what to do about it.
//!
//! ```text
//! classes    what a frame is, by its name
//! project    the tree of contexts, seen logically or physically, with classes applied
//! function   sums by function, with recursion counted once
//! advice     the table of the PPoPP 2009 paper: idleness and overhead, high or low
//! ```

pub mod advice;
pub mod classes;
pub mod diff;
pub mod function;
pub mod project;

use profile::Idle;

pub use advice::Advice;
pub use classes::{Class, Classes};
pub use function::{Function, functions};
pub use project::{Projected, Projection, Values, project};

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Work, overhead, idleness, waiting.
    pub values: Values,
    /// Core time in which no thread worked, or that others had.
    pub nobody_ns: u64,
    /// The second part of it.
    pub preempted_ns: i64,
    /// CPU time spent looking for work.
    pub spin_ns: u64,
    /// Cores times wall-clock time.
    pub cores_times_wall_ns: u64,
    /// Work, overhead, idleness and nobody.
    pub accounted_ns: u64,
}

impl Totals {
    /// Adds those of another run.
    pub fn add(&mut self, other: &Totals) {
        self.values.add(&other.values);
        self.nobody_ns += other.nobody_ns;
        self.preempted_ns += other.preempted_ns;
        self.spin_ns += other.spin_ns;
        self.cores_times_wall_ns += other.cores_times_wall_ns;
        self.accounted_ns += other.accounted_ns;
    }
}

/// Everything that is concluded from a run.
#[derive(Debug)]
pub struct IdleAnalysis {
    /// Totals.
    pub totals: Totals,
    /// The logical tree.
    pub logical: Projected,
    /// The functions of the logical tree, those with most wasted time first.
    pub functions: Vec<Function>,
    /// Share of the samples of tasks that stand below their creator, if there are any.
    pub stitched_share: Option<f64>,
}

/// The physical tree of a run, by its own rules. Apart from the rest: it is as large, and few ask for it.
pub fn physical(idle: &Idle) -> Projected {
    project(idle, &Classes::parse(&idle.rules).unwrap_or_default(), Projection::Physical)
}

/// Concludes.
pub fn analyse(idle: &Idle, classes: &Classes) -> IdleAnalysis {
    let logical = project(idle, classes, Projection::Logical);
    let functions = functions(idle, &logical);
    let values = logical.total;
    let nobody_ns = idle.nobody_ns.saturating_add_signed(idle.preempted_ns);
    let accounted = values.work_ns as i64 + values.overhead_ns() as i64 + values.idle_ns + nobody_ns as i64;
    let tasks = idle.stitched + idle.orphans;
    IdleAnalysis {
        totals: Totals {
            values,
            nobody_ns,
            preempted_ns: idle.preempted_ns,
            spin_ns: logical.spin_ns,
            cores_times_wall_ns: u64::from(idle.cores) * idle.span_ns,
            accounted_ns: accounted.max(0) as u64,
        },
        logical,
        functions,
        stitched_share: (tasks > 0).then(|| idle.stitched as f64 / tasks as f64),
    }
}
