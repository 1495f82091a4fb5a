//! What the profile says that a faster site would give, against really making it faster.

use anyhow::{Context, Result};
use serde_json::Value;

use super::Args;
use super::programs::{Bench, PROGRAMS, Source};

/// Source, arguments, and the function that `-DSLOW=2` makes do its work twice.
const CASES: &[(&str, &str, &[&str], &str)] = &[
    ("strassen", "bench/span/strassen.c", &["512"], "base"),
    ("fft", "bench/span/fft.c", &["262144"], "small"),
    ("nqueens", "bench/span/nqueens.c", &["12"], "leaf"),
    ("heat", "bench/span/heat.c", &["100", "256"], "rows"),
    ("rounds", "bench/span/rounds.c", &["100"], "longest"),
    ("bushy", "bench/span/bushy.c", &[], "combine"),
];

pub fn run(bench: &Bench, args: &Args) -> Result<()> {
    println!(
        "\n{:<12}{:<12}{:>12}{:>12}{:>12}{:>10}{:>10}",
        "prediction", "site", "span now ms", "predicted", "measured", "error %", "par. %"
    );
    let mut worst = 0.0f64;
    for (name, source, arguments, function) in CASES.iter().filter(|c| args.wants(c.0)) {
        let (slow, fast) = (format!("{name}-slow"), format!("{name}-fast"));
        bench.compile(source, &slow, &["-DSLOW=2"])?;
        bench.compile(source, &fast, &["-DSLOW=1"])?;
        let repeat = args.repeat.to_string();
        let mode = ["span", "--burden", "1000", "--runs", &repeat];
        let (_, before) = bench.profile(&mode, &bench.cilk(&slow, true), arguments)?;
        let (_, after) = bench.profile(&mode, &bench.cilk(&fast, true), arguments)?;
        let sites: Vec<&Value> = before["sites"]
            .as_array()
            .map(|all| all.iter().filter(|s| s["callee"] == *function).collect())
            .unwrap_or_default();
        let now = before["span"].as_f64().context("a span")?;
        // A function may be called from several places: what they save together.
        let saved = |key: &str| -> f64 {
            sites.iter().filter_map(|s| s["what_if_span"][key].as_f64()).map(|s| now - s).sum()
        };
        let predicted = now - saved("2");
        let work: f64 = before["work"].as_f64().unwrap_or(0.0)
            - sites.iter().filter_map(|s| s["on_work"]["local"]["work"].as_f64()).sum::<f64>() / 2.0;
        let measured = after["span"].as_f64().context("a span")?;
        let error = 100.0 * (predicted / measured - 1.0);
        let parallelism = after["parallelism"].as_f64().unwrap_or(f64::NAN);
        let error_parallelism = 100.0 * (work / predicted / parallelism - 1.0);
        worst = worst.max(error.abs());
        println!(
            "{name:<12}{function:<12}{:>12.3}{:>12.3}{:>12.3}{error:>10.1}{error_parallelism:>10.1}",
            now / 1e6,
            predicted / 1e6,
            measured / 1e6
        );
    }
    println!("{:<60}{worst:>10.1}   (bar: 5)", "worst");
    Ok(())
}

/// Rayon programs on one and two processors, against the bounds.
pub fn speedup(bench: &Bench, args: &Args) -> Result<()> {
    println!("\n{:<16}{:>10}{:>10}{:>10}", "two processors", "at least", "measured", "at most");
    for program in PROGRAMS.iter().filter(|p| args.wants(p.name)) {
        let Source::Rayon(binary) = program.source else { continue };
        let mode = ["span", "--measure", "1,2"];
        let (_, document) = bench.profile(&mode, &bench.rayon(binary, true), program.arguments)?;
        let of = |list: &str, key: &str| {
            let all = document[list].as_array()?;
            all.iter().find(|b| b["processors"] == 2)?[key].as_f64()
        };
        let [low, high] = ["lower", "upper"].map(|k| of("speedup", k).unwrap_or(f64::NAN));
        let measured = of("measured", "speedup").unwrap_or(f64::NAN);
        println!("{:<16}{low:>10.2}{measured:>10.2}{high:>10.2}", program.name);
    }
    Ok(())
}
