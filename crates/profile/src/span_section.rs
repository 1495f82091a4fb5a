//! Work and span as section payloads: numbers of the whole run, sites as columns, the critical path.
//!
//! A run is split into sections at site boundaries; each repeats the numbers of the whole run. The path and the native
//! runs stand in the first one only. Every site takes at least one byte in each column, which bounds the memory that a
//! small file can ask for.

use crate::fields;
use crate::span::{Measure, Measured, Measures, Model, Site, SiteKind, Span, Step, Unit};
use crate::varint::{self, Bad, Cursor, Decode};

/// A section is closed once it holds this many sites, or this many bytes of text.
const SITES_PER_SECTION: usize = 1 << 14;
const TEXT_BYTES_PER_SECTION: usize = 1 << 22;

const MODEL: usize = 1;
const UNIT: usize = 2;
const NUMBERS: usize = 3;
const PATH: usize = 4;
const MEASURED: usize = 5;
const SITES_TOTAL: usize = 6;
/// How much native runs differed; not in older files.
const SPREAD: usize = 7;
/// Not in older files either.
const FORK_EXTRA: usize = 8;
const SITES: usize = 16;
const FIRST_COLUMN: usize = 17;
/// Texts, line, kind, 18 sums, 3 what-ifs.
const COLUMNS: usize = 3 + 2 + 18 + 3;
const TAGS: usize = FIRST_COLUMN + COLUMNS;
const STEP_BYTES_MIN: usize = 4;
const MEASURED_BYTES_MIN: usize = 2;

fn known(tag: usize) -> bool {
    (MODEL..=FORK_EXTRA).contains(&tag) || (SITES..TAGS).contains(&tag)
}

/// What one section tells.
#[derive(Debug)]
pub struct Part {
    /// The run's numbers with the sites of this section.
    pub span: Span,
    /// Sites in all sections of the run.
    pub sites_total: u64,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payloads of a run's data sections, at least one.
pub fn encode(span: &Span) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut rest = span.sites.as_slice();
    loop {
        let (mut text, mut len) = (0, 0);
        for s in rest.iter().take(SITES_PER_SECTION) {
            if text >= TEXT_BYTES_PER_SECTION {
                break;
            }
            text += s.file.len() + s.function.len() + s.callee.len();
            len += 1;
        }
        let (these, later) = rest.split_at(len);
        payloads.push(encode_part(span, these, payloads.is_empty()));
        rest = later;
        if rest.is_empty() {
            return payloads;
        }
    }
}

fn encode_part(span: &Span, sites: &[Site], first: bool) -> Vec<u8> {
    let mut numbers = Vec::new();
    for n in head(span) {
        varint::put(&mut numbers, n);
    }
    let [mut path, mut measured, mut spread] = [const { Vec::new() }; 3];
    let steps = if first { span.path.as_slice() } else { &[] };
    varint::put(&mut path, steps.len() as u64);
    for s in steps {
        [s.site, s.span, s.own, s.strands].iter().for_each(|&n| varint::put(&mut path, n));
    }
    let runs = if first { span.measured.as_slice() } else { &[] };
    varint::put(&mut measured, runs.len() as u64);
    for m in runs {
        varint::put(&mut measured, m.processors);
        varint::put(&mut measured, m.wall_ns);
        [m.range_ns.0, m.range_ns.1, m.runs].iter().for_each(|&n| varint::put(&mut spread, n));
    }
    let mut columns: [Vec<u8>; COLUMNS] = std::array::from_fn(|_| Vec::new());
    for s in sites {
        let [file, function, callee, numbers @ ..] = &mut columns;
        varint::put_bytes(file, s.file.as_bytes());
        varint::put_bytes(function, s.function.as_bytes());
        varint::put_bytes(callee, s.callee.as_bytes());
        let kind = match s.kind {
            SiteKind::Call => 0,
            SiteKind::Spawn => 1,
            SiteKind::Loop => 2,
            SiteKind::Sampled => 3,
        };
        let sums = [&s.on_work, &s.on_span].into_iter().flat_map(|m| [m.site, m.caller, m.local]);
        let sums = sums.flat_map(|m| [m.count, m.work, m.span]);
        let all = [u64::from(s.line), kind].into_iter().chain(sums).chain(s.faster);
        numbers.iter_mut().zip(all).for_each(|(column, n)| varint::put(column, n));
    }
    let mut out = fields::Writer::default();
    out.put_number(MODEL as u64, span.model as u64);
    out.put_number(UNIT as u64, span.unit as u64);
    out.put(NUMBERS as u64, &numbers);
    out.put(PATH as u64, &path);
    out.put(MEASURED as u64, &measured);
    out.put_number(SITES_TOTAL as u64, span.sites.len() as u64);
    out.put(SPREAD as u64, &spread);
    out.put_number(FORK_EXTRA as u64, span.fork_extra_milli);
    out.put_number(SITES as u64, sites.len() as u64);
    for (i, column) in columns.iter().enumerate() {
        out.put((FIRST_COLUMN + i) as u64, column);
    }
    out.finish()
}

/// The numbers of the whole run.
pub fn head(s: &Span) -> [u64; 7] {
    [s.work, s.span, s.burdened_span, s.burden, s.spawns, s.threads, s.repaired]
}

/// Reads one section.
pub fn decode(payload: &[u8]) -> Decode<Part> {
    let fields = fields::Reader::<TAGS>::new(payload, known)?;
    let model = match fields.number(MODEL)? {
        0 => Model::Serial,
        1 => Model::Rayon,
        2 => Model::OpenMp,
        3 => Model::Cilk,
        _ => return Err(Bad("its parallel runtime is not known")),
    };
    let unit = match fields.number(UNIT)? {
        0 => Unit::Ns,
        1 => Unit::Instructions,
        2 => Unit::Units,
        _ => return Err(Bad("its unit is not known")),
    };
    let mut numbers = fields.get(NUMBERS)?;
    let mut next = || numbers.get();
    let mut span = Span {
        model,
        unit,
        work: next()?,
        span: next()?,
        burdened_span: next()?,
        burden: next()?,
        spawns: next()?,
        threads: next()?,
        repaired: next()?,
        fork_extra_milli: fields.number(FORK_EXTRA).unwrap_or(0),
        ..Span::default()
    };
    numbers.end()?;
    let mut path = fields.get(PATH)?;
    for _ in 0..path.count(STEP_BYTES_MIN)? {
        span.path.push(Step { site: path.get()?, span: path.get()?, own: path.get()?, strands: path.get()? });
    }
    path.end()?;
    let mut measured = fields.get(MEASURED)?;
    for _ in 0..measured.count(MEASURED_BYTES_MIN)? {
        let (processors, wall_ns) = (measured.get()?, measured.get()?);
        span.measured.push(Measured { processors, wall_ns, range_ns: (wall_ns, wall_ns), runs: 0 });
    }
    measured.end()?;
    if let Ok(mut spread) = fields.get(SPREAD) {
        for m in &mut span.measured {
            (m.range_ns, m.runs) = ((spread.get()?, spread.get()?), spread.get()?);
        }
        spread.end()?;
    }
    span.sites = get_sites(&fields)?;
    Ok(Part { span, sites_total: fields.number(SITES_TOTAL)?, unknown_fields: fields.unknown() })
}

fn get_sites(fields: &fields::Reader<'_, TAGS>) -> Decode<Vec<Site>> {
    let mut columns = [Cursor::default(); COLUMNS];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = fields.get(FIRST_COLUMN + i)?;
    }
    let count = usize::try_from(fields.number(SITES)?)
        .ok()
        .filter(|&count| columns.iter().all(|column| column.left() >= count))
        .ok_or(Bad("more call sites are announced than there are bytes"))?;
    let mut sites = Vec::with_capacity(count);
    for _ in 0..count {
        sites.push(get_site(&mut columns)?);
    }
    columns.iter().try_for_each(Cursor::end)?;
    Ok(sites)
}

fn get_site(columns: &mut [Cursor<'_>; COLUMNS]) -> Decode<Site> {
    let [file, function, callee, line, kind, numbers @ ..] = columns;
    let (file, function, callee) = (file.text()?, function.text()?, callee.text()?);
    let line = line.get_u32()?;
    let kind = match kind.get()? {
        0 => SiteKind::Call,
        1 => SiteKind::Spawn,
        2 => SiteKind::Loop,
        3 => SiteKind::Sampled,
        _ => return Err(Bad("a kind of call site is not known")),
    };
    let mut numbers = numbers.iter_mut();
    let mut next = || numbers.next().map_or(Err(Bad("a column is missing")), Cursor::get);
    let mut measure = || Ok(Measure { count: next()?, work: next()?, span: next()? });
    let mut measures = || Ok(Measures { site: measure()?, caller: measure()?, local: measure()? });
    let (on_work, on_span) = (measures()?, measures()?);
    let faster = [next()?, next()?, next()?];
    Ok(Site {
        file: file.to_owned(),
        line,
        function: function.to_owned(),
        callee: callee.to_owned(),
        kind,
        on_work,
        on_span,
        faster,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_come_back() {
        let measure = Measure { count: 3, work: 70_000, span: 500 };
        let measures = Measures { site: measure, caller: Measure::default(), local: measure };
        let site = |line| Site {
            file: "src/main.rs".into(),
            line,
            function: "f".into(),
            callee: "g".into(),
            kind: SiteKind::Loop,
            on_work: measures,
            on_span: Measures::default(),
            faster: [1, 2, u64::MAX],
        };
        let span = Span {
            model: Model::Cilk,
            unit: Unit::Instructions,
            work: 1 << 60,
            span: 12,
            burdened_span: 13,
            burden: 5,
            fork_extra_milli: 740,
            spawns: 6,
            threads: 7,
            repaired: 8,
            sites: (0..SITES_PER_SECTION as u32 + 3).map(site).collect(),
            path: vec![Step { site: 1, span: 2, own: 1, strands: 9 }],
            measured: vec![Measured { processors: 2, wall_ns: 77, range_ns: (70, 90), runs: 5 }],
        };
        let payloads = encode(&span);
        assert_eq!(payloads.len(), 2);
        let parts: Vec<Part> = payloads.iter().map(|p| decode(p).unwrap()).collect();
        assert_eq!(parts[1].sites_total, span.sites.len() as u64);
        let mut whole = parts[0].span.clone();
        whole.sites.extend(parts[1].span.sites.iter().cloned());
        assert_eq!(whole, span);
        assert!(decode(&payloads[1][..payloads[1].len() - 1]).is_err());
    }
}
