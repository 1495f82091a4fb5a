//! Record buffers added to a thread's points, newest record first.
//!
//! What a record is: `inputsize::record`. Who was outermost: `inputsize::ingest::Nesting`. Records of folded work have
//! size 0: reading backward, the activation that folds comes first, and those nested in it have larger stamps.

use crate::layout::FOLD;
use crate::shared::Points;
use crate::table::{Activation, Table};
use inputsize::ingest::Nesting;
use inputsize::record::Record;
use wire::growth::POINT_RMS;

/// Adds records to points.
pub struct Ingest {
    nesting: Nesting,
    table: Table,
    /// By rms, where both metrics are computed.
    table_rms: Option<Table>,
}

impl Ingest {
    /// For the thread with this index.
    pub fn new(points: Points, thread: u32, both: bool) -> Ingest {
        Ingest {
            nesting: Nesting::default(),
            table: Table::new(points, thread),
            table_rms: both.then(|| Table::new(points, thread | POINT_RMS)),
        }
    }

    /// Adds a buffer, at whose end `height` activations are pending: `frame` tells (stamp, routine) of each, root
    /// first; `folding` is the stamp of the one that folds, if one does.
    pub fn add(
        &mut self,
        mut words: &[u64],
        height: usize,
        frame: impl Fn(usize) -> (u32, u32),
        folding: Option<u32>,
    ) {
        self.nesting.begin(height, frame);
        let mut folding = folding.unwrap_or(u32::MAX);
        while let Some(record) = Record::<1>::read_last(&mut words) {
            let routine = record.routine & !FOLD;
            let outermost = self.nesting.is_outermost(routine, record.stamp);
            if record.stamp <= folding {
                folding = if record.routine & FOLD != 0 { record.stamp } else { u32::MAX };
            }
            let size = if record.stamp >= folding { 0 } else { record.size };
            let [cost] = record.cost;
            let [own] = record.cost_self;
            let activation = Activation { routine, size, cost, own, outermost };
            let point = self.table.add(&activation);
            if let (Some(rare), Some(point)) = (record.rare, point) {
                let (all, own) = (rare.induced, rare.induced_self);
                self.table.add_induced(point, [all.thread, all.external, own.thread, own.external]);
            }
            if let Some(by_rms) = &mut self.table_rms {
                let rms = record
                    .rare
                    .map_or(size, |rare| if size == 0 && record.stamp >= folding { 0 } else { rare.rms });
                by_rms.add(&Activation { size: rms, ..activation });
            }
        }
    }

    /// Forgets the stamps of pending activations: they are about to change.
    pub fn before_renumbering(&mut self) {
        self.nesting.forget();
    }

    /// Activations that found no room, and the largest size error in millionths.
    pub fn finish(&self) -> (u64, u64) {
        let (dropped, error) = self.table.losses();
        let (more, other) = self.table_rms.as_ref().map_or((0, 0), Table::losses);
        (dropped + more, error.max(other))
    }
}
