//! The stepper against counts worked out by hand: every program of `test-programs/count` whose header states them.

use std::path::Path;
use std::process::Command;

use transparency::case::{Program, of_test_programs};
use transparency::compile::Builder;
use transparency::spec::End;

#[test]
fn counts_are_those_worked_out_by_hand() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let builder = Builder { out: root.join("target/test-programs") };
    let mut tested = 0;
    for case in of_test_programs(&root.join("test-programs")).unwrap() {
        let Program::Source { spec, .. } = &case.program else { continue };
        if spec.counts.is_empty() {
            continue;
        }
        let json = std::env::temp_dir().join(format!("farsight-stepper-{}.json", std::process::id()));
        let status = Command::new(env!("CARGO_BIN_EXE_stepper"))
            .arg("--json")
            .arg(&json)
            .arg("--")
            .args(case.command(&builder).unwrap())
            .status()
            .unwrap();
        assert!(
            matches!(spec.end, End::Exit(code) if Some(code) == status.code()),
            "{}: {status}",
            case.name
        );
        let report: serde_json::Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        std::fs::remove_file(&json).unwrap();
        let got: Vec<[u64; 5]> = report["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| ["instructions", "blocks", "loads", "stores", "calls"].map(|k| t[k].as_u64().unwrap()))
            .collect();
        assert_eq!(got, spec.counts, "{}", case.name);
        let sum: u64 = got.iter().map(|t| t[0]).sum();
        assert_eq!(report["instructions"], sum, "{}", case.name);
        tested += 1;
    }
    assert!(tested >= 9, "only {tested} programs state their counts");
}
