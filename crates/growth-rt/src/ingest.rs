//! Record buffers added to a thread's points, newest record first.
//!
//! What a record is: `inputsize::record`. Who was outermost: `inputsize::ingest::Nesting`. Records of folded work have
//! size 0: reading backward, the activation that folds comes first, and those nested in it have larger stamps.
//!
//! Records that are alike are counted in a small table first, in shared memory as well; what another record pushes out
//! of it goes to a point. Both are met at random, and the program has used the caches meanwhile. So they are asked for
//! ahead: the entries of the small table a few records before they are needed, points a group at a time, while the group
//! before is added.

use crate::alike::AlikeTable;
use crate::layout::FOLD;
use crate::shared::Points;
use crate::table::{Table, prefetch};
use inputsize::ingest::Nesting;
use inputsize::record::{RARE, Rare, Record, base_words};
use wire::growth::{Alike, POINT_RMS};

/// Activations of a [`Group`].
const GROUP: usize = 16;
/// How many records ahead entries of the small table are asked for.
const AHEAD: usize = 24;
/// Records are scattered if more than one in so many pushed another one out of the small table: it is not in the first
/// cache then, and might be too small.
const SCATTERED: usize = 64;
/// Neighbours of the small table serve both places if more than one record in so many was not in its own.
const DIFFERENT: usize = 4;
/// The table grows when so many buffers were.
const CROWDED: u32 = 64;

/// Adds records to points.
pub struct Ingest {
    nesting: Nesting,
    alike: AlikeTable,
    tables: Tables,
    /// Whether the records of the last buffer were scattered.
    scattered: bool,
    /// Buffers whose records were, since the small table has its size.
    crowded: u32,
    /// Records of this buffer that pushed another one out.
    unlike: usize,
}

/// The points, and what is about to be added to them.
struct Tables {
    table: Table,
    /// By rms, where both metrics are computed.
    table_rms: Option<Table>,
    /// The group that is filled, and the one before it, whose points were asked for; by turns.
    groups: [Group; 2],
    /// Which one is filled.
    filling: usize,
}

/// Activations that are added to points together.
struct Group {
    members: [Alike; GROUP],
    /// The points that were asked for.
    points: [Option<u32>; GROUP],
    len: usize,
}

impl Ingest {
    /// For the thread with this index.
    pub fn new(points: Points, thread: u32, both: bool, alike: AlikeTable) -> Ingest {
        Ingest {
            nesting: Nesting::default(),
            alike,
            tables: Tables {
                table: Table::new(points, thread),
                table_rms: both.then(|| Table::new(points, thread | POINT_RMS)),
                groups: [const { Group::EMPTY }; 2],
                filling: 0,
            },
            scattered: false,
            crowded: 0,
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
        const NONE: u64 = u64::MAX;
        let mut folding = folding.map_or(NONE, u64::from);
        let records = words.len() / base_words(1);
        self.unlike = 0;
        loop {
            if folding == NONE {
                self.add_plain(&mut words);
            }
            let Some(record) = Record::<1>::read_last(&mut words) else { break };
            let routine = record.routine & !FOLD;
            let outermost = self.nesting.is_outermost(routine, record.stamp);
            let stamp = u64::from(record.stamp);
            if stamp <= folding {
                folding = if record.routine & FOLD != 0 { stamp } else { NONE };
            }
            let folded = stamp >= folding;
            let n = if folded { 0 } else { record.size };
            let ([cost], [own]) = (record.cost, record.cost_self);
            match record.rare {
                None => self.count(routine, n, cost, own, outermost),
                Some(rare) => {
                    let one = Alike::one(routine, n, cost, own, outermost);
                    self.tables.add_rare(&one, &rare, folded);
                }
            }
        }
        self.tables.add_groups();
        self.scattered = self.unlike > records / SCATTERED;
        let unlike = self.unlike;
        self.alike.pair(|beside| unlike + beside > records / DIFFERENT);
        self.crowded = self.crowded.saturating_add(self.scattered.into());
        if self.crowded >= CROWDED && self.alike.can_grow() {
            self.crowded = 0;
            self.flush();
            self.alike.grow();
        }
    }

    /// Adds records up to one that is rare or of folded work: most are neither, and this is where time goes.
    fn add_plain(&mut self, words: &mut &[u64]) {
        const WORDS: usize = base_words(1);
        const { assert!(FOLD < RARE) };
        let scattered = self.scattered;
        let mut left = *words;
        while let Some((rest, &[head, n, cost, own])) = left.split_last_chunk::<WORDS>() {
            let routine = head as u32;
            if routine >= FOLD {
                break;
            }
            left = rest;
            if scattered && let Some(ahead) = rest.len().checked_sub(AHEAD * WORDS) {
                // (What is no head there is of no use.)
                let routine = rest[ahead] as u32;
                prefetch(self.nesting.place(routine));
                prefetch(self.alike.place(routine, rest[ahead + 1], rest[ahead + 2]));
            }
            let outermost = self.nesting.is_outermost(routine, (head >> 32) as u32);
            self.count(routine, n, cost, own, outermost);
        }
        *words = left;
    }

    #[inline(always)]
    fn count(&mut self, routine: u32, n: u64, cost: u64, own: u64, outermost: bool) {
        if let Some(unlike) = self.alike.count(routine, n, cost, own, outermost) {
            if unlike.calls != 0 {
                self.unlike += 1;
                self.tables.push(unlike);
            }
            *unlike = Alike::one(routine, n, cost, own, outermost);
        }
    }

    /// How many entries the table of alike activations has.
    pub fn alike_entries(&self) -> usize {
        self.alike.entries()
    }

    /// Adds everything that is held back, before the thread ends.
    pub fn flush(&mut self) {
        for number in 0..self.alike.entries() {
            if let Some(out) = self.alike.take(number) {
                self.tables.push(&out);
            }
        }
        self.tables.add_groups();
    }

    /// Forgets the stamps of pending activations: they are about to change.
    pub fn before_renumbering(&mut self) {
        self.nesting.forget();
    }

    /// Activations that found no room, and the largest size error in millionths.
    pub fn finish(&self) -> (u64, u64) {
        let Tables { table, table_rms, .. } = &self.tables;
        let (dropped, error) = table.losses();
        let (more, other) = table_rms.as_ref().map_or((0, 0), Table::losses);
        (dropped + more, error.max(other))
    }
}

impl Group {
    const EMPTY: Group = Group { members: [Alike::NONE; GROUP], points: [None; GROUP], len: 0 };
}

impl Tables {
    #[inline]
    fn push(&mut self, out: &Alike) {
        self.table.prefetch_index(out.routine as u32, out.n);
        let group = &mut self.groups[self.filling];
        group.members[group.len] = *out;
        group.len += 1;
        if group.len == GROUP {
            self.next_group();
        }
    }

    /// Adds the group before; the points of this one are asked for.
    fn next_group(&mut self) {
        let [mut group, mut before] = self.groups.each_mut();
        if self.filling == 1 {
            core::mem::swap(&mut group, &mut before);
        }
        for (point, a) in group.points.iter_mut().zip(&group.members).take(group.len) {
            *point = self.table.ask(a.routine as u32, a.n);
        }
        for (point, a) in before.points.iter().zip(&before.members).take(before.len) {
            self.table.add_asked(*point, a);
            if let Some(by_rms) = &mut self.table_rms {
                by_rms.add(a);
            }
        }
        before.len = 0;
        self.filling ^= 1;
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
}
