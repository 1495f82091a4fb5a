//! Joins of short tasks, with as little as can be done for each.
//!
//! A task of a join that ran on its parent's thread, opened no scope and was not long is *light*: its strands are all on its
//! path, so of an invocation of its site two numbers are its own, count and cost, and they are added up where the thread
//! has looked up the site ([`Tally`]). Which of two light tasks is on the longer path is known when both have ended; only
//! for that one a node is made.
//!
//! Whatever is not light becomes an [`Outcome`], here as everywhere.

use super::{Books, Outcome, Task};
use crate::chain::{Arena, Link, NODES_MAX, NONE, Node};
use crate::context::Entry;
use crate::line::Scale;
use crate::record::{Measure, Record};
use crate::{Cost, Site};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

/// A site that is invoked in some context, and all light invocations of it that ended on one thread. Written by that thread
/// alone; another one may read it at the end.
#[derive(Debug)]
pub struct Tally {
    /// What is invoked.
    pub site: Site,
    /// In which context.
    pub entry: Entry,
    is_top: bool,
    count: AtomicU64,
    own: AtomicU64,
    work: AtomicU64,
    span: AtomicU64,
}

impl Tally {
    /// Nothing has ended.
    pub const fn new(site: Site, entry: Entry) -> Self {
        let [count, own, work, span] = [const { AtomicU64::new(0) }; 4];
        let is_top = entry.top_site || entry.top_caller;
        Self { site, entry, is_top, count, own, work, span }
    }

    #[inline(always)]
    fn add(&self, own: Cost, work: Cost, span: Cost) {
        // One writer: no need for anything that the processor would lock.
        let add = |to: &AtomicU64, more: u64| {
            to.store(to.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        };
        add(&self.count, 1);
        add(&self.own, own);
        // Nobody asks for the others inside of another invocation of the site.
        if self.is_top {
            add(&self.work, work);
            add(&self.span, span);
        }
    }

    /// Adds it all to a worker's books.
    pub fn settle(&self, books: &mut Books) {
        let [count, own, work, span] =
            [&self.count, &self.own, &self.work, &self.span].map(|n| n.load(Ordering::Relaxed));
        if count == 0 {
            return;
        }
        let (all, nothing) = (Measure { count, work, span }, Measure::default());
        *books.of(self.site) += &Record {
            site: if self.entry.top_site { all } else { nothing },
            caller: if self.entry.top_caller { all } else { nothing },
            local: Measure { count, work: own, span: own },
        };
        books.halves += count;
    }
}

/// One side of a join that has ended.
#[derive(Debug)]
pub struct Light {
    work: Cost,
    burdened: Cost,
    span: Cost,
    own: Cost,
    tail: Link,
    /// It was not light: everything is here.
    outcome: Option<Box<Outcome>>,
}

impl From<Outcome> for Light {
    fn from(outcome: Outcome) -> Self {
        Self { work: 0, burdened: 0, span: 0, own: 0, tail: NONE, outcome: Some(Box::new(outcome)) }
    }
}

impl Light {
    /// A task that was nothing but a strand of that cost, if that is light.
    #[inline(always)]
    pub fn of_strand(cost: Cost, tally: &Tally, heavy: Cost) -> Option<Self> {
        if cost >= heavy {
            return None;
        }
        tally.add(cost, cost, cost);
        Some(Self { work: cost, burdened: cost, span: cost, own: cost, tail: NONE, outcome: None })
    }

    #[inline(always)]
    fn is_light(&self) -> bool {
        self.outcome.is_none()
    }

    #[inline(always)]
    fn node(&self, tally: &Tally) -> Node {
        let mut node = Node::new(tally.site, tally.entry, (self.work, self.span), (self.own, self.own));
        node.inside = self.tail;
        node
    }

    /// As whoever is not light sees it.
    fn outcome(&mut self, tally: &Tally, arena: &mut Arena) -> Outcome {
        if let Some(outcome) = self.outcome.take() {
            return *outcome;
        }
        let tail = arena.push(self.node(tally));
        Outcome { work: self.work, burdened: self.burdened, inside: crate::line::Inside::of(self.span, tail) }
    }
}

impl Task {
    /// The task ends with a strand of that cost, on the thread of who waits for it, if it is light. Else nothing has
    /// happened, and it is to [`finish`](Task::finish).
    #[inline(always)]
    pub fn finish_light(&mut self, cost: Cost, tally: &Tally, heavy: Cost) -> Option<Light> {
        let (own, span) = (self.line.local() + cost, self.line.span() + cost);
        if self.cut.is_some() || self.local != 0 || span >= heavy || !self.line.is_light() {
            return None;
        }
        let work = self.work + own;
        tally.add(own, work, span);
        let burdened = self.burdened + own;
        Some(Light { work, burdened, span, own, tail: self.line.tail(), outcome: None })
    }

    /// Waits for two children that started here, whose tallies these are. What they left is read where it was written, word by
    /// word: a copy would stall. Nothing is left in it. Whether something was done that is not done every time.
    #[inline(always)]
    pub fn join_light(
        &mut self,
        (a, b): (&mut Light, &mut Light),
        tallies: &[Tally; 2],
        burden: Cost,
        mut scale: impl FnMut() -> Scale,
        arena: &mut Arena,
    ) -> bool {
        if !(a.is_light() && b.is_light() && self.line.is_light()) {
            self.join_others((a, b), tallies, burden, scale(), arena);
            return true;
        }
        self.work += a.work + b.work;
        self.burdened += a.burdened.max(b.burdened) + burden;
        let (longer, tally) = if b.span > a.span { (b, &tallies[1]) } else { (a, &tallies[0]) };
        // Room first: what is written then goes where it stays.
        arena.make_room();
        self.line.end_with(longer.node(tally), longer.span, arena);
        let full = arena.len().wrapping_sub(self.floor) > NODES_MAX;
        if full {
            self.fold(scale(), arena);
        }
        full
    }

    #[cold]
    #[inline(never)]
    fn join_others(
        &mut self,
        (a, b): (&mut Light, &mut Light),
        tallies: &[Tally; 2],
        burden: Cost,
        scale: Scale,
        arena: &mut Arena,
    ) {
        let (mut a, mut b) = (a.outcome(&tallies[0], arena), b.outcome(&tallies[1], arena));
        self.join(&mut a, &mut b, burden, scale, arena);
    }
}
