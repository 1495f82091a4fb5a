//! The programs of the benchmark, and running them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::shell;

/// A program: name, source, arguments.
pub struct Program {
    pub name: &'static str,
    /// A C source, or the name of a binary of the rayon project.
    pub source: Source,
    pub arguments: &'static [&'static str],
}

#[derive(Clone, Copy)]
pub enum Source {
    Cilk(&'static str),
    Rayon(&'static str),
}

const fn cilk(name: &'static str, source: &'static str, arguments: &'static [&'static str]) -> Program {
    Program { name, source: Source::Cilk(source), arguments }
}

const fn rayon(name: &'static str, binary: &'static str, arguments: &'static [&'static str]) -> Program {
    Program { name, source: Source::Rayon(binary), arguments }
}

pub const PROGRAMS: &[Program] = &[
    // Cilk cannot inline what it spawns, and its serial run is taken to make the same calls.
    cilk("fib", "test-programs/span/fib.c", &["32"]),
    cilk("quicksort", "test-programs/span/qsort.c", &["2000000"]),
    cilk("matmul", "test-programs/span/mm.c", &["512"]),
    cilk("strassen", "bench/span/strassen.c", &["1024"]),
    cilk("lu", "bench/span/lu.c", &["768"]),
    cilk("cholesky", "bench/span/cholesky.c", &["1024"]),
    cilk("fft", "bench/span/fft.c", &["1048576"]),
    cilk("heat", "bench/span/heat.c", &["150", "1024"]),
    cilk("nqueens", "bench/span/nqueens.c", &["14"]),
    cilk("mergesort", "bench/span/mergesort.c", &["3000000"]),
    cilk("pbfs", "bench/span/pbfs.c", &["2000000"]),
    rayon("rayon pipeline", "pipeline", &["3000000"]),
];

/// Names the folder of the sampler.
pub const SAMPLER: &str = "FARSIGHT_SPAN_SAMPLER";

/// Beside the twelve: the bar for the smallest tasks is its own.
pub const RAYON_FIB: Program = rayon("rayon fib", "fib", &["35"]);

/// Everything built, and where.
pub struct Bench {
    root: PathBuf,
    dir: PathBuf,
    /// The instrumented binaries of the rayon project, by name.
    instrumented: HashMap<String, PathBuf>,
}

impl Bench {
    pub fn prepare() -> Result<Bench> {
        let root = shell::root();
        let dir = root.join("target/bench/span");
        std::fs::create_dir_all(dir.join("records"))?;
        let mut bench = Bench { root, dir, instrumented: HashMap::new() };
        ensure!(bench.farsight().exists(), "build it first: cargo build --release");
        bench.unpack_sampler()?;
        let sample = bench.dir.join("sample").display().to_string();
        shell::output(&["gcc", "-O2", "-static", "bench/engine/sample.c", "-o", &sample])?;
        for program in PROGRAMS {
            if let Source::Cilk(source) = program.source {
                let flags: &[&str] =
                    if program.name == "fib" { &["-fno-inline", "-fno-optimize-sibling-calls"] } else { &[] };
                bench.compile(source, program.name, flags)?;
            }
        }
        bench.build_rayon()?;
        Ok(bench)
    }

    pub fn farsight(&self) -> PathBuf {
        self.root.join("target/release/farsight")
    }

    /// Where the library that samples strands lies, as in a run of the tool.
    pub fn sampler(&self) -> PathBuf {
        self.dir.join("sampler")
    }

    /// Takes the library from where the tool's build has left it.
    fn unpack_sampler(&self) -> Result<()> {
        let mut built = Vec::new();
        for unit in std::fs::read_dir(self.root.join("target/release/build"))?.flatten() {
            let blob = unit.path().join("out/strand.blob");
            if let Ok(about) = blob.metadata() {
                built.push((about.modified()?, blob));
            }
        }
        let (_, newest) = built.into_iter().max().context("the tool was built without its sampler")?;
        std::fs::create_dir_all(self.sampler())?;
        std::fs::copy(newest, self.sampler().join("libfarsight_strand.so"))?;
        Ok(())
    }

    /// Where a Cilk program is: profiled, or its serial elision.
    pub fn cilk(&self, name: &str, profiled: bool) -> PathBuf {
        self.dir.join(format!("{}{}", name.replace(' ', "-"), if profiled { ".span" } else { "" }))
    }

    /// Compiles a Cilk source both ways.
    pub fn compile(&self, source: &str, name: &str, flags: &[&str]) -> Result<()> {
        for profiled in [false, true] {
            let mut command = if profiled {
                let mut c = Command::new(self.farsight());
                c.arg("cc").env("XDG_CACHE_HOME", self.cache());
                c
            } else {
                let mut c = Command::new("cc");
                c.arg("-I").arg(self.root.join("crates/span-c/include"));
                c
            };
            // Where a hot loop lies decides over a third of its speed, and that is not what is compared.
            command
                .args(["-O2", "-g", "-falign-loops=64", "-falign-functions=64"])
                .args(flags)
                .arg(self.root.join(source))
                .arg("-o");
            command.arg(self.cilk(name, profiled)).arg("-lm");
            ensure!(command.status()?.success(), "{source} does not compile");
        }
        Ok(())
    }

    /// The project of the rayon programs.
    pub fn rayon_project(&self) -> PathBuf {
        self.root.join("bench/span/parallel-iterators")
    }

    fn build_rayon(&mut self) -> Result<()> {
        let folder = self.rayon_project();
        let native = Command::new("cargo")
            .args(["build", "--release", "-q", "--target-dir"])
            .arg(self.dir.join("rayon"))
            .current_dir(&folder)
            .status()?;
        ensure!(native.success(), "the rayon project does not build");
        for name in ["fib", "pipeline", "dag"] {
            // One run with the tool builds it.
            self.document(
                &["span", "--burden", "1000"],
                &["cargo", "run", "--release", "-q", "--bin", name, "--", "1", "1"],
                &folder,
            )?;
            let built = self.newest(name)?.with_context(|| format!("the tool built no {name}"))?;
            self.instrumented.insert(name.to_owned(), built);
        }
        Ok(())
    }

    /// The tool's own folder: ours for the benchmark, so that what it builds is found.
    fn cache(&self) -> PathBuf {
        self.dir.join("cache")
    }

    /// `.../span/target-*/PROJECT/release/NAME`, built last.
    fn newest(&self, name: &str) -> Result<Option<PathBuf>> {
        let mut found = Vec::new();
        for version in std::fs::read_dir(self.cache().join("farsight/span"))?.flatten() {
            let Ok(projects) = std::fs::read_dir(version.path()) else { continue };
            for project in projects.flatten() {
                let program = project.path().join("release").join(name);
                if let Ok(about) = program.metadata() {
                    found.push((about.modified()?, program));
                }
            }
        }
        found.sort();
        Ok(found.pop().map(|f| f.1))
    }

    pub fn rayon(&self, name: &str, profiled: bool) -> PathBuf {
        if profiled {
            return self.instrumented.get(name).cloned().unwrap_or_default();
        }
        self.dir.join("rayon/release").join(name)
    }

    pub fn path(&self, source: Source, name: &str, profiled: bool) -> PathBuf {
        match source {
            Source::Cilk(_) => self.cilk(name, profiled),
            Source::Rayon(binary) => self.rayon(binary, profiled),
        }
    }

    /// CPU seconds of one run. Where the environment names the sampler, the program is started as cargo's runner would,
    /// which also lists the program's functions.
    pub fn cpu(&self, program: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Result<(f64, String)> {
        let out = self.dir.join("output");
        let records = self.dir.join("records");
        for old in std::fs::read_dir(&records)?.flatten() {
            std::fs::remove_file(old.path())?;
        }
        let mut sample = Command::new(self.dir.join("sample"));
        sample.arg("/dev/null").arg(&out).arg("--");
        if env.iter().any(|(name, _)| *name == SAMPLER) {
            sample.arg(self.farsight()).args(["run-counted", "--natively", "--"]);
        }
        let output = sample
            .arg(program)
            .args(arguments)
            .env("FARSIGHT_SPAN_OUT", &records)
            .envs(env.iter().copied())
            .output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let numbers: Vec<f64> = text.split_whitespace().filter_map(|w| w.parse().ok()).collect();
        let [_, cpu_ns, _, 0.0] = numbers[..] else {
            bail!("{} failed: {}", program.display(), String::from_utf8_lossy(&output.stderr));
        };
        Ok((cpu_ns / 1e9, std::fs::read_to_string(out)?))
    }

    /// Runs farsight; what the program printed, and the document.
    pub fn document(&self, mode: &[&str], command: &[&str], folder: &Path) -> Result<(String, Value)> {
        let json = self.dir.join("document.json");
        let _ = std::fs::remove_file(&json);
        let output = Command::new(self.farsight())
            .args(mode)
            .env("XDG_CACHE_HOME", self.cache())
            .args(["-q", "-o", "/dev/null", "--json"])
            .arg(&json)
            .arg("--")
            .args(command)
            .current_dir(folder)
            .output()?;
        ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read_to_string(&json)?;
        Ok((String::from_utf8(output.stdout)?, serde_json::from_str(&text)?))
    }

    /// The same for a program of the benchmark.
    pub fn profile(&self, mode: &[&str], program: &Path, arguments: &[&str]) -> Result<(String, Value)> {
        let program = program.display().to_string();
        let mut command = vec![program.as_str()];
        command.extend(arguments);
        self.document(mode, &command, &self.root)
    }
}
