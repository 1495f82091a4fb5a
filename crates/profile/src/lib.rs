//! What a profile is: the runs of a program under any of the modes, as facts.
//!
//! Everything downstream (analysis, report, export) reads these types; everything upstream (collectors,
//! importers) builds them. They hold what was measured and nothing that was concluded from it.
//!
//! # Design constraints
//! - Pure values: no clock, no environment, no process. File access is confined to [`file`].
//! - No `unsafe`; no panic and no unbounded allocation on foreign bytes.
//! - Order-independent: merging is commutative and associative, and equal profiles have equal bytes.
#![forbid(unsafe_code)]

pub mod growth;
pub mod run;

pub use growth::{Composition, Cost, Growth, Metric, Point, Routine};
pub use run::{Data, Exit, Program, Run, RunId};

/// One `.farsight` file: one or more runs of one or more programs, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// The runs; no two have the same [`RunId`].
    pub runs: Vec<Run>,
}
