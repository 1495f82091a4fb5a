//! `farsight idle` on programs whose idleness, locks and call paths are known by construction.
//!
//! Programs plan CPU time, not wall-clock time, and idleness is counted per CPU time: other load on the machine makes
//! runs longer and changes none of what is asserted here.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::farsight::{Ended, Folder};

/// Compiles a program of `test-programs/idle`.
pub fn compile(folder: &Folder, name: &str, flags: &[&str]) -> PathBuf {
    let source = format!("{}/../../test-programs/idle/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let out = folder.path(name);
    let status =
        Command::new("gcc").args(["-O2", "-g", "-pthread", "-o"]).arg(&out).arg(source).args(flags).status();
    assert!(status.expect("gcc starts").success());
    out
}

pub fn profile(folder: &Folder, flags: &[&str], program: &str) -> Value {
    profiled(folder, flags, &[program]).1
}

/// How a command ended, and its profile.
fn profiled(folder: &Folder, flags: &[&str], command: &[&str]) -> (Ended, Value) {
    let mut args = vec!["idle", "-q", "--cores", "2", "--json", "out.json", "-o", "out.farsight"];
    args.extend(flags);
    args.push("--");
    args.extend(command);
    let ended = folder.run(&args).exits(0);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    (ended, serde_json::from_str(&text).expect("it is JSON"))
}

fn ns(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Inclusive (work, idle) of a function, in seconds.
pub fn inclusive(document: &Value, name: &str) -> (f64, f64) {
    let functions = document["functions"].as_array().expect("functions");
    let found = functions.iter().find(|f| f["name"] == name);
    let f = found.unwrap_or_else(|| panic!("no function {name} in {document:#}"));
    (ns(&f["incl"]["work_ns"]) / 1e9, ns(&f["incl"]["idle_ns"]) / 1e9)
}

/// Names from the root to each context of that function.
pub fn paths(document: &Value, name: &str) -> Vec<Vec<String>> {
    let contexts = document["contexts"].as_array().expect("contexts");
    let path = |mut at: usize| {
        let mut names = Vec::new();
        loop {
            names.push(contexts[at]["function"].as_str().unwrap_or_default().to_owned());
            match contexts[at]["parent"].as_u64() {
                Some(parent) => at = parent as usize,
                None => break,
            }
        }
        names.reverse();
        names
    };
    (0..contexts.len()).filter(|&i| contexts[i]["function"] == name).map(path).collect()
}

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not within {tolerance} of {expected}");
}

pub fn identity_holds(document: &Value) {
    let identity = &document["identity"];
    let ratio = ns(&identity["accounted_ns"]) / ns(&identity["cores_times_wall_ns"]);
    close(ratio, 1.0, 0.01);
    let t = &document["totals"];
    let sum: f64 =
        ["work_ns", "overhead_ns", "idle_ns", "nobody_ns"].iter().map(|name| ns(&t[*name])).sum::<f64>();
    close(sum / ns(&identity["cores_times_wall_ns"]), 1.0, 0.01);
}

#[test]
fn a_serial_part_answers_for_the_idle_core() {
    let folder = Folder::new();
    let program = compile(&folder, "phases", &[]);
    for flags in [&[][..], &["--no-perf"], &["--rate", "1000"]] {
        let _ = std::fs::remove_file(folder.path("out.farsight"));
        let command = [program.to_str().unwrap(), "0.3", "0.3", "say"];
        let (ended, document) = profiled(&folder, flags, &command);
        let took: Vec<f64> = ended.stdout.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let &[_, alone, together] = took.as_slice() else { panic!("{}", ended.stdout) };
        identity_holds(&document);
        let (work, idle) = inclusive(&document, "alone");
        close(work / alone, 1.0, 0.2);
        // The second core has nothing to do whenever this runs.
        close(idle / work, 1.0, 0.15);
        close(inclusive(&document, "together").0 / together, 1.0, 0.15);
        assert_eq!(document["threads"], 5);
        let under_main = |p: &Vec<String>| p[0] == "main";
        assert!(paths(&document, "together").iter().all(under_main), "threads stand below their creator");
        assert!(paths(&document, "together").iter().any(|p| p.contains(&"thread".to_owned())));
    }
}

#[test]
fn waiting_is_charged_to_the_holder() {
    let folder = Folder::new();
    let program = compile(&folder, "holder", &[]);
    let document = profile(&folder, &[], program.to_str().unwrap());
    identity_holds(&document);
    let locks = document["locks"].as_array().expect("locks");
    let mutex = locks.iter().find(|l| l["kind"] == "mutex").expect("the mutex was waited for");
    let holder = &mutex["holders"][0];
    assert_eq!(holder["path"].as_array().and_then(|p| p.last()), Some(&Value::from("hold")));
    close(ns(&holder["blame_ns"]) / ns(&mutex["wait_ns"]), 1.0, 0.05);
    let waits = document["functions"].as_array().unwrap().iter().find(|f| f["name"] == "waits").unwrap();
    close(ns(&waits["incl"]["blocked_ns"]) / ns(&mutex["wait_ns"]), 1.0, 0.05);
}

/// The profile is that of `team.c`, whose regions and tasks stand below their creators.
fn is_team(document: &Value) {
    identity_holds(document);
    let (work, idle) = inclusive(document, "alone");
    close(work, 0.4, 0.08);
    close(idle / work, 1.0, 0.15);
    assert_eq!(document["orphans"], 0);
    assert!(document["stitched"].as_u64() > Some(0), "the second thread's share of regions was sampled");
    for path in paths(document, "burn") {
        assert_eq!(path[0], "main", "{path:?}");
        assert!(["alone", "region", "tasks"].contains(&path[1].as_str()), "{path:?}");
    }
    close(inclusive(document, "region").0, 0.4, 0.08);
    close(inclusive(document, "tasks").0, 0.4, 0.08);
}

#[test]
fn openmp_regions_and_tasks_stand_below_their_creators() {
    let folder = Folder::new();
    let program = compile(&folder, "team", &["-fopenmp"]);
    let document = profile(&folder, &[], program.to_str().unwrap());
    is_team(&document);
}

#[test]
fn a_gcc_program_runs_on_libomp_if_asked() {
    let folder = Folder::new();
    let program = compile(&folder, "team", &["-fopenmp"]);
    let program = program.to_str().unwrap();
    let label = |document: &Value| document["problems"].to_string().contains("in the place of gcc's libgomp");
    assert!(!label(&profile(&folder, &[], program)), "not unasked");
    if !matches!(span_kit::openmp::needs(std::path::Path::new(program)), span_kit::openmp::OpenMp::Instead(_))
    {
        eprintln!("skipped: no libomp");
        return;
    }
    std::fs::remove_file(folder.path("out.farsight")).unwrap();
    let document = profile(&folder, &["--libomp"], program);
    assert!(label(&document));
    folder.run(&["report", "out.farsight"]).exits(0).prints(&["in the place of gcc's libgomp"]);
    is_team(&document);
    // What it executes runs as it would without us.
    let source = folder.path("shell.c");
    let text = "#include <stdlib.h>\nint main(void) { int n = 0;\n#pragma omp parallel\n#pragma omp atomic\nn++;\n\
                return n > 0 && system(\"echo preloaded: $LD_PRELOAD.\") == 0 ? 0 : 1; }\n";
    std::fs::write(&source, text).unwrap();
    let shell = folder.path("shell");
    let done = Command::new("gcc").args(["-fopenmp", "-o"]).args([&shell, &source]).status();
    assert!(done.expect("gcc starts").success());
    let asked = ["idle", "-q", "--libomp", "-o", "s.farsight", "--", shell.to_str().unwrap()];
    folder.run(&asked).exits(0).prints(&["preloaded: .\n"]);
    folder
        .run(&["idle", "--libomp", "-o", "t.farsight", "--", "true"])
        .exits(0)
        .prints(&["nothing was replaced"]);
}

#[test]
fn what_cannot_be_profiled_is_refused_or_survived() {
    let folder = Folder::new();
    let source = folder.path("s.c");
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    let done = Command::new("gcc").args(["-static", "-o"]).arg(folder.path("static")).arg(&source).status();
    assert!(done.expect("gcc starts").success());
    let program = folder.path("static");
    folder.run(&["idle", "--", program.to_str().unwrap()]).exits(69).says(&["statically linked"]);
    // Ends before the first sample, and by a signal.
    folder.run(&["idle", "-o", "a.farsight", "--", "true"]).exits(0).prints(&["No sample was taken"]);
    folder.run(&["idle", "-o", "b.farsight", "--", "sh", "-c", "kill -9 $$"]).exits(137);
    folder.run(&["idle", "-o", "c.farsight", "--", "sh", "-c", "exit 7"]).exits(7);
}

#[test]
fn a_run_is_shown_again_compared_and_exported() {
    let folder = Folder::new();
    let program = compile(&folder, "holder", &[]);
    profile(&folder, &[], program.to_str().unwrap());
    folder.run(&["report", "out.farsight"]).exits(0).prints(&["core time:", "hold", "Waited for:"]);
    folder.run(&["diff", "out.farsight", "out.farsight"]).exits(0).prints(&["No function changed"]);
    folder.run(&["export", "out.farsight", "--format", "folded", "--value", "work", "-o", "f"]).exits(0);
    let folded = std::fs::read_to_string(folder.path("f")).unwrap();
    assert!(folded.lines().any(|l| l.starts_with("main;thread;hold")), "{folded}");
    for format in ["pprof", "firefox"] {
        folder.run(&["export", "out.farsight", "--format", format, "-o", format]).exits(0);
        assert!(std::fs::metadata(folder.path(format)).unwrap().len() > 100);
    }
}
