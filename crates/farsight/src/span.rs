//! `farsight span`: work, span and parallelism, in all and of every call site.
//!
//! A Rust program is built anew, in a folder of ours, with its rayon reporting to us; `cargo` in the command is the
//! sign. Other programs must bring the runtime with them or load it: see `docs/span.md`.

mod native;
mod samples;

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, anyhow};
use nix::sys::personality::{self, Persona};
use profile::span::Model;
use profile::{Data, Run};
use span_kit::collect::{self, Record};
use span_kit::openmp::{self, OpenMp};
use span_kit::{burden, cargo, cc, functions};
use wire::boot::flags;

use native::Native;

use crate::exit::{Failure, Kind};
use crate::mode::{self, ModeArgs};

/// Our only platform, as cargo's variables spell it.
const TRIPLE: &str = "X86_64_UNKNOWN_LINUX_GNU";

/// Work, span and parallelism of every call site: how far the program can scale, and what limits it
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    mode: ModeArgs,
    /// What costs are: time, without what preemption took; or executed instructions, exact and the same in every run of
    /// a program that does the same
    #[arg(long, value_enum, default_value_t = Cost::Time)]
    cost: Cost,
    /// Let parallel iterators split as they would on this many processors, whatever this machine has
    #[arg(long, value_name = "N")]
    model_cores: Option<u32>,
    /// One worker: no stealing, the cleanest times
    #[arg(long)]
    serial: bool,
    /// Also run natively with these numbers of processors, and report the speedups: 1,2
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    measure: Vec<u32>,
    /// Run the program this often and take the least cost of every strand: the longest of many equal strands is then not
    /// the one that was disturbed most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Only the program as a whole, without its call sites: costs least
    #[arg(long)]
    whole: bool,
    /// What handing over a task costs, in nanoseconds or instructions; measured on this machine if not given
    #[arg(long, value_name = "NS")]
    burden: Option<u64>,
    /// Time as the clock shows it, preemption included, for comparisons
    #[arg(long, hide = true)]
    raw_clock: bool,
}

/// What to charge.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Cost {
    /// Processor time by the time-stamp counter.
    Time,
    /// Executed instructions, counted by the engine.
    Instructions,
}

/// Runs a program in the engine, with the number of its instructions where its runtime can read it
#[derive(clap::Args)]
pub struct CountedArgs {
    /// Not in the engine
    #[arg(long)]
    natively: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Cargo's runner: what cargo is about to run natively runs in the engine. A program without rayon has no runtime of ours
/// in it, and gets the one that sees one strand.
pub fn run_counted(args: &CountedArgs) -> Result<ExitCode> {
    let mut env = Vec::new();
    let program = Path::new(&args.command[0]);
    if cargo::has_runtime(program) {
        if let Some(folder) = std::env::var_os(samples::FOLDER).filter(|_| args.natively) {
            let functions = samples::functions(Path::new(&folder), program);
            env.extend(functions.context("cannot write the list of the program's functions")?);
            env.extend(samples::preload(Path::new(&folder), None));
        }
    } else {
        let kit = cc::kit().context("cannot unpack the runtime")?;
        env.extend(samples::before_others(kit.join("lib").join(cc::LIBRARY).into()));
    }
    if args.natively {
        let error = Command::new(&args.command[0]).args(&args.command[1..]).envs(env).exec();
        return Err(error).with_context(|| format!("cannot run {}", args.command[0].to_string_lossy()));
    }
    let usage = counted(&args.command, &env).map_err(mode::launch_failure)?;
    Ok(ExitCode::from(usage.ended.shell_code() as u8))
}

/// A file with the functions whose calls are sites, for as long as the run takes.
fn named_functions(list: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(list.as_bytes())?;
    Ok(file)
}

fn counted(command: &[OsString], env: &[(OsString, OsString)]) -> Result<launch::Usage, launch::LaunchError> {
    let spec = launch::Spec {
        command,
        blob: runtimes::COUNT,
        flags: flags::WATCH_FLAGS | flags::RUNNING,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &launch::counts::prepare,
        duration: None,
    };
    // Where things lie decides how many instructions it takes to copy or print them: two runs shall agree. Children
    // inherit it; a kernel that refuses leaves the run as good as any.
    if let Ok(persona) = personality::get() {
        let _refused = personality::set(persona | Persona::ADDR_NO_RANDOMIZE);
    }
    // Calls between forks are sites. A program without symbols has none that could be named.
    let mut env = env.to_vec();
    let list = launch::find(&command[0]).ok().and_then(|program| functions::list(&program, false));
    let file = list.map(|list| named_functions(&list)).transpose().map_err(|cause| {
        launch::LaunchError::System { what: "write the list of the program's functions", cause, hint: "" }
    })?;
    if let Some(file) = &file {
        env.push((functions::VARIABLE.into(), file.path().into()));
    }
    let o = launch::run_in(&spec, &env, None)?;
    Ok(launch::Usage { ended: o.ended, wall_ns: o.wall_ns, cpu_ns: o.cpu_ns, rss_bytes_max: o.rss_bytes_max })
}

/// If cargo called us as its rustc wrapper: the compiler's exit code.
pub fn as_wrapper() -> Option<ExitCode> {
    std::env::var_os(cargo::SOURCE_FOLDER)?;
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let compiler = args.first()?.to_str().map(|a| a.rsplit('/').next().unwrap_or(a))?;
    if !(compiler.contains("rustc") || compiler.contains("clippy-driver") || args[0].to_str()?.contains('/'))
    {
        return None;
    }
    Some(cargo::wrap(&args).unwrap_or_else(|e| {
        eprintln!("farsight: {e}");
        ExitCode::from(101)
    }))
}

/// `cargo farsight span [flags] [-- run --release ...]`: cargo calls `cargo-farsight farsight span ...`, which is this
/// executable under another name. The command is cargo's, and `run --release` if there is none.
pub fn as_cargo_command(mut args: Vec<OsString>) -> Vec<OsString> {
    let by_cargo =
        args.first().is_some_and(|a| Path::new(a).file_name().is_some_and(|n| n == "cargo-farsight"));
    if !by_cargo || args.get(1).is_none_or(|a| a != "farsight") {
        return args;
    }
    args.remove(1);
    if args.get(1).is_some_and(|a| a == "span") {
        let at = args.iter().position(|a| a == "--").unwrap_or_else(|| {
            args.extend(["--", "run", "--release"].map(OsString::from));
            args.len() - 3
        });
        if args.get(at + 1).is_some_and(|a| a != "cargo") {
            args.insert(at + 1, "cargo".into());
        }
    }
    args
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let in_engine = matches!(args.cost, Cost::Instructions);
    let recording = args.mode.begin("span")?;
    let out = tempfile::tempdir().context("cannot make a folder for the records")?;
    let command = &args.mode.command;
    let by_cargo = Path::new(&command[0]).file_name().is_some_and(|n| n == "cargo");
    let burden_ns =
        args.burden.unwrap_or_else(|| if in_engine { burden::instructions() } else { burden::measure() });
    let mut env: Vec<(OsString, OsString)> = vec![
        ("FARSIGHT_SPAN_OUT".into(), out.path().into()),
        ("FARSIGHT_SPAN_BURDEN".into(), burden_ns.to_string().into()),
    ];
    if in_engine {
        env.push(("FARSIGHT_SPAN_COST".into(), "instructions".into()));
    }
    if let Some(n) = args.model_cores {
        env.push(("FARSIGHT_SPAN_MODEL_CORES".into(), n.to_string().into()));
    }
    if args.raw_clock {
        env.push(("FARSIGHT_SPAN_CLOCK".into(), "raw".into()));
    }
    if args.whole {
        env.push(("FARSIGHT_SPAN_WHOLE".into(), "1".into()));
    }
    if args.serial {
        env.extend(workers(1));
        env.push(("FARSIGHT_SPAN_SERIAL".into(), "1".into()));
    }
    // Calls between forks: by samples, where time is measured.
    let aside = tempfile::tempdir().context("cannot make a folder for the sampler")?;
    let sampled = !in_engine && !args.whole;
    if sampled {
        samples::unpack(aside.path()).context("cannot unpack the sampler")?;
    }
    let mut target = None;
    if by_cargo {
        if sampled {
            env.push((samples::FOLDER.into(), aside.path().into()));
        }
        let us = std::env::current_exe().context("cannot find the farsight executable")?;
        let build = cargo::prepare(&us).context("cannot prepare the build")?;
        env.extend(build.env);
        // A runner of the user's own is left alone where it can be.
        if in_engine || !cargo::has_runner(TRIPLE) {
            let mut runner = us.into_os_string();
            runner.push(if in_engine { " run-counted --" } else { " run-counted --natively --" });
            env.push((format!("CARGO_TARGET_{TRIPLE}_RUNNER").into(), runner));
        }
        target = Some(build.target);
    } else {
        // For programs that bring no runtime along: they are one strand, which is an answer too.
        let kit = cc::kit().context("cannot unpack the runtime")?;
        let mut preload = OsString::from(kit.join("lib").join(cc::LIBRARY));
        match launch::find(&command[0]).map_or(OpenMp::AsItIs, |program| openmp::needs(&program)) {
            OpenMp::AsItIs => {}
            OpenMp::Instead(library) => {
                preload.push(":");
                preload.push(library);
            }
            OpenMp::Missing => args.mode.say(openmp::MISSING),
            OpenMp::Unfit(functions) => args.mode.say(openmp::unfit(&functions)),
        }
        if launch::find(&command[0]).is_ok_and(|program| cargo::uses_rayon_unseen(&program)) {
            args.mode.say(
                "the program uses rayon, but was not built by farsight, so its tasks are not seen: run it as farsight \
                 span -- cargo run --release",
            );
        }
        if let Some(n) = args.model_cores {
            env.push(("OMP_NUM_THREADS".into(), n.to_string().into()));
        }
        if let Ok(program) = launch::find(&command[0])
            && sampled
            && (openmp::is_used(&program) || cargo::has_runtime(&program))
        {
            let functions = samples::functions(aside.path(), &program);
            env.extend(functions.context("cannot write the list of the program's functions")?);
            env.extend(samples::preload(aside.path(), Some(preload)));
        } else {
            env.extend(samples::before_others(preload));
        }
    }
    let strands = tempfile::tempdir().context("cannot make a folder for the strands")?;
    if args.runs > 1 {
        env.push(("FARSIGHT_SPAN_STRANDS".into(), strands.path().into()));
    }
    // What forks cost is looked at before and behind: it changes with what else the machine does.
    let mut forks = burden::Forks::default();
    if !in_engine && args.burden.is_none() && (by_cargo || has_runtime(&command[0])) {
        forks.observe();
    }
    let run_once =
        || if in_engine && !by_cargo { counted(command, &env) } else { launch::plain::run(command, &env) };
    let mut usage = run_once().map_err(mode::launch_failure)?;
    for _ in 1..args.runs {
        // The last run's record has what all runs say.
        for file in std::fs::read_dir(out.path()).context("cannot read the records")?.flatten() {
            std::fs::remove_file(file.path()).context("cannot remove a record")?;
        }
        usage = run_once().map_err(mode::launch_failure)?;
    }
    let (mut records, mut problems) = collect::read(out.path()).context("cannot read the records")?;
    // Build scripts that use rayon are not the program.
    if let Some(target) = &target {
        let scripts = |r: &Record| {
            Path::new(&r.program).strip_prefix(target).is_ok_and(|p| p.iter().any(|c| c == "build"))
        };
        records.retain(|r| !scripts(r));
    }
    // Of helpers that a program started, only those that forked tasks say something.
    if records.iter().any(|r| r.span.spawns > 0) {
        records.retain(|r| r.span.spawns > 0);
    } else {
        records.sort_by_key(|r| std::cmp::Reverse(r.span.work));
        records.truncate(1);
    }
    if !by_cargo && !args.whole && records.iter().any(has_named_calls) && is_nameless(&command[0]) {
        problems.push(NAMELESS.into());
    }
    if records.is_empty() {
        if usage.ended != launch::Ended::Code(0) {
            return Ok(ExitCode::from(usage.ended.shell_code() as u8));
        }
        return Err(Failure::error(Kind::Unavailable, anyhow!("{}", nothing(target.as_deref()))));
    }
    let mut runs = Vec::new();
    for mut record in records {
        if !args.measure.is_empty() {
            let native = match &target {
                Some(target) => Native::by_cargo(command, &record, target, &mut problems),
                None => Native::program(command),
            };
            record.span.measured = native.measure(&args.measure, &mut problems);
        }
        // Measured with rayon's scheduler: nothing is known of others.
        if record.span.model == Model::Rayon && record.span.spawns > 0 && args.burden.is_none() {
            record.span.fork_extra_milli = if in_engine {
                burden::fork_extra_instructions()
            } else {
                forks.observe();
                forks.extra_ps()
            };
        }
        let mut run: Run = recording.run(Data::Span(record.span))?;
        run.exit = mode::exit_of(usage.ended);
        run.wall_ns = usage.wall_ns;
        run.cpu_ns = usage.cpu_ns;
        run.problems = record.problems;
        run.problems.append(&mut problems);
        if by_cargo {
            run.program = crate::started::program(record.program.as_ref());
        }
        runs.push(run);
    }
    recording.finish(runs)
}

const NAMELESS: &str = "the program has no symbols, so calls between its forks are no sites, and the time that they take is \
                        their task's: do not strip it";

/// Whether calls between forks are known by the program's symbols: Cilk's are by its source.
fn has_named_calls(record: &Record) -> bool {
    record.span.spawns > 0 && matches!(record.span.model, Model::Rayon | Model::OpenMp)
}

/// Whether rayon in this program reports to us.
fn has_runtime(program: &OsString) -> bool {
    launch::find(program).is_ok_and(|program| cargo::has_runtime(&program))
}

fn is_nameless(program: &OsString) -> bool {
    launch::find(program).is_ok_and(|program| functions::list(&program, false).is_none())
}

/// Why there is no record, as far as can be told.
fn nothing(target: Option<&Path>) -> String {
    match target {
        Some(target) if !cargo::has_rayon(target) => {
            "the program left no record: nothing in its build uses rayon, so it has no parallelism that farsight could \
             see; OpenMP and Cilk programs are run by themselves, not by cargo"
                .into()
        }
        Some(_) => "the program left no record: it uses rayon, but did not run, or did not end by exit".into(),
        None => "the program left no record: it is statically linked, or did not end by exit; run Rust programs as \
                 farsight span -- cargo run --release"
            .into(),
    }
}

/// Variables that give every runtime that many workers.
fn workers(n: u32) -> [(OsString, OsString); 3] {
    ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "CILK_NWORKERS"].map(|k| (k.into(), n.to_string().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_farsight_span_is_farsight_span_of_cargo() {
        let of = |text: &str| {
            let args = as_cargo_command(text.split(' ').map(OsString::from).collect());
            args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        for (given, expected) in [
            (
                "/b/cargo-farsight farsight span --serial",
                "/b/cargo-farsight span --serial -- cargo run --release",
            ),
            ("cargo-farsight farsight span -- test -q", "cargo-farsight span -- cargo test -q"),
            ("cargo-farsight farsight doctor", "cargo-farsight doctor"),
            ("farsight span -- farsight", "farsight span -- farsight"),
        ] {
            assert_eq!(of(given), expected);
        }
    }
}
