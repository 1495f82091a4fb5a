//! Makes hostile files out of good ones, for the fuzzer (`examples/fuzz_reader.rs`) and its short form in the
//! tests.
//!
//! Plain mutation of bytes never gets past a checksum. So a file is taken apart into sections first, and most
//! mutations happen inside (header fields, decompressed columns, compressed bytes, order of sections), after which
//! the checksums are made right again. Everything follows from the seed: a failure can be run again.

use profile::{Composition, Cost, Data, Exit, Growth, Metric, Point, Profile, Program, Routine, Run, RunId};
use profile::{Count, Function, Tally, ThreadTally};
use profile::{Opaque, OpaqueSection, ThreadCost, ThreadPoints};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

const FILE_HEADER_LEN: usize = 24;
const HEADER_LEN: usize = 64;

/// A small generator of pseudo-random numbers (splitmix64).
pub struct Random(pub u64);

impl Random {
    /// Next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    /// Numbers that break things more often than others.
    fn odd(&mut self) -> u64 {
        let shift = self.below(64);
        match self.below(6) {
            0 => u64::MAX,
            1 => 1 << shift,
            2 => (1 << shift) - 1,
            3 => u64::from(u32::MAX) + self.below(3) as u64,
            4 => self.below(20) as u64,
            _ => self.next(),
        }
    }
}

/// A section, taken out of its file.
#[derive(Clone)]
struct Piece {
    header: [u8; HEADER_LEN],
    stored: Vec<u8>,
}

/// Good files of several shapes.
pub fn seeds() -> Vec<Vec<u8>> {
    let point = |n: u64, calls: u64| Point {
        calls,
        max: 3 * n + 7,
        sum: calls * (2 * n + 3),
        input: Composition { thread_induced: n / 2, external: 1, self_thread_induced: 0, self_external: 1 },
        ..Point::single(n, 2 * n, n)
    };
    let routine = |i: u64, points: u64| {
        let points: Vec<_> = (0..points).map(|k| point(k * (i + 1), 1 + k % 3)).collect();
        Routine {
            name: format!("routine<{i}>"),
            mangled: format!("_Z7routine{i}v"),
            object: "/usr/lib/libexample.so.1".into(),
            address: i.is_multiple_of(2).then_some(0x1000 + 64 * i),
            file: "src/example.c".into(),
            line: 10 + i as u32,
            threads: vec![1],
            by_thread: if i.is_multiple_of(3) {
                vec![ThreadPoints { thread: 1, points: points.clone() }]
            } else {
                vec![]
            },
            points,
        }
    };
    let growth = |metric, routines: u64, points| {
        let mut growth = Growth::new(metric, Cost::Instructions, 4);
        growth.cost_total = 12_345;
        growth.threads = vec![ThreadCost { id: 1, cost_total: 12_345 }];
        growth.routines = (0..routines).map(|i| routine(i, points)).collect();
        growth.normalize();
        growth
    };
    let count = || {
        let tally = Tally { instructions: 100, blocks: 20, loads: 30, stores: 10, calls: 5 };
        let mut count = Count {
            total: tally,
            threads: 2,
            by_thread: vec![ThreadTally { id: 4, tally }, ThreadTally { id: 5, tally }],
            functions: (0..6u64)
                .map(|i| Function {
                    name: format!("function<{i}>"),
                    object: "/bin/example".into(),
                    address: Some(64 * i),
                    calls: i,
                    instructions_self: 3 * i,
                    instructions_total: 5 * i,
                    ..Function::default()
                })
                .collect(),
        };
        count.normalize();
        count
    };
    let run = |id: u8, data| Run {
        id: RunId([id; 16]),
        program: Program { path: "/bin/example".into(), build_id: vec![1, 2, 3], modified_unix_s: 9 },
        command: vec!["example".into(), "--all".into()],
        exit: Exit::Code(3),
        started_unix_ns: id.into(),
        wall_ns: 10,
        cpu_ns: 20,
        problems: vec!["one thing is missing".into()],
        data,
    };
    let section = |kind| OpaqueSection { kind, flags: 0, raw_len: 5, stored: b"later".to_vec() };
    let opaque = Data::Opaque(Opaque { mode: 77, sections: vec![section(40), section(41)] });
    [
        vec![],
        vec![run(1, Data::Growth(growth(Metric::Rms, 0, 0)))],
        vec![run(1, Data::Growth(growth(Metric::Trms, 3, 4)))],
        vec![run(1, Data::Count(count()))],
        vec![run(1, Data::Growth(growth(Metric::Rms, 12, 9))), run(2, opaque)],
        vec![
            run(1, Data::Growth(growth(Metric::Trms, 1, 200))),
            run(2, Data::Growth(growth(Metric::Rms, 5, 2))),
        ],
    ]
    .into_iter()
    .map(|runs| profile::encode(&Profile { runs }).expect("seeds are valid"))
    .collect()
}

/// One hostile file.
pub fn mutate(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    if random.below(4) == 0 {
        let mut bytes = seed.to_vec();
        for _ in 0..=random.below(4) {
            scramble(&mut bytes, random);
        }
        return bytes;
    }
    let mut pieces = take_apart(seed);
    pieces.pop(); // the end is made anew
    for _ in 0..=random.below(3) {
        if pieces.is_empty() {
            pieces.extend(take_apart(other));
        }
        let at = random.below(pieces.len());
        match random.below(10) {
            0 => {
                pieces.remove(at);
            }
            1 => pieces.insert(at, pieces[random.below(pieces.len())].clone()),
            2 => pieces.extend(take_apart(other).into_iter().take(2)),
            3 => alter_header(&mut pieces[at], random),
            4 => scramble(&mut pieces[at].stored, random), // as compressed
            _ => alter_payload(&mut pieces[at], random),
        }
    }
    let mut bytes = put_together(seed, &pieces);
    if random.below(8) == 0 {
        scramble(&mut bytes, random);
    }
    bytes
}

fn take_apart(file: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut rest = &file[FILE_HEADER_LEN..];
    while let Some((header, after)) = rest.split_first_chunk::<HEADER_LEN>() {
        let len = u64::from_le_bytes(header[32..40].try_into().expect("8 bytes")) as usize;
        let (stored, after) = after.split_at(len);
        pieces.push(Piece { header: *header, stored: stored.to_vec() });
        rest = after;
    }
    pieces
}

fn put_together(seed: &[u8], pieces: &[Piece]) -> Vec<u8> {
    let mut out = seed[..FILE_HEADER_LEN].to_vec();
    let mut roll = Xxh3::new();
    for piece in pieces {
        let mut header = piece.header;
        header[48..56].copy_from_slice(&xxh3_64(&piece.stored).to_le_bytes());
        let checksum = xxh3_64(&header[..56]);
        header[56..].copy_from_slice(&checksum.to_le_bytes());
        roll.update(&header);
        out.extend_from_slice(&header);
        out.extend_from_slice(&piece.stored);
    }
    let mut payload = (pieces.len() as u64).to_le_bytes().to_vec();
    payload.extend_from_slice(&roll.digest().to_le_bytes());
    let mut end = take_apart(seed).pop().expect("every file has an end").header;
    end[48..56].copy_from_slice(&xxh3_64(&payload).to_le_bytes());
    let checksum = xxh3_64(&end[..56]);
    end[56..].copy_from_slice(&checksum.to_le_bytes());
    out.extend_from_slice(&end);
    out.extend_from_slice(&payload);
    out
}

fn alter_header(piece: &mut Piece, random: &mut Random) {
    let value = random.odd().to_le_bytes();
    let (at, len) = [(4, 4), (8, 16), (24, 4), (28, 4), (32, 8), (40, 8)][random.below(6)];
    if len == 16 {
        piece.header[at..at + 16].fill(value[0]);
    } else {
        piece.header[at..at + len].copy_from_slice(&value[..len]);
    }
}

/// Alters what the reader sees after decompression.
fn alter_payload(piece: &mut Piece, random: &mut Random) {
    let raw_len = u64::from_le_bytes(piece.header[40..48].try_into().expect("8 bytes")) as usize;
    let mut raw = match piece.header[28] {
        0 => piece.stored.clone(),
        _ => zstd::bulk::decompress(&piece.stored, raw_len.min(1 << 20)).unwrap_or_default(),
    };
    for _ in 0..=random.below(3) {
        match random.below(4) {
            0 => resize_field(&mut raw, random),
            _ => scramble(&mut raw, random),
        }
    }
    piece.header[28..32].fill(0);
    piece.stored = raw;
    if random.below(8) == 0
        && let Ok(packed) = zstd::bulk::compress(&piece.stored, 1)
    {
        piece.header[28] = 1;
        piece.header[40..48].copy_from_slice(&(piece.stored.len() as u64).to_le_bytes());
        piece.stored = packed;
    } else {
        piece.header[40..48].copy_from_slice(&(piece.stored.len() as u64).to_le_bytes());
    }
    piece.header[32..40].copy_from_slice(&(piece.stored.len() as u64).to_le_bytes());
}

/// Alters one tagged field, keeping the fields around it readable.
fn resize_field(raw: &mut Vec<u8>, random: &mut Random) {
    let mut fields = Vec::new();
    let mut at = 0;
    while let Some((tag, next)) = varint(raw, at)
        && let Some((len, start)) = varint(raw, next)
        && let Some(end) = start.checked_add(len as usize).filter(|&end| end <= raw.len())
    {
        fields.push((tag, raw[start..end].to_vec()));
        at = end;
    }
    if fields.is_empty() {
        return;
    }
    let chosen = random.below(fields.len());
    match random.below(4) {
        0 => {
            fields.remove(chosen);
        }
        1 => fields[chosen].0 = random.odd(),
        2 => {
            let more = random.below(300);
            let value = random.next() as u8;
            fields[chosen].1.resize(more, value);
        }
        _ => scramble(&mut fields[chosen].1, random),
    }
    raw.clear();
    for (tag, bytes) in fields {
        put_varint(raw, tag);
        put_varint(raw, bytes.len() as u64);
        raw.extend_from_slice(&bytes);
    }
}

fn varint(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let byte = *bytes.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at));
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Alters bytes anywhere.
fn scramble(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.next() as u8);
        return;
    }
    let at = random.below(bytes.len());
    match random.below(8) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5)],
        2 => bytes[at] = random.next() as u8,
        3 => bytes.truncate(at),
        4 => {
            let mut number = Vec::new();
            put_varint(&mut number, random.odd());
            bytes.splice(at..at + 1, number);
        }
        5 => {
            let end = (at + random.below(32)).min(bytes.len());
            bytes.drain(at..end);
        }
        6 => {
            let end = (at + random.below(64)).min(bytes.len());
            let copy = bytes[at..end].to_vec();
            let to = random.below(bytes.len());
            bytes.splice(to..to, copy);
        }
        _ => {
            let value = random.odd().to_le_bytes();
            let end = (at + 8).min(bytes.len());
            bytes[at..end].copy_from_slice(&value[..end - at]);
        }
    }
}
