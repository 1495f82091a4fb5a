//! Language runtimes with threads, signals, just-in-time code and garbage collectors of their own.

use super::{ROW, Real, Run};

/// A module of Python's own test suite, or what the patterns after `-m` select of it.
macro_rules! python_module {
    ($module:literal, $limit_s:literal $(, $selection:literal)*) => {
        Real {
            name: concat!("python-", $module),
            needs: &["/usr/bin/python3", "/usr/lib/python3.11/test/test_json/__init__.py"],
            run: Run::Command(&["/usr/bin/python3", "-m", "test", $module $(, $selection)*]),
            out: &[
                r"(?m)^[0-9]+:[0-9]{2}:[0-9]{2} load avg: [0-9.]+ ",
                r"(?m)^Total duration: .*$",
                r"(?m)^test_[a-z_]+ passed in .*\n",
            ],
            // asyncio tells of slow callbacks, and callbacks are slow on a busy machine
            err: &[r"(?m)^Executing <.*\n"],
            files: &[r"^.*$"],
            limit_s: $limit_s,
            ..ROW
        }
    };
}

pub(super) const ROWS: &[Real] = &[
    Real {
        name: "python",
        needs: &["/usr/bin/python3"],
        setup: "cp {programs}/work.py .",
        run: Run::Command(&["/usr/bin/python3", "work.py"]),
        ..ROW
    },
    python_module!("test_json", 300),
    python_module!("test_re", 300),
    python_module!("test_struct", 300),
    python_module!("test_threading", 600),
    python_module!("test_signal", 600),
    python_module!("test_subprocess", 900),
    python_module!("test_asyncio", 1200),
    python_module!("test_ctypes", 300),
    // all of it takes many minutes natively
    python_module!(
        "test_multiprocessing_fork",
        600,
        "-m",
        "*TestLock*",
        "-m",
        "*TestQueue*",
        "-m",
        "*TestProcess*",
        "-m",
        "*TestCondition*",
        "-m",
        "*TestPool*"
    ),
    python_module!("test_faulthandler", 600),
    Real {
        name: "node",
        needs: &["node"],
        setup: "cp {programs}/work.js .",
        run: Run::Command(&["node", "work.js"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "node-jitless",
        needs: &["node"],
        setup: "cp {programs}/work.js .",
        run: Run::Command(&["node", "--jitless", "work.js"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "java",
        needs: &["java", "javac"],
        setup: JAVA,
        run: Run::Command(&["java", "-cp", ".", "Work"]),
        limit_s: 300,
        ..ROW
    },
    Real {
        name: "java-interpreted",
        needs: &["java", "javac"],
        setup: JAVA,
        run: Run::Command(&["java", "-Xint", "-cp", ".", "Work"]),
        limit_s: 300,
        ..ROW
    },
    Real { name: "go", needs: &["go"], setup: GO, run: Run::Command(&["./work"]), limit_s: 300, ..ROW },
];

const JAVA: &str = "cp {programs}/Work.java .; javac Work.java";
/// The cache stays beside the working directory, so that the second run need not compile Go's own library again.
const GO: &str = "cp {programs}/work.go .; GOCACHE=$PWD.gocache GO111MODULE=off go build -o work work.go";
