//! What to try next.
//!
//! Experiments come in rounds. A round is about one target: all levels of speedup in random order, with baselines
//! among them, so that every experiment has a baseline close by and slow changes of the program (phases, a warming
//! cache, a busy machine) cancel out. The target of a round is drawn at random, at any time of the run, whether or
//! not it is running just now: so results are averages over the run and need no correction for phases. Weights
//! make targets likely that may matter (many samples; promising so far) and about which little is known.

use std::collections::{HashMap, VecDeque};

use crate::random::Random;

/// Speedups that are tried, in thousandths.
pub const LEVELS_PERMILLE: [u32; 4] = [250, 500, 750, 1000];
/// Targets with a smaller share of the samples in scope are not tried.
const SHARE_MIN: f64 = 0.01;
/// Samples that a target must have before it is tried.
const SAMPLES_MIN: u64 = 4;
/// Most targets that are tried.
const TARGETS_MAX: usize = 24;

/// A choice of the user's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fixed {
    /// Only targets whose name ends in this.
    pub target: Option<String>,
    /// Only this speedup, in thousandths, besides baselines.
    pub speedup_permille: Option<u32>,
}

/// An experiment to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Number of the target, from 1.
    pub target: u32,
    /// In thousandths, 0 for a baseline.
    pub speedup_permille: u32,
}

/// The design of a session.
pub struct Design {
    random: Random,
    fixed: Fixed,
    queue: VecDeque<Choice>,
    found: HashMap<u32, Found>,
    baseline: Mean,
}

/// A target, as far as choosing needs to know it.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// Its number.
    pub target: u32,
    /// Its name.
    pub name: &'a str,
    /// Its samples so far.
    pub samples: u64,
}

#[derive(Default)]
struct Found {
    rounds: u32,
    slope: Mean,
}

/// A running mean and its error.
#[derive(Default, Clone, Copy)]
struct Mean {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Mean {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn mean(&self) -> f64 {
        if self.n > 0.0 { self.sum / self.n } else { 0.0 }
    }

    /// Standard error of the mean; large while nothing is known.
    fn error(&self) -> f64 {
        if self.n < 2.0 {
            return 1.0;
        }
        let variance = (self.squares / self.n - self.mean() * self.mean()).max(0.0);
        (variance / (self.n - 1.0)).sqrt()
    }
}

impl Design {
    /// With nothing tried yet.
    pub fn new(seed: u64, fixed: Fixed) -> Self {
        Design {
            random: Random::new(seed),
            fixed,
            queue: VecDeque::new(),
            found: HashMap::new(),
            baseline: Mean::default(),
        }
    }

    /// The next experiment; nothing while there is no target to try.
    pub fn next(&mut self, candidates: &[Candidate<'_>]) -> Option<Choice> {
        if self.queue.is_empty() {
            let target = self.draw(candidates)?;
            self.plan_round(target);
        }
        self.queue.pop_front()
    }

    /// Learns what an experiment gave: its progress rate at the point that counts.
    pub fn learn(&mut self, choice: Choice, rate: f64) {
        if !rate.is_finite() || rate <= 0.0 {
            return;
        }
        if choice.speedup_permille == 0 {
            self.baseline.add(rate);
        } else if self.baseline.n > 0.0 {
            let gain = 1.0 - self.baseline.mean() / rate;
            let slope = (gain * 1000.0 / f64::from(choice.speedup_permille)).clamp(-3.0, 3.0);
            self.found.entry(choice.target).or_default().slope.add(slope);
        }
    }

    fn plan_round(&mut self, target: u32) {
        self.found.entry(target).or_default().rounds += 1;
        let mut levels: Vec<u32> = match self.fixed.speedup_permille {
            Some(0) => vec![],
            Some(level) => vec![level; 2],
            None => LEVELS_PERMILLE.to_vec(),
        };
        self.random.shuffle(&mut levels);
        let choice = |speedup_permille| Choice { target, speedup_permille };
        self.queue.push_back(choice(0));
        for (i, level) in levels.into_iter().enumerate() {
            if i == 2 {
                self.queue.push_back(choice(0));
            }
            self.queue.push_back(choice(level));
        }
    }

    fn draw(&mut self, candidates: &[Candidate<'_>]) -> Option<u32> {
        let all: u64 = candidates.iter().map(|c| c.samples).sum();
        let mut fit: Vec<&Candidate<'_>> = match &self.fixed.target {
            Some(name) => candidates.iter().filter(|c| is_named(c.name, name)).collect(),
            None => {
                let enough = |c: &&Candidate<'_>| {
                    c.samples >= SAMPLES_MIN && c.samples as f64 >= SHARE_MIN * all as f64
                };
                candidates.iter().filter(enough).collect()
            }
        };
        fit.sort_by_key(|c| std::cmp::Reverse(c.samples));
        fit.truncate(TARGETS_MAX);
        let weights: Vec<f64> = fit.iter().map(|c| self.weight(c, all)).collect();
        let total: f64 = weights.iter().sum();
        let mut left = self.random.unit() * total;
        for (candidate, weight) in fit.iter().zip(weights) {
            left -= weight;
            if left < 0.0 {
                return Some(candidate.target);
            }
        }
        fit.last().map(|c| c.target)
    }

    fn weight(&self, candidate: &Candidate<'_>, all: u64) -> f64 {
        let share = candidate.samples as f64 / all.max(1) as f64;
        match self.found.get(&candidate.target) {
            Some(found) if found.rounds >= 2 => {
                let (slope, error) = (found.slope.mean(), found.slope.error());
                // What it may be worth at best, and how much there is to learn about it; never nothing.
                (error * (0.2 + (slope + 2.0 * error).max(0.0))).clamp(1e-3, 10.0)
            }
            // Everything that matters is tried twice, the hottest first.
            _ => 10.0 * share.sqrt() + 0.1,
        }
    }
}

fn is_named(name: &str, wanted: &str) -> bool {
    name == wanted || name.ends_with(&format!("/{wanted}")) || name.ends_with(&format!("::{wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates() -> Vec<Candidate<'static>> {
        let of = |(i, &(name, samples)): (usize, &(&'static str, u64))| Candidate {
            target: i as u32 + 1,
            name,
            samples,
        };
        [("a.c:1", 500), ("src/a.c:2", 300), ("a.c:3", 190), ("a.c:4", 8), ("a.c:5", 2)]
            .iter()
            .enumerate()
            .map(of)
            .collect()
    }

    #[test]
    fn rounds_hold_every_level_and_baselines() {
        let mut design = Design::new(3, Fixed::default());
        for _ in 0..50 {
            let round: Vec<Choice> = (0..6).map(|_| design.next(&candidates()).unwrap()).collect();
            assert!(round.iter().all(|c| c.target == round[0].target), "one target a round");
            let mut levels: Vec<u32> = round.iter().map(|c| c.speedup_permille).collect();
            assert_eq!(levels[0], 0, "a baseline comes first");
            levels.sort_unstable();
            assert_eq!(levels, [0, 0, 250, 500, 750, 1000]);
            assert!(round[0].target <= 3, "small targets are not tried");
        }
    }

    #[test]
    fn the_uncertain_and_promising_come_more_often() {
        let mut design = Design::new(5, Fixed::default());
        let mut counts = [0u32; 6];
        let mut noise = Random::new(1);
        for _ in 0..3000 {
            let choice = design.next(&candidates()).unwrap();
            counts[choice.target as usize] += 1;
            let speedup = f64::from(choice.speedup_permille) / 1000.0;
            // Target 2 is worth its speedup, the others nothing.
            let gain = if choice.target == 2 { 0.8 * speedup } else { 0.0 };
            design.learn(choice, (100.0 + 10.0 * noise.unit()) / (1.0 - gain));
        }
        assert!(counts[2] > counts[1] && counts[2] > counts[3], "{counts:?}");
        assert!(counts[1] > 100 && counts[3] > 100, "nothing is forgotten: {counts:?}");
    }

    #[test]
    fn the_user_can_fix_both() {
        let fixed = Fixed { target: Some("a.c:2".into()), speedup_permille: Some(400) };
        let mut design = Design::new(3, fixed);
        for _ in 0..20 {
            let choice = design.next(&candidates()).unwrap();
            assert_eq!(choice.target, 2);
            assert!(matches!(choice.speedup_permille, 0 | 400));
        }
        let mut nothing = Design::new(3, Fixed { target: Some("b.c:2".into()), ..Fixed::default() });
        assert_eq!(nothing.next(&candidates()), None);
    }
}
