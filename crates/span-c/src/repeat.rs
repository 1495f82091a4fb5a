//! Repeated runs of a serial program, strand by strand.
//!
//! A serial execution does the same strands in the same order every time, so strand i of one run is strand i of the
//! next. What disturbs one strand in one run (an interrupt, a hypervisor) rarely disturbs it in all: a strand costs the
//! least of its runs ([`robust`]); a short one the lower quartile. The maximum over many strands is then no longer the maximum of the noise.

use std::fs;
use std::path::PathBuf;

use span_rt::repeat::robust;

/// More strands than this are not kept: 8 bytes each and run.
const STRANDS_MAX: usize = 1 << 24;

/// In ticks: about two microseconds.
const SHORT: u64 = 5_000;

/// What strands cost, now and before.
pub struct Repeat {
    folder: PathBuf,
    before: Vec<Vec<u64>>,
    now: Vec<u64>,
}

impl Repeat {
    /// Reads the runs that `folder` holds.
    pub fn new(folder: &str) -> Self {
        let folder = PathBuf::from(folder);
        let numbers = |bytes: Vec<u8>| {
            bytes.chunks_exact(8).map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default())).collect()
        };
        let before = (0..).map_while(|n| fs::read(folder.join(n.to_string())).ok()).map(numbers).collect();
        Self { folder, before, now: Vec::new() }
    }

    /// The strand that ends now cost `cost` in this run: what it costs in all runs.
    pub fn strand(&mut self, cost: u64) -> u64 {
        let i = self.now.len();
        if i < STRANDS_MAX {
            self.now.push(cost);
        }
        let others = self.before.iter().filter_map(|run| run.get(i).copied());
        let mut all: Vec<u64> = others.chain([cost]).collect();
        let robust = robust(&mut all);
        // The least of short strands is what the clock's step makes of them. They are in order now.
        let quartile = all[(all.len() - 1) / 4];
        if quartile < SHORT { quartile } else { robust }
    }

    /// Keeps this run. What is wrong with the comparison, if anything.
    pub fn finish(self) -> Option<String> {
        let bytes: Vec<u8> = self.now.iter().flat_map(|n| n.to_le_bytes()).collect();
        let path = self.folder.join(self.before.len().to_string());
        if let Err(e) = fs::write(&path, bytes) {
            return Some(format!("what strands cost could not be kept for the next run: {e}"));
        }
        let same = self.before.iter().all(|run| run.len() == self.now.len());
        (!same).then(|| {
            "the runs differ in their strands, so they could not be compared strand by strand".into()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strand_costs_the_lower_quartile_of_its_runs() {
        let folder = std::env::temp_dir().join(format!("farsight-repeat-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut got = Vec::new();
        for costs in [[5, 900], [7, 10], [6, 11]] {
            let mut repeat = Repeat::new(folder.to_str().unwrap());
            got.push(costs.map(|c| repeat.strand(c)));
            assert_eq!(repeat.finish(), None);
        }
        assert_eq!(got, [[5, 900], [5, 10], [5, 10]]);
        let mut other = Repeat::new(folder.to_str().unwrap());
        other.strand(1);
        assert!(other.finish().is_some());
        fs::remove_dir_all(&folder).unwrap();
    }
}
