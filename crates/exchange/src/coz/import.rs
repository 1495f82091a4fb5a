//! Coz profiles into ours.

use profile::causal::{By, Causal, Experiment, PointKind, Progress, ProgressPoint, Target};
use profile::{Data, Exit, Profile, Program, Run, RunId};

/// Why nothing could be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// No line of the file is an experiment.
    #[error("{0}: no experiment in it; is it a Coz profile?")]
    NoExperiment(String),
}

/// Reads a `.coz` or JSON-lines file; which of the two shows in its first character.
pub fn import(name: &str, bytes: &[u8]) -> Result<Profile, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = Reader::default();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let record = if line.starts_with('{') { Record::of_json(line) } else { Record::of_tabs(line) };
        if record.and_then(|record| reader.take(&record)).is_none() {
            reader.rejected.push(number);
        }
    }
    reader.finish(name, bytes)
}

/// One line: its kind and its fields.
struct Record {
    kind: String,
    fields: Vec<(String, String)>,
}

impl Record {
    fn of_tabs(line: &str) -> Option<Record> {
        let mut parts = line.split('\t');
        let kind = parts.next()?.to_owned();
        let field = |part: &str| part.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        Some(Record { kind, fields: parts.map(field).collect::<Option<_>>()? })
    }

    /// A flat object of strings and numbers, which is all that Coz writes.
    fn of_json(line: &str) -> Option<Record> {
        let mut rest = line.trim().strip_prefix('{')?.strip_suffix('}')?;
        let mut fields = Vec::new();
        while !rest.trim().is_empty() {
            let (key, after) = string(rest.trim_start())?;
            rest = after.trim_start().strip_prefix(':')?.trim_start();
            let value;
            if rest.starts_with('"') {
                (value, rest) = string(rest)?;
            } else {
                let end = rest.find(',').unwrap_or(rest.len());
                value = rest[..end].trim().to_owned();
                rest = &rest[end..];
            }
            fields.push((key, value));
            rest = rest.trim_start().strip_prefix(',').unwrap_or(rest.trim_start());
        }
        let at = fields.iter().position(|(k, _)| k == "type")?;
        let (_, kind) = fields.remove(at);
        Some(Record { kind, fields })
    }

    fn text(&self, key: &str) -> Option<&str> {
        let is_it = |k: &str| k == key || k.replace('_', "-") == key;
        self.fields.iter().find(|(k, _)| is_it(k)).map(|(_, v)| v.as_str())
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    fn share(&self, key: &str) -> Option<f64> {
        self.text(key)?.parse().ok().filter(|x: &f64| x.is_finite())
    }
}

/// A JSON string at the start of `text`, and what follows it.
fn string(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.char_indices();
    while let Some((i, c)) = chars.next() {
        match c {
            '"' => return Some((out, &text[i + 2..])),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'u' => {
                    let digits: String = (0..4).map_while(|_| chars.next().map(|(_, c)| c)).collect();
                    out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?).unwrap_or('\u{fffd}'));
                }
                other => out.push(other),
            },
            c => out.push(c),
        }
    }
    None
}

#[derive(Default)]
struct Reader {
    points: Vec<ProgressPoint>,
    targets: Vec<Target>,
    experiments: Vec<Experiment>,
    clock_ns: u64,
    wall_ns: u64,
    started_unix_ns: u64,
    rejected: Vec<usize>,
}

impl Reader {
    fn take(&mut self, record: &Record) -> Option<()> {
        match record.kind.as_str() {
            "startup" => {
                if self.started_unix_ns == 0 {
                    self.started_unix_ns = record.number("time").unwrap_or(0);
                }
            }
            "shutdown" => {}
            "runtime" => self.wall_ns = self.wall_ns.saturating_add(record.number("time")?),
            "samples" => {
                let target = self.target(record.text("location")?);
                // Counts are of the run so far: the last one stands.
                self.targets[target].samples = record.number("count")?;
            }
            "experiment" => {
                let target = self.target(record.text("selected")?) as u32;
                let duration_ns = record.number("duration")?;
                let speedup = record.share("speedup").filter(|s| (0.0..=1.0).contains(s))?;
                self.experiments.push(Experiment {
                    start_ns: self.clock_ns,
                    duration_ns,
                    target,
                    speedup_permille: (speedup * 1000.0).round() as u32,
                    selected_samples: record.number("selected-samples").unwrap_or(0),
                    ..Experiment::default()
                });
                self.clock_ns = self.clock_ns.saturating_add(duration_ns);
            }
            "throughput-point" | "throughput_point" | "progress-point" => {
                let visits = record.number("delta")?;
                let progress = Progress { visits, ..Progress::default() };
                self.progress(record.text("name")?, PointKind::Throughput, progress)?;
            }
            "latency-point" | "latency_point" => {
                let mean = record.share("difference")?.max(0.0);
                let duration_ns = self.experiments.last()?.duration_ns;
                let progress = Progress {
                    visits: record.number("arrivals")?,
                    departures: record.number("departures").unwrap_or(0),
                    in_flight_ns: (mean * duration_ns as f64) as u64,
                };
                self.progress(record.text("name")?, PointKind::Latency, progress)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn target(&mut self, name: &str) -> usize {
        if let Some(at) = self.targets.iter().position(|t| t.name == name) {
            return at;
        }
        let place = name.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
        let (file, line) = place.unwrap_or(("", 0));
        self.targets.push(Target { name: name.to_owned(), file: file.to_owned(), line, ..Target::default() });
        self.targets.len() - 1
    }

    fn progress(&mut self, name: &str, kind: PointKind, progress: Progress) -> Option<()> {
        let same = |p: &ProgressPoint| p.name == name && p.kind == kind;
        let at = self.points.iter().position(same).unwrap_or_else(|| {
            self.points.push(ProgressPoint { name: name.to_owned(), kind, visits: 0 });
            self.points.len() - 1
        });
        self.points[at].visits = self.points[at].visits.saturating_add(progress.visits);
        let experiment = self.experiments.last_mut()?;
        if experiment.progress.len() <= at {
            experiment.progress.resize(at + 1, Progress::default());
        }
        experiment.progress[at] = progress;
        Some(())
    }

    fn finish(self, name: &str, bytes: &[u8]) -> Result<Profile, ImportError> {
        if self.experiments.is_empty() {
            return Err(ImportError::NoExperiment(name.to_owned()));
        }
        let mut problems = Vec::new();
        if let Some(first) = self.rejected.first() {
            problems.push(format!(
                "{name}: lines that make no sense were left out: {}, the first is line {first}",
                self.rejected.len()
            ));
        }
        let causal = Causal {
            points: self.points,
            targets: self.targets,
            experiments: self.experiments,
            ..Causal::new(By::Line)
        };
        let run = Run {
            id: RunId::of_content([b"coz".as_slice(), bytes]),
            program: Program { path: name.to_owned(), ..Program::default() },
            command: Vec::new(),
            exit: Exit::Unknown,
            started_unix_ns: self.started_unix_ns,
            wall_ns: self.wall_ns,
            cpu_ns: 0,
            problems,
            data: Data::Causal(causal),
        };
        Ok(Profile { runs: vec![run] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Format, export};
    use super::*;

    const TABS: &str = "startup\ttime=5\n\
        experiment\tselected=/a b/x.c:12\tspeedup=0.00\tduration=500000000\tselected-samples=7\n\
        throughput-point\tname=x.c:30\tdelta=100\n\
        latency-point\tname=req\tarrivals=50\tdepartures=49\tdifference=2\n\
        experiment\tselected=/a b/x.c:13\tspeedup=0.25\tduration=400000000\tselected-samples=9\n\
        throughput-point\tname=x.c:30\tdelta=110\n\
        nonsense\n\
        runtime\ttime=900000000\n\
        samples\tlocation=/a b/x.c:12\tcount=70\n";

    fn causal(profile: &Profile) -> &Causal {
        match &profile.runs[0].data {
            Data::Causal(causal) => causal,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tabs_and_json_mean_the_same() {
        let tabs = import("x.coz", TABS.as_bytes()).unwrap();
        let facts = causal(&tabs);
        assert_eq!(facts.validate(), Ok(()));
        assert_eq!(facts.experiments.len(), 2);
        assert_eq!(facts.targets[1].line, 13);
        assert_eq!(facts.experiments[0].progress[1].in_flight_ns, 1_000_000_000);
        assert_eq!(facts.experiments[1].speedup_permille, 250);
        assert_eq!(tabs.runs[0].problems.len(), 1);
        let json = export(&tabs.runs, Format::Json).unwrap();
        assert!(json.starts_with(b"{\"type\":\"startup\",\"time\":5}\n"));
        assert_eq!(causal(&import("x.jsonl", &json).unwrap()), facts);
        let again = export(&tabs.runs, Format::Tabs).unwrap();
        assert_eq!(causal(&import("x.coz", &again).unwrap()), facts);
    }

    #[test]
    fn names_of_release_0_2_5_are_known() {
        let text = "{\"type\":\"experiment\",\"selected\":\"a:1\",\"speedup\":0.5,\"duration\":9,\"selected_samples\":3}\n\
                    {\"type\":\"throughput_point\",\"name\":\"p \\\"q\\\"\",\"delta\":4}\n";
        let profile = import("p.jsonl", text.as_bytes()).unwrap();
        assert_eq!(causal(&profile).points[0].name, "p \"q\"");
        assert_eq!(causal(&profile).experiments[0].selected_samples, 3);
        assert!(profile.runs[0].problems.is_empty());
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in ["", "hello\n", "{\"type\":1", "\u{0}\t\t=", "experiment\tselected=\n"] {
            assert!(import("f", bytes.as_bytes()).is_err(), "{bytes:?}");
        }
    }
}
