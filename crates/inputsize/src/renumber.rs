//! What happens when a thread runs out of stamps.
//!
//! Stamps are only ever compared with those of pending activations of the same thread. So the pending ones
//! get the stamps 1 to k, and a cell stamp `s` becomes the number of pending stamps that are at most `s`:
//! the stamp of the youngest pending activation that had accessed the cell, and every comparison comes out as
//! before. A stamp is never below the root's, so that no stamp becomes 0, "none".
//!
//! Each thread does this alone, at a call, for its own stamps: stamps of two threads never meet. Others may
//! invalidate stamps meanwhile, hence the compare-and-swap of [`Shadow::replace_stamp`]. The record buffer
//! must be empty, for records carry stamps.
//!
//! Cost: a search among k stamps per resident cell, per 2^32 calls.

use crate::core::shadow::{Shadow, Slot};
use crate::core::stack::Stack;

/// Renumbers the pending activations of a thread and all its cells.
pub fn renumber<const N: usize>(stack: &mut Stack<N>, shadow: &impl Shadow, slot: Slot) {
    let old = stack.renumber();
    shadow.each_stamped(slot, &mut |cell| {
        let stamp = shadow.stamp(slot, cell);
        if stamp != 0 {
            shadow.replace_stamp(slot, cell, stamp, rank(&old, stamp));
        }
        let lost = shadow.lost(slot, cell);
        if lost != 0 {
            shadow.set_lost(slot, cell, rank(&old, lost));
        }
    });
}

/// How many of the ascending `pending` stamps are at most `stamp`.
pub fn rank(pending: &[u32], stamp: u32) -> u32 {
    pending.partition_point(|&pending| pending <= stamp) as u32
}

#[cfg(test)]
mod tests {
    use super::rank;

    #[test]
    fn ranks_keep_every_comparison_with_a_pending_stamp() {
        let pending = [1, 5, 6, 9];
        for stamp in 1..12 {
            let new = rank(&pending, stamp);
            for (index, &old) in pending.iter().enumerate() {
                assert_eq!(stamp >= old, new > index as u32, "{stamp} against {old}");
            }
        }
    }
}
