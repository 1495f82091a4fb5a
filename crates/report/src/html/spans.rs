//! The span runs of the page's JSON section: totals and bounds, call sites as columns (those that hold most of the span
//! first), the critical path, and the lines around the sites.

use analyse::span as analysis;
use profile::span::{Measures, Site};
use serde::Serialize;

use super::SpanRun;
use super::excerpt::{Excerpt, Excerpts, ROUTINES_MAX};
use super::head::Head;

/// What the page knows about span runs.
#[derive(Serialize)]
pub struct SpanMode<'a> {
    runs: Vec<Spans<'a>>,
}

#[derive(Serialize)]
struct Spans<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    model: &'static str,
    unit: &'static str,
    work: u64,
    span: u64,
    burdened_span: u64,
    burden: u64,
    spawns: u64,
    threads: u64,
    repaired: u64,
    bounds: Vec<(u64, f64, f64)>,
    measured: Vec<(u64, u64, Option<f64>)>,
    sites: Sites<'a>,
    path: Vec<(usize, u64, u64, u64)>,
    excerpts: Vec<Excerpt>,
}

#[derive(Serialize, Default)]
struct Sites<'a> {
    file: Vec<&'a str>,
    line: Vec<u32>,
    function: Vec<&'a str>,
    callee: Vec<&'a str>,
    kind: Vec<&'static str>,
    share: Vec<f64>,
    on_work: Vec<[u64; 9]>,
    on_span: Vec<[u64; 9]>,
    what_if: Vec<[f64; 3]>,
    advice: Vec<Option<String>>,
}

impl<'a> SpanMode<'a> {
    /// What the page shows of these runs; `None` when there are none.
    pub fn new(runs: &[SpanRun<'a>]) -> Option<Self> {
        (!runs.is_empty()).then(|| SpanMode { runs: runs.iter().map(Spans::new).collect() })
    }
}

impl<'a> Spans<'a> {
    fn new(page: &SpanRun<'a>) -> Self {
        let SpanRun { run, span, sources } = *page;
        let ranked: Vec<&'a Site> = analysis::ranked(span);
        let mut sites = Sites::default();
        let mut excerpts = Vec::new();
        let mut files = Excerpts::new(sources);
        for (i, s) in ranked.iter().enumerate() {
            sites.file.push(&s.file);
            sites.line.push(s.line);
            sites.function.push(&s.function);
            sites.callee.push(&s.callee);
            sites.kind.push(crate::span::kind(s.kind));
            sites.share.push(analysis::share(span, s));
            sites.on_work.push(nine(&s.on_work));
            sites.on_span.push(nine(&s.on_span));
            sites.what_if.push(analysis::what_if(span, s).faster);
            sites.advice.push(crate::span::advice_text(span, s));
            if i < ROUTINES_MAX {
                excerpts.extend(files.around(i, &s.file, s.line));
            }
        }
        // Steps name sites by their place in the profile; the page has them in another order.
        let rank = |site: u64| {
            let of = span.sites.get(usize::try_from(site).ok()?)?;
            ranked.iter().position(|s| std::ptr::eq(*s, of))
        };
        let path = span.path.iter().filter_map(|s| Some((rank(s.site)?, s.span, s.own, s.strands)));
        Spans {
            head: Head::new(run),
            model: crate::span::model(span.model),
            unit: crate::span::unit(span.unit),
            work: span.work,
            span: span.span,
            burdened_span: span.burdened_span,
            burden: span.burden,
            spawns: span.spawns,
            threads: span.threads,
            repaired: span.repaired,
            bounds: analysis::bounds(span).iter().map(|b| (b.processors, b.lower, b.upper)).collect(),
            measured: span
                .measured
                .iter()
                .map(|m| (m.processors, m.wall_ns, crate::span::measured_speedup(span, m.wall_ns)))
                .collect(),
            sites,
            path: path.collect(),
            excerpts,
        }
    }
}

fn nine(m: &Measures) -> [u64; 9] {
    let [a, b, c] = [m.site, m.caller, m.local].map(|m| [m.count, m.work, m.span]);
    [a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]]
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::span::{Measure, Span, Step};
    use profile::{Data, Exit, Program, Run, RunId};

    #[test]
    fn steps_follow_the_order_of_the_table() {
        let site = |line, on_span| Site {
            file: "a.c".into(),
            line,
            on_span: Measures {
                local: Measure { count: 1, work: on_span, span: on_span },
                ..Measures::default()
            },
            faster: [10; 3],
            ..Site::default()
        };
        let span = Span {
            work: 20,
            span: 10,
            sites: vec![site(1, 2), site(2, 8)],
            path: vec![
                Step { site: 1, span: 8, own: 8, strands: 1 },
                Step { site: 0, span: 2, own: 2, strands: 1 },
            ],
            ..Span::default()
        };
        let run = Run {
            id: RunId([1; 16]),
            program: Program::default(),
            command: vec![],
            exit: Exit::Code(0),
            started_unix_ns: 0,
            wall_ns: 0,
            cpu_ns: 0,
            problems: vec![],
            data: Data::Span(span.clone()),
        };
        let sources = |_: &str| Some("one\ntwo\n".to_owned());
        let mode = SpanMode::new(&[SpanRun { run: &run, span: &span, sources: &sources }]).unwrap();
        let page = &mode.runs[0];
        assert_eq!(page.sites.line, [2, 1]);
        assert_eq!(page.path, [(0, 8, 8, 1), (1, 2, 2, 1)]);
        assert_eq!((page.excerpts.len(), page.bounds[0]), (2, (1, 1.0, 1.0)));
    }
}
