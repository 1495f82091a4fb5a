//! One run of the program, from its start to its end: experiments one after the other.
//!
//! ```text
//! start  warm-up  ( wait for a visit  experiment  cool-off )*  end
//! ```
//! An experiment begins and, if visits are rare, ends at a visit of the progress point, so that it holds whole
//! periods: otherwise half of the noise would come from where its ends happen to fall. Its length adapts to the rate
//! of visits. The cool-off lets queues settle; debts are void at once, because the next epoch starts without any.

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::{Duration, Instant};

use launch::preloaded::{Preload, Running};
use launch::{LaunchError, Results, Usage};
use profile::causal::{Backend, By, Causal, Experiment, Progress, SampleCounts};
use symbols::Scope;
use wire::causal::{self as wired, Shared, control, delay_ns, doing, epoch, flags, pack, state, unseen};

use crate::children::{Child, Children};
use crate::code::Code;
use crate::design::{Candidate, Choice, Design, Fixed};
use crate::points::{PointSpec, Points, Reading, SpecError};

/// Shortest experiment: ten a second.
const LENGTH_MIN: Duration = Duration::from_millis(90);
/// Longest experiment that waits for visits.
const LENGTH_MAX: Duration = Duration::from_millis(2000);
/// Visits that an experiment should hold.
const VISITS_WANTED: f64 = 20.0;
/// Visits without which an experiment says nothing.
const VISITS_MIN: u64 = 5;
/// Above this many visits in an experiment its ends are not waited for.
const VISITS_ALIGNED_MAX: f64 = 300.0;
/// Pause between experiments.
const COOL_OFF: Duration = Duration::from_millis(8);
/// How often new code is served.
const SERVE_EVERY: Duration = Duration::from_millis(20);
/// How often a rare visit is looked for.
const LOOK_EVERY: Duration = Duration::from_micros(250);
/// How often requests in flight are counted.
const COUNT_EVERY: Duration = Duration::from_micros(1000);
/// Time that a terminated program gets before it is killed.
const TERMINATION: Duration = Duration::from_secs(5);

/// What to run, and how.
#[derive(Clone)]
pub struct Config<'a> {
    /// Program and arguments.
    pub command: &'a [OsString],
    /// The runtime, a blob of `runtimes`.
    pub library: &'a [u8],
    /// What targets are.
    pub by: By,
    /// Which code counts.
    pub scope: Scope,
    /// Progress points of the command line.
    pub points: &'a [PointSpec],
    /// The run itself is the progress: one experiment per run.
    pub end_to_end: Option<Option<(String, u32)>>,
    /// The user's choice.
    pub fixed: Fixed,
    /// CPU time between two samples of a thread.
    pub period_ns: u64,
    /// Sample by timers even where perf is permitted.
    pub timer: bool,
    /// Time before the first experiment.
    pub warmup: Duration,
    /// Time after which the program is ended.
    pub duration: Option<Duration>,
    /// Whether the program's children are experimented on, too.
    pub follow: bool,
    /// For the choice of experiments.
    pub seed: u64,
}

/// Why a session failed.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The program could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A progress point cannot be used.
    #[error(transparent)]
    Point(#[from] SpecError),
}

/// A session that is over.
pub struct Finished {
    /// What was observed.
    pub causal: Causal,
    /// How the program ended.
    pub usage: Usage,
    /// Whether it still ran when the first program ended.
    pub cut_off: bool,
    /// What is missing or doubtful.
    pub problems: Vec<String>,
}

/// Runs the program and experiments on it. `enough` is asked now and then whether to stop. Children that are followed
/// are experimented on likewise, each by itself, until they end or the program does.
pub fn run(
    config: &Config<'_>,
    mut enough: impl FnMut(&Causal) -> bool,
) -> Result<(Finished, Vec<Child>), SessionError> {
    let preload = Preload {
        command: config.command,
        library: config.library,
        variable: wired::VARIABLE,
        beside: None,
        shared_bytes: wired::BYTES as u64,
        follow: config.follow,
    };
    let (running, seats) = preload.start(&|results| prepare(config, results))?;
    let orders = Arc::new(Orders::default());
    let session = Session::new(config, running, Arc::clone(&orders));
    let Some(seats) = seats else {
        return Ok((session.run(&mut enough)?, Vec::new()));
    };
    let children = Children::new(config, session.running.pid(), orders);
    let mut finished = std::thread::scope(|scope| {
        scope.spawn(|| children.receive(seats, scope));
        let finished = session.run(&mut enough);
        children.end();
        finished
    })?;
    let (children, problems) = children.done();
    finished.problems.extend(problems);
    Ok((finished, children))
}

/// What the runtime finds when it starts.
pub(crate) fn prepare(config: &Config<'_>, results: &Results) {
    let shared: &Shared = results.view();
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    shared.version.store(wired::VERSION, Relaxed);
    let timer = if config.timer { flags::TIMER } else { 0 };
    shared.flags.store(timer | flags::WAIT, Relaxed);
    shared.period_ns.store(config.period_ns, Relaxed);
    shared.cores.store(cores, Relaxed);
    shared.hot.global.store(pack(1, 0), Relaxed);
    shared.hot.control.store(control(1, 0, 0), Release);
}

/// What a session is told from outside.
#[derive(Default)]
pub(crate) struct Orders {
    /// Its process has become another program.
    pub superseded: AtomicBool,
    /// The first program has ended.
    pub over: AtomicBool,
}

impl Orders {
    fn stop(&self) -> bool {
        self.superseded.load(Relaxed) || self.over.load(Relaxed)
    }
}

pub(crate) struct Session<'a> {
    config: &'a Config<'a>,
    running: Running,
    code: Code,
    points: Points,
    design: Design,
    causal: Causal,
    epoch: u16,
    served: Instant,
    ended: Option<Usage>,
    problems: Vec<String>,
    /// Visits a second at the point that counts, as seen last.
    rate: f64,
    /// The point that experiments are aligned with: the slowest that moves.
    slowest: Option<usize>,
    /// What the run as a whole tried, for end-to-end.
    whole: Option<Choice>,
    orders: Arc<Orders>,
    is_child: bool,
    cut_off: bool,
}

impl<'a> Session<'a> {
    pub(crate) fn new(config: &'a Config<'a>, running: Running, orders: Arc<Orders>) -> Self {
        let code = Code::new(running.pid(), running.program(), config.by, config.scope.clone());
        Session {
            config,
            code,
            running,
            points: Points::default(),
            design: Design::new(config.seed, config.fixed.clone()),
            causal: Causal { period_ns: config.period_ns, ..Causal::new(config.by) },
            epoch: 1,
            served: Instant::now(),
            ended: None,
            problems: Vec::new(),
            rate: 0.0,
            slowest: None,
            whole: None,
            orders,
            is_child: false,
            cut_off: false,
        }
    }

    /// On a child: places that it does not have are no error, it was not made for them.
    pub(crate) fn of_child(config: &'a Config<'a>, running: Running, orders: Arc<Orders>) -> Self {
        Session { is_child: true, ..Session::new(config, running, orders) }
    }

    /// From the start to the end.
    pub(crate) fn run(mut self, enough: &mut dyn FnMut(&Causal) -> bool) -> Result<Finished, SessionError> {
        self.begin()?;
        self.experiment(enough);
        self.finish()
    }

    fn shared(&self) -> &Shared {
        self.running.shared().view()
    }

    /// Waits until the runtime is in the program, sets breakpoints, lets it go.
    fn begin(&mut self) -> Result<(), SessionError> {
        let patience = Instant::now() + Duration::from_secs(10);
        while self.shared().state.load(Acquire) == state::ABSENT && Instant::now() < patience {
            if self.wait(Duration::from_micros(200)) {
                break;
            }
        }
        let pid = self.running.pid();
        let added = self.points.add(self.config.points, pid, &mut self.code);
        if self.config.end_to_end.is_some() {
            self.points.add_end_to_end();
        }
        if let (Err(error), true) = (&added, self.is_child) {
            self.problems.push(format!("{}: {error}", self.running.program().display()));
            self.shared().go.store(1, Release);
            return Ok(());
        }
        if added.is_err() {
            self.running.signal(9);
            while !self.wait(Duration::from_millis(100)) {}
        }
        self.shared().go.store(1, Release);
        Ok(added?)
    }

    /// Waits, serving new code; whether the program has ended.
    fn wait(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        loop {
            if self.ended.is_none() && self.is_child && self.orders.stop() {
                let ended = self.running.wait(Duration::ZERO).ok().flatten();
                self.cut_off = ended.is_none() && !self.orders.superseded.load(Relaxed);
                self.ended = Some(ended.unwrap_or_else(|| self.running.seen()));
            }
            if self.ended.is_some() {
                return true;
            }
            let now = Instant::now();
            if now >= self.served + SERVE_EVERY {
                self.served = now;
                let shared: &Shared = self.running.shared().view();
                self.code.serve(shared);
                self.points.discover(shared);
                if let Some(longest) = self.config.duration
                    && self.running.elapsed() > longest
                {
                    let late = self.running.elapsed() > longest + TERMINATION;
                    self.running.signal(if late { 9 } else { 15 });
                }
            }
            let left = until.saturating_duration_since(now);
            if let Ok(Some(usage)) = self.running.wait(left.min(SERVE_EVERY)) {
                self.ended = Some(usage);
                return true;
            }
            if Instant::now() >= until {
                return false;
            }
        }
    }

    fn experiment(&mut self, enough: &mut dyn FnMut(&Causal) -> bool) {
        if self.config.end_to_end.is_some() {
            return self.experiment_on_the_whole();
        }
        if self.wait(self.config.warmup) {
            return;
        }
        let mut until_asked = 8;
        while self.ended.is_none() && !self.orders.stop() {
            let choice = if self.points.len() == 0 {
                None // nothing to measure progress by, yet
            } else {
                let counts = &self.shared().samples;
                let targets = self.code.targets().iter().enumerate();
                let candidates: Vec<Candidate<'_>> = targets
                    .map(|(i, t)| Candidate {
                        target: i as u32 + 1,
                        name: &t.name,
                        samples: counts[i + 1].load(Relaxed),
                    })
                    .collect();
                self.design.next(&candidates)
            };
            let Some(choice) = choice else {
                self.wait(Duration::from_millis(10));
                continue;
            };
            if self.wait_for_visit() {
                return;
            }
            if let Some(experiment) = self.one(choice) {
                let rate = self.rate_of(&experiment);
                self.design.learn(choice, rate);
                self.causal.experiments.push(experiment);
            }
            if self.wait(COOL_OFF) {
                return;
            }
            until_asked -= 1;
            if until_asked == 0 {
                until_asked = 12;
                self.fill_in();
                if enough(&self.causal) {
                    break;
                }
            }
        }
        // Known well enough: the program goes on undisturbed.
        while !self.wait(Duration::from_millis(50)) {}
    }

    /// One experiment from the program's start to its end.
    fn experiment_on_the_whole(&mut self) {
        let Some(Some((name, permille))) = self.config.end_to_end.clone() else {
            self.whole = Some(Choice { target: 0, speedup_permille: 0 });
            while !self.wait(SERVE_EVERY) {}
            return;
        };
        // The target has a number once its code has been met.
        while !self.wait(Duration::from_millis(2)) {
            let shared: &Shared = self.running.shared().view();
            self.code.serve(shared);
            if let Some(at) = self.code.targets().iter().position(|t| t.name == name) {
                let choice = Choice { target: at as u32 + 1, speedup_permille: permille };
                self.whole = Some(choice);
                self.set(choice);
                break;
            }
        }
        while !self.wait(SERVE_EVERY) {}
    }

    /// Starts an epoch.
    fn set(&mut self, choice: Choice) {
        self.epoch = self.epoch.wrapping_add(1).max(1);
        let shared = self.shared();
        let word = control(self.epoch, choice.speedup_permille as u16, choice.target);
        // If we die, the program must not go on being slowed down.
        let most =
            if self.config.end_to_end.is_some() { u64::MAX / 2 } else { 4 * LENGTH_MAX.as_nanos() as u64 };
        let now_ns = launch::preloaded::monotonic_ns();
        shared.hot.until_ns.store(now_ns.saturating_add(most), Relaxed);
        shared.hot.since_ns.store(now_ns, Relaxed);
        shared.hot.control.store(word, Release);
        shared.hot.global.store(pack(self.epoch, 0), Release);
    }

    /// CPU time of the program so far, without what pauses spun.
    fn cpu_ns(&self) -> u64 {
        let shared = self.shared();
        let used = (shared.counts.threads.load(Relaxed) as usize).min(shared.threads.len());
        let spun: u64 = shared.threads[..used].iter().map(|cell| cell.spun_ns.load(Relaxed)).sum();
        self.running.cpu_ns().saturating_sub(spun)
    }

    /// CPU time that samples stand for, without and with waits for cores.
    fn wanted_ns(&self) -> (u64, u64) {
        let counts = &self.shared().counts;
        (counts.sampled_ns.load(Relaxed), counts.wanted_ns.load(Relaxed))
    }

    fn read(&mut self) -> Vec<Reading> {
        let shared: &Shared = self.running.shared().view();
        self.points.discover(shared);
        self.points.read(shared, &self.code)
    }

    /// Waits for a visit of the slowest point, if visits are rare. Whether the program has ended.
    fn wait_for_visit(&mut self) -> bool {
        let expected = self.rate * LENGTH_MIN.as_secs_f64();
        let Some(point) = self.slowest.filter(|_| expected < VISITS_ALIGNED_MAX) else { return false };
        let visits = self.read()[point].visits;
        // Three periods without a visit: the program does something else just now.
        let period = Duration::from_secs_f64((1.0 / self.rate.max(0.1)).min(3.0));
        let until = Instant::now() + (period * 3).min(LENGTH_MAX);
        while Instant::now() < until {
            if self.wait(LOOK_EVERY) {
                return true;
            }
            if self.read()[point].visits != visits {
                return false;
            }
        }
        false
    }

    fn one(&mut self, choice: Choice) -> Option<Experiment> {
        let start = Instant::now();
        let start_ns = self.running.elapsed().as_nanos() as u64;
        let before = self.read();
        let samples_before = self.shared().counts.samples.load(Relaxed);
        let on_target = |shared: &Shared| shared.samples[choice.target as usize].load(Relaxed);
        let selected_before = on_target(self.shared());
        let cpu_before = self.cpu_ns();
        let wanted_before = self.wanted_ns();
        self.set(choice);
        // Before anything is known of the rate, the rule about too few visits finds the length.
        let wanted = if self.rate > 0.0 { (VISITS_WANTED / self.rate).min(10.0) } else { 0.0 };
        let length = Duration::from_secs_f64(wanted).clamp(LENGTH_MIN, LENGTH_MAX / 2);
        let mut in_flight = InFlight::new(&before, start);
        let latency = self.points.have_latency();
        let step = if latency { COUNT_EVERY } else { length };
        while start.elapsed() < length {
            if self.wait(step.min(length.saturating_sub(start.elapsed()))) {
                return None;
            }
            if latency {
                let now = self.read();
                in_flight.count(&now, Instant::now());
            }
        }
        // The end: at a visit, if they are rare; later, if there were too few.
        let aligned = self.rate * length.as_secs_f64() < VISITS_ALIGNED_MAX;
        let mut last = self.read();
        loop {
            let point = self.slowest_since(&before, &last);
            let few = point.is_none_or(|p| seen(&before, &last, p) < VISITS_MIN);
            if start.elapsed() >= LENGTH_MAX || (!aligned && !few) {
                break;
            }
            if self.wait(LOOK_EVERY) {
                return None;
            }
            let now = self.read();
            in_flight.count(&now, Instant::now());
            let visited = point.is_some_and(|p| now[p].visits != last[p].visits);
            last = now;
            if visited && !few {
                break;
            }
        }
        let after = self.read();
        let duration = start.elapsed();
        let cpu_ns = self.cpu_ns().saturating_sub(cpu_before);
        // Exact CPU time, stretched by the waits for cores that samples saw.
        let wanted = self.wanted_ns();
        let (ran, wanted) = (wanted.0 - wanted_before.0, wanted.1 - wanted_before.1);
        let cpu_ns = if ran > 0 { (cpu_ns as f64 * wanted as f64 / ran as f64) as u64 } else { cpu_ns };
        in_flight.count(&after, Instant::now());
        let shared = self.shared();
        let now_ns = launch::preloaded::monotonic_ns();
        let global = shared.global_at(now_ns);
        let unpaid_ns = unpaid(shared, global, now_ns);
        let selected_samples = on_target(shared) - selected_before;
        let samples = shared.counts.samples.load(Relaxed) - samples_before;
        self.set(Choice { target: 0, speedup_permille: 0 });
        self.slowest = self.slowest_since(&before, &after);
        self.rate =
            self.slowest.map_or(0.0, |p| seen(&before, &after, p) as f64 / duration.as_secs_f64().max(1e-9));
        // Where delays of requests are not known, they are taken to be spread evenly.
        let delay = delay_ns(global).saturating_sub(unpaid_ns) as f64;
        let served = (1.0 - delay / duration.as_nanos().max(1) as f64).max(0.0);
        let progress = after.iter().enumerate().map(|(i, now)| {
            let then = before.get(i).copied().unwrap_or_default();
            Progress {
                visits: now.visits.saturating_sub(then.visits),
                departures: now.departures.saturating_sub(then.departures),
                in_flight_ns: {
                    let integral = in_flight.sums.get(i).map_or(0.0, |s| *s);
                    match now.delayed_ns {
                        Some(delayed) => (integral as u64)
                            .saturating_sub(delayed.saturating_sub(then.delayed_ns.unwrap_or(0))),
                        None => (integral * served) as u64,
                    }
                },
            }
        });
        Some(Experiment {
            start_ns,
            duration_ns: duration.as_nanos() as u64,
            delay_ns: delay_ns(global),
            unpaid_ns,
            target: choice.target - 1,
            speedup_permille: choice.speedup_permille,
            selected_samples,
            samples,
            cpu_ns,
            progress: progress.collect(),
        })
    }

    /// Of the points that moved between two readings, the one with the fewest visits.
    fn slowest_since(&self, before: &[Reading], after: &[Reading]) -> Option<usize> {
        (0..after.len()).filter(|&p| seen(before, after, p) > 0).min_by_key(|&p| seen(before, after, p))
    }

    fn rate_of(&self, experiment: &Experiment) -> f64 {
        let visits = self.slowest.and_then(|p| experiment.progress.get(p)).map_or(0, |p| p.visits);
        visits as f64 / (experiment.effective_ns().max(1) as f64 / 1e9)
    }

    /// Brings targets, points and counts of the profile up to date.
    fn fill_in(&mut self) {
        let readings = self.read();
        let shared: &Shared = self.running.shared().view();
        self.causal.points = self.points.facts(&readings);
        self.causal.targets = self.code.targets().to_vec();
        for (target, count) in self.causal.targets.iter_mut().zip(&shared.samples[1..]) {
            target.samples = count.load(Relaxed);
        }
        let counts = &shared.counts;
        self.causal.samples = SampleCounts {
            total: counts.samples.load(Relaxed),
            out_of_scope: counts.out_of_scope.load(Relaxed),
            unresolved: counts.unresolved.load(Relaxed),
            cut: counts.cut.load(Relaxed),
            missed: counts.missed.load(Relaxed),
        };
        let (perf, timer) = (counts.perf_threads.load(Relaxed), counts.timer_threads.load(Relaxed));
        self.causal.backend = match (perf > 0, timer > 0) {
            (true, true) => Backend::Mixed,
            (true, false) => Backend::Perf,
            (false, true) => Backend::Timer,
            (false, false) => Backend::Unknown,
        };
    }

    fn finish(mut self) -> Result<Finished, SessionError> {
        while self.ended.is_none() {
            self.wait(Duration::from_millis(50));
        }
        let Some(usage) = self.ended else {
            return Err(LaunchError::Bug("a session ended before its program".into()).into());
        };
        self.fill_in();
        self.causal.span_ns = usage.wall_ns.saturating_sub(self.config.warmup.as_nanos() as u64);
        if let Some(choice) = self.whole
            && self.shared().state.load(Acquire) != state::ABSENT
        {
            self.record_the_whole(choice, &usage);
        }
        let mut problems = std::mem::take(&mut self.problems);
        problems.extend(self.code.problems().iter().cloned());
        let shared = self.shared();
        match shared.state.load(Acquire) {
            state::ABSENT => problems.push(
                "the runtime was not loaded into the program: it ended before its libraries were, or ignores LD_PRELOAD"
                    .into(),
            ),
            state::FAILED => problems.push("the runtime could not start; it said why".into()),
            state::EXECUTED if !self.config.follow => {
                problems.push("the program executed another one, which was not profiled".into());
            }
            _ => {}
        }
        if self.code.lines_missing() {
            problems.push(format!(
                "{} has no line information: build it with -g (debug = 1 in a Cargo profile), or use --by function",
                self.running.program().display()
            ));
        }
        let blind = shared.counts.blind_threads.load(Relaxed);
        if blind > 0 {
            problems.push(format!("threads that could not be sampled: {blind}"));
        }
        let refused = shared.counts.points_refused.load(Relaxed);
        if refused > 0 {
            problems.push(format!("progress points that found no room: {refused}"));
        }
        match shared.unseen.load(Relaxed) {
            unseen::CAUGHT => problems.push(format!(
                "threads wait by system calls that they make without libc: caught by the kernel (syscall user dispatch), \
                 {} times",
                shared.counts.caught.load(Relaxed)
            )),
            unseen::INFERRED => problems.push(
                "threads wait by system calls that they make without libc and that could not be caught here: such waits \
                 were inferred from CPU time, and predictions where threads wait for each other may be far off"
                    .into(),
            ),
            _ => {}
        }
        Ok(Finished { causal: self.causal, usage, cut_off: self.cut_off, problems })
    }

    fn record_the_whole(&mut self, choice: Choice, usage: &Usage) {
        let Some(point) = self.causal.points.iter().position(|p| p.name == "end-to-end") else { return };
        let shared: &Shared = self.running.shared().view();
        let global = shared.hot.global.load(Acquire);
        let mut progress = vec![Progress::default(); self.causal.points.len()];
        progress[point].visits = 1;
        self.causal.points[point].visits = 1;
        if self.causal.targets.is_empty() {
            return;
        }
        self.causal.experiments.push(Experiment {
            start_ns: 0,
            duration_ns: usage.wall_ns,
            delay_ns: if epoch(global) == self.epoch { delay_ns(global) } else { 0 },
            unpaid_ns: 0,
            target: choice.target.saturating_sub(1),
            speedup_permille: choice.speedup_permille,
            selected_samples: shared.samples[choice.target as usize].load(Relaxed),
            samples: shared.counts.samples.load(Relaxed),
            cpu_ns: usage.cpu_ns,
            progress,
        });
    }
}

/// Visits at a point between two readings; points that were made meanwhile count from 0.
fn seen(before: &[Reading], after: &[Reading], point: usize) -> u64 {
    let then = before.get(point).map_or(0, |r| r.visits);
    after.get(point).map_or(0, |r| r.visits.saturating_sub(then))
}

/// What running threads still owe, on average.
fn unpaid(shared: &Shared, global: u64, now_ns: u64) -> u64 {
    let (mut sum, mut threads) = (0u64, 0u64);
    let used = (shared.counts.threads.load(Relaxed) as usize).min(shared.threads.len());
    for cell in &shared.threads[..used] {
        if cell.doing.load(Acquire) == doing::RUNS {
            let paid = shared.paid_at(cell, now_ns);
            let paid = if epoch(paid) == epoch(global) { delay_ns(paid) } else { 0 };
            sum += delay_ns(global).saturating_sub(paid);
            threads += 1;
        }
    }
    sum.checked_div(threads).unwrap_or(0)
}

/// Integral over time of requests that have begun and not ended.
struct InFlight {
    last: Instant,
    now: Vec<f64>,
    sums: Vec<f64>,
}

impl InFlight {
    fn new(readings: &[Reading], start: Instant) -> Self {
        InFlight { last: start, now: open(readings), sums: vec![0.0; readings.len()] }
    }

    /// Takes a reading: since the last one the mean of both held.
    fn count(&mut self, readings: &[Reading], at: Instant) {
        let passed = at.saturating_duration_since(self.last).as_nanos() as f64;
        let now = open(readings);
        self.sums.resize(now.len(), 0.0);
        self.now.resize(now.len(), 0.0);
        for ((sum, then), now) in self.sums.iter_mut().zip(&self.now).zip(&now) {
            *sum += passed * (then + now) / 2.0;
        }
        self.now = now;
        self.last = at;
    }
}

fn open(readings: &[Reading]) -> Vec<f64> {
    readings.iter().map(|r| r.visits.saturating_sub(r.departures) as f64).collect()
}
