//! Repeated runs of a program whose tasks are the same every time, strand by strand.
//!
//! A strand is known by the way to its task (which fork, which side, from the start of the program on) and its number
//! within the task; so it is the same strand in the next run, whichever thread executes it. What disturbs one strand in
//! one run (an interrupt, a hypervisor, a neighbour on the same core) rarely disturbs it in all: a strand costs the least of
//! its runs, or the second least of nine and more ([`robust`]). The maximum over many strands is then no longer the
//! maximum of the noise.
//!
//! Of strands that are short the first ones are kept: on a path with few forks, what they have too much would show. One that
//! is short in other runs and not in this one was disturbed, and costs no more than the longest that are not kept.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::env::settings;

/// In ticks: about a fifth of a microsecond. Below, little is compared.
const SHORT: u64 = 500;
/// Short strands that are kept, over all threads, beside others.
const SHORT_MAX: usize = 1 << 16;
/// Strands that are kept, over all threads: 16 bytes each and run.
const STRANDS_MAX: usize = 1 << 24;

/// Runs before this one, and what this one shows.
struct Repeat {
    folder: PathBuf,
    before: Vec<HashMap<u64, u64>>,
    now: Mutex<Vec<(u64, u64)>>,
}

fn repeat() -> Option<&'static Repeat> {
    static REPEAT: OnceLock<Option<Repeat>> = OnceLock::new();
    REPEAT
        .get_or_init(|| {
            let folder = PathBuf::from(settings().strands.as_deref()?);
            let number = |b: &[u8]| u64::from_le_bytes(b.try_into().unwrap_or_default());
            let read =
                |bytes: Vec<u8>| bytes.chunks_exact(16).map(|c| (number(&c[..8]), number(&c[8..]))).collect();
            let runs = (0..).map_while(|n| std::fs::read(folder.join(format!("tasks-{n}"))).ok());
            let before = runs.map(read).collect();
            Some(Repeat { folder, before, now: Mutex::default() })
        })
        .as_ref()
}

/// Whether runs are compared.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

static ON: AtomicBool = AtomicBool::new(false);
/// Short strands that were kept.
static SHORT_KEPT: AtomicUsize = AtomicUsize::new(0);

/// Looks at the settings. To be called before the first strand.
pub fn choose() {
    ON.store(settings().strands.is_some(), Ordering::Relaxed);
}

/// The way of a task that forks from one that came `way` and has forked or ended strands `number` times; `side` tells
/// the tasks of one fork apart.
pub fn way(way: u64, number: u64, side: u64) -> u64 {
    if way == 0 {
        return 0;
    }
    let mix = |h: u64, x: u64| (h ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    mix(mix(mix(way, 0xFA5), number), side)
}

/// What the strand of this name costs, all runs considered.
#[cold]
pub fn strand(name: u64, cost: u64) -> u64 {
    let is_kept = || cost >= SHORT || SHORT_KEPT.fetch_add(1, Ordering::Relaxed) < SHORT_MAX;
    let Some(repeat) = repeat().filter(|_| is_kept()) else { return cost };
    let mut now = repeat.now.lock().unwrap_or_else(PoisonError::into_inner);
    if now.len() < STRANDS_MAX {
        now.push((name, cost));
    }
    drop(now);
    all_considered(repeat.before.iter().map(|run| run.get(&name).copied()), cost)
}

/// What a strand costs that cost this much; a run that did not keep it had it short.
fn all_considered(before: impl Iterator<Item = Option<u64>>, now: u64) -> u64 {
    let all = robust(&mut before.map(|cost| cost.unwrap_or(SHORT)).chain([now]).collect::<Vec<u64>>());
    if now < SHORT { all.min(now) } else { all }
}

/// What is to be believed of several measurements of one strand: the least, where nothing disturbed it. Of nine, one may
/// lie below that: the processor may have run faster for a while.
pub fn robust(costs: &mut [u64]) -> u64 {
    costs.sort_unstable();
    costs.get(costs.len().saturating_sub(1) / 8).copied().unwrap_or_default()
}

/// Keeps this run for the next. What is wrong with the comparison, if anything.
pub fn finish() -> Option<String> {
    let repeat = repeat()?;
    let now = std::mem::take(&mut *repeat.now.lock().unwrap_or_else(PoisonError::into_inner));
    let bytes: Vec<u8> =
        now.iter().flat_map(|(name, cost)| [name.to_le_bytes(), cost.to_le_bytes()]).flatten().collect();
    let path = repeat.folder.join(format!("tasks-{}", repeat.before.len()));
    if let Err(e) = std::fs::write(&path, bytes) {
        return Some(format!("what strands cost could not be kept for the next run: {e}"));
    }
    // Which of the short ones are kept is chance.
    let long: Vec<u64> = now.iter().filter(|(_, cost)| *cost >= SHORT).map(|(name, _)| *name).collect();
    let last = repeat.before.last().filter(|run| !run.is_empty() && long.len() > 16)?;
    let known = long.iter().filter(|name| last.contains_key(name)).count();
    (known * 2 < long.len())
        .then(|| "the runs differ in their tasks, so they could not be compared strand by strand".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strand_that_is_short_elsewhere_was_disturbed() {
        assert_eq!(all_considered([].into_iter(), 90_000), 90_000);
        assert_eq!(all_considered([None, Some(70_000)].into_iter(), 90_000), SHORT);
        assert_eq!(all_considered([Some(80_000), Some(70_000)].into_iter(), 90_000), 70_000);
        // Others may not have kept one that is short.
        assert_eq!(all_considered([None, None].into_iter(), 90), 90);
        assert_eq!(all_considered([None, Some(30)].into_iter(), 90), 30);
    }

    #[test]
    fn one_of_nine_may_be_too_short() {
        assert_eq!(robust(&mut [5, 4, 3, 9, 8, 7, 6, 5]), 3);
        assert_eq!(robust(&mut [5, 4, 3, 9, 8, 7, 6, 5, 5]), 4);
    }

    #[test]
    fn ways_differ() {
        let ways: Vec<u64> = (0..4).flat_map(|n| (0..2).map(move |s| way(7, n, s))).collect();
        let distinct: std::collections::BTreeSet<&u64> = ways.iter().collect();
        assert_eq!(distinct.len(), ways.len());
    }
}
