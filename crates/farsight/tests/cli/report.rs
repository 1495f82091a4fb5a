//! `farsight report` and `farsight merge`.

use crate::farsight::Folder;
use crate::sample;

#[test]
fn the_summary_names_the_quadratic_routine_first() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    let ended = folder.run(&["report", "a.farsight"]).exits(0);
    let ended = ended.prints(&["One routine grows faster than n log n: parse_line, n^2"]);
    let first = ended.stdout.lines().find(|l| l.trim_start().starts_with("1  ")).unwrap_or_default();
    assert!(first.contains("parse_line") && first.contains("confident"), "first row: {first:?}");
}

#[test]
fn json_has_the_documented_fields() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    let document = folder.run(&["report", "a.farsight", "--json", "-"]).exits(0).json();
    for field in [
        "farsight",
        "kind",
        "command",
        "exit",
        "wall_ns",
        "cpu_ns",
        "problems",
        "metric",
        "cost",
        "cell_bytes",
        "totals",
        "routines",
    ] {
        assert!(document.get(field).is_some(), "no {field}");
    }
    let routine = &document["routines"][0];
    for field in [
        "name",
        "mangled",
        "object",
        "address",
        "file",
        "line",
        "calls",
        "cost_total",
        "cost_self",
        "share",
        "input",
        "points",
        "threads",
        "fit",
        "forecast",
    ] {
        assert!(routine.get(field).is_some(), "no routines[].{field}");
    }
    assert_eq!(routine["name"], "parse_line");
    assert_eq!(routine["fit"]["class"], "n^2");
    assert_eq!(routine["fit"]["verdict"], "confident");
    assert!(routine["forecast"]["10"]["cost_share"].as_f64().unwrap() > routine["share"].as_f64().unwrap());
    let once = document["routines"].as_array().unwrap().iter().find(|r| r["name"] == "once").unwrap();
    assert_eq!(once["fit"]["class"], serde_json::Value::Null);
    assert_eq!(once["fit"]["verdict"], "unknown");
    assert_ne!(once["fit"]["reason"], "");
}

#[test]
fn the_page_is_one_file_that_names_the_program() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    folder.run(&["report", "a.farsight", "--html", "page.html"]).exits(0).says(&["wrote page.html"]);
    let page = std::fs::read_to_string(folder.path("page.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"));
}

#[test]
fn merging_adds_runs_once() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    folder.save("b.farsight", &sample::typical(2));
    folder
        .run(&["merge", "a.farsight", "b.farsight", "a.farsight", "-o", "c.farsight"])
        .exits(0)
        .says(&["2 runs"]);
    let one = folder.run(&["report", "a.farsight", "--json", "-"]).exits(0).json();
    let both = folder.run(&["report", "c.farsight", "--json", "-"]).exits(0).json();
    let calls = |d: &serde_json::Value| d["totals"]["activations"].as_u64().unwrap();
    assert_eq!(calls(&both), 2 * calls(&one));
}

#[test]
fn an_existing_file_is_not_replaced_without_force() {
    let folder = Folder::new();
    let path = folder.save("a.farsight", &sample::typical(1));
    let before = std::fs::read(&path).unwrap();
    folder.save("b.farsight", &sample::typical(2));
    folder.run(&["merge", "b.farsight", "-o", "a.farsight"]).exits(64).says(&["exists", "--force"]);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    folder.run(&["merge", "b.farsight", "-o", "a.farsight", "--force"]).exits(0);
    assert_ne!(std::fs::read(&path).unwrap(), before);
}
