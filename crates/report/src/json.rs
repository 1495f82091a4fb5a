//! The JSON that scripts read, interface version 1.
//!
//! Fields may be added; none is renamed or removed without a new version.

pub(crate) mod causal;

pub use causal::causal;

use analyse::count::FunctionChange;
use analyse::diff::{Change, ChangeKind};
use analyse::rule::{Finding, Outcome, Rule};
use analyse::{GrowthAnalysis, RoutineAnalysis};
use fit::{Fit, Verdict};
use profile::{Cost, Count, Data, Exit, Function, Growth, Metric, Point, Run, Tally};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Version of the interface, the value of `"farsight"` in every document.
pub const INTERFACE_VERSION: u32 = 1;

/// The document of one growth run.
pub fn growth(run: &Run, growth: &Growth, analysis: &GrowthAnalysis<'_>) -> Value {
    let mut document = header(run);
    let body = json!({
        "metric": metric(growth.metric),
        "cost": cost(growth.cost),
        "cell_bytes": growth.cell_bytes,
        "size_error": growth.size_error,
        "totals": {
            "activations": analysis.totals.activations,
            "routines": analysis.totals.routines,
            "cost": analysis.totals.cost,
            "input_volume": analysis.totals.input_volume,
            "thread_induced_share": analysis.totals.thread_induced_share,
            "external_share": analysis.totals.external_share,
        },
        "routines": analysis.routines.iter().map(|r| routine(r, analysis)).collect::<Vec<_>>(),
        "overtakes": analyse::overtakes(analysis).iter().map(|o| json!({
            "rising": analysis.routines[o.rising].routine.name,
            "overtaken": analysis.routines[o.overtaken].routine.name,
            "factor": o.factor,
            "factor_range": [Some(o.range.0), o.range.1],
        })).collect::<Vec<_>>(),
    });
    document.extend(object(body));
    Value::Object(document)
}

/// The document of one run of counts.
pub fn count(run: &Run, count: &Count) -> Value {
    let mut document = header(run);
    document.insert("threads".into(), count.threads.into());
    document.extend(tally(&count.total));
    let by_thread = count.by_thread.iter().map(|t| {
        let mut thread = tally(&t.tally);
        thread.insert("tid".into(), t.id.into());
        Value::Object(thread)
    });
    document.insert("by_thread".into(), by_thread.collect());
    if !count.functions.is_empty() {
        let mut functions: Vec<&Function> = count.functions.iter().collect();
        functions.sort_by_key(|f| std::cmp::Reverse(f.instructions_self));
        document.insert("functions".into(), functions.into_iter().map(function).collect());
    }
    Value::Object(document)
}

fn tally(t: &Tally) -> Map<String, Value> {
    object(json!({
        "instructions": t.instructions, "blocks": t.blocks, "loads": t.loads, "stores": t.stores, "calls": t.calls,
    }))
}

fn function(f: &Function) -> Value {
    json!({
        "name": f.name, "mangled": f.mangled, "object": f.object, "address": f.address,
        "file": text(&f.file), "line": (f.line > 0).then_some(f.line),
        "calls": f.calls, "instructions_self": f.instructions_self, "instructions_total": f.instructions_total,
    })
}

/// The document of a comparison of two runs of counts.
pub fn count_diff(old: (&Run, &Count), new: (&Run, &Count), changes: &[FunctionChange<'_>]) -> Value {
    let sides = |c: &FunctionChange<'_>| {
        let own = |f: Option<&Function>| f.map(|f| (f.calls, f.instructions_self, f.instructions_total));
        let side = |f: Option<(u64, u64, u64)>| {
            f.map(|(calls, own, all)| {
                json!({
                    "calls": calls, "instructions_self": own, "instructions_total": all,
                })
            })
        };
        let f = c.function();
        json!({ "name": f.name, "object": f.object, "old": side(own(c.old)), "new": side(own(c.new)) })
    };
    json!({
        "farsight": INTERFACE_VERSION,
        "kind": "count-diff",
        "old": { "command": old.0.command, "program": old.0.program.path, "threads": old.1.threads, "total": tally(&old.1.total) },
        "new": { "command": new.0.command, "program": new.0.program.path, "threads": new.1.threads, "total": tally(&new.1.total) },
        "problems": old.0.problems.iter().chain(&new.0.problems).collect::<Vec<_>>(),
        "functions": changes.iter().map(sides).collect::<Vec<_>>(),
    })
}

/// The document of a comparison of two growth runs.
pub fn diff(old: &Run, new: &Run, changes: &[Change<'_, '_>]) -> Value {
    json!({
        "farsight": INTERFACE_VERSION,
        "kind": "diff",
        "old": { "command": old.command, "program": old.program.path },
        "new": { "command": new.command, "program": new.program.path },
        "problems": old.problems.iter().chain(&new.problems).collect::<Vec<_>>(),
        "changes": changes.iter().map(change).collect::<Vec<_>>(),
    })
}

/// The document of a complexity gate.
pub fn check(run: &Run, results: &[(Rule, Vec<Finding<'_, '_>>)]) -> Value {
    let finding = |rule: &Rule, f: &Finding<'_, '_>| {
        json!({
            "rule": format!("{}: {}", rule.pattern, rule.class),
            "routine": f.routine.routine.name,
            "object": f.routine.routine.object,
            "expected": rule.class.to_string(),
            "outcome": match f.outcome {
                Outcome::Pass => "pass",
                Outcome::Fail => "fail",
                Outcome::NotEnoughData => "not enough data",
            },
            "fit": fit(&f.routine.fit),
            "sizes": f.routine.sizes(),
            "calls": f.routine.calls,
        })
    };
    json!({
        "farsight": INTERFACE_VERSION,
        "kind": "check",
        "command": run.command,
        "problems": run.problems,
        "findings": results.iter().flat_map(|(rule, fs)| fs.iter().map(|f| finding(rule, f))).collect::<Vec<_>>(),
        "unmatched": results.iter().filter(|(_, fs)| fs.is_empty()).map(|(r, _)| &r.pattern).collect::<Vec<_>>(),
    })
}

/// What every document of a run begins with.
pub(crate) fn header(run: &Run) -> Map<String, Value> {
    object(json!({
        "farsight": INTERFACE_VERSION,
        "kind": kind(&run.data),
        "command": run.command,
        "exit": exit(run.exit),
        "wall_ns": run.wall_ns,
        "cpu_ns": run.cpu_ns,
        "problems": run.problems,
    }))
}

fn kind(data: &Data) -> &'static str {
    match data {
        Data::Growth(_) => "growth",
        Data::Causal(_) => "causal",
        Data::Count(_) => "count",
        Data::Idle(_) => "idle",
        Data::Span(_) => "span",
        _ => "other",
    }
}

/// The status that `farsight` itself exits with: the program's own, 128+signal when killed.
fn exit(exit: Exit) -> Option<i32> {
    match exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(signal) => Some(128 + signal),
        Exit::Unknown => None,
    }
}

fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Rms => "rms",
        Metric::Trms => "trms",
    }
}

fn cost(cost: Cost) -> &'static str {
    match cost {
        Cost::Blocks => "blocks",
        Cost::Instructions => "instructions",
        Cost::MemoryAccesses => "memory",
        Cost::TimeNs => "time",
    }
}

fn routine(r: &RoutineAnalysis<'_>, analysis: &GrowthAnalysis<'_>) -> Value {
    let forecast: Map<String, Value> = [10.0, 100.0, 1000.0]
        .into_iter()
        .filter_map(|factor| {
            let f = r.forecast.get(analysis.factor_index(factor)?)?;
            let value =
                json!({ "cost_share": f.share, "low": f.share_low, "high": f.share_high, "cost": f.cost });
            Some((format!("{factor:.0}"), value))
        })
        .collect();
    json!({
        "name": r.routine.name,
        "mangled": r.routine.mangled,
        "object": r.routine.object,
        "address": r.routine.address,
        "file": text(&r.routine.file),
        "line": (r.routine.line > 0).then_some(r.routine.line),
        "calls": r.calls,
        "cost_total": r.cost_total,
        "cost_self": r.cost_self,
        "share": r.share,
        "input": { "first_reads": r.first_reads, "thread_induced": r.thread_induced, "external": r.external },
        "points": r.routine.points.iter().map(PointDocument::from).collect::<Vec<_>>(),
        "threads": r.routine.threads,
        "fit": fit(&r.fit),
        "fit_self": fit(&r.fit_self),
        "forecast": forecast,
    })
}

/// Points are many: a struct avoids a map for each.
#[derive(Serialize)]
struct PointDocument {
    n: u64,
    calls: u64,
    min: u64,
    max: u64,
    sum: u64,
    sumsq: f64,
    self_sum: u64,
    real_sum: u64,
}

impl From<&Point> for PointDocument {
    fn from(p: &Point) -> Self {
        PointDocument {
            n: p.n,
            calls: p.calls,
            min: p.min,
            max: p.max,
            sum: p.sum,
            sumsq: p.sumsq as f64,
            self_sum: p.self_sum,
            real_sum: p.real_sum,
        }
    }
}

fn fit(fit: &Fit) -> Value {
    json!({
        "class": fit.class.map(|c| c.to_string()),
        "formula": text(&fit.formula),
        "coefficients": fit.coefficients,
        "exponent": number(fit.exponent),
        "exponent_ci": fit.exponent_ci.map(number),
        "confidence": number(fit.confidence),
        "verdict": verdict(fit.verdict),
        "reason": fit.reason,
        "pieces": fit.pieces.iter().map(|p| json!({
            "from": p.from, "to": p.to, "class": p.class.to_string(), "coefficients": p.coefficients,
        })).collect::<Vec<_>>(),
    })
}

pub(crate) fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confident => "confident",
        Verdict::Tentative => "tentative",
        Verdict::Unknown => "unknown",
    }
}

fn change(change: &Change<'_, '_>) -> Value {
    let side = |side: Option<&RoutineAnalysis<'_>>| {
        side.map(|r| json!({ "fit": fit(&r.fit), "share": r.share, "calls": r.calls, "sizes": r.sizes() }))
    };
    let (kind, amount) = match change.kind {
        ChangeKind::Class => ("class", None),
        ChangeKind::Coefficient { ratio } => ("coefficient", Some(ratio)),
        ChangeKind::Share { points } => ("share", Some(points)),
        ChangeKind::New => ("new", None),
        ChangeKind::Gone => ("gone", None),
    };
    let routine = change.routine().routine;
    json!({
        "name": routine.name, "mangled": routine.mangled, "object": routine.object,
        "change": kind, "amount": amount, "worse": change.worse,
        "old": side(change.old), "new": side(change.new),
    })
}

/// JSON has no NaN and no infinity: what is not a number is null.
fn number(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}

pub(crate) fn text(s: &str) -> Option<&str> {
    (!s.is_empty()).then_some(s)
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
