//! Record buffers added to a thread's points, newest record first.
//!
//! What a record is: `inputsize::record`. Who was outermost: `inputsize::ingest::Nesting`. Records of folded work have
//! size 0: reading backward, the activation that folds comes first, and those nested in it have larger stamps.
//!
//! Records that are alike are counted in a small table first, in shared memory as well; what another record pushes out
//! of it goes to a point. Both are met at random, and the program has used the caches meanwhile. So they are asked for
//! ahead: the entries of the small table a few records before they are needed, points a group at a time, while the group
//! before is added.

use crate::layout::FOLD;
use crate::shared::Points;
use crate::table::{Table, prefetch};
use inputsize::ingest::Nesting;
use inputsize::record::{Rare, Record, base_words};
use wire::growth::{ALIKE_MAX, Alike, POINT_RMS};

/// Activations that are added to points together.
const GROUP: usize = 16;
/// How many records ahead entries of the small table are asked for.
const AHEAD: usize = 8;
/// They are if more than one in so many records pushed another one out: else the table is in the first cache.
const SCATTERED: usize = 8;

/// Adds records to points.
pub struct Ingest {
    nesting: Nesting,
    alike: *mut Alike,
    table: Table,
    /// By rms, where both metrics are computed.
    table_rms: Option<Table>,
    /// What is to be added next.
    group: [Alike; GROUP],
    grouped: usize,
    /// The group before, and its points, which were asked for; empty if there is none.
    before: [(Option<u32>, Alike); GROUP],
    asked: usize,
    /// Whether many records of the last buffer were not alike.
    scattered: bool,
    /// Records of this buffer that were not.
    unlike: usize,
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
            before: [(None, Alike::default()); GROUP],
            asked: 0,
            scattered: false,
            unlike: 0,
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
        let records = words.len() / base_words(1);
        self.scattered = self.unlike > records / SCATTERED;
        self.unlike = 0;
        while let Some(record) = Record::<1>::read_last(&mut words) {
            if self.scattered
                && let Some(head) = words.len().checked_sub(AHEAD * base_words(1))
            {
                // (Rare parts between shift it: then it is of no use.)
                prefetch(self.place(words[head] as u32 & !FOLD, words[head + 1], words[head + 2]));
            }
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
        self.add_groups();
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
        self.add_groups();
    }

    /// The entry of the small table where such activations are counted.
    #[inline]
    fn place(&self, routine: u32, n: u64, cost: u64) -> *mut Alike {
        const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
        const { assert!(ALIKE_MAX.is_power_of_two()) };
        // The upper bits of the product are those that all of them have a say in.
        let mixed = (u64::from(routine) << 32 ^ n << 16 ^ cost).wrapping_mul(MIX);
        self.alike.wrapping_add((mixed >> (64 - ALIKE_MAX.trailing_zeros())) as usize)
    }

    #[inline]
    fn count(&mut self, routine: u32, n: u64, cost: u64, own: u64, outermost: bool) {
        // SAFETY: inside the table, which is this thread's.
        let place = unsafe { &mut *self.place(routine, n, cost) };
        // One branch for all four.
        let differs = place.cost ^ cost | place.n ^ n | place.routine ^ u64::from(routine) | place.own ^ own;
        if differs == 0 {
            place.calls += 1;
            place.outermost += u64::from(outermost);
            return;
        }
        let out = core::mem::replace(place, alike(routine, n, cost, own, outermost));
        if out.calls != 0 {
            self.unlike += 1;
            self.push(&out);
        }
    }

    #[inline]
    fn push(&mut self, out: &Alike) {
        self.table.prefetch_index(out.routine as u32, out.n);
        self.group[self.grouped] = *out;
        self.grouped += 1;
        if self.grouped == GROUP {
            self.next_group();
        }
    }

    /// Adds the group before; the points of this one are asked for.
    fn next_group(&mut self) {
        let mut asked = [(None, Alike::default()); GROUP];
        let grouped = core::mem::take(&mut self.grouped);
        for (asked, a) in asked.iter_mut().zip(&self.group[..grouped]) {
            *asked = (self.table.ask(a.routine as u32, a.n), *a);
        }
        let before = core::mem::replace(&mut self.before, asked);
        for (number, a) in &before[..core::mem::replace(&mut self.asked, grouped)] {
            self.table.add_asked(*number, a);
            if let Some(by_rms) = &mut self.table_rms {
                by_rms.add(a);
            }
        }
    }

    /// Adds all that is grouped.
    fn add_groups(&mut self) {
        self.next_group();
        self.next_group();
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
