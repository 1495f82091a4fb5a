//! A calling context tree that grows in a signal handler.
//!
//! ```text
//! node   key u64 | parent u32 | next in bucket u32 | M metrics u64
//! nodes  in chunks of 256, 512, 1024 ... nodes: an id never moves, and half of the memory is used at worst
//! index  hash(parent, key) -> first node of a chain; four times as large whenever chains grow past two
//! ```
//! One thread writes. Others may read nodes by id up to [`Tree::len`] while it does: a node's key and parent
//! are final before the length covers it, and metrics are atomics.
//!
//! Bounded: when the arena is full or the last chunk is, paths end at the last node that exists and
//! [`Tree::refused`] counts them.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use preload::arena::Arena;

/// A node's number; 0 is the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// The root of every tree.
pub const ROOT: NodeId = NodeId(0);

const FIRST_CHUNK: u32 = 256;
/// 256 * (2^13 - 1): two million nodes.
const CHUNKS: usize = 13;
const FIRST_INDEX: u32 = 256;

/// One calling context.
#[derive(Debug)]
#[repr(C)]
pub struct Node<const M: usize> {
    key: AtomicU64,
    parent: AtomicU32,
    next: AtomicU32,
    metrics: [AtomicU64; M],
}

/// The calling contexts of one thread, with `M` metrics each.
#[derive(Debug)]
pub struct Tree<const M: usize> {
    chunks: [AtomicPtr<Node<M>>; CHUNKS],
    len: AtomicU32,
    refused: AtomicU64,
    index: Cell<*mut u32>,
    index_len: Cell<u32>,
}

// SAFETY: the `Cell`s are the writing thread's; readers touch chunks, nodes and counts, which are atomics.
unsafe impl<const M: usize> Sync for Tree<M> {}

impl<const M: usize> Node<M> {
    /// What tells it from its siblings (see `unwind::Key`).
    pub fn key(&self) -> u64 {
        self.key.load(Relaxed)
    }

    /// Its caller.
    pub fn parent(&self) -> NodeId {
        NodeId(self.parent.load(Relaxed))
    }

    /// Its metrics.
    pub fn metrics(&self) -> [u64; M] {
        core::array::from_fn(|i| self.metrics.get(i).map_or(0, |m| m.load(Relaxed)))
    }
}

impl<const M: usize> Tree<M> {
    /// A tree without memory; it takes some with the first node.
    pub const fn new() -> Self {
        Self {
            chunks: [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS],
            len: AtomicU32::new(0),
            refused: AtomicU64::new(0),
            index: Cell::new(ptr::null_mut()),
            index_len: Cell::new(0),
        }
    }

    /// Empty again, without memory: that of the nodes is gone, in a forked child.
    pub fn forget(&self) {
        self.chunks.iter().for_each(|chunk| chunk.store(ptr::null_mut(), Relaxed));
        self.len.store(0, Relaxed);
        self.refused.store(0, Relaxed);
        self.index.set(ptr::null_mut());
        self.index_len.set(0);
    }

    /// Nodes there are, the root included.
    pub fn len(&self) -> u32 {
        self.len.load(Acquire)
    }

    /// Whether nothing has been added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frames that found no place.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// A node by number.
    pub fn node(&self, id: NodeId) -> Option<&Node<M>> {
        if id.0 >= self.len() { None } else { self.place(id.0) }
    }

    /// Start and length of every chunk, for whoever describes a shared arena to a reader.
    pub fn chunks(&self) -> impl Iterator<Item = (NonNull<Node<M>>, u32)> {
        let sizes = (0..CHUNKS as u32).map(|i| FIRST_CHUNK << i);
        self.chunks
            .iter()
            .zip(sizes)
            .filter_map(|(chunk, len)| Some((NonNull::new(chunk.load(Acquire))?, len)))
    }

    /// The child of `parent` with that key, made if need be. `None`, and counted, when there is no memory.
    pub fn child(&self, arena: &Arena, parent: NodeId, key: u64) -> Option<NodeId> {
        if self.len.load(Relaxed) == 0 {
            self.add(arena, 0, 0)?;
        }
        if self.len.load(Relaxed) > 2 * self.index_len.get() {
            self.grow_index(arena);
        }
        let mut at = self.bucket(parent.0, key).map_or(0, |bucket| {
            // SAFETY: `bucket` points into the index, which is this thread's.
            unsafe { *bucket }
        });
        // Node 0 is the root and nobody's child: 0 ends a chain.
        while at != 0 {
            let node = self.place(at)?;
            if node.key.load(Relaxed) == key && node.parent.load(Relaxed) == parent.0 {
                return Some(NodeId(at));
            }
            at = node.next.load(Relaxed);
        }
        let id = self.add(arena, parent.0, key)?;
        self.link(id);
        Some(NodeId(id))
    }

    /// Follows `keys` from `parent`, the outermost first; the node reached, which is the last that exists when
    /// memory has run out.
    pub fn path(&self, arena: &Arena, parent: NodeId, keys: impl Iterator<Item = u64>) -> NodeId {
        let mut at = parent;
        for key in keys {
            match self.child(arena, at, key) {
                Some(next) => at = next,
                None => break,
            }
        }
        at
    }

    /// Adds to a metric of a node.
    #[inline]
    pub fn add_metric(&self, id: NodeId, which: usize, amount: u64) {
        if let Some(metric) = self.place(id.0).and_then(|node| node.metrics.get(which)) {
            metric.store(metric.load(Relaxed).wrapping_add(amount), Relaxed);
        }
    }

    fn place(&self, id: u32) -> Option<&Node<M>> {
        let (chunk, offset) = locate(id);
        let start = self.chunks.get(chunk)?.load(Acquire);
        // SAFETY: a chunk has room for every offset that `locate` gives for it, arena memory is zeroed (a
        // valid node) and never freed.
        unsafe { (!start.is_null()).then(|| &*start.add(offset)) }
    }

    fn add(&self, arena: &Arena, parent: u32, key: u64) -> Option<u32> {
        let id = self.len.load(Relaxed);
        let (chunk, _) = locate(id);
        let made = self.chunks.get(chunk).and_then(|slot| {
            if slot.load(Relaxed).is_null() {
                let start = arena.take_array::<Node<M>>((FIRST_CHUNK << chunk) as usize)?;
                slot.store(start.as_ptr(), Release);
            }
            self.place(id)
        });
        let Some(node) = made else {
            self.refused.fetch_add(1, Relaxed);
            return None;
        };
        node.key.store(key, Relaxed);
        node.parent.store(parent, Relaxed);
        self.len.store(id + 1, Release);
        Some(id)
    }

    fn bucket(&self, parent: u32, key: u64) -> Option<*mut u32> {
        let len = self.index_len.get();
        if len == 0 {
            return None;
        }
        let hash = (key ^ (parent as u64) << 40 ^ parent as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        // SAFETY: the index has `len` (a power of two) words.
        Some(unsafe { self.index.get().add((hash & (len as u64 - 1)) as usize) })
    }

    fn link(&self, id: u32) {
        let Some(node) = self.place(id) else { return };
        if let Some(bucket) = self.bucket(node.parent.load(Relaxed), node.key.load(Relaxed)) {
            // SAFETY: as in `child`.
            unsafe {
                node.next.store(*bucket, Relaxed);
                *bucket = id;
            }
        }
    }

    #[cold]
    fn grow_index(&self, arena: &Arena) {
        let len = (self.index_len.get() * 4).max(FIRST_INDEX);
        // Without memory the old index serves on with longer chains.
        let Some(index) = arena.take_array::<u32>(len as usize) else { return };
        self.index.set(index.as_ptr());
        self.index_len.set(len);
        for id in 1..self.len.load(Relaxed) {
            self.link(id);
        }
    }
}

impl<const M: usize> Default for Tree<M> {
    fn default() -> Self {
        Self::new()
    }
}

/// Chunk and offset of a node: chunk `k` holds `256 << k` nodes.
fn locate(id: u32) -> (usize, usize) {
    let shifted = id + FIRST_CHUNK;
    let chunk = shifted.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (shifted - (FIRST_CHUNK << chunk)) as usize)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::HashMap;
    use std::vec::Vec;

    fn arena(bytes: usize) -> &'static Arena {
        let arena = std::boxed::Box::leak(std::boxed::Box::new(Arena::new()));
        arena.reserve(bytes).unwrap();
        arena
    }

    #[test]
    fn agrees_with_a_map_of_paths() {
        let arena = arena(64 << 20);
        let tree = Tree::<2>::new();
        let mut naive: HashMap<Vec<u64>, u64> = HashMap::new();
        let mut random = 12345u64;
        for _ in 0..20_000 {
            let mut path = Vec::new();
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            for i in 0..random >> 60 {
                path.push(0x1000 + (random >> (i * 3)) % 7);
            }
            let node = tree.path(arena, ROOT, path.iter().copied());
            tree.add_metric(node, 0, 1);
            tree.add_metric(node, 1, random & 0xff);
            *naive.entry(path).or_default() += 1;
        }
        let mut seen = 0;
        for id in 0..tree.len() {
            let [count, _] = tree.node(NodeId(id)).unwrap().metrics();
            let mut path = Vec::new();
            let mut at = id;
            while at != 0 {
                let node = tree.node(NodeId(at)).unwrap();
                path.push(node.key());
                at = node.parent().0;
            }
            path.reverse();
            assert_eq!(naive.get(&path).copied().unwrap_or(0), count, "{path:x?}");
            seen += count;
        }
        assert_eq!(seen, 20_000);
        assert!(tree.len() > 5_000, "the index and the chunks have grown");
        assert_eq!(tree.refused(), 0);
    }

    #[test]
    fn a_full_arena_is_counted_and_harmless() {
        let arena = arena(1 << 16);
        let tree = Tree::<1>::new();
        for key in 1..100_000u64 {
            let node = tree.path(arena, ROOT, [key, key + 1].into_iter());
            tree.add_metric(node, 0, 1);
        }
        assert!(tree.refused() > 0);
        let total: u64 = (0..tree.len()).map(|id| tree.node(NodeId(id)).unwrap().metrics()[0]).sum();
        assert_eq!(total, 99_999, "every sample has landed somewhere on its path");
    }
}
