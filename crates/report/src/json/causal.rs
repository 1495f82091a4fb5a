//! The JSON of causal runs.

use analyse::causal::{CausalAnalysis, Result, Verdict};
use profile::Run;
use profile::causal::{Backend, By, Causal, PointKind};
use serde_json::{Value, json};

use super::{header, number, object, text};

/// The document of one causal run.
pub fn causal(run: &Run, causal: &Causal, analysis: &CausalAnalysis) -> Value {
    let mut document = header(run);
    let body = json!({
        "by": match causal.by { By::Line => "line", By::Function => "function" },
        "progress_points": causal.points.iter().map(|p| json!({
            "name": p.name, "kind": point_kind(p.kind), "visits": p.visits,
        })).collect::<Vec<_>>(),
        "experiments": causal.experiments.len(),
        "sampling": {
            "backend": backend(causal.backend),
            "period_ns": causal.period_ns,
            "samples": causal.samples.total,
            "in_scope": causal.targets.iter().map(|t| t.samples).sum::<u64>(),
            "out_of_scope": causal.samples.out_of_scope,
            "cut": causal.samples.cut,
            "unresolved": causal.samples.unresolved,
            "lost": causal.samples.missed,
        },
        "diagnoses": analysis.diagnoses,
        "results": analysis.results.iter().map(|r| result(r, causal)).collect::<Vec<_>>(),
    });
    document.extend(object(body));
    Value::Object(document)
}

fn result(r: &Result, causal: &Causal) -> Value {
    let target = &causal.targets[r.target];
    json!({
        "target": target.name,
        "function": text(&target.function),
        "file": text(&target.file),
        "line": (target.line > 0).then_some(target.line),
        "point": causal.points[r.point].name,
        "point_kind": point_kind(causal.points[r.point].kind),
        "share": r.share,
        "samples": target.samples,
        "curve": r.curve.levels.iter().map(|l| json!({
            "speedup": l.speedup,
            "program_speedup": number(l.gain),
            "ci_low": number(l.ci.0),
            "ci_high": number(l.ci.1),
            "experiments": l.trials,
        })).collect::<Vec<_>>(),
        "slope": number(r.curve.slope),
        "slope_ci": [number(r.curve.slope_ci.0), number(r.curve.slope_ci.1)],
        "max_program_speedup": number(r.best),
        "phase_factor": r.phase_factor,
        "verdict": verdict(r.verdict),
        "reason": r.reason,
    })
}

/// A verdict in words.
pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::WorthIt => "worth it",
        Verdict::NoEffect => "no effect",
        Verdict::Contention => "contention",
        Verdict::Unknown => "unknown",
    }
}

/// A kind of point in words.
pub(crate) fn point_kind(kind: PointKind) -> &'static str {
    match kind {
        PointKind::Throughput => "throughput",
        PointKind::Latency => "latency",
        PointKind::EndToEnd => "end-to-end",
        PointKind::Sampled => "sampled",
    }
}

/// A way of sampling in words.
pub(crate) fn backend(backend: Backend) -> &'static str {
    match backend {
        Backend::Unknown => "unknown",
        Backend::Perf => "perf",
        Backend::Timer => "timer",
        Backend::Mixed => "perf and timer",
    }
}
