//! Growth: the shared memory of a run (`wire::growth`) becomes one [`Growth`] per metric.
//!
//! Points are taken as they are; activations that a killed thread left in its buffer and in its table of alike ones
//! are added here, as the runtime would have done. Activations that were pending then are not in the profile: it holds what was completed.

use launch::Results;
use profile::{Composition, Cost, Growth, Metric, Point, Routine, ThreadCost, ThreadPoints};
use wire::growth as wire;

use crate::names::Names;

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

    let mut left = Left { points: Vec::new(), both: request.metric == wire::Metric::Both };
    let mut costs: Vec<u64> = threads.iter().map(|thread| thread.cost).collect();
    for (index, thread) in threads.iter().enumerate() {
        if let Some(slot) = thread.slot.checked_sub(1) {
            let window = wire::WINDOWS_OFFSET + u64::from(slot) * wire::WINDOW_BYTES;
            let hot: wire::Hot = results.get(window);
            if hot.thread == index as u64 {
                costs[index] = hot.cost;
                left.add_buffer(results, window, &hot, index as u32);
            }
        }
    }
    let table = Table::new(points.iter().chain(&left.points));
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
            growth.routines = table.routines(by_rms, routines, threads, &names, &scale);
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

/// What killed threads left beside their points, a point for each entry.
struct Left {
    points: Vec<wire::Point>,
    /// Whether sizes are told by both metrics.
    both: bool,
}

impl Left {
    /// Adds what a thread left in its buffer and its table.
    fn add_buffer(&mut self, results: &Results, window: u64, hot: &wire::Hot, thread: u32) {
        let start = hot.log_end.wrapping_sub(wire::LOG_BYTES - wire::LOG_SLACK_BYTES);
        let words = hot.log.wrapping_sub(start) / 8;
        if words > wire::LOG_BYTES / 8 {
            return;
        }
        let alike = (hot.alike as usize).min(wire::ALIKE_MAX);
        for alike in results.slice::<wire::Alike>(window + wire::ALIKE_OFFSET, alike) {
            if alike.calls != 0 {
                self.add_activations(alike, thread, [0; 4], alike.n);
            }
        }
        let words: &[u64] = results.slice(window + wire::LOG_OFFSET, words as usize);
        for (alike, rare) in wire::entries(words) {
            let (induced, rms) = rare.map_or(([0; 4], alike.n), |rare| (rare.induced, rare.rms));
            self.add_activations(&alike, thread, induced, rms);
        }
    }

    fn add_activations(&mut self, a: &wire::Alike, thread: u32, induced: [u64; 4], rms: u64) {
        let mut point = wire::Point {
            routine: a.routine() + 1,
            thread,
            n: a.n,
            calls: a.calls.into(),
            real_sum: a.cost.saturating_mul(a.outermost()),
            induced,
            ..wire::Point::default()
        };
        point.cost.add(a.cost, a.calls.into());
        point.own.add(a.own, a.calls.into());
        self.points.push(point);
        if self.both {
            let thread = thread | wire::POINT_RMS;
            self.points.push(wire::Point { n: rms, thread, induced: [0; 4], ..point });
        }
    }
}

/// References to points, ordered by metric, routine, thread and size. Several may be of one size.
struct Table<'a> {
    points: Vec<(u128, &'a wire::Point)>,
}

/// Where sizes by rms begin in the order of [`Table`].
const RMS: u128 = 1 << 127;

impl<'a> Table<'a> {
    fn new(points: impl Iterator<Item = &'a wire::Point>) -> Table<'a> {
        let key = |point: &wire::Point| {
            let thread = point.thread & !wire::POINT_RMS;
            let metric = if point.thread & wire::POINT_RMS != 0 { RMS } else { 0 };
            metric | u128::from(point.routine) << 95 | u128::from(thread) << 64 | u128::from(point.n)
        };
        let mut points: Vec<_> =
            points.filter(|point| point.calls > 0 && point.routine > 0).map(|p| (key(p), p)).collect();
        points.sort_unstable_by_key(|&(key, _)| key);
        Table { points }
    }

    fn routines(
        &self,
        by_rms: bool,
        routines: &[wire::Routine],
        threads: &[wire::Thread],
        names: &Names,
        scale: &Option<Scale>,
    ) -> Vec<Routine> {
        let (trms, rms) = self.points.split_at(self.points.partition_point(|&(key, _)| key < RMS));
        let tid = |point: &wire::Point| {
            threads.get((point.thread & !wire::POINT_RMS) as usize).map_or(0, |t| u64::from(t.tid))
        };
        let mut all: Vec<Routine> = Vec::new();
        for points in (if by_rms { rms } else { trms }).chunk_by(|a, b| a.1.routine == b.1.routine) {
            let Some(entry) = routines.get(points[0].1.routine as usize - 1) else { continue };
            if entry.flags & wire::routine::ROOT != 0 {
                continue; // no routine: the time before and around them, in the threads' totals
            }
            let mut routine = names.routine(entry.address, entry.module);
            let mut apart: Vec<ThreadPoints> = points
                .chunk_by(|a, b| tid(a.1) == tid(b.1))
                .map(|points| ThreadPoints { thread: tid(points[0].1), points: all_facts(points, scale) })
                .collect();
            routine.threads = apart.iter().map(|t| t.thread).collect();
            routine.threads.sort_unstable();
            routine.threads.dedup();
            if let [only] = &mut apart[..] {
                routine.points = std::mem::take(&mut only.points);
            } else {
                routine.points = apart.iter().flat_map(|t| &t.points).copied().collect();
                routine.by_thread = apart;
            }
            all.push(routine);
        }
        all
    }
}

/// One thread's points of one routine, those of the same size as one.
fn all_facts(points: &[(u128, &wire::Point)], scale: &Option<Scale>) -> Vec<Point> {
    let mut all = Vec::with_capacity(points.len());
    for alike in points.chunk_by(|a, b| a.0 == b.0) {
        if let [(_, only)] = alike {
            all.push(facts(only, scale));
            continue;
        }
        let mut sum = *alike[0].1;
        alike[1..].iter().for_each(|(_, point)| sum.merge(point));
        all.push(facts(&sum, scale));
    }
    all
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
