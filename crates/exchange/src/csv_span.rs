//! Work and span as tables: with Cilkprof's columns, one row per call site, and with Cilkscale's, one row per run.
//!
//! Costs are in the run's own unit (nanoseconds or instructions) in the first, and in seconds, as Cilkscale has them, in
//! the second; a run in instructions gives instructions there, which the heading says. What Cilkprof has no column for
//! (what-if, the critical path as a list) is lost. The rules of `csv.rs` hold.

use profile::span::{Measure, Measures, Site, SiteKind, Span, Unit};
use profile::{Data, Profile};

use crate::csv::safe;

/// What each measurement of a site is called, before "on work" and "on span".
const MEASUREMENTS: [&str; 3] = ["", "top ", "local "];
const VALUES: [&str; 4] = ["work", "span", "parallelism", "count"];

/// Cilkprof's columns.
pub fn cilkprof_columns() -> Vec<String> {
    let mut columns: Vec<String> = ["file", "line", "call site", "function type"].map(str::to_owned).into();
    for on in ["on work", "on span"] {
        for which in MEASUREMENTS {
            columns.extend(VALUES.iter().map(|value| format!("{which}{value} {on}")));
        }
    }
    columns
}

/// One row per call site, of all span runs.
pub fn cilkprof(profile: &Profile) -> Vec<u8> {
    let mut rows = vec![cilkprof_columns()];
    for span in spans(profile).map(|s| s.1) {
        rows.extend(span.sites.iter().map(row));
    }
    write(&rows)
}

fn row(site: &Site) -> Vec<String> {
    let what = match (site.function.is_empty(), site.callee.is_empty()) {
        (true, _) => site.callee.clone(),
        (false, true) => site.function.clone(),
        (false, false) => format!("{} in {}", site.callee, site.function),
    };
    let kind = match site.kind {
        SiteKind::Call => "c",
        SiteKind::Spawn => "helper",
        SiteKind::Loop => "loop",
        SiteKind::Sampled => "c sampled",
    };
    let recursive = site.kind != SiteKind::Sampled && site.on_work.site.count < site.on_work.local.count;
    let kind = if recursive { format!("{kind} recursive") } else { kind.to_owned() };
    let mut cells = vec![safe(&site.file), site.line.to_string(), safe(&what), kind];
    for Measures { site, caller, local } in [&site.on_work, &site.on_span] {
        cells.extend([site, caller, local].into_iter().flat_map(four));
    }
    cells
}

fn four(m: &Measure) -> [String; 4] {
    [m.work.to_string(), m.span.to_string(), format!("{:.6}", m.parallelism()), m.count.to_string()]
}

/// One row per run, with Cilkscale's columns; the tag is the program's name.
pub fn cilkscale(profile: &Profile) -> Vec<u8> {
    let all: Vec<(&str, &Span)> = spans(profile).collect();
    let unit = match all.first().map(|s| s.1.unit) {
        Some(Unit::Instructions) => "instructions",
        Some(Unit::Units) => "units",
        _ => "seconds",
    };
    let mut rows = vec![vec![
        "tag".into(),
        format!("work ({unit})"),
        format!("span ({unit})"),
        "parallelism".into(),
        format!("burdened_span ({unit})"),
        "burdened_parallelism".into(),
    ]];
    for (program, span) in all {
        let cost = |n: u64| {
            if span.unit == Unit::Ns { format!("{:.9}", n as f64 / 1e9) } else { n.to_string() }
        };
        rows.push(vec![
            safe(program.rsplit('/').next().unwrap_or(program)),
            cost(span.work),
            cost(span.span),
            format!("{:.6}", span.parallelism()),
            cost(span.burdened_span),
            format!("{:.6}", span.burdened_parallelism()),
        ]);
    }
    write(&rows)
}

fn spans(profile: &Profile) -> impl Iterator<Item = (&str, &Span)> {
    profile.runs.iter().filter_map(|run| match &run.data {
        Data::Span(span) => Some((run.program.path.as_str(), span)),
        _ => None,
    })
}

fn write(rows: &[Vec<String>]) -> Vec<u8> {
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    for row in rows {
        out.write_record(row).expect("writing to memory does not fail");
    }
    out.into_inner().expect("writing to memory does not fail")
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Exit, Program, Run, RunId};

    #[test]
    fn the_columns_are_those_of_the_other_tools() {
        let m = |count, work, span| Measure { count, work, span };
        let site = Site {
            file: "fib.c".into(),
            line: 9,
            function: "fib".into(),
            callee: "fib".into(),
            kind: SiteKind::Spawn,
            on_work: Measures { site: m(1, 40, 10), caller: m(1, 40, 10), local: m(7, 30, 30) },
            on_span: Measures { site: m(1, 40, 10), caller: m(0, 0, 0), local: m(3, 9, 9) },
            faster: [0; 3],
        };
        let span = Span {
            work: 2_000_000_000,
            span: 500_000_000,
            burdened_span: 1_000_000_000,
            sites: vec![site],
            ..Span::default()
        };
        let run = Run {
            id: RunId([1; 16]),
            program: Program { path: "/bin/fib".into(), ..Program::default() },
            command: vec![],
            exit: Exit::Code(0),
            started_unix_ns: 0,
            wall_ns: 0,
            cpu_ns: 0,
            problems: vec![],
            data: Data::Span(span),
        };
        let profile = Profile { runs: vec![run] };
        let table = String::from_utf8(cilkprof(&profile)).unwrap();
        let lines: Vec<&str> = table.split("\r\n").collect();
        assert!(lines[0].starts_with(
            "file,line,call site,function type,work on work,span on work,parallelism on work,count on work,top work on work"
        ));
        assert!(lines[0].ends_with("local span on span,local parallelism on span,local count on span"));
        assert_eq!(lines[0].split(',').count(), 4 + 24);
        assert!(
            lines[1]
                .starts_with("fib.c,9,fib in fib,helper recursive,40,10,4.000000,1,40,10,4.000000,1,30,30,")
        );
        let table = String::from_utf8(cilkscale(&profile)).unwrap();
        assert_eq!(
            table,
            "tag,work (seconds),span (seconds),parallelism,burdened_span (seconds),burdened_parallelism\r\n\
             fib,2.000000000,0.500000000,4.000000,1.000000000,2.000000\r\n"
        );
    }
}
