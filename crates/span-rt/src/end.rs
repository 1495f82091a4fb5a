//! The record that is left behind: a file in the folder that the tool named, written once, at exit.

use crate::clock;
use crate::env::{Cost, settings};
use spandag::dump::{self, Dump};
use spandag::serial::Totals;

/// Writes the record of this process. `model` names the parallel runtime.
pub fn write(model: &str, mut totals: Totals, facts: &[(&str, String)], mut problems: Vec<String>) {
    let Some(out) = &settings().out else { return };
    let mut dump = Dump { places: crate::sites::places(), ..Dump::default() };
    let unit = match settings().cost {
        Cost::Units => "units",
        Cost::Instructions => "instructions",
        Cost::Time => "ns",
    };
    dump.facts.insert("unit".into(), unit.into());
    if settings().cost == Cost::Time {
        dump::convert(&mut totals, 1 << 32, clock::rate());
    }
    dump.facts.insert("model".into(), model.into());
    dump.facts.insert("burden".into(), settings().burden_ns.to_string());
    let program = std::env::current_exe().map(|p| p.display().to_string()).unwrap_or_default();
    dump.facts.insert("program".into(), program);
    dump.facts.insert("pid".into(), std::process::id().to_string());
    for (key, value) in facts {
        dump.facts.insert((*key).into(), value.clone());
    }
    match std::fs::read_to_string("/proc/self/maps") {
        Ok(maps) => dump.maps = executable(&maps),
        Err(e) => problems.push(format!("the program's memory map could not be read: {e}")),
    }
    dump.totals = totals;
    dump.problems = problems;
    let path = format!("{out}/{}.{model}", std::process::id());
    if let Err(e) = std::fs::write(&path, dump.write()) {
        eprintln!("farsight: cannot write {path}: {e}");
    }
}

/// Files that are mapped to be executed.
fn executable(maps: &str) -> Vec<String> {
    let wanted = |line: &&str| line.split(' ').nth(1).is_some_and(|a| a.contains('x')) && line.contains(" /");
    maps.lines().filter(wanted).map(str::to_owned).collect()
}

/// Sentences about the clock and the end of the program.
pub fn problems(collected: &crate::local::Collected) -> Vec<String> {
    let mut problems = Vec::new();
    if collected.cut_short {
        problems.push("the program ended inside a parallel operation; what ran then is missing".into());
    }
    if collected.samples_lost > 0 {
        problems.push(format!(
            "{} samples found no room: calls in very long strands with many call sites are counted too low",
            collected.samples_lost
        ));
    }
    if collected.calls_dropped > 0 {
        problems.push(format!(
            "{} calls found no room and are part of their callers: a thread's log holds {} places",
            collected.calls_dropped,
            crate::calls::CALLS_MAX
        ));
    }
    if collected.skipped {
        problems.push(
            "some tasks forked too soon to look at the calls that they were in, which are part of them"
                .into(),
        );
    }
    problems.extend(crate::repeat::finish());
    problems.extend(clock_problems(collected.sees_preemption, collected.misses_engine));
    problems
}

/// Sentences about the clock alone.
pub fn clock_problems(sees_preemption: bool, misses_engine: bool) -> Option<String> {
    if misses_engine {
        return Some("instructions were not counted: the program did not run in the engine".into());
    }
    (!sees_preemption && settings().cost == Cost::Time && !settings().raw).then(|| {
        "preemption is not seen (glibc has not registered rseq); on a busy machine spans are too long".into()
    })
}
