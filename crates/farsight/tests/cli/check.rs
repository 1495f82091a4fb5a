//! `farsight check`, the complexity gate.

use crate::farsight::Folder;
use crate::sample;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    folder
}

#[test]
fn a_confident_fit_that_is_worse_fails_with_the_evidence() {
    folder().run(&["check", "a.farsight", "--rule", "parse_*: n log n"]).exits(1).prints(&[
        "FAIL",
        "parse_line",
        "expected n log n",
        "found n^2",
        "sizes from",
        "calls",
    ]);
}

#[test]
fn better_or_equal_passes() {
    folder().run(&["check", "a.farsight", "--rule", "parse_*: n^2", "--rule", "scan: n log n"]).exits(0);
}

#[test]
fn not_enough_data_is_said_and_fails_only_when_strict() {
    folder().run(&["check", "a.farsight", "--rule", "once: n"]).exits(0).prints(&["not enough data"]);
    folder().run(&["check", "a.farsight", "--rule", "once: n", "--strict"]).exits(1);
}

#[test]
fn a_rule_that_matches_nothing_fails_and_suggests() {
    folder()
        .run(&["check", "a.farsight", "--rule", "parse_lin: n"])
        .exits(1)
        .prints(&["NO MATCH", "parse_line"]);
}

#[test]
fn a_rule_without_a_class_is_a_usage_error() {
    folder().run(&["check", "a.farsight", "--rule", "parse"]).exits(64).says(&["names no class"]);
}

#[test]
fn the_same_data_always_give_the_same_answer() {
    let folder = folder();
    let run = || folder.run(&["check", "a.farsight", "--rule", "*: n", "--json", "-"]).exits(1).stdout;
    let first = run();
    for _ in 0..10 {
        assert_eq!(run(), first);
    }
}
