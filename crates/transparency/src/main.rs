//! `transparency`: run the rings and print what differs. Exit status 0 when nothing does, 1 otherwise, 2 on misuse.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use transparency::case::{self, Case};
use transparency::compile::Builder;
use transparency::judge::{Court, Verdict};
use transparency::limits::LIMITS;
use transparency::real;
use transparency::run;
use transparency::spec::{self, Ring};

#[derive(Parser)]
#[command(about = "Runs programs natively and under a wrapper, and reports every difference")]
struct Args {
    /// The command to put in front of each program; `{scratch}` in it is a folder for the tool's own files.
    #[arg(long, default_value = "env")]
    wrapper: String,
    /// `fast` for CI, `full` for real programs too, `real` for those alone.
    #[arg(long, default_value = "fast")]
    ring: String,
    /// Only cases whose name contains one of these.
    #[arg(long)]
    only: Vec<String>,
    /// Leave out cases whose name contains one of these.
    #[arg(long)]
    except: Vec<String>,
    /// Leave out what the engine is known not to do yet.
    #[arg(long)]
    except_limits: bool,
    /// Runs of each case under the wrapper, instead of the case's own number.
    #[arg(long)]
    repeat: Option<u32>,
    /// Cases at a time.
    #[arg(long, default_value_t = 1)]
    jobs: usize,
    /// Print the names and stop.
    #[arg(long)]
    list: bool,
    /// Build the programs, print `name path` for each, and stop.
    #[arg(long)]
    build: bool,
    /// Print the verdict of every case, not only of those that fail.
    #[arg(short, long)]
    verbose: bool,
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let court = Court {
        wrapper: spec::words(&args.wrapper),
        builder: Builder { out: target.join("test-programs") },
        work: target.join("transparency"),
        programs: root.join("test-programs/real"),
        repeat: args.repeat,
    };
    let mut cases = case::of_test_programs(&root.join("test-programs"))?;
    match args.ring.as_str() {
        "fast" => cases.retain(|c| c.ring == Ring::Fast),
        "full" => cases.extend(real::cases()),
        "real" => cases = real::cases(),
        other => bail!("--ring is fast, full or real, not `{other}`"),
    }
    cases.retain(|c| args.only.is_empty() || args.only.iter().any(|o| c.name.contains(o.as_str())));
    cases.retain(|c| !args.except.iter().any(|e| c.name.contains(e.as_str())));
    cases.retain(|c| !(args.except_limits && LIMITS.contains(&c.name.as_str())));
    if args.list {
        for case in &cases {
            println!("{}", case.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.build {
        for case in cases.iter().filter(|c| c.skip_reason().is_none()) {
            println!("{} {}", case.name, case.command(&court.builder)?.join(" "));
        }
        return Ok(ExitCode::SUCCESS);
    }
    ctrlc::set_handler(|| {
        run::end_all();
        std::process::exit(130);
    })?;
    let start = Instant::now();
    let verdicts = judge_all(&court, cases, args.jobs.max(1), args.verbose);
    let count = |f: fn(&Verdict) -> bool| verdicts.iter().filter(|(_, v)| f(v)).count();
    let same = count(|v| matches!(v, Verdict::Same(_)));
    let skipped = count(|v| matches!(v, Verdict::Skipped(_)));
    let failed = verdicts.len() - same - skipped;
    println!(
        "{} cases under `{}`: {same} same, {failed} failed, {skipped} skipped, {:.0} s",
        verdicts.len(),
        args.wrapper,
        start.elapsed().as_secs_f64()
    );
    for (case, verdict) in &verdicts {
        match verdict {
            Verdict::Skipped(reason) => println!("  skipped {}: {reason}", case.name),
            Verdict::Same(_) => {}
            _ => println!("  failed  {}", case.name),
        }
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn judge_all(court: &Court, cases: Vec<Case>, jobs: usize, verbose: bool) -> Vec<(Case, Verdict)> {
    let queue = Mutex::new(cases.into_iter().collect::<VecDeque<_>>());
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().ok().and_then(|mut q| q.pop_front()) else { break };
                    let start = Instant::now();
                    let verdict = court.judge(&case);
                    print(&case.name, &verdict, start.elapsed().as_secs_f64(), verbose);
                    if let Ok(mut done) = done.lock() {
                        done.push((case, verdict));
                    }
                }
            });
        }
    });
    let mut all = done.into_inner().unwrap_or_default();
    all.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    all
}

fn print(name: &str, verdict: &Verdict, seconds: f64, verbose: bool) {
    match verdict {
        Verdict::Same(runs) if verbose => println!("same    {name} ({runs} runs, {seconds:.1} s)"),
        Verdict::Skipped(why) if verbose => println!("skipped {name}: {why}"),
        Verdict::Same(_) | Verdict::Skipped(_) => {}
        Verdict::Native(wrong) => println!("NATIVE  {name}: {}", wrong.join("\n    ")),
        Verdict::Differs(bad, runs, what) => {
            println!("DIFFERS {name} in {bad} of {runs} runs ({seconds:.1} s):\n    {}", what.join("\n    "));
        }
        Verdict::Broken(why) => println!("BROKEN  {name}: {why}"),
    }
}
