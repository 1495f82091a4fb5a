//! Rules by pc, shared by all threads, without locks.
//!
//! ```text
//! entry: tag | rule, three words, with the module's serial in the bits that the rule leaves free
//! tag  = pc (48 bits) and generation (16 bits); 0 when empty, 1 while being written
//! ```
//! Direct-mapped. A reader takes the words between two equal reads of the tag; a writer claims the entry by
//! exchanging the tag for 1, so a second writer stays out. Entries of an older generation (before a library was
//! unloaded) never match. Losing an entry costs one evaluation of unwind information, nothing else.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*, fence};

use crate::rule::{Packed, SPARE_FROM};

/// Entries, of 32 bytes each. A program samples a few thousand distinct pcs and return addresses.
const ENTRIES: usize = 1 << 13;

#[repr(align(32))]
struct Entry {
    tag: AtomicU64,
    words: [AtomicU64; 3],
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry { tag: AtomicU64::new(0), words: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)] }
}; ENTRIES];
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// What the cache holds for a pc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The rule.
    pub rule: Packed,
    /// Serial of the module, see [`crate::module`].
    pub serial: u16,
}

/// Forgets everything.
pub fn forget() {
    GENERATION.fetch_add(1, Relaxed);
}

/// Changes whenever everything is forgotten.
#[inline(always)]
pub fn generation() -> u32 {
    GENERATION.load(Relaxed)
}

#[inline(always)]
fn place(pc: u64) -> (&'static Entry, u64) {
    let generation = GENERATION.load(Relaxed) as u64 & 0x7fff | 0x8000;
    let hash = pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ENTRIES.trailing_zeros());
    // The hash has exactly as many bits as the table has entries.
    (&TABLE[hash as usize % ENTRIES], pc & ((1 << 48) - 1) | generation << 48)
}

/// The rule for a pc, if it is there.
#[inline(always)]
pub fn get(pc: u64) -> Option<Cached> {
    let (entry, tag) = place(pc);
    if entry.tag.load(Acquire) != tag {
        return None;
    }
    let [a, b, c] = &entry.words;
    let words = [a.load(Relaxed), b.load(Relaxed), c.load(Relaxed)];
    let serial = (words[1] >> SPARE_FROM | words[2] >> SPARE_FROM << 10) as u16;
    fence(Acquire);
    (entry.tag.load(Relaxed) == tag).then_some(Cached { rule: Packed(words), serial })
}

/// Puts a rule in.
pub fn put(pc: u64, cached: Cached) {
    let (entry, tag) = place(pc);
    let before = entry.tag.load(Relaxed);
    const CLAIMED: u64 = 1;
    if before == CLAIMED || entry.tag.compare_exchange(before, CLAIMED, Acquire, Relaxed).is_err() {
        return;
    }
    fence(Release);
    let mut words = cached.rule.0;
    words[1] |= (cached.serial as u64 & 0x3ff) << SPARE_FROM;
    words[2] |= (cached.serial as u64 >> 10) << SPARE_FROM;
    for (to, word) in entry.words.iter().zip(words) {
        to.store(word, Relaxed);
    }
    entry.tag.store(tag, Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{FrameRule, Rule};

    #[test]
    fn what_was_put_is_found_until_it_is_forgotten() {
        let rule = Rule::Frame(FrameRule::ENTRY);
        let cached = Cached { rule: rule.pack(), serial: 0x5a7b };
        assert_eq!(get(0x5555_0000_1234), None);
        put(0x5555_0000_1234, cached);
        let found = get(0x5555_0000_1234).unwrap();
        assert_eq!((Rule::unpack(found.rule), found.serial), (rule, cached.serial));
        assert_eq!(get(0x5555_0000_1235), None);
        forget();
        assert_eq!(get(0x5555_0000_1234), None);
    }
}
