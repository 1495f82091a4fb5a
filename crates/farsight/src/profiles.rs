//! Reading profile files for the subcommands, and joining the runs in them that belong together.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use analyse::{Fits, GrowthAnalysis};
use anyhow::{Result, anyhow};
use profile::file::{Cause, FileError};
use profile::{Data, Growth, Profile, Run};

use crate::exit::{Failure, Kind};

/// Growth runs of one build with the same metric, cost and cell size, added up into one run.
pub struct GrowthView {
    /// What is known of them besides their data; times are sums.
    pub run: Run,
    /// Their data.
    pub growth: Growth,
    /// Curves, once they have been asked for.
    fits: OnceLock<Fits>,
}

impl GrowthView {
    /// What is concluded from them. Curves are fitted the first time.
    pub fn analysis(&self) -> GrowthAnalysis<'_> {
        analyse::analyse_fitted(&self.growth, self.fits.get_or_init(|| Fits::of(&self.growth)))
    }
}

/// Reads a profile. A damaged one is an error, unless `salvage` asks for what is intact.
pub fn read(path: &Path, salvage: bool) -> Result<Profile> {
    let loaded = if salvage { profile::file::load_salvaging(path) } else { profile::file::load(path) };
    let loaded = loaded.map_err(failure)?;
    for problem in &loaded.problems {
        eprintln!("farsight: {}: {problem}", path.display());
    }
    Ok(loaded.profile)
}

/// Writes a profile; `replace` says whether an existing file may be replaced.
pub fn write(path: &Path, profile: &Profile, replace: bool) -> Result<()> {
    let save = if replace { profile::file::save } else { profile::file::save_new };
    save(path, profile).map_err(failure)
}

/// The growth runs of all files, added up where they belong together, file by file: two files stay two.
pub fn growth_views(paths: &[PathBuf], salvage: bool) -> Result<Vec<GrowthView>> {
    let mut views = Vec::new();
    for path in paths {
        let found = join(&read(path, salvage)?)?;
        if found.is_empty() {
            return Err(Failure::error(Kind::Data, anyhow!("{}: holds no growth run", path.display())));
        }
        views.extend(found);
    }
    Ok(views)
}

/// The one growth view of a file, for subcommands that compare or judge one.
pub fn growth_view(path: &Path, salvage: bool) -> Result<GrowthView> {
    let mut views = growth_views(&[path.to_path_buf()], salvage)?;
    match views.len() {
        1 => Ok(views.remove(0)),
        n => Err(Failure::error(
            Kind::Data,
            anyhow!("{}: holds growth runs of {n} kinds or programs; give a file with one", path.display()),
        )),
    }
}

/// The growth runs of a profile, added up where they belong together.
pub fn join(profile: &Profile) -> Result<Vec<GrowthView>> {
    let mut views = Vec::new();
    for build in profile.by_build() {
        let mut kinds: Vec<Vec<&Run>> = Vec::new();
        for run in build {
            let Data::Growth(growth) = &run.data else { continue };
            let alike = |other: &Run| matches!(&other.data, Data::Growth(g) if same_kind(g, growth));
            match kinds.iter_mut().find(|runs| alike(runs[0])) {
                Some(runs) => runs.push(run),
                None => kinds.push(vec![run]),
            }
        }
        for runs in kinds {
            let growth = profile::combine(&runs).map_err(|e| Failure::error(Kind::Data, e))?;
            views.push(GrowthView { run: summed(&runs), growth, fits: OnceLock::new() });
        }
    }
    Ok(views)
}

fn same_kind(a: &Growth, b: &Growth) -> bool {
    (a.metric, a.cost, a.cell_bytes) == (b.metric, b.cost, b.cell_bytes)
}

/// The first run's description, with times and problems of all.
pub fn summed(runs: &[&Run]) -> Run {
    let mut sum = runs[0].clone();
    for run in &runs[1..] {
        sum.wall_ns = sum.wall_ns.saturating_add(run.wall_ns);
        sum.cpu_ns = sum.cpu_ns.saturating_add(run.cpu_ns);
        sum.problems.extend(run.problems.iter().filter(|p| !runs[0].problems.contains(p)).cloned());
    }
    sum
}

/// An error about a profile file with the exit code that it has.
pub fn failure(error: FileError) -> anyhow::Error {
    let kind = match &error.cause {
        Cause::Read(_) | Cause::Merge(_) => Kind::Data,
        Cause::Io(e) if is_about_input(e) => Kind::NoInput,
        Cause::Io(_) | Cause::Write(_) => Kind::Unavailable,
        Cause::Exists => Kind::Usage,
    };
    let remedy = match &error.cause {
        Cause::Exists => "; remove it, choose another with -o, or give --force to replace it",
        _ => "",
    };
    Failure::error(kind, anyhow!("{error}{remedy}"))
}

fn is_about_input(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}
