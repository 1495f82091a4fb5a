//! Record buffers added to a thread's points, newest record first.
//!
//! What a record is: `inputsize::record`. Who was outermost: `inputsize::ingest::Nesting`. Records of folded work have
//! size 0: reading backward, the activation that folds comes first, and those nested in it have larger stamps.
//!
//! Records that are alike are counted in a small table first, in shared memory as well; what another record pushes out
//! of it goes to a point. Points are met at random, so those are asked for ahead, a group at a time.

use crate::layout::FOLD;
use crate::shared::Points;
use crate::table::Table;
use inputsize::ingest::Nesting;
use inputsize::record::{Rare, Record};
use wire::growth::{ALIKE_MAX, Alike, POINT_RMS};

/// Activations that are added to points together.
const GROUP: usize = 16;

/// Adds records to points.
pub struct Ingest {
    nesting: Nesting,
    alike: *mut Alike,
    table: Table,
    /// By rms, where both metrics are computed.
    table_rms: Option<Table>,
    group: [Alike; GROUP],
    grouped: usize,
}

impl Ingest {
    /// For the thread with this index.
    ///
    /// # Safety
    /// `alike` is the address of `ALIKE_MAX` entries that nothing else writes while this exists.
    pub unsafe fn new(points: Points, thread: u32, both: bool, alike: *mut Alike) -> Ingest {
        for i in 0..ALIKE_MAX {
            // SAFETY: as the caller promises.
            unsafe { alike.add(i).write(Alike::default()) };
        }
        Ingest {
            nesting: Nesting::default(),
            alike,
            table: Table::new(points, thread),
            table_rms: both.then(|| Table::new(points, thread | POINT_RMS)),
            group: [Alike::default(); GROUP],
            grouped: 0,
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
        // Wider than a stamp, so that "none" is above the last stamp of all.
        let mut folding = folding.map_or(u64::MAX, u64::from);
        while let Some(record) = Record::<1>::read_last(&mut words) {
            let routine = record.routine & !FOLD;
            let outermost = self.nesting.is_outermost(routine, record.stamp);
            let stamp = u64::from(record.stamp);
            if stamp <= folding {
                folding = if record.routine & FOLD != 0 { stamp } else { u64::MAX };
            }
            let folded = stamp >= folding;
            let n = if folded { 0 } else { record.size };
            let ([cost], [own]) = (record.cost, record.cost_self);
            match record.rare {
                None => self.count(routine, n, cost, own, outermost),
                Some(rare) => self.add_rare(&alike(routine, n, cost, own, outermost), &rare, folded),
            }
        }
        self.add_group();
    }

    /// Adds everything that is held back, before the thread ends.
    pub fn flush(&mut self) {
        for i in 0..ALIKE_MAX {
            // SAFETY: inside the table.
            let place = unsafe { &mut *self.alike.add(i) };
            if place.calls != 0 {
                let out = core::mem::take(place);
                self.push(&out);
            }
        }
        self.add_group();
    }

    #[inline]
    fn count(&mut self, routine: u32, n: u64, cost: u64, own: u64, outermost: bool) {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        const { assert!(ALIKE_MAX.is_power_of_two()) };
        // The upper bits of the product are those that all of them have a say in.
        let mixed = (u64::from(routine) << 32 ^ n << 16 ^ cost).wrapping_mul(MIX);
        let at = (mixed >> (64 - ALIKE_MAX.trailing_zeros())) as usize;
        // SAFETY: inside the table, which is this thread's.
        let place = unsafe { &mut *self.alike.add(at) };
        // One branch for all four.
        let differs = place.cost ^ cost | place.n ^ n | place.routine ^ u64::from(routine) | place.own ^ own;
        if differs == 0 {
            place.calls += 1;
            place.outermost += u64::from(outermost);
            return;
        }
        let out = core::mem::replace(place, alike(routine, n, cost, own, outermost));
        if out.calls != 0 {
            self.push(&out);
        }
    }

    #[inline]
    fn push(&mut self, out: &Alike) {
        self.table.prefetch_index(out.routine as u32, out.n);
        self.group[self.grouped] = *out;
        self.grouped += 1;
        if self.grouped == GROUP {
            self.add_group();
        }
    }

    fn add_group(&mut self) {
        let group = &self.group[..self.grouped];
        group.iter().for_each(|a| self.table.prefetch_point(a.routine as u32, a.n));
        for a in group {
            self.table.add(a);
            if let Some(by_rms) = &mut self.table_rms {
                by_rms.add(a);
            }
        }
        self.grouped = 0;
    }

    #[cold]
    fn add_rare(&mut self, one: &Alike, rare: &Rare, folded: bool) {
        if let Some(point) = self.table.add(one) {
            let (all, own) = (rare.induced, rare.induced_self);
            self.table.add_induced(point, [all.thread, all.external, own.thread, own.external]);
        }
        if let Some(by_rms) = &mut self.table_rms {
            by_rms.add(&Alike { n: if folded { 0 } else { rare.rms }, ..*one });
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

/// One activation.
fn alike(routine: u32, n: u64, cost: u64, own: u64, outermost: bool) -> Alike {
    Alike { routine: routine.into(), n, cost, own, calls: 1, outermost: outermost.into(), reserved: [0; 2] }
}
