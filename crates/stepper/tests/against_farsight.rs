//! `farsight count` against the stepper: totals, number of threads, and with `--functions` every function's calls and
//! instructions must be equal on small static programs.
//!
//! Needs a built `farsight`, named by `FARSIGHT_BIN`; without it the comparison is skipped, and says so. Both runs get the
//! same environment, no address randomization, and a glibc that does not register restartable sequences (the engine
//! refuses them, and refusal takes another path through glibc).

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use transparency::case::of_test_programs;
use transparency::compile::Builder;

/// With the smallest code cache that there is: it is emptied again and again while the program runs.
const EMPTIED: &[&str] = &["--cache-units", "1"];

#[test]
fn counts_are_those_of_single_stepping() {
    let Some(farsight) = std::env::var_os("FARSIGHT_BIN") else {
        println!("skipped: FARSIGHT_BIN is not set, nothing to compare the stepper with");
        return;
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let builder = Builder { out: root.join("target/test-programs") };
    let scratch = std::env::temp_dir().join(format!("farsight-count-{}", std::process::id()));
    std::fs::create_dir_all(&scratch).unwrap();
    let mut wrong = Vec::new();
    for case in of_test_programs(&root.join("test-programs")).unwrap() {
        if !case.name.starts_with("count/") {
            continue;
        }
        let command = case.command(&builder).unwrap();
        let run = |program: &mut Command, json: &Path| -> Value {
            let _ = std::fs::remove_file(json);
            let output = program
                .args(&command)
                .env_clear()
                .env("GLIBC_TUNABLES", "glibc.pthread.rseq=0")
                .current_dir(&scratch)
                .output()
                .unwrap();
            serde_json::from_slice(&std::fs::read(json).unwrap_or_default())
                .unwrap_or_else(|e| panic!("{}: {e}: {}", case.name, String::from_utf8_lossy(&output.stderr)))
        };
        let stepped_json = scratch.join("stepped.json");
        let mut stepper = Command::new(env!("CARGO_BIN_EXE_stepper"));
        let stepped =
            run(stepper.arg("--functions").arg("--json").arg(&stepped_json).arg("--"), &stepped_json);
        let counted_json = scratch.join("counted.json");
        let count = |flags: &[&str]| {
            let mut setarch = Command::new("/usr/bin/setarch");
            setarch.args(["x86_64", "-R"]).arg(&farsight).args([
                "count",
                "--no-summary",
                "-q",
                "-o",
                "/dev/null",
            ]);
            run(setarch.args(flags).arg("--json").arg(&counted_json).arg("--"), &counted_json)
        };
        let threads = stepped["threads"].as_array().map_or(0, Vec::len);
        for flags in [&[][..], EMPTIED] {
            let counted = count(flags);
            let name = format!("{} {}", case.name, flags.join(" "));
            for key in ["instructions", "blocks", "loads", "stores", "calls"] {
                if stepped[key] != counted[key] {
                    wrong.push(format!("{name}: {key} stepped {} counted {}", stepped[key], counted[key]));
                }
            }
            if counted["threads"] != threads {
                wrong.push(format!("{name}: {threads} threads stepped, counted {}", counted["threads"]));
            }
            let by_function = count(&[&["--functions"], flags].concat());
            wrong.extend(function_differences(&name, &stepped, &by_function));
        }
    }
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What differs between the functions of two documents; same names are compared in order.
fn function_differences(case: &str, stepped: &Value, counted: &Value) -> Vec<String> {
    let list = |document: &Value| {
        let mut all: Vec<(String, [u64; 3])> = Vec::new();
        for f in document["functions"].as_array().into_iter().flatten() {
            let number = |key: &str| f[key].as_u64().unwrap_or(u64::MAX);
            let numbers = [number("calls"), number("instructions_self"), number("instructions_total")];
            all.push((f["name"].as_str().unwrap_or_default().to_owned(), numbers));
        }
        all.sort();
        all
    };
    let (want, got) = (list(stepped), list(counted));
    let own: u64 = got.iter().map(|f| f.1[1]).sum();
    let mut wrong = Vec::new();
    if counted["instructions"] != own {
        wrong.push(format!(
            "{case}: functions' own instructions add up to {own}, not {}",
            counted["instructions"]
        ));
    }
    for f in want.iter().filter(|f| !got.contains(f)) {
        wrong.push(format!("{case}: stepped {f:?}"));
    }
    for f in got.iter().filter(|f| !want.contains(f)) {
        wrong.push(format!("{case}: counted {f:?}"));
    }
    wrong
}
