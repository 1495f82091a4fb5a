//! Growth: the shared memory of a run (`wire::growth`) becomes one [`Growth`] per metric.
//!
//! Points are taken as they are; records that a killed thread left in its buffer are added here, as the runtime would
//! have done. Activations that were pending then are not in the profile: it holds what was completed.

use std::collections::BTreeMap;

use inputsize::ingest::Nesting;
use inputsize::record::Record;
use launch::Results;
use profile::{Composition, Cost, Growth, Metric, Point, Routine, ThreadCost, ThreadPoints};
use wire::growth as wire;

use crate::names::Names;

/// In the routine of a record: the outermost of folded work (`growth-rt`).
const FOLD: u32 = 1 << 30;
/// Bytes that the runtime keeps free behind `log_end`.
const LOG_SLACK_BYTES: u64 = 128;

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// What sizes count.
    pub metric: wire::Metric,
    /// What costs count.
    pub cost: wire::Cost,
    /// Bytes of a cell: 1, 2, 4, 8 or 16.
    pub cell_bytes: u32,
    /// Bits of `wire::growth::fold`.
    pub fold: u32,
    /// Bits of a stamp; 32 but in tests.
    pub stamp_bits: u32,
}

/// What a run gave.
#[derive(Debug)]
pub struct Collected {
    /// One profile per metric: trms before rms.
    pub profiles: Vec<Growth>,
    /// What is missing or doubtful.
    pub problems: Vec<String>,
    /// How often a thread ran out of stamps.
    pub renumberings: u64,
}

/// Writes the header that the runtime expects.
pub fn prepare(results: &Results, request: &Request) {
    let header = wire::Header {
        magic: wire::MAGIC,
        version: ::wire::VERSION,
        metric: request.metric as u32,
        cost: request.cost as u32,
        cell_shift: request.cell_bytes.trailing_zeros(),
        fold: request.fold,
        stamp_bits: request.stamp_bits,
        ..wire::Header::default()
    };
    results.put(0, header);
}

/// Reads what the runtime wrote.
pub fn read(results: &Results, request: &Request) -> Collected {
    let header: wire::Header = results.get(0);
    let mut problems = Vec::new();
    if header.magic != wire::MAGIC || header.version != ::wire::VERSION {
        problems.push("the runtime wrote no profile".to_owned());
        return Collected { profiles: Vec::new(), problems, renumberings: 0 };
    }
    let text: &[u8] =
        results.slice(wire::MODULES_OFFSET, header.module_bytes.min(wire::MODULES_BYTES_MAX) as usize);
    let names = Names::new(&String::from_utf8_lossy(text));
    let routines: &[wire::Routine] =
        results.slice(wire::ROUTINES_OFFSET, u64::from(header.routines).min(wire::ROUTINES_MAX) as usize);
    let threads: &[wire::Thread] =
        results.slice(wire::THREADS_OFFSET, u64::from(header.threads).min(wire::THREADS_MAX) as usize);
    let points: &[wire::Point] =
        results.slice(wire::POINTS_OFFSET, header.points.min(wire::POINTS_MAX) as usize);

    let mut tables = Tables::default();
    points.iter().filter(|point| point.calls > 0).for_each(|point| tables.add(point));
    let mut costs: Vec<u64> = threads.iter().map(|thread| thread.cost).collect();
    for (index, thread) in threads.iter().enumerate() {
        if let Some(slot) = thread.slot.checked_sub(1) {
            let window = wire::WINDOWS_OFFSET + u64::from(slot) * wire::WINDOW_BYTES;
            let hot: wire::Hot = results.get(window);
            if hot.thread == index as u64 {
                costs[index] = hot.cost;
                tables.add_buffer(results, window, &hot, index as u32, request.metric == wire::Metric::Both);
            }
        }
    }
    problems.extend(said(&header));
    let both = request.metric == wire::Metric::Both;
    let metrics: &[(Metric, bool)] = match request.metric {
        wire::Metric::Rms => &[(Metric::Rms, false)],
        wire::Metric::Trms => &[(Metric::Trms, false)],
        wire::Metric::Both => &[(Metric::Trms, false), (Metric::Rms, true)],
    };
    let scale = Scale::of(&header, request.cost);
    if request.cost == wire::Cost::Time && scale.is_none() {
        problems
            .push("the program was killed before the clock was calibrated: times are in ticks".to_owned());
    }
    let profiles = metrics
        .iter()
        .map(|&(metric, by_rms)| {
            debug_assert!(!by_rms || both);
            let mut growth = Growth::new(metric, cost(request.cost), request.cell_bytes);
            growth.size_error = header.size_error_ppm as f64 / 1e6;
            growth.threads = threads
                .iter()
                .zip(&costs)
                .map(|(thread, &cost)| ThreadCost { id: thread.tid.into(), cost_total: scaled(&scale, cost) })
                .collect();
            growth.cost_total = growth.threads.iter().map(|thread| thread.cost_total).sum();
            growth.routines = tables.routines(by_rms, routines, threads, &names, &scale);
            growth.normalize();
            growth
        })
        .collect();
    problems.extend(names.problems());
    Collected { profiles, problems, renumberings: header.renumberings }
}

fn cost(cost: wire::Cost) -> Cost {
    match cost {
        wire::Cost::Blocks => Cost::Blocks,
        wire::Cost::Instructions => Cost::Instructions,
        wire::Cost::Memory => Cost::MemoryAccesses,
        wire::Cost::Time => Cost::TimeNs,
    }
}

fn said(header: &wire::Header) -> Vec<String> {
    let all = [
        (
            wire::problem::POINTS_FULL,
            format!("the table of points was full: {} activations are missing", header.dropped),
        ),
        (wire::problem::ROUTINES_FULL, "too many routines: further ones are shown as one".to_owned()),
        (
            wire::problem::MODULES_FULL,
            "too many libraries: routines of further ones have no names".to_owned(),
        ),
        (wire::problem::THREADS_FULL, "too many threads: further ones are shown as one".to_owned()),
        (
            wire::problem::THREAD_UNSEEN,
            "a thread had no memory for its shadow: what it did is missing".to_owned(),
        ),
    ];
    all.into_iter().filter(|(bit, _)| header.problems & bit != 0).map(|(_, text)| text).collect()
}

/// Nanoseconds per tick, as a fraction.
struct Scale {
    ns: u64,
    ticks: u64,
}

impl Scale {
    fn of(header: &wire::Header, cost: wire::Cost) -> Option<Scale> {
        let ticks = header.tsc[1].checked_sub(header.tsc[0])?;
        let ns = header.clock_ns[1].checked_sub(header.clock_ns[0])?;
        (cost == wire::Cost::Time && header.tsc[1] != 0 && ticks > 0 && ns > 0).then_some(Scale { ns, ticks })
    }
}

fn scaled(scale: &Option<Scale>, value: u64) -> u64 {
    scale.as_ref().map_or(value, |s| (u128::from(value) * u128::from(s.ns) / u128::from(s.ticks)) as u64)
}

fn scaled_square(scale: &Option<Scale>, value: u128) -> u128 {
    scale.as_ref().map_or(value, |s| {
        let factor = s.ns as f64 / s.ticks as f64;
        (value as f64 * factor * factor) as u128
    })
}

/// Points by (by rms, routine, thread, size).
#[derive(Default)]
struct Tables {
    points: BTreeMap<(bool, u32, u32, u64), wire::Point>,
}

impl Tables {
    fn add(&mut self, point: &wire::Point) {
        let Some(routine) = point.routine.checked_sub(1) else { return };
        let by_rms = point.thread & wire::POINT_RMS != 0;
        let key = (by_rms, routine, point.thread & !wire::POINT_RMS, point.n);
        self.points.entry(key).and_modify(|known| known.merge(point)).or_insert(*point);
    }

    /// Adds the records that a thread left in its buffer.
    fn add_buffer(&mut self, results: &Results, window: u64, hot: &wire::Hot, thread: u32, both: bool) {
        let start = hot.log_end.wrapping_sub(wire::LOG_BYTES - LOG_SLACK_BYTES);
        let words = hot.log.wrapping_sub(start) / 8;
        if words > wire::LOG_BYTES / 8 {
            return;
        }
        let alike = (hot.alike as usize).min(wire::ALIKE_MAX);
        for alike in results.slice::<wire::Alike>(window + wire::ALIKE_OFFSET, alike) {
            if alike.calls != 0 {
                self.add_activations(alike, thread, [0; 4], both.then_some(alike.n));
            }
        }
        let mut words: &[u64] = results.slice(window + wire::LOG_OFFSET, words as usize);
        let mut nesting = Nesting::default();
        nesting.begin(0, |_| (0, 0));
        let mut folding = u32::MAX;
        while let Some(record) = Record::<1>::read_last(&mut words) {
            let routine = record.routine & !FOLD;
            let outermost = nesting.is_outermost(routine, record.stamp);
            if record.stamp <= folding {
                folding = if record.routine & FOLD != 0 { record.stamp } else { u32::MAX };
            }
            let n = if record.stamp >= folding { 0 } else { record.size };
            let alike = wire::Alike {
                routine: routine.into(),
                n,
                cost: record.cost[0],
                own: record.cost_self[0],
                calls: 1,
                outermost: outermost.into(),
                ..wire::Alike::default()
            };
            let induced = record.rare.map_or([0; 4], |rare| {
                let (all, own) = (rare.induced, rare.induced_self);
                [all.thread, all.external, own.thread, own.external]
            });
            let rms = record.rare.filter(|_| record.stamp < folding).map_or(n, |rare| rare.rms);
            self.add_activations(&alike, thread, induced, both.then_some(rms));
        }
    }

    fn add_activations(&mut self, a: &wire::Alike, thread: u32, induced: [u64; 4], rms: Option<u64>) {
        let mut point = wire::Point {
            routine: a.routine as u32 + 1,
            thread,
            n: a.n,
            calls: a.calls,
            real_sum: a.cost.saturating_mul(a.outermost),
            induced,
            ..wire::Point::default()
        };
        point.cost.add(a.cost, a.calls);
        point.own.add(a.own, a.calls);
        self.add(&point);
        if let Some(n) = rms {
            self.add(&wire::Point { n, thread: thread | wire::POINT_RMS, induced: [0; 4], ..point });
        }
    }

    fn routines(
        &self,
        by_rms: bool,
        routines: &[wire::Routine],
        threads: &[wire::Thread],
        names: &Names,
        scale: &Option<Scale>,
    ) -> Vec<Routine> {
        let mut all: Vec<Routine> = Vec::new();
        let mut current = None;
        let range = (by_rms, 0, 0, 0)..=(by_rms, u32::MAX, u32::MAX, u64::MAX);
        for (&(_, number, thread, _), point) in self.points.range(range) {
            let Some(entry) = routines.get(number as usize) else { continue };
            if entry.flags & wire::routine::ROOT != 0 {
                continue; // no routine: the time before and around them, in the threads' totals
            }
            if current != Some(number) {
                current = Some(number);
                all.push(names.routine(entry.address, entry.module));
            }
            let Some(routine) = all.last_mut() else { continue };
            let tid = threads.get(thread as usize).map_or(0, |t| u64::from(t.tid));
            let point = facts(point, scale);
            routine.points.push(point);
            if routine.threads.last() != Some(&tid) {
                routine.threads.push(tid);
                routine.by_thread.push(ThreadPoints { thread: tid, points: Vec::new() });
            }
            if let Some(apart) = routine.by_thread.last_mut() {
                apart.points.push(point);
            }
        }
        for routine in &mut all {
            routine.threads.sort_unstable();
            routine.threads.dedup();
            if routine.threads.len() < 2 {
                routine.by_thread.clear();
            }
        }
        all
    }
}

/// A point as profiles hold it.
fn facts(point: &wire::Point, scale: &Option<Scale>) -> Point {
    let time = |value| scaled(scale, value);
    Point {
        n: point.n,
        calls: point.calls,
        min: time(point.cost.min),
        max: time(point.cost.max),
        sum: time(point.cost.sum),
        sumsq: scaled_square(scale, point.cost.sumsq()),
        real_sum: time(point.real_sum),
        self_sum: time(point.own.sum),
        self_min: time(point.own.min),
        self_max: time(point.own.max),
        self_sumsq: scaled_square(scale, point.own.sumsq()),
        input: Composition {
            thread_induced: point.induced[0],
            external: point.induced[1],
            self_thread_induced: point.induced[2],
            self_external: point.induced[3],
        },
    }
}
