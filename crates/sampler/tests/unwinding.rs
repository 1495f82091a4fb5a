//! The unwinder against two oracles: a shadow stack at every instruction, and `backtrace()` in odd places.

#[path = "../../preload/tests/harness/mod.rs"]
mod harness;
use harness::{Bench, library, run, text};

const STEPPER: &str = "stepper";

/// Compiles, steps, and checks that no instruction was wrong. Gives the instructions stepped.
fn step(compiler: &str, flags: &str, source: &str) -> Option<u64> {
    let bench = Bench::new();
    let program = bench.compile(compiler, flags, source, "program")?;
    let printed = text(&run(&program, &[], Some(&library(STEPPER)), &[]));
    let number = |name: &str| -> u64 {
        let at = printed.find(name).unwrap_or_else(|| panic!("no {name} in {printed}")) + name.len();
        printed[at..].split_whitespace().next().unwrap().parse().unwrap()
    };
    assert_eq!(number("wrong "), 0, "{compiler} {flags} {source}: {printed}");
    let (steps, landing) = (number("steps "), number("landing "));
    assert!(steps > 5_000, "{compiler} {flags} {source} stepped {steps} instructions only");
    assert!(landing * 20 < steps, "{landing} of {steps} instructions in the exception runtime");
    Some(steps)
}

#[test]
fn every_instruction_of_c() {
    const EVERY_COMPILER: [&str; 5] =
        ["-O0", "-O2", "-O3 -march=native", "-O2 -fcf-protection=full -Wl,-z,lazy", "-O2 -flto -s"];
    const ONE_COMPILER: [&str; 6] = [
        "-O1",
        "-Os",
        "-O2 -fno-omit-frame-pointer",
        "-O2 -Wl,-z,now -fno-plt",
        "-O2 -no-pie -fomit-frame-pointer",
        "-O2 -mavx2 -mstackrealign",
    ];
    for compiler in ["gcc", "clang"] {
        for flags in EVERY_COMPILER {
            step(compiler, flags, "step.c");
        }
    }
    for flags in ONE_COMPILER {
        step("gcc", flags, "step.c");
    }
}

#[test]
fn every_instruction_of_c_linked_by_lld() {
    // lld describes no procedure linkage table.
    if std::process::Command::new("ld.lld").arg("--version").output().is_err() {
        eprintln!("SKIPPED: ld.lld is not installed");
        return;
    }
    for flags in ["-O2 -fuse-ld=lld -Wl,-z,lazy", "-O2 -fuse-ld=lld -Wl,-z,now"] {
        step("clang", flags, "step.c");
    }
}

#[test]
fn every_instruction_of_cpp() {
    for (compiler, flags) in [("g++", "-O0"), ("g++", "-O2"), ("g++", "-O3 -flto"), ("clang++", "-O2 -s")] {
        step(compiler, &format!("{flags} -std=c++17"), "step.cpp");
    }
}

#[test]
fn every_instruction_of_rust() {
    for flags in ["-C opt-level=2", "-C opt-level=3 -C lto=fat", "-C opt-level=s -C strip=symbols"] {
        let flags = format!("--edition 2024 {flags} -C link-arg=-Wl,--unresolved-symbols=ignore-all");
        step("rustc", &flags, "step.rs");
    }
}

#[test]
fn agrees_with_backtrace_in_odd_places() {
    for compiler in ["gcc", "clang"] {
        for flags in ["-O0", "-O2", "-O2 -fomit-frame-pointer", "-O3 -fcf-protection=full"] {
            let bench = Bench::new();
            let shared = format!("{flags} -shared -fPIC");
            let Some(plugin) = bench.compile(compiler, &shared, "plugin.c", "plugin.so") else { return };
            let flags = format!("{flags} -rdynamic");
            let Some(program) = bench.compile(compiler, &flags, "walk.c", "walk") else { return };
            let printed = text(&run(&program, &[plugin.to_str().unwrap()], Some(&library(STEPPER)), &[]));
            assert!(!printed.contains("DIFFERS"), "{compiler} {flags}:\n{printed}");
            for place in [
                "main",
                "recursion",
                "callback",
                "signal",
                "signal-altstack",
                "signal-fault",
                "thread",
                "coroutine",
                "constructor",
                "plugin",
                "after-dlclose",
                "generated-code",
            ] {
                let line = format!("ok {place}\n");
                assert!(printed.contains(&line), "{compiler} {flags}: {place} is missing\n{printed}");
            }
        }
    }
}
