//! `farsight span` of cargo commands: a workspace with vendored crates, a locked and offline build, a wrapper of the user's
//! own, `run`, `test` and `bench`, costs in time and in instructions. One project for all, because it is built anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[workspace]\nmembers = [\"app\", \"halves\", \"serial\", \"tasks\"]\nresolver = \"3\"\n\n[profile.bench]\nopt-level = 0\n",
    ),
    (
        "halves/Cargo.toml",
        "[package]\nname = \"halves\"\nedition = \"2024\"\n\n[dependencies]\nrayon-core = \"1.12\"\n",
    ),
    (
        "halves/src/lib.rs",
        "pub fn sum(numbers: &[u64]) -> u64 {
    if numbers.len() <= 64 {
        return weigh(numbers);
    }
    let (a, b) = numbers.split_at(numbers.len() / 2);
    let (a, b) = rayon_core::join(|| sum(a), || sum(b));
    a + b
}

#[inline(never)]
fn weigh(numbers: &[u64]) -> u64 {
    numbers.iter().sum()
}
",
    ),
    (
        "app/Cargo.toml",
        "[package]\nname = \"app\"\nedition = \"2024\"\n\n[dependencies]\nhalves = { path = \"../halves\" }\n\
         rayon-core = \"1.12\"\n\n[[bench]]\nname = \"sums\"\nharness = false\n",
    ),
    (
        "app/src/main.rs",
        "fn main() {
    let numbers: Vec<u64> = (0..4096).collect();
    println!(\"{}\", halves::sum(&numbers));
}
",
    ),
    (
        "app/benches/sums.rs",
        "fn main() {
    println!(\"bench {}\", halves::sum(&[1; 1000]));
}
",
    ),
    ("serial/Cargo.toml", "[package]\nname = \"serial\"\nedition = \"2024\"\n"),
    ("serial/src/main.rs", "fn main() {\n    println!(\"{}\", (0..100_000u64).sum::<u64>());\n}\n"),
    (
        "tasks/Cargo.toml",
        "[package]\nname = \"tasks\"\nedition = \"2024\"\n\n[dependencies]\nrayon-core = \"1.12\"\n",
    ),
    ("tasks/src/bin/uneven.rs", include_str!("span_cargo/uneven.rs")),
    ("tasks/src/bin/nested.rs", include_str!("span_cargo/nested.rs")),
    ("tasks/src/bin/stuck.rs", include_str!("span_cargo/stuck.rs")),
    ("app/tests/runtime.rs", include_str!("span_cargo/runtime.rs")),
];

struct Project {
    folder: TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Project { folder: tempfile::tempdir().expect("a temporary folder") };
        for (name, text) in FILES {
            project.write(name, text);
        }
        // What this workspace itself was built with is there without a network.
        project.cargo(&["generate-lockfile", "--offline"]);
        project.cargo(&["vendor", "--offline", "--locked", "vendor"]);
        let wrapper = project.path("wrapper");
        project.write("wrapper", "#!/bin/sh\necho \"$*\" >> \"$(dirname \"$0\")/wrapped\"\nexec \"$@\"\n");
        let status = Command::new("chmod").arg("+x").arg(&wrapper).status().expect("chmod runs");
        assert!(status.success());
        project.write(
            ".cargo/config.toml",
            &format!(
                "[build]\nrustc-wrapper = {wrapper:?}\n[source.crates-io]\nreplace-with = \"vendored\"\n\
                 [source.vendored]\ndirectory = \"vendor\"\n"
            ),
        );
        project
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        fs::write(path, text).expect("the file can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn cargo(&self, args: &[&str]) {
        let mut cargo = Command::new(env!("CARGO"));
        succeeded(cargo.args(args).current_dir(self.folder.path()).output().expect("cargo starts"));
    }

    /// Profiles a command of cargo's: what it printed, and the document.
    fn profile(&self, flags: &[&str], command: &[&str]) -> (String, Value) {
        let (printed, _, document) = self.profile_and_listen(flags, command);
        (printed, document)
    }

    /// The same, and what was said on standard error.
    fn profile_and_listen(&self, flags: &[&str], command: &[&str]) -> (String, String, Value) {
        let output = Command::new(env!("CARGO_BIN_EXE_farsight"))
            .args(["span", "-q", "-o", "/dev/null", "--no-summary", "--json", "out.json"])
            .args(flags)
            .args(["--", "cargo"])
            .args(command)
            .current_dir(self.folder.path())
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env_remove("CARGO_TARGET_DIR")
            .env_remove("RUSTC_WRAPPER")
            .env("RAYON_NUM_THREADS", "2")
            // Far less than programs that do nothing take: the machine may be busy with other things.
            .env("FARSIGHT_SPAN_PATIENCE", "2")
            .output()
            .expect("farsight starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = succeeded(output);
        (printed, said, serde_json::from_str(&self.read("out.json")).expect("it is JSON"))
    }
}

fn succeeded(output: Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Own work of what a function calls.
fn own(document: &Value, function: &str) -> f64 {
    let sites = document["sites"].as_array().expect("sites").iter();
    let inside = |s: &&Value| s["function"].as_str().is_some_and(|f| f.ends_with(function));
    sites.filter(inside).filter_map(|s| s["on_work"]["local"]["work"].as_f64()).sum()
}

/// The samples say what is known by construction, in a wide margin: a hundred of them are right to 4 in 100. Their sum
/// is what the strands measured.
pub fn sampled_three_to_one(document: &Value) {
    let sites = || document["sites"].as_array().expect("sites").iter();
    let (long, short) = (own(document, "longer"), own(document, "shorter"));
    assert!((0.5..0.95).contains(&(long / (long + short))), "{long} {short} {document:#}");
    let work = document["work"].as_f64().expect("work");
    assert!(long + short > 0.9 * work, "{long} {short} {work}");
    let sum =
        |part: &str, what: &str| -> f64 { sites().filter_map(|s| s[part]["local"][what].as_f64()).sum() };
    let rounding = sites().count() as f64 + 1.0;
    assert!((sum("on_work", "work") - work).abs() <= rounding, "{document:#}");
    assert!((sum("on_span", "span") - document["span"].as_f64().expect("span")).abs() <= rounding);
    let sampled = |s: &&Value| s["kind"] == "sampled call" && s["on_work"]["count"].as_u64() > Some(10);
    assert!(sites().filter(sampled).count() >= 2, "{document:#}");
}

/// `solve` has five strands of which three follow each other, and half as much when it is called first; `tree` is called from
/// closures or tasks of its own `calls` times on each side, of which 4 deep ones are not nested in one from the same place
/// or, where only calls that fork are known, 3. Sums over sites are the totals.
pub fn calls_that_fork(document: &Value, prefix: &str, calls: u64, error: f64) {
    let sites = || document["sites"].as_array().expect("sites").iter();
    let of = |callee: &str| {
        let callee = format!("{prefix}{callee}");
        // The second of two on one line has a number behind its name.
        let is_it =
            |s: &&Value| s["kind"] == "call" && s["callee"].as_str().is_some_and(|c| c.starts_with(&callee));
        let mut found: Vec<&Value> = sites().filter(is_it).collect();
        found.sort_by_key(|s| s["line"].as_u64());
        found
    };
    let number = |value: &Value| value.as_f64().expect("a number");
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < error;
    let solve: Vec<&Value> = of("solve").iter().map(|s| &s["on_work"]).collect();
    assert!(!solve.is_empty(), "{document:#}");
    for call in &solve {
        assert_eq!((&call["count"], &call["local"]["count"]), (&1.into(), &1.into()), "{document:#}");
        assert!(near(number(&call["work"]) / number(&call["span"]), 5.0 / 3.0), "{document:#}");
    }
    if let [first, second] = solve[..] {
        assert!(near(number(&second["work"]), 2.0 * number(&first["work"])), "{document:#}");
    }
    let tree = of("tree");
    let [outermost, inner @ ..] = &tree.iter().map(|s| &s["on_work"]).rev().collect::<Vec<_>>()[..] else {
        panic!("{document:#}");
    };
    assert_eq!(outermost["count"], 1, "{document:#}");
    // Sixteen strands, all beside each other.
    let one = number(&solve[0]["span"]) / 3.0;
    assert!(near(number(&outermost["work"]), 16.0 * one), "{document:#}");
    assert!(near(number(&outermost["span"]), one), "{document:#}");
    assert_eq!(inner.len(), 2, "{document:#}");
    for call in inner {
        let counts = (call["count"].as_u64(), call["local"]["count"].as_u64());
        assert_eq!(counts, (Some(if calls == 15 { 4 } else { 3 }), Some(calls)), "{document:#}");
    }
    let sum = |part: &str, what: &str| -> f64 { sites().map(|s| number(&s[part]["local"][what])).sum() };
    let rounding = sites().count() as f64 + 1.0;
    assert!((sum("on_work", "work") - number(&document["work"])).abs() <= rounding, "{document:#}");
    assert!((sum("on_span", "span") - number(&document["span"])).abs() <= rounding, "{document:#}");
}

fn is_sum_in_main(site: &Value) -> bool {
    site["callee"].as_str().is_some_and(|c| c.ends_with("halves::sum"))
        && site["function"].as_str() == Some("app::main")
        && site["kind"] == "call"
}

#[test]
fn a_vendored_locked_workspace_is_built_run_tested_and_measured() {
    let project = Project::new();
    let lock = project.read("Cargo.lock");
    let run = ["run", "-q", "--offline", "--locked", "-p", "app"];
    let (printed, document) = project.profile(&[], &run);
    assert_eq!(printed, "8386560\n");
    assert_eq!(document["model"], "rayon");
    // 4096 numbers are halved six times.
    assert_eq!(document["spawns"], 63, "{document:#}");
    let sites = document["sites"].as_array().expect("sites");
    let join =
        |s: &&Value| s["file"].as_str().is_some_and(|f| f.ends_with("halves/src/lib.rs")) && s["line"] == 6;
    assert!(sites.iter().any(|s| join(&s)), "{document:#}");
    // `main` calls `sum`, which forks: in time too, with all of the tasks in it.
    let call = sites.iter().find(|s| is_sum_in_main(s)).unwrap_or_else(|| panic!("{document:#}"));
    let closures = sites.iter().filter(|s| s["kind"] == "spawn");
    let inside: u64 = closures.filter_map(|s| s["on_work"]["local"]["work"].as_u64()).sum();
    assert_eq!(call["on_work"]["count"], 1, "{document:#}");
    // Each number is rounded to nanoseconds by itself.
    let of_call = |what: &str| call["on_work"][what].as_u64().expect("a number");
    assert!(inside > 0 && of_call("work") + 10 >= inside, "{inside} {call:#}");
    assert!(Some(of_call("span")) <= document["span"].as_u64().map(|span| span + 10), "{document:#}");
    // The user's own wrapper saw what was compiled, and nothing of the user's was written.
    let wrapped = project.read("wrapped");
    for name in ["rayon_core_real", "span_rt", "halves", "app"] {
        assert!(wrapped.contains(&format!("--crate-name {name} ")), "{name} in {wrapped}");
    }
    assert_eq!(project.read("Cargo.lock"), lock);
    assert!(!Path::new(&project.path("target")).exists());

    let flags = ["--cost", "instructions"];
    let [a, b] = [0, 1].map(|_| project.profile(&flags, &run).1);
    assert_eq!(a["unit"], "instructions");
    assert_eq!(a["spawns"], 63);
    // What tasks did is the same, whoever took them. Not so `main`, which frees what it allocated in a heap that the threads
    // which it started have also used by then, or not yet.
    let tasks = |document: &Value| -> Vec<Value> {
        let sites = document["sites"].as_array().expect("sites");
        sites.iter().filter(|s| s["callee"] != "main").map(|s| s["on_work"].clone()).collect()
    };
    // Two closures; `sum` in `main` and in each of the closures; `weigh`.
    assert_eq!(tasks(&a).len(), 6, "{a:#}");
    assert_eq!(tasks(&a), tasks(&b));
    // `main` calls `sum`, which forks, once: all work of the tasks is in it, and not more of the span than there is.
    let sum = a["sites"].as_array().expect("sites").iter().find(|s| is_sum_in_main(s));
    let sum = sum.unwrap_or_else(|| panic!("{a:#}"));
    let inside: u64 = tasks(&a).iter().filter_map(|t| t["local"]["work"].as_u64()).sum();
    assert_eq!(
        (sum["on_work"]["count"].as_u64(), sum["on_work"]["work"].as_u64()),
        (Some(1), Some(inside)),
        "{a:#}"
    );
    assert!(sum["on_work"]["span"].as_u64() < sum["on_work"]["work"].as_u64(), "{sum:#}");
    // A call inside a task: 64 of them, each of the same length, and one on the longest path.
    let sites = a["sites"].as_array().expect("sites");
    let weigh = |s: &&Value| s["callee"].as_str().is_some_and(|c| c.ends_with("halves::weigh"));
    let weigh = sites.iter().find(weigh).unwrap_or_else(|| panic!("{a:#}"));
    assert_eq!(weigh["line"], 3, "{weigh:#}");
    let local = |part: &str, what: &str| weigh[part]["local"][what].as_u64().unwrap_or(0);
    assert_eq!((local("on_work", "count"), local("on_span", "count")), (64, 1), "{weigh:#}");
    assert_eq!(local("on_work", "work"), 64 * local("on_span", "work"), "{weigh:#}");
    assert!(local("on_span", "work") > 64 * 5, "{weigh:#}");

    // Two functions, one of which does three times as much: by samples in time, and counted.
    let uneven = |steps| ["run", "-q", "--offline", "--locked", "-p", "tasks", "--bin", "uneven", steps];
    let (_, counted) = project.profile(&flags, &uneven("1000"));
    let (long, short) = (own(&counted, "longer"), own(&counted, "shorter"));
    assert!((long / short - 3.0).abs() < 0.1, "{long} {short} {counted:#}");
    let (_, timed) = project.profile(&[], &uneven("400000"));
    sampled_three_to_one(&timed);

    // Calls that fork, inside the closures of joins: counted and in time, where strands run into each other by some
    // nanoseconds and calls begin with their first fork.
    let nested = |steps| ["run", "-q", "--offline", "--locked", "-p", "tasks", "--bin", "nested", steps];
    let (_, counted) = project.profile(&flags, &nested("20000"));
    calls_that_fork(&counted, "nested::", 15, 0.05);
    for runs in ["1", "2"] {
        let (_, timed) = project.profile(&["--runs", runs], &nested("1000000"));
        calls_that_fork(&timed, "nested::", 7, 0.5);
    }

    // A task that waits for one which a single worker starts after it.
    let stuck = ["run", "-q", "--offline", "--locked", "-p", "tasks", "--bin", "stuck"];
    let (printed, said, _) = project.profile_and_listen(&["--serial"], &stuck);
    assert_eq!(printed, "gave up\n");
    assert!(said.contains("may wait forever: run it without --serial"), "{said}");
    assert_eq!(project.profile(&[], &stuck).0, "received\n");

    let (printed, document) =
        project.profile(&["--whole"], &["test", "-q", "--offline", "--locked", "--test", "runtime"]);
    assert!(printed.contains("6 passed"), "{printed}");
    assert_eq!(document["sites"].as_array().map(Vec::len), Some(1), "{document:#}");

    let (printed, document) = project.profile(&[], &["bench", "-q", "--offline", "--locked"]);
    assert!(printed.contains("bench 1000"), "{printed}");
    assert_eq!(document["spawns"], 15);

    // A program without rayon is one strand, in time and in instructions.
    for flags in [&[][..], &["--cost", "instructions"]] {
        let (printed, document) =
            project.profile(flags, &["run", "-q", "--offline", "--locked", "-p", "serial"]);
        assert_eq!(printed, "4999950000\n");
        assert_eq!((&document["model"], &document["spawns"]), (&"threads".into(), &0.into()), "{document:#}");
        assert!(document["work"].as_u64() > Some(0) && document["work"] == document["span"], "{document:#}");
    }
    assert_eq!(project.read("Cargo.lock"), lock);
    assert!(!project.path("target").exists());

    // What was built without us is told of.
    project.cargo(&["build", "-q", "--offline", "--locked", "-p", "app"]);
    let output = Command::new(env!("CARGO_BIN_EXE_farsight"))
        .args(["span", "-o", "/dev/null", "--no-summary", "--", "target/debug/app"])
        .current_dir(project.folder.path())
        .env("XDG_CACHE_HOME", project.path("cache"))
        .output()
        .expect("farsight starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("was not built by farsight"), "{said}");
}

/// A rayon-core of another version: one that has what is needed is built from its own source, for one that has not the
/// user is told.
#[test]
fn an_unknown_rayon_is_built_from_its_source_or_named() {
    let project = Project::new();
    let manifest = project.read("vendor/rayon-core/Cargo.toml");
    let version = manifest.lines().find(|l| l.starts_with("version = ")).expect("a version").to_owned();
    let copy = Command::new("cp")
        .args(["-r", "vendor/rayon-core", "core"])
        .current_dir(project.folder.path())
        .status()
        .expect("cp runs");
    assert!(copy.success());
    project.write("core/Cargo.toml", &manifest.replacen(&version, "version = \"1.99.0\"", 1));
    let root = project.read("Cargo.toml");
    project.write("Cargo.toml", &format!("{root}\n[patch.crates-io]\nrayon-core = {{ path = \"core\" }}\n"));
    project.write("Cargo.lock", "");
    let run = ["run", "-q", "--offline", "-p", "app"];
    let (printed, document) = project.profile(&[], &run);
    assert_eq!(printed, "8386560\n");
    assert_eq!(document["spawns"], 63, "{document:#}");

    project.write(
        "core/src/lib.rs",
        "pub fn join<A: FnOnce() -> R, B: FnOnce() -> S, R, S>(a: A, b: B) -> (R, S) {\n    (a(), b())\n}\n",
    );
    let output = Command::new(env!("CARGO_BIN_EXE_farsight"))
        .args(["span", "-q", "-o", "/dev/null", "--", "cargo"])
        .args(run)
        .current_dir(project.folder.path())
        .env("XDG_CACHE_HOME", project.path("cache"))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTC_WRAPPER")
        .output()
        .expect("farsight starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("rayon-core 1.99.0 is not one that span knows"),
        "{said}"
    );
}
