//! Points as a table: one row per routine and point, for spreadsheets and scripts.
//!
//! RFC 4180: comma, CRLF, quotes doubled inside quotes. Texts (names, paths) that begin with `=`, `+`, `-`, `@`, a
//! tab or a carriage return get an apostrophe in front, because spreadsheet programs would otherwise run them as
//! formulas, and symbol names come from programs that one may not trust. A reader that wants such names as they
//! were strips that apostrophe. Routines without points have no row, and neither have runs of other modes.

use std::fmt::{Display, Write};

use profile::{Data, Growth, Point, Profile, Routine, Run};

/// The columns, in order. Sizes in cells, costs as the `cost` column says (time in nanoseconds), addresses in
/// hexadecimal and empty when not known.
pub const COLUMNS: [&str; 30] = [
    "run",
    "program",
    "metric",
    "cost",
    "cell_bytes",
    "routine",
    "mangled",
    "object",
    "address",
    "file",
    "line",
    "threads",
    "n",
    "calls",
    "min",
    "max",
    "mean",
    "variance",
    "sum",
    "sumsq",
    "real_sum",
    "self_sum",
    "self_min",
    "self_max",
    "self_sumsq",
    "first_reads",
    "thread_induced",
    "external",
    "self_thread_induced",
    "self_external",
];

/// The table of all growth runs.
pub fn export(profile: &Profile) -> Vec<u8> {
    let mut table = Table {
        out: csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new()),
        number: String::new(),
    };
    COLUMNS.iter().for_each(|name| table.text(name));
    table.end_row();
    for run in &profile.runs {
        let Data::Growth(growth) = &run.data else { continue };
        for routine in &growth.routines {
            let common = common(run, growth, routine);
            for point in &routine.points {
                common.iter().for_each(|text| table.text(text));
                table.point(point);
                table.end_row();
            }
        }
    }
    table.out.into_inner().expect("writing to memory does not fail")
}

/// The columns that all points of a routine share.
fn common(run: &Run, growth: &Growth, routine: &Routine) -> [String; 12] {
    let threads: Vec<String> = routine.threads.iter().map(u64::to_string).collect();
    [
        run.id.to_string(),
        safe(&run.program.path),
        growth.metric.name().to_owned(),
        growth.cost.name().to_owned(),
        growth.cell_bytes.to_string(),
        safe(&routine.name),
        safe(&routine.mangled),
        safe(&routine.object),
        routine.address.map_or_else(String::new, |address| format!("{address:#x}")),
        safe(&routine.file),
        if routine.line == 0 { String::new() } else { routine.line.to_string() },
        threads.join(" "),
    ]
}

/// The table so far, in memory: writing to it does not fail.
struct Table {
    out: csv::Writer<Vec<u8>>,
    /// A number on its way.
    number: String,
}

impl Table {
    fn text(&mut self, text: &str) {
        self.out.write_field(text).expect("writing to memory does not fail");
    }

    fn number(&mut self, value: impl Display) {
        self.number.clear();
        write!(self.number, "{value}").expect("writing to memory does not fail");
        self.out.write_field(&self.number).expect("writing to memory does not fail");
    }

    fn end_row(&mut self) {
        self.out.write_record(None::<&[u8]>).expect("every row has all columns");
    }

    fn point(&mut self, p: &Point) {
        [p.n, p.calls, p.min, p.max].into_iter().for_each(|value| self.number(value));
        [p.mean(), p.variance()].into_iter().for_each(|value| self.number(value));
        self.number(p.sum);
        self.number(p.sumsq);
        [p.real_sum, p.self_sum, p.self_min, p.self_max].into_iter().for_each(|value| self.number(value));
        self.number(p.self_sumsq);
        let i = &p.input;
        let input = [p.first_reads(), i.thread_induced, i.external, i.self_thread_induced, i.self_external];
        input.into_iter().for_each(|value| self.number(value));
    }
}

/// A text that no spreadsheet program takes for a formula.
pub(crate) fn safe(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Cost, Exit, Metric, Program, RunId};

    fn profile(names: &[&str]) -> Profile {
        let mut growth = Growth::new(Metric::Trms, Cost::Blocks, 4);
        for name in names {
            growth.routines.push(Routine {
                name: (*name).into(),
                mangled: (*name).into(),
                object: "/bin/p".into(),
                address: Some(0xbeef),
                threads: vec![0, 3],
                points: vec![Point::single(2, 7, 3), Point::single(5, 9, 4)],
                ..Routine::default()
            });
        }
        let run = Run {
            id: RunId([1; 16]),
            program: Program { path: "/bin/p".into(), ..Program::default() },
            command: vec![],
            exit: Exit::Unknown,
            started_unix_ns: 0,
            wall_ns: 0,
            cpu_ns: 0,
            problems: vec![],
            data: Data::Growth(growth),
        };
        Profile { runs: vec![run] }
    }

    #[test]
    fn one_row_per_point() {
        let text = String::from_utf8(export(&profile(&["sort<int, 3>"]))).unwrap();
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert_eq!(lines.len(), 4, "head, two rows, and the end of the last");
        assert_eq!(lines[0], COLUMNS.join(","));
        assert_eq!(
            lines[1],
            "01010101010101010101010101010101,/bin/p,trms,blocks,4,\"sort<int, 3>\",\"sort<int, 3>\",/bin/p,0xbeef,,,\
             0 3,2,1,7,7,7,0,7,49,7,3,3,3,9,2,0,0,0,0"
        );
    }

    #[test]
    fn hostile_names_come_back_and_are_no_formulas() {
        let hostile = ["=cmd|' /C calc'!A0", "+1", "-1", "@x", "\tx", "\rx", "a,\"b\"\r\nc", "ü", ""];
        let bytes = export(&profile(&hostile));
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let at = COLUMNS.iter().position(|c| *c == "routine").unwrap();
        let names: Vec<String> = reader.records().map(|r| r.unwrap()[at].to_owned()).step_by(2).collect();
        for (name, found) in hostile.iter().zip(&names) {
            assert!(!found.starts_with(['=', '+', '-', '@', '\t', '\r']), "{found:?}");
            assert_eq!(found.strip_prefix('\'').unwrap_or(found), *name);
        }
        assert_eq!(names.len(), hostile.len());
    }
}
