//! Stolen jobs stand below the code that made them, on an unmodified program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use analyse::idle::{Classes, IdleAnalysis, analyse};
use launch::preloaded::Preload;
use profile::Idle;

/// The example, built by cargo beside this test.
fn toy() -> PathBuf {
    let mut path = std::env::current_exe().expect("this test");
    path.pop();
    path.pop();
    path.join("examples/rayon_toy")
}

fn profiled() -> (Idle, IdleAnalysis) {
    let program = toy();
    let object = symbols::fs::open(&program).expect("the example is built");
    let landmarks = idle::landmarks(&object, |_| false);
    assert!(landmarks.list.len() >= 3, "{landmarks:?}");
    assert!(landmarks.problems.is_empty(), "{landmarks:?}");
    let command = [OsString::from(&program)];
    let preload = Preload {
        command: &command,
        library: runtimes::IDLE,
        variable: wire::idle::VARIABLE,
        beside: None,
        shared_bytes: wire::idle::FILE_BYTES,
        follow: false,
    };
    let image = idle::prepare(
        &idle::Wanted { cores: 2, period_ns: 1_000_000, timer_only: false, libomp: false, go: true },
        &landmarks.list,
    );
    let (mut running, _) = preload.start(&|shared| shared.put_bytes(0, &image)).expect("it starts");
    let started_ns = running.started_monotonic_ns();
    let usage = loop {
        if let Some(usage) = running.wait(Duration::from_secs(60)).expect("it is ours") {
            break usage;
        }
    };
    assert_eq!(usage.ended.shell_code(), 0);
    let path = program.to_string_lossy().into_owned();
    let open = |path: &str| symbols::fs::open(path).ok().map(Arc::new);
    let process = idle::Process::First { started_ns, wall_ns: usage.wall_ns, cpu_ns: Some(usage.cpu_ns) };
    let ran = idle::Ran { program: &path, process, open: &open };
    let idle = idle::collect(running.shared().bytes(), &ran).expect("the runtime ran").idle;
    let analysis = analyse(&idle, &Classes::default());
    (idle, analysis)
}

#[test]
fn stolen_jobs_stand_below_their_creators() {
    let (idle, analysis) = profiled();
    let accounted = analysis.totals.accounted_ns as f64 / analysis.totals.cores_times_wall_ns as f64;
    assert!((accounted - 1.0).abs() < 0.01, "{accounted}");
    assert!(idle.stitched > 50, "three workers run next to nothing but jobs of others: {}", idle.stitched);
    // Every leaf is below main, by one of the four functions. Jobs of `scope.spawn` are left out: in a test build their
    // closure may be moved out of the heap, and then only the function that made them is known.
    let tree = &analysis.logical;
    let (mut rooted, mut all) = (0, 0);
    for (i, node) in tree.nodes.iter().enumerate().filter(|(_, n)| n.name.ends_with("::leaf")) {
        let mut names = Vec::new();
        let mut at = Some(i as u32);
        while let Some(n) = at {
            names.push(&*tree.nodes[n as usize].name);
            at = tree.nodes[n as usize].parent;
        }
        if names.iter().any(|n| n.ends_with("gamma")) {
            continue;
        }
        all += node.all.samples;
        // (A loop stands between a function and the rest of it, so the same name may come twice.)
        let known = ["alpha", "beta", "gamma", "serial"];
        let below = known.iter().filter(|f| names.iter().any(|n| n.ends_with(**f))).count();
        if names.last().is_some_and(|root| *root == "main") && below == 1 {
            rooted += node.all.samples;
            assert!(names.len() < 12, "readable: {names:?}");
        }
    }
    assert!(all > 100, "{all} samples");
    assert!(rooted as f64 >= 0.98 * all as f64, "{rooted} of {all} samples are rooted at main");
}
