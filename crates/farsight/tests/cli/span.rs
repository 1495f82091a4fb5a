//! `farsight span` on programs whose work and span are known by construction; costs are instructions, so that other load
//! on the machine changes nothing.

use serde_json::Value;

use crate::farsight::Folder;

/// Compiles a program of the span mode's own with `farsight cc`.
fn compile(folder: &Folder, name: &str) -> String {
    let source = format!("{}/../../test-programs/span/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let out = folder.path(name).display().to_string();
    folder.run(&["cc", "-O2", "-g", "-o", &out, &source]).exits(0);
    out
}

fn profile(folder: &Folder, flags: &[&str], command: &[&str]) -> Value {
    let mut args = vec!["span", "-q", "--json", "out.json"];
    args.extend(flags);
    args.push("--");
    args.extend(command);
    folder.run(&args).exits(0);
    let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
    serde_json::from_str(&text).expect("it is JSON")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

#[test]
fn instructions_are_the_same_in_every_run() {
    let folder = Folder::new();
    let program = compile(&folder, "fib");
    let flags = ["--cost", "instructions", "-o", "/dev/null"];
    let [a, b] = [0, 1].map(|_| profile(&folder, &flags, &[&program, "16"]));
    assert_eq!(a["unit"], "instructions");
    for part in ["work", "span", "burdened_span", "spawns", "sites", "critical_path"] {
        assert_eq!(a[part], b[part], "{part}");
    }
    // fib(16) is invoked 3193 times, at some twenty instructions each; fib(15) lies on the longest path, and so on.
    let (work, span) = (number(&a["work"]), number(&a["span"]));
    assert!((3193.0 * 8.0..3193.0 * 60.0).contains(&work), "{work}");
    assert!(span < work / 4.0, "{span} of {work}");
}

#[test]
fn what_is_counted_is_what_the_serial_elision_executes() {
    for compiler in ["gcc", "clang"] {
        if std::process::Command::new(compiler).arg("--version").output().is_err() {
            eprintln!("skipped: no {compiler}");
            continue;
        }
        counted_as_executed(compiler);
    }
}

fn counted_as_executed(compiler: &str) {
    let folder = Folder::new();
    let source = format!("{}/../../test-programs/span/silent.c", env!("CARGO_MANIFEST_DIR"));
    let headers = format!("-I{}/../span-c/include", env!("CARGO_MANIFEST_DIR"));
    // Cilk cannot inline what it spawns, and has no tail calls where it must wait.
    let options = ["-O2", "-g", "-fno-inline", "-fno-optimize-sibling-calls", "-o"];
    let [program, elision] = ["program", "elision"].map(|name| folder.path(name).display().to_string());
    folder.run_with(&[("CC", compiler)], &[&["cc"], &options[..], &[&program, &source]].concat()).exits(0);
    let built =
        std::process::Command::new(compiler).args(options).args([&elision, &headers, &source]).status();
    assert!(built.is_ok_and(|s| s.success()));
    // fib(17) and fib(20): all else is the same in both.
    let executed = ["r", "u"].map(|n| {
        let args = ["count", "--functions", "-q", "-o", "/dev/null", "--json", "out.json", "--", &elision, n];
        folder.run(&args).exits(0);
        let text = std::fs::read_to_string(folder.path("out.json")).expect("the JSON was written");
        let counts: Value = serde_json::from_str(&text).expect("it is JSON");
        let functions = counts["functions"].as_array().expect("functions");
        let fib = functions.iter().find(|f| f["name"] == "fib").expect("it was called");
        fib["instructions_total"].as_i64().expect("a number")
    });
    for whole in [&[][..], &["--whole"]] {
        let flags = [&["--cost", "instructions", "-o", "/dev/null"], whole].concat();
        let counted = ["r", "u"].map(|n| {
            let document = profile(&folder, &flags, &[&program, n]);
            document["work"].as_i64().expect("a number")
        });
        assert_eq!(counted[1] - counted[0], executed[1] - executed[0], "{compiler} {whole:?}: {counted:?}");
    }
}

#[test]
fn equal_strands_give_the_parallelism_that_they_must() {
    let folder = Folder::new();
    let program = compile(&folder, "dag");
    let flags = ["--cost", "instructions", "-o", "/dev/null"];
    let graph = |shape: &str, n: &str| {
        let document = profile(&folder, &flags, &[&program, shape, n, "50000"]);
        let sites = document["sites"].as_array().expect("sites");
        let call = |s: &&Value| s["function"] == "main" && s["callee"] != "strand_ns";
        let graph = &sites.iter().find(call).unwrap_or_else(|| panic!("{document:#}"))["on_work"];
        (number(&graph["work"]), number(&graph["span"]))
    };
    // What a strand costs is the compiler's choice.
    let (one, _) = graph("chain", "1");
    for (shape, n, work, span) in [
        ("tree", "5", 32.0, 1.0),
        ("chain", "9", 9.0, 9.0),
        ("loop", "20", 20.0, 1.0),
        ("pipeline", "4", 24.0, 12.0),
    ] {
        let (w, s) = graph(shape, n);
        assert!((w / (work * one) - 1.0).abs() < 0.02, "{shape}: work {w}, a strand {one}");
        assert!((s / (span * one) - 1.0).abs() < 0.02, "{shape}: span {s}, a strand {one}");
    }
}

#[test]
fn tables_and_the_page_hold_every_site() {
    let folder = Folder::new();
    let program = compile(&folder, "fib");
    let flags = ["--cost", "instructions", "-o", "fib.farsight", "--html", "fib.html"];
    let document = profile(&folder, &flags, &[&program, "10"]);
    let sites = document["sites"].as_array().expect("sites").len();
    let table = folder.run(&["export", "--format", "csv", "-o", "-", "fib.farsight"]).exits(0);
    let table = table.prints(&["file,line,call site,function type,work on work", "local count on span"]);
    assert_eq!(table.stdout.lines().count(), sites + 1);
    folder
        .run(&["export", "--format", "cilkscale", "-o", "-", "fib.farsight"])
        .exits(0)
        .prints(&["tag,work (instructions),span (instructions),parallelism", "fib,"]);
    let page = std::fs::read_to_string(folder.path("fib.html")).expect("the page was written");
    assert!(page.contains("<title>fib · Farsight</title>"));
}

#[test]
fn a_program_without_a_parallel_runtime_is_one_strand() {
    let folder = Folder::new();
    folder
        .run(&["span", "--cost", "instructions", "-o", "/dev/null", "--", "true"])
        .exits(0)
        .prints(&["parallelism 1.0", "No parallel runtime was seen"]);
}

#[test]
fn a_serial_run_that_does_nothing_is_told_of() {
    let folder = Folder::new();
    folder
        .run_with(
            &[("FARSIGHT_SPAN_PATIENCE", "2")],
            &["span", "--serial", "-o", "/dev/null", "--no-summary", "--", "sleep", "13"],
        )
        .exits(0)
        .says(&["may wait forever: run it without --serial"]);
}

#[test]
fn samples_inside_openmp_tasks_tell_calls_apart() {
    let folder = Folder::new();
    let source = format!("{}/../../test-programs/span/uneven.c", env!("CARGO_MANIFEST_DIR"));
    let program = folder.path("uneven").display().to_string();
    let args = ["-O2", "-g", "-fopenmp", "-o", &program, &source];
    let built = std::process::Command::new("gcc").args(args).output();
    if !built.is_ok_and(|o| o.status.success()) || openmp_is_missing(&folder, &program) {
        eprintln!("skipped: no compiler with OpenMP, or no libomp");
        return;
    }
    let document = profile(&folder, &["-o", "/dev/null"], &[&program, "2000000"]);
    assert_eq!(document["model"], "openmp");
    crate::span_cargo::sampled_three_to_one(&document);
    // Without names there are no such sites, and that is said.
    let strip = std::process::Command::new("strip").arg(&program).status();
    assert!(strip.is_ok_and(|s| s.success()));
    for cost in ["time", "instructions"] {
        folder
            .run(&["span", "--cost", cost, "-o", "/dev/null", "--", &program, "100"])
            .exits(0)
            .prints(&["the program has no symbols, so calls between its forks are no sites"]);
    }
}

/// In time and in instructions; built by clang, whose runtime this is, and by gcc.
#[test]
fn calls_that_fork_in_openmp_tasks_are_invocations() {
    let folder = Folder::new();
    let source = format!("{}/../../test-programs/span/omp_calls.c", env!("CARGO_MANIFEST_DIR"));
    for compiler in ["gcc", "clang"] {
        let program = folder.path(compiler).display().to_string();
        // A call that is the last thing which a function does stays a call.
        let args = ["-O2", "-g", "-fopenmp", "-fno-optimize-sibling-calls", "-o", &program, &source];
        let built = std::process::Command::new(compiler).args(args).output();
        if !built.is_ok_and(|o| o.status.success()) || openmp_is_missing(&folder, &program) {
            eprintln!("skipped: no {compiler} with OpenMP, or no libomp");
            continue;
        }
        let flags = ["--cost", "instructions", "--model-cores", "2", "-o", "/dev/null"];
        let counted = profile(&folder, &flags, &[&program, "100000"]);
        crate::span_cargo::calls_that_fork(&counted, "", 15, 0.05);
        let timed = profile(&folder, &["--model-cores", "2", "-o", "/dev/null"], &[&program, "4000000"]);
        crate::span_cargo::calls_that_fork(&timed, "", 7, 0.5);
        for document in [&counted, &timed] {
            let sites = document["sites"].as_array().expect("sites");
            let call = |callee: &str| sites.iter().find(|s| s["kind"] == "call" && s["callee"] == callee);
            // Its tasks are its caller's to wait for.
            assert!(call("scatter").is_none(), "{compiler} {document:#}");
            let region = call("region").unwrap_or_else(|| panic!("{compiler} {document:#}"));
            let parallelism = number(&region["on_work"]["work"]) / number(&region["on_work"]["span"]);
            assert!((1.5..2.1).contains(&parallelism), "{compiler} {region:#}");
        }
    }
}

fn openmp_is_missing(folder: &Folder, program: &str) -> bool {
    profile(folder, &["-o", "/dev/null"], &[program, "10"])["model"] != "openmp"
}
