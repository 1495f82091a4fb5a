//! Runs to reports: one per thread where the run keeps threads apart, otherwise one.
//!
//! Sums of squares are written in full, also beyond 64 bits: aprof's own viewer and merge tool read them as
//! floating-point numbers. Times are rounded down to microseconds.

use std::collections::BTreeSet;
use std::fmt::Write;

use profile::{Cost, Data, Growth, Metric, Point, Run};

use super::name::Name;
use super::report::{NO_OBJECT, VERSION};

/// A report, to be written under this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// `<program>_<pid>_<tid>_<resolution>.aprof`. The process id is made up from the run's id, so that reports of
    /// one run belong together and those of two do not.
    pub name: String,
    /// The text.
    pub bytes: Vec<u8>,
}

/// Why a run cannot be exported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// Another mode than growth.
    #[error("run {0} is no growth run: aprof reports hold nothing else")]
    Mode(profile::RunId),
    /// A cost that aprof does not know.
    #[error(
        "costs in {0} cannot be put into an aprof report, which knows basic blocks, instructions and time"
    )]
    Cost(&'static str),
    /// A cell size that aprof does not know.
    #[error("memory cells of {0} bytes cannot be put into an aprof report, which knows 1, 2, 4, 8 and 16")]
    Cell(u32),
}

/// Process ids of Linux are below this.
const PID_LIMIT: u32 = 1 << 22;

/// Exports one run.
pub fn export(run: &Run) -> Result<Vec<Report>, ExportError> {
    let Data::Growth(growth) = &run.data else { return Err(ExportError::Mode(run.id)) };
    if ![1, 2, 4, 8, 16].contains(&growth.cell_bytes) {
        return Err(ExportError::Cell(growth.cell_bytes));
    }
    let head = head(run, growth)?;
    let [a, b, c, d, ..] = run.id.0;
    let base = run.program.path.rsplit('/').next().unwrap_or_default();
    let mut name = Name {
        folder: String::new(),
        program: one_line(base),
        pid: u64::from(u32::from_be_bytes([a, b, c, d]) % PID_LIMIT),
        thread: 0,
        cell_bytes: growth.cell_bytes,
    };
    let apart = growth.routines.iter().any(|r| !r.by_thread.is_empty())
        && growth.routines.iter().all(|r| r.points.is_empty() || !r.by_thread.is_empty());
    if !apart {
        let threads = threads(growth);
        name.thread = threads.first().copied().unwrap_or(0);
        return Ok(vec![Report { name: name.base(), bytes: report(&head, growth, growth.cost_total, None) }]);
    }
    let reports = threads(growth).into_iter().map(|thread| {
        let total = growth.threads.iter().find(|t| t.id == thread).map_or(0, |t| t.cost_total);
        name.thread = thread;
        Report { name: name.base(), bytes: report(&head, growth, total, Some(thread)) }
    });
    Ok(reports.collect())
}

fn threads(growth: &Growth) -> BTreeSet<u64> {
    let of_routines = growth.routines.iter().flat_map(|r| r.threads.iter().copied());
    growth.threads.iter().map(|t| t.id).chain(of_routines).collect()
}

/// What the reports of a run have in common, without the total cost.
fn head(run: &Run, growth: &Growth) -> Result<String, ExportError> {
    let cost = match growth.cost {
        Cost::Blocks => "bb-count",
        Cost::Instructions => "vex-instr",
        Cost::TimeNs => "time-usec",
        Cost::MemoryAccesses => return Err(ExportError::Cost(growth.cost.name())),
    };
    let metric = match growth.metric {
        Metric::Rms => "rms",
        Metric::Trms => "drms",
    };
    let mut out = format!("c report written by farsight\nv {VERSION}\n");
    let lines = [
        (run.program.modified_unix_s > 0).then(|| format!("e {}", run.program.modified_unix_s)),
        Some(format!("m {cost}")),
        Some(format!("i {metric}")),
        Some(format!("t {}", growth.cell_bytes)),
        (!run.program.path.is_empty()).then(|| format!("a {}", one_line(&run.program.path))),
        (!run.command.is_empty()).then(|| format!("f {}", one_line(&run.command.join(" ")))),
    ];
    lines.into_iter().flatten().for_each(|line| {
        out.push_str(&line);
        out.push('\n');
    });
    Ok(out)
}

/// The text of one report: that of `thread`, or of all threads together.
fn report(head: &str, growth: &Growth, total: u64, thread: Option<u64>) -> Vec<u8> {
    let scale = if growth.cost == Cost::TimeNs { 1000 } else { 1 };
    let mut out = head.to_owned();
    if total > 0 {
        put(&mut out, format_args!("k {}\n", total / scale));
    }
    for (id, routine) in growth.routines.iter().enumerate() {
        let points = match thread {
            None => &routine.points[..],
            Some(thread) if routine.threads.contains(&thread) => {
                routine.by_thread.iter().find(|t| t.thread == thread).map_or(&[][..], |t| &t.points)
            }
            Some(_) => continue,
        };
        let object = if routine.object.is_empty() { NO_OBJECT.to_owned() } else { one_line(&routine.object) };
        put(&mut out, format_args!("r \"{}\" \"{object}\" {id}\n", one_line(&routine.name)));
        if routine.mangled != routine.name {
            put(&mut out, format_args!("u {id} \"{}\"\n", one_line(&routine.mangled)));
        }
        for p in points {
            put(&mut out, format_args!("p {id} "));
            put_point(&mut out, p, growth.metric, scale);
        }
    }
    out.into_bytes()
}

fn put_point(out: &mut String, p: &Point, metric: Metric, scale: u64) {
    let square = u128::from(scale) * u128::from(scale);
    put(out, format_args!("{} {} {} {} ", p.n, p.min / scale, p.max / scale, p.sum / scale));
    put(out, format_args!("{} {} {} ", p.sumsq / square, p.calls, p.real_sum / scale));
    put(out, format_args!("{} {} {} ", p.self_sum / scale, p.self_min / scale, p.self_max / scale));
    put(out, format_args!("{}", p.self_sumsq / square));
    if metric == Metric::Trms {
        let i = &p.input;
        put(out, format_args!(" 0 0 {} {}", i.external, i.thread_induced));
        put(out, format_args!(" {} {}", i.self_external, i.self_thread_induced));
    }
    out.push('\n');
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to memory does not fail");
}

/// Line breaks cannot be written.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
