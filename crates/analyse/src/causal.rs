//! What causal experiments mean: a curve and a verdict per target and progress point, the most valuable first; and
//! why there is nothing to show, when there is not.
//!
//! # Ranking
//! By what a target is worth *at least*: the lower end of its slope's interval. Ranking by the best estimate or by
//! the highest point of a curve would put the luckiest noise first.
//!
//! # Phases
//! Targets are tried at random times of the run, so their gains are averages over it. A target that was first met
//! late was not tried earlier, though; then its gain is scaled by how much rarer its samples are in the whole run than
//! in its experiments (section 4.6 of the paper).

use fit::speedup::{Curve, Trial, curves};
use profile::causal::{Causal, PointKind, Progress};

/// Gain per speedup below which a target is not worth anybody's time.
pub const SLOPE_MATTERS: f64 = 0.03;
/// An interval of the slope within this distance of 0 means no effect.
pub const SLOPE_NONE: f64 = 0.15;
/// What the method itself may be off by, with all experiments in the world: 95 % of the differences between
/// predictions and really cutting the work, in the benchmark's programs, after the scatter of experiments is taken out. Gains
/// come out low where threads hand over often (being sampled makes each switch of threads longer).
const METHOD_ERROR: f64 = 0.015;
const METHOD_ERROR_SHARE: f64 = 0.1;
/// Samples in experiments without which phases are not corrected for.
const PHASE_SAMPLES_MIN: u64 = 30;
/// A target is met late if this share of the run has passed by then.
const LATE_SHARE: f64 = 0.2;
/// A difference of sample rates below this factor is chance.
const PHASE_FACTOR_MIN: f64 = 1.35;

/// What is to be done about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Making it faster makes the program faster.
    WorthIt,
    /// Making it faster changes nothing.
    NoEffect,
    /// Making it faster makes the program slower.
    Contention,
    /// The data do not say.
    Unknown,
}

/// One target at one progress point.
#[derive(Debug, Clone, PartialEq)]
pub struct Result {
    /// Index of the target.
    pub target: usize,
    /// Index of the point.
    pub point: usize,
    /// Of the samples in scope.
    pub share: f64,
    /// The curve, corrected for phases.
    pub curve: Curve,
    /// Factor of that correction; 1 for none.
    pub phase_factor: f64,
    /// Half the width of the widest level's interval before the method's own error: what more experiments would narrow.
    pub scatter: f64,
    /// Highest gain that the data vouch for: of the level with the best lower bound.
    pub best: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Why, in words.
    pub reason: String,
}

/// All conclusions.
#[derive(Debug, Clone, PartialEq)]
pub struct CausalAnalysis {
    /// The most valuable first.
    pub results: Vec<Result>,
    /// Why there is little or nothing to show; empty when all is well.
    pub diagnoses: Vec<String>,
}

/// Draws the conclusions.
pub fn analyse(causal: &Causal) -> CausalAnalysis {
    let scope: u64 = causal.targets.iter().map(|t| t.samples).sum();
    let mut results = Vec::new();
    for (point, facts) in causal.points.iter().enumerate() {
        let trials = trials(causal, point, facts.kind);
        for (target, curve) in curves(&trials, causal.targets.len()).into_iter().enumerate() {
            let Some(curve) = curve else { continue };
            let phase_factor =
                if facts.kind == PointKind::EndToEnd { 1.0 } else { phase_factor(causal, target) };
            let curve = scaled(curve, phase_factor);
            let scatter = curve.levels.iter().map(|l| (l.ci.1 - l.ci.0) / 2.0).fold(0.0, f64::max);
            let curve = widened(curve);
            let (verdict, reason) = judge(&curve);
            results.push(Result {
                target,
                point,
                share: if scope > 0 { causal.targets[target].samples as f64 / scope as f64 } else { 0.0 },
                best: best(&curve),
                curve,
                scatter,
                phase_factor,
                verdict,
                reason,
            });
        }
    }
    results.sort_by(|a, b| {
        value(b).total_cmp(&value(a)).then(a.target.cmp(&b.target)).then(a.point.cmp(&b.point))
    });
    let diagnoses = diagnose(causal, &results);
    CausalAnalysis { results, diagnoses }
}

/// How well the most valuable result is known, as far as more experiments can help: its [`Result::scatter`].
pub fn uncertainty(analysis: &CausalAnalysis) -> Option<f64> {
    analysis.results.first().map(|top| top.scatter)
}

fn trials(causal: &Causal, point: usize, kind: PointKind) -> Vec<Trial> {
    let usable = causal.experiments.iter().filter_map(|e| {
        let progress = e.progress.get(point)?;
        let effective = e.effective_ns() as f64;
        Some(Trial {
            target: e.target as usize,
            speedup: f64::from(e.speedup_permille) / 1000.0,
            time: time(progress, kind, effective),
            units: progress.visits as f64,
            // Our own delays are held to the target's share of time; those of other tools hang on samples.
            selected: if causal.period_ns == 0 { e.selected_samples as f64 } else { 0.0 },
            cpu: e.cpu_ns as f64,
        })
    });
    usable.collect()
}

/// The time that progress is divided into. Latency is, by Little's law, requests in flight over arrivals a second;
/// with the integral of requests in flight over effective time that is integral over arrivals.
fn time(progress: &Progress, kind: PointKind, effective: f64) -> f64 {
    match kind {
        PointKind::Latency => progress.in_flight_ns as f64,
        _ => effective,
    }
}

fn phase_factor(causal: &Causal, target: usize) -> f64 {
    let first = causal.experiments.iter().find(|e| e.target as usize == target);
    if first.is_none_or(|e| (e.start_ns as f64) < LATE_SHARE * causal.span_ns as f64) {
        return 1.0;
    }
    // Baselines of the target's own rounds: there its samples are those of the program as it is.
    let own = causal.experiments.iter().filter(|e| e.target as usize == target && e.speedup_permille == 0);
    let (samples, time) = own.fold((0u64, 0u64), |(s, t), e| (s + e.selected_samples, t + e.duration_ns));
    if samples < PHASE_SAMPLES_MIN || time == 0 || causal.span_ns == 0 {
        return 1.0;
    }
    let in_experiments = samples as f64 / time as f64;
    let overall = causal.targets[target].samples as f64 / causal.span_ns as f64;
    let factor = overall / in_experiments;
    if factor > 1.0 / PHASE_FACTOR_MIN { 1.0 } else { factor }
}

fn scaled(mut curve: Curve, factor: f64) -> Curve {
    for level in &mut curve.levels {
        level.gain *= factor;
        level.ci = (level.ci.0 * factor, level.ci.1 * factor);
    }
    curve.slope *= factor;
    curve.slope_error *= factor;
    curve.slope_ci = (curve.slope_ci.0 * factor, curve.slope_ci.1 * factor);
    curve
}

/// Intervals with the method's own error in them.
fn widened(mut curve: Curve) -> Curve {
    let wider = |middle: f64, (low, high): (f64, f64)| {
        let error = METHOD_ERROR + METHOD_ERROR_SHARE * middle.abs();
        (middle - (middle - low).hypot(error), middle + (high - middle).hypot(error))
    };
    for level in &mut curve.levels {
        level.ci = wider(level.gain, level.ci);
    }
    curve.slope_ci = wider(curve.slope, curve.slope_ci);
    curve
}

fn best(curve: &Curve) -> f64 {
    let best = curve.levels.iter().max_by(|a, b| a.ci.0.total_cmp(&b.ci.0));
    best.map_or(0.0, |level| level.gain)
}

fn judge(curve: &Curve) -> (Verdict, String) {
    let (low, high) = curve.slope_ci;
    let percent = |x: f64| format!("{:+.0} %", 100.0 * x);
    if !low.is_finite() || !high.is_finite() {
        let reason = format!("only {} experiments so far; run longer, or --runs", curve.trials);
        return (Verdict::Unknown, reason);
    }
    if low > SLOPE_MATTERS {
        return (Verdict::WorthIt, format!("each 1 % faster gains {:.2} %", curve.slope));
    }
    if high < -SLOPE_MATTERS {
        let reason = "making it faster slows the program down: threads get in each other's way".to_owned();
        return (Verdict::Contention, reason);
    }
    if low > -SLOPE_NONE && high < SLOPE_NONE {
        return (Verdict::NoEffect, "other code sets the pace".to_owned());
    }
    let reason = format!(
        "the interval {} to {} is too wide after {} experiments; run longer, or --runs",
        percent(low),
        percent(high),
        curve.trials
    );
    (Verdict::Unknown, reason)
}

/// What results are ordered by.
fn value(result: &Result) -> f64 {
    let low = result.curve.slope_ci.0;
    match result.verdict {
        Verdict::WorthIt => 10.0 + low,
        Verdict::Contention => 5.0 - result.curve.slope_ci.1,
        // What may turn out to be something comes before what is known to be nothing.
        Verdict::Unknown if low.is_finite() => {
            2.0 + (result.curve.slope - result.curve.slope_error).clamp(-1.0, 1.0)
        }
        Verdict::Unknown => 0.5 + 0.1 * result.share,
        Verdict::NoEffect => result.curve.slope.clamp(-0.4, 0.4),
    }
}

fn diagnose(causal: &Causal, results: &[Result]) -> Vec<String> {
    let mut out = Vec::new();
    let s = &causal.samples;
    let in_scope: u64 = causal.targets.iter().map(|t| t.samples).sum();
    let imported = causal.period_ns == 0;
    if !imported && s.total == 0 {
        out.push(
            "no samples: the program ended too soon or used no CPU time; causal profiling needs seconds of work"
                .to_owned(),
        );
    } else if !imported && in_scope == 0 && s.total > 0 {
        out.push(format!(
            "none of {} samples is in scope: {} in code out of scope or without line information, {} on paths that could \
             not be followed; see --scope, and build with -g",
            s.total, s.out_of_scope, s.cut
        ));
    }
    if causal.points.is_empty() {
        out.push(
            "no progress point was reached: mark one in the source (annotate::progress!() or COZ_PROGRESS), name one \
             with --progress FILE:LINE or --progress FUNCTION, or measure whole runs with --end-to-end"
                .to_owned(),
        );
    }
    for point in causal.points.iter().filter(|p| p.visits == 0) {
        out.push(format!("progress point {:?} was never visited", point.name));
    }
    let visited = causal.points.iter().any(|p| p.visits > 0);
    if visited && causal.experiments.is_empty() && in_scope > 0 {
        out.push(
            "the run was too short for an experiment: each takes at least a tenth of a second after the first samples; \
             give the program more work, or --runs"
                .to_owned(),
        );
    } else if visited && !causal.experiments.is_empty() && results.is_empty() {
        out.push(format!(
            "{} experiments are too few for a result: a baseline and a speedup of one target are the least; run longer, \
             or --runs",
            causal.experiments.len()
        ));
    }
    let expected = s.total + s.missed;
    if expected > 100 && s.missed > expected / 4 {
        out.push(format!(
            "{} of {expected} sampling periods have no sample: time in the kernel, or a timer coarser than the period; \
             such time counts for no target",
            s.missed
        ));
    }
    if in_scope > 0 && s.total > 100 && s.out_of_scope + s.cut > s.total / 2 {
        out.push(format!(
            "{} of {} samples are out of scope and cannot be made faster virtually; see --scope",
            s.out_of_scope + s.cut,
            s.total
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::causal::{By, Experiment, ProgressPoint, SampleCounts, Target};

    fn target(name: &str, samples: u64) -> Target {
        Target { name: name.into(), samples, ..Target::default() }
    }

    /// Rounds over two targets: the first is worth 0.8, the second nothing. Visits vary by the given permille.
    fn facts(rounds: u64, wobble: u64) -> Causal {
        let mut causal = Causal {
            period_ns: 1_000_000,
            span_ns: rounds * 600_000_000,
            samples: SampleCounts { total: 2000, ..SampleCounts::default() },
            points: vec![ProgressPoint { name: "p".into(), kind: PointKind::Throughput, visits: 1 }],
            targets: vec![target("a.c:1", rounds * 240), target("a.c:2", rounds * 240)],
            ..Causal::new(By::Line)
        };
        for i in 0..rounds * 6 {
            let level = [0, 500, 250, 0, 1000, 750][i as usize % 6];
            let target = (i / 6 % 2) as u32;
            let gain = if target == 0 { 0.8 * f64::from(level) / 1000.0 } else { 0.0 };
            let noise = 1.0 + (i * 7919 % 101) as f64 / 101.0 * wobble as f64 / 1000.0;
            let visits = (1000.0 * noise / (1.0 - gain)) as u64;
            causal.experiments.push(Experiment {
                start_ns: i * 100_000_000,
                duration_ns: 150_000_000,
                delay_ns: 60_000_000,
                unpaid_ns: 10_000_000,
                target,
                speedup_permille: level,
                selected_samples: visits / 25,
                samples: 80,
                cpu_ns: 0,
                progress: vec![Progress { visits, departures: 0, in_flight_ns: 0 }],
            });
        }
        causal
    }

    #[test]
    fn the_valuable_target_comes_first() {
        let analysis = analyse(&facts(20, 40));
        let verdicts: Vec<_> = analysis.results.iter().map(|r| (r.target, r.verdict)).collect();
        assert_eq!(verdicts, [(0, Verdict::WorthIt), (1, Verdict::NoEffect)]);
        let top = &analysis.results[0];
        assert!((top.curve.slope - 0.8).abs() < 0.05, "{:?}", top.curve);
        assert!((top.best - 0.8).abs() < 0.05);
        assert_eq!(analysis.diagnoses, [""; 0]);
        assert!(uncertainty(&analysis).unwrap() < 0.05);
    }

    #[test]
    fn little_data_is_called_unknown() {
        let analysis = analyse(&facts(2, 400));
        assert!(analysis.results.iter().all(|r| r.verdict == Verdict::Unknown), "{analysis:?}");
        assert!(analysis.results[0].reason.contains("run longer"));
    }

    #[test]
    fn latency_follows_littles_law() {
        let mut causal = facts(20, 10);
        causal.points[0].kind = PointKind::Latency;
        for e in &mut causal.experiments {
            // Every request takes 2 ms of effective time at baseline, and what the target is worth less otherwise.
            let gain = if e.target == 0 { 0.4 * f64::from(e.speedup_permille) / 1000.0 } else { 0.0 };
            let stretch = e.duration_ns as f64 / e.effective_ns() as f64;
            e.progress[0].in_flight_ns = (e.progress[0].visits as f64 * 2e6 * (1.0 - gain) * stretch) as u64;
        }
        let analysis = analyse(&causal);
        assert!((analysis.results[0].curve.slope - 0.4).abs() < 0.02, "{:?}", analysis.results[0]);
    }

    #[test]
    fn a_target_of_a_part_of_the_run_is_worth_less() {
        let mut causal = facts(20, 10);
        causal.span_ns *= 3;
        let late = causal.span_ns / 2;
        causal.experiments.iter_mut().for_each(|e| e.start_ns += late);
        let halved = analyse(&causal);
        let top = halved.results.iter().find(|r| r.target == 0).unwrap();
        assert!(top.phase_factor < 0.6 && top.curve.slope < 0.48, "{top:?}");
    }

    #[test]
    fn each_cause_of_emptiness_is_named() {
        let empty = Causal { period_ns: 1, ..Causal::new(By::Line) };
        let has = |causal: &Causal, needle: &str| {
            let said = analyse(causal).diagnoses;
            assert!(said.iter().any(|d| d.contains(needle)), "{needle:?} is not in {said:?}");
        };
        has(&empty, "no samples");
        has(&empty, "no progress point");
        let mut out = empty.clone();
        out.samples.total = 500;
        out.samples.out_of_scope = 500;
        has(&out, "none of 500 samples is in scope");
        let mut never = facts(0, 0);
        never.points[0].visits = 0;
        has(&never, "never visited");
        let mut short = facts(0, 0);
        short.targets[0].samples = 50;
        has(&short, "too short for an experiment");
        let mut few = facts(1, 0);
        few.experiments.truncate(1);
        few.targets[0].samples = 50;
        has(&few, "too few for a result");
        let mut lost = facts(3, 0);
        lost.samples.missed = 3000;
        has(&lost, "have no sample");
    }
}
