//! Logical call paths of the rayon toy, whose right ones are known: main, one of four functions, leaf.

use std::collections::HashMap;

use anyhow::Result;
use serde_json::Value;

use super::programs::{is_called, number};
use super::{Args, Programs, Scoreboard};

const FUNCTIONS: [&str; 5] = ["alpha", "beta", "gamma", "serial", "leaf"];
/// Pairs of runs; the median distance counts, since two runs of the same program differ, too.
const PAIRS: usize = 3;
/// Rounds of the toy in a run: some 3,000 samples each.
const REPETITIONS: &str = "12";

/// What one run says.
struct Paths {
    /// Samples in `leaf`, and those of them below main by exactly one of the four.
    leaf: f64,
    rooted: f64,
    /// Paths of functions that have samples.
    distinct: usize,
    depth_median: usize,
    /// Share of the CPU time that each function has, with its callees, in percent.
    shares: HashMap<&'static str, f64>,
    stitched: f64,
    orphans: f64,
}

pub fn run(programs: &Programs, _: &Args, board: &mut Scoreboard) -> Result<()> {
    let mut distances = Vec::new();
    let (mut leaf, mut rooted, mut stitched, mut orphans) = (0.0, 0.0, 0.0, 0.0);
    let (mut distinct, mut depth) = (0, 0);
    for pair in 0..PAIRS {
        let run = |threads: &str| -> Result<Paths> {
            let (document, _) =
                programs.profile(&["--rate", "1000"], "rayon_toy", &[threads, REPETITIONS])?;
            Ok(paths(&document))
        };
        let (one, two) = (run("1")?, run(if pair % 2 == 0 { "2" } else { "4" })?);
        let distance: f64 = FUNCTIONS.iter().map(|f| (one.shares[f] - two.shares[f]).abs()).sum();
        println!(
            "  run {pair}: {} of {} leaf samples rooted, {} paths of median depth {}, distance {distance:.2} points",
            two.rooted, two.leaf, two.distinct, two.depth_median
        );
        distances.push(distance);
        (leaf, rooted) = (leaf + two.leaf, rooted + two.rooted);
        (stitched, orphans) = (stitched + two.stitched, orphans + two.orphans);
        (distinct, depth) = (distinct.max(two.distinct), depth.max(two.depth_median));
    }
    distances.sort_by(f64::total_cmp);
    board.at_least("rayon samples rooted at main", 100.0 * rooted / leaf, 99.0, "%");
    board.at_least(
        "samples of stolen jobs with a creator",
        100.0 * stitched / (stitched + orphans),
        99.0,
        "%",
    );
    board.at_most("distance to one thread, median of 3", distances[PAIRS / 2], 3.0, "points");
    board.at_most("distinct logical paths", distinct as f64, 9.0, "");
    board.at_most("their median depth", depth as f64, 9.0, "");
    Ok(())
}

fn paths(document: &Value) -> Paths {
    let contexts = document["contexts"].as_array().map_or(&[][..], |c| c);
    let mut found = Paths {
        leaf: 0.0,
        rooted: 0.0,
        distinct: 0,
        depth_median: 0,
        shares: FUNCTIONS.iter().map(|f| (*f, 0.0)).collect(),
        stitched: number(&document["stitched"]),
        orphans: number(&document["orphans"]),
    };
    let mut by_path: HashMap<Vec<&str>, f64> = HashMap::new();
    let (mut all, mut all_cpu) = (0.0, 0.0);
    for context in contexts {
        let samples = number(&context["samples"]);
        if samples == 0.0 {
            continue;
        }
        // A loop is a place in a function; paths are counted by functions.
        let mut names = Vec::new();
        let mut at = Some(context);
        while let Some(c) = at {
            let name = c["function"].as_str().unwrap_or_default();
            if c["kind"] != "loop" && names.last() != Some(&name) {
                names.push(name);
            }
            at = c["parent"].as_u64().and_then(|p| contexts.get(p as usize));
        }
        all += samples;
        let cpu = number(&context["work_ns"]) + number(&context["overhead_ns"]);
        all_cpu += cpu;
        for function in FUNCTIONS {
            if names.iter().any(|n| is_called(n, function)) {
                *found.shares.entry(function).or_default() += cpu;
            }
        }
        if is_called(names[0], "leaf") {
            found.leaf += samples;
            let by = FUNCTIONS[..4].iter().filter(|f| names.iter().any(|n| is_called(n, f))).count();
            if by == 1 && names.last().is_some_and(|root| is_called(root, "main")) {
                found.rooted += samples;
            }
        }
        *by_path.entry(names).or_default() += samples;
    }
    found.shares.values_mut().for_each(|share| *share *= 100.0 / all_cpu);
    // A path met once or twice in thousands of samples is the start of a thread or a page fault.
    found.distinct = by_path.values().filter(|n| **n >= 0.001 * all).count();
    let mut depths: Vec<(usize, f64)> = by_path.iter().map(|(p, n)| (p.len(), *n)).collect();
    depths.sort_by_key(|d| d.0);
    let mut seen = 0.0;
    for (depth, samples) in depths {
        seen += samples;
        if seen * 2.0 >= all {
            found.depth_median = depth;
            break;
        }
    }
    found
}
