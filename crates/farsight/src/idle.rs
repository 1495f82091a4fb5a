//! `farsight idle`: where cores are wasted, and which code is to blame.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use analyse::idle::classes::name_matches;
use analyse::idle::{Class, Classes};
use anyhow::{Context, Result, anyhow};
use launch::Usage;
use launch::preloaded::{Preload, Running};
use profile::{Data, Idle};
use span_kit::openmp::{self, OpenMp};
use symbols::Object;

use crate::exit::{Failure, Kind};
use crate::mode::{self, ModeArgs};

mod children;
mod family;

use children::Children;
use family::Family;

/// Find where cores are idle or busy with overhead, and which code is to blame
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// Samples per second of CPU time and thread
    #[arg(long, value_name = "HZ", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    rate: u32,
    /// Cores that the program could use; those it may run on if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    cores: Option<u32>,
    /// Stop the program (SIGTERM, then SIGKILL) after this many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// Rules that say which functions are overhead or look for work: lines of `CLASS PATTERN`
    #[arg(long, value_name = "FILE")]
    classes: Option<PathBuf>,
    /// Sample by CPU-time timers even where perf events are permitted
    #[arg(long)]
    no_perf: bool,
    /// Also profile children (forked, and programs that they or the program execute), each by itself
    #[arg(long)]
    follow: bool,
    /// Run a gcc-built OpenMP program on LLVM's libomp, which reports more than libgomp: another runtime than its own
    #[arg(long)]
    libomp: bool,
}

/// How long a program may take to end after `--duration` before it is killed.
const GRACE: Duration = Duration::from_secs(2);
const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;

pub fn run(args: &Args) -> Result<ExitCode> {
    let rules = match &args.classes {
        None => String::new(),
        Some(path) => std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))
            .map_err(|e| Failure::error(Kind::NoInput, e))?,
    };
    let classes = Classes::parse(&rules).map_err(|e| Failure::error(Kind::Usage, e))?;
    let recording = args.mode.begin("idle")?;
    let program = launch::find(&args.mode.command[0]).map_err(mode::launch_failure)?;
    let program = program.canonicalize().unwrap_or(program);
    let idle_functions: Vec<&str> = classes.own_patterns(Class::Idle).collect();
    let mut problems = Vec::new();
    let landmarks_of = |program: &Path| match symbols::fs::open(program) {
        Ok(object) => ::idle::landmarks(&object, |name| idle_functions.iter().any(|p| name_matches(p, name))),
        Err(_) => ::idle::Landmarks::default(), // a script: its interpreter has none
    };
    let landmarks = landmarks_of(&program);
    problems.extend(landmarks.problems.clone());
    let cores = args.cores.unwrap_or_else(available_cores);
    let period_ns = 1_000_000_000 / u64::from(args.rate);
    let libomp = if args.libomp { libomp(&program, &mut problems)? } else { None };
    let preload = Preload {
        command: &args.mode.command,
        library: runtimes::IDLE,
        variable: wire::idle::VARIABLE,
        beside: libomp.as_deref(),
        shared_bytes: wire::idle::FILE_BYTES,
        follow: args.follow,
    };
    let wanted = ::idle::Wanted {
        cores,
        period_ns,
        timer_only: args.no_perf,
        libomp: libomp.is_some(),
        go: !args.follow,
    };
    // Where children are followed, landmarks are given to whoever asks: seats are prepared before it is known for whom.
    let image = ::idle::prepare(&wanted, if args.follow { &[] } else { &landmarks.list });
    let (mut running, seats) =
        preload.start(&|shared| shared.put_bytes(0, &image)).map_err(mode::launch_failure)?;
    let started_ns = running.started_monotonic_ns();
    let (usage, parts) = match seats {
        None => (wait(&mut running, args)?, Vec::new()),
        Some(seats) => {
            family::give(running.shared(), &landmarks.list);
            let first = (program.clone(), landmarks);
            let family = Family::new(&image, &landmarks_of, first).map_err(mode::launch_failure)?;
            let receiver = &family;
            let usage = std::thread::scope(|scope| {
                scope.spawn(move || receiver.receive(seats));
                scope.spawn(|| family.watch());
                let usage = wait(&mut running, args);
                family.end();
                usage
            })?;
            let (parts, found) = family.parts();
            problems.extend(found);
            (usage, parts)
        }
    };
    let objects = Objects::default();
    let open = |path: &str| objects.open(path);
    let replaced = family::replacement(&parts, running.pid(), u64::MAX);
    let process = match replaced {
        Some(ended_ns) => ::idle::Process::Followed { ended_ns, replaced: true },
        None => ::idle::Process::First {
            started_ns,
            wall_ns: usage.wall_ns,
            cpu_ns: if args.follow { None } else { Some(usage.cpu_ns) },
        },
    };
    let path = program.to_string_lossy().into_owned();
    let ran = ::idle::Ran { program: &path, process, open: &open };
    let first = match ::idle::collect(running.shared().bytes(), &ran) {
        Ok(collected) => collected,
        Err(error) => {
            let error = Failure::error(Kind::Unavailable, anyhow!(error));
            args.mode.say(&error);
            return Ok(ExitCode::from(usage.ended.shell_code() as u8));
        }
    };
    problems.extend(first.problems);
    let span_ns = first.idle.span_ns;
    let mut run = recording.run(Data::Idle(Idle { rules: rules.clone(), ..first.idle }))?;
    run.exit = mode::exit_of(usage.ended);
    run.wall_ns = if replaced.is_some() { span_ns } else { usage.wall_ns };
    run.cpu_ns = if args.follow { first.cpu_ns } else { usage.cpu_ns };
    let mut runs = vec![run];
    if args.follow {
        let mut children = Children::new(first.executed);
        for part in &parts {
            children.add(&recording, part, &rules, &open)?;
        }
        problems.extend(children.problems());
        args.mode.say(children.summary(&runs[0], usage.wall_ns, cores));
        runs.append(&mut children.runs);
    }
    runs[0].problems = problems;
    recording.finish(runs)
}

/// Waits for the program's end, and sees to it if it is to come earlier.
fn wait(running: &mut Running, args: &Args) -> Result<Usage> {
    let limit = args.duration.filter(|s| s.is_finite() && *s >= 0.0).map(Duration::from_secs_f64);
    let mut asked = false;
    loop {
        let elapsed = running.elapsed();
        let longest = match limit {
            Some(limit) if elapsed < limit => limit - elapsed,
            Some(limit) => {
                running.signal(if asked { SIGKILL } else { SIGTERM });
                asked = elapsed >= limit;
                GRACE
            }
            None => Duration::from_secs(3600),
        };
        if let Some(usage) = running.wait(longest).map_err(mode::launch_failure)? {
            return Ok(usage);
        }
    }
}

/// Executables and libraries that were opened: processes share most of them.
#[derive(Default)]
struct Objects(RefCell<HashMap<String, Option<Arc<Object>>>>);

impl Objects {
    fn open(&self, path: &str) -> Option<Arc<Object>> {
        let mut known = self.0.borrow_mut();
        known.entry(path.to_owned()).or_insert_with(|| symbols::fs::open(path).ok().map(Arc::new)).clone()
    }
}

/// What `--libomp` asks for: the library, and a word about it in the profile.
fn libomp(program: &Path, problems: &mut Vec<String>) -> Result<Option<PathBuf>> {
    let reason = match openmp::needs(program) {
        OpenMp::Instead(library) => {
            problems.push(
                "OpenMP: this ran on LLVM's libomp in the place of gcc's libgomp (--libomp); other scheduling, other \
                 costs of tasks"
                    .into(),
            );
            return Ok(Some(library));
        }
        OpenMp::AsItIs => {
            problems.push("--libomp: the program does not load libgomp, so nothing was replaced".into());
            return Ok(None);
        }
        OpenMp::Missing => openmp::MISSING.to_owned(),
        OpenMp::Unfit(functions) => openmp::unfit(&functions),
    };
    Err(Failure::error(Kind::Unavailable, anyhow!("{reason}; without --libomp it runs as it is")))
}

/// Cores that this process may run on.
fn available_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| n.get() as u32)
}
