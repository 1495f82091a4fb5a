//! The summary of causal runs: the answer first, then what each target is worth.

use analyse::causal::{CausalAnalysis, Result, Verdict};
use profile::Run;
use profile::causal::Causal;

use super::problems;
use crate::json::causal::{backend, point_kind, verdict};
use crate::table::{Align, Table, printable, shorten};
use crate::units;

/// Rows of the table.
const ROWS_MAX: usize = 20;
/// Columns that a target's name may take.
const NAME_WIDTH: usize = 40;
/// Columns that a point's name may take.
const POINT_WIDTH: usize = 24;
/// Columns that a function's name may take.
const FUNCTION_WIDTH: usize = 28;

/// The summary of one causal run.
pub fn causal(run: &Run, causal: &Causal, analysis: &CausalAnalysis) -> String {
    let name = run.program.path.rsplit('/').next().unwrap_or_default();
    let mut out = format!("{}: {}", printable(name), units::duration(run.wall_ns));
    out.push_str(&format!(
        " · {} experiments · {} samples every {} of CPU time ({}), {} in scope\n",
        causal.experiments.len(),
        units::grouped(causal.samples.total),
        units::duration(causal.period_ns),
        backend(causal.backend),
        units::grouped(causal.targets.iter().map(|t| t.samples).sum()),
    ));
    for point in &causal.points {
        let visits = units::grouped(point.visits);
        out.push_str(&format!(
            "progress point {} ({}): {visits} visits\n",
            printable(&point.name),
            point_kind(point.kind)
        ));
    }
    if !analysis.results.is_empty() {
        out.push_str(&format!("\n{}\n\n", answer(causal, analysis)));
        out.push_str(&table(causal, analysis));
    }
    if !analysis.diagnoses.is_empty() {
        out.push('\n');
        for diagnosis in &analysis.diagnoses {
            out.push_str(&format!("{}\n", printable(diagnosis)));
        }
    }
    problems(&mut out, run);
    out
}

fn answer(causal: &Causal, analysis: &CausalAnalysis) -> String {
    let name = |r: &Result| printable(&causal.targets[r.target].name);
    let Some(top) = analysis.results.first() else { return String::new() };
    match top.verdict {
        Verdict::WorthIt => {
            let at = top.curve.levels.iter().find(|l| l.speedup >= 0.499).or(top.curve.levels.last());
            match at {
                Some(level) => format!(
                    "Make {} faster: {} faster there makes the program {} faster.",
                    name(top),
                    units::percent(level.speedup),
                    interval(level.gain, level.ci),
                ),
                None => format!("Make {} faster.", name(top)),
            }
        }
        Verdict::Contention => format!("Making {} faster would slow the program down.", name(top)),
        Verdict::Unknown => "Nothing is certain yet: give the program more time, or --runs.".to_owned(),
        Verdict::NoEffect => "No single target is worth making faster.".to_owned(),
    }
}

fn table(causal: &Causal, analysis: &CausalAnalysis) -> String {
    let several = causal.points.len() > 1;
    let mut columns = vec![("target", Align::Left), ("function", Align::Left)];
    if several {
        columns.push(("point", Align::Left));
    }
    columns.extend([
        ("time", Align::Right),
        ("25 % faster", Align::Right),
        ("50 %", Align::Right),
        ("75 %", Align::Right),
        ("100 %", Align::Right),
        ("n", Align::Right),
        ("verdict", Align::Left),
    ]);
    let mut table = Table::new(&columns);
    for r in analysis.results.iter().take(ROWS_MAX) {
        let target = &causal.targets[r.target];
        let mut row = vec![shorten(&target.name, NAME_WIDTH), shorten(&target.function, FUNCTION_WIDTH)];
        if several {
            row.push(shorten(&causal.points[r.point].name, POINT_WIDTH));
        }
        row.push(units::percent(r.share));
        for wanted in [0.25, 0.5, 0.75, 1.0] {
            let level = r.curve.levels.iter().find(|l| (l.speedup - wanted).abs() < 0.026);
            row.push(level.map_or("–".into(), |l| interval(l.gain, l.ci)));
        }
        row.push(r.curve.trials.to_string());
        row.push(verdict(r.verdict).into());
        table.row(row);
    }
    let mut text = table.render();
    if analysis.results.len() > ROWS_MAX {
        text.push_str(&format!("… and {} more\n", analysis.results.len() - ROWS_MAX));
    }
    if analysis.results.iter().take(ROWS_MAX).any(|r| r.verdict == Verdict::Unknown) {
        text.push_str("unknown: the interval is too wide; more time or --runs narrow it\n");
    }
    text
}

/// `+12 ±3 %`.
fn interval(gain: f64, ci: (f64, f64)) -> String {
    let half = (ci.1 - ci.0) / 2.0;
    if half.is_finite() {
        format!("{:+.0} ±{:.0} %", 100.0 * gain, (100.0 * half).ceil())
    } else {
        format!("{:+.0} ? %", 100.0 * gain)
    }
}
