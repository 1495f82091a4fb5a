//! `--measure`: the program as it is, with different numbers of processors.
//!
//! What cargo ran was built by us and reports to us. So cargo builds it once more, without us and into another folder of
//! ours, and the executable that lies there in the same place is what runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use profile::span::Measured;
use span_kit::collect::Record;

use super::workers;

/// Times a program natively.
pub struct Native {
    command: Vec<OsString>,
}

impl Native {
    /// A command that is the program.
    pub fn program(command: &[OsString]) -> Self {
        Native { command: command.to_vec() }
    }

    /// What cargo ran: `record` is of the executable in `target`, which is ours. Says if it had to stay that one.
    pub fn by_cargo(
        command: &[OsString],
        record: &Record,
        target: &Path,
        problems: &mut Vec<String>,
    ) -> Self {
        let (cargo, own) = split(command);
        let program = match build(cargo, Path::new(&record.program), target) {
            Ok(program) => program,
            Err(why) => {
                problems.push(format!(
                    "the program could not be built without us, so measured runs are of the one that reports: {why}"
                ));
                PathBuf::from(&record.program)
            }
        };
        Native { command: std::iter::once(program.into_os_string()).chain(own.iter().cloned()).collect() }
    }

    /// Runs with each number of processors, by turns: what else the machine does then meets all of them alike.
    pub fn measure(&self, processors: &[u32], problems: &mut Vec<String>) -> Vec<Measured> {
        let mut processors = processors.to_vec();
        processors.sort_unstable();
        processors.dedup();
        let mut walls = vec![Vec::new(); processors.len()];
        for _ in 0..ROUNDS {
            for (walls, &n) in walls.iter_mut().zip(&processors) {
                let env: Vec<_> = workers(n).into_iter().collect();
                match launch::plain::run(&self.command, &env) {
                    Ok(usage) => walls.push(usage.wall_ns),
                    Err(e) => problems.push(format!("cannot measure with {n} processors: {e}")),
                }
            }
        }
        problems.dedup();
        processors.iter().zip(walls).filter_map(|(&n, walls)| of(n, walls)).collect()
    }
}

/// Runs with each number of processors.
const ROUNDS: usize = 5;

/// What the runs with `processors` took.
fn of(processors: u32, mut walls: Vec<u64>) -> Option<Measured> {
    walls.sort_unstable();
    Some(Measured {
        processors: processors.into(),
        wall_ns: *walls.get(walls.len() / 2)?,
        range_ns: (*walls.first()?, *walls.last()?),
        runs: walls.len() as u64,
    })
}

/// Cargo's words and those of the program, which are behind the first `--`.
fn split(command: &[OsString]) -> (&[OsString], &[OsString]) {
    match command.iter().position(|a| a == "--") {
        Some(at) => (&command[..at], &command[at + 1..]),
        None => (command, &[]),
    }
}

/// The command that builds what `cargo` would run.
fn building(cargo: &[OsString]) -> Vec<OsString> {
    let mut words = cargo.to_vec();
    // The first word that is not a flag or a toolchain is what cargo is to do.
    let what = words.iter().skip(1).position(|w| !w.to_string_lossy().starts_with(['-', '+']));
    if let Some(word) = what.and_then(|at| words.get_mut(at + 1)) {
        if word == "run" || word == "r" {
            *word = "build".into();
        } else {
            words.push("--no-run".into());
        }
    }
    words
}

fn build(cargo: &[OsString], profiled: &Path, target: &Path) -> Result<PathBuf, String> {
    let place = profiled.strip_prefix(target).map_err(|_| "it was not built in our folder".to_owned())?;
    let native = target.join("native");
    let words = building(cargo);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env("CARGO_TARGET_DIR", &native);
    let output = command.output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
    }
    let program = native.join(place);
    if program.is_file() { Ok(program) } else { Err(format!("{} is not there", program.display())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_counts() {
        let m = of(2, vec![50, 900, 40, 60, 55]).unwrap();
        assert_eq!((m.wall_ns, m.range_ns, m.runs), (55, (40, 900), 5));
        assert_eq!(of(2, Vec::new()), None);
    }

    #[test]
    fn cargo_builds_what_it_would_run() {
        let of = |text: &str| {
            let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
            let (cargo, own) = split(&words);
            let join = |w: &[OsString]| w.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
            (join(&building(cargo)), join(own))
        };
        let expect = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(
            of("cargo run --release --bin a -- 1 -- 2"),
            expect("cargo build --release --bin a", "1 -- 2")
        );
        assert_eq!(of("cargo +stable -q test -p run"), expect("cargo +stable -q test -p run --no-run", ""));
    }
}
