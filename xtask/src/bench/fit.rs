//! `cargo xtask bench fit`: how often the growth fitter is right, how often it is sure and wrong, and how fast
//! it is; beside it, on the same data, the fitters that one can install from PyPI.

use std::time::Instant;

use anyhow::Result;

mod peers;
mod score;
mod sets;

use score::{Answer, Score, share};
use sets::{Set, Truth};

/// Seed of the published figures. The fitter's constants were chosen on other seeds.
const SEED: u64 = 20_260_000;
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
    /// First seed of the generated sets.
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// List the sets with a wrong answer.
    #[arg(long)]
    wrong: bool,
}

pub fn run(args: Args) -> Result<()> {
    let seeds = if args.quick { 5 } else { 20 };
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
    for part in [&base, &standard, &varied] {
        let peers = if args.quick || args.no_peers { Vec::new() } else { peers::answers(&part.sets)? };
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

    fn print(&self, peers: &[(String, Vec<Answer>)]) {
        println!("\n{} ({} sets)", self.title, self.sets.len());
        print!("{:<14} {:>9} {:>10} {:>10} {:>12}", "truth", "farsight", "confident", "conf.wrong", "false splits");
        peers.iter().for_each(|(name, _)| print!(" {name:>15}"));
        println!();
        for (family, name) in self.families.iter().enumerate() {
            self.print_row(name, peers, |set| set.family == family);
        }
        for points in POINTS.into_iter().filter(|&n| self.sets.iter().filter(|s| s.points == n).count() > 12) {
            self.print_row(&format!("{points} points"), peers, |set| set.points == points);
        }
        self.print_row("all", peers, |_| true);
        let all = self.score(|_| true);
        println!(
            "right {:.1} %, confident but wrong {:.2} %, false splits {:.2} %, right when confidence > 0.9: {:.1} % of {}",
            100.0 * all.accuracy(),
            100.0 * all.confident_wrong_share(),
            100.0 * all.false_split_share(),
            100.0 * share(all.sure_right, all.sure),
            all.sure,
        );
    }

    fn print_row(&self, name: &str, peers: &[(String, Vec<Answer>)], matching: impl Fn(&Set) -> bool) {
        let score = self.score(&matching);
        if score.sets == 0 {
            return;
        }
        let right = format!("{}/{}", score.right, score.sets);
        print!("{name:<14} {right:>9} {:>10} {:>10} {:>12}", score.confident, score.confident_wrong, score.false_splits);
        for (_, answers) in peers {
            let score = Score::of(self.sets.iter().zip(answers).filter(|(set, _)| matching(set)));
            print!(" {:>15}", score.right);
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
        _ => println!("\n{:.0} curves per second of wall time", f64::from(curves) / start.elapsed().as_secs_f64()),
    }
}

/// Time that this thread has been on a processor.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
