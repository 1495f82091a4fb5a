//! What several tests share: comparing the algorithm with the oracle.
#![allow(dead_code, reason = "each test file is a crate of its own and uses a part")]

use inputsize::core::replay::Replay;
use inputsize::core::thread::Config;
use inputsize::naive::Naive;
use inputsize::trace::Step;
use inputsize::{Activation, CellSize, Metric};
use std::collections::BTreeMap;

pub const COSTS: usize = 2;
pub type ByThread = BTreeMap<u32, Vec<Activation<COSTS>>>;

fn by_thread(activations: Vec<(u32, Activation<COSTS>)>) -> ByThread {
    let mut map = ByThread::new();
    for (thread, activation) in activations {
        map.entry(thread).or_default().push(activation);
    }
    map
}

/// What the oracle says.
pub fn oracle(steps: &[Step], cell_size: CellSize) -> ByThread {
    by_thread(Naive::<COSTS>::run(cell_size, steps))
}

/// The part of it that a metric can know.
fn known(mut all: ByThread, metric: Metric) -> ByThread {
    for activation in all.values_mut().flatten() {
        match metric {
            Metric::Both => {}
            Metric::Trms => activation.rms = 0,
            Metric::Rms => {
                activation.trms = 0;
                activation.induced = Default::default();
                activation.induced_self = Default::default();
            }
        }
    }
    all
}

/// What the algorithm says.
pub fn algorithm(steps: &[Step], config: Config, batch: usize) -> ByThread {
    by_thread(Replay::<COSTS>::run(config, batch, steps))
}

/// Both, for all metrics, with stamps of `bits` bits and buffers of `batch` records.
pub fn disagreement(steps: &[Step], cell_size: CellSize, bits: u32, batch: usize) -> Option<String> {
    let all = oracle(steps, cell_size);
    [Metric::Rms, Metric::Trms, Metric::Both].into_iter().find_map(|metric| {
        let expected = known(all.clone(), metric);
        let config = Config { metric, cell_size, stamp_bits: bits };
        let found = algorithm(steps, config, batch);
        (expected != found).then(|| format!("{metric:?}: expected {expected:#?}\nfound {found:#?}"))
    })
}
