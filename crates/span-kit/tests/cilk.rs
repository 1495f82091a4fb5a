//! Cilk programs compiled by stock compilers: every form with known costs, and the paper's figures as printed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use span_kit::cc;
use span_kit::collect;
use span_kit::rewrite::Language;

fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/span").join(name)
}

/// Compiles with the compiler that is there and runs; gives the output and the record.
fn run(language: Language, name: &str, args: &[&str], units: bool) -> (String, profile::Span) {
    run_with(language, name, args, units, false)
}

fn run_with(
    language: Language,
    name: &str,
    args: &[&str],
    units: bool,
    whole: bool,
) -> (String, profile::Span) {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("program");
    let compile: Vec<OsString> =
        vec!["-O2".into(), "-g".into(), "-o".into(), binary.clone().into(), program(name).into()];
    assert!(cc::compile(language, &compile).unwrap().success(), "{name}");
    let records = folder.path().join("records");
    std::fs::create_dir(&records).unwrap();
    let mut command = Command::new(&binary);
    command.args(args).env("FARSIGHT_SPAN_OUT", &records).env("FARSIGHT_SPAN_BURDEN", "1");
    if units {
        command.env("FARSIGHT_SPAN_COST", "units");
    }
    if whole {
        command.env("FARSIGHT_SPAN_WHOLE", "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    let (mut found, problems) = collect::read(&records).unwrap();
    assert!(problems.is_empty() && found.len() == 1, "{name}: {problems:?}");
    (String::from_utf8(output.stdout).unwrap(), found.remove(0).span)
}

fn line(span: &profile::Span, file: &str, line: u32) -> profile::Site {
    let found = span.sites.iter().find(|s| s.file.ends_with(file) && s.line == line);
    found.unwrap_or_else(|| panic!("no site {file}:{line} in {:#?}", span.sites)).clone()
}

#[test]
fn every_form_costs_what_it_must() {
    for language in [Language::C, Language::Cpp] {
        let (out, span) = run(language, "forms.c", &[], true);
        assert_eq!(out, "85\n");
        assert_eq!((span.work, span.span), (306, 168), "{language:?}");
        assert_eq!(span.spawns, 1 + 1 + 10 + 2 + 1, "{language:?}");
        let on_span: u64 = span.sites.iter().map(|s| s.on_span.local.span).sum();
        assert_eq!(on_span, span.span);
        // The program itself computes the same, without call sites.
        let (out, whole) = run_with(language, "forms.c", &[], true, true);
        assert_eq!(out, "85\n");
        assert_eq!(
            (whole.work, whole.span, whole.burdened_span, whole.spawns),
            (span.work, span.span, span.burdened_span, span.spawns),
            "{language:?}"
        );
    }
}

#[test]
fn an_exception_ends_the_tasks_that_it_passes() {
    for whole in [false, true] {
        let (out, span) = run_with(Language::Cpp, "throws.cpp", &[], true, whole);
        assert_eq!(out, "5\n");
        assert_eq!((span.work, span.span, span.spawns), (28, 20, 3), "whole: {whole}");
    }
}

#[test]
fn the_figures_compile_as_printed_and_count_right() {
    let (out, fib) = run(Language::C, "fib.c", &["15"], false);
    assert_eq!(out, "610\n");
    // fib(15) is invoked 1973 times; each of the 986 with children spawns one and calls one.
    assert_eq!(fib.spawns, 986);
    assert_eq!(line(&fib, "fib.c", 9).on_work.local.count, 986);
    assert_eq!(line(&fib, "fib.c", 10).on_work.local.count, 986);
    assert_eq!(line(&fib, "fib.c", 18).on_work.site.count, 1);
    let (_, sort) = run(Language::C, "qsort.c", &["20000"], false);
    let partition = line(&sort, "qsort.c", 38);
    assert_eq!(partition.callee, "partition");
    assert_eq!(partition.on_work.local.count, sort.spawns);
    let (out, mm) = run(Language::C, "mm.c", &["128"], false);
    assert_eq!(out, "769\n");
    // 128 -> 64 -> 32: 1 + 8 invocations spawn six each; the second half is waited for at the return.
    assert_eq!(mm.spawns, 9 * 6);
    assert_eq!(line(&mm, "mm.c", 16).on_work.local.count, 64);
}
