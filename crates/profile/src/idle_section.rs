//! Idleness as a section payload: columns of frames, contexts, lines and locks.
//!
//! A run is one section: its contexts refer to each other and to the frames, so that parts would mean little
//! alone. Every item takes at least one byte in each of its columns, which bounds the memory that a small file
//! can ask for; texts stand in the frames only, each once.

use crate::fields;
use crate::idle::{Chord, Context, Frame, FrameKind, Holder, Idle, Line, Lock};
use crate::varint::{self, Bad, Cursor, Decode};

const HEAD: usize = 1;
const BACKEND: usize = 2;
const RULES: usize = 3;
const FRAMES: usize = 16;
const FRAME_COLUMNS: usize = 5;
const CONTEXTS: usize = 32;
const CONTEXT_COLUMNS: usize = 7;
const LINES: usize = 48;
const LINE_COLUMNS: usize = 4;
const LOCKS: usize = 64;
const LOCK_COLUMNS: usize = 8;
const TAGS: usize = LOCKS + LOCK_COLUMNS + 1;
/// Least bytes of a holder: context, blame, count.
const HOLDER_BYTES_MIN: usize = 3;

const KINDS: [FrameKind; 8] = [
    FrameKind::Call,
    FrameKind::Inline,
    FrameKind::Loop,
    FrameKind::Task,
    FrameKind::Thread,
    FrameKind::Wait,
    FrameKind::Spin,
    FrameKind::Other,
];
const CHORDS: [Chord; 3] = [Chord::Both, Chord::Physical, Chord::Logical];

fn known(tag: usize) -> bool {
    let group = |first: usize, columns: usize| (first..=first + columns).contains(&tag);
    tag == HEAD
        || tag == BACKEND
        || tag == RULES
        || group(FRAMES, FRAME_COLUMNS)
        || group(CONTEXTS, CONTEXT_COLUMNS)
        || group(LINES, LINE_COLUMNS)
        || group(LOCKS, LOCK_COLUMNS)
}

/// What one section tells.
#[derive(Debug)]
pub struct Part {
    /// The facts.
    pub idle: Idle,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payloads of a run's data sections: one.
pub fn encode(idle: &Idle) -> Vec<Vec<u8>> {
    let mut head = Vec::new();
    for number in head_numbers(idle) {
        varint::put(&mut head, number);
    }
    let mut frames: [Vec<u8>; FRAME_COLUMNS] = Default::default();
    for frame in &idle.frames {
        let [kind, name, object, file, line] = &mut frames;
        varint::put(kind, position(&KINDS, frame.kind));
        varint::put_bytes(name, frame.name.as_bytes());
        varint::put_bytes(object, frame.object.as_bytes());
        varint::put_bytes(file, frame.file.as_bytes());
        varint::put(line, frame.line.into());
    }
    let mut contexts: [Vec<u8>; CONTEXT_COLUMNS] = Default::default();
    for (i, context) in idle.contexts.iter().enumerate() {
        let [parent, frame, chord, samples, cpu, idle_ns, blocked] = &mut contexts;
        // How far back the parent stands; 0 for none.
        varint::put(parent, context.parent.map_or(0, |p| i as u64 - u64::from(p)));
        varint::put(frame, context.frame.into());
        varint::put(chord, position(&CHORDS, context.chord));
        varint::put(samples, context.samples);
        varint::put(cpu, context.cpu_ns);
        varint::put_step(idle_ns, 0, context.idle_ns as u64);
        varint::put(blocked, context.blocked_ns);
    }
    let mut lines: [Vec<u8>; LINE_COLUMNS] = Default::default();
    for line in &idle.lines {
        let [frame, number, cpu, idle_ns] = &mut lines;
        varint::put(frame, line.frame.into());
        varint::put(number, line.line.into());
        varint::put(cpu, line.cpu_ns);
        varint::put_step(idle_ns, 0, line.idle_ns as u64);
    }
    let mut locks: [Vec<u8>; LOCK_COLUMNS] = Default::default();
    for lock in &idle.locks {
        let [address, kind, wait, handed, contended, acquisitions, waiter, holders] = &mut locks;
        varint::put(address, lock.address);
        varint::put_bytes(kind, lock.kind.as_bytes());
        varint::put(wait, lock.wait_ns);
        varint::put(handed, lock.handed_over_ns);
        varint::put(contended, lock.contended);
        varint::put(acquisitions, lock.acquisitions);
        varint::put(waiter, lock.waiter.map_or(0, |w| u64::from(w) + 1));
        varint::put(holders, lock.holders.len() as u64);
        for holder in &lock.holders {
            varint::put(holders, holder.context.into());
            varint::put(holders, holder.blame_ns);
            varint::put(holders, holder.count);
        }
    }
    let mut out = fields::Writer::default();
    out.put(HEAD as u64, &head);
    out.put(BACKEND as u64, idle.backend.as_bytes());
    out.put(RULES as u64, idle.rules.as_bytes());
    put_columns(&mut out, FRAMES, idle.frames.len(), &frames);
    put_columns(&mut out, CONTEXTS, idle.contexts.len(), &contexts);
    put_columns(&mut out, LINES, idle.lines.len(), &lines);
    put_columns(&mut out, LOCKS, idle.locks.len(), &locks);
    vec![out.finish()]
}

fn head_numbers(idle: &Idle) -> [u64; 10] {
    [
        idle.cores.into(),
        idle.period_ns,
        idle.span_ns,
        idle.nobody_ns,
        idle.threads,
        idle.samples,
        idle.lost,
        idle.stitched,
        idle.orphans,
        idle.preempted_ns as u64,
    ]
}

fn position<T: PartialEq>(all: &[T], one: T) -> u64 {
    all.iter().position(|x| *x == one).unwrap_or(0) as u64
}

fn put_columns(out: &mut fields::Writer, first: usize, count: usize, columns: &[Vec<u8>]) {
    out.put_number(first as u64, count as u64);
    for (tag, column) in (first + 1..).zip(columns) {
        out.put(tag as u64, column);
    }
}

/// Reads one section.
pub fn decode(payload: &[u8]) -> Decode<Part> {
    let fields = fields::Reader::<TAGS>::new(payload, known)?;
    let mut head = fields.get(HEAD)?;
    let mut idle = Idle {
        cores: head.get_u32()?,
        period_ns: head.get()?,
        span_ns: head.get()?,
        nobody_ns: head.get()?,
        threads: head.get()?,
        samples: head.get()?,
        lost: head.get()?,
        stitched: head.get()?,
        orphans: head.get()?,
        preempted_ns: head.get()? as i64,
        ..Idle::default()
    };
    head.end()?;
    let whole = |tag: usize| {
        let mut text = fields.get(tag)?;
        let bytes = text.take(text.left())?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Bad("a text is not UTF-8"))
    };
    idle.backend = whole(BACKEND)?;
    idle.rules = whole(RULES)?;
    let (count, mut columns) = columns::<FRAME_COLUMNS>(&fields, FRAMES)?;
    idle.frames.reserve_exact(count);
    for _ in 0..count {
        let [kind, name, object, file, line] = &mut columns;
        idle.frames.push(Frame {
            kind: choice(&KINDS, kind)?,
            name: name.text()?.to_owned(),
            object: object.text()?.to_owned(),
            file: file.text()?.to_owned(),
            line: line.get_u32()?,
        });
    }
    columns.iter().try_for_each(Cursor::end)?;
    let (count, mut columns) = self::columns::<CONTEXT_COLUMNS>(&fields, CONTEXTS)?;
    idle.contexts.reserve_exact(count);
    for i in 0..count {
        let [parent, frame, chord, samples, cpu, idle_ns, blocked] = &mut columns;
        let parent = match parent.get()? {
            0 => None,
            back => Some(
                (i as u64)
                    .checked_sub(back)
                    .and_then(|p| u32::try_from(p).ok())
                    .ok_or(Bad("a context has no parent where it should be"))?,
            ),
        };
        idle.contexts.push(Context {
            parent,
            frame: frame.get_u32()?,
            chord: choice(&CHORDS, chord)?,
            samples: samples.get()?,
            cpu_ns: cpu.get()?,
            idle_ns: idle_ns.step(0)? as i64,
            blocked_ns: blocked.get()?,
        });
    }
    columns.iter().try_for_each(Cursor::end)?;
    let (count, mut columns) = self::columns::<LINE_COLUMNS>(&fields, LINES)?;
    idle.lines.reserve_exact(count);
    for _ in 0..count {
        let [frame, line, cpu, idle_ns] = &mut columns;
        idle.lines.push(Line {
            frame: frame.get_u32()?,
            line: line.get_u32()?,
            cpu_ns: cpu.get()?,
            idle_ns: idle_ns.step(0)? as i64,
        });
    }
    columns.iter().try_for_each(Cursor::end)?;
    let (count, mut columns) = self::columns::<LOCK_COLUMNS>(&fields, LOCKS)?;
    for _ in 0..count {
        idle.locks.push(lock(&mut columns)?);
    }
    columns.iter().try_for_each(Cursor::end)?;
    Ok(Part { idle, unknown_fields: fields.unknown() })
}

fn lock(columns: &mut [Cursor<'_>; LOCK_COLUMNS]) -> Decode<Lock> {
    let [address, kind, wait, handed, contended, acquisitions, waiter, holders] = columns;
    let mut lock = Lock {
        address: address.get()?,
        kind: kind.text()?.to_owned(),
        wait_ns: wait.get()?,
        handed_over_ns: handed.get()?,
        contended: contended.get()?,
        acquisitions: acquisitions.get()?,
        waiter: match waiter.get()? {
            0 => None,
            more => Some(u32::try_from(more - 1).map_err(|_| Bad("a number is too large"))?),
        },
        holders: Vec::new(),
    };
    for _ in 0..holders.count(HOLDER_BYTES_MIN)? {
        lock.holders.push(Holder {
            context: holders.get_u32()?,
            blame_ns: holders.get()?,
            count: holders.get()?,
        });
    }
    Ok(lock)
}

fn choice<T: Copy>(all: &[T], cursor: &mut Cursor<'_>) -> Decode<T> {
    let at = cursor.get()?;
    usize::try_from(at).ok().and_then(|at| all.get(at).copied()).ok_or(Bad("a kind is not known"))
}

/// The columns of a group, each at least as long as there are items.
fn columns<'a, const N: usize>(
    fields: &fields::Reader<'a, TAGS>,
    first: usize,
) -> Decode<(usize, [Cursor<'a>; N])> {
    let mut columns = [Cursor::default(); N];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = fields.get(first + 1 + i)?;
    }
    let count = usize::try_from(fields.number(first)?)
        .ok()
        .filter(|&count| columns.iter().all(|column| column.left() >= count))
        .ok_or(Bad("more items are announced than there are bytes"))?;
    Ok((count, columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Idle {
        Idle {
            cores: 8,
            period_ns: 5_000_000,
            rules: "sync a*".into(),
            backend: "perf".into(),
            span_ns: 10,
            nobody_ns: 3,
            preempted_ns: -2,
            threads: 2,
            samples: 7,
            lost: 1,
            stitched: 2,
            orphans: 1,
            frames: vec![
                Frame {
                    name: "main".into(),
                    object: "/bin/x".into(),
                    file: "x.c".into(),
                    line: 3,
                    ..Frame::default()
                },
                Frame { kind: FrameKind::Wait, name: "mutex".into(), ..Frame::default() },
            ],
            contexts: vec![
                Context { samples: 5, cpu_ns: 25, idle_ns: -4, ..Context::default() },
                Context {
                    parent: Some(0),
                    frame: 1,
                    chord: Chord::Logical,
                    blocked_ns: u64::MAX,
                    idle_ns: i64::MIN,
                    ..Context::default()
                },
            ],
            lines: vec![Line { frame: 0, line: 9, cpu_ns: 25, idle_ns: -4 }],
            locks: vec![Lock {
                address: 0x7f,
                kind: "mutex".into(),
                wait_ns: 9,
                waiter: Some(1),
                holders: vec![Holder { context: 0, blame_ns: 9, count: 2 }],
                ..Lock::default()
            }],
        }
    }

    #[test]
    fn everything_comes_back() {
        let idle = example();
        assert_eq!(idle.validate(), Ok(()));
        assert_eq!(decode(&encode(&idle)[0]).unwrap().idle, idle);
    }

    #[test]
    fn damage_is_mended_by_leaving_out() {
        let mut idle = example();
        idle.contexts.push(Context { parent: Some(1), frame: 7, ..Context::default() });
        idle.contexts.push(Context { parent: Some(2), ..Context::default() });
        idle.locks[0].holders.push(Holder { context: 3, ..Holder::default() });
        assert!(idle.validate().is_err());
        idle.normalize();
        assert_eq!(idle, example());
    }
}
