//! `cargo xtask bench growth`: what `farsight growth` costs, beside what aprof did.
//!
//! The programs, the way of measuring and the rules are those of `bench engine`: CPU time as a ratio to native within
//! one run, records written, output compared. aprof's figures are not measured here (it is dead and does not build on
//! this machine); they are those of a port to Valgrind 3.19 on a machine of the same kind. A second table has programs
//! of two threads: wall time on two cores over the same run pinned to one.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::engine;

#[derive(clap::Args)]
pub struct Args {
    /// Runs of each program; medians are printed.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Only programs whose name contains one of these.
    #[arg(long)]
    only: Vec<String>,
    /// Leave out the table of threads.
    #[arg(long)]
    no_threads: bool,
}

/// CPU time under aprof as a ratio to native (rms), where it was measured on the same programs.
const APROF_RMS: &[(&str, f64)] = &[
    ("matmul", 37.8),
    ("msort", 16.4),
    ("hasht", 9.2),
    ("btree", 39.3),
    ("strs", 27.4),
    ("fib38", 61.9),
    ("gzip-9", 17.7),
    ("bzip2-9", 21.8),
    ("xz-6", 11.7),
    ("sqlite3", 59.7),
    ("python3", 70.4),
    ("cc1-O2", 50.4),
];

pub fn run(args: Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    let farsight = root.join("target/release/farsight");
    ensure!(farsight.exists(), "build it first: cargo build --release");
    let wrapper =
        |metric: &str| format!("{metric}={} growth --metric {metric} -q -o /dev/null --", farsight.display());
    engine::run(engine::Args {
        wrappers: vec![wrapper("rms"), wrapper("trms")],
        runs: args.runs,
        only: args.only,
        no_extra: true,
    })?;
    println!("\naprof, rms, the same programs on a machine of the same kind:");
    for (name, ratio) in APROF_RMS {
        println!("{name:<10}{ratio:>10.1}");
    }
    let logs: f64 = APROF_RMS.iter().map(|(_, ratio)| ratio.ln()).sum();
    println!(
        "{:<10}{:>10.1}   (its threaded metric: 39 to 41 on another set)",
        "geomean",
        (logs / APROF_RMS.len() as f64).exp()
    );
    if !args.no_threads {
        threads(root, &farsight, args.runs)?;
    }
    Ok(())
}

/// Wall time on two cores over wall time on one, natively and profiled: no profiler makes a program parallel that is not.
fn threads(root: &Path, farsight: &Path, runs: usize) -> Result<()> {
    let dir = root.join("target/bench/engine");
    let text = dir.join("text-10m").display().to_string();
    let parallel = dir.join("parallel").display().to_string();
    let farsight = farsight.display().to_string();
    let [joins, iterators] = rayon_programs(root)?;
    let programs: [(&str, Vec<&str>); 4] = [
        ("pthreads", vec![&parallel, "2"]),
        ("pigz -p2", vec!["pigz", "-9", "-k", "-c", "-p2", &text]),
        ("rayon joins", vec![&joins, "36"]),
        ("rayon iterators", vec![&iterators, "8000000"]),
    ];
    let under = [vec![], vec![farsight.as_str(), "growth", "-q", "-o", "/dev/null", "--"]];
    println!("\ntwo threads under trms: wall time on 2 cores over the same pinned to 1");
    println!("{:<16}{:>10}{:>10}", "program", "native", "growth");
    for (name, command) in programs {
        let mut ratios = [const { Vec::new() }; 2];
        for _ in 0..runs {
            for (under, ratios) in under.iter().zip(&mut ratios) {
                let words = [under.as_slice(), &command].concat();
                ratios.push(wall(&words)? / wall(&[&["taskset", "-c", "0"], words.as_slice()].concat())?);
            }
        }
        let [native, growth] = ratios.map(|mut r| {
            r.sort_by(f64::total_cmp);
            r[r.len() / 2]
        });
        println!("{name:<16}{native:>10.2}{growth:>10.2}");
    }
    Ok(())
}

/// Builds the programs with rayon that `bench span` also has.
fn rayon_programs(root: &Path) -> Result<[String; 2]> {
    let target = root.join("target/bench/growth-rayon");
    let built = Command::new("cargo")
        .args(["build", "--release", "-q", "--locked", "--bin", "fib", "--bin", "pipeline", "--target-dir"])
        .arg(&target)
        .current_dir(root.join("bench/span/parallel-iterators"))
        .status()?;
    ensure!(built.success(), "the rayon project does not build");
    Ok(["fib", "pipeline"].map(|name| target.join("release").join(name).display().to_string()))
}

/// Wall seconds of a command.
fn wall(words: &[&str]) -> Result<f64> {
    let started = Instant::now();
    // (Pinned to one processor, rayon would start one thread.)
    let output = Command::new(words[0])
        .args(&words[1..])
        .env("RAYON_NUM_THREADS", "2")
        .output()
        .with_context(|| format!("cannot run {words:?}"))?;
    ensure!(output.status.success(), "{words:?} ended with {}", output.status);
    Ok(started.elapsed().as_secs_f64())
}
