//! From a walk to a node of the tree.
//!
//! Two samples of a thread mostly share their outer frames. The path therefore remembers the nodes of the last
//! one, outermost first, and looks up in the tree only what is different:
//! ```text
//! last   main  run  work  heavy  spin      nodes  3  7  8  9  12
//! now    main  run  work  light            nodes  3  7  8  (looked up)
//! ```

use crate::handler::Sample;
use crate::tree::{NodeId, Tree};
use crate::unwind::{Frame, Stop};
use core::ops::ControlFlow;
use preload::arena::Arena;

/// The frames of one walk at most `D` deep, and the nodes that the last one led to. Signal-safe; large, so it
/// belongs into the thread's slot.
#[derive(Debug)]
pub struct Path<const D: usize> {
    /// Innermost first.
    frames: [u64; D],
    depth: usize,
    /// Outermost first.
    last: [(u64, NodeId); D],
    last_depth: usize,
    last_parent: NodeId,
}

impl<const D: usize> Path<D> {
    /// An empty path.
    pub const fn new() -> Self {
        Self { frames: [0; D], depth: 0, last: [(0, NodeId(0)); D], last_depth: 0, last_parent: NodeId(0) }
    }

    /// Takes in the frames of a sample. `Stop::Visitor` if there are more than `D`: the innermost ones are kept.
    pub fn take(&mut self, sample: &mut Sample) -> Stop {
        self.depth = 0;
        sample.walk(|frame| self.push(frame))
    }

    /// Starts anew, for walks of the caller's own.
    pub fn clear(&mut self) {
        self.depth = 0;
    }

    /// Adds the next outer frame.
    #[inline]
    pub fn push(&mut self, frame: &Frame) -> ControlFlow<()> {
        match self.frames.get_mut(self.depth) {
            Some(place) => {
                *place = frame.key.0;
                self.depth += 1;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }

    /// The keys of the frames, the innermost first.
    pub fn keys(&self) -> &[u64] {
        self.frames.get(..self.depth).unwrap_or(&[])
    }

    /// Drops the remembered nodes: the next [`Path::node`] is for another tree.
    pub fn forget(&mut self) {
        self.last_depth = 0;
    }

    /// The node that the frames lead to from `parent`, made if need be; the last one that exists when memory
    /// has run out.
    pub fn node<const M: usize>(&mut self, tree: &Tree<M>, arena: &Arena, parent: NodeId) -> NodeId {
        let mut at = parent;
        let mut shared = if self.last_parent == parent { self.last_depth } else { 0 };
        self.last_parent = parent;
        self.last_depth = 0;
        let outermost_first = self.frames.iter().take(self.depth).rev();
        for (i, (&key, last)) in outermost_first.zip(&mut self.last).enumerate() {
            if i < shared && last.0 == key {
                at = last.1;
            } else {
                shared = 0;
                match tree.child(arena, at, key) {
                    Some(next) => at = next,
                    None => return at,
                }
                *last = (key, at);
            }
            self.last_depth = i + 1;
        }
        at
    }
}

impl<const D: usize> Default for Path<D> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::tree::ROOT;

    #[test]
    fn leads_where_the_tree_does() {
        let arena = std::boxed::Box::leak(std::boxed::Box::new(Arena::new()));
        arena.reserve(16 << 20).unwrap();
        let tree = Tree::<1>::new();
        let other = tree.child(arena, ROOT, 99).unwrap();
        let mut path = std::boxed::Box::new(Path::<64>::new());
        let mut random = 7u64;
        for round in 0..5_000 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let parent = if round % 11 == 0 { other } else { ROOT };
            path.depth = (random >> 60) as usize;
            for (i, key) in path.frames.iter_mut().take(16).enumerate() {
                *key = 1 + (random >> (3 * i)) % 3;
            }
            let keys: std::vec::Vec<u64> = path.keys().to_vec();
            let node = path.node(&tree, arena, parent);
            assert_eq!(node, tree.path(arena, parent, keys.into_iter().rev()));
        }
    }
}
