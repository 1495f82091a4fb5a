//! Two runs compared by function: before and after a change, or with other numbers of threads.
//!
//! Each side may be several runs of one program, which are added up: the processes of a server, the calls of a compiler.
//! Shares are of each side's core time (cores times wall-clock time), so that runs of different lengths and core counts
//! compare; a share that moved by less than sampling can tell is left out.

use std::collections::HashMap;

use profile::Idle;
use profile::idle::FrameKind;

use super::function::Function;
use super::project::Values;
use super::{IdleAnalysis, Totals};

/// What is compared: a run, or some that are added up.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// How many runs.
    pub runs: usize,
    /// Most cores that one of them reckoned with.
    pub cores: u32,
    /// Threads of all.
    pub threads: u64,
    /// Wall-clock time of all.
    pub span_ns: u64,
    /// Sums.
    pub totals: Totals,
    /// Sums by function.
    pub functions: Vec<Function>,
}

impl Side {
    /// Adds up.
    pub fn new<'a>(runs: impl IntoIterator<Item = (&'a Idle, &'a IdleAnalysis)>) -> Side {
        let mut side = Side::default();
        let mut numbers: HashMap<(&str, FrameKind), usize> = HashMap::new();
        for (idle, analysis) in runs {
            side.runs += 1;
            side.cores = side.cores.max(idle.cores);
            side.threads += idle.threads;
            side.span_ns += idle.span_ns;
            side.totals.add(&analysis.totals);
            for function in &analysis.functions {
                let number = *numbers.entry((&function.name, function.kind)).or_insert_with(|| {
                    let none = Values::default();
                    side.functions.push(Function { own: none, all: none, ..function.clone() });
                    side.functions.len() - 1
                });
                side.functions[number].own.add(&function.own);
                side.functions[number].all.add(&function.all);
            }
        }
        side
    }

    /// Share of core time that was idle or overhead.
    pub fn wasted(&self) -> f64 {
        let [_, overhead, idle] = shares(&self.totals.values, &self.totals);
        overhead + idle
    }
}

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
pub fn diff<'a>(old: &'a Side, new: &'a Side) -> Vec<Change<'a>> {
    let key = |f: &'a Function| (f.name.as_str(), f.kind);
    type Pair<'f> = (Option<&'f Function>, Option<&'f Function>);
    let mut pairs: HashMap<(&str, FrameKind), Pair<'a>> = HashMap::new();
    old.functions.iter().for_each(|f| pairs.entry(key(f)).or_default().0 = Some(f));
    new.functions.iter().for_each(|f| pairs.entry(key(f)).or_default().1 = Some(f));
    let samples = |a: &Side| a.totals.values.samples.max(1) as f64;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, work_ns: u64, idle_ns: i64) -> (Idle, IdleAnalysis) {
        use profile::idle::{Context, Frame};
        let idle = Idle {
            cores: 2,
            threads: 1,
            span_ns: work_ns,
            samples: 10_000,
            frames: vec![Frame { name: name.into(), ..Frame::default() }],
            contexts: vec![Context { samples: 10_000, cpu_ns: work_ns, idle_ns, ..Context::default() }],
            ..Idle::default()
        };
        let analysis = super::super::analyse(&idle, &Default::default());
        (idle, analysis)
    }

    #[test]
    fn runs_are_added_up_and_compared() {
        let side = |runs: &[(Idle, IdleAnalysis)]| Side::new(runs.iter().map(|(i, a)| (i, a)));
        let old = side(&[run("a", 600, 600), run("b", 200, 200)]);
        assert_eq!((old.runs, old.threads, old.span_ns, old.totals.cores_times_wall_ns), (2, 2, 800, 1600));
        assert_eq!(old.wasted(), 0.5);
        let same = side(&[run("a", 100, 100), run("b", 200, 200), run("a", 500, 500)]);
        assert!(diff(&old, &same).is_empty(), "in how many runs does not matter");
        let new = side(&[run("a", 600, 0), run("c", 200, 200)]);
        let changes = diff(&old, &new);
        let found: Vec<_> = changes.iter().map(|c| (c.name, c.old.is_some(), c.new.is_some())).collect();
        assert_eq!(found, [("a", true, true), ("b", true, false), ("c", false, true)]);
        assert!((changes[0].points[2] + 600.0 / 1600.0).abs() < 1e-9, "{:?}", changes[0].points);
    }
}
