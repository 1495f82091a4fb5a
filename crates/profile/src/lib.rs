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

pub mod canon;
pub mod causal;
mod causal_section;
pub mod count;
mod count_section;
pub mod error;
mod facts;
mod fields;
pub mod file;
pub mod format;
pub mod growth;
mod growth_section;
pub mod idle;
mod idle_section;
pub mod merge;
pub mod run;
mod run_section;
mod section;
pub mod siblings;
pub mod span;
mod span_section;
mod varint;

pub use canon::Invalid;
pub use causal::Causal;
pub use count::{Count, Function, Tally, ThreadTally};
pub use error::{Looks, ReadError, WriteError};
pub use format::{Loaded, decode, encode, salvage};
pub use growth::{Composition, Cost, Growth, Identity, Metric, Point, Routine, ThreadCost, ThreadPoints};
pub use idle::Idle;
pub use merge::{MergeError, combine, merge};
pub use run::{Data, Exit, Opaque, OpaqueSection, Program, Run, RunId};
pub use span::{Model, Site, SiteKind, Span};

/// One `.farsight` file: one or more runs of one or more programs, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Profile {
    /// The runs; no two have the same [`RunId`].
    pub runs: Vec<Run>,
}

impl Profile {
    /// The runs grouped by build, in order of first appearance; see [`Program::same_build`].
    pub fn by_build(&self) -> Vec<Vec<&Run>> {
        let mut groups: Vec<Vec<&Run>> = Vec::new();
        for run in &self.runs {
            match groups.iter_mut().find(|group| group[0].program.same_build(&run.program)) {
                Some(group) => group.push(run),
                None => groups.push(vec![run]),
            }
        }
        groups
    }
}
