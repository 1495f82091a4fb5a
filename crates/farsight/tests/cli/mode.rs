//! What every mode has in common, tried on `farsight count`.

use crate::farsight::Folder;

fn runs(folder: &Folder, name: &str) -> usize {
    profile::file::load(&folder.path(name)).expect("a profile").profile.runs.len()
}

#[test]
fn the_profile_is_named_after_program_and_mode() {
    let folder = Folder::new();
    let ended = folder.run(&["count", "--", "/bin/true"]).exits(0);
    ended.prints(&["instructions", "threads"]).says(&["wrote true-count.farsight; next: farsight report"]);
    assert_eq!(runs(&folder, "true-count.farsight"), 1);
}

#[test]
fn an_existing_profile_is_kept_and_the_remedy_is_named() {
    let folder = Folder::new();
    folder.run(&["count", "-q", "--", "true"]).exits(0);
    // Refused before the program has done anything.
    folder.run(&["count", "--", "true"]).exits(64).says(&["true-count.farsight exists already"]);
    let refused = folder.run(&["count", "-o", "true-count.farsight", "--", "touch", "made"]).exits(64);
    refused.says(&["true-count.farsight exists already", "--append", "-o"]);
    assert!(!folder.path("made").exists());
    folder.run(&["count", "-q", "--append", "--", "true"]).exits(0);
    assert_eq!(runs(&folder, "true-count.farsight"), 2);
    let other = folder.run(&["count", "--append", "-o", "true-count.farsight", "--", "false"]).exits(64);
    other.says(&["holds runs of", "true", "farsight merge"]);
    assert_eq!(runs(&folder, "true-count.farsight"), 2);
}

#[test]
fn a_result_that_goes_elsewhere_does_not_fail_for_a_file_that_nobody_named() {
    let folder = Folder::new();
    for _ in 0..2 {
        folder.run(&["count", "--json", "c.json", "--", "true"]).exits(0);
    }
    let third = folder.run(&["count", "--json", "-", "--", "true"]).exits(0);
    assert_eq!(third.json()["kind"], "count");
    third.says(&["exists already, so this run is not saved"]);
    assert_eq!(runs(&folder, "true-count.farsight"), 1);
}

#[test]
fn flags_silence_what_they_say() {
    let folder = Folder::new();
    let quiet = folder.run(&["count", "-q", "--", "echo", "hi"]).exits(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("hi\n", ""));
    let silent = folder.run(&["count", "--no-summary", "-o", "/dev/null", "--", "echo", "hi"]).exits(0);
    assert_eq!((silent.stdout.as_str(), silent.stderr.as_str()), ("hi\n", ""));
}

#[test]
fn the_exit_code_is_the_programs_own() {
    let folder = Folder::new();
    folder.run(&["count", "-q", "-o", "/dev/null", "--", "sh", "-c", "exit 7"]).exits(7);
    folder.run(&["count", "-q", "-o", "/dev/null", "--", "sh", "-c", "kill -9 $$"]).exits(137);
    folder.run(&["count", "-o", "/dev/null", "--", "no-such-program"]).exits(66).says(&["no such program"]);
    folder.run(&["count", "-o", "nowhere/x", "--", "true"]).exits(66).says(&["there is no folder nowhere"]);
    folder.run(&["count"]).exits(64);
}

#[test]
fn counts_are_reported_merged_compared_and_exported() {
    let folder = Folder::new();
    for name in ["a.farsight", "b.farsight"] {
        folder.run(&["count", "-q", "-o", name, "--", "true"]).exits(0);
    }
    folder.run(&["report", "a.farsight"]).exits(0).prints(&["instructions", "loads"]);
    let document = folder.run(&["report", "a.farsight", "--json", "-"]).exits(0).json();
    for field in ["farsight", "kind", "command", "exit", "wall_ns", "cpu_ns", "problems", "threads"] {
        assert!(document.get(field).is_some(), "no {field}");
    }
    let one = document["instructions"].as_u64().expect("a number");
    assert!(one > 1000);
    assert_eq!(document["by_thread"][0]["instructions"], one);
    folder.run(&["merge", "a.farsight", "b.farsight", "-o", "both.farsight"]).exits(0);
    let both = folder.run(&["report", "both.farsight", "--json", "-"]).exits(0).json();
    assert!(both["instructions"].as_u64().expect("a number") > one, "runs are added up");
    folder.run(&["diff", "a.farsight", "a.farsight"]).exits(0).prints(&["instructions", "+0.00 %"]);
    let table = folder.run(&["export", "a.farsight", "--format", "csv", "-o", "-"]).exits(0);
    assert!(table.stdout.starts_with("run,program,scope,"), "{}", table.stdout);
    folder.run(&["report", "a.farsight", "--html", "a.html"]).exits(0);
    assert!(folder.path("a.html").metadata().expect("a page").len() > 100_000);
}

#[test]
fn functions_add_up_to_the_whole() {
    let folder = Folder::new();
    let args = ["count", "--functions", "--json", "-", "-o", "f.farsight", "--", "true"];
    let document = folder.run(&args).exits(0).json();
    let functions = document["functions"].as_array().expect("functions");
    let sum = |key: &str| functions.iter().map(|f| f[key].as_u64().expect(key)).sum::<u64>();
    assert_eq!(document["instructions"], sum("instructions_self"));
    let whole = document["instructions"].as_u64().expect("a number");
    for f in functions {
        let number = |key: &str| f[key].as_u64().expect("a number");
        assert!(number("instructions_self") <= number("instructions_total"), "{f}");
        assert!(number("instructions_total") <= whole, "{f}");
    }
    let table = folder.run(&["export", "f.farsight", "--format", "csv", "-o", "-"]).exits(0);
    assert_eq!(table.stdout.lines().count(), 1 + 2 + functions.len(), "head, program, thread, functions");
    folder.run(&["report", "f.farsight"]).exits(0).prints(&["self", "function", "object"]);
}

#[test]
fn after_a_bug_of_ours_the_program_goes_on_natively() {
    let folder = Folder::new();
    let command = "x=0; for i in 1 2 3; do x=$((x+i)); done; echo $x | cat; exit 7";
    let ended =
        folder.run(&["count", "--fail", "--no-summary", "-o", "p", "--", "bash", "-c", command]).exits(7);
    assert_eq!(ended.stdout, "6\n");
    ended.says(&["engine bug", "the program goes on natively; please report it", "counts are partial"]);
    assert_eq!(runs(&folder, "p"), 1);
}
