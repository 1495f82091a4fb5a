//! stress-ng's stressors, bounded by operations and by time. They check their own results; what is compared is that they
//! all pass. Their figures and process ids are masked.

use super::{ROW, Real, Run};

macro_rules! rows {
    ($($name:literal: $($stressor:literal $ops:literal),+;)*) => {
        &[$(Real {
            name: concat!("stress-", $name),
            needs: &["stress-ng"],
            run: Run::Command(&["stress-ng", "--timeout", "10", "--verify", "--temp-path", ".",
                $(concat!("--", $stressor), "2", concat!("--", $stressor, "-ops"), $ops),+]),
            err: &[r"\[[0-9]+\]", r"completed in [0-9.]+ ?s(ecs?)?", r"\([0-9]+ min, [0-9.]+ secs\)", r"(?m)^.*(dispatching hogs|defaulting to|setting to).*$"],
            // "No stress workers invoked" must not pass for success
            err_has: Some("successful run completed"),
            limit_s: 300,
            ..ROW
        }),*]
    };
}

pub(super) const ROWS: &[Real] = rows! {
    "cpu": "cpu" "100";
    "signal": "signal" "20000";
    "signals-nested": "signest" "500";
    "signals-queued": "sigq" "5000";
    "signals-suspend": "sigsuspend" "2000";
    "signals-fault": "sigsegv" "3000", "sigfpe" "3000";
    "signals-trap": "sigtrap" "2000";
    "fork": "fork" "300";
    "vfork": "vfork" "300";
    "vfork-many": "vforkmany" "300";
    "futex": "futex" "2000";
    "mmap": "mmap" "2";
    "threads": "pthread" "500";
    "clone": "clone" "40";
    "switch": "switch" "5000";
    "context": "context" "2000";
    "pipe": "pipe" "5000";
    "vector": "vecmath" "20";
    "longjmp": "longjmp" "5000";
    "stack": "stack" "20";
    "dynlib": "dynlib" "200";
};
