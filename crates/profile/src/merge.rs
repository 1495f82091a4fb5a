//! Putting several profiles, or several runs, together.
//!
//! Two different things, both independent of the order of what is put together:
//! - [`merge`] keeps runs apart: the result holds every run once, whatever files it came from.
//! - [`Growth::combined`] adds runs up: more inputs for the same routines, hence more points for a fit.
//!
//! Neither may guess: facts that do not fit together are an error that names both sides.

use std::collections::HashMap;

use crate::Profile;
use crate::growth::{Cost, Growth, Metric, ThreadCost};
use crate::run::{Data, Run, RunId};

/// Why profiles cannot be merged or runs cannot be combined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// One id, two contents.
    #[error(
        "run {id} of {program} occurs with different contents; one of the files was altered or salvaged: \
         merge without it"
    )]
    Conflict {
        /// The id of both.
        id: RunId,
        /// The program of the first.
        program: String,
    },
    /// Nothing to combine.
    #[error("no growth run to combine")]
    Nothing,
    /// Sizes of different meaning.
    #[error("cannot add runs that measure input as {0} and as {1}")]
    Metrics(&'static str, &'static str),
    /// Costs of different meaning.
    #[error("cannot add runs whose cost is in {0} and in {1}")]
    Costs(&'static str, &'static str),
    /// Sizes of different units.
    #[error("cannot add runs with memory cells of {0} and of {1} bytes")]
    Cells(u32, u32),
    /// Addresses and names of different meaning.
    #[error("cannot add runs of different builds: {0} and {1}")]
    Builds(String, String),
}

/// The union of the profiles' runs, ordered by (start, id). Merging a profile with itself gives that profile.
pub fn merge(profiles: &[Profile]) -> Result<Profile, MergeError> {
    let mut places: HashMap<RunId, &Run> = HashMap::new();
    let mut runs: Vec<&Run> = Vec::new();
    for run in profiles.iter().flat_map(|p| &p.runs) {
        match places.insert(run.id, run) {
            None => runs.push(run),
            Some(first) if first == run => {}
            Some(first) => {
                return Err(MergeError::Conflict { id: run.id, program: first.program.path.clone() });
            }
        }
    }
    runs.sort_by_key(|run| (run.started_unix_ns, run.id));
    Ok(Profile { runs: runs.into_iter().cloned().collect() })
}

/// The sum of several growth runs of one build; see [`Growth::combined`].
pub fn combine(runs: &[&Run]) -> Result<Growth, MergeError> {
    let name = |run: &Run| match run.program.build_id.as_slice() {
        [] => run.program.path.clone(),
        id => {
            let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{} (build id {hex})", run.program.path)
        }
    };
    if let [first, rest @ ..] = runs
        && let Some(other) = rest.iter().find(|run| !run.program.same_build(&first.program))
    {
        return Err(MergeError::Builds(name(first), name(other)));
    }
    Growth::combined(runs.iter().filter_map(|run| match &run.data {
        Data::Growth(growth) => Some(growth),
        _ => None,
    }))
}

impl Growth {
    /// Adds runs of one build: points per (routine, size), costs, threads. Commutative and associative.
    ///
    /// The total cost is known only when that of every run is. What threads did is no longer kept apart,
    /// because thread ids of different runs have nothing to do with each other.
    pub fn combined<'a>(runs: impl IntoIterator<Item = &'a Growth>) -> Result<Growth, MergeError> {
        let mut runs = runs.into_iter();
        let first = runs.next().ok_or(MergeError::Nothing)?;
        let mut sum = first.clone();
        for run in runs {
            if run.metric != sum.metric {
                return Err(MergeError::Metrics(sum.metric.name(), run.metric.name()));
            }
            if run.cost != sum.cost {
                return Err(MergeError::Costs(sum.cost.name(), run.cost.name()));
            }
            if run.cell_bytes != sum.cell_bytes {
                return Err(MergeError::Cells(sum.cell_bytes, run.cell_bytes));
            }
            sum.cost_total = match (sum.cost_total, run.cost_total) {
                (0, _) | (_, 0) => 0,
                (a, b) => a.saturating_add(b),
            };
            sum.size_error = sum.size_error.max(run.size_error);
            sum.routines.extend(run.routines.iter().cloned());
        }
        sum.threads = Vec::<ThreadCost>::new();
        sum.routines.iter_mut().for_each(|routine| routine.by_thread.clear());
        sum.normalize();
        Ok(sum)
    }
}

impl Metric {
    /// Its name in messages, JSON and exports.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Rms => "rms",
            Metric::Trms => "trms",
        }
    }
}

impl Cost {
    /// Its name in messages, JSON and exports.
    pub fn name(self) -> &'static str {
        match self {
            Cost::Blocks => "blocks",
            Cost::Instructions => "instructions",
            Cost::MemoryAccesses => "memory accesses",
            Cost::TimeNs => "time",
        }
    }
}
