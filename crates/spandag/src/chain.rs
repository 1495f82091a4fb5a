//! Invocations on a path that nobody has added up yet.
//!
//! Of two paths that join, one is forgotten. So what lies on a path is not added up when an invocation ends but only
//! linked: a [`Node`] for the invocation, which knows the chain of invocations inside it and what comes before it on the
//! same path. Only what is on the longest path when a chain has become long is ever looked at again.
//!
//! Nodes lie in the [`Arena`] of the thread that made them, in the order in which invocations end; so an invocation
//! that has added up its own chain can forget everything that was made since it began, by setting back the length. What
//! leaves its thread is added up first.

use crate::record::Record;
use crate::serial::record;
use crate::{Cost, Entry, Site};
use alloc::vec::Vec;

/// A node, or none.
pub type Link = u32;
/// No node.
pub const NONE: Link = Link::MAX;
/// Nodes that an invocation leaves behind before it adds up its chain: enough to pay for it, few enough for the cache.
pub const NODES_MAX: usize = 384;

/// An invocation that ended.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// What ended before it on the same path, in the invocation that it is part of.
    pub before: Link,
    /// The last thing that ended inside it.
    pub inside: Link,
    /// What was invoked; [`Node::together`] has none.
    site: Site,
    entry: Entry,
    work: Cost,
    span: Cost,
    local_work: Cost,
    local_span: Cost,
}

impl Node {
    /// An invocation of `site`.
    #[inline]
    pub fn new(
        site: Site,
        entry: Entry,
        (work, span): (Cost, Cost),
        (local_work, local_span): (Cost, Cost),
    ) -> Self {
        Self { before: NONE, inside: NONE, site, entry, work, span, local_work, local_span }
    }

    /// Two chains, one behind the other.
    fn together(before: Link, inside: Link) -> Self {
        let entry = Entry { context: 0, top_site: false, top_caller: false };
        Self { before, inside, ..Self::new(Site::MAX, entry, (0, 0), (0, 0)) }
    }

    /// What it adds to the records of its site.
    pub fn record(&self) -> Record {
        record(&self.entry, (self.work, self.span), (self.local_work, self.local_span))
    }
}

/// The nodes of one thread.
#[derive(Debug, Default)]
pub struct Arena {
    nodes: Vec<Node>,
    todo: Vec<Link>,
}

impl Arena {
    /// How many there are; what comes later lies behind.
    #[inline]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Forgets all nodes but the first `len`.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.nodes.truncate(len);
    }

    /// The next one will find room.
    #[inline(always)]
    pub fn make_room(&mut self) {
        if self.nodes.len() == self.nodes.capacity() {
            self.grow();
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.nodes.reserve(NODES_MAX);
    }

    /// A chain of one.
    #[inline]
    pub fn push(&mut self, node: Node) -> Link {
        let link = self.nodes.len() as Link;
        self.nodes.push(node);
        link
    }

    /// One chain behind another. `after` belongs to nobody else.
    #[inline]
    pub fn append(&mut self, chain: Link, after: Link) -> Link {
        if chain == NONE || after == NONE {
            return if after == NONE { chain } else { after };
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) if node.before == NONE => {
                node.before = chain;
                after
            }
            _ => self.push(Node::together(chain, after)),
        }
    }

    /// Every invocation on a chain, in no order.
    pub fn for_each(&mut self, chain: Link, mut f: impl FnMut(Site, &Record)) {
        let mut todo = core::mem::take(&mut self.todo);
        todo.push(chain);
        while let Some(link) = todo.pop() {
            let Some(node) = self.nodes.get(link as usize) else { continue };
            todo.push(node.before);
            todo.push(node.inside);
            if node.site != Site::MAX {
                f(node.site, &node.record());
            }
        }
        self.todo = todo;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_of_chains_hold_every_invocation_once() {
        let mut arena = Arena::default();
        let entry = Entry { context: 0, top_site: true, top_caller: false };
        let one = |arena: &mut Arena, site, inside| {
            let node = Node { inside, ..Node::new(site, entry, (10, 5), (2, 1)) };
            arena.push(node)
        };
        let leaf = one(&mut arena, 1, NONE);
        let parent = one(&mut arena, 2, leaf);
        let second = one(&mut arena, 3, NONE);
        let first_two = arena.append(parent, second);
        let third = one(&mut arena, 4, NONE);
        let fourth = one(&mut arena, 5, NONE);
        let last_two = arena.append(third, fourth);
        let all = arena.append(first_two, last_two);
        assert_eq!(arena.append(NONE, all), all);
        assert_eq!(arena.append(all, NONE), all);
        let mut seen = Vec::new();
        arena.for_each(all, |site, record| {
            assert_eq!((record.site.work, record.caller.count, record.local.span), (10, 0, 1));
            seen.push(site);
        });
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5]);
        arena.truncate(0);
        arena.for_each(all, |_, _| panic!("nothing is left"));
    }
}
