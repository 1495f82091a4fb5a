//! `farsight count` against the stepper: totals and number of threads must be equal on small static programs.
//!
//! Needs a built `farsight`, named by `FARSIGHT_BIN`; without it the comparison is skipped, and says so. Both runs get the
//! same environment, no address randomization, and a glibc that does not register restartable sequences (the engine
//! refuses them, and refusal takes another path through glibc).

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use transparency::case::of_test_programs;
use transparency::compile::Builder;

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
        let stepped = run(stepper.arg("--json").arg(&stepped_json).arg("--"), &stepped_json);
        let counted_json = scratch.join("counted.json");
        let mut setarch = Command::new("/usr/bin/setarch");
        setarch.args(["x86_64", "-R"]).arg(&farsight).args([
            "count",
            "--no-summary",
            "-q",
            "-o",
            "/dev/null",
        ]);
        let counted = run(setarch.arg("--json").arg(&counted_json).arg("--"), &counted_json);
        for key in ["instructions", "blocks", "loads", "stores", "calls"] {
            if stepped[key] != counted[key] {
                wrong.push(format!("{}: {key} stepped {} counted {}", case.name, stepped[key], counted[key]));
            }
        }
        let threads = stepped["threads"].as_array().map_or(0, Vec::len);
        if counted["threads"] != threads {
            wrong.push(format!("{}: {threads} threads stepped, counted {}", case.name, counted["threads"]));
        }
    }
    std::fs::remove_dir_all(&scratch).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
