//! Causal runs as Coz's viewer reads them.

use std::fmt::Write as _;

use profile::causal::{Causal, Experiment, PointKind, Progress, ProgressPoint};
use profile::{Data, Run};

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Tab-separated `.coz`, which every viewer reads.
    Tabs,
    /// One JSON object a line.
    Json,
}

/// The causal runs of a profile, one after the other; nothing if there are none.
pub fn export<'a>(runs: impl IntoIterator<Item = &'a Run>, format: Format) -> Option<Vec<u8>> {
    let mut out = String::new();
    for run in runs {
        if let Data::Causal(causal) = &run.data {
            write_run(&mut out, run, causal, format);
        }
    }
    (!out.is_empty()).then(|| out.into_bytes())
}

fn write_run(out: &mut String, run: &Run, causal: &Causal, format: Format) {
    let line = |out: &mut String, kind: &str, fields: &[(&str, Value)]| match format {
        Format::Tabs => {
            out.push_str(kind);
            for (key, value) in fields {
                let _ = write!(out, "\t{key}={}", value.plain());
            }
            out.push('\n');
        }
        Format::Json => {
            let _ = write!(out, "{{\"type\":\"{kind}\"");
            for (key, value) in fields {
                let _ = write!(out, ",\"{}\":{}", key.replace('-', "_"), value.json());
            }
            out.push_str("}\n");
        }
    };
    line(out, "startup", &[("time", Value::Number(run.started_unix_ns))]);
    for e in &causal.experiments {
        let name = &causal.targets[e.target as usize].name;
        line(
            out,
            "experiment",
            &[
                ("selected", Value::Text(name)),
                ("speedup", Value::Share(f64::from(e.speedup_permille) / 1000.0)),
                ("duration", Value::Number(e.effective_ns())),
                ("selected-samples", Value::Number(e.selected_samples)),
            ],
        );
        for (point, progress) in causal.points.iter().zip(&e.progress) {
            write_point(&mut |kind, fields| line(out, kind, fields), point, progress, e);
        }
    }
    line(out, "runtime", &[("time", Value::Number(run.wall_ns))]);
    for target in causal.targets.iter().filter(|t| t.samples > 0) {
        line(
            out,
            "samples",
            &[("location", Value::Text(&target.name)), ("count", Value::Number(target.samples))],
        );
    }
}

type Line<'a> = &'a mut dyn FnMut(&str, &[(&str, Value<'_>)]);

fn write_point(line: Line<'_>, point: &ProgressPoint, progress: &Progress, e: &Experiment) {
    let name = ("name", Value::Text(&point.name));
    match point.kind {
        PointKind::Latency => {
            let mean = progress.in_flight_ns as f64 / e.effective_ns().max(1) as f64;
            let numbers = [
                ("arrivals", Value::Number(progress.visits)),
                ("departures", Value::Number(progress.departures)),
                ("difference", Value::Share(mean)),
            ];
            line("latency-point", &[name, numbers[0], numbers[1], numbers[2]]);
        }
        _ => line("throughput-point", &[name, ("delta", Value::Number(progress.visits))]),
    }
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Share(f64),
}

impl Value<'_> {
    /// Tabs and line ends would break the format; no path that Coz can show has any.
    fn plain(self) -> String {
        match self {
            Value::Text(text) => text.replace(['\t', '\n', '\r'], " "),
            Value::Number(n) => n.to_string(),
            Value::Share(x) => format!("{x:.3}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        }
    }

    fn json(self) -> String {
        match self {
            Value::Text(text) => {
                let mut out = String::from("\"");
                for c in text.chars() {
                    match c {
                        '"' | '\\' => out.extend(['\\', c]),
                        c if u32::from(c) < 0x20 => {
                            let _ = write!(out, "\\u{:04x}", u32::from(c));
                        }
                        c => out.push(c),
                    }
                }
                out.push('"');
                out
            }
            other => other.plain(),
        }
    }
}
