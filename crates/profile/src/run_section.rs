//! The description of a run as a section payload.
//!
//! Says everything about a run but its measurements: program, command, times, problems, and of which mode its
//! data sections are and how many there are. Its id stands in the section header.

use crate::fields;
use crate::run::{Exit, Program};
use crate::varint::{self, Bad, Cursor, Decode};

const PATH: usize = 1;
const BUILD_ID: usize = 2;
const MODIFIED: usize = 3;
const COMMAND: usize = 4;
const EXIT: usize = 5;
const STARTED: usize = 6;
const WALL: usize = 7;
const CPU: usize = 8;
const PROBLEMS: usize = 9;
const MODE: usize = 10;
const PARTS: usize = 11;
const TAGS: usize = 12;

/// A run without its id and data.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// As in [`crate::Run`].
    pub program: Program,
    /// As in [`crate::Run`].
    pub command: Vec<String>,
    /// As in [`crate::Run`].
    pub exit: Exit,
    /// As in [`crate::Run`].
    pub started_unix_ns: u64,
    /// As in [`crate::Run`].
    pub wall_ns: u64,
    /// As in [`crate::Run`].
    pub cpu_ns: u64,
    /// As in [`crate::Run`].
    pub problems: Vec<String>,
    /// Mode of the data sections.
    pub mode: u32,
    /// Number of data sections.
    pub parts: u32,
    /// Fields that only a newer version knows.
    pub unknown_fields: usize,
}

/// The payload.
pub fn encode(run: &Description) -> Vec<u8> {
    let mut out = fields::Writer::default();
    out.put(PATH as u64, run.program.path.as_bytes());
    out.put(BUILD_ID as u64, &run.program.build_id);
    out.put_number(MODIFIED as u64, run.program.modified_unix_s);
    out.put(COMMAND as u64, &texts(&run.command));
    let (how, value) = match run.exit {
        Exit::Unknown => (0, 0),
        Exit::Code(code) => (1, code),
        Exit::Signal(signal) => (2, signal),
    };
    let mut exit = vec![how];
    varint::put_step(&mut exit, 0, i64::from(value) as u64);
    out.put(EXIT as u64, &exit);
    out.put_number(STARTED as u64, run.started_unix_ns);
    out.put_number(WALL as u64, run.wall_ns);
    out.put_number(CPU as u64, run.cpu_ns);
    out.put(PROBLEMS as u64, &texts(&run.problems));
    out.put_number(MODE as u64, run.mode.into());
    out.put_number(PARTS as u64, run.parts.into());
    out.finish()
}

/// Reads the payload.
pub fn decode(payload: &[u8]) -> Decode<Description> {
    const LARGE: Bad = Bad("a number is too large");
    let fields = fields::Reader::<TAGS>::new(payload, |tag| tag > 0)?;
    let path = fields.get(PATH)?;
    let build_id = fields.get(BUILD_ID)?;
    let mut exit = fields.get(EXIT)?;
    let how = exit.get()?;
    let value = i32::try_from(exit.step(0)? as i64).map_err(|_| LARGE)?;
    exit.end()?;
    Ok(Description {
        program: Program {
            path: whole(path)?.to_owned(),
            build_id: build_id.clone().take(build_id.left())?.to_vec(),
            modified_unix_s: fields.number(MODIFIED)?,
        },
        command: get_texts(fields.get(COMMAND)?)?,
        exit: match (how, value) {
            (0, 0) => Exit::Unknown,
            (1, code) => Exit::Code(code),
            (2, signal) => Exit::Signal(signal),
            _ => return Err(Bad("it ended in a way that is not known")),
        },
        started_unix_ns: fields.number(STARTED)?,
        wall_ns: fields.number(WALL)?,
        cpu_ns: fields.number(CPU)?,
        problems: get_texts(fields.get(PROBLEMS)?)?,
        mode: match u32::try_from(fields.number(MODE)?).map_err(|_| LARGE)? {
            0 => return Err(Bad("its mode is not known")),
            mode => mode,
        },
        parts: u32::try_from(fields.number(PARTS)?).map_err(|_| LARGE)?,
        unknown_fields: fields.unknown(),
    })
}

fn texts(texts: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    varint::put(&mut out, texts.len() as u64);
    texts.iter().for_each(|text| varint::put_bytes(&mut out, text.as_bytes()));
    out
}

fn get_texts(mut cursor: Cursor<'_>) -> Decode<Vec<String>> {
    let count = cursor.count(1)?;
    let texts = (0..count).map(|_| Ok(cursor.text()?.to_owned())).collect();
    cursor.end()?;
    texts
}

fn whole(mut cursor: Cursor<'_>) -> Decode<&str> {
    std::str::from_utf8(cursor.take(cursor.left())?).map_err(|_| Bad("a text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_comes_back() {
        for exit in [Exit::Unknown, Exit::Code(0), Exit::Code(-1), Exit::Code(i32::MIN), Exit::Signal(9)] {
            let run = Description {
                program: Program { path: "/bin/ü".into(), build_id: vec![0, 255], modified_unix_s: 5 },
                command: vec!["p".into(), String::new(), "a b".into()],
                exit,
                started_unix_ns: u64::MAX,
                wall_ns: 1,
                cpu_ns: 2,
                problems: vec!["half of it is missing".into()],
                mode: 1,
                parts: u32::MAX,
                unknown_fields: 0,
            };
            assert_eq!(decode(&encode(&run)), Ok(run));
        }
    }
}
