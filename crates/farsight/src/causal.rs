//! `farsight causal`: what would making this faster gain?

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use causal::{Config, Fixed, PointSpec, SessionError};
use clap::ValueEnum;
use profile::causal::By;
use profile::{Causal, Data, Run};
use symbols::Scope;
use symbols::scope::Pattern;

use crate::exit::{Failure, Kind};
use crate::mode::{self, ModeArgs};

/// Find out what making code faster would gain
///
/// Makes one line after the other virtually faster, by slowing down everything else, and measures what that does to
/// the program's progress. Progress is what the program marks (annotate, coz.h), what --progress names, or the run as
/// a whole.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// What to make faster: source lines, or functions
    #[arg(long, value_enum, default_value = "line")]
    by: Granularity,
    /// Count visits of FILE:LINE or of a function as progress, without touching the source
    #[arg(long, value_name = "PLACE")]
    progress: Vec<String>,
    /// Measure how long it takes from one place to another, FROM..TO
    #[arg(long, value_name = "FROM..TO")]
    latency: Vec<String>,
    /// Take samples on FILE:LINE for progress, where it is passed too often for --progress
    #[arg(long, value_name = "FILE:LINE")]
    sampled: Vec<String>,
    /// Measure whole runs: one experiment per run, see --runs
    #[arg(long)]
    end_to_end: bool,
    /// Only code that matches: file:GLOB, fn:GLOB or lib:GLOB; may be given more than once
    #[arg(long, value_name = "PATTERN")]
    scope: Vec<Pattern>,
    /// No code that matches
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<Pattern>,
    /// Run the program so often and put the results together
    #[arg(long, default_value_t = 1, value_name = "N")]
    runs: u32,
    /// Stop experimenting when the best result is known to within so many points: ci<5%
    #[arg(long, value_name = "ci<P%", value_parser = parse_until)]
    until: Option<f64>,
    /// Try only this: TARGET, TARGET:PERCENT or :PERCENT
    #[arg(long, value_name = "TARGET[:PERCENT]", value_parser = parse_fixed)]
    fixed: Option<Fixed>,
    /// Seconds before the first experiment
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = parse_seconds)]
    warmup: Duration,
    /// End the program after so many seconds: for servers
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    duration: Option<Duration>,
    /// CPU time between two samples of a thread, in microseconds
    #[arg(long, default_value_t = 4000, value_name = "US", value_parser = clap::value_parser!(u64).range(100..=100_000))]
    period: u64,
    /// Sample by timers even where perf events are permitted
    #[arg(long)]
    timer: bool,
    /// Also experiment on children (forked, and programs that they or the program execute), each by itself
    #[arg(long)]
    follow: bool,
    /// Make the same random choices again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Granularity {
    /// Source lines
    Line,
    /// Functions
    Function,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let recording = args.mode.begin("causal")?;
    let points = specs(args)?;
    let seed = args.seed.unwrap_or_else(crate::started::now_unix_ns);
    let (mut runs, mut followed): (Vec<Run>, Vec<Run>) = Default::default();
    let mut so_far: Option<Causal> = None;
    for number in 0..args.runs.max(1) {
        let whole = args.end_to_end.then(|| choose_whole(so_far.as_ref(), number, seed, args));
        let config = Config {
            command: &args.mode.command,
            library: runtimes::CAUSAL,
            by: match args.by {
                Granularity::Line => By::Line,
                Granularity::Function => By::Function,
            },
            scope: scope(args),
            points: &points,
            end_to_end: whole,
            fixed: args.fixed.clone().unwrap_or_default(),
            period_ns: args.period * 1000,
            timer: args.timer,
            warmup: args.warmup,
            duration: args.duration,
            follow: args.follow,
            seed: seed.wrapping_add(u64::from(number)),
        };
        let before = so_far.clone();
        let known_well = |now: &Causal| {
            let all = Causal::combined(before.iter().chain([now]));
            args.until.zip(all).is_some_and(|(wanted, all)| is_known(&all, wanted))
        };
        let (finished, children) = causal::run(&config, known_well).map_err(failure)?;
        so_far = Causal::combined(so_far.iter().chain([&finished.causal]));
        let mut run = recording.run(Data::Causal(finished.causal))?;
        run.exit = mode::exit_of(finished.usage.ended);
        run.wall_ns = finished.usage.wall_ns;
        run.cpu_ns = finished.usage.cpu_ns;
        run.problems = finished.problems;
        let interrupted = matches!(finished.usage.ended, launch::Ended::Signal(SIGINT | SIGQUIT));
        let (worth, idle): (Vec<_>, Vec<_>) =
            children.into_iter().partition(|child| !child.finished.causal.experiments.is_empty());
        if !idle.is_empty() {
            run.problems.push(without_experiments(&idle));
        }
        runs.push(run);
        for child in worth {
            followed.push(of_child(&recording, child)?);
        }
        let enough = args.until.zip(so_far.as_ref()).is_some_and(|(wanted, all)| is_known(all, wanted));
        if interrupted || enough {
            break;
        }
    }
    runs.append(&mut followed);
    recording.finish(runs)
}

/// The run of a child.
fn of_child(recording: &mode::Recording<'_>, child: causal::Child) -> Result<Run> {
    let causal::Finished { causal, usage, cut_off, problems } = child.finished;
    let facts = mode::Child {
        pid: child.pid,
        program: &child.program,
        command: &child.command,
        ended: usage.ended,
        started_unix_ns: child.started_unix_ns,
        wall_ns: usage.wall_ns,
        cpu_ns: usage.cpu_ns,
        running: cut_off,
    };
    let mut run = recording.child(&facts, Data::Causal(causal))?;
    run.problems.extend(problems);
    Ok(run)
}

/// Children that there is nothing to say about: most of what a script starts.
fn without_experiments(children: &[causal::Child]) -> String {
    let mut names: Vec<String> =
        children.iter().filter_map(|c| Some(c.program.file_name()?.to_string_lossy().into_owned())).collect();
    names.sort();
    names.dedup();
    format!(
        "children without experiments, because they were short or passed no progress point: {} ({})",
        children.len(),
        names.join(", ")
    )
}

/// Signals by which a user ends everything; numbers of x86-64 Linux.
const SIGINT: i32 = 2;
const SIGQUIT: i32 = 3;

/// Whether the best result is known to within `wanted`.
fn is_known(causal: &Causal, wanted: f64) -> bool {
    let analysis = analyse::causal::analyse(causal);
    let tried = analysis.results.first().is_some_and(|r| r.curve.trials >= 12);
    tried && analyse::causal::uncertainty(&analysis).is_some_and(|half| half <= wanted)
}

/// What the next whole run tries: the targets that took most time, every level of each in turn, with baselines.
fn choose_whole(so_far: Option<&Causal>, number: u32, seed: u64, args: &Args) -> Option<(String, u32)> {
    const TARGETS: usize = 3;
    let so_far = so_far?;
    let mut targets: Vec<_> = so_far.targets.iter().filter(|t| t.samples > 0).collect();
    targets.sort_by_key(|t| std::cmp::Reverse(t.samples));
    if let Some(name) = args.fixed.as_ref().and_then(|f| f.target.as_ref()) {
        targets.retain(|t| t.name.ends_with(name.as_str()));
    }
    targets.truncate(TARGETS);
    let levels = match args.fixed.as_ref().and_then(|f| f.speedup_permille) {
        Some(level) => vec![level],
        None => causal::LEVELS_PERMILLE.to_vec(),
    };
    // A third of the runs are baselines; the rest go round in an order that the seed decides.
    if number.is_multiple_of(3) || targets.is_empty() {
        return None;
    }
    let cells = targets.len() * levels.len();
    let step = (number - number / 3 - 1) as usize;
    let at = (step + (seed as usize) % cells) % cells;
    Some((targets[at % targets.len()].name.clone(), levels[at / targets.len()]))
}

fn scope(args: &Args) -> Scope {
    let mut scope = if args.scope.is_empty() { Scope::user_code() } else { Scope::default() };
    scope.include.extend(args.scope.iter().cloned());
    scope.exclude.extend(args.exclude.iter().cloned());
    scope
}

fn specs(args: &Args) -> Result<Vec<PointSpec>> {
    let mut specs: Vec<PointSpec> = args.progress.iter().cloned().map(PointSpec::Breakpoint).collect();
    for pair in &args.latency {
        match pair.split_once("..") {
            Some((from, to)) if !from.is_empty() && !to.is_empty() => {
                specs.push(PointSpec::Latency(from.into(), to.into()));
            }
            _ => {
                let message = anyhow!("--latency {pair:?}: need FROM..TO, two places as in --progress");
                return Err(Failure::error(Kind::Usage, message));
            }
        }
    }
    specs.extend(args.sampled.iter().cloned().map(PointSpec::Sampled));
    Ok(specs)
}

fn failure(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Launch(error) => mode::launch_failure(error),
        SessionError::Point(error @ causal::SpecError::NotFound(_)) => Failure::error(Kind::Usage, error),
        SessionError::Point(error) => Failure::error(Kind::Unavailable, error),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.trim_end_matches('s').parse().map_err(|_| format!("{text:?} is no number of seconds"))?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("{text:?} is no number of seconds"))
}

fn parse_until(text: &str) -> Result<f64, String> {
    let number = text.strip_prefix("ci<").map(|rest| rest.trim_end_matches('%'));
    match number.and_then(|n| n.parse::<f64>().ok()) {
        Some(percent) if percent > 0.0 => Ok(percent / 100.0),
        _ => Err(format!("{text:?}: need ci<P%, such as ci<5%")),
    }
}

fn parse_fixed(text: &str) -> Result<Fixed, String> {
    let percent = |text: &str| match text.trim_end_matches('%').parse::<f64>() {
        Ok(p) if (0.0..=100.0).contains(&p) => Some((p * 10.0).round() as u32),
        _ => None,
    };
    if let Some(rest) = text.strip_prefix(':') {
        let speedup_permille = Some(percent(rest).ok_or_else(|| format!("{rest:?} is no percentage"))?);
        return Ok(Fixed { target: None, speedup_permille });
    }
    // `file:line:percent`; a function has no colon but `::`, so `function:percent` is told by its last part.
    let (target, level) = match text.rsplit_once(':') {
        Some((target, last)) if !target.ends_with(':') => {
            let has_line = target.rsplit_once(':').is_some_and(|(_, line)| line.parse::<u32>().is_ok());
            let is_file = target.contains('.') && !has_line;
            if is_file { (text, None) } else { (target, percent(last)) }
        }
        _ => (text, None),
    };
    match level {
        Some(level) => Ok(Fixed { target: Some(target.into()), speedup_permille: Some(level) }),
        None => Ok(Fixed { target: Some(text.into()), speedup_permille: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_targets_and_speedups() {
        let fixed = |target: Option<&str>, speedup_permille| Fixed {
            target: target.map(str::to_owned),
            speedup_permille,
        };
        for (text, want) in [
            ("main.c:12", fixed(Some("main.c:12"), None)),
            ("main.c:12:50", fixed(Some("main.c:12"), Some(500))),
            ("main.c:12:12.5%", fixed(Some("main.c:12"), Some(125))),
            (":75", fixed(None, Some(750))),
            ("parse", fixed(Some("parse"), None)),
            ("app::parse", fixed(Some("app::parse"), None)),
            ("parse:50", fixed(Some("parse"), Some(500))),
        ] {
            assert_eq!(parse_fixed(text), Ok(want), "{text}");
        }
        assert!(parse_fixed(":lots").is_err());
    }

    #[test]
    fn when_to_stop() {
        assert_eq!(parse_until("ci<5%"), Ok(0.05));
        assert_eq!(parse_until("ci<2.5"), Ok(0.025));
        assert!(parse_until("5").is_err());
    }
}
