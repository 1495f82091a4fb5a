//! OpenMP programs, built by whichever compiler is there, under LLVM's runtime.

use std::path::{Path, PathBuf};
use std::process::Command;

use span_kit::openmp::{self, OpenMp};
use span_kit::{cc, collect};

fn build(compiler: &str, folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/span/omp.c");
    let binary = folder.join(compiler);
    let args = ["-O2", "-g", "-fopenmp", "-o"];
    let built = Command::new(compiler).args(args).arg(&binary).arg(source).output().ok()?;
    built.status.success().then_some(binary)
}

fn run(binary: &Path, part: &str, folder: &Path) -> Option<profile::Span> {
    run_with(binary, part, folder, "time")
}

fn run_with(binary: &Path, part: &str, folder: &Path, cost: &str) -> Option<profile::Span> {
    let records = folder.join("records");
    std::fs::create_dir_all(&records).unwrap();
    let mut preload = cc::kit().unwrap().join("lib").join(cc::LIBRARY).display().to_string();
    match openmp::needs(binary) {
        OpenMp::AsItIs => {}
        OpenMp::Instead(library) => preload.push_str(&format!(":{}", library.display())),
        OpenMp::Missing => return None,
        OpenMp::Unfit(functions) => panic!("libomp lacks {functions:?}"),
    }
    let output = Command::new(binary)
        .arg(part)
        .env("LD_PRELOAD", preload)
        .env("OMP_NUM_THREADS", "4")
        .env("FARSIGHT_SPAN_COST", cost)
        .env("FARSIGHT_SPAN_OUT", &records)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("done\n"), "{output:?}");
    let (mut found, problems) = collect::read(&records).unwrap();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(found.len(), 1);
    std::fs::remove_dir_all(&records).unwrap();
    Some(found.remove(0).span)
}

#[test]
fn tasks_loops_and_barriers_are_seen() {
    let mut tried = 0;
    for compiler in ["gcc", "clang"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(binary) = build(compiler, folder.path()) else { continue };
        let Some(tasks) = run(&binary, "tasks", folder.path()) else { continue };
        tried += 1;
        let count = |span: &profile::Span, callee: &str| -> u64 {
            span.sites.iter().filter(|s| s.callee == callee).map(|s| s.on_work.local.count).sum()
        };
        // fib(22) with tasks down to 10: calls with n >= 10 create two each.
        let calls = |n: u64| -> u64 {
            let (mut a, mut b) = (0, 0); // below 10 no tasks are made
            for _ in 10..=n {
                (a, b) = (b, 1 + a + b);
            }
            b
        };
        assert_eq!(count(&tasks, "task"), 2 * calls(22), "{compiler}");
        let depend = run_with(&binary, "depend", folder.path(), "units").unwrap();
        assert_eq!((depend.work, depend.span), (16 * 200 + 50, 1600), "{compiler}");
        let groups = run_with(&binary, "groups", folder.path(), "units").unwrap();
        assert_eq!((groups.work, groups.span), (1016, 1001), "{compiler}");
        let unwaited = run(&binary, "unwaited", folder.path()).unwrap();
        assert_eq!(count(&unwaited, "task"), 32, "{compiler}");
        for part in ["loop", "phases"] {
            let span = run(&binary, part, folder.path()).unwrap();
            let local: u64 = span.sites.iter().map(|s| s.on_span.local.span).sum();
            assert!(span.span <= span.work && local.abs_diff(span.span) < 1000, "{compiler} {part}");
            let region = span.sites.iter().find(|s| s.callee == "parallel region").unwrap();
            assert!(region.on_work.local.work > 0, "{compiler} {part}");
            // Four threads: each phase's longest part is at least a fourth of it.
            assert!(span.parallelism() <= 4.01, "{compiler} {part}");
        }
    }
    if tried == 0 {
        eprintln!("skipped: no compiler with OpenMP, or no libomp");
    }
}
