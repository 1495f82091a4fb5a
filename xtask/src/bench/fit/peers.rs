//! The same sets through the fitters that PyPI has, in a virtual environment under `target/`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use fit::Class;
use serde::{Deserialize, Serialize};

use super::score::Answer;
use super::sets::Set;

/// What a peer said about every set, and how long it took.
pub struct Peer {
    pub name: String,
    pub answers: Vec<Answer>,
    pub curves_per_second: f64,
}

#[derive(Serialize)]
struct Request {
    sets: Vec<RequestSet>,
    /// Up to which speed peers take part.
    speed: Speed,
}

/// How long peers may take.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Speed {
    /// Milliseconds for a curve.
    Fast,
    /// Half a second.
    Slow,
    /// Several seconds.
    Slowest,
}

#[derive(Serialize)]
struct RequestSet {
    n: Vec<f64>,
    y: Vec<f64>,
}

#[derive(Deserialize)]
struct Response {
    answers: Vec<ResponseAnswer>,
    seconds: f64,
}

#[derive(Deserialize)]
struct ResponseAnswer {
    class: Option<String>,
    broken: bool,
}

/// Asks all peers that are fast enough.
pub fn ask(sets: &[Set], speed: Speed) -> Result<Vec<Peer>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let python = environment(&root)?;
    let request = Request {
        sets: sets
            .iter()
            .map(|set| RequestSet {
                n: set.samples.iter().map(|s| s.n).collect(),
                y: set.samples.iter().map(|s| s.y).collect(),
            })
            .collect(),
        speed,
    };
    let mut child = Command::new(python)
        .arg(root.join("bench/fit/peers.py"))
        .env("OMP_NUM_THREADS", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start bench/fit/peers.py")?;
    let mut input = child.stdin.take().context("the peers' standard input is not a pipe")?;
    input.write_all(&serde_json::to_vec(&request)?)?;
    drop(input);
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "bench/fit/peers.py failed: {}", output.status);
    let responses: BTreeMap<String, Response> = serde_json::from_slice(&output.stdout)?;
    let peer = |(name, response): (String, Response)| {
        ensure!(
            response.answers.len() == sets.len(),
            "{name} answered {} of {} sets",
            response.answers.len(),
            sets.len()
        );
        let curves_per_second = sets.len() as f64 / response.seconds.max(1e-9);
        Ok(Peer { name, answers: response.answers.iter().map(answer).collect(), curves_per_second })
    };
    responses.into_iter().map(peer).collect()
}

fn answer(response: &ResponseAnswer) -> Answer {
    let class = response.class.as_deref().and_then(Class::parse);
    Answer { class, broken: response.broken, confident: false, confidence: 0.0, exponent_ci: None }
}

/// The interpreter of an environment that holds exactly `bench/fit/requirements.txt`.
fn environment(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/bench/fit-peers");
    let (requirements, stamp) = (root.join("bench/fit/requirements.txt"), folder.join("requirements.txt"));
    let python = folder.join("bin/python");
    let wanted = std::fs::read(&requirements)?;
    if std::fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    eprintln!("installing big_O and Extra-P into {}", folder.display());
    let make = "cannot make a Python environment (on Debian: apt-get install python3-venv)";
    let status =
        Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status().context(make)?;
    ensure!(status.success(), make);
    let mut pip = Command::new(&python);
    let status =
        pip.args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements).status()?;
    ensure!(status.success(), "pip could not install bench/fit/requirements.txt");
    std::fs::write(stamp, wanted)?;
    Ok(python)
}
