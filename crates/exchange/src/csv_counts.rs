//! Counts as a table: one row per function, or one per thread where functions were not counted.
//!
//! The rules of `csv.rs` hold: RFC 4180, and no text that a spreadsheet program would take for a formula.

use profile::{Count, Data, Profile, Run, Tally};

use crate::csv::safe;

/// The columns, in order. `scope` says what a row is about: `program`, `thread` or `function`. A function's row has
/// no blocks, loads and stores; only a function's row has `instructions_total`.
pub const COLUMNS: [&str; 14] = [
    "run",
    "program",
    "scope",
    "thread",
    "function",
    "mangled",
    "object",
    "address",
    "calls",
    "instructions_self",
    "instructions_total",
    "blocks",
    "loads",
    "stores",
];

/// The table of all runs of counts.
pub fn export(profile: &Profile) -> Vec<u8> {
    let mut out = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    let mut row = |cells: &[String]| out.write_record(cells).expect("writing to memory does not fail");
    row(&COLUMNS.map(str::to_owned));
    for run in &profile.runs {
        let Data::Count(count) = &run.data else { continue };
        row(&tally(run, "program", "", &count.total));
        for t in &count.by_thread {
            row(&tally(run, "thread", &t.id.to_string(), &t.tally));
        }
        functions(run, count, &mut row);
    }
    out.into_inner().expect("writing to memory does not fail")
}

fn tally(run: &Run, scope: &str, thread: &str, t: &Tally) -> [String; 14] {
    let mut cells: [String; 14] = Default::default();
    cells[0] = run.id.to_string();
    cells[1] = safe(&run.program.path);
    cells[2] = scope.to_owned();
    cells[3] = thread.to_owned();
    cells[8] = t.calls.to_string();
    cells[9] = t.instructions.to_string();
    cells[11] = t.blocks.to_string();
    cells[12] = t.loads.to_string();
    cells[13] = t.stores.to_string();
    cells
}

fn functions(run: &Run, count: &Count, row: &mut impl FnMut(&[String])) {
    for f in &count.functions {
        row(&[
            run.id.to_string(),
            safe(&run.program.path),
            "function".to_owned(),
            String::new(),
            safe(&f.name),
            safe(&f.mangled),
            safe(&f.object),
            f.address.map_or_else(String::new, |address| format!("{address:#x}")),
            f.calls.to_string(),
            f.instructions_self.to_string(),
            f.instructions_total.to_string(),
            String::new(),
            String::new(),
            String::new(),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Exit, Function, Program, RunId, ThreadTally};

    #[test]
    fn one_row_per_program_thread_and_function() {
        let tally = Tally { instructions: 10, blocks: 4, loads: 3, stores: 2, calls: 1 };
        let function = Function {
            name: "=f()".into(),
            mangled: "_Z1fv".into(),
            object: "/bin/p".into(),
            address: Some(64),
            calls: 1,
            instructions_self: 10,
            instructions_total: 10,
            ..Function::default()
        };
        let count = Count {
            total: tally,
            threads: 1,
            by_thread: vec![ThreadTally { id: 5, tally }],
            functions: vec![function],
        };
        let run = Run {
            id: RunId([1; 16]),
            program: Program { path: "/bin/p".into(), ..Program::default() },
            command: vec![],
            exit: Exit::Code(0),
            started_unix_ns: 0,
            wall_ns: 0,
            cpu_ns: 0,
            problems: vec![],
            data: Data::Count(count),
        };
        let text = String::from_utf8(export(&Profile { runs: vec![run] })).unwrap();
        let lines: Vec<&str> = text.split("\r\n").collect();
        let id = "01".repeat(16);
        assert_eq!(
            lines,
            [
                COLUMNS.join(","),
                format!("{id},/bin/p,program,,,,,,1,10,,4,3,2"),
                format!("{id},/bin/p,thread,5,,,,,1,10,,4,3,2"),
                format!("{id},/bin/p,function,,'=f(),_Z1fv,/bin/p,0x40,1,10,10,,,"),
                String::new(),
            ]
        );
    }
}
