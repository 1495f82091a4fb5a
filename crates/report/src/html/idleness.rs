//! Idleness in the page's JSON section: the logical and the physical tree as columns, locks, and the source lines that
//! most of the time went to.

use std::collections::HashMap;

use analyse::idle::{Class, IdleAnalysis, Projected};
use profile::Idle;
use profile::idle::FrameKind;
use serde::Serialize;

use super::IdleRun;
use super::head::Head;
use super::strings::Strings;

/// Locks, and files with source lines, at most.
const LOCKS_MAX: usize = 200;
const FILES_MAX: usize = 12;

/// What the page knows about idle runs.
#[derive(Serialize)]
pub struct IdleMode<'a> {
    runs: Vec<Run<'a>>,
}

#[derive(Serialize)]
struct Run<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    cores: u32,
    threads: u64,
    samples: u64,
    lost: u64,
    span_ns: u64,
    nobody_ns: u64,
    preempted_ns: i64,
    /// Work, synchronization, scheduling, idle, blocked.
    total: [i64; 5],
    stitched: Option<f64>,
    strings: Vec<&'a str>,
    logical: Tree,
    physical: Tree,
    advice: Vec<(&'a str, &'static str, &'static str)>,
    locks: Vec<Lock<'a>>,
    sources: Vec<Source<'a>>,
}

/// A tree as columns; names and files are positions in `strings`.
#[derive(Serialize, Default)]
struct Tree {
    parent: Vec<i64>,
    name: Vec<usize>,
    kind: Vec<u8>,
    class: Vec<u8>,
    file: Vec<usize>,
    line: Vec<u32>,
    /// Exclusive: work, synchronization, scheduling, idle, blocked.
    own: Vec<[i64; 5]>,
}

#[derive(Serialize)]
struct Lock<'a> {
    kind: &'a str,
    address: String,
    wait_ns: u64,
    contended: u64,
    acquisitions: u64,
    handed_over_ns: u64,
    waiter: Vec<&'a str>,
    holders: Vec<(Vec<&'a str>, u64)>,
}

#[derive(Serialize)]
struct Source<'a> {
    file: &'a str,
    /// Line, work, idle, text.
    lines: Vec<(u32, u64, i64, String)>,
}

impl<'a> IdleMode<'a> {
    /// What the page shows of these runs; `None` when there are none.
    pub fn new(runs: &[IdleRun<'a>]) -> Option<Self> {
        (!runs.is_empty()).then(|| IdleMode { runs: runs.iter().map(Run::new).collect() })
    }
}

impl<'a> Run<'a> {
    fn new(page: &IdleRun<'a>) -> Self {
        let IdleRun { run, idle, analysis, physical, sources } = *page;
        let mut strings = Strings::default();
        let logical = tree(idle, &analysis.logical, &mut strings);
        let physical = tree(idle, physical, &mut strings);
        let v = &analysis.totals.values;
        Run {
            head: Head::new(run),
            cores: idle.cores,
            threads: idle.threads,
            samples: idle.samples,
            lost: idle.lost,
            span_ns: idle.span_ns,
            nobody_ns: analysis.totals.nobody_ns,
            preempted_ns: analysis.totals.preempted_ns,
            total: [v.work_ns as i64, v.sync_ns as i64, v.schedule_ns as i64, v.idle_ns, v.blocked_ns as i64],
            stitched: analysis.stitched_share,
            strings: strings.list,
            logical,
            physical,
            advice: analysis
                .functions
                .iter()
                .filter(|f| f.advice != analyse::idle::Advice::None)
                .map(|f| (f.name.as_str(), f.advice.word(), f.advice.sentence()))
                .collect(),
            locks: locks(idle, analysis),
            sources: source_lines(idle, sources),
        }
    }
}

fn tree<'a>(idle: &'a Idle, projected: &'a Projected, strings: &mut Strings<'a>) -> Tree {
    let mut out = Tree::default();
    for n in &projected.nodes {
        let frame = &idle.frames[n.frame as usize];
        out.parent.push(n.parent.map_or(-1, i64::from));
        out.name.push(strings.add(&n.name));
        out.kind.push(match n.kind {
            FrameKind::Call => 0,
            FrameKind::Inline => 1,
            FrameKind::Loop => 2,
            FrameKind::Task => 3,
            FrameKind::Thread => 4,
            FrameKind::Wait | FrameKind::Spin | FrameKind::Other => 5,
        });
        out.class.push(match n.class {
            Class::Work => 0,
            Class::Sync => 1,
            Class::Schedule => 2,
            Class::Idle => 3,
            Class::Neutral | Class::Glue => 4,
        });
        out.file.push(strings.add(&frame.file));
        out.line.push(frame.line);
        let o = &n.own;
        out.own.push([
            o.work_ns as i64,
            o.sync_ns as i64,
            o.schedule_ns as i64,
            o.idle_ns.max(0),
            o.blocked_ns as i64,
        ]);
    }
    out
}

fn locks<'a>(idle: &'a Idle, analysis: &'a IdleAnalysis) -> Vec<Lock<'a>> {
    let path = |context: u32| -> Vec<&'a str> {
        let mut names = Vec::new();
        let mut at = analysis.logical.of_context.get(context as usize).copied().flatten();
        while let Some(n) = at {
            let node = &analysis.logical.nodes[n as usize];
            names.push(&*node.name);
            at = node.parent;
        }
        names.reverse();
        names
    };
    let shown = |l: &&profile::idle::Lock| {
        !l.waiter.is_some_and(|w| analysis.logical.idling.get(w as usize).copied().unwrap_or(false))
    };
    idle.locks
        .iter()
        .filter(shown)
        .take(LOCKS_MAX)
        .map(|l| Lock {
            kind: &l.kind,
            address: format!("{:#x}", l.address),
            wait_ns: l.wait_ns,
            contended: l.contended,
            acquisitions: l.acquisitions,
            handed_over_ns: l.handed_over_ns,
            waiter: l.waiter.map(path).unwrap_or_default(),
            holders: crate::idle::merged(l, &path).into_iter().map(|(p, ns, _)| (p, ns)).collect(),
        })
        .collect()
}

/// The lines with time in them, of the files that took most, with their text where it can be read.
fn source_lines<'a>(idle: &'a Idle, sources: &dyn Fn(&str) -> Option<String>) -> Vec<Source<'a>> {
    let mut files: HashMap<&str, Vec<(u32, u64, i64)>> = HashMap::new();
    for line in &idle.lines {
        let file = idle.frames[line.frame as usize].file.as_str();
        if !file.is_empty() && !analyse::idle::classes::is_standard(file) {
            files.entry(file).or_default().push((line.line, line.cpu_ns, line.idle_ns));
        }
    }
    let mut ranked: Vec<_> = files.into_iter().collect();
    let weight = |lines: &[(u32, u64, i64)]| lines.iter().map(|l| l.1).sum::<u64>();
    ranked.sort_by(|a, b| weight(&b.1).cmp(&weight(&a.1)).then_with(|| a.0.cmp(b.0)));
    let mut out = Vec::new();
    for (file, mut lines) in ranked.into_iter().take(FILES_MAX) {
        lines.sort_unstable();
        lines.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                (kept.1, kept.2) = (kept.1 + later.1, kept.2 + later.2);
            }
            same
        });
        let text = sources(file);
        let text: Vec<&str> = text.as_deref().map(|t| t.lines().collect()).unwrap_or_default();
        let lines = lines
            .into_iter()
            .map(|(line, work, idle)| {
                let text = text.get((line as usize).wrapping_sub(1)).copied().unwrap_or_default();
                (line, work, idle, text.chars().take(200).collect())
            })
            .collect();
        out.push(Source { file, lines });
    }
    out
}
