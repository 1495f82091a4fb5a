//! Work and span for the terminal and for scripts.

use analyse::span::{self as analysis, Advice, FACTORS};
use profile::Run;
use profile::span::{Measure, Measures, Model, Site, SiteKind, Span, Unit};
use serde_json::{Map, Value, json};

use crate::table::{Align, Table, shorten};
use crate::{json as documents, units};

/// Rows of the table of sites, and steps of the critical path.
const SITES_MAX: usize = 15;
const STEPS_MAX: usize = 12;
const NAME_WIDTH: usize = 40;
const PLACE_WIDTH: usize = 34;

/// The document of one run.
pub fn json(run: &Run, span: &Span) -> Value {
    let mut document = documents::header(run);
    let body = json!({
        "model": model(span.model),
        "unit": unit(span.unit),
        "work": span.work,
        "span": span.span,
        "parallelism": span.parallelism(),
        "burden": span.burden,
        "fork_extra": span.fork_extra_milli as f64 / 1000.0,
        "burdened_span": span.burdened_span,
        "burdened_parallelism": span.burdened_parallelism(),
        "spawns": span.spawns,
        "threads": span.threads,
        "repaired_strands": span.repaired,
        "speedup": analysis::bounds(span).iter().map(|b| json!({
            "processors": b.processors, "lower": b.lower, "upper": b.upper,
        })).collect::<Vec<_>>(),
        "measured": span.measured.iter().map(|m| json!({
            "processors": m.processors, "wall_ns": m.wall_ns,
            "wall_ns_least": m.range_ns.0, "wall_ns_most": m.range_ns.1, "runs": m.runs,
            "speedup": measured_speedup(span, m.wall_ns),
            "speedup_least": measured_speedup(span, m.range_ns.1),
            "speedup_most": measured_speedup(span, m.range_ns.0),
        })).collect::<Vec<_>>(),
        "sites": analysis::ranked(span).into_iter().map(|s| site(span, s)).collect::<Vec<_>>(),
        "critical_path": span.path.iter().map(|step| {
            let s = span.sites.get(step.site as usize);
            json!({
                "function": s.map(|s| &s.function), "callee": s.map(|s| &s.callee),
                "file": s.and_then(|s| documents::text(&s.file)), "line": s.map(|s| s.line).filter(|&l| l > 0),
                "span": step.span, "own": step.own, "strands": step.strands,
            })
        }).collect::<Vec<_>>(),
    });
    document.extend(documents::object(body));
    Value::Object(document)
}

/// Native speedup over the native run with the fewest processors, if that was one.
pub(crate) fn measured_speedup(span: &Span, wall_ns: u64) -> Option<f64> {
    let one = span.measured.iter().find(|m| m.processors == 1)?;
    (wall_ns > 0).then(|| one.wall_ns as f64 / wall_ns as f64)
}

fn site(span: &Span, s: &Site) -> Value {
    let what_if = analysis::what_if(span, s);
    let by_factor = |values: &[f64; 3]| -> Map<String, Value> {
        FACTORS.iter().zip(values).map(|(&k, &v)| (factor(k), v.into())).collect()
    };
    json!({
        "function": s.function,
        "callee": s.callee,
        "file": documents::text(&s.file),
        "line": (s.line > 0).then_some(s.line),
        "kind": kind(s.kind),
        "share_of_span": analysis::share(span, s),
        "on_work": measures(&s.on_work),
        "on_span": measures(&s.on_span),
        "what_if": by_factor(&what_if.faster),
        "what_if_parallel": by_factor(&what_if.parallel),
        "what_if_span": FACTORS.iter().zip(what_if.span).map(|(&k, v)| (factor(k), v.into())).collect::<Map<_, _>>(),
        "advice": analysis::advice(span, s).map(|a| advice(span, &a)),
    })
}

fn factor(k: u64) -> String {
    if k == 0 { "inf".into() } else { k.to_string() }
}

fn measures(m: &Measures) -> Value {
    let one = |m: &Measure| json!({ "count": m.count, "work": m.work, "span": m.span, "parallelism": m.parallelism() });
    let mut all = documents::object(one(&m.site));
    all.insert("top_caller".into(), one(&m.caller));
    all.insert("local".into(), one(&m.local));
    Value::Object(all)
}

pub(crate) fn model(m: Model) -> &'static str {
    match m {
        Model::Serial => "threads",
        Model::Rayon => "rayon",
        Model::OpenMp => "openmp",
        Model::Cilk => "cilk",
    }
}

pub(crate) fn unit(u: Unit) -> &'static str {
    match u {
        Unit::Ns => "ns",
        Unit::Instructions => "instructions",
        Unit::Units => "units",
    }
}

pub(crate) fn kind(k: SiteKind) -> &'static str {
    match k {
        SiteKind::Call => "call",
        SiteKind::Spawn => "spawn",
        SiteKind::Loop => "loop",
        SiteKind::Sampled => "sampled call",
    }
}

/// The summary of one run.
pub fn terminal(run: &Run, span: &Span) -> String {
    let cost = |n: u64| cost(span.unit, n);
    let mut out = format!(
        "work {}   span {}   parallelism {:.1}",
        cost(span.work),
        cost(span.span),
        span.parallelism()
    );
    if span.spawns > 0 {
        out.push_str(&format!(
            "   with scheduling {:.1} ({} forks, {} to hand one over)",
            span.burdened_parallelism(),
            units::grouped(span.spawns),
            cost(span.burden)
        ));
    } else if span.model == Model::Serial {
        out.push_str("\nNo parallel runtime was seen: the whole run is one strand.");
    }
    out.push('\n');
    if span.repaired > 0 {
        out.push_str(&format!(
            "time lost to preemption was taken off {} strands\n",
            units::grouped(span.repaired)
        ));
    }
    if span.spawns > 0 {
        out.push_str("\nprocessors   at least   at most   measured\n");
        for b in analysis::bounds(span).iter().filter(|b| b.processors <= 64) {
            let measured = span.measured.iter().find(|m| m.processors == b.processors);
            let measured = measured.and_then(|m| {
                let speedup = |wall_ns| measured_speedup(span, wall_ns);
                let median = format!("{:>8.2}", speedup(m.wall_ns)?);
                let (most, least) = (speedup(m.range_ns.0)?, speedup(m.range_ns.1)?);
                let runs = m.runs;
                Some(if runs > 1 {
                    format!("{median} ({least:.2} to {most:.2}, {runs} runs)")
                } else {
                    median
                })
            });
            let measured = measured.unwrap_or_default();
            let line = format!("{:>10}   {:>8.2}   {:>7.2}   {measured}", b.processors, b.lower, b.upper);
            out.push_str(&format!("{}\n", line.trim_end()));
        }
    }
    out.push('\n');
    out.push_str(&site_table(span));
    let advice: Vec<String> = analysis::ranked(span)
        .into_iter()
        .take(SITES_MAX)
        .filter_map(|s| Some(format!("  {}: {}\n", place(s), advice_text(span, s)?)))
        .collect();
    if !advice.is_empty() {
        out.push_str(&format!("\nWhat to do:\n{}", advice.concat()));
    }
    if span.path.len() > 1 {
        out.push_str("\nThe critical path, from start to end:\n");
        out.push_str(&path_table(span));
    }
    crate::terminal::problems(&mut out, run);
    out
}

fn site_table(span: &Span) -> String {
    let cost = |n: u64| cost(span.unit, n);
    let mut table = Table::new(&[
        ("of span", Align::Right),
        ("own span", Align::Right),
        ("own work", Align::Right),
        ("calls", Align::Right),
        ("work", Align::Right),
        ("span", Align::Right),
        ("parallel", Align::Right),
        ("if 2×", Align::Right),
        ("if ∞", Align::Right),
        ("where", Align::Left),
        ("what", Align::Left),
    ]);
    let ranked = analysis::ranked(span);
    for s in ranked.iter().take(SITES_MAX) {
        let what_if = analysis::what_if(span, s);
        table.row(vec![
            units::percent(analysis::share(span, s)),
            cost(s.on_span.local.span),
            cost(s.on_work.local.work),
            calls(s),
            cost(s.on_work.site.work),
            cost(s.on_work.site.span),
            format!("{:.1}", s.on_work.site.parallelism()),
            format!("{:.1}", what_if.faster[0]),
            format!("{:.1}", what_if.faster[2]),
            place(s),
            shorten(&what(s), NAME_WIDTH),
        ]);
    }
    let mut out = table.render();
    if ranked.len() > SITES_MAX {
        out.push_str(&format!("… and {} more\n", ranked.len() - SITES_MAX));
    }
    out
}

/// How often it was invoked, or how many samples say that it was.
fn calls(s: &Site) -> String {
    match s.kind {
        SiteKind::Sampled => format!("{} samples", units::grouped(s.on_work.site.count)),
        _ => units::grouped(s.on_work.local.count),
    }
}

fn path_table(span: &Span) -> String {
    let mut table = Table::new(&[
        ("length", Align::Right),
        ("", Align::Right),
        ("strands", Align::Right),
        ("", Align::Left),
    ]);
    // The longest steps, in their order.
    let mut longest: Vec<usize> = (0..span.path.len()).collect();
    longest.sort_by_key(|&i| std::cmp::Reverse(span.path[i].span));
    longest.truncate(STEPS_MAX);
    longest.sort_unstable();
    for i in &longest {
        let step = &span.path[*i];
        let Some(s) = span.sites.get(step.site as usize) else { continue };
        let more = if step.own < step.span { ", and others" } else { "" };
        table.row(vec![
            cost(span.unit, step.span),
            units::percent(step.span as f64 / span.span.max(1) as f64),
            units::grouped(step.strands),
            format!("{} {}{more}", place(s), shorten(&what(s), NAME_WIDTH)),
        ]);
    }
    let mut out = table.render();
    if span.path.len() > longest.len() {
        out.push_str(&format!(
            "({} shorter steps between them are left out)\n",
            span.path.len() - longest.len()
        ));
    }
    out
}

fn place(s: &Site) -> String {
    if s.file.is_empty() {
        return if s.function.is_empty() { "-".into() } else { shorten(&s.function, PLACE_WIDTH) };
    }
    let parts: Vec<&str> = s.file.rsplitn(3, '/').collect();
    let short = parts.iter().take(2).rev().copied().collect::<Vec<_>>().join("/");
    format!("{}:{}", shorten(&short, PLACE_WIDTH), s.line)
}

fn what(s: &Site) -> String {
    let callee = if s.callee.is_empty() { kind(s.kind) } else { &s.callee };
    if s.function.is_empty() { callee.into() } else { format!("{} in {}", callee, s.function) }
}

/// What to do about a site, as a sentence.
pub(crate) fn advice_text(span: &Span, s: &Site) -> Option<String> {
    analysis::advice(span, s).map(|a| advice(span, &a))
}

fn advice(span: &Span, a: &Advice) -> String {
    match a {
        Advice::LargerTasks { mean, least } => format!(
            "tasks of {} on average are smaller than what it costs to hand one over ({}); from {} on they are worth it",
            cost(span.unit, *mean),
            cost(span.unit, span.burden),
            cost(span.unit, *least)
        ),
        Advice::Parallelize { share, parallelism } => format!(
            "holds {} of the span by itself; run in parallel, the program's parallelism could rise from {:.1} to {parallelism:.1}",
            units::percent(*share),
            span.parallelism()
        ),
    }
}

/// A cost with its unit.
pub(crate) fn cost(unit: Unit, n: u64) -> String {
    match unit {
        Unit::Ns => match n {
            0..1_000 => format!("{n} ns"),
            1_000..1_000_000 => format!("{:.1} µs", n as f64 / 1e3),
            1_000_000..1_000_000_000 => format!("{:.1} ms", n as f64 / 1e6),
            _ => format!("{:.2} s", n as f64 / 1e9),
        },
        Unit::Instructions | Unit::Units => units::si(n as f64),
    }
}
