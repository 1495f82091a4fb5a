//! Progress points of every kind, read at one instant.
//!
//! | kind | where its visits come from |
//! |---|---|
//! | source level | counters in shared memory that the program increments (`annotate`, `coz.h`, the `coz` crate) |
//! | breakpoint | hardware breakpoints or uprobes, counted by the kernel |
//! | sampled | samples on a line |
//! | end to end | the run itself |
//!
//! Latency points are pairs: begins and ends.

use std::sync::atomic::Ordering::*;

use launch::breakpoint::{Breakpoint, Site};
use profile::causal::{PointKind, ProgressPoint};
use wire::causal::{POINT_NAME_BYTES_MAX, Point, Shared, kind};

use crate::code::{Code, Wanted};

/// A progress point that the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PointSpec {
    /// Visits of `file:line` or of a function, counted by breakpoints.
    Breakpoint(String),
    /// From one place to another, counted by breakpoints.
    Latency(String, String),
    /// Samples on `file:line`.
    Sampled(String),
}

/// Why a point cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpecError {
    /// Nothing of that name in the program.
    #[error(
        "progress point {0:?}: the program has no such function, and no code of such a line (was it built with -g?)"
    )]
    NotFound(String),
    /// The machine does not allow breakpoints.
    #[error(
        "progress point {place:?}: the kernel refuses breakpoints: {source}; try: sysctl kernel.perf_event_paranoid=2, or --sampled {place}"
    )]
    Refused {
        /// The point.
        place: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The points of a run.
#[derive(Default)]
pub struct Points {
    known: Vec<Known>,
    /// Shared points looked at so far.
    scanned: usize,
    /// Which of `known` the shared points belong to.
    owners: Vec<usize>,
}

struct Known {
    name: String,
    kind: PointKind,
    source: Source,
}

enum Source {
    Program,
    Breakpoints { begin: Vec<Breakpoint>, end: Vec<Breakpoint> },
    Sampled(Wanted),
    Run,
}

/// Counts of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Visits, or begins.
    pub visits: u64,
    /// Ends.
    pub departures: u64,
    /// Delays that requests in flight suffered, summed over requests; nothing where that is not known.
    pub delayed_ns: Option<u64>,
}

impl Points {
    /// Adds the points of the command line. The process must have its libraries loaded.
    pub fn add(&mut self, specs: &[PointSpec], pid: u32, code: &mut Code) -> Result<(), SpecError> {
        for spec in specs {
            let (name, kind, source) = match spec {
                PointSpec::Breakpoint(place) => {
                    let begin = breakpoints(place, pid, code)?;
                    (place.clone(), PointKind::Throughput, Source::Breakpoints { begin, end: Vec::new() })
                }
                PointSpec::Latency(from, to) => {
                    let (begin, end) = (breakpoints(from, pid, code)?, breakpoints(to, pid, code)?);
                    (format!("{from}..{to}"), PointKind::Latency, Source::Breakpoints { begin, end })
                }
                PointSpec::Sampled(place) => {
                    (place.clone(), PointKind::Sampled, Source::Sampled(Wanted::parse(place)))
                }
            };
            self.known.push(Known { name, kind, source });
        }
        Ok(())
    }

    /// Adds the run itself as a point.
    pub fn add_end_to_end(&mut self) {
        self.known.push(Known { name: "end-to-end".into(), kind: PointKind::EndToEnd, source: Source::Run });
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether any measures latency.
    pub fn have_latency(&self) -> bool {
        self.known.iter().any(|k| k.kind == PointKind::Latency)
    }

    /// Takes in points that the program has made since.
    pub fn discover(&mut self, shared: &Shared) {
        let made = (shared.counts.points.load(Acquire) as usize).min(shared.points.len());
        while self.scanned < made {
            let point = &shared.points[self.scanned];
            let of = point.kind.load(Acquire);
            if of == 0 {
                return; // being made
            }
            let name = name_of(point);
            let kind = if of == kind::THROUGHPUT { PointKind::Throughput } else { PointKind::Latency };
            let same = |k: &Known| k.name == name && k.kind == kind && matches!(k.source, Source::Program);
            let owner = self.known.iter().position(same).unwrap_or_else(|| {
                self.known.push(Known { name: name.clone(), kind, source: Source::Program });
                self.known.len() - 1
            });
            self.owners.push(owner);
            self.scanned += 1;
        }
    }

    /// All counts now.
    pub fn read(&self, shared: &Shared, code: &Code) -> Vec<Reading> {
        let mut readings = vec![Reading::default(); self.known.len()];
        for (point, &owner) in shared.points.iter().zip(&self.owners) {
            let count = point.counter.count.load(Relaxed);
            let reading = &mut readings[owner];
            match point.kind.load(Relaxed) {
                kind::END => reading.departures += count,
                of => {
                    reading.visits += count;
                    if of == kind::BEGIN {
                        let delayed = point.delayed_ns.load(Relaxed);
                        reading.delayed_ns = Some(reading.delayed_ns.unwrap_or(0) + delayed);
                    }
                }
            }
        }
        for (known, reading) in self.known.iter().zip(&mut readings) {
            match &known.source {
                Source::Program | Source::Run => {}
                Source::Breakpoints { begin, end } => {
                    reading.visits = begin.iter().map(Breakpoint::count).sum();
                    reading.departures = end.iter().map(Breakpoint::count).sum();
                }
                Source::Sampled(place) => {
                    let of_place =
                        code.targets().iter().zip(&shared.samples[1..]).filter(|(t, _)| match place {
                            Wanted::Line { file, line } => {
                                t.line == *line && (t.file == *file || t.file.ends_with(&format!("/{file}")))
                            }
                            Wanted::Function(name) => t.function == *name,
                        });
                    reading.visits = of_place.map(|(_, count)| count.load(Relaxed)).sum();
                }
            }
        }
        readings
    }

    /// The points as facts, with their final counts.
    pub fn facts(&self, readings: &[Reading]) -> Vec<ProgressPoint> {
        let facts = self.known.iter().zip(readings);
        facts.map(|(k, r)| ProgressPoint { name: k.name.clone(), kind: k.kind, visits: r.visits }).collect()
    }
}

fn name_of(point: &Point) -> String {
    let len = (point.name_len.load(Relaxed) as usize).min(POINT_NAME_BYTES_MAX);
    let bytes: Vec<u8> =
        point.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).take(len).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn breakpoints(place: &str, pid: u32, code: &mut Code) -> Result<Vec<Breakpoint>, SpecError> {
    /// The processor has no more.
    const MOST: usize = 4;
    let sites = code.find(&Wanted::parse(place));
    if sites.is_empty() {
        return Err(SpecError::NotFound(place.into()));
    }
    let open = |(address, file, offset): &(u64, std::path::PathBuf, u64)| {
        Breakpoint::open(pid, &Site { address: *address, file, offset: *offset })
    };
    sites
        .iter()
        .take(MOST)
        .map(|site| open(site).map_err(|source| SpecError::Refused { place: place.into(), source }))
        .collect()
}
