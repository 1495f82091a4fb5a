//! Runs as they are shown: those of one program, mode and kind added up, whatever mode it is.
//!
//! The one place of the command line that lists the modes: a new one adds a variant, how its runs are joined, and
//! which functions of `report` render it. Terminal, JSON and page all start from here.

use std::path::PathBuf;

use anyhow::{Result, anyhow};
use profile::{Causal, Count, Data, Idle, Profile, Run, Span};
use report::html::{CausalRun, CountRun, IdleRun, Page, PageRun, SpanRun};
use serde_json::{Value, json};

use crate::exit::{Failure, Kind};
use crate::profiles::{self, GrowthView};

/// Runs that belong together, added up.
pub enum View {
    /// How costs grow.
    Growth(GrowthView),
    /// What was executed.
    Count(CountView),
    /// Where cores were idle.
    Idle(Box<IdleView>),
    /// How parallel it was; each run by itself.
    Span(SpanView),
    /// What making code faster would gain.
    Causal(CausalView),
}

/// Causal runs of one build.
pub struct CausalView {
    /// What is known of them besides their data; times are sums.
    pub run: Run,
    /// Their data.
    pub causal: Causal,
}

/// One idle run: contexts of different runs are not added up, they are compared.
pub struct IdleView {
    /// What is known of it besides its data.
    pub run: Run,
    /// Its data.
    pub idle: Idle,
    /// What is concluded.
    pub analysis: analyse::idle::IdleAnalysis,
}

/// Count runs of one build.
pub struct CountView {
    /// What is known of them besides their data; times are sums.
    pub run: Run,
    /// Their data.
    pub count: Count,
}

/// One span run: spans of different runs do not add up.
pub struct SpanView {
    /// What is known of it besides its data.
    pub run: Run,
    /// Its data.
    pub span: Span,
}

/// The views of all files, file by file: two files stay two.
pub fn of_files(paths: &[PathBuf], salvage: bool) -> Result<Vec<View>> {
    let mut views = Vec::new();
    for path in paths {
        let found = of_profile(profiles::read(path, salvage)?)?;
        if found.is_empty() {
            let message = anyhow!("{}: holds no run that this version can show", path.display());
            return Err(Failure::error(Kind::Data, message));
        }
        views.extend(found);
    }
    Ok(views)
}

/// The views of one profile.
pub fn of_profile(profile: Profile) -> Result<Vec<View>> {
    let mut views: Vec<View> = profiles::join(&profile)?.into_iter().map(View::Growth).collect();
    views.extend(count_views(&profile).into_iter().map(View::Count));
    let others = causal_views(&profile).into_iter().map(View::Causal);
    let others: Vec<View> = others
        .chain(profile.runs.iter().filter_map(|run| match &run.data {
            Data::Span(span) => Some(View::Span(SpanView { run: run.clone(), span: span.clone() })),
            _ => None,
        }))
        .collect();
    views.extend(idle_views(profile)?.into_iter().map(|v| View::Idle(Box::new(v))));
    views.extend(others);
    Ok(views)
}

/// The idle runs of a profile.
pub fn idle_views(profile: Profile) -> Result<Vec<IdleView>> {
    profile.runs.into_iter().filter_map(|run| idle_view(run).transpose()).collect()
}

/// An idle run; `None` if it is another one. Takes the contexts out of it, which may be millions.
pub fn idle_view(mut run: Run) -> Result<Option<IdleView>> {
    let Data::Idle(idle) = &mut run.data else { return Ok(None) };
    let idle = std::mem::take(idle);
    let classes = analyse::idle::Classes::parse(&idle.rules).map_err(|e| Failure::error(Kind::Data, e))?;
    let analysis = analyse::idle::analyse(&idle, &classes);
    Ok(Some(IdleView { run, idle, analysis }))
}

/// The count runs of a profile, added up by build.
pub fn count_views(profile: &Profile) -> Vec<CountView> {
    let mut views = Vec::new();
    for build in profile.by_build() {
        let runs: Vec<(&Run, &Count)> = build
            .into_iter()
            .filter_map(|run| match &run.data {
                Data::Count(count) => Some((run, count)),
                _ => None,
            })
            .collect();
        if runs.is_empty() {
            continue;
        }
        let all: Vec<&Run> = runs.iter().map(|r| r.0).collect();
        views.push(CountView {
            run: profiles::summed(&all),
            count: Count::combined(runs.iter().map(|r| r.1)),
        });
    }
    views
}

/// The causal runs of a profile, put together by build and by what their targets are.
pub fn causal_views(profile: &Profile) -> Vec<CausalView> {
    let mut views = Vec::new();
    for build in profile.by_build() {
        let mut kinds: Vec<Vec<(&Run, &Causal)>> = Vec::new();
        for run in build {
            let Data::Causal(causal) = &run.data else { continue };
            match kinds.iter_mut().find(|runs| runs[0].1.by == causal.by) {
                Some(runs) => runs.push((run, causal)),
                None => kinds.push(vec![(run, causal)]),
            }
        }
        for runs in kinds {
            let all: Vec<&Run> = runs.iter().map(|r| r.0).collect();
            if let Some(causal) = Causal::combined(runs.iter().map(|r| r.1)) {
                views.push(CausalView { run: profiles::summed(&all), causal });
            }
        }
    }
    views
}

impl View {
    /// For the terminal.
    pub fn terminal(&self) -> String {
        match self {
            View::Growth(v) => report::terminal::growth(&v.run, &v.growth, &v.analysis()),
            View::Count(v) => report::terminal::count(&v.run, &v.count),
            View::Idle(v) => report::idle::terminal(&v.run, &v.idle, &v.analysis),
            View::Causal(v) => {
                report::terminal::causal(&v.run, &v.causal, &analyse::causal::analyse(&v.causal))
            }
            View::Span(v) => report::span::terminal(&v.run, &v.span),
        }
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        match self {
            View::Growth(v) => report::json::growth(&v.run, &v.growth, &v.analysis()),
            View::Count(v) => report::json::count(&v.run, &v.count),
            View::Idle(v) => report::idle::json(&v.run, &v.idle, &v.analysis),
            View::Causal(v) => report::json::causal(&v.run, &v.causal, &analyse::causal::analyse(&v.causal)),
            View::Span(v) => report::span::json(&v.run, &v.span),
        }
    }
}

/// Idle runs that are shown on a terminal, of a program whose processes were followed.
const IDLE_SHOWN_MAX: usize = 6;

/// All views for the terminal. Of many idle runs, the first and those that used most CPU time.
pub fn terminal(views: &[View]) -> String {
    let cpu_ns = |view: &View| if let View::Idle(v) = view { Some(v.run.cpu_ns) } else { None };
    let mut most: Vec<(u64, usize)> =
        views.iter().enumerate().filter_map(|(i, v)| Some((cpu_ns(v)?, i))).skip(1).collect();
    most.sort_by_key(|&(ns, i)| (std::cmp::Reverse(ns), i));
    let hidden = most.split_off(most.len().min(IDLE_SHOWN_MAX - 1));
    let is_hidden = |i: usize| hidden.iter().any(|h| h.1 == i);
    let several = !most.is_empty();
    let shown = views.iter().enumerate().filter(|(i, _)| !is_hidden(*i)).map(|(_, view)| match view {
        View::Idle(v) if several => format!("{}\n{}", started_as(&v.run), view.terminal()),
        _ => view.terminal(),
    });
    let mut text = shown.collect::<Vec<_>>().join("\n");
    if !hidden.is_empty() {
        let seconds = hidden.iter().map(|h| h.0).sum::<u64>() as f64 / 1e9;
        text += &format!(
            "\nand {} runs that used less CPU time, {seconds:.3} s together; the report page and the JSON have all\n",
            hidden.len()
        );
    }
    text
}

/// The command that a run is of, to tell it from others.
fn started_as(run: &Run) -> String {
    const WIDTH: usize = 100;
    let command: String =
        run.command.join(" ").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match command.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("$ {}...", &command[..end]),
        None => format!("$ {command}"),
    }
}

/// One view's document as it is; several in a list.
pub fn document(views: &[View]) -> Value {
    let mut documents: Vec<Value> = views.iter().map(View::json).collect();
    match documents.len() {
        1 => documents.remove(0),
        _ => json!({ "farsight": report::json::INTERFACE_VERSION, "kind": "report", "runs": documents }),
    }
}

/// The page on these views, with the source lines that can still be read on this machine.
pub fn page(views: &[View]) -> String {
    let sources = |path: &str| std::fs::read_to_string(path).ok();
    let growth: Vec<&GrowthView> =
        views.iter().filter_map(|v| if let View::Growth(v) = v { Some(v) } else { None }).collect();
    let analyses: Vec<_> = growth.iter().map(|v| v.analysis()).collect();
    let causal: Vec<_> = views
        .iter()
        .filter_map(|v| {
            if let View::Causal(v) = v { Some((v, analyse::causal::analyse(&v.causal))) } else { None }
        })
        .collect();
    let physical: Vec<_> = views
        .iter()
        .filter_map(|v| if let View::Idle(v) = v { Some(analyse::idle::physical(&v.idle)) } else { None })
        .collect();
    let mut physical = physical.iter();
    let mut page = Page::default();
    for (v, analysis) in &causal {
        page.causal.push(CausalRun { run: &v.run, causal: &v.causal, analysis, sources: &sources });
    }
    for (v, analysis) in growth.iter().zip(&analyses) {
        page.growth.push(PageRun { run: &v.run, growth: &v.growth, analysis, sources: &sources });
    }
    for view in views {
        if let View::Count(v) = view {
            page.count.push(CountRun { run: &v.run, count: &v.count });
        }
        if let View::Idle(v) = view
            && let Some(physical) = physical.next()
        {
            let (run, idle, analysis) = (&v.run, &v.idle, &v.analysis);
            page.idle.push(IdleRun { run, idle, analysis, physical, sources: &sources });
        }
        if let View::Span(v) = view {
            page.span.push(SpanRun { run: &v.run, span: &v.span, sources: &sources });
        }
    }
    report::html::page(&page)
}
