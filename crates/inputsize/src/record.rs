//! What a return leaves behind: words in a per-thread buffer, read backward by [`crate::ingest`].
//!
//! ```text
//! entry := [ rare ] base                 emitted code writes `base` alone
//! base  := routine | stamp << 32         bit 31 of the routine: `rare` stands before
//!          size                          in cells: trms, or rms under that metric
//!          { cost, cost_self }           N times
//! rare  := rms, induced.thread, induced.external, induced_self.thread, induced_self.external
//! ```
//! With one cost an entry is 32 bytes. Stamps are those of one numbering: empty the buffer before
//! renumbering.

use alloc::vec::Vec;

use crate::{Induced, Routine};

/// One finished activation, as the shadow stack knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<const N: usize> {
    /// Whose.
    pub routine: Routine,
    /// Its stamp: who was nested in whom can be told from stamps and order.
    pub stamp: u32,
    /// Input size.
    pub size: u64,
    /// Costs with callees.
    pub cost: [u64; N],
    /// Costs without callees.
    pub cost_self: [u64; N],
    /// What only activations with induced input have.
    pub rare: Option<Rare>,
}

/// The rare part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rare {
    /// Read memory size, where both metrics are computed.
    pub rms: u64,
    /// Induced reads, callees included.
    pub induced: Induced,
    /// Induced reads of its own.
    pub induced_self: Induced,
}

/// In the first word: a rare part stands before.
pub const RARE: u32 = 1 << 31;
/// Words of a rare part.
pub const RARE_WORDS: usize = 5;

/// Words of a base entry.
pub const fn base_words(costs: usize) -> usize {
    2 + 2 * costs
}

impl<const N: usize> Record<N> {
    /// Appends the entry to a buffer.
    pub fn write(&self, words: &mut Vec<u64>) {
        if let Some(rare) = self.rare {
            let Rare { rms, induced, induced_self } = rare;
            words.extend([rms, induced.thread, induced.external, induced_self.thread, induced_self.external]);
        }
        let flag = if self.rare.is_some() { RARE } else { 0 };
        words.push(u64::from(self.routine | flag) | u64::from(self.stamp) << 32);
        words.push(self.size);
        for i in 0..N {
            words.extend([self.cost[i], self.cost_self[i]]);
        }
    }

    /// Takes the last entry off `words`; `None` when there is no whole one.
    #[inline]
    pub fn read_last(words: &mut &[u64]) -> Option<Record<N>> {
        let (rest, base) = words.split_at_checked(words.len().checked_sub(base_words(N))?)?;
        let head = base[0] as u32;
        let mut record = Record {
            routine: head & !RARE,
            stamp: (base[0] >> 32) as u32,
            size: base[1],
            cost: ::core::array::from_fn(|i| base[2 + 2 * i]),
            cost_self: ::core::array::from_fn(|i| base[3 + 2 * i]),
            rare: None,
        };
        *words = rest;
        if head & RARE != 0 {
            let (rest, rare) = rest.split_at_checked(rest.len().checked_sub(RARE_WORDS)?)?;
            record.rare = Some(Rare {
                rms: rare[0],
                induced: Induced { thread: rare[1], external: rare[2] },
                induced_self: Induced { thread: rare[3], external: rare[4] },
            });
            *words = rest;
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_backward() {
        let plain = Record {
            routine: 3,
            stamp: u32::MAX,
            size: 1 << 40,
            cost: [7, 8],
            cost_self: [1, 0],
            rare: None,
        };
        let induced = Induced { thread: 4, external: 5 };
        let rare = Record {
            rare: Some(Rare { rms: 2, induced, induced_self: Induced { thread: 0, external: 1 } }),
            ..plain
        };
        let mut words = Vec::new();
        plain.write(&mut words);
        rare.write(&mut words);
        plain.write(&mut words);
        assert_eq!(words.len(), 3 * base_words(2) + RARE_WORDS);
        let mut rest = &words[..];
        assert_eq!(Record::read_last(&mut rest), Some(plain));
        assert_eq!(Record::read_last(&mut rest), Some(rare));
        assert_eq!(Record::read_last(&mut rest), Some(plain));
        assert_eq!(Record::<2>::read_last(&mut rest), None);
    }
}
