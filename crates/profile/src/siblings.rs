//! The children of a tree's nodes by key, for whoever builds trees of millions of nodes.
//!
//! ```text
//! node       key u32 | first child u32 | next sibling u32
//! children   a list, oldest first; those beyond the first few dozen in a table
//! ```
//! A table alone would be looked up at a random place for every node, which takes longer than all else once it is larger
//! than the caches. Lists are near where the last one was, if the tree is built depth first. A node with thousands of
//! children still costs a few dozen steps at most.

use std::collections::HashMap;

/// Children that are found by walking.
const WALKED_MAX: usize = 32;
/// No node.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u32,
    first: u32,
    next: u32,
}

const EMPTY: Entry = Entry { key: 0, first: NONE, next: NONE };

/// A tree, or several: nodes are numbered as they are made.
#[derive(Debug, Clone)]
pub struct Siblings {
    /// The nodes, behind the root of them all.
    entries: Vec<Entry>,
    /// Further children, by the parent's entry and key.
    further: HashMap<(u32, u32), u32>,
}

impl Siblings {
    /// Without nodes; room for some.
    pub fn with_capacity(nodes: usize) -> Siblings {
        let mut entries = Vec::with_capacity(nodes + 1);
        entries.push(EMPTY);
        Siblings { entries, further: HashMap::new() }
    }

    /// The child of a node (of none: a root) that has this key, and whether it was made for this call. It then has the
    /// next number.
    pub fn child(&mut self, parent: Option<u32>, key: u32) -> (u32, bool) {
        let parent = parent.map_or(0, |p| p + 1);
        let new = self.entries.len() as u32;
        let mut last = None;
        let mut at = self.entries[parent as usize].first;
        for _ in 0..WALKED_MAX {
            if at == NONE {
                match last {
                    None => self.entries[parent as usize].first = new,
                    Some(last) => self.entries[last as usize].next = new,
                }
                self.entries.push(Entry { key, ..EMPTY });
                return (new - 1, true);
            }
            let entry = self.entries[at as usize];
            if entry.key == key {
                return (at - 1, false);
            }
            (last, at) = (Some(at), entry.next);
        }
        let found = *self.further.entry((parent, key)).or_insert(new);
        if found == new {
            self.entries.push(Entry { key, ..EMPTY });
        }
        (found - 1, found == new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_a_table_finds(asked in proptest::collection::vec((0u32..8, 0u32..100), 0..2000)) {
            let mut siblings = Siblings::with_capacity(0);
            let mut table: HashMap<(Option<u32>, u32), u32> = HashMap::new();
            for (parent, key) in asked {
                // The first few nodes get all the children, more than are walked.
                let parent = parent.checked_sub(1).filter(|&p| (p as usize) < table.len());
                let next = table.len() as u32;
                let known = *table.entry((parent, key)).or_insert(next);
                prop_assert_eq!(siblings.child(parent, key), (known, known == next));
            }
        }
    }
}
