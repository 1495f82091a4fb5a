//! `cargo xtask bench engine`: what running under the engine costs.
//!
//! Twelve programs of 0.1 to 1 s, natively and under each wrapper by turns, so that a slow phase of the machine hits all
//! alike. CPU time (user + system) and peak memory come from `wait4` in a small sampler process; medians are compared
//! as ratios within this one run, never with figures of another day. Output must be the native one byte by byte, or
//! the row says so: a wrong result is not a fast one.
//!
//! Two more tables: the wall-clock speedup of the same work by two threads over one, and the start-up of `true`.
//! Wall-clock figures mean little on a busy machine; the load is printed with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::inputs;
use crate::packages;

#[derive(clap::Args)]
pub struct Args {
    /// `NAME=COMMAND` to put in front of each program; repeat to compare. Default: `farsight count`.
    #[arg(long = "wrapper", value_name = "NAME=COMMAND")]
    pub(super) wrappers: Vec<String>,
    /// Runs of each program under each wrapper; medians are printed.
    #[arg(long, default_value_t = 5)]
    pub(super) runs: usize,
    /// Only programs whose name contains one of these.
    #[arg(long)]
    pub(super) only: Vec<String>,
    /// Leave out the tables of parallel speedup and start-up.
    #[arg(long)]
    pub(super) no_extra: bool,
}

/// A row: name, command with `{dir}` for the folder of inputs and `{cc1}` for the compiler proper, and its input.
const PROGRAMS: &[(&str, &[&str], &str)] = &[
    ("matmul", &["{dir}/matmul"], "/dev/null"),
    ("msort", &["{dir}/msort"], "/dev/null"),
    ("hasht", &["{dir}/hasht"], "/dev/null"),
    ("btree", &["{dir}/btree"], "/dev/null"),
    ("strs", &["{dir}/strs"], "/dev/null"),
    ("fib38", &["{dir}/fib38"], "/dev/null"),
    ("gzip-9", &["gzip", "-9n"], "{dir}/text-10m"),
    ("bzip2-9", &["bzip2", "-9"], "{dir}/text-5m"),
    ("xz-6", &["xz", "-6", "-T1"], "{dir}/text-2m"),
    ("sqlite3", &["sqlite3", ":memory:"], "{dir}/session.sql"),
    ("python3", &["/usr/bin/python3", "-S", "{dir}/program.py"], "/dev/null"),
    ("cc1-O2", &["{cc1}", "-quiet", "-O2", "{dir}/source.i", "-o", "-"], "/dev/null"),
];

/// Programs with `{threads}` threads, likewise.
const PARALLEL: &[(&str, &[&str], &str)] = &[
    ("parallel", &["{dir}/parallel", "{threads}"], "/dev/null"),
    ("pigz-6", &["pigz", "-p", "{threads}", "-c"], "{dir}/text-10m"),
    ("xz-1", &["xz", "-1", "-T", "{threads}", "--block-size=500000", "-c"], "{dir}/text-5m"),
];

struct Wrapper {
    name: String,
    words: Vec<String>,
}

/// What one run cost.
#[derive(Clone, Copy, Debug)]
struct Sample {
    wall_ns: f64,
    cpu_ns: f64,
    rss_kb: f64,
}

pub fn run(args: Args) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has no parent folder")?;
    packages::ensure(&[packages::COMPILERS, packages::REAL, packages::BENCHED])?;
    let bench = Bench::prepare(root)?;
    let wrappers = wrappers(&args.wrappers, root)?;
    ensure!(args.runs > 0, "--runs must be at least 1");
    println!("load {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    bench.ratios(&wrappers, &args)?;
    if !args.no_extra {
        bench.speedup(&wrappers, args.runs)?;
        bench.startup(&wrappers, args.runs.max(11))?;
    }
    Ok(())
}

fn wrappers(given: &[String], root: &Path) -> Result<Vec<Wrapper>> {
    let default = format!(
        "count={} count --no-summary -q -o /dev/null --",
        root.join("target/release/farsight").display()
    );
    let given = if given.is_empty() { std::slice::from_ref(&default) } else { given };
    let mut all = vec![Wrapper { name: "native".into(), words: Vec::new() }];
    for text in given {
        let (name, command) =
            text.split_once('=').with_context(|| format!("--wrapper wants NAME=COMMAND, not `{text}`"))?;
        all.push(Wrapper {
            name: name.into(),
            words: command.split_whitespace().map(String::from).collect(),
        });
    }
    Ok(all)
}

struct Bench {
    dir: PathBuf,
    cc1: String,
}

impl Bench {
    /// Builds the programs and writes the inputs.
    fn prepare(root: &Path) -> Result<Bench> {
        let dir = root.join("target/bench/engine");
        fs::create_dir_all(&dir)?;
        for name in ["matmul", "msort", "hasht", "btree", "strs", "fib38", "parallel", "sample"] {
            let source = root.join("bench/engine").join(name).with_extension("c");
            let mut gcc = Command::new("gcc");
            gcc.args(["-std=gnu17", "-O2", "-pthread"]).arg(&source).arg("-o").arg(dir.join(name));
            if name == "sample" {
                gcc.arg("-static");
            }
            ensure!(gcc.status().context("cannot run gcc")?.success(), "cannot build {}", source.display());
        }
        for (name, text) in [
            ("text-10m", inputs::prose(10_000_000, 1)),
            ("text-5m", inputs::prose(5_000_000, 3)),
            ("text-2m", inputs::prose(2_000_000, 2)),
            ("session.sql", inputs::sql()),
            ("program.py", inputs::python()),
            ("source.i", inputs::c_source()),
        ] {
            fs::write(dir.join(name), text)?;
        }
        let cc1 = Command::new("gcc").arg("-print-prog-name=cc1").output()?.stdout;
        Ok(Bench { dir, cc1: String::from_utf8(cc1)?.trim().to_owned() })
    }

    fn expand(&self, text: &str) -> String {
        text.replace("{dir}", &self.dir.display().to_string()).replace("{cc1}", &self.cc1)
    }

    /// One run; its output stays in `out-NAME`.
    fn sample(&self, wrapper: &Wrapper, command: &[String], input: &str) -> Result<Sample> {
        let output = Command::new(self.dir.join("sample"))
            .arg(input)
            .arg(self.output(wrapper))
            .arg("--")
            .args(&wrapper.words)
            .args(command)
            .current_dir(&self.dir)
            .env("LC_ALL", "C.UTF-8")
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        let [wall_ns, cpu_ns, rss_kb, status] = numbers[..] else {
            bail!("the sampler failed on {command:?}: {}", String::from_utf8_lossy(&output.stderr));
        };
        if status != 0.0 {
            bail!(
                "{} {command:?} ended with {status}: {}",
                wrapper.name,
                String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default()
            );
        }
        Ok(Sample { wall_ns, cpu_ns, rss_kb })
    }

    fn output(&self, wrapper: &Wrapper) -> PathBuf {
        self.dir.join(format!("out-{}", wrapper.name))
    }

    fn ratios(&self, wrappers: &[Wrapper], args: &Args) -> Result<()> {
        let selected = PROGRAMS
            .iter()
            .filter(|p| args.only.is_empty() || args.only.iter().any(|o| p.0.contains(o.as_str())));
        print!("{:<10}{:>10}", "program", "native s");
        for w in &wrappers[1..] {
            print!("{:>12}", w.name);
        }
        print!("{:>12}", "native MB");
        for w in &wrappers[1..] {
            print!("{:>12}", format!("{} MB", w.name));
        }
        println!();
        let mut logs = vec![Vec::new(); wrappers.len()];
        let mut worst = vec![0.0f64; wrappers.len()];
        for (name, command, input) in selected {
            let command: Vec<String> = command.iter().map(|w| self.expand(w)).collect();
            let input = self.expand(input);
            let mut samples = vec![Vec::new(); wrappers.len()];
            let mut note = String::new();
            for _ in 0..args.runs {
                for (w, wrapper) in wrappers.iter().enumerate() {
                    match self.sample(wrapper, &command, &input) {
                        Ok(sample) => samples[w].push(sample),
                        Err(error) if w == 0 => return Err(error),
                        Err(error) => note = format!("  {error}"),
                    }
                    if w > 0
                        && note.is_empty()
                        && fs::read(self.output(wrapper))? != fs::read(self.output(&wrappers[0]))?
                    {
                        note = format!("  OUTPUT DIFFERS under {}", wrapper.name);
                    }
                }
            }
            let cpu: Vec<f64> = samples.iter().map(|s| median(s, |x| x.cpu_ns)).collect();
            let rss: Vec<f64> = samples.iter().map(|s| median(s, |x| x.rss_kb) / 1024.0).collect();
            print!("{name:<10}{:>10.3}", cpu[0] / 1e9);
            for w in 1..wrappers.len() {
                print!("{:>12.2}", cpu[w] / cpu[0]);
                if cpu[w].is_finite() {
                    logs[w].push((cpu[w] / cpu[0]).ln());
                    worst[w] = worst[w].max(cpu[w] / cpu[0]);
                }
            }
            for (w, mb) in rss.iter().enumerate() {
                let over = w > 0 && *mb > 2.0 * rss[0] + 30.0;
                print!("{:>12}", format!("{mb:.1}{}", if over { "!" } else { "" }));
            }
            println!("{note}");
        }
        for (label, values) in [
            (
                "geomean",
                logs.iter().map(|l| (l.iter().sum::<f64>() / l.len() as f64).exp()).collect::<Vec<_>>(),
            ),
            ("worst", worst),
        ] {
            print!("{label:<10}{:>10}", "");
            values[1..].iter().for_each(|v| print!("{v:>12.2}"));
            println!();
        }
        println!(
            "CPU time as a ratio to native, median of {}; `!` = more than 2 x native + 30 MB of memory",
            args.runs
        );
        Ok(())
    }

    fn speedup(&self, wrappers: &[Wrapper], runs: usize) -> Result<()> {
        println!(
            "\nspeedup by a second thread, and what is kept of 2 if natively it were 2 (load {})",
            load()
        );
        print!("{:<10}", "program");
        wrappers.iter().for_each(|wrapper| print!("{:>17}", wrapper.name));
        println!();
        for (name, command, input) in PARALLEL {
            let command = |threads: &str| -> Vec<String> {
                command.iter().map(|word| self.expand(word).replace("{threads}", threads)).collect()
            };
            let mut walls = vec![[Vec::new(), Vec::new()]; wrappers.len()];
            for _ in 0..runs {
                for (wrapper, walls) in wrappers.iter().zip(&mut walls) {
                    for (threads, walls) in ["1", "2"].iter().zip(walls) {
                        walls.push(self.sample(wrapper, &command(threads), &self.expand(input))?);
                    }
                }
            }
            let speedups: Vec<f64> = walls
                .iter()
                .map(|walls| median(&walls[0], |s| s.wall_ns) / median(&walls[1], |s| s.wall_ns))
                .collect();
            print!("{name:<10}");
            speedups.iter().for_each(|speedup| print!("{speedup:>9.2} {:>7.2}", 2.0 * speedup / speedups[0]));
            println!();
        }
        Ok(())
    }

    fn startup(&self, wrappers: &[Wrapper], runs: usize) -> Result<()> {
        println!("\nstart-up of `true`, median of {runs} (load {})", load());
        let mut samples = vec![Vec::new(); wrappers.len()];
        for _ in 0..runs {
            for (w, wrapper) in wrappers.iter().enumerate() {
                samples[w].push(self.sample(wrapper, &["true".into()], "/dev/null")?);
            }
        }
        for (w, wrapper) in wrappers.iter().enumerate() {
            let [wall, cpu] = [median(&samples[w], |s| s.wall_ns), median(&samples[w], |s| s.cpu_ns)];
            println!("{:<10}{:>8.1} ms wall {:>8.1} ms CPU", wrapper.name, wall / 1e6, cpu / 1e6);
        }
        Ok(())
    }
}

fn load() -> String {
    fs::read_to_string("/proc/loadavg").unwrap_or_default().split_whitespace().take(1).collect()
}

fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_none() {
        let s =
            |v: &[f64]| v.iter().map(|&c| Sample { wall_ns: c, cpu_ns: c, rss_kb: c }).collect::<Vec<_>>();
        assert_eq!(median(&s(&[3.0, 1.0, 2.0]), |x| x.cpu_ns), 2.0);
        assert_eq!(median(&s(&[4.0, 1.0, 2.0, 3.0]), |x| x.cpu_ns), 2.5);
        assert!(median(&s(&[]), |x| x.cpu_ns).is_nan());
    }

    #[test]
    fn wrappers_need_a_name() {
        assert!(wrappers(&["no-equals-sign".into()], Path::new("/")).is_err());
        let all = wrappers(&["vg=valgrind --tool=none -q".into()], Path::new("/")).unwrap();
        assert_eq!((all[0].name.as_str(), all[1].words.len()), ("native", 3));
    }
}
