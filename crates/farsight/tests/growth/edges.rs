//! What breaks profilers of this kind.

use crate::profiled::{Program, points, profile};

#[test]
fn deep_recursion_longjmp_signals_tail_calls_and_allocators() {
    let program = Program::build(&["edges.c"], &["-O2", "-g"]);
    let run = program.profile(&[], &["20000"]);
    assert_eq!(run.output.status.code(), Some(0));
    assert_eq!(run.sizes("deep"), [(0, 20_001)]);
    // Ended by longjmp at depth 0 to 19, at the same cost in cells each time.
    let descended: u64 = run.sizes("descend").iter().map(|p| p.1).sum();
    assert_eq!(descended, (1..=20).sum::<u64>());
    // The signal in the middle changes nothing: n cells, and what raise reads.
    let sizes: Vec<u64> = run.sizes("work").iter().map(|p| p.0).collect();
    let beside = sizes[0] - 10;
    assert_eq!(sizes, (10..30).map(|n| n + beside).collect::<Vec<_>>());
    assert_eq!(run.sizes("handler"), [(1, 20)]);
    // Jumps between routines are calls, one cell each, none nested in another.
    assert_eq!(run.sizes("even"), [(0, 1), (1, 20)]);
    assert_eq!(run.sizes("odd"), [(1, 20)]);
    // The bucket; nothing of malloc's own, and the table entry that leads to it is control.
    assert_eq!(run.sizes("insert"), [(2, 500)]);
    assert_eq!(run.points("malloc").len(), 1);
    let unfolded = program.profile(&["--fold", "none"], &["1000"]);
    assert!(unfolded.points("insert").iter().all(|p| p.0 > 2), "malloc's lists count then");
}

#[test]
fn a_million_frames() {
    let program = Program::build(&["edges.c"], &["-O2", "-g"]);
    let farsight = env!("CARGO_BIN_EXE_farsight");
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("out.json");
    let shell = format!(
        "ulimit -s 1000000; exec {farsight} growth -q -o /dev/null --json {} -- {} 1000000",
        json.display(),
        program.path().display()
    );
    let output = std::process::Command::new("bash").args(["-c", &shell]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let deep = document["routines"].as_array().unwrap().iter().find(|r| r["name"] == "deep").unwrap();
    assert_eq!(points(deep)[0].1, 1_000_001);
}

#[test]
fn routines_of_one_name_stay_apart() {
    let program = Program::build(&["same_a.c", "same_b.c"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    let helpers = run.all("helper");
    assert_eq!(helpers.len(), 2);
    let mut classes: Vec<&str> = helpers.iter().map(|h| h["fit"]["class"].as_str().unwrap()).collect();
    classes.sort_unstable();
    assert_eq!(classes, ["n", "n^2"]);
    for helper in helpers {
        assert_eq!(
            points(helper).iter().map(|p| p.0).collect::<Vec<_>>(),
            (1..40).map(|k| k * 10).collect::<Vec<_>>()
        );
    }
}

#[test]
fn exceptions_unwind_the_shadow_stack() {
    let program = Program::build(&["throws.cpp"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    assert_eq!(run.sizes("thrower(int)").iter().map(|p| p.1).sum::<u64>(), 60);
    // The routine that catches goes on being the one that reads: n cells, and what throwing reads.
    let sizes: Vec<u64> = run.sizes("after_throw(int const*, int)").iter().map(|p| p.0).collect();
    let steps: Vec<u64> = sizes[1..].windows(2).map(|w| w[1] - w[0]).collect();
    assert_eq!(steps, vec![100; 8]);
    assert_eq!(run.class("Cursor::operator++()").as_deref(), Some("n"));
    assert_eq!(run.class("Chain::add(int)").as_deref(), Some("n"));
}

#[test]
fn a_long_command_line() {
    let args: Vec<String> = (1..=1200).map(|i| i.to_string()).collect();
    let mut command = vec!["/bin/true"];
    command.extend(args.iter().map(String::as_str));
    let run = profile(&[], &command);
    assert_eq!(run.output.status.code(), Some(0));
    assert_eq!(run.document["command"].as_array().unwrap().len(), 1201);
}

#[test]
fn a_killed_program_leaves_what_was_completed() {
    let program = Program::build(&["killed.c"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(128 + 9));
    assert_eq!(run.sizes("sum_of"), (1..=50).map(|k| (k * 10, 1)).collect::<Vec<_>>());
    assert_eq!(run.sizes("leaf"), [(1, 3000)]);
}

#[test]
fn a_duration_ends_a_program_that_does_not() {
    let run = profile(&["--duration", "0.5"], &["sh", "-c", "while :; do :; done"]);
    assert_eq!(run.output.status.code(), Some(128 + 2));
    assert!(run.document["totals"]["activations"].as_u64().unwrap() > 1000);
}

#[test]
fn interrupting_gives_the_profile_so_far() {
    use std::io::Read;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let program = Program::build(&["endless.c"], &["-O1", "-g"]);
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("out.json");
    let mut child = crate::profiled::growth(&json)
        .arg("--")
        .arg(program.path())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
    // As a terminal does on Ctrl-C: to the whole group.
    let sent = Command::new("kill").args(["-INT", "--", &format!("-{}", child.id())]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(128 + 2));
    let document: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let routine = document["routines"].as_array().unwrap().iter().find(|r| r["name"] == "sum").unwrap();
    let sizes: Vec<(u64, u64)> = crate::profiled::points(routine).iter().map(|p| (p.0, p.1)).collect();
    assert_eq!(sizes, (1..=64).map(|n| (n, 1)).collect::<Vec<_>>());
}

#[test]
fn coroutines_on_stacks_of_their_own() {
    let program = Program::build(&["coroutines.c"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.stdout, b"27260\n");
    let mut sizes: Vec<u64> = (1..=10).flat_map(|round| [3 * round, 3 * round + 1, 40 + round]).collect();
    sizes.sort_unstable();
    assert_eq!(run.sizes("twice"), sizes.iter().map(|&n| (n, 1)).collect::<Vec<_>>());
    assert_eq!(run.sizes("sum"), run.sizes("twice"));
}

#[test]
fn three_hundred_threads_at_once() {
    let program = Program::build(&["crowd.c"], &["-O1", "-g", "-pthread"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.stdout, b"136350\n");
    assert_eq!(run.sizes("sum"), (1..=5).map(|n| (n, 60)).collect::<Vec<_>>());
    assert_eq!(run.input("sum"), (0, 60 * 15, 0));
    assert_eq!(run.routine("sum")["threads"].as_array().unwrap().len(), 300);
}
