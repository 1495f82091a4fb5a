//! The log against single-stepping: every access, call and return of every thread, one by one, on the programs of
//! `test-programs/count`.
//!
//! Both runs get the same environment and no address randomization, so addresses are equal too.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use stepper::trace::{Access, Edge, Kind, Step};
use transparency::case::of_test_programs;
use transparency::compile::Builder;
use wire::log::{Event, what};

/// Set in the process that runs the engine, so that addresses are not randomized there.
const STAGE: &str = "FARSIGHT_LOG_STAGE";

/// No rseq area, and no string functions with AVX-512: these have masks, which the stepper does not look at (it says what an
/// instruction could access). Tests of growth judge masked accesses by sizes that are known.
const TUNABLES: &str = "glibc.pthread.rseq=0:glibc.cpu.hwcaps=-AVX512VL,-AVX512BW,-AVX512F";

#[test]
fn every_event_is_that_of_single_stepping() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let builder = Builder { out: root.join("target/test-programs") };
    if let Some(name) = std::env::var_os(STAGE) {
        return compare(&root, &builder, name.to_str().expect("a name"));
    }
    let mut tested = 0;
    for case in of_test_programs(&root.join("test-programs")).unwrap() {
        if !case.name.starts_with("count/") {
            continue;
        }
        case.command(&builder).unwrap();
        // A fresh process without address randomization and with the environment that both runs see.
        let me = std::env::current_exe().unwrap();
        let out = Command::new("/usr/bin/setarch")
            .args(["x86_64", "-R"])
            .arg(me)
            .args(["--exact", "every_event_is_that_of_single_stepping", "--nocapture"])
            .env_clear()
            .env("GLIBC_TUNABLES", TUNABLES)
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env(STAGE, &case.name)
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}:\n{}{}",
            case.name,
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        tested += 1;
    }
    assert!(tested >= 9, "only {tested} programs");
}

fn compare(root: &Path, builder: &Builder, name: &str) {
    let cases = of_test_programs(&root.join("test-programs")).unwrap();
    let case = cases.into_iter().find(|c| c.name == name).expect("the case exists");
    let command: Vec<OsString> = case.command(builder).unwrap().into_iter().map(Into::into).collect();
    let text: Vec<String> = command.iter().map(|c| c.to_str().expect("plain text").to_owned()).collect();
    let stepped = stepper::step::trace(|p| Command::new(p), &text).unwrap();
    // The second time with the smallest code cache that there is: it is emptied while the program runs.
    for flags in [0, 1 << wire::boot::flags::CACHE_SHIFT] {
        compare_log(name, &launch::log::spec(&command, runtimes::LOG, flags), &stepped);
    }
}

fn compare_log(name: &str, spec: &launch::Spec<'_>, stepped: &stepper::step::Report) {
    let outcome = launch::run(spec).unwrap();
    assert_eq!(outcome.ended.shell_code(), stepped.exit, "{name}: exit status");
    let (events, lost) = launch::log::read(&outcome.results);
    assert_eq!(lost, 0);
    let mut threads: Vec<u32> = Vec::new();
    for e in events {
        if e.what == what::THREAD && !threads.contains(&e.tid) {
            threads.push(e.tid);
        }
    }
    assert_eq!(threads.len(), stepped.traces.len(), "{name}: threads");
    for (tid, steps) in threads.iter().zip(&stepped.traces) {
        let events = undo_faults(events.iter().filter(|e| e.tid == *tid).copied());
        check(name, &events, &without_forwarders(steps));
    }
}

/// An instruction that faults has been noted, but was not executed.
fn undo_faults(events: impl Iterator<Item = Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::new();
    for e in events {
        match e.what {
            what::SIGNAL => {
                while out.last().is_some_and(|l| l.pc == e.pc) {
                    out.pop();
                }
            }
            what::READ | what::WRITE | what::READ_WRITE | what::CALL | what::RETURN => out.push(e),
            _ => {}
        }
    }
    out
}

/// The engine notes a call of a forwarder when the forwarder has jumped on.
fn without_forwarders(steps: &[Step]) -> Vec<Step> {
    let mut out: Vec<Step> = steps.to_vec();
    for k in 1..out.len() {
        if let (Some(to), Some(Edge::Call(_))) = (out[k].forwards, out[k - 1].edge) {
            out[k].edge = Some(Edge::Call(to));
            out[k - 1].edge = None;
        }
    }
    out
}

fn check(name: &str, events: &[Event], steps: &[Step]) {
    let mut rest = events.iter();
    for (k, step) in steps.iter().enumerate() {
        let n = step.accesses.len() + usize::from(step.edge.is_some());
        let (edges, accesses): (Vec<&Event>, Vec<&Event>) =
            rest.by_ref().take(n).partition(|e| matches!(e.what, what::CALL | what::RETURN));
        let mut got: Vec<Access> = accesses
            .iter()
            .map(|e| Access {
                kind: match e.what {
                    what::READ => Kind::Read,
                    what::WRITE => Kind::Write,
                    _ => Kind::ReadWrite,
                },
                address: e.address,
                bytes: e.length,
            })
            .collect();
        got.sort_unstable();
        let context = || {
            let seen: Vec<String> = events.iter().map(|e| format!("{e:x?}")).collect();
            let at = events.len() - rest.len();
            format!(
                "{name}: instruction {k} at {:#x}: {step:x?}\nbefore: {:x?}\nlogged around:\n{}",
                step.pc,
                &steps[k.saturating_sub(3)..k],
                seen[at.saturating_sub(8)..(at + 4).min(seen.len())].join("\n")
            )
        };
        assert_eq!(got, step.accesses, "{}", context());
        for e in &accesses {
            assert_eq!(e.pc, step.pc, "{}", context());
        }
        let edge = edges.first().map(|e| match e.what {
            what::CALL => Edge::Call(e.address),
            _ => Edge::Return(e.address),
        });
        assert_eq!(edge, step.edge, "{}", context());
    }
    assert_eq!(rest.len(), 0, "{name}: more was logged than stepped: {:x?}", rest.next());
}
