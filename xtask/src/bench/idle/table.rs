//! Time from the end of a long run to its first table.
//!
//! Eight threads for ten minutes at 200 Hz are 960,000 samples. As many are taken in less time, and of a program whose
//! paths are hardly ever the same: a thread's tree grows with the number of its contexts, not with time.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use std::process::Command;

use super::{Args, Programs, Scoreboard};

/// CPU time of each thread: the kernel keeps up with some 8,000 samples in each second of it.
const SECONDS: &str = "14";

pub fn run(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    let path = programs.out.join("table.farsight");
    let _ = std::fs::remove_file(&path);
    // The program prints when it is about to end, so that the rest of the run is ours; the table follows it.
    let output = Command::new(programs.farsight())
        .args(["idle", "--rate", "20000", "-o"])
        .arg(&path)
        .arg("--")
        .arg(programs.path("forest"))
        .args(["8", SECONDS])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = printed.lines().next().unwrap_or_default();
    let said: f64 = said.parse().context("it prints the time of its end")?;
    ensure!(printed.contains("core time:"), "no table: {printed}");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_secs_f64();
    println!("  run: {:.2} s from the program's end to ours", now - said);
    let start = Instant::now();
    let shown = Command::new(programs.farsight()).arg("report").arg(&path).output()?;
    ensure!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
    println!("  report: {:.2} s to show it again", start.elapsed().as_secs_f64());
    println!("{}", String::from_utf8_lossy(&shown.stdout).lines().next().unwrap_or_default());
    board.at_most("program's end to first table", now - said, 2.0, "s");
    Ok(())
}
