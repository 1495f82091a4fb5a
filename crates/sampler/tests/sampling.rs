//! Samples end to end: known shares, both backends, and programs that must not notice.

#[path = "../../preload/tests/harness/mod.rs"]
mod harness;
use harness::{Bench, library, run, text};
use std::collections::HashMap;
use std::path::Path;

/// A profile that the `cct` library wrote.
struct Profile {
    header: HashMap<String, String>,
    paths: Vec<(u64, String)>,
}

impl Profile {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("no profile: {error}"));
        let mut lines = text.lines();
        let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
        let header = words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
        let mut paths = Vec::new();
        for line in lines.filter(|line| !line.starts_with("module")) {
            let mut fields = line.splitn(3, ' ');
            let count = fields.next().unwrap().parse().unwrap();
            paths.push((count, fields.nth(1).unwrap_or_default().to_owned()));
        }
        Self { header, paths }
    }

    fn number(&self, name: &str) -> u64 {
        self.header[name].parse().unwrap()
    }

    fn samples(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        self.paths.iter().filter(|(_, path)| wanted(path)).map(|(count, _)| count).sum()
    }
}

fn profile(program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (Profile, String) {
    let bench = Bench::new();
    let out = bench.path("cct.txt");
    let mut all = vec![("FARSIGHT_CCT", out.to_str().unwrap())];
    all.extend(variables);
    let printed = text(&run(program, arguments, Some(&library("cct")), &all));
    (Profile::read(&out), printed)
}

fn check_shares(backend: &str, flags: &str, threads: &str) {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", flags, "shares.c", "shares") else { return };
    let native = text(&run(&program, &[threads, "60000"], None, &[]));
    let (profile, printed) = profile(&program, &[threads, "60000"], &[("FARSIGHT_CCT_BACKEND", backend)]);
    assert_eq!(printed, native);
    if backend == "perf" && profile.header["backend"] != "perf" {
        eprintln!("SKIPPED: perf events are not permitted here");
        return;
    }
    assert_eq!(profile.header["backend"], backend);
    let taken = profile.number("taken");
    assert!(taken > 100, "{taken} samples only");
    // Three quarters of the time is in `heavy`. Four standard deviations, and a little for the loop overhead.
    let below = |name: &str| profile.samples(|path| path.contains(name)) as f64;
    let (heavy, light) = (below(";heavy;"), below(";light;"));
    let share = heavy / (heavy + light);
    let tolerance = 4.0 * (0.75 * 0.25 / (heavy + light)).sqrt() + 0.01;
    assert!(
        (share - 0.75).abs() < tolerance,
        "{share} of {} samples, should be 0.75 +- {tolerance}",
        heavy + light
    );
    // Every path is complete: rooted in the thread's start, through the known callers.
    assert_eq!(profile.number("root"), taken, "{:?}", profile.header);
    let complete = profile
        .samples(|path| path.contains(";run;work;heavy;spin") || path.contains(";run;work;light;spin"));
    assert!(complete * 100 >= taken * 95, "{complete} of {taken} below work");
}

#[test]
fn shares_are_right_with_perf() {
    check_shares("perf", "-O2 -rdynamic -fomit-frame-pointer", "2");
}

#[test]
fn shares_are_right_with_a_timer() {
    check_shares("timer", "-O2 -rdynamic -fomit-frame-pointer", "2");
}

#[test]
fn shares_are_right_without_optimization() {
    check_shares("perf", "-O0 -rdynamic", "3");
}

#[test]
fn two_thousand_threads() {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2 -rdynamic", "shares.c", "shares") else { return };
    let native = text(&run(&program, &["2000", "20"], None, &[]));
    let (profile, printed) = profile(&program, &["2000", "20"], &[("FARSIGHT_CCT_PERIOD_NS", "100000")]);
    assert_eq!(printed, native);
    assert_eq!(profile.number("perf-threads") + profile.number("timer-threads"), 2001);
    assert_eq!(profile.number("refused"), 0);
    assert!(profile.number("taken") > 0);
}

#[test]
fn a_program_that_is_particular_about_signals() {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2", "signals.c", "signals") else { return };
    let native = text(&run(&program, &[], None, &[]));
    assert!(native.contains("errno 77"), "{native}");
    let (profile, printed) = profile(&program, &[], &[]);
    assert_eq!(printed, native);
    assert!(profile.number("taken") > 50, "{:?}", profile.header);
    // A timer may interrupt calls that the kernel never restarts; all else must be the same.
    let (_, printed) = self::profile(&program, &[], &[("FARSIGHT_CCT_BACKEND", "timer")]);
    let rest = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("interrupted")).map(str::to_owned).collect()
    };
    assert_eq!(rest(&printed), rest(&native));
}

#[test]
fn threads_forks_and_execs() {
    undisturbed("churn.c");
}

/// A cancellation that comes while the handler of samples runs waits for its end.
#[test]
fn cancelled_while_sampled() {
    undisturbed("cancel.c");
}

/// Samples strike on the alternate stack and must not need it.
#[test]
fn on_a_small_alternate_stack() {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2", "small_stack.c", "small_stack") else { return };
    let native = text(&run(&program, &[], None, &[]));
    let (profile, printed) = profile(&program, &[], &[("FARSIGHT_CCT_PERIOD_NS", "100000")]);
    assert_eq!(printed, native);
    assert!(profile.number("taken") > 50, "{:?}", profile.header);
}

/// The dynamic linker's entry, which calls constructors, has no unwind information and is the root all the same.
#[test]
fn constructors_are_rooted() {
    let bench = Bench::new();
    let Some(library) = bench.compile("gcc", "-O2 -rdynamic -shared -fPIC", "early.c", "libearly.so") else {
        return;
    };
    let folder = library.parent().unwrap().display();
    let flags = format!("-O2 -DMAIN -L{folder} -Wl,-rpath,{folder}");
    let Some(program) =
        bench.compile("gcc", &format!("{flags} -Wl,--no-as-needed -l:libearly.so"), "early.c", "program")
    else {
        return;
    };
    let (profile, printed) = profile(&program, &[], &[]);
    assert_eq!(printed, "main\n");
    let taken = profile.number("taken");
    assert!(taken > 10, "{taken} samples only");
    assert_eq!(profile.number("root"), taken, "{:?}", profile.header);
}

/// The program prints the same with many samples as with none.
fn undisturbed(source: &str) {
    let bench = Bench::new();
    let Some(program) = bench.compile("gcc", "-O2", source, "program") else { return };
    let native = text(&run(&program, &[], None, &[]));
    for backend in ["perf", "timer"] {
        let variables = [("FARSIGHT_CCT_BACKEND", backend), ("FARSIGHT_CCT_PERIOD_NS", "50000")];
        let (_, printed) = profile(&program, &[], &variables);
        assert_eq!(printed, native, "{backend}");
    }
}
