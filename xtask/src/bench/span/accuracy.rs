//! Graphs whose work and span are known.

use std::process::{Child, Command, Stdio};
use std::thread::available_parallelism;

use anyhow::{Context, Result};
use serde_json::Value;

use super::Args;
use super::programs::Bench;

/// Shape, size, and the function whose call in `main` is the graph (Cilk).
const CILK: &[(&str, &str)] = &[
    ("tree", "7"),
    ("skewed", "60"),
    ("chain", "120"),
    ("loop", "128"),
    ("pipeline", "30"),
    ("nested", "12"),
];
const RAYON: &[(&str, &str)] =
    &[("tree", "7"), ("skewed", "60"), ("chain", "120"), ("wide", "128"), ("rounds", "30")];

/// Processes that keep every processor busy, until dropped.
struct Hogs(Vec<Child>);

impl Hogs {
    fn start() -> Result<Hogs> {
        let count = available_parallelism().map_or(2, |n| n.get());
        let hog = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Ok(Hogs((0..count).map(|_| hog()).collect::<std::io::Result<_>>()?))
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

pub fn run(bench: &Bench, args: &Args, loaded: bool) -> Result<()> {
    let _hogs = loaded.then(Hogs::start).transpose()?;
    bench.compile("test-programs/span/dag.c", "dag", &[])?;
    let how = if loaded { "loaded" } else { "quiet" };
    println!("\n{:<26}{:>12}{:>12}", format!("error, {how}"), "work %", "span %");
    let repeat = args.repeat.to_string();
    let mut worst = [0.0f64; 2];
    let shapes = CILK.iter().map(|s| (s, true)).chain(RAYON.iter().map(|s| (s, false)));
    for ((shape, size), is_cilk) in shapes {
        let name = format!("{} {shape}", if is_cilk { "cilk" } else { "rayon" });
        if !args.wants(&name) {
            continue;
        }
        let program = if is_cilk { bench.cilk("dag", true) } else { bench.rayon("dag", true) };
        // Parallel iterators split as the model says, so that every run has the same tasks.
        let mode = ["span", "--burden", "1000", "--model-cores", "64", "--runs", &repeat];
        let (printed, document) = bench.profile(&mode, &program, &[shape, size])?;
        let expected = expected(&printed);
        let site =
            graph(&document, is_cilk).with_context(|| format!("{name}: the graph's site is not there"))?;
        let error = |i: usize, key: &str| site[key].as_f64().map(|v| 100.0 * (v / expected[i] - 1.0));
        let errors = [error(0, "work").unwrap_or(f64::NAN), error(1, "span").unwrap_or(f64::NAN)];
        worst.iter_mut().zip(errors).for_each(|(w, e)| *w = w.max(e.abs()));
        println!("{name:<26}{:>12.2}{:>12.2}", errors[0], errors[1]);
    }
    println!("{:<26}{:>12.2}{:>12.2}   (bar: {})", "worst", worst[0], worst[1], if loaded { 5 } else { 2 });
    Ok(())
}

/// Work and span as the runs of the program measured a strand: the median of each.
fn expected(printed: &str) -> [f64; 2] {
    [0, 1].map(|column| {
        let line = |l: &str| l.split_whitespace().nth(column).and_then(|n| n.parse().ok());
        let mut all: Vec<f64> = printed.lines().filter_map(line).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
    })
}

/// The measurements of the call in `main` that is the graph.
fn graph(document: &Value, is_cilk: bool) -> Option<Value> {
    let sites = document["sites"].as_array()?;
    let site = sites.iter().find(|s| {
        let function = s["function"].as_str().unwrap_or_default();
        let callee = s["callee"].as_str().unwrap_or_default();
        if is_cilk {
            function == "main" && callee != "strand_ns"
        } else {
            function.ends_with("::main") && callee == "first closure"
        }
    })?;
    Some(site["on_work"].clone())
}
