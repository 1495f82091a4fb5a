//! The examples of the papers, compiled: sizes exactly as derived by hand.

use crate::profiled::Program;

fn once(sizes: impl IntoIterator<Item = u64>) -> Vec<(u64, u64)> {
    sizes.into_iter().map(|n| (n, 1)).collect()
}

fn check(metric: &str, bits: &str) {
    let program = Program::build(&["paper.c"], &["-O1", "-g"]);
    let run = program.profile(&["--metric", metric, "--stamp-bits", bits], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    // v[i] alone: parameters are in registers.
    assert_eq!(run.sizes("get"), [(1, 10)]);
    assert_eq!(run.sizes("mid"), [(1, 10)]);
    assert_eq!(run.sizes("count_zero"), once((10..=100).step_by(10)));
    assert_eq!(run.sizes("count_zero_rec"), once(0..=12));
    assert_eq!(run.sizes("twice"), [(2, 1)]);
    // It wrote a before the callee read it.
    assert_eq!(run.sizes("knows_one"), [(1, 1)]);
    let halves = (1..=10).map(|k| (1u64 << k, 1024u64 >> k));
    let expected: Vec<(u64, u64)> = std::iter::once((0, 1024)).chain(halves).collect();
    assert_eq!(run.sizes("merge_sort"), expected);
    assert_eq!(run.class("merge_sort").as_deref(), Some("n log n"));
    assert_eq!(run.class("count_zero").as_deref(), Some("n"));
}

#[test]
fn sizes_of_the_papers_examples_are_exact() {
    check("trms", "32");
    check("rms", "32");
}

#[test]
fn running_out_of_stamps_is_invisible() {
    check("trms", "8");
    let program = Program::build(&["stamps.c"], &["-O1", "-g"]);
    for metric in ["rms", "trms"] {
        let run = program.profile(&["--metric", metric, "--stamp-bits", "8"], &[]);
        let expected: Vec<(u64, u64)> = (1..=7).map(|n| (n, 200)).collect();
        assert_eq!(run.sizes("sum"), expected, "{metric}");
    }
}

#[test]
fn both_metrics_at_once_agree_with_each_alone() {
    let program = Program::build(&["input.c"], &["-O1", "-g", "-pthread"]);
    let both = program.profile(&["--metric", "both"], &[]);
    let documents = both.document["runs"].as_array().unwrap();
    assert_eq!(documents.len(), 2);
    for document in documents {
        let metric = document["metric"].as_str().unwrap();
        let alone = program.profile(&["--metric", metric], &[]);
        let one = |doc: &serde_json::Value, name: &str| {
            let routine =
                doc["routines"].as_array().unwrap().iter().find(|r| r["name"] == name).unwrap().clone();
            crate::profiled::points(&routine)
        };
        for name in ["file_reader", "socket_reader", "take", "worker_sum"] {
            assert_eq!(one(document, name), one(&alone.document, name), "{name} by {metric}");
        }
    }
}
