//! What the hooks see of small programs, and that the programs do not see the hooks.

mod harness;
use harness::{Bench, library, run, text};
use std::collections::HashMap;
use std::path::Path;
use std::process::Output;

/// What the `events` library wrote: the endings in order, the counts of the last one, and the trace.
struct Events {
    endings: Vec<String>,
    counts: HashMap<String, u64>,
    trace: Vec<String>,
}

fn observe(program: &Path, arguments: &[&str], trace: bool) -> (Events, Output) {
    let bench = Bench::new();
    let out = bench.path("events.txt");
    let mut variables = vec![("FARSIGHT_EVENTS", out.to_str().unwrap())];
    if trace {
        variables.push(("FARSIGHT_EVENTS_TRACE", "1"));
    }
    let output = run(program, arguments, Some(&library("events")), &variables);
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let mut events = Events { endings: Vec::new(), counts: HashMap::new(), trace: Vec::new() };
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("ending ") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            events.endings.push(words[0].to_owned());
            events.counts =
                words[1..].chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect();
        } else if let Some(rest) = line.strip_prefix("trace ") {
            events.trace.push(rest.to_owned());
        }
    }
    (events, output)
}

/// Compiles a program and checks that it prints the same with and without the library; gives what was seen.
fn same_output(compiler: &str, flags: &str, source: &str) -> Option<Events> {
    let bench = Bench::new();
    let program = bench.compile(compiler, flags, source, "program")?;
    let native = text(&run(&program, &[], None, &[]));
    let (events, output) = observe(&program, &[], false);
    assert_eq!(text(&output), native);
    Some(events)
}

#[test]
fn the_exports_are_the_list() {
    let library = library("events");
    let nm = match std::process::Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output() {
        Ok(output) => text(&output),
        Err(error) => {
            eprintln!("SKIPPED: nm is not installed ({error})");
            return;
        }
    };
    let mut exported: Vec<&str> = nm.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    exported.sort_unstable();
    let listed: Vec<&str> = include_str!("exports.txt").lines().collect();
    assert_eq!(exported, listed, "update exports.txt if the change is meant");
}

#[test]
fn every_lock_and_wait() {
    for flags in ["-O2", "-O2 -D_FORTIFY_SOURCE=2"] {
        let Some(events) = same_output("gcc", flags, "locks.c") else { return };
        assert_eq!(events.endings, ["Exit"]);
        let count = |name: &str| events.counts[name];
        assert_eq!((count("created"), count("started"), count("ended")), (1, 2, 1));
        assert_eq!(count("unknown"), 0);
        assert_eq!(count("cancelled"), 0);
        // The partner slept on mutex, rwlock and C11 mutex; four waits for conditions take their mutex again.
        assert!(count("contended") >= 3 + 4, "{:?}", events.counts);
        // Six timeouts: mutex, two conditions, semaphore; the deadlock that the checking mutex reports.
        assert!(count("failed") >= 5, "{:?}", events.counts);
        // Every lock taken was let go, but for the checking mutex.
        assert_eq!(count("acquired") + count("contended"), count("released") + 1);
    }
}

#[test]
fn the_order_of_events_of_a_condition() {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2", "locks.c", "program") else { return };
    let (events, output) = observe(&program, &[], true);
    text(&output);
    // The main thread has serial 0. Its first wait for a condition is the timed one.
    let own: Vec<&str> = events.trace.iter().filter_map(|line| line.strip_prefix("0 ")).collect();
    let at = own.iter().position(|line| *line == "before_wait Condition").expect("a wait for a condition");
    assert_eq!(own[at - 2..=at - 1], ["before_wake Mutex", "released Mutex"]);
    assert_eq!(own[at + 1..=at + 2], ["after_wait Condition Failed", "acquired Mutex true"]);
    let at = own.iter().position(|line| *line == "before_wait Barrier").expect("a barrier");
    assert_eq!(own[at - 1], "before_wake Barrier");
    assert_eq!(own[at + 1], "after_wait Barrier Done");
    assert!(
        events.trace.contains(&"1 started Created(1000)".to_owned()),
        "the creation token reaches the child"
    );
    let partner: Vec<&str> = events.trace.iter().filter_map(|line| line.strip_prefix("1 ")).collect();
    for (before, after) in [("Mutex", "Mutex"), ("Read", "Read")] {
        let at = partner.iter().position(|line| *line == format!("before_wait {before}")).expect(before);
        assert_eq!(partner[at + 1], format!("after_wait {before} Done"));
        assert_eq!(partner[at + 2], format!("acquired {after} true"));
    }
    assert_eq!(partner.last(), Some(&"ended"));
}

#[test]
fn rust_locks_are_seen_through_syscall() {
    let Some(events) = same_output("rustc", "--edition 2024 -O", "futex.rs") else { return };
    assert!(events.counts["futex-waits"] >= 50, "{:?}", events.counts);
    assert!(events.counts["futex-wakes"] >= 50, "{:?}", events.counts);
    assert_eq!((events.counts["started"], events.counts["ended"]), (3, 2));
}

#[test]
fn cpp_waits_are_seen_through_syscall() {
    let Some(events) = same_output("g++", "-O2 -std=c++20", "atomic.cpp") else { return };
    assert!(events.counts["futex-waits"] >= 1, "{:?}", events.counts);
    assert!(events.counts["failed"] >= 1, "the condition's timeout is seen: {:?}", events.counts);
}

#[test]
fn cancellation_passes_through() {
    for flags in ["-O0 -std=c++17", "-O2 -std=c++17"] {
        let Some(events) = same_output("g++", flags, "cancel.cpp") else { return };
        // Condition, read and sleep were left by cancellation; the semaphore too, unless the cancellation came
        // before it was waited for.
        assert!((3..=4).contains(&events.counts["cancelled"]), "{:?}", events.counts);
        assert_eq!(events.counts["ended"], 6);
    }
}

#[test]
fn threads_before_main_and_late_destructors() {
    let Some(events) = same_output("gcc", "-O2", "early.c") else { return };
    assert_eq!((events.counts["created"], events.counts["started"], events.counts["ended"]), (7, 8, 7));
    // Our destructor runs after the program's: its locks are still seen.
    assert_eq!(events.counts["acquired"] + events.counts["contended"], 7);
}

#[test]
fn every_ending_is_seen() {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2", "ending.c", "program") else { return };
    for (how, endings) in [
        ("return", &["Exit"][..]),
        ("exit", &["Exit"]),
        ("_exit", &["Immediate"]),
        ("_Exit", &["Immediate"]),
        ("quick_exit", &["Immediate"]),
        ("syscall", &["Immediate"]),
        ("abort", &["Abort"]),
        ("execl", &["Exec"]),
        ("execve-fails", &["Exec", "Exit"]),
        ("thread-exit", &["Exit"]),
        ("main-left", &["Exit"]),
        ("vfork", &["Exit"]),
        ("fork", &["Exit"]),
    ] {
        let native = run(&program, &[how], None, &[]);
        let (events, output) = observe(&program, &[how], false);
        assert_eq!(output.status, native.status, "{how}");
        assert_eq!(output.stdout, native.stdout, "{how}");
        assert_eq!(events.endings, endings, "{how}");
    }
}

#[test]
fn only_our_entry_leaves_the_environment() {
    let other = std::env::current_exe().unwrap(); // any file name will do; the loader only warns
    let ours = library("events");
    let both = format!("{}:{}", other.display(), ours.display());
    let bench = Bench::new();
    let out = bench.path("events.txt");
    let variables = [("LD_PRELOAD", both.as_str()), ("FARSIGHT_EVENTS", out.to_str().unwrap())];
    let output = run(Path::new("/bin/sh"), &["-c", "echo $LD_PRELOAD; /usr/bin/env"], None, &variables);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(printed.lines().next(), Some(other.to_str().unwrap()), "{printed}");
    assert!(!printed.contains(ours.to_str().unwrap()), "{printed}");
    assert!(out.exists(), "the shell itself was watched");
}
