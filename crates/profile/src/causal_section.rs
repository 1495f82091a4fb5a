//! Causal data as one section payload per 16,384 experiments.
//!
//! Experiments are rows of small numbers, one column per number, so that like stands next to like. Every experiment,
//! target and point takes at least one byte in each of its columns, which bounds the memory that a small file can ask
//! for. Targets and points stand in every section: without them experiments mean nothing.

use crate::causal::{
    Backend, By, Causal, Experiment, PointKind, Progress, ProgressPoint, SampleCounts, Target,
};
use crate::fields;
use crate::varint::{self, Bad, Cursor, Decode};

const EXPERIMENTS_PER_SECTION: usize = 1 << 14;

const BY: usize = 1;
const BACKEND: usize = 2;
const PERIOD: usize = 3;
const SAMPLES: usize = 4;
const POINTS: usize = 5;
const TARGETS: usize = 6;
const EXPERIMENTS_TOTAL: usize = 7;
const SPAN: usize = 8;
const EXPERIMENTS: usize = 16;
const FIRST_COLUMN: usize = 17;
/// Nine numbers and the progress.
const COLUMNS: usize = 10;
const TAGS: usize = FIRST_COLUMN + COLUMNS;
/// Least bytes of a point: length of its name, kind, visits.
const POINT_BYTES_MIN: usize = 3;
/// Least bytes of a target: three lengths, line, samples.
const TARGET_BYTES_MIN: usize = 5;
/// Least bytes of one point's progress.
const PROGRESS_BYTES_MIN: usize = 3;

fn known(tag: usize) -> bool {
    (BY..=SPAN).contains(&tag) || (EXPERIMENTS..TAGS).contains(&tag)
}

/// What one section tells.
#[derive(Debug)]
pub struct Part {
    /// Everything, with the experiments of this section.
    pub causal: Causal,
    /// Experiments in all sections of the run.
    pub experiments_total: u64,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payloads of a run's data sections, at least one.
pub fn encode(causal: &Causal) -> Vec<Vec<u8>> {
    if causal.experiments.is_empty() {
        return vec![encode_part(causal, &[])];
    }
    causal.experiments.chunks(EXPERIMENTS_PER_SECTION).map(|part| encode_part(causal, part)).collect()
}

fn encode_part(causal: &Causal, experiments: &[Experiment]) -> Vec<u8> {
    let mut out = fields::Writer::default();
    out.put_number(
        BY as u64,
        match causal.by {
            By::Line => 1,
            By::Function => 2,
        },
    );
    out.put_number(
        BACKEND as u64,
        match causal.backend {
            Backend::Unknown => 0,
            Backend::Perf => 1,
            Backend::Timer => 2,
            Backend::Mixed => 3,
        },
    );
    out.put_number(PERIOD as u64, causal.period_ns);
    let s = &causal.samples;
    let mut samples = Vec::new();
    for n in [s.total, s.out_of_scope, s.unresolved, s.cut, s.missed] {
        varint::put(&mut samples, n);
    }
    out.put(SAMPLES as u64, &samples);
    let mut points = Vec::new();
    varint::put(&mut points, causal.points.len() as u64);
    for point in &causal.points {
        varint::put_bytes(&mut points, point.name.as_bytes());
        points.push(match point.kind {
            PointKind::Throughput => 1,
            PointKind::Latency => 2,
            PointKind::EndToEnd => 3,
            PointKind::Sampled => 4,
        });
        varint::put(&mut points, point.visits);
    }
    out.put(POINTS as u64, &points);
    let mut targets = Vec::new();
    varint::put(&mut targets, causal.targets.len() as u64);
    for target in &causal.targets {
        for text in [&target.name, &target.function, &target.file] {
            varint::put_bytes(&mut targets, text.as_bytes());
        }
        varint::put(&mut targets, target.line.into());
        varint::put(&mut targets, target.samples);
    }
    out.put(TARGETS as u64, &targets);
    out.put_number(EXPERIMENTS_TOTAL as u64, causal.experiments.len() as u64);
    out.put_number(SPAN as u64, causal.span_ns);
    out.put_number(EXPERIMENTS as u64, experiments.len() as u64);
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    let mut start_before = 0;
    for e in experiments {
        let [start, duration, delay, unpaid, target, speedup, selected, samples, cpu, progress] =
            &mut columns;
        varint::put_step(start, start_before, e.start_ns);
        start_before = e.start_ns;
        varint::put(duration, e.duration_ns);
        varint::put(delay, e.delay_ns);
        varint::put(unpaid, e.unpaid_ns);
        varint::put(target, e.target.into());
        varint::put(speedup, e.speedup_permille.into());
        varint::put(selected, e.selected_samples);
        varint::put(samples, e.samples);
        varint::put(cpu, e.cpu_ns);
        varint::put(progress, e.progress.len() as u64);
        for p in &e.progress {
            for n in [p.visits, p.departures, p.in_flight_ns] {
                varint::put(progress, n);
            }
        }
    }
    for (i, column) in columns.iter().enumerate() {
        out.put((FIRST_COLUMN + i) as u64, column);
    }
    out.finish()
}

/// Reads one section.
pub fn decode(payload: &[u8]) -> Decode<Part> {
    let fields = fields::Reader::<TAGS>::new(payload, known)?;
    let mut samples = fields.get(SAMPLES)?;
    let counts = SampleCounts {
        total: samples.get()?,
        out_of_scope: samples.get()?,
        unresolved: samples.get()?,
        cut: samples.get()?,
        missed: samples.get()?,
    };
    samples.end()?;
    Ok(Part {
        causal: Causal {
            by: match fields.number(BY)? {
                1 => By::Line,
                2 => By::Function,
                _ => return Err(Bad("its kind of target is not known")),
            },
            backend: match fields.number(BACKEND)? {
                0 => Backend::Unknown,
                1 => Backend::Perf,
                2 => Backend::Timer,
                3 => Backend::Mixed,
                _ => return Err(Bad("its way of sampling is not known")),
            },
            period_ns: fields.number(PERIOD)?,
            span_ns: fields.number(SPAN)?,
            samples: counts,
            points: get_points(fields.get(POINTS)?)?,
            targets: get_targets(fields.get(TARGETS)?)?,
            experiments: get_experiments(&fields)?,
        },
        experiments_total: fields.number(EXPERIMENTS_TOTAL)?,
        unknown_fields: fields.unknown(),
    })
}

fn get_points(mut cursor: Cursor<'_>) -> Decode<Vec<ProgressPoint>> {
    let count = cursor.count(POINT_BYTES_MIN)?;
    let mut points = Vec::with_capacity(count);
    for _ in 0..count {
        let name = cursor.text()?.to_owned();
        let kind = match cursor.get()? {
            1 => PointKind::Throughput,
            2 => PointKind::Latency,
            3 => PointKind::EndToEnd,
            4 => PointKind::Sampled,
            _ => return Err(Bad("a kind of progress point is not known")),
        };
        points.push(ProgressPoint { name, kind, visits: cursor.get()? });
    }
    cursor.end()?;
    Ok(points)
}

fn get_targets(mut cursor: Cursor<'_>) -> Decode<Vec<Target>> {
    let count = cursor.count(TARGET_BYTES_MIN)?;
    let mut targets = Vec::with_capacity(count);
    for _ in 0..count {
        targets.push(Target {
            name: cursor.text()?.to_owned(),
            function: cursor.text()?.to_owned(),
            file: cursor.text()?.to_owned(),
            line: cursor.get_u32()?,
            samples: cursor.get()?,
        });
    }
    cursor.end()?;
    Ok(targets)
}

fn get_experiments(fields: &fields::Reader<'_, TAGS>) -> Decode<Vec<Experiment>> {
    let mut columns = [Cursor::default(); COLUMNS];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = fields.get(FIRST_COLUMN + i)?;
    }
    let count = usize::try_from(fields.number(EXPERIMENTS)?)
        .ok()
        .filter(|&count| columns.iter().all(|column| column.left() >= count))
        .ok_or(Bad("more experiments are announced than there are bytes"))?;
    let [start, duration, delay, unpaid, target, speedup, selected, samples, cpu, progress] = &mut columns;
    let mut experiments = Vec::with_capacity(count);
    let mut start_before = 0;
    for _ in 0..count {
        start_before = start.step(start_before)?;
        let points = progress.count(PROGRESS_BYTES_MIN)?;
        let mut list = Vec::with_capacity(points);
        for _ in 0..points {
            list.push(Progress {
                visits: progress.get()?,
                departures: progress.get()?,
                in_flight_ns: progress.get()?,
            });
        }
        experiments.push(Experiment {
            start_ns: start_before,
            duration_ns: duration.get()?,
            delay_ns: delay.get()?,
            unpaid_ns: unpaid.get()?,
            target: target.get_u32()?,
            speedup_permille: speedup.get_u32()?,
            selected_samples: selected.get()?,
            samples: samples.get()?,
            cpu_ns: cpu.get()?,
            progress: list,
        });
    }
    columns.iter().try_for_each(Cursor::end)?;
    Ok(experiments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_comes_back() {
        let point = |name: &str, kind, visits| ProgressPoint { name: name.into(), kind, visits };
        let target = |name: &str, line, samples| Target {
            name: name.into(),
            function: "f".into(),
            file: "a.c".into(),
            line,
            samples,
        };
        let mut causal = Causal {
            backend: Backend::Mixed,
            period_ns: 1_000_000,
            span_ns: 5,
            samples: SampleCounts { total: 9, out_of_scope: 1, unresolved: 2, cut: 3, missed: 4 },
            points: vec![point("p", PointKind::Throughput, 7), point("q", PointKind::Latency, u64::MAX)],
            targets: vec![target("a.c:1", 1, 5), target("a.c:2", 2, 0)],
            ..Causal::new(By::Line)
        };
        for i in 0..20_000u64 {
            let progress =
                vec![Progress { visits: i, departures: i / 2, in_flight_ns: i * 7 }; (i % 3) as usize];
            causal.experiments.push(Experiment {
                start_ns: i * 110,
                duration_ns: 100 + i,
                delay_ns: i,
                unpaid_ns: 1,
                target: (i % 2) as u32,
                speedup_permille: (i % 5 * 250) as u32,
                selected_samples: i % 40,
                samples: 40,
                cpu_ns: 3 * i,
                progress,
            });
        }
        assert_eq!(causal.validate(), Ok(()));
        let mut back: Option<Causal> = None;
        for payload in encode(&causal) {
            let part = decode(&payload).unwrap();
            assert_eq!((part.experiments_total, part.unknown_fields), (20_000, 0));
            match &mut back {
                None => back = Some(part.causal),
                Some(back) => back.experiments.extend(part.causal.experiments),
            }
        }
        assert_eq!(back, Some(causal));
    }
}
