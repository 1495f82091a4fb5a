//! A path of dependencies through a task: its length, the call sites on it, and more once it is long.

use crate::chain::{Arena, Link, NONE, Node};
use crate::detail::Detail;
use crate::prof::Prof;
use crate::record::{Measure, Record};
use crate::{Cost, Site};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// How large the computation is, as far as that decides how to store things.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Call sites known so far. 0: nobody asks for them, only for lengths.
    pub sites: usize,
    /// Paths of this length get a [`Detail`]; must be much more than the cost of `sites` additions.
    pub heavy: Cost,
}

impl Scale {
    /// Only lengths, no call sites.
    pub const WHOLE: Scale = Scale { sites: 0, heavy: Cost::MAX };

    /// Whether only lengths are asked for.
    #[inline(always)]
    pub fn is_whole(self) -> bool {
        self.sites == 0
    }
}

/// A path: what the task that it runs through did on it itself, and what ended inside that task.
#[derive(Debug, Clone)]
pub struct Line {
    /// Strands of the task itself. They are nobody's in the profile until the task ends.
    own: Cost,
    inside: Inside,
}

/// Invocations on a path, added up or not.
#[derive(Debug, Clone)]
pub struct Inside {
    /// Their length.
    pub span: Cost,
    /// Those that have not been added up. The nodes lie in the arena of the thread that the path is on.
    tail: Link,
    rest: Option<Box<Rest>>,
}

/// What was added up.
#[derive(Debug, Clone, Default)]
struct Rest {
    prof: Prof,
    detail: Option<Detail>,
    /// The part of the line's own strands that the detail covers.
    own: Cost,
}

impl Default for Inside {
    #[inline]
    fn default() -> Self {
        Self { span: 0, tail: NONE, rest: None }
    }
}

impl Default for Line {
    #[inline]
    fn default() -> Self {
        Self { own: 0, inside: Inside::default() }
    }
}

impl From<Inside> for Line {
    #[inline]
    fn from(inside: Inside) -> Self {
        Self { own: 0, inside }
    }
}

impl Inside {
    #[inline]
    fn detail_span(&self) -> Option<Cost> {
        self.rest.as_ref().and_then(|r| r.detail.as_ref()).map(|d| d.span)
    }

    /// Of this length, none of it added up.
    pub fn of(span: Cost, tail: Link) -> Self {
        Self { span, tail, rest: None }
    }

    /// Nothing of it was added up.
    #[inline]
    pub fn is_light(&self) -> bool {
        self.rest.is_none()
    }

    /// The detail, if the path is heavy.
    pub fn detail(&self) -> Option<&Detail> {
        self.rest.as_ref().and_then(|r| r.detail.as_ref())
    }
}

impl Line {
    /// Its length.
    #[inline]
    pub fn span(&self) -> Cost {
        self.own + self.inside.span
    }

    /// Nothing happened on it.
    pub fn is_empty(&self) -> bool {
        self.span() == 0
            && self.inside.tail == NONE
            && self.inside.rest.as_ref().is_none_or(|r| r.prof.is_empty())
    }

    /// Nothing of it was added up.
    #[inline(always)]
    pub fn is_light(&self) -> bool {
        self.inside.is_light()
    }

    /// The last thing that ended on it, and was not added up.
    #[inline(always)]
    pub fn tail(&self) -> Link {
        self.inside.tail
    }

    /// Adds an invocation of length `span` at the end of a path that is light.
    #[inline(always)]
    pub fn end_with(&mut self, mut node: Node, span: Cost, arena: &mut Arena) {
        node.before = self.inside.tail;
        self.inside.tail = arena.push(node);
        self.inside.span += span;
    }

    /// Adds another one at the end, as [`append_from`](Self::append_from) does, where both are light and stay so.
    #[inline(always)]
    pub fn append_light(&mut self, other: &mut Line, arena: &mut Arena) {
        self.own += core::mem::take(&mut other.own);
        self.inside.span += core::mem::take(&mut other.inside.span);
        let theirs = core::mem::replace(&mut other.inside.tail, NONE);
        self.inside.tail = arena.append(self.inside.tail, theirs);
    }

    /// Is from now on an invocation and nothing else, as a path that was light.
    #[inline(always)]
    pub fn be(&mut self, node: Node, span: Cost, arena: &mut Arena) {
        self.own = 0;
        self.inside.span = span;
        self.inside.tail = arena.push(node);
    }

    /// The part of it that is the task's own strands.
    #[inline]
    pub fn local(&self) -> Cost {
        self.own
    }

    /// What is known of the sites on it. The tail must have been added up.
    pub fn records(&self, sites: usize) -> Vec<Record> {
        let rest = self.inside.rest.as_ref();
        rest.map_or_else(|| Prof::default().records(sites), |r| r.prof.records(sites))
    }

    /// The task executes.
    #[inline]
    pub fn strand(&mut self, cost: Cost) {
        self.own += cost;
    }

    /// A part of the task's own strands was invocations of another site: how much, at most what no detail covers yet.
    pub fn give(&mut self, site: Site, record: &Record, scale: Scale) -> Cost {
        let rest = self.inside.rest.get_or_insert_default();
        let cost = record.local.span.min(self.own - rest.own);
        let local = Measure { work: cost, span: cost, ..record.local };
        rest.prof.update(site, &Record { local, ..*record }, scale);
        if let Some(detail) = &mut rest.detail {
            detail.strand(site, cost);
        }
        self.own -= cost;
        self.inside.span += cost;
        cost
    }

    /// It becomes longer by something that is nobody's own.
    #[inline(always)]
    pub fn stretch(&mut self, cost: Cost) {
        self.inside.span += cost;
    }

    /// What was the task's own is nobody's.
    pub fn disown(&mut self) {
        self.inside.span += core::mem::take(&mut self.own);
    }

    /// It is this long, and nobody's own.
    #[inline(always)]
    pub fn set_span(&mut self, span: Cost) {
        self.inside.span = span;
    }

    /// The task that it runs through ends: its strands and its invocation become part of what is known.
    #[inline]
    pub fn close(&mut self, own: Site, mut node: Node, scale: Scale, arena: &mut Arena) {
        if scale.is_whole() {
            self.inside.span += core::mem::take(&mut self.own);
            return;
        }
        if self.is_heavy(scale) {
            return self.close_record(own, &node.record(), scale, arena);
        }
        node.inside = self.inside.tail;
        self.inside.tail = arena.push(node);
        self.inside.span += self.own;
        self.own = 0;
    }

    /// As [`close`](Self::close), of a path that leaves its thread.
    pub fn close_record(&mut self, own: Site, record: &Record, scale: Scale, arena: &mut Arena) {
        if scale.is_whole() {
            self.inside.span += core::mem::take(&mut self.own);
            return;
        }
        if self.is_heavy(scale) {
            self.detailed(own, scale, arena);
        }
        self.fold(own, scale, arena);
        let rest = self.inside.rest.get_or_insert_default();
        rest.prof.update(own, record, scale);
        rest.own = 0;
        self.inside.span += self.own;
        self.own = 0;
    }

    /// The strands so far become part of the profile although their invocation goes on elsewhere.
    pub fn seal(&mut self, own: Site, scale: Scale, arena: &mut Arena) {
        let local = Measure { count: 0, work: self.own, span: self.own };
        self.close_record(own, &Record { local, ..Record::default() }, scale, arena);
    }

    /// Takes the place of this path, which is empty, word by word.
    #[inline]
    pub fn put(&mut self, from: &mut Line) {
        self.own = core::mem::take(&mut from.own);
        from.take_into(&mut self.inside);
    }

    /// Forgets everything.
    #[inline]
    pub fn clear(&mut self) {
        self.own = 0;
        self.inside.span = 0;
        self.inside.tail = NONE;
        if self.inside.rest.is_some() {
            self.inside.rest = None;
        }
    }

    /// What is left of a closed path. Word by word: a copy of what was just written in other pieces would stall.
    #[inline]
    pub fn take_into(&mut self, out: &mut Inside) {
        out.span = core::mem::take(&mut self.inside.span);
        out.tail = core::mem::replace(&mut self.inside.tail, NONE);
        if self.inside.rest.is_some() {
            out.rest = self.inside.rest.take();
        }
    }

    #[inline]
    fn is_heavy(&self, scale: Scale) -> bool {
        self.span() >= scale.heavy || self.inside.detail_span().is_some()
    }

    /// Adds up the tail.
    pub fn fold(&mut self, own: Site, scale: Scale, arena: &mut Arena) {
        if self.inside.tail == NONE {
            return;
        }
        if self.inside.detail_span().is_some() {
            self.detailed(own, scale, arena);
            return;
        }
        let prof = &mut self.inside.rest.get_or_insert_default().prof;
        let tail = core::mem::replace(&mut self.inside.tail, NONE);
        arena.for_each(tail, |site, record| prof.update(site, record, scale));
    }

    /// The detail, made if there is none. The tail is added up.
    pub fn detailed(&mut self, own: Site, scale: Scale, arena: &mut Arena) -> &mut Detail {
        let span = self.span();
        let rest = self.inside.rest.get_or_insert_default();
        let tail = core::mem::replace(&mut self.inside.tail, NONE);
        let loose = self.own - rest.own;
        match &mut rest.detail {
            Some(detail) => {
                if tail != NONE {
                    let mut new = Prof::default();
                    arena.for_each(tail, |site, record| new.update(site, record, scale));
                    let length = span - detail.span;
                    detail.append(&Detail::new(length, &new.records(scale.sites), own, loose));
                    rest.prof.union(new, scale);
                } else {
                    detail.strand(own, loose);
                }
            }
            none => {
                arena.for_each(tail, |site, record| rest.prof.update(site, record, scale));
                *none = Some(Detail::new(span, &rest.prof.records(scale.sites), own, self.own));
            }
        }
        rest.own = self.own;
        rest.detail.get_or_insert_default()
    }

    /// Adds a path at the end. Strands of the other one that are its own stay so here, so it must be either closed or
    /// of the same task, which is `own`.
    #[inline]
    pub fn append(&mut self, mut other: Line, own: Site, scale: Scale, arena: &mut Arena) {
        self.append_from(&mut other, own, scale, arena);
    }

    /// The same, leaving nothing of the other path behind. Word by word, as in [`take_into`](Self::take_into).
    #[inline]
    pub fn append_from(&mut self, other: &mut Line, own: Site, scale: Scale, arena: &mut Arena) {
        if other.inside.rest.is_some() {
            return self.append_rest(core::mem::take(other), own, scale, arena);
        }
        self.own += core::mem::take(&mut other.own);
        self.inside.span += core::mem::take(&mut other.inside.span);
        let theirs = core::mem::replace(&mut other.inside.tail, NONE);
        self.inside.tail = arena.append(self.inside.tail, theirs);
        if let Some(covered) = self.inside.detail_span()
            && self.span() - covered >= scale.heavy
        {
            self.detailed(own, scale, arena);
        }
    }

    fn append_rest(&mut self, mut other: Line, own: Site, scale: Scale, arena: &mut Arena) {
        if self.inside.detail_span().is_some() || other.inside.detail_span().is_some() {
            let theirs = core::mem::take(other.detailed(own, scale, arena));
            self.detailed(own, scale, arena).append(&theirs);
        } else {
            self.inside.tail = arena.append(self.inside.tail, other.inside.tail);
        }
        self.own += other.own;
        self.inside.span += other.inside.span;
        if let Some(theirs) = other.inside.rest.take() {
            let rest = self.inside.rest.get_or_insert_default();
            rest.own += theirs.own;
            rest.prof.union(theirs.prof, scale);
        }
    }

    /// The longer of two paths from the same start to the same end; `self` when they are equal.
    #[inline]
    pub fn max(self, other: Line, own: Site, scale: Scale, arena: &mut Arena) -> Line {
        let (longer, shorter) = if other.span() > self.span() { (other, self) } else { (self, other) };
        if longer.is_heavy(scale) {
            return longer.with_rival(shorter, own, scale, arena);
        }
        longer
    }

    /// Adds the longer of two closed paths at the end.
    #[inline]
    pub fn append_longer(
        &mut self,
        a: &mut Inside,
        b: &mut Inside,
        own: Site,
        scale: Scale,
        arena: &mut Arena,
    ) {
        let longer = if b.span > a.span { &*b } else { &*a };
        let light = longer.span < scale.heavy && a.rest.is_none() && b.rest.is_none();
        if !light || self.inside.rest.is_some() {
            let (a, b) = (Line::from(core::mem::take(a)), Line::from(core::mem::take(b)));
            let longer = a.max(b, own, scale, arena);
            return self.append(longer, own, scale, arena);
        }
        self.inside.span += longer.span;
        self.inside.tail = arena.append(self.inside.tail, longer.tail);
    }

    fn with_rival(mut self, mut other: Line, own: Site, scale: Scale, arena: &mut Arena) -> Line {
        let theirs = core::mem::take(other.detailed(own, scale, arena));
        self.detailed(own, scale, arena).rival(&theirs, None);
        self
    }
}
