//! `--follow`: forks and programs that are exec'd get runs of their own.

use crate::farsight::Folder;
use profile::{Data, Exit, Run};
use std::process::Command;

/// Name of the program, instructions and end of each run, in the order of the profile.
fn runs(folder: &Folder, name: &str) -> Vec<(String, u64, Exit)> {
    let loaded = profile::file::load(&folder.path(name)).expect("a profile");
    let of = |run: &Run| {
        let Data::Count(count) = &run.data else { panic!("not a count") };
        let program = run.program.path.rsplit('/').next().unwrap_or_default().to_owned();
        (program, count.total.instructions, run.exit)
    };
    loaded.profile.runs.iter().map(of).collect()
}

/// A program of a few known instructions.
fn assemble(folder: &Folder, name: &str, text: &str) {
    std::fs::write(folder.path("x.S"), text).expect("written");
    let out = folder.path(name);
    let status = Command::new("gcc")
        .args(["-nostdlib", "-static", "-o"])
        .arg(&out)
        .arg(folder.path("x.S"))
        .status()
        .expect("gcc runs");
    assert!(status.success());
}

#[test]
fn every_program_of_a_pipeline_is_counted_and_the_output_is_its_own() {
    let folder = Folder::new();
    let command = "echo a | cat | tr a b; exit 7";
    let ended =
        folder.run(&["count", "--follow", "--no-summary", "-o", "p", "--", "sh", "-c", command]).exits(7);
    assert_eq!(ended.stdout, "b\n");
    let all = runs(&folder, "p");
    assert_eq!(all[0].2, Exit::Code(7), "the first run is the program that was asked for");
    for program in ["cat", "tr"] {
        let found = all.iter().find(|r| r.0 == program);
        assert!(found.is_some_and(|r| r.1 > 10_000 && r.2 == Exit::Code(0)), "{program}: {all:?}");
    }
    folder.run(&["count", "-q", "-o", "q", "--", "sh", "-c", command]).exits(7);
    assert_eq!(runs(&folder, "q").len(), 1, "without the flag, children run natively");
}

#[test]
fn a_program_that_becomes_another_is_two_runs_and_one_that_cannot_goes_on() {
    let folder = Folder::new();
    let command = "exec 2>/dev/null; /no/such/program; exec sh -c 'exit 3'";
    folder.run(&["count", "--follow", "-q", "-o", "p", "--", "bash", "-c", command]).exits(3);
    let all = runs(&folder, "p");
    let names: Vec<&str> = all.iter().map(|r| r.0.as_str()).collect();
    assert_eq!((names[0], *names.last().expect("a run")), ("bash", "dash"), "{all:?}");
}

#[test]
fn a_compiler_is_followed_to_its_parts() {
    let folder = Folder::new();
    std::fs::write(folder.path("x.c"), "int main(void) { return 5; }").expect("written");
    let (source, out) = (folder.path("x.c"), folder.path("x"));
    let (source, out) = (source.to_str().expect("UTF-8"), out.to_str().expect("UTF-8"));
    folder.run(&["count", "--follow", "-q", "-o", "p", "--", "gcc", "-o", out, source]).exits(0);
    let all = runs(&folder, "p");
    for part in ["cc1", "as", "ld"] {
        assert!(all.iter().any(|r| r.0.contains(part)), "{part}: {all:?}");
    }
    assert_eq!(Command::new(out).status().expect("runs").code(), Some(5));
}

#[test]
fn what_a_child_executed_is_exact() {
    let folder = Folder::new();
    // Child: 2 instructions after the fork, 1 + 2 * 1000 in the loop, 3 to exit.
    assemble(
        &folder,
        "forks",
        ".globl _start\n_start: mov $57, %eax\nsyscall\ntest %eax, %eax\njz 2f\nmov $61, %eax\nmov $-1, %rdi\n\
         xor %esi, %esi\nxor %edx, %edx\nxor %r10d, %r10d\nsyscall\nmov $60, %eax\nxor %edi, %edi\nsyscall\n\
         2: mov $1000, %ecx\n1: dec %ecx\njnz 1b\nmov $60, %eax\nmov $5, %edi\nsyscall\n",
    );
    let program = folder.path("forks");
    let program = program.to_str().expect("UTF-8");
    for extra in [None, Some("--functions")] {
        let mut args = vec!["count", "--follow", "-q", "-o", "p"];
        args.extend(extra);
        folder.run(&[&args[..], &["--", program]].concat()).exits(0);
        let all = runs(&folder, "p");
        assert_eq!(
            all,
            [("forks".into(), 13, Exit::Code(0)), ("forks".into(), 2006, Exit::Code(5))],
            "{extra:?}"
        );
        std::fs::remove_file(folder.path("p")).expect("removed");
    }
}

/// Reads as many words as its argument says; without one, has children do so: one by fork, two by spawning itself, and
/// itself, by exec.
const READERS: &str = r#"
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
__attribute__((noinline)) long work(const long *p, long n) {
    long sum = 0;
    for (long i = 0; i < n; i++) sum += p[i];
    return sum;
}
static int child(long n) {
    long *p = malloc(n * sizeof *p);
    for (long i = 0; i < n; i++) p[i] = i;
    return printf("%ld\n", work(p, n)) < 0 || fflush(stdout);
}
int main(int argc, char **argv) {
    if (argc > 1) return child(atol(argv[1]));
    pid_t forked = fork();
    if (forked == 0) _exit(child(4));
    waitpid(forked, 0, 0);
    char *sizes[] = {"8", "16", "32"};
    for (int i = 0; i < 3; i++) {
        char *words[] = {argv[0], sizes[i], 0};
        pid_t pid;
        if (i == 2) return execv(argv[0], words);
        if (posix_spawn(&pid, argv[0], 0, 0, words, environ)) return 1;
        waitpid(pid, 0, 0);
    }
}
"#;

#[test]
fn growth_follows_programs_that_are_execd_and_leaves_forks_alone() {
    let folder = Folder::new();
    std::fs::write(folder.path("readers.c"), READERS).expect("written");
    let program = folder.path("readers");
    let mut gcc = Command::new("gcc");
    let built = gcc.args(["-O1", "-g", "-o"]).arg(&program).arg(folder.path("readers.c")).status();
    assert!(built.expect("gcc runs").success());
    let program = program.to_str().expect("UTF-8");
    let ended = folder.run(&["growth", "--follow", "-q", "-o", "p", "--", program]).exits(0);
    assert_eq!(ended.stdout, "6\n28\n120\n496\n", "each child does its work, profiled or not");
    let loaded = profile::file::load(&folder.path("p")).expect("a profile");
    // Activations and sizes of `work` in each run.
    let mut found = Vec::new();
    for run in &loaded.profile.runs {
        let Data::Growth(growth) = &run.data else { panic!("not a growth profile") };
        let routine = growth.routines.iter().find(|r| r.name == "work");
        let points = routine.map(|r| r.points.iter().map(|p| (p.calls, p.n)).collect::<Vec<_>>());
        found.push((run.exit, points.unwrap_or_default(), u64::from(growth.cell_bytes)));
    }
    assert_eq!(found.len(), 4, "the program, two that were spawned, and what it became: {found:?}");
    let cells = |longs: u64| longs * 8 / found[0].2;
    let sizes: Vec<u64> = found.iter().filter_map(|f| f.1.first()).map(|p| p.1).collect();
    assert!(found.iter().all(|f| f.1.len() <= 1 && f.1.iter().all(|p| p.0 == 1)), "{found:?}");
    assert_eq!(sizes.len(), 3, "the one that forks, spawns and execs reads nothing itself: {found:?}");
    let mut sizes = sizes;
    sizes.sort_unstable();
    assert!(sizes[0] >= cells(8), "{found:?}");
    assert_eq!([sizes[1] - sizes[0], sizes[2] - sizes[1]], [cells(8), cells(16)], "{found:?}");
}
