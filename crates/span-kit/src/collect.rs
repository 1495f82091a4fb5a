//! From the records that programs leave behind to profiles: names for addresses, one entry per source line.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use profile::span::{Measure, Measures, Model, Site, SiteKind, Span, Step, Unit};
use spandag::dump::{self, Dump, Kind, Place};
use symbols::{Epoch, Frame, Options, ProcessAddr, ProcessMap, Symbolizer};

/// What one process left behind.
pub struct Record {
    /// The executable.
    pub program: String,
    /// Process id.
    pub pid: u64,
    /// What it measured.
    pub span: Span,
    /// What is missing or doubtful.
    pub problems: Vec<String>,
}

/// Reads all records in `folder`. Files that cannot be read become problems, not errors.
pub fn read(folder: &Path) -> io::Result<(Vec<Record>, Vec<String>)> {
    let mut records = Vec::new();
    let mut problems = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|e| e.path()).collect();
    files.sort();
    for file in files {
        match fs::read_to_string(&file).map_err(|e| e.to_string()).and_then(|text| Dump::read(&text)) {
            Ok(dump) => records.push(record(&dump)),
            Err(e) => problems.push(format!("a record of the program cannot be used: {e}")),
        }
    }
    // A process may have more than one runtime in it; the one that saw forks is the one that is used.
    records.sort_by_key(|r| (r.pid, std::cmp::Reverse(r.span.spawns)));
    records.dedup_by_key(|r| r.pid);
    Ok((records, problems))
}

fn record(dump: &Dump) -> Record {
    let t = &dump.totals;
    let fact = |name: &str| dump.facts.get(name).map(String::as_str).unwrap_or_default();
    let symbolizer = Symbolizer::new(Arc::new(symbols::fs::Disk), Options::default());
    let (map, _) = ProcessMap::from_maps_text(&dump.maps.join("\n"));
    let names = Names { symbolizer: &symbolizer, map: &map };
    let blank = spandag::Record::default();
    let sites = dump.places.iter().enumerate().map(|(i, place)| {
        let mut site = names.site(place);
        site.on_work = measures(t.on_work.get(i).unwrap_or(&blank));
        site.on_span = measures(t.on_span.get(i).unwrap_or(&blank));
        site.faster = t.faster.get(i).copied().unwrap_or([t.span; 3]);
        site
    });
    let mut sites: Vec<Site> = sites.collect();
    crate::sampled::divide(&dump.places, &mut sites, t.span);
    keep_apart(&mut sites);
    let mut span = Span {
        model: match fact("model") {
            "rayon" => Model::Rayon,
            "openmp" => Model::OpenMp,
            "cilk" => Model::Cilk,
            _ => Model::Serial,
        },
        unit: match fact("unit") {
            "instructions" => Unit::Instructions,
            "units" => Unit::Units,
            _ => Unit::Ns,
        },
        work: t.work,
        span: t.span,
        burdened_span: t.burdened.max(t.span),
        burden: dump::number(dump, "burden").unwrap_or(0),
        fork_extra_milli: 0,
        spawns: t.spawns,
        threads: dump::number(dump, "threads").unwrap_or(1),
        repaired: dump::number(dump, "repaired").unwrap_or(0),
        sites,
        path: t
            .steps
            .iter()
            .map(|s| Step { site: s.site.into(), span: s.span, own: s.own, strands: s.strands })
            .collect(),
        measured: Vec::new(),
    };
    span.drop_uninvoked();
    span.normalize();
    Record {
        program: fact("program").to_owned(),
        pid: dump::number(dump, "pid").unwrap_or(0),
        span,
        problems: dump.problems.clone(),
    }
}

/// Two calls on one line that fork may be inside each other, as in a recursion that forks into itself twice: what both do
/// would be counted twice if they were one. They stay two.
fn keep_apart(sites: &mut [Site]) {
    let mut seen = HashMap::new();
    for site in sites.iter_mut() {
        let top = site.on_work.site;
        if site.kind == SiteKind::Call && top.work != top.span {
            let place = (site.file.clone(), site.line, site.function.clone(), site.callee.clone());
            let number = seen.entry(place).and_modify(|n| *n += 1).or_insert(1);
            if *number > 1 {
                site.callee.push_str(&format!(" ({number})"));
            }
        }
    }
}

fn measures(r: &spandag::Record) -> Measures {
    let m = |m: spandag::Measure| Measure { count: m.count, work: m.work, span: m.span };
    Measures { site: m(r.site), caller: m(r.caller), local: m(r.local) }
}

struct Names<'a> {
    symbolizer: &'a Symbolizer,
    map: &'a ProcessMap,
}

impl Names<'_> {
    fn site(&self, place: &Place) -> Site {
        let kind = match place.kind {
            Kind::Call => SiteKind::Call,
            Kind::Spawn => SiteKind::Spawn,
            Kind::Loop => SiteKind::Loop,
            Kind::Sampled(_) => SiteKind::Sampled,
        };
        let mut site = Site {
            file: place.file.clone(),
            line: place.line,
            function: place.function.clone(),
            callee: place.callee.clone(),
            kind,
            ..Site::default()
        };
        if let Some(caller) = self.user_frame(&place.stack) {
            site.file = caller.file.as_deref().unwrap_or_default().to_owned();
            site.line = caller.line.unwrap_or(0);
            site.function = caller.function.as_ref().map(|n| n.readable().to_owned()).unwrap_or_default();
            // Rayon's loops have the type of their closure, which is long and says less than the line.
            if place.kind == Kind::Loop && place.callee.contains("::") {
                site.callee = "parallel iterator".into();
            }
        }
        site
    }

    /// The innermost frame of a stack that is the program's own.
    fn user_frame(&self, stack: &[u64]) -> Option<Frame> {
        let mut fallback = None;
        for &address in stack {
            // One byte before the return address is inside the call.
            let located = self.symbolizer.locate(self.map, ProcessAddr(address - 1), Epoch::default())?;
            let frames = located.resolve();
            for frame in frames.iter().rev() {
                if frame.file.is_some() && fallback.is_none() {
                    fallback = Some(frame.clone());
                }
                if frame.file.as_deref().is_some_and(|f| !is_plumbing(f)) {
                    return Some(frame.clone());
                }
            }
        }
        fallback
    }
}

/// Whether a source file is rayon's, the standard library's or ours.
fn is_plumbing(file: &str) -> bool {
    file.contains("/library/core/src/")
        || file.contains("/library/std/src/")
        || file.contains("/library/alloc/src/")
        || file.split('/').any(|part| {
            part == "span-rayon"
                || part == "span-rt"
                || part == "spandag"
                || ["rayon-core", "rayon", "crossbeam"].iter().any(|name| {
                    part.strip_prefix(name).is_some_and(|rest| {
                        rest.is_empty()
                            || rest
                                .strip_prefix('-')
                                .is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()))
                    })
                })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_line_that_fork_stay_apart() {
        let site = |work, span| {
            let mut site = Site { line: 7, callee: "f".into(), ..Site::default() };
            (site.on_work.site.work, site.on_work.site.span) = (work, span);
            site
        };
        let mut sites = [site(10, 5), site(4, 4), site(9, 5), site(3, 3)];
        keep_apart(&mut sites);
        assert_eq!(sites.map(|s| s.callee), ["f", "f", "f (2)", "f"]);
    }

    #[test]
    fn records_become_profiles_and_bad_ones_problems() {
        let folder = tempfile::tempdir().unwrap();
        let mut stack = spandag::serial::Stack::new(0, 0);
        stack.strand(5);
        stack.enter(1, 0, spandag::serial::How::Spawned);
        stack.strand(7);
        stack.leave();
        let dump = Dump {
            facts: [("model", "cilk"), ("pid", "7"), ("burden", "3")]
                .map(|(k, v)| (k.into(), v.into()))
                .into(),
            places: vec![
                Place { callee: "main".into(), ..Place::default() },
                Place { file: "a.c".into(), line: 4, kind: Kind::Spawn, ..Place::default() },
            ],
            totals: stack.finish(),
            ..Dump::default()
        };
        fs::write(folder.path().join("7.cilk"), dump.write()).unwrap();
        fs::write(folder.path().join("8.cilk"), "garbage").unwrap();
        let (records, problems) = read(folder.path()).unwrap();
        assert_eq!((records.len(), problems.len()), (1, 1));
        let span = &records[0].span;
        assert_eq!((span.model, span.work, span.span, span.burden), (Model::Cilk, 12, 12, 3));
        assert_eq!(span.validate(), Ok(()));
        let site = span.sites.iter().find(|s| s.line == 4).unwrap();
        assert_eq!((site.on_span.local.span, site.faster[2]), (7, 5));
    }
}
