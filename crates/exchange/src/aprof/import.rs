//! Reports to runs.
//!
//! Reports of one process (same folder, program and process id, and no contradiction in what they say of the
//! program and the measurement) become one run. Routine ids mean nothing across files, so routines are put together
//! by object and linker name. The run's id is a hash of its reports: importing them again gives the same run.

use std::collections::HashMap;

use profile::{Cost, Data, Exit, Growth, Metric, Profile, Program, Run, RunId, ThreadCost, ThreadPoints};

use super::name::Name;
use super::report::Report;

/// A report to import.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Its path or name: says to which run and thread it belongs.
    pub name: &'a str,
    /// Its content.
    pub bytes: &'a [u8],
}

/// Why reports cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// A version that we do not read.
    #[error("{file}: aprof report of version {found}; only version 6 (aprof 0.2) can be imported")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
    },
    /// Something else.
    #[error("{file}: not an aprof report: it has neither a version nor routines")]
    Foreign {
        /// The file.
        file: String,
    },
    /// No file.
    #[error("no aprof report was given")]
    Nothing,
}

/// Bytes per cell that aprof uses unless told otherwise.
const CELL_BYTES_DEFAULT: u32 = 4;

/// Imports reports, in any order. What is wrong with them stands in the runs' problems.
pub fn import(sources: &[Source<'_>]) -> Result<Profile, ImportError> {
    if sources.is_empty() {
        return Err(ImportError::Nothing);
    }
    let mut files = Vec::with_capacity(sources.len());
    for source in sources {
        files.push(Part::read(source)?);
    }
    files.sort_by(|a, b| (&a.key, a.thread, a.bytes).cmp(&(&b.key, b.thread, b.bytes)));

    let mut groups: Vec<Vec<Part<'_>>> = Vec::new();
    // Where the group of a key is, and how often the thread occurred in it: a second report of the same thread
    // is of a second run with the same process id.
    let mut places: HashMap<(Key, usize), usize> = HashMap::new();
    for part in files {
        let mut round = 0;
        loop {
            match places.get(&(part.key.clone(), round)).copied() {
                None => {
                    places.insert((part.key.clone(), round), groups.len());
                    groups.push(vec![part]);
                    break;
                }
                Some(place) => {
                    let group = &mut groups[place];
                    match group.iter_mut().find(|other| other.thread == part.thread) {
                        None => {
                            group.push(part);
                            break;
                        }
                        Some(other) if other.bytes == part.bytes => {
                            other.report.problems.file("it was given twice, and was counted once");
                            break;
                        }
                        Some(_) => round += 1,
                    }
                }
            }
        }
    }
    let mut runs: Vec<Run> = groups.into_iter().map(run).collect();
    runs.sort_by_key(|run| run.id);
    runs.dedup_by_key(|run| run.id);
    Ok(Profile { runs })
}

/// What the reports of one run have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    /// Folder, program and process id; the whole name when it is of another form.
    process: (String, String, u64),
    program: String,
    command: String,
    modified_unix_s: u64,
    metric: Metric,
    cost: Cost,
    cell_bytes: u32,
}

struct Part<'a> {
    key: Key,
    thread: Option<u64>,
    report: Report,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    fn read(source: &Source<'a>) -> Result<Self, ImportError> {
        let mut report = Report::parse(source.name, source.bytes)?;
        let name = Name::parse(source.name);
        let thread = name.as_ref().map(|name| name.thread);
        let problems = &mut report.problems;
        let named_cell = name.as_ref().map(|name| name.cell_bytes);
        let cell_bytes = match (report.cell_bytes, named_cell) {
            (Some(stated), Some(named)) if stated != named => {
                problems.file(&format!("cells of {stated} bytes, but the file's name says {named}"));
                stated
            }
            (Some(bytes), _) => bytes,
            (None, Some(named)) if named > 0 => named,
            (None, _) => {
                problems.file("it does not say the size of memory cells; taken for 4 bytes");
                CELL_BYTES_DEFAULT
            }
        };
        let cost = report.cost.unwrap_or_else(|| {
            problems.file("it does not say what costs are; taken for basic blocks");
            Cost::Blocks
        });
        let metric = report.metric.unwrap_or_else(|| {
            problems.file("it does not say what sizes are; taken for rms");
            Metric::Rms
        });
        let (process, from_name) = match name {
            Some(name) => ((name.folder, name.program.clone(), name.pid), name.program),
            None => ((source.name.to_owned(), String::new(), 0), String::new()),
        };
        let key = Key {
            process,
            program: report.program.clone().unwrap_or(from_name),
            command: report.command.clone().unwrap_or_default(),
            modified_unix_s: report.modified_unix_s.unwrap_or(0),
            metric,
            cost,
            cell_bytes,
        };
        Ok(Self { key, thread, report, bytes: source.bytes })
    }
}

fn run(parts: Vec<Part<'_>>) -> Run {
    let key = parts[0].key.clone();
    let id = {
        let threads: Vec<[u8; 8]> = parts.iter().map(|p| p.thread.unwrap_or(0).to_le_bytes()).collect();
        let pieces = threads.iter().zip(&parts).flat_map(|(thread, part)| [&thread[..], part.bytes]);
        RunId::of_content([&b"aprof report"[..]].into_iter().chain(pieces))
    };
    let apart = parts.len() > 1;
    let scale = if key.cost == Cost::TimeNs { 1000 } else { 1 };
    let mut growth = Growth::new(key.metric, key.cost, key.cell_bytes);
    let mut problems = Vec::new();
    growth.cost_total =
        parts.iter().try_fold(0u64, |sum, p| Some(sum.saturating_add(p.report.cost_total?))).unwrap_or(0);
    growth.cost_total = growth.cost_total.saturating_mul(scale);
    for part in parts {
        let mut report = part.report;
        if report.cost_total.is_none() {
            report.problems.file("it does not say its total cost");
        }
        if let Some(id) = part.thread {
            let cost_total = report.cost_total.unwrap_or(0).saturating_mul(scale);
            growth.threads.push(ThreadCost { id, cost_total });
        }
        for mut routine in report.routines {
            routine.points.iter_mut().for_each(|point| point_times(point, scale));
            routine.threads.extend(part.thread);
            if let Some(thread) = part.thread.filter(|_| apart) {
                routine.by_thread.push(ThreadPoints { thread, points: routine.points.clone() });
            }
            growth.routines.push(routine);
        }
        problems.append(&mut report.problems.into_sentences());
    }
    growth.normalize();
    let command = command(&key.program, &key.command);
    Run {
        id,
        program: Program { path: key.program, build_id: Vec::new(), modified_unix_s: key.modified_unix_s },
        command,
        exit: Exit::Unknown,
        started_unix_ns: 0,
        wall_ns: 0,
        cpu_ns: 0,
        problems,
        data: Data::Growth(growth),
    }
}

/// Splits a command line at blanks, which is all that can be done; only the program's own path is known.
fn command(program: &str, line: &str) -> Vec<String> {
    if line.is_empty() {
        return Vec::new();
    }
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    match line.strip_prefix(program).filter(|_| !program.is_empty()) {
        Some("") => vec![program.to_owned()],
        Some(rest) if rest.starts_with(' ') => {
            let mut all: Vec<String> = words(&rest[1..]);
            all.insert(0, program.to_owned());
            all
        }
        _ => words(line),
    }
}

fn point_times(point: &mut profile::Point, scale: u64) {
    if scale == 1 {
        return;
    }
    let costs = [
        &mut point.min,
        &mut point.max,
        &mut point.sum,
        &mut point.real_sum,
        &mut point.self_sum,
        &mut point.self_min,
        &mut point.self_max,
    ];
    costs.into_iter().for_each(|cost| *cost = cost.saturating_mul(scale));
    let square = u128::from(scale) * u128::from(scale);
    point.sumsq = point.sumsq.saturating_mul(square);
    point.self_sumsq = point.self_sumsq.saturating_mul(square);
}
