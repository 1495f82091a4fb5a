//! Growth data as section payloads: columns of small numbers.
//!
//! Routines and points are stored column by column, each column a tagged field, so that like stands next to
//! like and a later version can add columns. Most points stand for one activation, or for activations that all
//! cost the same; so costs are stored as the difference from what the point's other columns suggest, which is
//! then 0:
//! ```text
//! n         n[i] - n[i-1] - 1        (ascending by construction)
//! min       min[i] - min[i-1]
//! max       max - min
//! sum       sum - middle(calls, min, max)
//! sumsq     sumsq - squares(calls, min, max, sum)
//! real_sum  real_sum - sum
//! ```
//! and the same for self costs. All differences wrap, so every value can be stored, however odd.
//!
//! A run is split into sections at routine boundaries. Each section repeats what concerns the whole run, so
//! that any one of them is useful when the others are lost.
//!
//! No column is left out when it is all zero: every point takes at least one byte in each, which is what bounds
//! the memory that a small file can ask for.

use crate::fields;
use crate::growth::{Composition, Cost, Growth, Metric, Point, Routine, ThreadCost, ThreadPoints};
use crate::varint::{self, Bad, Cursor, Decode};

/// A section is closed once it holds this many points: few enough that damage costs little and that the
/// decompressed columns (20 to 40 bytes a point) stay small beside the points themselves.
const POINTS_PER_SECTION: usize = 1 << 16;
/// ... or once its texts have this many bytes.
const TEXT_BYTES_PER_SECTION: usize = 1 << 22;
/// Least bytes that a routine takes in the routine columns.
const ROUTINE_BYTES_MIN: usize = 9;

// Tags of what concerns the whole run.
const METRIC: usize = 1;
const COST: usize = 2;
const CELL_BYTES: usize = 3;
const COST_TOTAL: usize = 4;
const SIZE_ERROR: usize = 5;
const THREADS: usize = 6;
const ROUTINES_TOTAL: usize = 7;
// Tags of columns with one entry per routine of this section.
const ROUTINES: usize = 16;
const FIRST_ROUTINE_COLUMN: usize = 17;
const ROUTINE_COLUMNS: usize = 9;
// Tags of columns with one entry per point.
const FIRST_POINT_COLUMN: usize = 32;
const POINT_COLUMNS: usize = 15;
const TAGS: usize = FIRST_POINT_COLUMN + POINT_COLUMNS;

fn known(tag: usize) -> bool {
    (METRIC..=ROUTINES_TOTAL).contains(&tag)
        || (ROUTINES..FIRST_ROUTINE_COLUMN + ROUTINE_COLUMNS).contains(&tag)
        || (FIRST_POINT_COLUMN..TAGS).contains(&tag)
}

/// What one section tells.
#[derive(Debug)]
pub struct Part {
    /// The run's facts with the routines of this section.
    pub growth: Growth,
    /// Routines in all sections of the run.
    pub routines_total: u64,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payloads of a run's data sections, at least one.
pub fn encode(growth: &Growth) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut rest = growth.routines.as_slice();
    loop {
        let (mut points, mut text, mut len) = (0, 0, 0);
        for routine in rest {
            if points >= POINTS_PER_SECTION || text >= TEXT_BYTES_PER_SECTION {
                break;
            }
            points += points_of(routine);
            text += routine.name.len() + routine.mangled.len() + routine.object.len() + routine.file.len();
            len += 1;
        }
        let (these, later) = rest.split_at(len);
        payloads.push(encode_part(growth, these));
        rest = later;
        if rest.is_empty() {
            return payloads;
        }
    }
}

/// How many points a routine takes in a section.
fn points_of(routine: &Routine) -> usize {
    routine.points.len() + routine.by_thread.iter().map(|t| t.points.len()).sum::<usize>()
}

fn encode_part(growth: &Growth, routines: &[Routine]) -> Vec<u8> {
    let mut by_routine: [Vec<u8>; ROUTINE_COLUMNS] = Default::default();
    // Most numbers take one byte.
    let points = routines.iter().map(points_of).sum();
    let mut by_point: [Vec<u8>; POINT_COLUMNS] = std::array::from_fn(|_| Vec::with_capacity(points));
    for routine in routines {
        put_routine(&mut by_routine, routine);
        put_points(&mut by_point, &routine.points);
        routine.by_thread.iter().for_each(|t| put_points(&mut by_point, &t.points));
    }
    let mut threads = Vec::new();
    varint::put(&mut threads, growth.threads.len() as u64);
    for thread in &growth.threads {
        varint::put(&mut threads, thread.id);
        varint::put(&mut threads, thread.cost_total);
    }
    let mut out = fields::Writer::default();
    out.put_number(
        METRIC as u64,
        match growth.metric {
            Metric::Rms => 1,
            Metric::Trms => 2,
        },
    );
    out.put_number(
        COST as u64,
        match growth.cost {
            Cost::Blocks => 1,
            Cost::Instructions => 2,
            Cost::MemoryAccesses => 3,
            Cost::TimeNs => 4,
        },
    );
    out.put_number(CELL_BYTES as u64, growth.cell_bytes.into());
    out.put_number(COST_TOTAL as u64, growth.cost_total);
    out.put(SIZE_ERROR as u64, &growth.size_error.to_bits().to_le_bytes());
    out.put(THREADS as u64, &threads);
    out.put_number(ROUTINES_TOTAL as u64, growth.routines.len() as u64);
    out.put_number(ROUTINES as u64, routines.len() as u64);
    let columns = by_routine.iter().enumerate().map(|(i, column)| (FIRST_ROUTINE_COLUMN + i, column));
    let points = by_point.iter().enumerate().map(|(i, column)| (FIRST_POINT_COLUMN + i, column));
    columns.chain(points).for_each(|(tag, column)| out.put(tag as u64, column));
    out.finish()
}

fn put_routine(columns: &mut [Vec<u8>; ROUTINE_COLUMNS], routine: &Routine) {
    let [name, mangled, object, address, file, line, threads, points, by_thread] = columns;
    varint::put_bytes(name, routine.name.as_bytes());
    // The length is one more than it is; 0 stands for "as the readable name".
    if routine.mangled == routine.name {
        varint::put(mangled, 0);
    } else {
        varint::put(mangled, routine.mangled.len() as u64 + 1);
        mangled.extend_from_slice(routine.mangled.as_bytes());
    }
    varint::put_bytes(object, routine.object.as_bytes());
    // The address is one more than it is; 0 stands for "not known".
    varint::put_wide(address, routine.address.map_or(0, |address| u128::from(address) + 1));
    varint::put_bytes(file, routine.file.as_bytes());
    varint::put(line, routine.line.into());
    varint::put(threads, routine.threads.len() as u64);
    routine.threads.iter().for_each(|&id| varint::put(threads, id));
    varint::put(points, routine.points.len() as u64);
    varint::put(by_thread, routine.by_thread.len() as u64);
    for list in &routine.by_thread {
        varint::put(by_thread, list.thread);
        varint::put(by_thread, list.points.len() as u64);
    }
}

fn put_points(columns: &mut [Vec<u8>; POINT_COLUMNS], points: &[Point]) {
    let [
        n,
        calls,
        min,
        max,
        sum,
        sumsq,
        real,
        self_sum,
        self_min,
        self_max,
        self_sumsq,
        ind,
        ext,
        s_ind,
        s_ext,
    ] = columns;
    let mut next_n = 0;
    let (mut min_before, mut self_before) = (0, 0);
    for p in points {
        varint::put(n, p.n.wrapping_sub(next_n));
        next_n = p.n.wrapping_add(1);
        varint::put(calls, p.calls);
        varint::put_step(min, min_before, p.min);
        min_before = p.min;
        varint::put(max, p.max.wrapping_sub(p.min));
        varint::put_step(sum, middle(p.calls, p.min, p.max), p.sum);
        varint::put_step_wide(sumsq, squares(p.calls, p.min, p.max, p.sum), p.sumsq);
        varint::put_step(real, p.sum, p.real_sum);
        varint::put_step(self_min, self_before, p.self_min);
        self_before = p.self_min;
        varint::put(self_max, p.self_max.wrapping_sub(p.self_min));
        varint::put_step(self_sum, middle(p.calls, p.self_min, p.self_max), p.self_sum);
        varint::put_step_wide(self_sumsq, squares(p.calls, p.self_min, p.self_max, p.self_sum), p.self_sumsq);
        varint::put(ind, p.input.thread_induced);
        varint::put(ext, p.input.external);
        varint::put(s_ind, p.input.self_thread_induced);
        varint::put(s_ext, p.input.self_external);
    }
}

/// Reads one section.
pub fn decode(payload: &[u8]) -> Decode<Part> {
    let fields = fields::Reader::<TAGS>::new(payload, known)?;
    let metric = match fields.number(METRIC)? {
        1 => Metric::Rms,
        2 => Metric::Trms,
        _ => return Err(Bad("its input metric is not known")),
    };
    let cost = match fields.number(COST)? {
        1 => Cost::Blocks,
        2 => Cost::Instructions,
        3 => Cost::MemoryAccesses,
        4 => Cost::TimeNs,
        _ => return Err(Bad("its cost is not known")),
    };
    let size_error = fields.get(SIZE_ERROR)?.take(8)?.try_into().map_err(|_| Bad("a field is missing"))?;
    let cell_bytes = u32::try_from(fields.number(CELL_BYTES)?).map_err(|_| Bad("a number is too large"))?;
    Ok(Part {
        growth: Growth {
            metric,
            cost,
            cell_bytes,
            cost_total: fields.number(COST_TOTAL)?,
            size_error: f64::from_bits(u64::from_le_bytes(size_error)),
            threads: get_threads(fields.get(THREADS)?)?,
            routines: get_routines(&fields)?,
        },
        routines_total: fields.number(ROUTINES_TOTAL)?,
        unknown_fields: fields.unknown(),
    })
}

fn get_threads(mut cursor: Cursor<'_>) -> Decode<Vec<ThreadCost>> {
    let count = cursor.count(2)?;
    let threads =
        (0..count).map(|_| Ok(ThreadCost { id: cursor.get()?, cost_total: cursor.get()? })).collect();
    cursor.end()?;
    threads
}

fn get_routines(fields: &fields::Reader<'_, TAGS>) -> Decode<Vec<Routine>> {
    let mut columns = [Cursor::default(); ROUTINE_COLUMNS];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = fields.get(FIRST_ROUTINE_COLUMN + i)?;
    }
    let mut points = Points([Cursor::default(); POINT_COLUMNS]);
    for (i, column) in points.0.iter_mut().enumerate() {
        *column = fields.get(FIRST_POINT_COLUMN + i)?;
    }
    let count = usize::try_from(fields.number(ROUTINES)?)
        .ok()
        .filter(|&count| columns.iter().all(|column| column.left() >= count))
        .ok_or(Bad("more routines are announced than there are bytes"))?;
    const { assert!(ROUTINE_COLUMNS == ROUTINE_BYTES_MIN) };
    let mut routines = Vec::with_capacity(count);
    for _ in 0..count {
        routines.push(get_routine(&mut columns, &mut points)?);
    }
    columns.iter().chain(&points.0).try_for_each(Cursor::end)?;
    Ok(routines)
}

fn get_routine<'a>(columns: &mut [Cursor<'a>; ROUTINE_COLUMNS], points: &mut Points<'a>) -> Decode<Routine> {
    let [name, mangled, object, address, file, line, threads, lens, by_thread] = columns;
    let name = name.text()?;
    let mangled = match mangled.get()? {
        0 => name,
        more => {
            let len = usize::try_from(more - 1).map_err(|_| Bad("bytes are missing"))?;
            std::str::from_utf8(mangled.take(len)?).map_err(|_| Bad("a text is not UTF-8"))?
        }
    };
    let address = match address.get_wide()? {
        0 => None,
        more => Some(u64::try_from(more - 1).map_err(|_| Bad("a number is too large"))?),
    };
    let thread_count = threads.count(1)?;
    let threads = (0..thread_count).map(|_| threads.get()).collect::<Decode<_>>()?;
    let own = points.list(lens.get()?)?;
    let list_count = by_thread.count(2)?;
    let mut lists = Vec::with_capacity(list_count);
    for _ in 0..list_count {
        lists.push(ThreadPoints { thread: by_thread.get()?, points: points.list(by_thread.get()?)? });
    }
    Ok(Routine {
        name: name.to_owned(),
        mangled: mangled.to_owned(),
        object: object.text()?.to_owned(),
        address,
        file: file.text()?.to_owned(),
        line: line.get_u32()?,
        threads,
        points: own,
        by_thread: lists,
    })
}

/// The point columns, read in step.
struct Points<'a>([Cursor<'a>; POINT_COLUMNS]);

impl Points<'_> {
    fn list(&mut self, len: u64) -> Decode<Vec<Point>> {
        let len = usize::try_from(len)
            .ok()
            .filter(|&len| self.0.iter().all(|column| column.left() >= len))
            .ok_or(Bad("more points are announced than there are bytes"))?;
        let [
            n,
            calls,
            min,
            max,
            sum,
            sumsq,
            real,
            self_sum,
            self_min,
            self_max,
            self_sumsq,
            ind,
            ext,
            s_ind,
            s_ext,
        ] = &mut self.0;
        let mut points = Vec::with_capacity(len);
        let mut n_least = Some(0u64);
        let (mut min_before, mut self_before) = (0, 0);
        for _ in 0..len {
            let mut p = Point {
                n: n_least
                    .zip(Some(n.get()?))
                    .and_then(|(least, step)| least.checked_add(step))
                    .ok_or(Bad("sizes of points are not ascending"))?,
                calls: calls.get()?,
                min: min.step(min_before)?,
                self_min: self_min.step(self_before)?,
                input: Composition {
                    thread_induced: ind.get()?,
                    external: ext.get()?,
                    self_thread_induced: s_ind.get()?,
                    self_external: s_ext.get()?,
                },
                ..Point::default()
            };
            n_least = p.n.checked_add(1);
            min_before = p.min;
            self_before = p.self_min;
            p.max = p.min.wrapping_add(max.get()?);
            p.sum = sum.step(middle(p.calls, p.min, p.max))?;
            p.sumsq = sumsq.step_wide(squares(p.calls, p.min, p.max, p.sum))?;
            p.real_sum = real.step(p.sum)?;
            p.self_max = p.self_min.wrapping_add(self_max.get()?);
            p.self_sum = self_sum.step(middle(p.calls, p.self_min, p.self_max))?;
            p.self_sumsq = self_sumsq.step_wide(squares(p.calls, p.self_min, p.self_max, p.self_sum))?;
            points.push(p);
        }
        Ok(points)
    }
}

/// The sum that `calls` costs between `min` and `max` would have if those between lay in the middle: right for
/// one and two calls, and when all costs are equal. Part of the format: it must not change.
fn middle(calls: u64, min: u64, max: u64) -> u64 {
    match calls {
        1 => min,
        _ => {
            let half = min.wrapping_add(max.wrapping_sub(min) / 2);
            min.wrapping_add(max).wrapping_add(calls.wrapping_sub(2).wrapping_mul(half))
        }
    }
}

/// The same for the sum of squares. Part of the format: it must not change.
fn squares(calls: u64, min: u64, max: u64, sum: u64) -> u128 {
    let square = |x: u64| u128::from(x) * u128::from(x);
    match calls {
        1 => square(min),
        2 => square(min).wrapping_add(square(max)),
        // The mean squared, calls times; exact when all costs are equal.
        _ => u128::from(sum / calls.max(1)).wrapping_mul(u128::from(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Growth {
        let odd = Point {
            n: u64::MAX,
            calls: 3,
            min: 9,
            max: 2, // less than min: odd, but a value like any other
            sum: u64::MAX,
            sumsq: u128::MAX,
            real_sum: 0,
            self_sum: 1,
            self_min: u64::MAX,
            self_max: 0,
            self_sumsq: u128::MAX / 3,
            input: Composition {
                thread_induced: 1,
                external: u64::MAX,
                self_thread_induced: 2,
                self_external: 3,
            },
        };
        let plain = Routine {
            name: "f".into(),
            mangled: "_Z1fv".into(),
            object: "/bin/p".into(),
            address: Some(u64::MAX),
            file: "a.c".into(),
            line: 7,
            threads: vec![1, 900],
            points: vec![Point::single(0, 5, 1), Point::single(1, 6, 2), odd],
            by_thread: vec![
                ThreadPoints { thread: 1, points: vec![Point::single(0, 5, 1), odd] },
                ThreadPoints { thread: 900, points: vec![Point::single(1, 6, 2)] },
            ],
        };
        let bare = Routine { name: "ü".into(), mangled: "ü".into(), ..Routine::default() };
        let mut growth = Growth::new(Metric::Trms, Cost::TimeNs, 16);
        growth.cost_total = 99;
        growth.size_error = 0.25;
        growth.threads = vec![ThreadCost { id: 1, cost_total: 90 }, ThreadCost { id: 900, cost_total: 9 }];
        growth.routines = vec![plain, bare];
        growth
    }

    #[test]
    fn every_field_comes_back() {
        let growth = sample();
        let payloads = encode(&growth);
        assert_eq!(payloads.len(), 1);
        let part = decode(&payloads[0]).unwrap();
        assert_eq!(part.growth, growth);
        assert_eq!((part.routines_total, part.unknown_fields), (2, 0));
    }

    #[test]
    fn large_runs_are_split_between_routines() {
        let mut growth = Growth::new(Metric::Rms, Cost::Blocks, 4);
        for i in 0..5u64 {
            growth.routines.push(Routine {
                name: format!("f{i}"),
                points: (0..40_000).map(|n| Point::single(n, n * 3, n)).collect(),
                ..Routine::default()
            });
        }
        let parts: Vec<_> = encode(&growth).iter().map(|p| decode(p).unwrap()).collect();
        assert_eq!(parts.iter().map(|p| p.growth.routines.len()).collect::<Vec<_>>(), [2, 2, 1]);
        assert!(parts.iter().all(|p| p.routines_total == 5));
        let routines: Vec<_> = parts.into_iter().flat_map(|p| p.growth.routines).collect();
        assert_eq!(routines, growth.routines);
    }

    #[test]
    fn a_run_without_routines_has_one_section() {
        let growth = Growth::new(Metric::Rms, Cost::Instructions, 4);
        let payloads = encode(&growth);
        assert_eq!(decode(&payloads[0]).unwrap().growth, growth);
    }

    #[test]
    fn every_cut_and_every_altered_byte_is_an_error_or_other_data_but_no_panic() {
        let payload = encode(&sample()).remove(0);
        for len in 0..payload.len() {
            assert!(decode(&payload[..len]).is_err(), "cut at {len}");
        }
        for at in 0..payload.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut altered = payload.clone();
                altered[at] = value;
                // Errors are common, other data is possible, a panic is the failure.
                let _ = decode(&altered);
            }
        }
    }
}
