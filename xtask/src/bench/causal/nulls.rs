//! Targets whose work can be cut without any gain: is that what is said?
//!
//! In each of these programs somebody else sets the pace, with a margin, so the truth is known by construction: 0. (Where
//! threads have cores of their own. On the two halves of one core the one that is cut really makes the other faster.)

use std::path::Path;

use anyhow::Result;

use super::case::{Case, case, compile, predict, time_per_unit};
use super::{Args, Scoreboard};

const CASES: &[Case] = &[
    case("figure 1, b", "figure_one.c", &["U", "6000000", "X"], 3_000_000, "b"),
    case("figure 1 long, b", "figure_one_long.c", &["U", "4000000", "X"], 2_000_000, "b"),
    case("pipeline, producer", "pipeline.c", &["U", "X", "400000"], 200_000, "producer"),
    case("barrier, other", "barrier.c", &["U", "6000000", "X", "2"], 3_000_000, "other"),
    case("Rust channel, producer", "locks.rs", &["U", "2000000", "X", "channel"], 1_000_000, "producer"),
];

/// Each case so many times.
pub fn run(args: &Args, out: &Path, board: &mut Scoreboard) -> Result<()> {
    let (mut asked, mut called) = (0u32, 0u32);
    for case in CASES.iter().filter(|case| args.wants(case.name)) {
        let program = compile(out, case.source, &[])?;
        let base = time_per_unit(args, case, &program, 200, case.cost)?.per_unit_ns;
        let units = ((args.seconds * 1e9 / base) as u64).max(400);
        for _ in 0..args.nulls {
            let result = predict(args, case, &program, units, out)?;
            let verdict = result.as_ref().map_or("none".into(), |r| r["verdict"].to_string());
            let slope = result.map_or_else(String::new, |r| format!("{} {}", r["slope"], r["slope_ci"]));
            println!("{:<26} {verdict:<14} {slope}", case.name);
            asked += 1;
            called += u32::from(verdict == "\"no effect\"");
        }
    }
    if asked > 0 {
        let percent = 100.0 * f64::from(called) / f64::from(asked);
        board.at_least(
            &format!("targets without effect called so ({called} of {asked})"),
            percent,
            95.0,
            "%",
        );
    }
    Ok(())
}
