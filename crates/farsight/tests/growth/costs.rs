//! All kinds of costs, and cells of all sizes.

use crate::profiled::Program;

#[test]
fn costs_of_a_loop_grow_by_what_it_executes() {
    let program = Program::build(&["paper.c"], &["-O1", "-g"]);
    let per_element = |cost: &str| {
        let run = program.profile(&["--cost", cost], &[]);
        assert_eq!(run.document["cost"], cost);
        let points = run.points("count_zero");
        let steps: Vec<u64> = points.windows(2).map(|w| w[1].2 - w[0].2).collect();
        assert!(steps.iter().all(|s| *s == steps[0] && s % 10 == 0), "{cost}: {points:?}");
        steps[0] / 10
    };
    assert_eq!(per_element("blocks"), 1);
    assert_eq!(per_element("memory"), 1);
    assert!((4..=8).contains(&per_element("instructions")));
    let run = program.profile(&["--cost", "time"], &[]);
    assert_eq!(run.document["cost"], "time");
    let sort = run.points("merge_sort");
    assert!(
        sort.last().unwrap().2 > sort[1].3,
        "a larger sort takes longer than the largest of the smallest"
    );
}

#[test]
fn cells_of_other_sizes() {
    let program = Program::build(&["paper.c"], &["-O1", "-g"]);
    for (cell, per_int) in [("1", 4.0), ("2", 2.0), ("8", 0.5), ("16", 0.25)] {
        let run = program.profile(&["--cell", cell], &[]);
        assert_eq!(run.document["cell_bytes"].to_string(), cell);
        let sizes: Vec<u64> = run.sizes("count_zero").iter().map(|p| p.0).collect();
        // malloc aligns to 16 bytes: n ints are whole cells, but for the last.
        let expected: Vec<u64> = (1..=10).map(|k| (f64::from(k) * 10.0 * per_int).ceil() as u64).collect();
        assert_eq!(sizes, expected, "cells of {cell} bytes");
    }
}
