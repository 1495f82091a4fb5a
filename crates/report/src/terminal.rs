//! The summary that is printed when a run or a report ends: the answer first, then the table, then a plot.

mod causal;

pub use causal::causal;

use std::collections::BTreeMap;

use analyse::count::FunctionChange;
use analyse::diff::{Change, ChangeKind};
use analyse::rule::{Finding, Outcome, Rule};
use analyse::{GrowthAnalysis, RoutineAnalysis, overtakes};
use fit::{Fit, Verdict};
use profile::{Cost, Count, Function, Growth, Metric, Run};

use crate::table::{Align, Table, printable, shorten};
use crate::{json, plot, units};

/// Rows of the routine table.
const ROWS_MAX: usize = 15;
/// Rows of the function table of counts.
const FUNCTION_ROWS_MAX: usize = 25;
/// Columns that an object's file name may take.
const OBJECT_WIDTH: usize = 24;
/// Columns that a routine's name may take.
const NAME_WIDTH: usize = 44;
/// Overtakings listed.
const OVERTAKES_MAX: usize = 4;

/// The summary of one growth run.
pub fn growth(run: &Run, growth: &Growth, analysis: &GrowthAnalysis<'_>) -> String {
    let mut out = heading(run, growth, analysis);
    if analysis.routines.is_empty() {
        out.push_str("\nNo routine completed an activation, so there is nothing to say about growth.\n");
        out.push_str("Was the program killed at once, or does the profile hold only damaged data?\n");
        problems(&mut out, run);
        return out;
    }
    out.push_str(&format!("\n{}\n\n", answer(analysis)));
    out.push_str(&routine_table(analysis));
    unjudged(&mut out, analysis);
    if let Some(top) = analysis.routines.iter().find(|r| r.fit.class.is_some()) {
        out.push_str(&routine_plot(top, growth.cost));
    }
    let overtakes = overtakes(analysis);
    if !overtakes.is_empty() {
        out.push_str("\nOn larger input:\n");
        for o in overtakes.iter().take(OVERTAKES_MAX) {
            let name = |i: usize| shorten(&analysis.routines[i].routine.name, NAME_WIDTH);
            let latest = o.range.1.map_or("never within 1000×".into(), |k| format!("{}×", units::si(k)));
            out.push_str(&format!(
                "  {} overtakes {} at {}× (between {}× and {latest})\n",
                name(o.rising),
                name(o.overtaken),
                units::si(o.factor),
                units::si(o.range.0),
            ));
        }
    }
    problems(&mut out, run);
    out
}

/// The summary of one run of counts.
pub fn count(run: &Run, count: &Count) -> String {
    let mut out = String::new();
    let t = &count.total;
    let rows = [
        ("instructions", t.instructions),
        ("blocks", t.blocks),
        ("loads", t.loads),
        ("stores", t.stores),
        ("calls", t.calls),
        ("threads", count.threads),
    ];
    let width = rows.iter().map(|r| units::grouped(r.1).len()).max().unwrap_or(0);
    for (name, n) in rows {
        out.push_str(&format!("{:>width$}  {name}\n", units::grouped(n)));
    }
    if !count.functions.is_empty() {
        out.push('\n');
        out.push_str(&function_table(count));
    }
    problems(&mut out, run);
    out
}

fn function_table(count: &Count) -> String {
    let mut table = Table::new(&[
        ("self", Align::Right),
        ("", Align::Right),
        ("total", Align::Right),
        ("", Align::Right),
        ("calls", Align::Right),
        ("function", Align::Left),
        ("object", Align::Left),
    ]);
    let whole = count.total.instructions.max(1) as f64;
    let mut functions: Vec<&Function> = count.functions.iter().collect();
    functions.sort_by_key(|f| std::cmp::Reverse(f.instructions_self));
    for f in functions.iter().take(FUNCTION_ROWS_MAX) {
        table.row(vec![
            units::grouped(f.instructions_self),
            units::percent(f.instructions_self as f64 / whole),
            units::grouped(f.instructions_total),
            units::percent(f.instructions_total as f64 / whole),
            units::grouped(f.calls),
            shorten(&f.name, NAME_WIDTH),
            shorten(f.object.rsplit('/').next().unwrap_or_default(), OBJECT_WIDTH),
        ]);
    }
    let mut out = table.render();
    if functions.len() > FUNCTION_ROWS_MAX {
        out.push_str(&format!("… and {} more\n", functions.len() - FUNCTION_ROWS_MAX));
    }
    out
}

/// The comparison of two runs of counts.
pub fn count_diff(old: &Count, new: &Count, changes: &[FunctionChange<'_>]) -> String {
    let mut table = Table::new(&[
        ("", Align::Left),
        ("before", Align::Right),
        ("after", Align::Right),
        ("change", Align::Right),
        ("", Align::Right),
    ]);
    let mut row = |name: String, before: u64, after: u64| {
        let delta = i128::from(after) - i128::from(before);
        let sign = if delta < 0 { "-" } else { "+" };
        let magnitude = u64::try_from(delta.unsigned_abs()).unwrap_or(u64::MAX);
        table.row(vec![
            name,
            units::grouped(before),
            units::grouped(after),
            if delta == 0 { "0".into() } else { format!("{sign}{}", units::grouped(magnitude)) },
            match before {
                0 => String::new(),
                _ => format!("{:+.2} %", 100.0 * delta as f64 / before as f64),
            },
        ]);
    };
    let (a, b) = (&old.total, &new.total);
    row("instructions".into(), a.instructions, b.instructions);
    row("blocks".into(), a.blocks, b.blocks);
    row("loads".into(), a.loads, b.loads);
    row("stores".into(), a.stores, b.stores);
    row("calls".into(), a.calls, b.calls);
    let own = |f: Option<&Function>| f.map_or(0, |f| f.instructions_self);
    for change in changes.iter().take(ROWS_MAX) {
        row(
            format!("  in {}", shorten(&change.function().name, NAME_WIDTH)),
            own(change.old),
            own(change.new),
        );
    }
    let mut out = table.render();
    if changes.len() > ROWS_MAX {
        out.push_str(&format!("   … and {} more functions\n", changes.len() - ROWS_MAX));
    }
    out
}

/// The comparison of two growth runs.
pub fn diff(changes: &[Change<'_, '_>]) -> String {
    if changes.is_empty() {
        return "No routine changed its class, its cost at equal input size or its share beyond noise.\n"
            .into();
    }
    let mut table = Table::new(&[
        ("", Align::Left),
        ("routine", Align::Left),
        ("change", Align::Left),
        ("before", Align::Left),
        ("after", Align::Left),
        ("share", Align::Right),
    ]);
    for change in changes {
        let what = match change.kind {
            ChangeKind::Class => "grows differently".to_string(),
            ChangeKind::Coefficient { ratio } => format!("{ratio:.2}× the cost at equal size"),
            ChangeKind::Share { points } => format!("share {:+.1} points", points * 100.0),
            ChangeKind::New => "new".to_string(),
            ChangeKind::Gone => "gone".to_string(),
        };
        let side = |side: Option<&RoutineAnalysis<'_>>| side.map_or(String::new(), |r| class(&r.fit));
        let share = |side: Option<&RoutineAnalysis<'_>>| side.map_or("-".into(), |r| units::percent(r.share));
        table.row(vec![
            if change.worse { "worse".into() } else { String::new() },
            shorten(&change.routine().routine.name, NAME_WIDTH),
            what,
            side(change.old),
            side(change.new),
            format!("{} → {}", share(change.old), share(change.new)),
        ]);
    }
    table.render()
}

/// The findings of a complexity gate: failures in full, the rest counted.
pub fn check(results: &[(Rule, Vec<Finding<'_, '_>>)], analysis: &GrowthAnalysis<'_>) -> String {
    let mut out = String::new();
    for (rule, findings) in results {
        let count = |outcome| findings.iter().filter(|f| f.outcome == outcome).count();
        let (pass, fail, open) = (count(Outcome::Pass), count(Outcome::Fail), count(Outcome::NotEnoughData));
        if findings.is_empty() {
            out.push_str(&format!(
                "NO MATCH  {}: no routine of the profile matches",
                printable(&rule.pattern)
            ));
            let close = analyse::rule::suggestions(&rule.pattern, analysis);
            if !close.is_empty() {
                let close: Vec<String> = close.iter().map(|s| shorten(s, NAME_WIDTH)).collect();
                out.push_str(&format!("; did you mean {}?", close.join(" or ")));
            }
            out.push('\n');
            continue;
        }
        let status = if fail > 0 {
            "FAIL"
        } else if pass == 0 {
            "NO DATA"
        } else {
            "ok"
        };
        out.push_str(&format!(
            "{status:<9} {}: {} ({pass} pass, {fail} fail, {open} without enough data)\n",
            printable(&rule.pattern),
            rule.class,
        ));
        for finding in findings.iter().filter(|f| f.outcome != Outcome::Pass) {
            let r = finding.routine;
            let name = shorten(&r.routine.name, NAME_WIDTH);
            match finding.outcome {
                Outcome::Fail => out.push_str(&format!(
                    "  {name}: expected {}, found {} ({}); exponent {}, {} sizes from {} to {}, {} calls\n",
                    rule.class,
                    class(&r.fit),
                    r.fit.formula,
                    exponent(&r.fit),
                    r.sizes(),
                    r.routine.points.first().map_or(0, |p| p.n),
                    r.routine.points.last().map_or(0, |p| p.n),
                    units::count(r.calls),
                )),
                _ => out.push_str(&format!("  {name}: not enough data: {}\n", reason(&r.fit))),
            }
        }
    }
    out
}

fn heading(run: &Run, growth: &Growth, analysis: &GrowthAnalysis<'_>) -> String {
    let name = run.program.path.rsplit('/').next().unwrap_or_default();
    let cost = match growth.cost {
        Cost::TimeNs => units::duration(analysis.totals.cost),
        _ => format!("{} {}", units::count(analysis.totals.cost), cost_name(growth.cost)),
    };
    let metric = match growth.metric {
        Metric::Rms => "rms",
        Metric::Trms => "trms",
    };
    let mut out = format!(
        "{}: {cost}, {} routines, {} activations; input sizes are {metric} in cells of {} bytes\n",
        printable(name),
        units::count(analysis.totals.routines),
        units::count(analysis.totals.activations),
        growth.cell_bytes,
    );
    if growth.metric == Metric::Trms {
        out.push_str(&format!(
            "input: {} from other threads, {} from the kernel\n",
            units::percent(analysis.totals.thread_induced_share),
            units::percent(analysis.totals.external_share),
        ));
    }
    out
}

fn cost_name(cost: Cost) -> &'static str {
    match cost {
        Cost::Blocks => "basic blocks",
        Cost::Instructions => "instructions",
        Cost::MemoryAccesses => "memory accesses",
        Cost::TimeNs => "ns",
    }
}

/// One or two sentences that a reader in a hurry takes away.
fn answer(analysis: &GrowthAnalysis<'_>) -> String {
    let sure = |r: &&RoutineAnalysis<'_>| r.is_superlinear() && r.fit.verdict == Verdict::Confident;
    let steep: Vec<&RoutineAnalysis<'_>> = analysis.routines.iter().filter(sure).collect();
    let judged = analysis.routines.iter().filter(|r| r.fit.class.is_some()).count();
    let Some(first) = steep.first() else {
        return match judged {
            0 => "No routine was called on enough different input sizes to say how it grows: \
                  run with more varied or larger input."
                .into(),
            n => format!("None of the {n} routines that can be judged surely grows faster than n log n."),
        };
    };
    let count = match steep.len() {
        1 => "One routine grows faster than n log n:".to_string(),
        n => format!("{n} routines grow faster than n log n. First"),
    };
    let at = |factor: f64| analysis.factor_index(factor).and_then(|i| first.forecast.get(i)).map(|f| f.share);
    let future =
        at(10.0).map_or(String::new(), |share| format!(", {} at ten times the input", units::percent(share)));
    format!(
        "{count} {}, {}: {} of the cost now{future}.",
        shorten(&first.routine.name, NAME_WIDTH),
        class(&first.fit),
        units::percent(first.share),
    )
}

fn routine_table(analysis: &GrowthAnalysis<'_>) -> String {
    let mut table = Table::new(&[
        ("", Align::Right),
        ("routine", Align::Left),
        ("grows as", Align::Left),
        ("verdict", Align::Left),
        ("exponent (95 %)", Align::Left),
        ("share", Align::Right),
        ("at 10×", Align::Right),
        ("at 100×", Align::Right),
        ("calls", Align::Right),
        ("sizes", Align::Right),
    ]);
    for (i, r) in analysis.routines.iter().take(ROWS_MAX).enumerate() {
        let at = |factor: f64| {
            let f = analysis.factor_index(factor).and_then(|i| r.forecast.get(i));
            f.map_or("-".into(), |f| units::percent(f.share))
        };
        table.row(vec![
            (i + 1).to_string(),
            shorten(&r.routine.name, NAME_WIDTH),
            class(&r.fit),
            json::verdict(r.fit.verdict).into(),
            exponent(&r.fit),
            units::percent(r.share),
            at(10.0),
            at(100.0),
            units::count(r.calls),
            r.sizes().to_string(),
        ]);
    }
    let mut out = table.render();
    if analysis.routines.len() > ROWS_MAX {
        out.push_str(&format!("   … and {} more\n", analysis.routines.len() - ROWS_MAX));
    }
    out
}

/// Why routines could not be judged, counted by reason.
fn unjudged(out: &mut String, analysis: &GrowthAnalysis<'_>) {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for r in analysis.routines.iter().filter(|r| r.fit.verdict == Verdict::Unknown) {
        // Reasons carry numbers of their own behind a colon; the kind stands before it.
        let kind = reason(&r.fit).split(':').next().unwrap_or_default().trim().to_string();
        *reasons.entry(kind).or_default() += 1;
    }
    if reasons.is_empty() {
        return;
    }
    let mut reasons: Vec<(String, usize)> = reasons.into_iter().collect();
    reasons.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let total: usize = reasons.iter().map(|r| r.1).sum();
    let list: Vec<String> = reasons.into_iter().map(|(reason, n)| format!("{n} {reason}")).collect();
    let routines = if total == 1 { "routine" } else { "routines" };
    out.push_str(&format!("\n{total} {routines} cannot be judged: {}.\n", list.join(", ")));
}

fn routine_plot(r: &RoutineAnalysis<'_>, cost: Cost) -> String {
    let points: Vec<(f64, f64)> =
        r.routine.points.iter().filter(|p| p.calls > 0).map(|p| (p.n as f64, p.mean())).collect();
    let title = format!(
        "\n{}: {} ({}, {})\n",
        shorten(&r.routine.name, NAME_WIDTH),
        r.fit.formula,
        class(&r.fit),
        json::verdict(r.fit.verdict),
    );
    let plot =
        plot::plot(&points, |n| r.fit.predict(n), "input size, cells", &format!("mean {}", cost_name(cost)));
    if plot.is_empty() { String::new() } else { title + &plot }
}

fn class(fit: &Fit) -> String {
    fit.class.map_or("?".into(), |c| c.to_string())
}

fn exponent(fit: &Fit) -> String {
    let [low, high] = fit.exponent_ci;
    match fit.class {
        Some(_) if low.is_finite() && high.is_finite() => {
            format!("{:.2} ({low:.2} to {high:.2})", fit.exponent)
        }
        _ => "-".into(),
    }
}

fn reason(fit: &Fit) -> &str {
    if fit.reason.is_empty() { "the fit is not sure enough" } else { &fit.reason }
}

pub(crate) fn problems(out: &mut String, run: &Run) {
    for problem in &run.problems {
        out.push_str(&format!("note: {}\n", printable(problem)));
    }
}
