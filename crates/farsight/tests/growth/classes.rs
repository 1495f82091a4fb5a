//! Growth that is known: from one run on ordinary input.

use std::path::Path;

use crate::profiled::Program;

#[test]
fn a_quadratic_routine_is_found_in_a_word_counter() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../oracle/programs/wf.c");
    // Without builtins: gcc would take strlen out of the loop.
    let program = Program::of(&[source], &["-O1", "-g", "-fno-builtin", "-fno-inline"]);
    let run = program.profile(&[], &["600"]);
    assert_eq!(run.class("str_tolower").as_deref(), Some("n^2"));
    assert_ne!(run.class("add_word").as_deref(), Some("n^2"));
}

#[test]
fn rust_collections_with_readable_names() {
    let program = Program::build(&["collections.rs"], &["-g", "-Copt-level=1", "-Ccodegen-units=1"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    // 20 slices of the main thread, 20 vectors that came through a channel.
    let total: Vec<(u64, u64)> = run.sizes("collections::total");
    assert_eq!(total.iter().map(|p| p.1).sum::<u64>(), 40);
    assert_eq!(run.input("collections::total"), (21_000, 10_500, 0));
    assert_eq!(run.class("collections::total").as_deref(), Some("n"));
    assert_eq!(run.class("collections::count_words").as_deref(), Some("n"));
    let names: Vec<&str> =
        run.document["routines"].as_array().unwrap().iter().map(|r| r["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|n| n.contains("hashbrown") || n.contains("HashMap")), "{names:?}");
    assert!(!names.iter().any(|n| n.starts_with("_ZN") || n.starts_with("_R")), "{names:?}");
}

#[test]
fn a_sort_an_iterator_and_a_table_without_a_hash() {
    let program = Program::build(&["algorithms.cpp"], &["-O1", "-g"]);
    let run = program.profile(&[], &[]);
    assert_eq!(run.output.status.code(), Some(0));
    assert_eq!(run.class("comb_sort(int*, int)").as_deref(), Some("n log n"));
    assert_eq!(run.class("Sparse::operator++()").as_deref(), Some("n"));
    assert_eq!(run.class("Table::contains(int) const").as_deref(), Some("n"));
    assert_eq!(run.routine("Table::contains(int) const")["fit"]["verdict"], "confident");
}
