//! Speedup curves: from causal experiments to what making a target faster would gain, with intervals.
//!
//! A trial observed `units` of progress in `time` (for latency: requests, and the time that they spent in flight) while
//! a target was made faster by `speedup`; trials of speedup 0 are baselines for all targets. Per target and level
//! ```text
//! gain = 1 - sum(time) / sum(units x b)          b: time per unit at baseline, there and then
//! ```
//! `b` comes from the baselines nearest in time. How many: as many as predict other baselines best (leave one out),
//! so that a steady program uses all of them and a changing one the neighbours.
//!
//! **Realized speedup.** Where a target is made faster by delays in proportion to samples, the number of samples is a
//! matter of chance. But the target's own work per unit of progress is the same in all trials, whatever is delayed:
//! so a level that got more samples per unit than the target's trials on average was made faster than asked for, in
//! that proportion, and its gain is scaled back. Trials whose delays do not hang on single samples say so by
//! `selected` 0.
//!
//! **Stalls.** A trial that took far longer per unit than others of its kind (the same target and level, or baselines),
//! while its neighbours in time did not, met something that is not the program's: a machine that stood still for a
//! moment. It counts as if it had been at the edge of what is usual. Slow phases last and are left alone.
//!
//! **A machine of changing speed.** Other programs, a neighbour on the same core, a hypervisor make the same work take
//! more CPU time at one moment than at another. A unit of progress takes the same work in every trial, so its CPU time
//! tells how slow the machine was. How much of a trial's time follows its CPU time is learnt from the baselines alone
//! (a regression of logarithms); that part is then taken out of all trials. A target whose trials take quite another
//! amount of CPU time per unit is left as it is: there speed is not the cause (threads that spin while they wait).
//!
//! **Intervals** come from a bootstrap over trials, baselines and levels resampled separately, widened by Student's t
//! for the number of trials. Deterministic: the generator has a fixed seed.

use crate::student;

/// One experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Which target it was about.
    pub target: usize,
    /// By how much it was made faster, from 0 to 1; 0 is a baseline.
    pub speedup: f64,
    /// Effective time.
    pub time: f64,
    /// Progress made; more than 0.
    pub units: f64,
    /// Samples on the target.
    pub selected: f64,
    /// CPU time that the program used; 0 when not known.
    pub cpu: f64,
}

/// Gain at one level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    /// By how much the target is faster.
    pub speedup: f64,
    /// By how much the program is: 0.25 means that it takes a quarter less time per unit.
    pub gain: f64,
    /// 95 % interval; without bounds when there are too few trials.
    pub ci: (f64, f64),
    /// Trials.
    pub trials: usize,
}

/// Everything about one target.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// Ascending in speedup; the baseline is not among them.
    pub levels: Vec<Level>,
    /// Gain per speedup: the line through the origin that fits best.
    pub slope: f64,
    /// Its standard error.
    pub slope_error: f64,
    /// Its 95 % interval.
    pub slope_ci: (f64, f64),
    /// Trials of all levels.
    pub trials: usize,
}

/// Resamplings.
const REPLICATES: usize = 400;
/// Numbers of baselines that may be averaged, besides all of them.
const WINDOWS: [usize; 4] = [2, 4, 8, 16];
/// Samples below which a level's luck cannot be told.
const SELECTED_MIN: f64 = 60.0;
/// A correction for luck stays within this factor.
const LUCK_MAX: f64 = 1.3;
/// Trials without which a level has no interval.
const TRIALS_MIN: usize = 3;
/// Trials beyond one per level without which a slope has none: single trials show no scatter.
const FREEDOM_MIN: usize = 4;

/// The curves of all targets that have trials, by target. `trials` are in order of time.
pub fn curves(trials: &[Trial], targets: usize) -> Vec<Option<Curve>> {
    let mut usable: Vec<Trial> = trials.iter().copied().filter(|t| t.units > 0.0 && t.time > 0.0).collect();
    even_out(&mut usable, targets);
    tame(&mut usable);
    let baselines: Vec<usize> = (0..usable.len()).filter(|&i| usable[i].speedup <= 0.0).collect();
    let mut by_target: Vec<Vec<usize>> = vec![Vec::new(); targets];
    for (i, t) in usable.iter().enumerate() {
        if t.speedup > 0.0 && t.target < targets {
            by_target[t.target].push(i);
        }
    }
    if baselines.len() < 2 {
        return vec![None; targets];
    }
    let windows = Windows::new(&usable, &baselines);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let ones = vec![1.0; baselines.len()];
    let plain = windows.prefix(&ones);
    // One resampling of baselines serves all targets: differences between targets keep their meaning.
    let draws: Vec<Prefix> =
        (0..REPLICATES).map(|_| windows.prefix(&random.counts(baselines.len()))).collect();
    let mut out = Vec::with_capacity(targets);
    for (target, members) in by_target.iter().enumerate() {
        out.push((!members.is_empty()).then(|| {
            let work = work_per_unit(&usable, target);
            curve(&usable, members, &windows, &plain, &draws, work, &mut random)
        }));
    }
    out
}

/// Takes the machine's changing speed out of the times (see the module).
fn even_out(trials: &mut [Trial], targets: usize) {
    /// Baselines without which nothing is learnt, and the correlation that they must show.
    const BASELINES_MIN: usize = 8;
    const CORRELATION_MIN: f64 = 0.5;
    /// A difference of CPU time per unit beyond which speed is not the cause.
    const SHIFT_MAX: f64 = 0.25;
    let cpu = |t: &Trial| (t.cpu / t.units).ln();
    if trials.iter().any(|t| t.cpu <= 0.0) {
        return;
    }
    let baselines: Vec<(f64, f64)> =
        trials.iter().filter(|t| t.speedup <= 0.0).map(|t| (cpu(t), (t.time / t.units).ln())).collect();
    let n = baselines.len() as f64;
    if baselines.len() < BASELINES_MIN {
        return;
    }
    let mean = |f: fn(&(f64, f64)) -> f64| baselines.iter().map(f).sum::<f64>() / n;
    let (x_mean, y_mean) = (mean(|p| p.0), mean(|p| p.1));
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for (x, y) in &baselines {
        xx += (x - x_mean).powi(2);
        xy += (x - x_mean) * (y - y_mean);
        yy += (y - y_mean).powi(2);
    }
    if xx <= 0.0 || yy <= 0.0 || xy / (xx * yy).sqrt() < CORRELATION_MIN {
        return;
    }
    let slope = (xy / xx).clamp(0.0, 1.0);
    let mut shifts = vec![(0.0, 0.0); targets];
    for t in trials.iter().filter(|t| t.speedup > 0.0 && t.target < targets) {
        shifts[t.target].0 += cpu(t) - x_mean;
        shifts[t.target].1 += 1.0;
    }
    for t in trials {
        let shift = shifts.get(t.target).map_or(0.0, |s| s.0 / f64::max(s.1, 1.0));
        if t.speedup <= 0.0 || shift.abs() <= SHIFT_MAX {
            t.time *= (-slope * (cpu(t) - x_mean)).exp();
        }
    }
}

/// Takes stalls out of the times (see the module).
fn tame(trials: &mut [Trial]) {
    /// Neighbours on each side that a trial is compared with.
    const NEIGHBOURS: usize = 3;
    /// Deviations that are usual, and a difference (of logarithms) that always is.
    const USUAL: f64 = 4.0;
    const USUAL_MIN: f64 = 0.2;
    let mut kinds: Vec<(Option<usize>, f64, Vec<usize>)> = Vec::new();
    for (i, t) in trials.iter().enumerate() {
        let target = (t.speedup > 0.0).then_some(t.target);
        match kinds.iter_mut().find(|(k, s, _)| *k == target && (*s - t.speedup).abs() < 1e-9) {
            Some((_, _, members)) => members.push(i),
            None => kinds.push((target, t.speedup, vec![i])),
        }
    }
    let mut off = vec![0.0; trials.len()];
    for (_, _, members) in &kinds {
        let period = |i: &usize| (trials[*i].time / trials[*i].units).ln();
        let middle = median(members.iter().map(period).collect());
        for i in members {
            off[*i] = period(i) - middle;
        }
    }
    let alone: Vec<f64> = (0..trials.len())
        .map(|i| {
            let around = i.saturating_sub(NEIGHBOURS)..(i + NEIGHBOURS + 1).min(trials.len());
            off[i] - median(around.filter(|&k| k != i).map(|k| off[k]).collect())
        })
        .collect();
    // The median deviation of a normal distribution is 0.6745 of its standard deviation.
    let spread = median(alone.iter().map(|x| x.abs()).collect()) / 0.6745;
    let most = (USUAL * spread).max(USUAL_MIN);
    for (t, alone) in trials.iter_mut().zip(alone) {
        if alone > most {
            t.time *= (most - alone).exp();
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    if n == 0 { 0.0 } else { (values[(n - 1) / 2] + values[n / 2]) / 2.0 }
}

/// Samples per unit of progress over all trials about a target, baselines included.
fn work_per_unit(trials: &[Trial], target: usize) -> f64 {
    let own = trials.iter().filter(|t| t.target == target);
    let (selected, units) = own.fold((0.0, 0.0), |(s, u), t| (s + t.selected, u + t.units));
    if units > 0.0 { selected / units } else { 0.0 }
}

fn curve(
    trials: &[Trial],
    members: &[usize],
    windows: &Windows,
    plain: &Prefix,
    draws: &[Prefix],
    work: f64,
    random: &mut Random,
) -> Curve {
    let mut levels: Vec<(f64, Vec<usize>)> = Vec::new();
    for &i in members {
        match levels.iter_mut().find(|(s, _)| (*s - trials[i].speedup).abs() < 1e-9) {
            Some((_, list)) => list.push(i),
            None => levels.push((trials[i].speedup, vec![i])),
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut out = Vec::with_capacity(levels.len());
    let mut replicates: Vec<Vec<f64>> = Vec::with_capacity(levels.len());
    for (speedup, list) in &levels {
        let ones = vec![1.0; list.len()];
        let gain = gain(trials, list, &ones, windows, plain) / luck(trials, list, &ones, work);
        let redrawn: Vec<f64> = draws
            .iter()
            .map(|baselines| {
                let counts = random.counts(list.len());
                self::gain(trials, list, &counts, windows, baselines) / luck(trials, list, &counts, work)
            })
            .collect();
        let n = list.len() as f64;
        let ci = if list.len() < TRIALS_MIN {
            (f64::NEG_INFINITY, f64::INFINITY)
        } else {
            let half = student::quantile(n - 1.0) * deviation(&redrawn) * (n / (n - 1.0)).sqrt();
            (gain - half, gain + half)
        };
        out.push(Level { speedup: *speedup, gain, ci, trials: list.len() });
        replicates.push(redrawn);
    }
    // Levels weigh in by their precision and by how much they tell about a slope.
    let weights: Vec<f64> = out
        .iter()
        .zip(&replicates)
        .map(|(level, redrawn)| {
            let error = deviation(redrawn).max(1e-4);
            level.speedup / (error * error)
        })
        .collect();
    let norm: f64 = weights.iter().zip(&out).map(|(w, l)| w * l.speedup).sum();
    let slope_of = |gains: &mut dyn Iterator<Item = f64>| {
        gains.zip(&weights).map(|(g, w)| g * w).sum::<f64>() / norm.max(1e-300)
    };
    let slope = slope_of(&mut out.iter().map(|l| l.gain));
    let slopes: Vec<f64> =
        (0..draws.len()).map(|r| slope_of(&mut replicates.iter().map(|list| list[r]))).collect();
    let count: usize = out.iter().map(|l| l.trials).sum();
    let freedom = (count as f64 - out.len() as f64).max(1.0);
    let slope_error = deviation(&slopes) * ((freedom + 1.0) / freedom).sqrt();
    let half = student::quantile(freedom) * slope_error;
    let slope_ci = if count < out.len() + FREEDOM_MIN {
        (f64::NEG_INFINITY, f64::INFINITY)
    } else {
        (slope - half, slope + half)
    };
    Curve { levels: out, slope, slope_error, slope_ci, trials: count }
}

/// How much more a level was made faster than asked for.
fn luck(trials: &[Trial], list: &[usize], counts: &[f64], work: f64) -> f64 {
    let (mut selected, mut units) = (0.0, 0.0);
    for (&i, count) in list.iter().zip(counts) {
        selected += count * trials[i].selected;
        units += count * trials[i].units;
    }
    if selected < SELECTED_MIN || work <= 0.0 || units <= 0.0 {
        return 1.0;
    }
    (selected / units / work).clamp(1.0 / LUCK_MAX, LUCK_MAX)
}

fn gain(trials: &[Trial], list: &[usize], counts: &[f64], windows: &Windows, baselines: &Prefix) -> f64 {
    let (mut time, mut expected) = (0.0, 0.0);
    for (&i, &count) in list.iter().zip(counts) {
        time += count * trials[i].time;
        expected += count * trials[i].units * windows.baseline(i, baselines);
    }
    if expected > 0.0 { 1.0 - time / expected } else { 0.0 }
}

/// Which baselines a trial is compared with.
struct Windows {
    time: Vec<f64>,
    units: Vec<f64>,
    /// Per trial, how many baselines come before it.
    before: Vec<usize>,
    width: usize,
    overall: f64,
}

/// Sums over the first baselines, each taken as often as a resampling says.
struct Prefix {
    time: Vec<f64>,
    units: Vec<f64>,
}

impl Windows {
    fn new(trials: &[Trial], baselines: &[usize]) -> Self {
        let time: Vec<f64> = baselines.iter().map(|&i| trials[i].time).collect();
        let units: Vec<f64> = baselines.iter().map(|&i| trials[i].units).collect();
        let mut before = Vec::with_capacity(trials.len());
        let mut seen = 0;
        for i in 0..trials.len() {
            before.push(seen);
            if baselines.get(seen) == Some(&i) {
                seen += 1;
            }
        }
        let overall = time.iter().sum::<f64>() / units.iter().sum::<f64>();
        let mut windows = Windows { time, units, before, width: usize::MAX, overall };
        windows.width = windows.best_width();
        windows
    }

    fn prefix(&self, counts: &[f64]) -> Prefix {
        let sums = |values: &[f64]| {
            let mut sum = 0.0;
            let mut out = vec![0.0];
            out.extend(values.iter().zip(counts).map(|(v, c)| {
                sum += v * c;
                sum
            }));
            out
        };
        Prefix { time: sums(&self.time), units: sums(&self.units) }
    }

    /// Time per unit at baseline where trial `i` stands.
    fn baseline(&self, i: usize, prefix: &Prefix) -> f64 {
        let (from, to) = self.around(self.before[i], self.width);
        let (time, units) = (prefix.time[to] - prefix.time[from], prefix.units[to] - prefix.units[from]);
        if units > 0.0 { time / units } else { self.overall }
    }

    /// The `width` baselines around place `at`.
    fn around(&self, at: usize, width: usize) -> (usize, usize) {
        let all = self.time.len();
        if width >= all {
            return (0, all);
        }
        let from = at.saturating_sub(width / 2).min(all - width);
        (from, from + width)
    }

    /// The width that predicts a baseline from the others best. A narrower one must be clearly better.
    fn best_width(&self) -> usize {
        let all = self.time.len();
        let error = |width: usize| {
            let mut sum = 0.0;
            for j in 0..all {
                let (from, to) = self.around(j, width.saturating_add(1).min(all));
                let others = (from..to).filter(|&k| k != j);
                let (time, units) =
                    others.fold((0.0, 0.0), |(t, u), k| (t + self.time[k], u + self.units[k]));
                if units > 0.0 {
                    let predicted = self.units[j] * time / units;
                    sum += ((self.time[j] - predicted) / self.time[j]).powi(2);
                }
            }
            sum
        };
        let mut best = (usize::MAX, error(all));
        for width in WINDOWS.into_iter().rev().filter(|&w| w + 2 < all) {
            let error = error(width);
            if error < 0.9 * best.1 {
                best = (width, error);
            }
        }
        best.0
    }
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt()
}

/// A generator for resampling (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// How often each of `n` items is drawn in `n` draws with replacement.
    fn counts(&mut self, n: usize) -> Vec<f64> {
        let mut counts = vec![0.0; n];
        for _ in 0..n {
            let at = ((u128::from(self.next()) * n as u128) >> 64) as usize;
            counts[at] += 1.0;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates a program whose target `k` has gain `truth(k, speedup)` and whose speed drifts.
    struct World {
        cpu: f64,
        random: Random,
        noise: f64,
        drift: f64,
    }

    impl World {
        fn normal(&mut self) -> f64 {
            let unit = |r: &mut Random| (r.next() >> 11) as f64 / (1u64 << 53) as f64;
            (0..12).map(|_| unit(&mut self.random)).sum::<f64>() - 6.0
        }

        fn trials(&mut self, rounds: usize, truth: impl Fn(usize, f64) -> f64) -> Vec<Trial> {
            let mut trials = Vec::new();
            for round in 0..rounds {
                let target = round % 3;
                for speedup in [0.0, 0.5, 0.25, 0.0, 1.0, 0.75] {
                    let at = trials.len() as f64 / (6.0 * rounds as f64);
                    let base = 1.0 + self.drift * (at * 9.0).sin();
                    // The target got more or fewer samples than it should have.
                    let luck = 1.0 + 0.1 * self.normal();
                    let gain = truth(target, speedup * luck);
                    let time = 100.0;
                    let units = time / (base * (1.0 - gain)) * (1.0 + self.noise * self.normal());
                    let selected = 20.0 * units / 100.0 * luck;
                    trials.push(Trial { target, speedup, time, units, selected, cpu: self.cpu * units });
                }
            }
            trials
        }
    }

    fn world(seed: u64, noise: f64, drift: f64) -> World {
        World { cpu: 0.0, random: Random(seed | 1), noise, drift }
    }

    /// Worth its speedup up to a third; worth nothing; harmful.
    fn truth(target: usize, speedup: f64) -> f64 {
        match target {
            0 => (0.8 * speedup).min(0.33),
            1 => 0.0,
            _ => -0.2 * speedup,
        }
    }

    #[test]
    fn gains_are_found_in_spite_of_drift() {
        let trials = world(7, 0.03, 0.4).trials(60, truth);
        let curves = curves(&trials, 4);
        for (target, curve) in curves.iter().take(3).enumerate() {
            for level in &curve.as_ref().unwrap().levels {
                let expected = truth(target, level.speedup);
                assert!((level.gain - expected).abs() < 0.03, "{target} {level:?} instead of {expected}");
                assert_eq!(level.trials, 20);
            }
        }
        assert_eq!(curves[3], None, "a target without trials has no curve");
    }

    #[test]
    fn intervals_cover_the_truth_as_often_as_they_should() {
        let (mut covered, mut all) = (0, 0);
        for seed in 0..60u64 {
            let trials = world(seed * 7919 + 1, 0.05, 0.2).trials(24, truth);
            for (target, curve) in curves(&trials, 3).into_iter().enumerate() {
                for level in curve.unwrap().levels {
                    let expected = truth(target, level.speedup);
                    covered += u32::from(level.ci.0 <= expected && expected <= level.ci.1);
                    all += 1;
                }
            }
        }
        let share = f64::from(covered) / f64::from(all);
        assert!((0.92..=0.995).contains(&share), "{share} of {all} intervals cover the truth");
    }

    #[test]
    fn luck_is_taken_out() {
        // Every trial of the level was made faster by a fifth more than asked, and shows it in its samples.
        let mut trials = Vec::new();
        for _ in 0..30 {
            let mut put = |speedup: f64, luck: f64| {
                let units = 100.0 / (1.0 - 0.5 * speedup * luck);
                let selected = 0.3 * units * luck;
                trials.push(Trial { target: 0, speedup, time: 100.0, units, selected, cpu: 0.0 });
            };
            put(0.0, 1.0);
            put(0.5, 1.2);
            put(0.0, 1.0);
            put(0.25, 1.0);
            put(0.75, 1.0);
            put(0.0, 1.0);
        }
        let curve = curves(&trials, 1).remove(0).unwrap();
        let middle = curve.levels[1];
        assert!((middle.gain - 0.25).abs() < 0.015, "{middle:?}");
    }

    #[test]
    fn a_machine_of_changing_speed_is_seen_through() {
        let mut world = world(11, 0.02, 0.0);
        let mut trials = world.trials(30, truth);
        for t in &mut trials {
            // Anything between full and half speed, from one trial to the next.
            let slow = 1.0 + 0.5 * (world.normal() / 3.0).abs().min(2.0);
            t.units /= slow;
            t.cpu = 7.0 * t.units * slow;
        }
        let worst = |trials: &[Trial]| {
            let found = curves(trials, 3).into_iter().flatten();
            let levels = found.flat_map(|c| c.levels).map(|l| (l.ci.1 - l.ci.0) / 2.0);
            levels.fold(0.0, f64::max)
        };
        let evened = worst(&trials);
        for (target, curve) in curves(&trials, 3).into_iter().enumerate() {
            for level in curve.unwrap().levels {
                assert!((level.gain - truth(target, level.speedup)).abs() < 0.03, "{target} {level:?}");
            }
        }
        trials.iter_mut().for_each(|t| t.cpu = 0.0);
        assert!(evened < worst(&trials) / 2.0, "intervals of {evened} instead of {}", worst(&trials));
    }

    #[test]
    fn stalls_of_the_machine_do_not_count() {
        let mut trials = world(5, 0.03, 0.0).trials(30, truth);
        for t in trials.iter_mut().skip(4).step_by(29) {
            t.units /= 6.0;
        }
        for (target, curve) in curves(&trials, 3).into_iter().enumerate() {
            for level in curve.unwrap().levels {
                assert!((level.gain - truth(target, level.speedup)).abs() < 0.05, "{target} {level:?}");
            }
        }
    }

    #[test]
    fn a_slow_phase_is_no_stall() {
        // For a quarter of the run everything takes three times as long, and the target is of no use then.
        let mut trials = Vec::new();
        for round in 0..40 {
            let slow = round >= 30;
            for speedup in [0.0, 0.5, 0.25, 0.0, 1.0, 0.75] {
                let period = if slow { 3.0 } else { 1.0 - 0.5 * speedup };
                trials.push(Trial {
                    target: 0,
                    speedup,
                    time: 100.0,
                    units: 100.0 / period,
                    selected: 0.0,
                    cpu: 0.0,
                });
            }
        }
        let curve = curves(&trials, 1).remove(0).unwrap();
        // Of 40 rounds' time, 30 gain half of a unit's time each at full speedup.
        let full = curve.levels[3];
        assert!(full.gain > 0.3 && full.gain < 0.5, "{full:?}");
    }

    #[test]
    fn too_few_trials_promise_nothing() {
        let trials = world(3, 0.01, 0.0).trials(1, truth);
        let curve = curves(&trials, 1).remove(0).unwrap();
        assert!(curve.levels.iter().all(|l| l.ci.0 == f64::NEG_INFINITY && l.trials == 1));
        assert!(curves(&trials[1..2], 1)[0].is_none(), "no baseline, no curve");
    }

    #[test]
    fn the_same_trials_give_the_same_curves() {
        let trials = world(9, 0.05, 0.1).trials(12, truth);
        assert_eq!(curves(&trials, 3), curves(&trials, 3));
    }
}
