//! `farsight idle` where something is in its way: it works, or says precisely what cannot be had.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::farsight::Folder;
use crate::idle::{compile, identity_holds, inclusive, paths, profile};

fn built(folder: &Folder, name: &str, flags: &[&str]) -> String {
    compile(folder, name, flags).to_str().expect("a plain path").to_owned()
}

fn problems(document: &Value) -> String {
    document["problems"].to_string()
}

#[test]
fn perf_events_may_be_refused() {
    let folder = Folder::new();
    let refused = built(&folder, "no_perf", &[]);
    let program = built(&folder, "small_stack", &[]);
    let farsight = env!("CARGO_BIN_EXE_farsight");
    let output = Command::new(refused)
        .args([farsight, "idle", "--json", "out.json", "-o", "out.farsight", "--", &program])
        .current_dir(folder.path("."))
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(document["backend"], "timer");
    assert!(String::from_utf8_lossy(&output.stderr).contains("perf_event_paranoid"), "the remedy is named");
    identity_holds(&document);
    assert!(inclusive(&document, "deep").0 > 0.2);
}

#[test]
fn a_stripped_program_has_addresses_for_names() {
    let folder = Folder::new();
    let program = built(&folder, "phases", &["-s"]);
    let document = profile(&folder, &[], &program);
    identity_holds(&document);
    assert!(document["functions"].as_array().unwrap().iter().any(|f| {
        f["name"].as_str().is_some_and(|n| n.starts_with("phases+0x"))
            && f["incl"]["work_ns"].as_u64() > Some(0)
    }));
    folder.run(&["report", "out.farsight"]).exits(0).prints(&["no debug information", "build with -g"]);
}

#[test]
fn a_program_of_ten_milliseconds() {
    let folder = Folder::new();
    let program = built(&folder, "phases", &[]);
    let out = folder.run(&[
        "idle",
        "-q",
        "--json",
        "out.json",
        "-o",
        "s.farsight",
        "--",
        &program,
        "0.001",
        "0.001",
    ]);
    out.exits(0).prints(&["1\n"]);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    identity_holds(&serde_json::from_str(&text).expect("it is JSON"));
}

#[test]
fn a_program_that_becomes_another_one_ends_there() {
    let folder = Folder::new();
    let program = built(&folder, "phases", &[]);
    let script = format!("exec {program} 0.2 0.2");
    let args =
        ["idle", "--no-summary", "--json", "out.json", "-o", "out.farsight", "--", "sh", "-c", &script];
    let ended = folder.run(&args).exits(0);
    assert!(ended.stderr.contains("give --follow"), "{}", ended.stderr);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    identity_holds(&document);
    // The other program uses 2.4 s, the shell next to nothing.
    assert!(document["totals"]["work_ns"].as_u64() < Some(300_000_000), "{document:#}");
}

#[test]
fn programs_with_a_profiler_of_their_own() {
    let folder = Folder::new();
    let program = built(&folder, "sigprof", &[]);
    for flags in [&["--rate", "1000"][..], &["--no-perf"]] {
        let _ = std::fs::remove_file(folder.path("out.farsight"));
        let mut args = vec!["idle", "-q", "--json", "out.json", "-o", "out.farsight"];
        args.extend(flags);
        args.extend(["--", &program]);
        // Its own ticks and its own traps, all twenty of them.
        folder.run(&args).exits(0).prints(&["1 20\n"]);
        let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        identity_holds(&document);
        assert!(inclusive(&document, "deaf").0 > 0.1, "a thread that blocks all signals is sampled, too");
    }
}

#[test]
fn two_thousand_threads() {
    let folder = Folder::new();
    let program = built(&folder, "many_threads", &[]);
    let document = profile(&folder, &[], &program);
    assert_eq!(document["threads"], 2001);
    identity_holds(&document);
    assert!(!problems(&document).contains("found no place"), "{}", problems(&document));
}

#[test]
fn a_stack_of_64_kilobytes() {
    let folder = Folder::new();
    let program = built(&folder, "small_stack", &[]);
    let document = profile(&folder, &["--rate", "1000"], &program);
    identity_holds(&document);
    for path in paths(&document, "deep") {
        assert_eq!(path, ["main", "thread", "deep"]);
    }
    assert!(inclusive(&document, "deep").0 > 0.2);
}

#[test]
fn paths_end_in_generated_code() {
    let folder = Folder::new();
    let program = built(&folder, "generated", &[]);
    let document = profile(&folder, &[], &program);
    identity_holds(&document);
    assert!(inclusive(&document, "[generated code]").0 > 0.02);
    assert!(inclusive(&document, "main").0 > 0.05, "what it does afterwards has its path again");
    folder.run(&["report", "out.farsight"]).exits(0).prints(&["call paths end before the start"]);
}

#[test]
fn libraries_that_follow_one_another() {
    let folder = Folder::new();
    let source = format!("{}/../../test-programs/idle/unloaded.c", env!("CARGO_MANIFEST_DIR"));
    let library = |name: &str| -> PathBuf {
        let out = folder.path(&format!("{name}.so"));
        let done = Command::new("gcc")
            .args(["-O2", "-g", "-shared", "-fPIC", &format!("-DNAME={name}"), &source, "-o"])
            .arg(&out)
            .status();
        assert!(done.expect("gcc starts").success());
        out
    };
    let (first, second) = (library("first"), library("second"));
    let program = built(&folder, "unloaded", &["-ldl"]);
    let (first, second) = (first.display().to_string(), second.display().to_string());
    let args = ["idle", "-q", "--json", "out.json", "-o", "out.farsight", "--", &program, &first, &second];
    folder.run(&args).exits(0).prints(&["1\n1\n"]);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    for name in ["work_of_first", "work_of_second"] {
        assert!((inclusive(&document, name).0 - 0.2).abs() < 0.05, "{name} has its own samples");
    }
}

#[test]
fn a_spinning_thread_is_idle_if_one_says_so() {
    let folder = Folder::new();
    let program = built(&folder, "spin", &[]);
    std::fs::write(folder.path("classes"), "idle spin_for_work  # looks for work\n").expect("it is writable");
    let document = profile(&folder, &["--classes", "classes", "--rate", "1000"], &program);
    identity_holds(&document);
    let (work, idle) = inclusive(&document, "alone");
    assert!((work - 0.4).abs() < 0.08, "{work}");
    assert!(idle > 0.0, "the other thread only spins: {idle} of {work}");
    assert!(document["totals"]["spin_ns"].as_u64() > Some(0));
    std::fs::write(folder.path("wrong"), "busy spin_for_work\n").expect("it is writable");
    folder
        .run(&["idle", "--classes", "wrong", "-o", "x.farsight", "--", "true"])
        .exits(64)
        .says(&["line 1", "busy spin_for_work"]);
}

#[test]
fn loops_and_inlined_functions_stand_in_the_tree() {
    let folder = Folder::new();
    let program = built(&folder, "phases", &[]);
    let document = profile(&folder, &["--rate", "1000"], &program);
    let loops: Vec<&Value> =
        document["contexts"].as_array().unwrap().iter().filter(|c| c["kind"] == "loop").collect();
    assert!(
        loops.iter().any(|l| l["function"].as_str().is_some_and(|n| n.starts_with("loop at idle.h:"))),
        "{loops:?}"
    );
    // `now` and `clock_of` are inlined into `burn`, and have contexts of their own all the same.
    assert!(!paths(&document, "clock_of").is_empty());
}

#[test]
fn handlers_that_wait_strike_anywhere() {
    let folder = Folder::new();
    let program = built(&folder, "handlers", &[]);
    let out = folder.run(&["idle", "-q", "--json", "out.json", "-o", "out.farsight", "--", &program]);
    out.exits(0).prints(&["1\n"]);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    identity_holds(&serde_json::from_str(&text).expect("it is JSON"));
}
