//! The fast ring under a wrapper: `farsight count` when `FARSIGHT_BIN` names it, else `env`, which proves that the programs
//! have the answers that their headers state and give them every time.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use transparency::case::of_test_programs;
use transparency::compile::Builder;
use transparency::judge::{Court, Verdict};
use transparency::limits::LIMITS;
use transparency::spec::Ring;

#[test]
fn the_fast_ring_is_transparent() {
    let same = ring(&[], &[""]);
    assert!(same > 100, "only {same} cases ran");
}

/// A cache so small that it is emptied many times in each of these programs, with threads in all places.
#[test]
fn programs_do_not_notice_that_the_code_cache_is_emptied() {
    if std::env::var("FARSIGHT_BIN").is_err() {
        println!("skipped: FARSIGHT_BIN is not set, there is no code cache");
        return;
    }
    let same = ring(&["--cache-units", "8"], &["threads/", "signals/", "process/"]);
    assert!(same > 40, "only {same} cases ran");
}

/// Runs the cases of the fast ring whose names start with one of these; returns how many are the same as natively.
fn ring(flags: &[&str], families: &[&str]) -> usize {
    /// One at a time: both build the same programs, and some depend on timers.
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let wrapper = match std::env::var("FARSIGHT_BIN") {
        Ok(farsight) => format!("{farsight} count {} --no-summary -q -o /dev/null --", flags.join(" ")),
        Err(_) => "env".into(),
    };
    let court = Court {
        wrapper: wrapper.split_whitespace().map(String::from).collect(),
        builder: Builder { out: root.join("target/test-programs") },
        work: root.join("target").join(format!("transparency-test{}", flags.concat())),
        programs: root.join("test-programs/real"),
        repeat: Some(1),
    };
    let mut failed = Vec::new();
    let mut same = 0;
    for case in of_test_programs(&root.join("test-programs")).unwrap() {
        if case.ring != Ring::Fast || !families.iter().any(|f| case.name.starts_with(f)) {
            continue;
        }
        if wrapper != "env" && LIMITS.contains(&case.name.as_str()) {
            println!("skipped {}: a limit of the engine", case.name);
            continue;
        }
        match court.judge(&case) {
            Verdict::Same(_) => same += 1,
            Verdict::Skipped(why) => println!("skipped {}: {why}", case.name),
            other => failed.push(format!("{}: {other:?}", case.name)),
        }
    }
    assert!(
        failed.is_empty(),
        "{same} same, {} failed under {wrapper}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    same
}
