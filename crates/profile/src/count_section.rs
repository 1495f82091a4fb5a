//! Counts as section payloads: totals, threads, and functions as columns.
//!
//! A run is split into sections at function boundaries; each repeats the totals, so that any one of them means
//! something alone. Threads stand in the first one only. Every function takes at least one byte in each column, which
//! bounds the memory that a small file can ask for.

use crate::count::{Count, Function, Tally, ThreadTally};
use crate::fields;
use crate::varint::{self, Bad, Cursor, Decode};

/// A section is closed once it holds this many functions, or this many bytes of text.
const FUNCTIONS_PER_SECTION: usize = 1 << 14;
const TEXT_BYTES_PER_SECTION: usize = 1 << 22;

const TOTAL: usize = 1;
const THREADS: usize = 2;
const BY_THREAD: usize = 3;
const FUNCTIONS_TOTAL: usize = 4;
const FUNCTIONS: usize = 16;
const FIRST_COLUMN: usize = 17;
const COLUMNS: usize = 9;
const TAGS: usize = FIRST_COLUMN + COLUMNS;
/// Least bytes of a thread: its id and five numbers.
const THREAD_BYTES_MIN: usize = 6;

fn known(tag: usize) -> bool {
    (TOTAL..=FUNCTIONS_TOTAL).contains(&tag) || (FUNCTIONS..TAGS).contains(&tag)
}

/// What one section tells.
#[derive(Debug)]
pub struct Part {
    /// The totals, with the threads and functions of this section.
    pub count: Count,
    /// Functions in all sections of the run.
    pub functions_total: u64,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payloads of a run's data sections, at least one.
pub fn encode(count: &Count) -> Vec<Vec<u8>> {
    let mut payloads = Vec::new();
    let mut rest = count.functions.as_slice();
    loop {
        let (mut text, mut len) = (0, 0);
        for f in rest.iter().take(FUNCTIONS_PER_SECTION) {
            if text >= TEXT_BYTES_PER_SECTION {
                break;
            }
            text += f.name.len() + f.mangled.len() + f.object.len() + f.file.len();
            len += 1;
        }
        let (these, later) = rest.split_at(len);
        let threads: &[ThreadTally] = if payloads.is_empty() { &count.by_thread } else { &[] };
        payloads.push(encode_part(count, threads, these));
        rest = later;
        if rest.is_empty() {
            return payloads;
        }
    }
}

fn encode_part(count: &Count, threads: &[ThreadTally], functions: &[Function]) -> Vec<u8> {
    let mut total = Vec::new();
    put_tally(&mut total, &count.total);
    let mut by_thread = Vec::new();
    varint::put(&mut by_thread, threads.len() as u64);
    for thread in threads {
        varint::put(&mut by_thread, thread.id);
        put_tally(&mut by_thread, &thread.tally);
    }
    let mut columns: [Vec<u8>; COLUMNS] = Default::default();
    for f in functions {
        let [name, mangled, object, address, file, line, calls, own, all] = &mut columns;
        varint::put_bytes(name, f.name.as_bytes());
        // The length is one more than it is; 0 stands for "as the readable name".
        if f.mangled == f.name {
            varint::put(mangled, 0);
        } else {
            varint::put(mangled, f.mangled.len() as u64 + 1);
            mangled.extend_from_slice(f.mangled.as_bytes());
        }
        varint::put_bytes(object, f.object.as_bytes());
        // The address is one more than it is; 0 stands for "not known".
        varint::put_wide(address, f.address.map_or(0, |address| u128::from(address) + 1));
        varint::put_bytes(file, f.file.as_bytes());
        varint::put(line, f.line.into());
        varint::put(calls, f.calls);
        varint::put(own, f.instructions_self);
        varint::put_step(all, f.instructions_self, f.instructions_total);
    }
    let mut out = fields::Writer::default();
    out.put(TOTAL as u64, &total);
    out.put_number(THREADS as u64, count.threads);
    out.put(BY_THREAD as u64, &by_thread);
    out.put_number(FUNCTIONS_TOTAL as u64, count.functions.len() as u64);
    out.put_number(FUNCTIONS as u64, functions.len() as u64);
    for (i, column) in columns.iter().enumerate() {
        out.put((FIRST_COLUMN + i) as u64, column);
    }
    out.finish()
}

/// Reads one section.
pub fn decode(payload: &[u8]) -> Decode<Part> {
    let fields = fields::Reader::<TAGS>::new(payload, known)?;
    let mut total = fields.get(TOTAL)?;
    let tally = get_tally(&mut total)?;
    total.end()?;
    let mut threads = fields.get(BY_THREAD)?;
    let listed = threads.count(THREAD_BYTES_MIN)?;
    let mut by_thread = Vec::with_capacity(listed);
    for _ in 0..listed {
        by_thread.push(ThreadTally { id: threads.get()?, tally: get_tally(&mut threads)? });
    }
    threads.end()?;
    Ok(Part {
        count: Count {
            total: tally,
            threads: fields.number(THREADS)?,
            by_thread,
            functions: get_functions(&fields)?,
        },
        functions_total: fields.number(FUNCTIONS_TOTAL)?,
        unknown_fields: fields.unknown(),
    })
}

fn get_functions(fields: &fields::Reader<'_, TAGS>) -> Decode<Vec<Function>> {
    let mut columns = [Cursor::default(); COLUMNS];
    for (i, column) in columns.iter_mut().enumerate() {
        *column = fields.get(FIRST_COLUMN + i)?;
    }
    let count = usize::try_from(fields.number(FUNCTIONS)?)
        .ok()
        .filter(|&count| columns.iter().all(|column| column.left() >= count))
        .ok_or(Bad("more functions are announced than there are bytes"))?;
    let mut functions = Vec::with_capacity(count);
    for _ in 0..count {
        functions.push(get_function(&mut columns)?);
    }
    columns.iter().try_for_each(Cursor::end)?;
    Ok(functions)
}

fn get_function(columns: &mut [Cursor<'_>; COLUMNS]) -> Decode<Function> {
    let [name, mangled, object, address, file, line, calls, own, all] = columns;
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
    let instructions_self = own.get()?;
    Ok(Function {
        name: name.to_owned(),
        mangled: mangled.to_owned(),
        object: object.text()?.to_owned(),
        address,
        file: file.text()?.to_owned(),
        line: line.get_u32()?,
        calls: calls.get()?,
        instructions_self,
        instructions_total: all.step(instructions_self)?,
    })
}

fn put_tally(out: &mut Vec<u8>, t: &Tally) {
    for value in [t.instructions, t.blocks, t.loads, t.stores, t.calls] {
        varint::put(out, value);
    }
}

fn get_tally(cursor: &mut Cursor<'_>) -> Decode<Tally> {
    Ok(Tally {
        instructions: cursor.get()?,
        blocks: cursor.get()?,
        loads: cursor.get()?,
        stores: cursor.get()?,
        calls: cursor.get()?,
    })
}
