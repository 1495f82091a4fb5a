//! Activations added to a thread's points.
//!
//! Emitted code counts activations that are alike in a small table (`alike.rs`). What others push out of it comes here
//! through a buffer, and so does each activation with induced input. Points are met at random, and the program has used
//! the caches meanwhile: they are asked for a group at a time. While one group is filled, and its places in the index are
//! asked for, the one before waits for them, and the points of the one before that arrive.

use crate::alike::AlikeTable;
use crate::shared::Points;
use crate::table::Table;
use wire::growth::{ALIKE_WORDS, Alike, POINT_RMS, Rare, entries};

/// Activations of a [`Group`].
const GROUP: usize = 16;
/// Groups on their way to points.
const GROUPS: usize = 3;
/// Activations are scattered if more than one in so many pushed another one out of the small table.
const SCATTERED: u64 = 64;
/// The table grows when so many buffers were.
const CROWDED: u32 = 64;

/// Adds activations to points.
pub struct Ingest {
    alike: AlikeTable,
    tables: Tables,
    /// Buffers whose activations were scattered, since the small table has its size.
    crowded: u32,
}

/// The points, and what is about to be added to them.
struct Tables {
    table: Table,
    /// By rms, where both metrics are computed.
    table_rms: Option<Table>,
    /// The group that is filled, the one before, and the one before that, whose points were asked for; by turns.
    groups: [Group; GROUPS],
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
            alike,
            tables: Tables {
                table: Table::new(points, thread),
                table_rms: both.then(|| Table::new(points, thread | POINT_RMS)),
                groups: [const { Group::EMPTY }; GROUPS],
                filling: 0,
            },
            crowded: 0,
        }
    }

    /// Adds a buffer; so many activations have begun since the last one. The table of alike activations may be another
    /// one afterwards.
    pub fn add(&mut self, words: &[u64], begun: u64) {
        for (alike, rare) in entries(words) {
            match rare {
                None => self.tables.push(&alike),
                Some(rare) => self.tables.add_rare(&alike, &rare),
            }
        }
        self.tables.add_groups();
        let pushed_out = (words.len() / ALIKE_WORDS) as u64;
        self.crowded = self.crowded.saturating_add((pushed_out > begun / SCATTERED).into());
        if self.crowded >= CROWDED && self.alike.can_grow() {
            self.crowded = 0;
            self.flush();
            self.alike.grow();
        }
    }

    /// The table of alike activations.
    pub fn alike(&self) -> &AlikeTable {
        &self.alike
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
        self.table.prefetch_index(out.routine(), out.n);
        let group = &mut self.groups[self.filling];
        group.members[group.len] = *out;
        group.len += 1;
        if group.len == GROUP {
            self.next_group();
        }
    }

    /// Adds the oldest group, which is filled from now on; the points of the one before the filled one are asked for.
    fn next_group(&mut self) {
        let oldest = (self.filling + 1) % GROUPS;
        let before = &mut self.groups[(self.filling + 2) % GROUPS];
        for (point, a) in before.points.iter_mut().zip(&before.members).take(before.len) {
            *point = self.table.ask(a.routine(), a.n);
        }
        let group = &mut self.groups[oldest];
        for (point, a) in group.points.iter().zip(&group.members).take(group.len) {
            self.table.add_asked(*point, a);
            if let Some(by_rms) = &mut self.table_rms {
                by_rms.add(a);
            }
        }
        group.len = 0;
        self.filling = oldest;
    }

    /// Adds all that is grouped.
    fn add_groups(&mut self) {
        (0..GROUPS).for_each(|_| self.next_group());
    }

    #[cold]
    fn add_rare(&mut self, one: &Alike, rare: &Rare) {
        if let Some(point) = self.table.add(one) {
            self.table.add_induced(point, rare.induced);
        }
        if let Some(by_rms) = &mut self.table_rms {
            by_rms.add(&Alike { n: rare.rms, ..*one });
        }
    }
}
