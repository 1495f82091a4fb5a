//! Two runs compared by function: before and after a change, or with other numbers of threads.
//!
//! Shares are of each run's core time (cores times wall-clock time), so that runs of different lengths and core counts
//! compare; a share that moved by less than sampling can tell is left out.

use std::collections::HashMap;

use profile::idle::FrameKind;

use super::function::Function;
use super::project::Values;
use super::{IdleAnalysis, Totals};

/// A function in two runs.
#[derive(Debug, Clone)]
pub struct Change<'a> {
    /// Its name.
    pub name: &'a str,
    /// Before; `None` if it was not there.
    pub old: Option<&'a Function>,
    /// After; `None` if it is gone.
    pub new: Option<&'a Function>,
    /// Change of its own share of core time: work, overhead, idleness.
    pub points: [f64; 3],
}

/// Shares of core time.
pub fn shares(values: &Values, totals: &Totals) -> [f64; 3] {
    let whole = totals.cores_times_wall_ns.max(1) as f64;
    [values.work_ns as f64 / whole, values.overhead_ns() as f64 / whole, values.idle_ns as f64 / whole]
}

/// The functions whose share changed beyond noise, the largest change first.
pub fn diff<'a>(old: &'a IdleAnalysis, new: &'a IdleAnalysis) -> Vec<Change<'a>> {
    let key = |f: &'a Function| (f.name.as_str(), f.kind);
    type Pair<'f> = (Option<&'f Function>, Option<&'f Function>);
    let mut pairs: HashMap<(&str, FrameKind), Pair<'a>> = HashMap::new();
    old.functions.iter().for_each(|f| pairs.entry(key(f)).or_default().0 = Some(f));
    new.functions.iter().for_each(|f| pairs.entry(key(f)).or_default().1 = Some(f));
    let samples = |a: &IdleAnalysis| a.totals.values.samples.max(1) as f64;
    // Three standard deviations of a share of this size, of the coarser run.
    let noise = |share: f64| 3.0 * (share.abs().max(1e-3) / samples(old).min(samples(new))).sqrt();
    let mut changes: Vec<Change<'a>> = Vec::new();
    for ((name, _), (before, after)) in pairs {
        let was = before.map_or([0.0; 3], |f| shares(&f.own, &old.totals));
        let is = after.map_or([0.0; 3], |f| shares(&f.own, &new.totals));
        let points = [is[0] - was[0], is[1] - was[1], is[2] - was[2]];
        let moved = (0..3).any(|i| points[i].abs() > noise(is[i].max(was[i])));
        if moved {
            changes.push(Change { name, old: before, new: after, points });
        }
    }
    let size = |c: &Change<'_>| c.points.iter().map(|p| p.abs()).fold(0.0, f64::max);
    changes.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(b.name)));
    changes
}
