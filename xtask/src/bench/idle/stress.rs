//! The stress program for a long time, in several ways by turns: no crash, no hang, no difference in its output.

use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};

use super::Programs;

/// Length of one run.
const RUN: u64 = 30;

/// Ways to profile it: at the usual rate, at a high one, by timers, with its children.
const WAYS: &[&[&str]] = &[
    &["--rate", "200"],
    &["--rate", "5000"],
    &["--rate", "1000", "--no-perf"],
    &["--rate", "1000", "--follow"],
];

pub fn run(programs: &Programs, seconds: u64) -> Result<()> {
    let start = Instant::now();
    let expected = programs.native("stress", &["40"])?;
    let mut runs = 0;
    while start.elapsed() < Duration::from_secs(seconds) {
        for flags in WAYS {
            let mut all = vec!["-o", "/dev/null"];
            all.extend(*flags);
            let printed = programs.profiled(&all, "stress", &["40"]).output()?;
            let output = String::from_utf8_lossy(&printed.stdout).into_owned();
            ensure!(
                output == expected,
                "run {runs}, {flags:?}: `{}` became `{}`",
                expected.trim(),
                output.trim()
            );
            let timed = format!("t{RUN}");
            let mut child = programs.profiled(&all, "stress", &[&timed]).spawn()?;
            let limit = Instant::now() + Duration::from_secs(RUN * 6);
            let status = loop {
                match child.try_wait()? {
                    Some(status) => break status,
                    None if Instant::now() > limit => {
                        bail!("run {runs}, {flags:?}: hangs, process {}", child.id())
                    }
                    None => std::thread::sleep(Duration::from_millis(200)),
                }
            };
            ensure!(status.success(), "run {runs}, {flags:?}: {status}");
            runs += 1;
        }
        println!("{} s: {runs} runs of {RUN} s without a difference", start.elapsed().as_secs());
    }
    Ok(())
}
