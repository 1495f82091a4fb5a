//! What threads usually do where: the share of samples on a target, by segment.
//!
//! A *segment* is what a thread runs between two events that other threads may notice: after it took this lock, after it
//! let that one go, after that barrier, from its start. Within a segment of less than a period a sample can only say that
//! the target ran at some time; over many visits samples tell how much of the segment is the target's.
//!
//! Counted twice: for all threads with one start routine (short-lived ones learn from each other), and for the thread
//! itself (where all have the same routine, as in Rust and C++). Few samples of one's own lean on those of
//! the routine, and those on the whole program's; few of a segment on what its thread does elsewhere. Tables of fixed size without keys: two segments that meet in a
//! place are taken for one, which makes delays less exact in time, not in amount (see `earning`).

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Shares are parts of this.
pub const WHOLE: u64 = 1024;
const PLACES: usize = 1 << 14;
/// Stands for all segments.
pub const ANYWHERE: u64 = 0;
/// Samples that the opinion of others counts for.
const PRIOR: u64 = 2;

static ALL: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];
static HITS: [AtomicU32; PLACES] = [const { AtomicU32::new(0) }; PLACES];

/// Who is asked about: a routine or one thread.
#[derive(Clone, Copy)]
pub struct Who(pub u64);

pub fn mix(a: u64, b: u64) -> u64 {
    let z = (a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 29)
}

fn place(table: &'static [AtomicU32; PLACES], key: u64) -> &'static AtomicU32 {
    &table[(mix(key, 1) >> 40) as usize % PLACES]
}

/// A sample struck in a segment; on a target, or 0.
pub fn record(whose: [Who; 2], segment: u64, target: u32) {
    for (who, segment) in whose.into_iter().flat_map(|who| [(who, segment), (who, ANYWHERE)]) {
        let key = mix(who.0, segment);
        place(&ALL, key).fetch_add(1, Relaxed);
        if target != 0 {
            place(&HITS, mix(key, u64::from(target))).fetch_add(1, Relaxed);
        }
    }
}

/// How much of a segment is a target's: routine first, then thread; `overall` is its share in the whole program.
pub fn share(whose: [Who; 2], segment: u64, target: u32, overall: u64) -> u64 {
    let anywhere = among(whose, ANYWHERE, target, overall);
    if segment == ANYWHERE { anywhere } else { among(whose, segment, target, anywhere) }
}

fn among(whose: [Who; 2], segment: u64, target: u32, prior: u64) -> u64 {
    whose.into_iter().fold(prior, |prior, who| {
        let key = mix(who.0, segment);
        let all = u64::from(place(&ALL, key).load(Relaxed));
        let hits = u64::from(place(&HITS, mix(key, u64::from(target))).load(Relaxed)).min(all);
        (hits * WHOLE + PRIOR * prior) / (all + PRIOR)
    })
}
