//! `farsight idle --follow`: each process has a profile of its own, whose numbers are known by construction.

use std::process::Command;

use serde_json::Value;

use crate::farsight::{Ended, Folder};
use crate::idle::{compile, identity_holds, inclusive, paths};

struct Followed {
    folder: Folder,
    program: String,
}

impl Followed {
    fn new() -> Self {
        let folder = Folder::new();
        let program = compile(&folder, "children", &[]).to_str().expect("a plain path").to_owned();
        Followed { folder, program }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path(name).to_str().expect("a plain path").to_owned()
    }

    /// Runs a command and gives what was said, and the documents of its processes.
    fn run(&self, command: &[&str]) -> (Ended, Vec<Value>) {
        for old in ["out.farsight", "out.json"] {
            let _ = std::fs::remove_file(self.folder.path(old));
        }
        let mut args = vec!["idle", "--follow", "--no-summary", "--cores", "2", "--json", "out.json"];
        args.extend(["-o", "out.farsight", "--"]);
        args.extend(command);
        let ended = self.folder.run(&args);
        let text = std::fs::read_to_string(self.folder.path("out.json")).expect("the JSON was written");
        let document: Value = serde_json::from_str(&text).expect("it is JSON");
        let runs = match document["runs"].as_array() {
            Some(runs) => runs.clone(),
            None => vec![document],
        };
        runs.iter().for_each(identity_holds);
        (ended, runs)
    }
}

/// The process that has worked in a function.
fn of<'a>(runs: &'a [Value], function: &str) -> &'a Value {
    let worked = |run: &&Value| {
        run["functions"].as_array().is_some_and(|all| all.iter().any(|f| f["name"] == function))
    };
    let found: Vec<&Value> = runs.iter().filter(worked).collect();
    assert_eq!(found.len(), 1, "{function} belongs to one process: {runs:#?}");
    found[0]
}

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} is not within {tolerance} of {expected}");
}

fn seconds(run: &Value, total: &str) -> f64 {
    run["totals"][total].as_f64().expect("a total") / 1e9
}

/// What `alone_then_together` plans.
fn is_alone_then_together(run: &Value) {
    let (work, idle) = inclusive(run, "alone");
    close(work, 0.4, 0.08);
    // One thread works, and there are two cores.
    close(idle / work, 1.0, 0.15);
    close(inclusive(run, "together").0, 0.6, 0.1);
    close(seconds(run, "work_ns"), 1.0, 0.15);
    assert_eq!(run["threads"], 2);
    assert!(paths(run, "together").iter().any(|p| p.contains(&"thread".to_owned())));
}

#[test]
fn forked_children_have_their_own_parts() {
    let bench = Followed::new();
    let (ended, runs) = bench.run(&[&bench.program, "two"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    assert_eq!(runs.len(), 3, "a run for each process");
    close(inclusive(&runs[0], "parents").0, 0.2, 0.06);
    close(seconds(&runs[0], "work_ns"), 0.2, 0.08);
    let first = of(&runs, "alone");
    is_alone_then_together(first);
    assert_eq!(of(&runs, "together"), first);
    let second = of(&runs, "sleepers");
    let (work, idle) = inclusive(second, "sleepers");
    close(work, 0.4, 0.08);
    close(idle / work, 1.0, 0.15);
    // It sleeps, and both cores are nobody's: at least 0.6 s.
    assert!(seconds(second, "nobody_ns") > 0.55, "{second:#}");
    for path in paths(second, "sleepers") {
        assert_eq!(path[0], "main", "{path:?}");
    }
    assert!(ended.stderr.contains("3 processes used"), "{}", ended.stderr);
    let loaded = profile::file::load(&bench.folder.path("out.farsight")).expect("a profile");
    for run in &loaded.profile.runs {
        assert!(run.program.path.ends_with("children") && run.command[1] == "two", "{run:?}");
    }
    // Processes of one program are compared together.
    let compared = bench.folder.run(&["diff", "out.farsight", "out.farsight", "--json", "diff.json"]);
    compared.exits(0).prints(&["3 runs, ", "No function changed"]);
    let text = std::fs::read_to_string(bench.folder.path("diff.json")).expect("the JSON was written");
    let compared: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((&compared["old"]["runs"], &compared["new"]["threads"]), (&3.into(), &4.into()));
    // Without the flag nothing of this happens.
    std::fs::remove_file(bench.folder.path("out.farsight")).expect("it was there");
    let args =
        ["idle", "--no-summary", "--json", "out.json", "-o", "out.farsight", "--", &bench.program, "two"];
    let ended = bench.folder.run(&args).exits(0);
    let text = std::fs::read_to_string(bench.folder.path("out.json")).expect("the JSON was written");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!((&document["kind"], &document["threads"]), (&"idle".into(), &1.into()));
    assert!(ended.stderr.contains("its children are not part of this profile"), "{}", ended.stderr);
}

#[test]
fn a_thread_forks() {
    let bench = Followed::new();
    let (ended, runs) = bench.run(&[&bench.program, "thread"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    assert_eq!(runs.len(), 2);
    is_alone_then_together(of(&runs, "alone"));
    close(inclusive(of(&runs, "parents"), "parents").0, 0.2, 0.06);
}

#[test]
fn a_child_that_is_killed_leaves_its_profile() {
    let bench = Followed::new();
    let (ended, runs) = bench.run(&[&bench.program, "killed"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    let (work, idle) = inclusive(of(&runs, "alone"), "alone");
    close(work, 0.4, 0.08);
    close(idle / work, 1.0, 0.15);
}

#[test]
fn a_child_that_outlives_its_parent_is_cut_off_and_goes_on() {
    let bench = Followed::new();
    let (ended, runs) = bench.run(&[&bench.program, "outlives"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\nafterwards\n"), "{}", ended.stderr);
    close(inclusive(of(&runs, "alone"), "alone").0, 0.4, 0.08);
    assert!(ended.stderr.contains("still ran when the first program ended"), "{}", ended.stderr);
}

#[test]
fn five_hundred_short_children() {
    let bench = Followed::new();
    let (ended, runs) = bench.run(&[&bench.program, "many", "500"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    let number = |before: &str, after: &str| {
        let line = ended.stderr.lines().find(|l| l.contains(before) && l.contains(after));
        let rest = line.and_then(|l| l.split_once(before)).map_or("", |l| l.1);
        rest.split(after).next().and_then(|n| n.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let seen = number("farsight: ", " processes used");
    let refused = number("too many came at once:", "\n");
    assert_eq!(seen + refused, 501, "{}", ended.stderr);
    assert!(seen > 32, "more than there are seats at once: {}", ended.stderr);
    assert!(runs.len() <= 501);
}

#[test]
fn programs_that_are_executed_have_their_own_parts() {
    let bench = Followed::new();
    let phases = compile(&bench.folder, "phases", &[]);
    let phases = phases.to_str().expect("a plain path");
    // A shell's pipeline and background job, posix_spawn, and a program that becomes another one.
    let script = format!(
        "{p} spawn {phases} 0.05 0.05 | cat; {phases} 0.1 0.05 & wait; exec {p} exec {phases} 0.05 0.1",
        p = bench.program
    );
    let (ended, runs) = bench.run(&["sh", "-c", &script]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "1\ndone\n1\n1\n"), "{}", ended.stderr);
    let worked: Vec<(f64, f64)> = runs
        .iter()
        .filter(|run| run["command"][0].as_str().is_some_and(|c| c.ends_with("phases")))
        .map(|run| (inclusive(run, "alone").0, inclusive(run, "together").0))
        .collect();
    let planned = [(0.2, 0.4), (0.4, 0.4), (0.2, 0.8)];
    assert_eq!(worked.len(), planned.len(), "{}", ended.stderr);
    for (found, planned) in worked.iter().zip(planned) {
        close(found.0, planned.0, 0.08);
        close(found.1, planned.1, 0.12);
    }
    assert!(!ended.stderr.contains("not followed"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("still ran"), "{}", ended.stderr);
    assert!(!ended.stderr.contains("executed another one in its place"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_followed_is_said_and_runs() {
    let bench = Followed::new();
    let source = bench.folder.path("static.c");
    std::fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(\"static\") < 0; }\n")
        .expect("written");
    let fixed = bench.path("fixed");
    let built = Command::new("gcc").args(["-static", "-o", &fixed]).arg(&source).status();
    assert!(built.expect("gcc starts").success());
    for how in ["spawn", "exec", "bare"] {
        let (ended, _) = bench.run(&[&bench.program, how, &fixed]);
        let printed = if how == "exec" { "static\n" } else { "static\ndone\n" };
        assert_eq!((ended.code, &*ended.stdout), (Some(0), printed), "{how}: {}", ended.stderr);
        let said = format!("not followed: {fixed}, which is statically linked");
        assert!(ended.stderr.contains(&said), "{how}: {}", ended.stderr);
    }
    let (ended, _) = bench.run(&[&bench.program, "bare", "/bin/true"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("not followed: /bin/true, because"), "{}", ended.stderr);
    let privileged = bench.path("privileged");
    std::fs::copy("/bin/true", &privileged).expect("copied");
    let owned = Command::new("chown").args(["12345", &privileged]).status().expect("chown starts").success();
    let set = Command::new("chmod").args(["4755", &privileged]).status().expect("chmod starts").success();
    if !owned || !set {
        eprintln!("skipped: files cannot be given away");
        return;
    }
    let (ended, _) = bench.run(&[&bench.program, "spawn", &privileged]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "done\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("privileged, which gets privileges"), "{}", ended.stderr);
}

#[test]
fn python_s_processes_are_followed() {
    if !Command::new("python3").arg("--version").output().is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: no python3");
        return;
    }
    let bench = Followed::new();
    let script = "import multiprocessing as m, time\n\
        def work(n):\n    e = time.process_time() + n\n    while time.process_time() < e: pass\n    return 1\n\
        if __name__ == '__main__':\n    with m.get_context('fork').Pool(2) as p: print(sum(p.map(work, [0.3] * 4, 1)))\n";
    std::fs::write(bench.folder.path("pool.py"), script).expect("written");
    let (ended, runs) = bench.run(&["python3", "pool.py"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "4\n"), "{}", ended.stderr);
    let work: f64 =
        runs.iter().skip(1).map(|run| seconds(run, "work_ns") + seconds(run, "overhead_ns")).sum();
    // Four pieces of 0.3 s, in processes that also start and end.
    assert!((1.0..2.0).contains(&work), "{work}");
}
