//! Totals as text: what a profiled program leaves behind at its end, and what the tool reads.
//!
//! One fact per line, words separated by tabs, names last and escaped. Text, because both sides are ours, the
//! whole is a few kilobytes, and a user with a question can look at it.
//! ```text
//! farsight-span 1
//! key value                              once each: work, span, burdened, ...
//! site number kind function line call-stack name
//! on-work number 9 numbers               the record of a site
//! on-span number 9 numbers
//! faster number 3 numbers
//! step site span own strands
//! problem text
//! ```

use crate::detail::{FACTORS, Step};
use crate::record::{Measure, Record};
use crate::serial::Totals;
use crate::{Cost, Site};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

/// First line of a dump.
const MAGIC: &str = "farsight-span\t1";

/// How a site invokes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Its caller waits.
    #[default]
    Call,
    /// In parallel with its caller, or with a sibling.
    Spawn,
    /// Iterations in parallel.
    Loop,
    /// A call in strands of tasks of that site, known from samples: counts are samples, and costs say where they lie.
    Sampled(Site),
}

impl Kind {
    /// Its name.
    fn name(self) -> &'static str {
        match self {
            Kind::Sampled(_) => "sampled",
            Kind::Call => "call",
            Kind::Spawn => "spawn",
            Kind::Loop => "loop",
        }
    }

    fn parse(s: &str) -> Option<Self> {
        if let Some(task) = s.strip_prefix("sampled:") {
            return task.parse().ok().map(Kind::Sampled);
        }
        [Kind::Call, Kind::Spawn, Kind::Loop].into_iter().find(|k| k.name() == s)
    }
}

/// Where a call site is, as far as the program itself knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    /// How it invokes.
    pub kind: Kind,
    /// The function that contains it; empty if only an address is known.
    pub function: String,
    /// What it invokes.
    pub callee: String,
    /// Source file, if known.
    pub file: String,
    /// Line, 0 if not known.
    pub line: u32,
    /// Return addresses, innermost first, to be symbolized.
    pub stack: Vec<u64>,
}

/// A program's whole result.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// Facts with one value: model, unit, process id, clock rate and so on.
    pub facts: BTreeMap<String, String>,
    /// Call sites by number.
    pub places: Vec<Place>,
    /// What was measured.
    pub totals: Totals,
    /// What is missing or doubtful.
    pub problems: Vec<String>,
    /// Executable mappings of files, as in `/proc/self/maps`.
    pub maps: Vec<String>,
}

impl Dump {
    /// The text.
    pub fn write(&self) -> String {
        let mut out = String::from(MAGIC);
        out.push('\n');
        let t = &self.totals;
        for (key, value) in &self.facts {
            let _ = writeln!(out, "fact\t{}\t{}", escape(key), escape(value));
        }
        for (key, value) in [
            ("work", t.work),
            ("span", t.span),
            ("burdened", t.burdened),
            ("spawns", t.spawns),
            ("syncs", t.syncs),
        ] {
            let _ = writeln!(out, "total\t{key}\t{value}");
        }
        for (n, p) in self.places.iter().enumerate() {
            let stack: Vec<String> = p.stack.iter().map(|a| format!("{a:x}")).collect();
            let within = if let Kind::Sampled(task) = p.kind { format!(":{task}") } else { String::new() };
            let texts = [&p.function, &p.callee, &p.file].map(|s| escape(s));
            let _ = writeln!(
                out,
                "site\t{n}\t{}{within}\t{}\t{}\t{}\t{}\t{}",
                p.kind.name(),
                p.line,
                stack.join(","),
                texts[0],
                texts[1],
                texts[2]
            );
        }
        for (word, records) in [("on-work", &t.on_work), ("on-span", &t.on_span)] {
            for (n, r) in records.iter().enumerate().filter(|(_, r)| !r.is_empty()) {
                let _ = write!(out, "{word}\t{n}");
                for m in [r.site, r.caller, r.local] {
                    let _ = write!(out, "\t{}\t{}\t{}", m.count, m.work, m.span);
                }
                out.push('\n');
            }
        }
        for (n, f) in t.faster.iter().enumerate() {
            let _ = writeln!(out, "faster\t{n}\t{}\t{}\t{}", f[0], f[1], f[2]);
        }
        for s in &t.steps {
            let _ = writeln!(out, "step\t{}\t{}\t{}\t{}", s.site, s.span, s.own, s.strands);
        }
        for line in &self.maps {
            let _ = writeln!(out, "map	{}", escape(line));
        }
        for p in &self.problems {
            let _ = writeln!(out, "problem\t{}", escape(p));
        }
        out.push_str("end\n");
        out
    }

    /// Reads the text; the error names the first line that is wrong.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(MAGIC) {
            return Err(String::from("it does not start as a span record does"));
        }
        let mut dump = Dump::default();
        let mut ended = false;
        for (n, line) in lines.enumerate() {
            let mut words = line.split('\t');
            match words.next() {
                Some("end") => ended = true,
                Some(word) => dump
                    .line(word, &words.collect::<Vec<_>>())
                    .ok_or_else(|| format!("line {} of the span record is not understood: {line}", n + 2))?,
                None => {}
            }
        }
        if ended { Ok(dump) } else { Err(String::from("its end is missing")) }
    }

    fn line(&mut self, word: &str, rest: &[&str]) -> Option<()> {
        let number = |i: usize| rest.get(i).and_then(|s| s.parse::<u64>().ok());
        let text = |i: usize| rest.get(i).map(|s| unescape(s));
        let t = &mut self.totals;
        match word {
            "fact" => {
                self.facts.insert(text(0)?, text(1)?);
            }
            "total" => {
                let value = number(1)?;
                match *rest.first()? {
                    "work" => t.work = value,
                    "span" => t.span = value,
                    "burdened" => t.burdened = value,
                    "spawns" => t.spawns = value,
                    "syncs" => t.syncs = value,
                    _ => return None,
                }
            }
            "site" => {
                let stack = rest.get(3)?.split(',').filter(|s| !s.is_empty());
                let stack = stack.map(|s| u64::from_str_radix(s, 16).ok()).collect::<Option<_>>()?;
                self.places.push(Place {
                    kind: Kind::parse(rest.get(1)?)?,
                    line: number(2)? as u32,
                    stack,
                    function: text(4)?,
                    callee: text(5)?,
                    file: text(6)?,
                });
            }
            "on-work" | "on-span" => {
                let m = |i: usize| {
                    Some(Measure { count: number(i)?, work: number(i + 1)?, span: number(i + 2)? })
                };
                let record = Record { site: m(1)?, caller: m(4)?, local: m(7)? };
                let records = if word == "on-work" { &mut t.on_work } else { &mut t.on_span };
                *slot(records, number(0)?)? = record;
            }
            "faster" => *slot(&mut t.faster, number(0)?)? = [number(1)?, number(2)?, number(3)?],
            "step" => t.steps.push(Step {
                site: number(0)? as Site,
                span: number(1)?,
                own: number(2)?,
                strands: number(3)?,
            }),
            "map" => self.maps.push(text(0)?),
            "problem" => self.problems.push(text(0)?),
            _ => return None,
        }
        Some(())
    }
}

fn slot<T: Default + Clone>(items: &mut Vec<T>, at: u64) -> Option<&mut T> {
    // More sites than any program has: a damaged number must not become an allocation.
    let at = usize::try_from(at).ok().filter(|&at| at < 1 << 22)?;
    if items.len() <= at {
        items.resize(at + 1, T::default());
    }
    items.get_mut(at)
}

fn escape(s: &str) -> String {
    s.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn unescape(s: &str) -> String {
    let mut out = String::new();
    let mut chars = s.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next() {
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

/// Costs of one unit in another one: `cost · numerator / denominator`, in all totals.
pub fn convert(totals: &mut Totals, numerator: u64, denominator: u64) {
    let c = |cost: &mut Cost| {
        *cost = (u128::from(*cost) * u128::from(numerator) / u128::from(denominator.max(1))) as u64
    };
    [&mut totals.work, &mut totals.span, &mut totals.burdened].into_iter().for_each(c);
    for r in totals.on_work.iter_mut().chain(&mut totals.on_span) {
        for m in [&mut r.site, &mut r.caller, &mut r.local] {
            c(&mut m.work);
            c(&mut m.span);
        }
    }
    totals.faster.iter_mut().flat_map(|f: &mut [Cost; FACTORS.len()]| f).for_each(c);
    for s in &mut totals.steps {
        c(&mut s.span);
        c(&mut s.own);
    }
}

/// A fact as a number.
pub fn number(dump: &Dump, key: &str) -> Option<u64> {
    dump.facts.get(key).and_then(|v| v.to_string().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let m = Measure { count: 1, work: 20, span: 3 };
        let record = Record { site: m, caller: m, local: m };
        let dump = Dump {
            facts: BTreeMap::from([("model".into(), "rayon\n".into())]),
            places: Vec::from([
                Place { function: "a\tb\\".into(), stack: Vec::from([16, 17]), ..Place::default() },
                Place { kind: Kind::Loop, file: "x y.rs".into(), line: 7, ..Place::default() },
                Place { kind: Kind::Sampled(1), ..Place::default() },
            ]),
            totals: Totals {
                work: 9,
                span: 8,
                on_work: Vec::from([Record::default(), record]),
                faster: Vec::from([[1, 2, 3]]),
                steps: Vec::from([Step { site: 1, span: 2, own: 2, strands: 3 }]),
                ..Totals::default()
            },
            problems: Vec::from(["it \\ rained".into()]),
            maps: Vec::from(["1-2 r-xp 0 0:0 1 /x".into()]),
        };
        let text = dump.write();
        let again = Dump::read(&text).expect("it was just written");
        assert_eq!(again.write(), text);
        assert_eq!(again.places, dump.places);
        assert!(Dump::read(&text[..text.len() - 4]).unwrap_err().contains("end is missing"));
        assert!(Dump::read("farsight-span\t1\nsite\tx\n").unwrap_err().contains("line 2"));
    }
}
