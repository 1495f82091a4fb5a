//! `cargo xtask bench fit`: how often the growth fitter is right, how often it is sure and wrong, and how fast
//! it is; beside it, on the same data, the fitters that one can install from PyPI.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

mod peers;
mod score;
mod sets;

use peers::{Peer, Speed};
use score::{Answer, Score, share};
use sets::{Set, Truth};

/// Seed of the published figures. The fitter's constants were chosen on other seeds.
const SEED: u64 = 20_260_000;
/// Sets for each family and number of points, and how many of them the quick form runs on.
const SEEDS: u64 = 20;
const QUICK_SEEDS: u64 = 5;
/// Points per set.
const POINTS: [usize; 3] = [8, 20, 60];

#[derive(clap::Args)]
pub struct Args {
    /// Fewer sets, no peers, no timing.
    #[arg(long)]
    quick: bool,
    /// Only our own fitter.
    #[arg(long)]
    no_peers: bool,
    /// Also run the slow peers on the varied sets.
    #[arg(long)]
    all_peers: bool,
    /// Sets for each family and number of points.
    #[arg(long, default_value_t = SEEDS)]
    seeds: u64,
    /// First seed of the generated sets.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// List the sets with a wrong answer.
    #[arg(long)]
    wrong: bool,
}

pub fn run(args: Args) -> Result<()> {
    if !args.quick && cfg!(debug_assertions) {
        return rerun_optimized();
    }
    let seeds = if args.quick { QUICK_SEEDS } else { args.seeds };
    let base = Part::new("Base: one set per family", &sets::STANDARD, sets::base(args.seed));
    let standard = Part::new(
        "Standard: fixed coefficients, 2 % noise",
        &sets::STANDARD,
        generate(sets::standard, sets::STANDARD.len(), args.seed, seeds),
    );
    let varied = Part::new(
        "Varied: random coefficients, constants and ranges; 1 % and 5 % noise",
        &sets::VARIED,
        generate(sets::varied, sets::VARIED.len(), args.seed, seeds),
    );
    // Extra-P takes half a second for a curve, its segmented modeler several.
    let varied_speed = if args.all_peers { Speed::Slow } else { Speed::Fast };
    for (part, speed) in [(&base, Speed::Slowest), (&standard, Speed::Slow), (&varied, varied_speed)] {
        let peers = if args.quick || args.no_peers { Vec::new() } else { peers::ask(&part.sets, speed)? };
        part.print(&peers);
        if args.wrong {
            part.print_wrong();
        }
    }
    if !args.quick {
        print_speed(&standard.sets);
    }
    Ok(())
}

/// The same command again as a release build: the speed of any other means nothing.
fn rerun_optimized() -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["run", "--quiet", "--release", "--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."))
        .status()?;
    ensure!(status.success(), "the release build failed: {status}");
    Ok(())
}

/// `seeds` sets for each family and number of points.
fn generate(generator: fn(usize, usize, u64) -> Set, families: usize, seed: u64, seeds: u64) -> Vec<Set> {
    let mut sets = Vec::new();
    for family in 0..families {
        for points in POINTS {
            sets.extend((1..=seeds).map(|i| generator(family, points, seed + i)));
        }
    }
    sets
}

/// One generator's sets with our answers.
struct Part {
    title: &'static str,
    families: &'static [&'static str],
    sets: Vec<Set>,
    answers: Vec<Answer>,
}

impl Part {
    fn new(title: &'static str, families: &'static [&'static str], sets: Vec<Set>) -> Part {
        let answers = sets.iter().map(|set| Answer::from(&fit::fit(&set.samples))).collect();
        Part { title, families, sets, answers }
    }

    fn score(&self, matching: impl Fn(&Set) -> bool) -> Score {
        Score::of(self.sets.iter().zip(&self.answers).filter(|(set, _)| matching(set)))
    }

    fn print(&self, peers: &[Peer]) {
        println!("\n{} ({} sets)", self.title, self.sets.len());
        print!(
            "{:<14} {:>9} {:>10} {:>10} {:>12}",
            "truth", "farsight", "confident", "conf.wrong", "false splits"
        );
        peers.iter().for_each(|peer| print!(" {:>16}", peer.name));
        println!();
        for (family, name) in self.families.iter().enumerate() {
            self.print_row(name, peers, |set| set.family == family);
        }
        for points in POINTS.into_iter().filter(|&n| self.sets.iter().filter(|s| s.points == n).count() > 12)
        {
            self.print_row(&format!("{points} points"), peers, |set| set.points == points);
        }
        self.print_row("all", peers, |_| true);
        let all = self.score(|_| true);
        let percent = |share: f64| 100.0 * share;
        println!(
            "right {:.1} %, confident but wrong {:.2} % (wrong class {:.2} %), false splits {:.2} %",
            percent(all.accuracy()),
            percent(all.confident_wrong_share()),
            percent(share(all.confident_wrong_class, all.sets)),
            percent(all.false_split_share()),
        );
        println!(
            "class right where confidence > 0.9: {:.1} % of {}; 0.5 to 0.9: {:.1} % of {}; below: {:.1} % of {}",
            percent(share(all.reliability[2].0, all.reliability[2].1)),
            all.reliability[2].1,
            percent(share(all.reliability[1].0, all.reliability[1].1)),
            all.reliability[1].1,
            percent(share(all.reliability[0].0, all.reliability[0].1)),
            all.reliability[0].1,
        );
        println!(
            "95 % interval holds the exponent of a plain power: {:.1} % of {}",
            percent(share(all.powers_held, all.powers)),
            all.powers,
        );
        for peer in peers {
            let score = Score::of(self.sets.iter().zip(&peer.answers));
            println!(
                "{}: right {:.1} %, false splits {:.1} %, {:.1} curves per second of one core",
                peer.name,
                percent(score.accuracy()),
                percent(score.false_split_share()),
                peer.curves_per_second,
            );
        }
    }

    fn print_row(&self, name: &str, peers: &[Peer], matching: impl Fn(&Set) -> bool) {
        let score = self.score(&matching);
        if score.sets == 0 {
            return;
        }
        let right = format!("{}/{}", score.right, score.sets);
        print!(
            "{name:<14} {right:>9} {:>10} {:>10} {:>12}",
            score.confident, score.confident_wrong, score.false_splits
        );
        for peer in peers {
            let score = Score::of(self.sets.iter().zip(&peer.answers).filter(|(set, _)| matching(set)));
            print!(" {:>16}", score.right);
        }
        println!();
    }

    fn print_wrong(&self) {
        for (set, answer) in self.sets.iter().zip(&self.answers) {
            if !score::right(answer, set.truth) {
                let fit = fit::fit(&set.samples);
                let truth = match set.truth {
                    Truth::One(class) => class.to_string(),
                    Truth::Broken(class) => format!("... then {class}"),
                };
                println!(
                    "  {truth} ({} points): {:?} {:.2} {} | {}",
                    set.points, fit.verdict, fit.confidence, fit.formula, fit.reason
                );
            }
        }
    }
}

/// Curves per second of processor time, so that a busy machine does not slow the fitter down.
fn print_speed(sets: &[Set]) {
    let (start, start_cpu) = (Instant::now(), cpu_seconds());
    let mut curves = 0u32;
    while start.elapsed().as_secs_f64() < 3.0 {
        for set in sets {
            std::hint::black_box(fit::fit(&set.samples));
            curves += 1;
        }
    }
    match (start_cpu, cpu_seconds()) {
        (Some(start), Some(end)) if end > start => {
            println!("\n{:.0} curves per second of one core", f64::from(curves) / (end - start));
        }
        _ => println!(
            "\n{:.0} curves per second of wall time",
            f64::from(curves) / start.elapsed().as_secs_f64()
        ),
    }
}

/// Time that this thread has been on a processor.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}

#[cfg(test)]
mod tests {
    use fit::Class;

    use super::*;

    /// Bars on a part of the sets that `cargo xtask bench fit` runs on; they leave room for a few sets only.
    #[test]
    fn the_fitter_keeps_its_bars() {
        let base = Part::new("", &sets::STANDARD, sets::base(SEED)).score(|_| true);
        assert_eq!(base.right, 12, "base sets");
        let standard = generate(sets::standard, sets::STANDARD.len(), SEED, QUICK_SEEDS);
        let standard = Part::new("", &sets::STANDARD, standard).score(|_| true);
        assert!(standard.accuracy() >= 0.97, "standard: {standard:?}");
        assert!(standard.confident_wrong_share() <= 0.01, "standard: {standard:?}");
        assert!(standard.false_split_share() <= 0.01, "standard: {standard:?}");
        assert!(share(standard.confident, standard.sets) >= 0.8, "standard: {standard:?}");
        let varied = generate(sets::varied, sets::VARIED.len(), SEED, QUICK_SEEDS);
        let varied = Part::new("", &sets::VARIED, varied).score(|_| true);
        assert!(varied.accuracy() >= 0.90, "varied: {varied:?}");
        assert!(varied.confident_wrong_share() <= 0.02, "varied: {varied:?}");
        assert!(varied.false_split_share() <= 0.02, "varied: {varied:?}");
    }

    #[test]
    fn answers_are_graded_by_class_and_break() {
        let answer =
            |class, broken| Answer { class, broken, confident: false, confidence: 0.0, exponent_ci: None };
        let n2 = Some(Class::Quadratic);
        assert!(score::right(&answer(n2, false), Truth::One(Class::Quadratic)));
        assert!(!score::right(&answer(n2, true), Truth::One(Class::Quadratic)));
        assert!(score::right(&answer(n2, true), Truth::Broken(Class::Quadratic)));
        assert!(!score::right(&answer(n2, false), Truth::Broken(Class::Quadratic)));
        assert!(!score::right(&answer(None, false), Truth::One(Class::Linear)));
        assert!(score::right(&answer(Some(Class::Power(1.72)), false), Truth::One(Class::Power(1.75))));
        assert!(!score::right(&answer(Some(Class::Power(1.5)), false), Truth::One(Class::N15)));
    }
}
