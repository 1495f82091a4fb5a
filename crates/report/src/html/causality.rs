//! Causal results in the page's JSON section: the curves in the order of their value, the raw experiments as columns,
//! and the source around the targets.

use std::collections::HashMap;

use analyse::causal::CausalAnalysis;
use profile::Run as ProfileRun;
use profile::causal::{Causal, PointKind};
use serde::Serialize;

use super::CausalRun;
use super::excerpt::Excerpts;
use super::head::Head;
use crate::json::causal::{backend, point_kind, verdict};

/// Results with source text, and lines around each target.
const SOURCES_MAX: usize = 24;
const LINES_AROUND: u32 = 4;

/// What the page knows about causal runs.
#[derive(Serialize)]
pub struct CausalMode<'a> {
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    diagnoses: &'a [String],
    backend: &'static str,
    period_ns: u64,
    samples: u64,
    in_scope: u64,
    /// Name, kind, visits.
    points: Vec<(&'a str, &'static str, u64)>,
    targets: Vec<Target<'a>>,
    /// The most valuable first.
    results: Vec<Outcome<'a>>,
    experiments: Experiments,
}

#[derive(Serialize)]
struct Target<'a> {
    name: &'a str,
    function: &'a str,
    file: &'a str,
    line: u32,
    samples: u64,
    /// First line shown, and the lines; empty when the source cannot be read.
    source: (u32, Vec<String>),
}

/// Speedup, gain, ends of its interval, experiments; ends that are not known are null.
type Level = (f64, f64, Option<f64>, Option<f64>, usize);

#[derive(Serialize)]
struct Outcome<'a> {
    target: usize,
    point: usize,
    share: f64,
    levels: Vec<Level>,
    slope: f64,
    slope_low: Option<f64>,
    slope_high: Option<f64>,
    phase_factor: f64,
    verdict: &'static str,
    reason: &'a str,
}

/// Columns, one entry per experiment.
#[derive(Serialize, Default)]
struct Experiments {
    target: Vec<u32>,
    permille: Vec<u32>,
    start_ms: Vec<u64>,
    /// Time per unit of progress in nanoseconds, per point; null without progress.
    period_ns: Vec<Vec<Option<f64>>>,
}

impl<'a> CausalMode<'a> {
    /// What the page shows of these runs; `None` when there are none.
    pub fn new(runs: &[CausalRun<'a>]) -> Option<Self> {
        let of = |r: &CausalRun<'a>| Run::new(r.run, r.causal, r.analysis, r.sources);
        (!runs.is_empty()).then(|| CausalMode { runs: runs.iter().map(of).collect() })
    }
}

impl<'a> Run<'a> {
    fn new(
        run: &'a ProfileRun,
        causal: &'a Causal,
        analysis: &'a CausalAnalysis,
        sources: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Run {
            head: Head::new(run),
            diagnoses: &analysis.diagnoses,
            backend: backend(causal.backend),
            period_ns: causal.period_ns,
            samples: causal.samples.total,
            in_scope: causal.targets.iter().map(|t| t.samples).sum(),
            points: causal.points.iter().map(|p| (p.name.as_str(), point_kind(p.kind), p.visits)).collect(),
            targets: targets(causal, analysis, sources),
            results: outcomes(analysis),
            experiments: experiments(causal),
        }
    }
}

fn targets<'a>(
    causal: &'a Causal,
    analysis: &CausalAnalysis,
    sources: &dyn Fn(&str) -> Option<String>,
) -> Vec<Target<'a>> {
    let mut excerpts = Excerpts::new(sources).with_context(LINES_AROUND);
    let mut texts: HashMap<usize, (u32, Vec<String>)> = HashMap::new();
    for result in analysis.results.iter().take(SOURCES_MAX) {
        let target = &causal.targets[result.target];
        if let Some(found) = excerpts.around(result.target, &target.file, target.line) {
            texts.insert(found.routine, (found.start, found.lines));
        }
    }
    let of = |(i, t): (usize, &'a profile::causal::Target)| Target {
        name: &t.name,
        function: &t.function,
        file: &t.file,
        line: t.line,
        samples: t.samples,
        source: texts.remove(&i).unwrap_or_default(),
    };
    causal.targets.iter().enumerate().map(of).collect()
}

fn outcomes(analysis: &CausalAnalysis) -> Vec<Outcome<'_>> {
    let known = |x: f64| x.is_finite().then_some(x);
    let of = |r: &'_ analyse::causal::Result| {
        let levels = r.curve.levels.iter();
        let levels = levels.map(|l| (l.speedup, l.gain, known(l.ci.0), known(l.ci.1), l.trials)).collect();
        (levels, known(r.curve.slope_ci.0), known(r.curve.slope_ci.1))
    };
    let outcomes = analysis.results.iter().map(|r| {
        let (levels, slope_low, slope_high) = of(r);
        Outcome {
            target: r.target,
            point: r.point,
            share: r.share,
            levels,
            slope: r.curve.slope,
            slope_low,
            slope_high,
            phase_factor: r.phase_factor,
            verdict: verdict(r.verdict),
            reason: &r.reason,
        }
    });
    outcomes.collect()
}

fn experiments(causal: &Causal) -> Experiments {
    let mut out = Experiments { period_ns: vec![Vec::new(); causal.points.len()], ..Experiments::default() };
    for e in &causal.experiments {
        out.target.push(e.target);
        out.permille.push(e.speedup_permille);
        out.start_ms.push(e.start_ns / 1_000_000);
        for (i, column) in out.period_ns.iter_mut().enumerate() {
            let progress = e.progress.get(i).copied().unwrap_or_default();
            let time = match causal.points[i].kind {
                PointKind::Latency => progress.in_flight_ns,
                _ => e.effective_ns(),
            };
            column.push((progress.visits > 0).then(|| time as f64 / progress.visits as f64));
        }
    }
    out
}
