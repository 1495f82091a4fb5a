//! The harness notices every kind of wrapper that is not transparent. A harness that cannot fail proves nothing.

use std::path::Path;
use std::time::Duration;

use transparency::case::{Case, Program};
use transparency::compile::Builder;
use transparency::difference::Normalise;
use transparency::judge::{Court, Verdict};
use transparency::spec::{End, Ring};

/// `sh -c SCRIPT -- program args`: the script runs the program as `"$@"`.
fn under(script: &str, program: &str, stdout: Option<&str>, end: Option<End>) -> Verdict {
    let dir = tempfile::tempdir().unwrap();
    let court = Court {
        wrapper: ["sh", "-c", script, "--"].map(String::from).to_vec(),
        builder: Builder { out: dir.path().join("built") },
        work: dir.path().join("work"),
        programs: Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-programs/real"),
        repeat: None,
    };
    court.judge(&Case {
        name: "self/test".into(),
        ring: Ring::Fast,
        program: Program::Command(["bash", "-c", program].map(String::from).to_vec()),
        needs: Vec::new(),
        cpu: None,
        setup: None,
        stdin: "input\n".into(),
        stdout: stdout.map(String::from),
        stderr_has: None,
        end,
        normalise: Normalise::default(),
        repeat: 2,
        limit: Duration::from_secs(5),
    })
}

const PROGRAM: &str = "cat; echo err >&2; echo file > left; exit 4";

#[test]
fn a_transparent_wrapper_passes() {
    let verdict = under("exec \"$@\"", PROGRAM, Some("input\n"), Some(End::Exit(4)));
    assert_eq!(verdict, Verdict::Same(2));
}

#[test]
fn every_visible_difference_is_found() {
    for (script, expected) in [
        ("\"$@\"; exit 5", "ended by exit status 5"),
        ("echo more; exec \"$@\"", "stdout differs at line 1"),
        ("\"$@\"; s=$?; echo more >&2; exit $s", "stderr differs at line 2"),
        ("exec \"$@\" < /dev/null", "stdout differs at line 1"),
        ("\"$@\"; s=$?; echo x > extra; exit $s", "file extra is extra"),
        ("\"$@\"; s=$?; rm left; exit $s", "file left is missing"),
        ("\"$@\"; s=$?; echo other > left; exit $s", "file left differs"),
        ("\"$@\"; s=$?; chmod 600 left; exit $s", "file left has mode"),
        ("\"$@\"; kill -SEGV $$", "ended by signal 11"),
        ("\"$@\"; sleep 100", "time limit"),
    ] {
        match under(script, PROGRAM, None, Some(End::Exit(4))) {
            Verdict::Differs(_, _, what) => assert!(what[0].contains(expected), "{script}: {what:?}"),
            other => panic!("{script}: {other:?}"),
        }
    }
}

#[test]
fn a_wrong_answer_is_the_programs_fault_even_when_both_agree() {
    let verdict = under("exec \"$@\"", PROGRAM, Some("other\n"), Some(End::Exit(4)));
    assert!(matches!(verdict, Verdict::Native(_)), "{verdict:?}");
    let verdict = under("exec \"$@\"", PROGRAM, None, Some(End::Exit(0)));
    assert!(matches!(verdict, Verdict::Native(_)), "{verdict:?}");
}

#[test]
fn a_difference_that_shows_now_and_then_is_found() {
    // The second run differs: a file outside of the working directory remembers the first.
    let script = "f=\"$PWD.seen\"; if [ -e \"$f\" ]; then echo again; fi; : > \"$f\"; exec \"$@\"";
    match under(script, PROGRAM, None, Some(End::Exit(4))) {
        Verdict::Differs(1, 2, _) => {}
        other => panic!("{other:?}"),
    }
}
