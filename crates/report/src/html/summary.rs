//! The page's JSON section: all that its tables and sentences say, as columns with one entry per routine in the
//! order of the analysis.
//!
//! Columns, and indices into lists of distinct strings, pack far better than an object per routine. Counts are
//! sent as they are: the browser rounds those beyond 2^53, and shows none of them digit by digit. Numbers that
//! JSON does not have (infinities) become null.

use analyse::{GrowthAnalysis, RoutineAnalysis, overtakes};
use fit::{Class, Fit, Term, Verdict};
use profile::{Cost, Metric, Point, ThreadPoints};
use serde::Serialize;

use super::causality::CausalMode;
use super::columns;
use super::counts::CountMode;
use super::excerpt::{Excerpt, Excerpts, ROUTINES_MAX};
use super::head::Head;
use super::idleness::IdleMode;
use super::spans::SpanMode;
use super::strings::Strings;
use super::{Page, PageRun, routine_id};

/// Version of the agreement between this module and the page's `data.ts`.
const VERSION: u32 = 1;
/// The soonest ones are what the user asks about.
const OVERTAKES_MAX: usize = 1000;

/// What the page reads first.
#[derive(Serialize)]
pub struct Summary<'a> {
    version: u32,
    /// Per mode, what it has to show. A mode without data is absent.
    modes: Modes<'a>,
}

#[derive(Serialize)]
struct Modes<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<GrowthMode<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<CountMode<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idle: Option<IdleMode<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    causal: Option<CausalMode<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span: Option<SpanMode<'a>>,
}

#[derive(Serialize)]
struct GrowthMode<'a> {
    runs: Vec<GrowthRun<'a>>,
}

#[derive(Serialize)]
struct GrowthRun<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    build_id: String,
    metric: &'static str,
    cost: &'static str,
    cell_bytes: u32,
    size_error: f64,
    activations: u64,
    cost_total: u64,
    input_volume: u64,
    thread_induced_share: f64,
    external_share: f64,
    factors: &'a [f64],
    unextrapolated_share: &'a [f64],
    /// Who overtakes whom, by position in the table, at which factor, and the earliest and latest factor that
    /// the intervals allow.
    overtakes: Vec<(usize, usize, f64, f64, Option<f64>)>,
    strings: Vec<&'a str>,
    routines: Routines<'a>,
    excerpts: Vec<Excerpt>,
}

#[derive(Serialize, Default)]
struct Routines<'a> {
    id: Vec<String>,
    name: Vec<&'a str>,
    /// `None` when equal to the name.
    mangled: Vec<Option<&'a str>>,
    object: Vec<usize>,
    address: Vec<Option<String>>,
    file: Vec<usize>,
    line: Vec<u32>,
    threads: Vec<&'a [u64]>,
    /// Per thread its id, calls and cumulative cost; empty when not kept apart.
    by_thread: Vec<Vec<(u64, u64, u64)>>,
    calls: Vec<u64>,
    cost_total: Vec<u64>,
    cost_self: Vec<u64>,
    share: Vec<f32>,
    first_reads: Vec<u64>,
    thread_induced: Vec<u64>,
    external: Vec<u64>,
    points: Vec<usize>,
    n_min: Vec<u64>,
    n_max: Vec<u64>,
    block_bytes: Vec<usize>,
    has_forecast: Vec<u8>,
    fit: Fits<'a>,
    fit_self: Fits<'a>,
}

#[derive(Serialize, Default)]
struct Fits<'a> {
    /// The class as `interfaces.md` names it, by index into the strings; `None` when unknown.
    class: Vec<Option<usize>>,
    /// The K of `n^K`, 0 otherwise.
    power: Vec<f32>,
    /// The curve, of the last piece if there are several.
    terms: Vec<Vec<TermOf>>,
    formula: Vec<&'a str>,
    exponent: Vec<f32>,
    exponent_low: Vec<f32>,
    exponent_high: Vec<f32>,
    confidence: Vec<f32>,
    spread: Vec<f32>,
    outliers: Vec<usize>,
    /// Other classes that explain the data, with their probabilities.
    alternatives: Vec<Vec<(String, f32)>>,
    verdict: Vec<u8>,
    reason: Vec<usize>,
    pieces: Vec<PieceOf>,
}

#[derive(Serialize)]
struct PieceOf {
    routine: usize,
    from: f64,
    to: f64,
    class: &'static str,
    power: f64,
    formula: String,
    terms: Vec<TermOf>,
}

/// Class, its K, coefficient, shift and rate.
type TermOf = (&'static str, f64, f64, f64, f64);

impl<'a> Summary<'a> {
    /// The summary of these runs.
    pub fn new(page: &Page<'a>) -> Self {
        let growth: Vec<_> = page.growth.iter().map(GrowthRun::new).collect();
        let modes = Modes {
            growth: (!growth.is_empty()).then_some(GrowthMode { runs: growth }),
            count: CountMode::new(&page.count),
            idle: IdleMode::new(&page.idle),
            causal: CausalMode::new(&page.causal),
            span: SpanMode::new(&page.span),
        };
        Summary { version: VERSION, modes }
    }
}

impl<'a> GrowthRun<'a> {
    fn new(page: &PageRun<'a>) -> Self {
        let PageRun { run, growth, analysis, sources } = *page;
        let mut strings = Strings::default();
        let routines = Routines::new(analysis, &mut strings);
        let mut excerpts = Excerpts::new(sources);
        let top = analysis.routines.iter().take(ROUTINES_MAX).enumerate();
        let excerpts = top.filter_map(|(i, r)| excerpts.around(i, &r.routine.file, r.routine.line)).collect();
        GrowthRun {
            head: Head::new(run),
            build_id: run.program.build_id.iter().map(|b| format!("{b:02x}")).collect(),
            metric: match growth.metric {
                Metric::Rms => "rms",
                Metric::Trms => "trms",
            },
            cost: match growth.cost {
                Cost::Blocks => "blocks",
                Cost::Instructions => "instructions",
                Cost::MemoryAccesses => "accesses",
                Cost::TimeNs => "time",
            },
            cell_bytes: growth.cell_bytes,
            size_error: growth.size_error,
            activations: analysis.totals.activations,
            cost_total: analysis.totals.cost,
            input_volume: analysis.totals.input_volume,
            thread_induced_share: analysis.totals.thread_induced_share,
            external_share: analysis.totals.external_share,
            factors: &analysis.factors,
            unextrapolated_share: &analysis.unextrapolated_share,
            overtakes: overtakes(analysis)
                .iter()
                .map(|o| (o.rising, o.overtaken, o.factor, o.range.0, o.range.1))
                .take(OVERTAKES_MAX)
                .collect(),
            strings: strings.list,
            routines,
            excerpts,
        }
    }
}

impl<'a> Routines<'a> {
    fn new(analysis: &'a GrowthAnalysis<'a>, strings: &mut Strings<'a>) -> Self {
        let mut out = Routines::default();
        for (i, r) in analysis.routines.iter().enumerate() {
            out.push(r, strings);
            out.has_forecast.push(columns::has_forecast(r.forecast.len(), analysis).into());
            out.fit.push(i, &r.fit, strings);
            out.fit_self.push(i, &r.fit_self, strings);
        }
        out
    }

    fn push(&mut self, r: &'a RoutineAnalysis<'a>, strings: &mut Strings<'a>) {
        let routine = r.routine;
        self.id.push(routine_id(routine));
        self.name.push(&routine.name);
        self.mangled.push((routine.mangled != routine.name).then_some(routine.mangled.as_str()));
        self.object.push(strings.add(&routine.object));
        self.address.push(routine.address.map(|a| format!("{a:#x}")));
        self.file.push(strings.add(&routine.file));
        self.line.push(routine.line);
        self.threads.push(&routine.threads);
        let sum = |points: &[Point], f: fn(&Point) -> u64| points.iter().map(f).fold(0, u64::saturating_add);
        let of_thread =
            |t: &ThreadPoints| (t.thread, sum(&t.points, |p| p.calls), sum(&t.points, |p| p.real_sum));
        self.by_thread.push(routine.by_thread.iter().map(of_thread).collect());
        self.calls.push(r.calls);
        self.cost_total.push(r.cost_total);
        self.cost_self.push(r.cost_self);
        self.share.push(r.share as f32);
        self.first_reads.push(r.first_reads);
        self.thread_induced.push(r.thread_induced);
        self.external.push(r.external);
        self.points.push(routine.points.len());
        self.n_min.push(routine.points.first().map_or(0, |p| p.n));
        self.n_max.push(routine.points.last().map_or(0, |p| p.n));
        self.block_bytes.push(columns::block_bytes(routine));
    }
}

impl<'a> Fits<'a> {
    fn push(&mut self, routine: usize, fit: &'a Fit, strings: &mut Strings<'a>) {
        self.class.push(fit.class.map(|c| strings.add(key(c))));
        self.power.push(fit.class.map_or(0.0, power) as f32);
        self.terms.push(terms(&fit.terms));
        self.formula.push(&fit.formula);
        self.exponent.push(fit.exponent as f32);
        self.exponent_low.push(fit.exponent_ci[0] as f32);
        self.exponent_high.push(fit.exponent_ci[1] as f32);
        self.confidence.push(fit.confidence as f32);
        self.spread.push(fit.spread as f32);
        self.outliers.push(fit.outliers);
        let others = fit.alternatives.iter().filter(|(class, _)| Some(*class) != fit.class);
        self.alternatives.push(others.map(|&(class, p)| (class.to_string(), p as f32)).collect());
        self.verdict.push(match fit.verdict {
            Verdict::Confident => 0,
            Verdict::Tentative => 1,
            Verdict::Unknown => 2,
        });
        self.reason.push(strings.add(&fit.reason));
        self.pieces.extend(fit.pieces.iter().map(|p| PieceOf {
            routine,
            from: p.from,
            to: p.to,
            class: key(p.class),
            power: power(p.class),
            formula: fit::formula::curve(&p.terms),
            terms: terms(&p.terms),
        }));
    }
}

fn terms(terms: &[Term]) -> Vec<TermOf> {
    terms.iter().map(|t| (key(t.class), power(t.class), t.coefficient, t.shift, t.rate)).collect()
}

/// The class without its parameter.
fn key(class: Class) -> &'static str {
    match class {
        Class::Constant => "1",
        Class::Log => "log n",
        Class::Sqrt => "sqrt n",
        Class::Linear => "n",
        Class::NLogN => "n log n",
        Class::N15 => "n^1.5",
        Class::Quadratic => "n^2",
        Class::N2LogN => "n^2 log n",
        Class::Cubic => "n^3",
        Class::Exponential => "2^n",
        Class::Power(_) => "n^K",
    }
}

fn power(class: Class) -> f64 {
    match class {
        Class::Power(k) => k,
        _ => 0.0,
    }
}
