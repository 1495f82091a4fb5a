//! Causal profiles: the experiments of a run, one by one.
//!
//! An experiment makes one target virtually faster for a while and counts what progress the program makes. Kept
//! are the raw observations; rates, speedups and intervals are conclusions and drawn elsewhere. The terms are those of
//! Curtsinger and Berger, "Coz: Finding Code that Counts with Causal Profiling" (SOSP 2015).
//!
//! [`Causal::validate`] checks the one canonical form: indices within their lists, experiments in order of time,
//! targets without doubles.

use crate::canon::Invalid;

/// What a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// A line of source code.
    Line,
    /// A function.
    Function,
}

/// What took the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Backend {
    /// Not known: imported.
    #[default]
    Unknown,
    /// perf task-clock events.
    Perf,
    /// POSIX timers.
    Timer,
    /// Some threads had the one, some the other.
    Mixed,
}

/// How progress is counted at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PointKind {
    /// Visits.
    Throughput,
    /// Begins and ends of something that takes time.
    Latency,
    /// The run as a whole is the one visit.
    EndToEnd,
    /// Samples that fell on a line stand for its visits.
    Sampled,
}

/// A progress point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressPoint {
    /// As the program or the command line names it.
    pub name: String,
    /// How it counts.
    pub kind: PointKind,
    /// Visits (begins, for latency) in the whole run.
    pub visits: u64,
}

/// Code that experiments can speed up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// `file:line`, or the function.
    pub name: String,
    /// Function, empty when not known.
    pub function: String,
    /// Source file, empty when not known.
    pub file: String,
    /// Source line, 0 when not known.
    pub line: u32,
    /// Samples that counted for it in the whole run.
    pub samples: u64,
}

/// What happened at one progress point during an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// Visits, or begins.
    pub visits: u64,
    /// Ends; 0 for points that have none.
    pub departures: u64,
    /// Integral over effective time of how many had begun and not ended.
    pub in_flight_ns: u64,
}

/// One experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Experiment {
    /// When it began, from the start of the run.
    pub start_ns: u64,
    /// How long it took, delays included.
    pub duration_ns: u64,
    /// Delay that every thread was to serve in it.
    pub delay_ns: u64,
    /// Of which running threads had not served when it ended, on average.
    pub unpaid_ns: u64,
    /// Index of the target that was made faster.
    pub target: u32,
    /// By how much, in thousandths; 0 is a baseline, whatever the target.
    pub speedup_permille: u32,
    /// Samples on the target.
    pub selected_samples: u64,
    /// Samples of all threads.
    pub samples: u64,
    /// CPU time that the program used, without pauses and with waits for cores that other programs had; 0 when not
    /// known.
    pub cpu_ns: u64,
    /// What happened at the points, in their order; points that came later are missing.
    pub progress: Vec<Progress>,
}

impl Experiment {
    /// Time that the experiment stands for: without the delays that were served.
    pub fn effective_ns(&self) -> u64 {
        self.duration_ns.saturating_sub(self.delay_ns.saturating_sub(self.unpaid_ns))
    }
}

/// What became of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleCounts {
    /// All samples.
    pub total: u64,
    /// Those with no frame in scope.
    pub out_of_scope: u64,
    /// Those of code whose meaning was not known yet when it was first met.
    pub unresolved: u64,
    /// Those whose call path could not be followed to a frame in scope.
    pub cut: u64,
    /// Periods without a sample.
    pub missed: u64,
}

/// A causal profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Causal {
    /// What targets are.
    pub by: By,
    /// What took the samples.
    pub backend: Backend,
    /// CPU time between two samples of a thread; 0 when not known.
    pub period_ns: u64,
    /// Time in which experiments were made, from the first chance of one to the program's end; 0 when not known.
    pub span_ns: u64,
    /// What became of the samples.
    pub samples: SampleCounts,
    /// The points, in order of their first appearance.
    pub points: Vec<ProgressPoint>,
    /// The targets.
    pub targets: Vec<Target>,
    /// The experiments, in order of time.
    pub experiments: Vec<Experiment>,
}

impl Causal {
    /// Without anything yet.
    pub fn new(by: By) -> Self {
        Causal {
            by,
            backend: Backend::Unknown,
            period_ns: 0,
            span_ns: 0,
            samples: SampleCounts::default(),
            points: Vec::new(),
            targets: Vec::new(),
            experiments: Vec::new(),
        }
    }

    /// Whether it has the canonical form.
    pub fn validate(&self) -> Result<(), Invalid> {
        let targets = self.targets.len();
        let mut names: Vec<(&str, &str)> =
            self.targets.iter().map(|t| (t.name.as_str(), t.function.as_str())).collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Invalid::Whole("no two targets may have the same name and function"));
        }
        for experiment in &self.experiments {
            if experiment.target as usize >= targets {
                return Err(Invalid::Whole("an experiment must be about a target of the list"));
            }
            if experiment.speedup_permille > 1000 {
                return Err(Invalid::Whole("a speedup must be at most 1000 thousandths"));
            }
            if experiment.progress.len() > self.points.len() {
                return Err(Invalid::Whole("an experiment must not know more points than the run"));
            }
        }
        if !self.experiments.is_sorted_by_key(|e| e.start_ns) {
            return Err(Invalid::Whole("experiments must be in order of time"));
        }
        Ok(())
    }

    /// Brings any data into the canonical form: what contradicts itself is left out, the rest put in order.
    pub fn normalize(&mut self) {
        let (targets, points) = (self.targets.len(), self.points.len());
        for i in (1..targets).rev() {
            let same = |a: &Target, b: &Target| (&a.name, &a.function) == (&b.name, &b.function);
            if let Some(first) = self.targets[..i].iter().position(|t| same(t, &self.targets[i])) {
                self.targets[first].samples += self.targets[i].samples;
                self.targets.remove(i);
                for e in &mut self.experiments {
                    e.target = match e.target as usize {
                        at if at == i => first as u32,
                        at if at > i => e.target - 1,
                        _ => e.target,
                    };
                }
            }
        }
        let targets = self.targets.len() as u32;
        self.experiments.retain(|e| e.target < targets && e.speedup_permille <= 1000);
        self.experiments.iter_mut().for_each(|e| e.progress.truncate(points));
        self.experiments.sort_by_key(|e| e.start_ns);
    }

    /// Several runs as one: experiments one after the other, targets and points of one name joined.
    ///
    /// Times of later runs go on where the earlier ones end.
    pub fn combined<'a>(runs: impl IntoIterator<Item = &'a Causal>) -> Option<Causal> {
        let mut runs = runs.into_iter();
        let mut sum = runs.next()?.clone();
        for run in runs {
            sum.absorb(run);
        }
        Some(sum)
    }

    fn absorb(&mut self, other: &Causal) {
        if self.backend != other.backend {
            self.backend = Backend::Mixed;
        }
        self.span_ns = self.span_ns.saturating_add(other.span_ns);
        let (a, b) = (&mut self.samples, &other.samples);
        a.total += b.total;
        a.out_of_scope += b.out_of_scope;
        a.unresolved += b.unresolved;
        a.cut += b.cut;
        a.missed += b.missed;
        let points: Vec<usize> = other
            .points
            .iter()
            .map(|p| match self.points.iter().position(|q| (&q.name, q.kind) == (&p.name, p.kind)) {
                Some(at) => {
                    self.points[at].visits += p.visits;
                    at
                }
                None => {
                    self.points.push(p.clone());
                    self.points.len() - 1
                }
            })
            .collect();
        let targets: Vec<u32> = other
            .targets
            .iter()
            .map(|t| {
                let same = |u: &Target| (&u.name, &u.function) == (&t.name, &t.function);
                match self.targets.iter().position(same) {
                    Some(at) => {
                        self.targets[at].samples += t.samples;
                        at as u32
                    }
                    None => {
                        self.targets.push(t.clone());
                        self.targets.len() as u32 - 1
                    }
                }
            })
            .collect();
        let offset = self.experiments.last().map_or(0, |e| e.start_ns + e.duration_ns);
        for experiment in &other.experiments {
            let mut progress = vec![Progress::default(); self.points.len()];
            for (&to, from) in points.iter().zip(&experiment.progress) {
                progress[to] = *from;
            }
            self.experiments.push(Experiment {
                start_ns: offset.saturating_add(experiment.start_ns),
                target: targets[experiment.target as usize],
                progress,
                ..*experiment
            });
        }
    }
}
