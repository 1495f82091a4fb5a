//! `farsight causal` on small programs: known answers with wide margins, empty results with their reasons, and programs
//! that must not notice.
//!
//! Margins: the machine that runs the tests may be busy with other things. What is asserted is what no load can turn
//! round: which of two targets matters, that a count is right, that a reason is named. How close predictions come is
//! the benchmark's business (`cargo xtask bench causal`).

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const FARSIGHT: &str = env!("CARGO_BIN_EXE_farsight");

/// A folder of its own, and compilers.
struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// Compiles a program of `test-programs/causal` or, if it is none, of a C source text. `None` without a compiler.
    fn compile(&self, source: &str, flags: &[&str]) -> Option<PathBuf> {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/causal");
        let program = self.folder.path().join("program");
        let file = if source.ends_with(".c") && !source.contains('\n') {
            programs.join(source)
        } else {
            let file = self.folder.path().join("source.c");
            std::fs::write(&file, source).unwrap();
            file
        };
        let mut gcc = Command::new("gcc");
        gcc.arg("-O2")
            .arg("-I")
            .arg(&programs)
            .args(flags)
            .arg("-o")
            .arg(&program)
            .arg(file)
            .arg("-lpthread");
        match gcc.output() {
            Ok(output) => {
                assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                Some(program)
            }
            Err(error) => {
                eprintln!("SKIPPED: gcc is not installed ({error})");
                None
            }
        }
    }

    /// Runs `farsight causal` with the flags and gives its output and its JSON.
    fn causal(&self, flags: &[&str], program: &Path, arguments: &[&str]) -> (Output, Value) {
        let json = self.folder.path().join("result.json");
        let output = Command::new(FARSIGHT)
            .current_dir(self.folder.path())
            .args(["causal", "--no-summary", "--seed", "7", "--json"])
            .arg(&json)
            .args(flags)
            .arg("--")
            .arg(program)
            .args(arguments)
            .output()
            .unwrap();
        let text = std::fs::read_to_string(&json).unwrap_or_default();
        (output, serde_json::from_str(&text).unwrap_or(Value::Null))
    }
}

fn diagnoses(document: &Value) -> String {
    format!("{} {}", document["diagnoses"], document["problems"])
}

fn result_of<'a>(document: &'a Value, target: &str) -> Option<&'a Value> {
    document["results"].as_array()?.iter().find(|r| r["target"].as_str().is_some_and(|t| t.ends_with(target)))
}

/// Whether there is a slope inside its interval. How near it is to the truth depends on what else the machine does:
/// `cargo xtask bench causal` measures that.
fn is_estimated(result: &Value) -> bool {
    let Some(slope) = result["slope"].as_f64() else { return false };
    let end = |i: usize, otherwise: f64| result["slope_ci"][i].as_f64().unwrap_or(otherwise);
    end(0, f64::NEG_INFINITY) <= slope && slope <= end(1, f64::INFINITY)
}

/// Lines of the program that are marked `TARGET name`.
fn line_of(source: &str, target: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/causal").join(source);
    let text = std::fs::read_to_string(path).unwrap();
    let at = text.lines().position(|l| l.contains(&format!("TARGET {target}"))).unwrap();
    format!("{source}:{}", at + 1)
}

#[test]
fn the_line_that_takes_the_time_is_worth_it() {
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let (output, document) = bench.causal(&[], &program, &["25000", "360000", "40000"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(document["kind"], "causal");
    assert_eq!(document["progress_points"][0]["name"], "round");
    assert_eq!(document["progress_points"][0]["visits"], 25000, "every visit counts");
    let first = result_of(&document, &line_of("serial.c", "first")).expect("the hot line has a result");
    assert_eq!(first["function"], "main");
    assert!(is_estimated(first), "{first}");
    assert_eq!(first["curve"].as_array().unwrap().len(), 4, "all levels were tried: {first}");
}

#[test]
fn functions_can_be_targets_and_breakpoints_points() {
    let bench = Bench::new();
    let source = "#include \"causal.h\"\n\
        __attribute__((noinline)) void done(void) { __asm__ volatile(\"\"); }\n\
        __attribute__((noinline)) void work(uint64_t n) { SPIN(n); }\n\
        int main(void) { for (int i = 0; i < 2000; i++) { work(2000000); done(); } }\n";
    let Some(program) = bench.compile(source, &["-g"]) else { return };
    let (output, document) = bench.causal(&["--by", "function", "--progress", "done"], &program, &[]);
    if output.status.code() == Some(69) {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    assert_eq!(document["progress_points"][0]["visits"], 2000, "{output:?}");
    assert_eq!(document["results"][0]["target"], "work", "{document}");
    assert!(is_estimated(&document["results"][0]), "{document}");
    let (output, _) = bench.causal(&["--progress", "nowhere.c:3"], &program, &[]);
    assert_eq!(output.status.code(), Some(64), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("no such function"));
}

#[test]
fn timers_do_where_perf_is_refused() {
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let (_, document) = bench.causal(&["--timer"], &program, &["12000"]);
    assert_eq!(document["sampling"]["backend"], "timer");
    assert!(document["sampling"]["in_scope"].as_u64().unwrap() > 100, "{document}");
    assert!(document["experiments"].as_u64().unwrap() > 5);
}

#[test]
fn every_empty_result_says_why() {
    let bench = Bench::new();
    let busy = "#include \"causal.h\"\nint main(void) { for (int i = 0; i < 300; i++) SPIN(2000000); }\n";
    let Some(program) = bench.compile(busy, &["-g"]) else { return };
    let (_, document) = bench.causal(&[], &program, &[]);
    assert!(diagnoses(&document).contains("no progress point was reached"), "{document}");
    let (_, document) = bench.causal(&["--scope", "file:other.c"], &program, &[]);
    assert!(diagnoses(&document).contains("is in scope"), "{document}");
    // Timers strike at the kernel's tick, a millisecond at least.
    let (_, document) = bench.causal(&["--timer", "--period", "100"], &program, &[]);
    assert!(diagnoses(&document).contains("sampling periods have no sample"), "{document}");

    let Some(program) = bench.compile(busy, &[]) else { return };
    let (_, document) = bench.causal(&[], &program, &[]);
    assert!(diagnoses(&document).contains("has no line information"), "{document}");

    let Some(program) = bench.compile("int main(void) { return 3; }\n\n", &["-g"]) else { return };
    let (output, document) = bench.causal(&[], &program, &[]);
    assert_eq!(output.status.code(), Some(3), "the program's own status");
    assert!(diagnoses(&document).contains("no samples"), "{document}");

    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let (_, document) = bench.causal(&["--warmup", "30"], &program, &["500"]);
    assert!(diagnoses(&document).contains("too short for an experiment"), "{document}");

    let never = "#include \"causal.h\"\n\
        int main(void) { point(1, \"never\"); for (int i = 0; i < 300; i++) SPIN(2000000); }\n";
    let Some(program) = bench.compile(never, &["-g"]) else { return };
    let (_, document) = bench.causal(&[], &program, &[]);
    assert!(diagnoses(&document).contains("never visited"), "{document}");

    let Some(program) = bench.compile(busy, &["-g", "-static"]) else { return };
    let (output, _) = bench.causal(&[], &program, &[]);
    assert_eq!(output.status.code(), Some(69));
    assert!(String::from_utf8_lossy(&output.stderr).contains("statically linked"));
}

#[test]
fn whole_runs_are_experiments_too() {
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let (_, document) = bench.causal(&["--end-to-end", "--runs", "4"], &program, &["400"]);
    let point = document["progress_points"].as_array().unwrap().iter().find(|p| p["kind"] == "end-to-end");
    assert_eq!(point.unwrap()["visits"], 4, "{document}");
    assert!(document["experiments"].as_u64().unwrap() >= 3, "{document}");
}

#[test]
fn a_server_is_ended_and_its_latency_measured() {
    let bench = Bench::new();
    let Some(program) = bench.compile("latency.c", &["-g"]) else { return };
    let (output, document) = bench.causal(&["--duration", "4", "--warmup", "0.2"], &program, &["100000000"]);
    assert_eq!(output.status.code(), Some(128 + 15), "ended by SIGTERM");
    assert_eq!(document["progress_points"][0]["kind"], "latency");
    let request = result_of(&document, &line_of("latency.c", "request"));
    assert!(is_estimated(request.unwrap_or_else(|| panic!("no result: {document}"))), "{document}");
}

#[test]
fn profiles_append_and_go_to_coz_and_back() {
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    for flags in [&["-o", "p.farsight"][..], &["-o", "p.farsight", "--append"]] {
        bench.causal(flags, &program, &["6000"]);
    }
    let farsight = |args: &[&str]| {
        let output = Command::new(FARSIGHT).current_dir(bench.folder.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    farsight(&["export", "p.farsight", "--format", "coz", "-o", "p.coz"]);
    let text = std::fs::read_to_string(bench.folder.path().join("p.coz")).unwrap();
    assert_eq!(text.lines().filter(|l| l.starts_with("startup\t")).count(), 2, "both runs are there");
    assert!(
        text.contains("\nexperiment\tselected=") && text.contains("\nthroughput-point\tname=round\tdelta=")
    );
    farsight(&["import", "p.coz", "-o", "q.farsight"]);
    let documents = ["p.farsight", "q.farsight"].map(|file| {
        let text = farsight(&["report", file, "--json", "-"]);
        serde_json::from_str::<Value>(&text).unwrap()
    });
    assert_eq!(documents[0]["experiments"], documents[1]["experiments"]);
    assert_eq!(documents[0]["progress_points"][0]["name"], documents[1]["progress_points"][0]["name"]);
}

/// Handlers, forks, threads and exits behave as they do natively.
#[test]
fn the_program_does_not_notice() {
    let bench = Bench::new();
    let source = r#"#include "causal.h"
#include <signal.h>
#include <sys/wait.h>
#include <errno.h>
static volatile sig_atomic_t profiled, faulted;
static void on_prof(int s) { (void)s; profiled++; }
static void on_segv(int s, siginfo_t *i, void *c) { (void)s; (void)i; (void)c; faulted = 1; _exit(faulted + profiled * 0 + 40); }
static void *thread(void *x) { SPIN(1000000); return x; }
static void *leaver(void *x) { (void)x; SPIN(3000000); exit(7); }
int main(int argc, char **argv) {
  static char stack[65536];
  stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternate, 0);
  signal(SIGPROF, on_prof), raise(SIGPROF);
  struct sigaction act = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  sigaction(SIGSEGV, &act, 0);
  point_t *p = point(1, "round");
  size_t before = p->count;
  pid_t child = fork();
  if (!child) { for (int i = 0; i < 1000; i++) VISIT(p); SPIN(1000000); _exit(9); }
  int status;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) puts("EINTR");
  printf("child %d, visits of mine %zu\n", WEXITSTATUS(status), p->count - before);
  for (int r = 0; r < 20; r++) {
    pthread_t t[50];
    for (int i = 0; i < 50; i++) pthread_create(&t[i], 0, thread, 0);
    for (int i = 0; i < 50; i++) pthread_join(t[i], 0);
    VISIT(p);
  }
  printf("handled %d, preload %s\n", (int)profiled, getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "unset");
  fflush(stdout);
  if (argc > 1) { pthread_t t; pthread_create(&t, 0, leaver, 0); for (;;) pause(); }
  *(volatile int *)8 = 1;
}
"#;
    let Some(program) = bench.compile(source, &["-g"]) else { return };
    for arguments in [&[][..], &["leave"]] {
        let native = Command::new(&program).args(arguments).output().unwrap();
        for flags in [&[][..], &["--timer"]] {
            let (output, document) = bench.causal(flags, &program, arguments);
            assert_eq!(output.stdout, native.stdout, "{}", String::from_utf8_lossy(&output.stdout));
            assert_eq!(output.status.code(), native.status.code());
            assert_eq!(document["progress_points"][0]["visits"], 20, "the child's visits are its own");
        }
    }
}

/// Ctrl-C reaches the program, and what was found until then is the result.
#[test]
fn an_interrupted_run_gives_the_result_so_far() {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let json = bench.folder.path().join("result.json");
    // (Who runs the tests may ignore SIGINT, which would be inherited.)
    let mut farsight = Command::new("env")
        .current_dir(bench.folder.path())
        .args(["--default-signal=INT", FARSIGHT, "causal", "--no-summary", "--json"])
        .arg(&json)
        .arg("--")
        .arg(&program)
        .arg("100000000")
        .process_group(0)
        .spawn()
        .unwrap();
    // Long enough for a few experiments on any machine; how many there are is not asserted.
    std::thread::sleep(std::time::Duration::from_secs(6));
    let group = format!("-{}", farsight.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let status = farsight.wait().unwrap();
    assert_eq!(status.code().or(status.signal().map(|s| 128 + s)), Some(130), "the program's own end");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(document["kind"], "causal");
    assert!(document["progress_points"][0]["visits"].as_u64().unwrap() > 0, "{document}");
}

/// What the program executes in its place is not profiled, and the result says so.
#[test]
fn a_program_that_executes_another_says_so() {
    let bench = Bench::new();
    let source = "#include \"causal.h\"\n\
        int main(void) { for (int i = 0; i < 50; i++) SPIN(2000000); execlp(\"echo\", \"echo\", \"done\", (char *)0); }\n";
    let Some(program) = bench.compile(source, &["-g"]) else { return };
    let (output, document) = bench.causal(&[], &program, &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    assert!(diagnoses(&document).contains("executed another one"), "{document}");
}

/// More threads than there are descriptors, cells of the experimenter, or places to be seen earning.
#[test]
fn thousands_of_threads_are_all_waited_for() {
    let bench = Bench::new();
    let source = r#"#include "causal.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static point_t *p;
static uint64_t sum;
static void *thread(void *x) {
  for (int i = 0; i < 3; i++) {
    pthread_mutex_lock(&lock);
    SPIN(2000);
    sum++;
    pthread_mutex_unlock(&lock);
    VISIT(p);
  }
  return x;
}
int main(void) {
  p = point(1, "turn");
  pthread_attr_t small;
  pthread_attr_init(&small), pthread_attr_setstacksize(&small, 65536);
  enum { MANY = 3000 };
  static pthread_t threads[MANY];
  int made = 0;
  pthread_mutex_lock(&lock);
  while (made < MANY && pthread_create(&threads[made], &small, thread, 0) == 0) made++;
  pthread_mutex_unlock(&lock);
  for (int i = 0; i < made; i++) pthread_join(threads[i], 0);
  printf("%d\n", sum == 3 * (uint64_t)made);
}
"#;
    let Some(program) = bench.compile(source, &["-g"]) else { return };
    let (output, document) = bench.causal(&[], &program, &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1\n", "{output:?}");
    assert_eq!(document["progress_points"][0]["visits"].as_u64().unwrap() % 3, 0, "{document}");
}

/// `--until` stops experimenting, not the program; JSONL goes out and comes back.
#[test]
fn known_well_enough_is_enough_and_jsonl_keeps_it() {
    let bench = Bench::new();
    let Some(program) = bench.compile("serial.c", &["-g"]) else { return };
    let flags = &["--until", "ci<400%", "-o", "p.farsight"];
    let (output, document) = bench.causal(flags, &program, &["60000", "300000", "100000"]);
    assert!(output.status.success());
    assert_eq!(document["progress_points"][0]["visits"], 60000, "the program went on to its end");
    // Asked for so little, it stops after some ten experiments of many times as many.
    let (_, whole) = bench.causal(&[], &program, &["60000", "300000", "100000"]);
    let experiments = |d: &Value| d["experiments"].as_u64().unwrap();
    assert!(experiments(&document) < experiments(&whole), "{document} {whole}");
    let farsight = |args: &[&str]| {
        let output = Command::new(FARSIGHT).current_dir(bench.folder.path()).args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    farsight(&["export", "p.farsight", "--format", "coz", "-o", "p.jsonl"]);
    let text = std::fs::read_to_string(bench.folder.path().join("p.jsonl")).unwrap();
    assert!(
        text.lines().all(|l| serde_json::from_str::<Value>(l).is_ok_and(|v| v["type"].is_string())),
        "{text}"
    );
    farsight(&["import", "p.jsonl", "-o", "q.farsight"]);
    let back: Value = serde_json::from_str(&farsight(&["report", "q.farsight", "--json", "-"])).unwrap();
    assert_eq!(back["experiments"], document["experiments"]);
}

/// A program that makes rounds, in a child that it forks if the first argument says so.
const ROUNDS: &str = r#"
#include "causal.h"
#include <sys/wait.h>
#include <unistd.h>
static point_t *p;
static void rounds(uint64_t n) {
  for (uint64_t i = 0; i < n; i++) { SPIN(400000); VISIT(p); }
}
int main(int argc, char **argv) {
  p = point(1, "round");
  if (argv[1][0] != 'f') { rounds(ARGUMENT(2, 1)); return 4; }
  pid_t child = fork();
  if (child == 0) { rounds(ARGUMENT(2, 1)); _exit(5); }
  int status;
  waitpid(child, &status, 0);
  printf("%d\n", WEXITSTATUS(status));
  return 3;
}
"#;

/// Name of the program, and visits at its point, of each run that was kept and had experiments.
fn experimented(bench: &Bench) -> Vec<(String, u64)> {
    let loaded = profile::file::load(&bench.folder.path().join("p.farsight")).expect("a profile");
    let of = |run: &profile::Run| {
        let profile::Data::Causal(causal) = &run.data else { panic!("not causal") };
        let program = run.program.path.rsplit('/').next().unwrap_or_default().to_owned();
        let visits = causal.points.first().map_or(0, |p| p.visits);
        (!causal.experiments.is_empty()).then_some((program, visits))
    };
    loaded.profile.runs.iter().filter_map(of).collect()
}

#[test]
fn a_forked_child_is_experimented_on_with_follow() {
    let bench = Bench::new();
    let Some(program) = bench.compile(ROUNDS, &["-g"]) else { return };
    let (output, _) = bench.causal(&["--follow", "-o", "p.farsight"], &program, &["fork", "20000"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"5\n"[..]), "{output:?}");
    assert_eq!(
        experimented(&bench),
        [("program".to_owned(), 20000)],
        "every visit of the child, none of the parent"
    );
    let (output, document) = bench.causal(&["-o", "q.farsight"], &program, &["fork", "100"]);
    assert_eq!((output.status.code(), &*output.stdout), (Some(3), &b"5\n"[..]), "{output:?}");
    assert_eq!(
        document["progress_points"][0]["visits"], 0,
        "without the flag a child is left alone: {document}"
    );
}

#[test]
fn programs_that_are_executed_are_experimented_on_with_follow() {
    let bench = Bench::new();
    let Some(program) = bench.compile(ROUNDS, &["-g"]) else { return };
    let script = "true; ./program x 20000; exec ./program x 15000";
    let (output, _) = bench.causal(&["--follow", "-o", "p.farsight"], Path::new("sh"), &["-c", script]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    let expected = [("program".to_owned(), 20000), ("program".to_owned(), 15000)];
    assert_eq!(experimented(&bench), expected, "{}: {output:?}", program.display());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("still ran"), "{errors}");
}

/// A team of OpenMP threads computes what it computes natively, whichever runtime serves it and however that was loaded.
#[test]
fn teams_of_threads_do_not_notice() {
    let bench = Bench::new();
    let Some(program) = bench.compile("openmp_all.c", &["-g", "-fopenmp"]) else { return };
    let (alone, library) = (bench.folder.path().join("alone"), bench.folder.path().join("library.so"));
    let native = Command::new(&program).arg("100").output().unwrap();
    assert!(native.status.success());
    let compare = |mode: &str, program: &Path, arguments: &[&str]| {
        let output = Command::new(FARSIGHT)
            .current_dir(bench.folder.path())
            .args([mode, "--no-summary", "-o", "/dev/null", "--"])
            .arg(program)
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.stdout, native.stdout, "{mode} {}: {said}", program.display());
        assert_eq!(output.status.code(), Some(0), "{mode} {}: {said}", program.display());
    };
    compare("causal", &program, &["100"]);
    std::fs::rename(&program, &alone).unwrap();
    // The runtime comes with a library that only its own users see.
    if bench.compile("openmp_all.c", &["-fopenmp", "-shared", "-fPIC", "-DLIBRARY"]).is_some() {
        std::fs::rename(&program, &library).unwrap();
    }
    if let Some(loader) = bench.compile("openmp_all.c", &["-g", "-DLOADER"]) {
        for mode in ["causal", "idle"] {
            compare(mode, &loader, &[library.to_str().unwrap(), "100"]);
        }
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/causal/openmp_all.c");
    let clang =
        Command::new("clang").args(["-O2", "-g", "-fopenmp", "-o"]).arg(&program).arg(source).output();
    match clang {
        Ok(output) if output.status.success() => compare("causal", &program, &["100"]),
        _ => eprintln!("SKIPPED: clang with libomp is not installed"),
    }
}

/// Who spins because it waits for its team does not run: its samples are nobody's.
#[test]
fn waiting_for_a_team_is_not_running() {
    let bench = Bench::new();
    let Some(program) = bench.compile("openmp.c", &["-g", "-fopenmp"]) else { return };
    let json = bench.folder.path().join("result.json");
    // The second thread of two waits nearly all of the time.
    let output = Command::new(FARSIGHT)
        .current_dir(bench.folder.path())
        .env("OMP_WAIT_POLICY", "active")
        .args(["causal", "--no-summary", "--json"])
        .arg(&json)
        .arg("--")
        .arg(&program)
        .args(["300", "4000000", "4"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let count = |name: &str| document["sampling"][name].as_u64().unwrap();
    assert!(count("samples") > 20, "{document}");
    assert!(count("out_of_scope") * 4 < count("samples"), "{document}");
}

/// Threads that wait by system calls of their own are seen to, their calls are caught, and nothing else changes: not for a
/// program that blocks all signals, nor for one that wants `SIGSYS` for itself, where it is said that waits are not seen.
#[test]
fn system_calls_without_libc_are_caught() {
    let bench = Bench::new();
    let Some(program) = bench.compile("raw_futex.c", &["-g"]) else { return };
    let (output, document) = bench.causal(&[], &program, &["400"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(diagnoses(&document).contains("caught by the kernel"), "{document}");
    assert_eq!(document["progress_points"][0]["visits"], 400);

    let source = std::fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/causal/raw_futex.c"),
    );
    let source = source.unwrap();
    let with = |before: &str, after: &str| {
        let text = source.replace("  pthread_t a, b;", &format!("  pthread_t a, b;\n{before}"));
        let text = text.replace("  REPORT(start, rounds);", after);
        format!(
            "#define _GNU_SOURCE\n#include <signal.h>\nstatic volatile sig_atomic_t got;\nstatic void on(int s) {{ got = s; }}\n{text}"
        )
    };
    let blocked = with(
        "  sigset_t all; sigfillset(&all); pthread_sigmask(SIG_BLOCK, &all, 0);",
        "  printf(\"%d\\n\", turn);",
    );
    let own = with(
        "  signal(SIGSYS, on);",
        "  raise(SIGSYS); struct sigaction now; sigaction(SIGSYS, 0, &now); printf(\"%d %d\\n\", (int)got, now.sa_handler == on);",
    );
    // Its action comes when calls are caught already.
    let late = with(
        "",
        "  signal(SIGSYS, on); raise(SIGSYS); rounds = 50; pthread_create(&a, 0, first, 0), pthread_create(&b, 0, second, 0);\n\
         pthread_join(a, 0), pthread_join(b, 0); printf(\"%d\\n\", (int)got);",
    );
    for (source, said, reason) in [
        (blocked, "0\n", "caught by the kernel"),
        (own, "31 1\n", "could not be caught"),
        (late, "31\n", "caught by the kernel"),
    ] {
        let Some(program) = bench.compile(&source, &["-g"]) else { return };
        let (output, document) = bench.causal(&[], &program, &["400"]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{source}");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(diagnoses(&document).contains(reason), "{document}");
    }
}
