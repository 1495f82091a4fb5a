//! `farsight import` and `farsight export`.

use std::fs;

use crate::farsight::Folder;
use crate::sample;

/// What one thread of a run looks like in aprof's format: `scan` on sizes 10, 20, ..., cost 3n + 40.
fn aprof_report() -> String {
    let mut text =
        String::from("c -- test\nv 6\nk 100000\nm bb-count\ni rms\nt 4\na /usr/bin/sample\nf sample\n");
    text.push_str("r \"scan\" \"/usr/bin/sample\" 1\n");
    for n in (10..=400).step_by(10) {
        let cost = 3 * n + 40;
        text.push_str(&format!(
            "p 1 {n} {cost} {cost} {cost} {} 1 {cost} {cost} {cost} {cost} {}\n",
            cost * cost,
            cost * cost
        ));
    }
    text
}

#[test]
fn an_aprof_report_becomes_a_report_of_ours() {
    let folder = Folder::new();
    fs::write(folder.path("sample_12_0_4.aprof"), aprof_report()).unwrap();
    folder.run(&["import", "sample_12_0_4.aprof", "-o", "a.farsight"]).exits(0).says(&["1 run"]);
    let document = folder.run(&["report", "a.farsight", "--json", "-"]).exits(0).json();
    assert_eq!(document["routines"][0]["name"], "scan");
    assert_eq!(document["routines"][0]["fit"]["class"], "n");
    assert_eq!(document["totals"]["cost"], 100_000);
}

#[test]
fn aprof_round_trips() {
    let folder = Folder::new();
    folder.save("a.farsight", &sample::typical(1));
    folder.run(&["export", "a.farsight", "--format", "aprof", "-o", "x_1_0_4.aprof"]).exits(0);
    folder.run(&["import", "x_1_0_4.aprof", "-o", "b.farsight"]).exits(0);
    let routines = |file: &str| {
        let document = folder.run(&["report", file, "--json", "-"]).exits(0).json();
        document["routines"]
            .as_array()
            .unwrap()
            .iter()
            .map(|r| (r["name"].clone(), r["points"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(routines("a.farsight"), routines("b.farsight"));
}

#[test]
fn csv_has_a_row_per_routine_and_size() {
    let folder = Folder::new();
    let profile = sample::typical(1);
    folder.save("a.farsight", &profile);
    let csv = folder.run(&["export", "a.farsight", "--format", "csv", "-o", "-"]).exits(0).stdout;
    let profile::Data::Growth(growth) = &profile.runs[0].data else { panic!("the sample is a growth run") };
    let points: usize = growth.routines.iter().map(|r| r.points.len()).sum();
    assert_eq!(csv.lines().count(), 1 + points);
}

#[test]
fn what_is_no_aprof_report_is_refused() {
    let folder = Folder::new();
    fs::write(folder.path("a.aprof"), "hello\n").unwrap();
    folder.run(&["import", "a.aprof", "-o", "a.farsight"]).exits(65).says(&["a.aprof"]);
    assert!(!folder.path("a.farsight").exists());
    folder.run(&["import", "gone.aprof", "-o", "a.farsight"]).exits(66).says(&["gone.aprof"]);
}
