//! Work and span with work stealing: tasks are values, and combine when they are joined.
//!
//! A [`Task`] is an invocation that is running. A child is made from its parent at a fork, may run on any
//! thread, at any time, and becomes an [`Outcome`]; the parent takes its children's outcomes at the join. None
//! of it depends on the order in which things really happened, so the result is that of a serial execution.
//!
//! Two shapes of fork:
//! - **join**: two children, and the parent waits for both. The parent's path grows by the longer one.
//! - **scope**: any number of children, each starting where its spawner stands. Which of them will be on the
//!   longest path is not known until all have ended, so the spawner's path is cut at each spawn into immutable
//!   [`Point`]s that children refer to. A child may spawn into the same scope from where it stands. When the
//!   scope closes, the winner's chain of points is put together.
//!
//! A task inside a join that spawns into a scope outside it has no point to refer to; the way up to the spawn
//! then counts as strands of the spawning site. Lengths are right in any case: they are absolute.

mod light;

pub use light::{Light, Tally};

use crate::chain::{Arena, NODES_MAX, Node};
use crate::context::{Contexts, Entry};
use crate::line::{Inside, Line, Scale};
use crate::record::{Measure, Record};
use crate::serial::{add, record};
use crate::{Cost, ROOT, Site};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An invocation that is running.
#[derive(Debug)]
pub struct Task {
    /// What was invoked.
    pub site: Site,
    /// In which context.
    pub entry: Entry,
    /// For whoever compares runs: how it came about, and how many strands it has ended.
    pub way: u64,
    /// The latter.
    pub strands: u64,
    line: Line,
    /// Work, own strands and burdened span without the line's own strands.
    work: Cost,
    local: Cost,
    burdened: Cost,
    /// When the task started and where it is now, on the program's longest path to here.
    start: Cost,
    start_burdened: Cost,
    /// Nodes that were there when it started, on its thread.
    floor: usize,
    cut: Option<Box<Cut>>,
}

/// What a task that has to do with a scope knows beyond its line.
#[derive(Debug, Default)]
struct Cut {
    /// What the line has been cut off from, and the scope that this belongs to.
    origin: Option<Arc<Point>>,
    scope: ScopeId,
    span: Cost,
    local: Cost,
}

/// Names a scope: 0 is none.
pub type ScopeId = usize;

/// A place on a path from which tasks were spawned. Never changes.
#[derive(Debug)]
pub struct Point {
    before: Option<Arc<Point>>,
    line: Line,
    owner: Site,
    /// The owner is the task that opened the scope.
    body: bool,
}

impl Drop for Point {
    fn drop(&mut self) {
        // Not by recursion: a scope may have spawned a million tasks one after the other.
        let mut before = self.before.take();
        while let Some(mut point) = before.and_then(Arc::into_inner) {
            before = point.before.take();
        }
    }
}

/// Where tasks start that are spawned into a scope.
#[derive(Debug, Clone)]
pub struct Seed {
    site: Site,
    entry: Entry,
    scope: ScopeId,
    at: Cost,
    at_burdened: Cost,
    point: Arc<Point>,
    /// That of the tasks: see [`Task::way`].
    pub way: u64,
}

impl Seed {
    /// A task that starts there.
    pub fn task(&self) -> Task {
        let mut task = Task::new(self.site, self.entry, self.at, self.at_burdened);
        let origin = Some(self.point.clone());
        task.way = self.way;
        task.cut = Some(Box::new(Cut { origin, scope: self.scope, ..Cut::default() }));
        task
    }
}

/// A task that has ended, as whoever waits for it by name sees it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its work, and that of its children.
    pub work: Cost,
    burdened: Cost,
    inside: Inside,
}

/// A task that has ended, for a scope: it may have moved between threads, so everything is added up.
#[derive(Debug)]
pub struct Spawned {
    outcome: Outcome,
    origin: Option<Arc<Point>>,
    end: Cost,
    end_burdened: Cost,
}

/// The on-work profile of one worker: all invocations that ended on it.
#[derive(Debug, Default)]
pub struct Books {
    records: Vec<Record>,
    /// Forks, counted by their ends: one for each task of a join, two for a task that was spawned.
    pub halves: u64,
}

impl Books {
    #[inline]
    fn of(&mut self, site: Site) -> &mut Record {
        if self.records.len() <= site as usize {
            self.grow(site);
        }
        &mut self.records[site as usize]
    }

    #[cold]
    fn grow(&mut self, site: Site) {
        self.records.resize(site as usize + 1, Record::default());
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Books) {
        other.records.iter().zip(0..).for_each(|(r, site)| *self.of(site) += r);
        self.halves += other.halves;
    }

    /// By site.
    pub fn into_records(mut self, sites: usize) -> Vec<Record> {
        self.records.resize(sites.max(self.records.len()).max(1), Record::default());
        self.records
    }
}

/// The children of a scope that have ended.
#[derive(Debug, Default)]
pub struct Gather {
    work: Cost,
    burdened: Cost,
    longest: Option<Spawned>,
    /// Details of heavy children that lost, relative to the scope's start.
    rivals: Option<Line>,
}

/// How long the path through a task is at some place, without and with burdens; for tasks of which only lengths count.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mark {
    span: Cost,
    burdened: Cost,
}

/// What a task looked like before it opened a scope.
#[derive(Debug)]
pub struct Opened {
    line: Line,
    start: Cost,
    burdened: Cost,
    cut: Option<Box<Cut>>,
}

impl Task {
    /// The start of the program.
    pub fn root(contexts: &mut Contexts) -> Self {
        Self::new(ROOT, contexts.enter(Contexts::EMPTY, ROOT, crate::Func::MAX), 0, 0)
    }

    #[inline(always)]
    fn new(site: Site, entry: Entry, start: Cost, start_burdened: Cost) -> Self {
        Self {
            site,
            entry,
            way: 0,
            strands: 0,
            line: Line::default(),
            work: 0,
            local: 0,
            burdened: 0,
            start,
            start_burdened,
            floor: usize::MAX,
            cut: None,
        }
    }

    /// A task that starts here and that this one will wait for.
    #[inline]
    pub fn child(&self, site: Site, entry: Entry) -> Task {
        Self::new(site, entry, self.now(), self.now_burdened())
    }

    /// The task executes.
    #[inline]
    pub fn strand(&mut self, cost: Cost) {
        self.line.strand(cost);
    }

    /// Of the strand that was told of last, this was done by invocations of `site`, which have returned.
    pub fn called(&mut self, site: Site, record: &Record, scale: Scale, books: &mut Books) {
        if scale.is_whole() {
            return;
        }
        let cost = self.line.give(site, record, scale);
        self.work += cost;
        self.burdened += cost;
        let local = Measure { work: cost, span: cost, ..record.local };
        *books.of(site) += &Record { local, ..*record };
    }

    /// As [`strand`](Self::strand), where only lengths count: nothing is the task's own.
    #[inline(always)]
    pub fn stretch(&mut self, cost: Cost) {
        self.work += cost;
        self.burdened += cost;
        self.line.stretch(cost);
    }

    /// Where the task stands; only lengths count. What it does from here on may run in parallel with something else that
    /// starts here: it goes [`back`](Self::back) for that, and they [`meet`](Self::meet).
    #[inline(always)]
    pub fn mark(&mut self) -> Mark {
        let own = self.line.local();
        if own != 0 {
            self.work += own;
            self.burdened += own;
            self.line.disown();
        }
        Mark { span: self.line.span(), burdened: self.burdened }
    }

    /// Goes back to `mark`. Where the task stood.
    #[inline(always)]
    pub fn back(&mut self, mark: Mark) -> Mark {
        let end = self.mark();
        self.burdened = mark.burdened;
        self.line.set_span(mark.span);
        end
    }

    /// What ended at `other` has been waited for.
    #[inline(always)]
    pub fn meet(&mut self, other: Mark, burden: Cost) {
        let end = self.mark();
        self.burdened = end.burdened.max(other.burdened) + burden;
        self.line.set_span(end.span.max(other.span));
    }

    /// The same for a task that started at `mark` and ended elsewhere: where it ended.
    pub fn end_of(&mut self, child: Outcome, mark: Mark) -> Mark {
        self.work += child.work;
        Mark { span: mark.span + child.inside.span, burdened: mark.burdened + child.burdened }
    }

    /// A task that starts where another one stood, on the path from the program's start.
    #[inline(always)]
    pub fn at(site: Site, entry: Entry, start: (Cost, Cost)) -> Task {
        Self::new(site, entry, start.0, start.1)
    }

    /// Where it stands on that path, without and with burdens.
    #[inline(always)]
    pub fn place(&self) -> (Cost, Cost) {
        (self.now(), self.now_burdened())
    }

    /// Length of the longest path from the start of the program to here.
    #[inline]
    pub fn now(&self) -> Cost {
        self.start + self.cut_span() + self.line.span()
    }

    #[inline]
    fn cut_span(&self) -> Cost {
        self.cut.as_ref().map_or(0, |c| c.span)
    }

    #[inline]
    fn cut_local(&self) -> Cost {
        self.cut.as_ref().map_or(0, |c| c.local)
    }

    #[inline]
    fn now_burdened(&self) -> Cost {
        self.start_burdened + self.burdened + self.line.local()
    }

    /// Work of this task so far.
    pub fn work(&self) -> Cost {
        self.work + self.line.local()
    }

    /// The line is about to be put aside: what it did itself is done.
    fn keep_own(&mut self) {
        let own = self.line.local();
        self.work += own;
        self.local += own;
        self.burdened += own;
    }

    /// The task starts, or goes on, on a thread whose nodes are in `arena`. What was there where it was before.
    #[inline]
    pub fn on(&mut self, arena: &Arena) -> usize {
        core::mem::replace(&mut self.floor, arena.len())
    }

    /// The task leaves the thread whose nodes are in `arena`, for one where `floor` is what [`on`](Self::on) said.
    pub fn moved(&mut self, scale: Scale, arena: &mut Arena, floor: usize) {
        self.fold(scale, arena);
        self.floor = floor;
    }

    /// Adds up what ended in this task, before it goes on elsewhere.
    pub fn settle(&mut self, scale: Scale, arena: &mut Arena) {
        self.line.fold(self.site, scale, arena);
    }

    /// The task ends, on the thread of who waits for it, and leaves its outcome in `out`.
    #[inline]
    pub fn finish(&mut self, books: &mut Books, scale: Scale, arena: &mut Arena, out: &mut Outcome) {
        if self.cut.is_some() {
            *out = self.finish_apart(books, scale, arena).outcome;
            books.halves += 1;
            return;
        }
        let own = self.line.local();
        let (all, local) = ((self.work + own, self.line.span()), (self.local + own, own));
        if !scale.is_whole() {
            add(books.of(self.site), &self.entry, all, local);
        }
        books.halves += 1;
        out.work = all.0;
        out.burdened = self.burdened + own;
        self.line.close(self.site, Node::new(self.site, self.entry, all, local), scale, arena);
        self.line.take_into(&mut out.inside);
    }

    /// The task ends, and its nodes are not where they are looked for.
    pub fn finish_apart(&mut self, books: &mut Books, scale: Scale, arena: &mut Arena) -> Spawned {
        let (cut_span, cut_local) = (self.cut_span(), self.cut_local());
        let own = self.line.local();
        let all = (self.work + own, cut_span + self.line.span());
        let local = (self.local + own, cut_local + own);
        add(books.of(self.site), &self.entry, all, local);
        let mut record = record(&self.entry, all, local);
        // Strands before the last cut are in the points.
        record.local.span = own;
        record.local.work -= cut_local;
        let (end, end_burdened) = (self.now(), self.now_burdened());
        let burdened = self.burdened + own;
        self.line.close_record(self.site, &record, scale, arena);
        arena.truncate(self.floor);
        let origin = self.cut.take().and_then(|c| c.origin);
        let mut outcome = Outcome { work: all.0, burdened, inside: Inside::default() };
        self.line.take_into(&mut outcome.inside);
        Spawned { outcome, origin, end, end_burdened }
    }

    /// The task is given up, on the thread that it is on: what ended in it is forgotten.
    pub fn lose(&mut self, arena: &mut Arena) {
        arena.truncate(self.floor);
    }

    /// Waits for two children that started here.
    #[inline]
    pub fn join(&mut self, a: &mut Outcome, b: &mut Outcome, burden: Cost, scale: Scale, arena: &mut Arena) {
        self.work += a.work + b.work;
        self.burdened += a.burdened.max(b.burdened) + burden;
        self.line.append_longer(&mut a.inside, &mut b.inside, self.site, scale, arena);
        if arena.len() > self.floor.saturating_add(NODES_MAX) {
            self.fold(scale, arena);
        }
    }

    /// Waits for one child that started here: a call.
    pub fn returned(&mut self, child: Outcome, scale: Scale, arena: &mut Arena) {
        self.work += child.work;
        self.burdened += child.burdened;
        self.line.append(child.inside.into(), self.site, scale, arena);
        if arena.len() > self.floor.saturating_add(NODES_MAX) {
            self.fold(scale, arena);
        }
    }

    /// A call that this task made is over, but what it spawned is not: the scope that it opened goes on, and is this task's to
    /// close. So the call was no invocation with a span of its own: what it did is what this task did.
    pub fn take_over(&mut self, call: Task, opened: &mut Opened, scale: Scale, arena: &mut Arena) {
        self.keep_own();
        self.work += call.work;
        self.local += call.local;
        self.burdened += call.burdened;
        let mut cut = call.cut.unwrap_or_default();
        cut.span += self.cut_span() + self.line.span();
        cut.local += self.cut_local() + self.line.local();
        let mut before = core::mem::replace(&mut self.line, call.line);
        before.append(core::mem::take(&mut opened.line), self.site, scale, arena);
        before.fold(self.site, scale, arena);
        opened.line = before;
        opened.cut = self.cut.replace(cut);
    }

    /// Adds up what ended in this task, and forgets the nodes that were made since it started.
    #[cold]
    pub fn fold(&mut self, scale: Scale, arena: &mut Arena) {
        self.line.fold(self.site, scale, arena);
        arena.truncate(self.floor);
    }

    /// Opens a scope.
    pub fn open(&mut self, scope: ScopeId, scale: Scale, arena: &mut Arena) -> Opened {
        self.line.fold(self.site, scale, arena);
        let (start, burdened) = (self.now(), self.now_burdened());
        self.keep_own();
        let opened = Opened { start, burdened, line: core::mem::take(&mut self.line), cut: self.cut.take() };
        let (span, local) = opened.cut.as_ref().map_or((0, 0), |c| (c.span, c.local));
        let (span, local) = (span + opened.line.span(), local + opened.line.local());
        self.cut = Some(Box::new(Cut { origin: None, scope, span, local }));
        opened
    }

    /// A task spawned here into `scope`; see [`Task::seed`].
    pub fn spawn(
        &mut self,
        invocation: (Site, Entry),
        scope: ScopeId,
        opened: Cost,
        body: bool,
        costs: (Cost, Scale),
        arena: &mut Arena,
    ) -> Task {
        self.seed(invocation, scope, opened, body, costs, arena).task()
    }

    /// The start of tasks spawned here into `scope`, which opened at `opened` on the path from the program's
    /// start. `body` says that this task is the one that opened it.
    pub fn seed(
        &mut self,
        (site, entry): (Site, Entry),
        scope: ScopeId,
        opened: Cost,
        body: bool,
        (burden, scale): (Cost, Scale),
        arena: &mut Arena,
    ) -> Seed {
        let (at, at_burdened) = (self.now(), self.now_burdened());
        // Where only lengths count nobody asks what led to it, and the line stays whole for marks on it.
        let point = if !scale.is_whole() && self.cut.as_ref().is_some_and(|c| c.scope == scope) {
            self.cut(body, scale, arena)
        } else {
            let mut line = Line::default();
            line.strand(at.saturating_sub(opened));
            Arc::new(Point { before: None, line, owner: self.site, body: false })
        };
        self.burdened += burden;
        Seed { site, entry, scope, at, at_burdened: at_burdened + burden, point, way: 0 }
    }

    fn cut(&mut self, body: bool, scale: Scale, arena: &mut Arena) -> Arc<Point> {
        self.keep_own();
        let mut line = core::mem::take(&mut self.line);
        line.fold(self.site, scale, arena);
        let cut = self.cut.get_or_insert_default();
        cut.span += line.span();
        cut.local += line.local();
        if let Some(same) = cut.origin.as_ref().filter(|_| line.is_empty()) {
            return same.clone(); // nothing happened since
        }
        let mut before = cut.origin.take();
        // Points that nobody refers to any more become part of this one.
        while let Some(mut free) = before
            .take_if(|p| p.body == body && p.owner == self.site)
            .and_then(|p| Arc::try_unwrap(p).map_err(|shared| before = Some(shared)).ok())
        {
            before = free.before.take();
            let mut first = core::mem::take(&mut free.line);
            first.append(line, self.site, scale, arena);
            line = first;
        }
        let point = Arc::new(Point { before, line, owner: self.site, body });
        cut.origin = Some(point.clone());
        point
    }

    /// Closes a scope: waits for all its children.
    pub fn close(&mut self, opened: Opened, gather: Gather, scale: Scale, arena: &mut Arena) {
        let (body_end, body_end_burdened) = (self.now(), self.now_burdened());
        self.keep_own();
        self.work += gather.work;
        self.burdened += gather.burdened.saturating_sub(body_end_burdened);
        let mut path = core::mem::take(&mut self.line);
        let mut origin = self.cut.take().and_then(|c| c.origin);
        let body = gather.longest.as_ref().is_none_or(|c| c.end <= body_end);
        let (mut loser, mut loser_origin) = (Line::default(), None);
        if let Some(child) = gather.longest {
            let line = Line::from(child.outcome.inside);
            (loser, loser_origin) = if body {
                (line, child.origin)
            } else {
                (core::mem::replace(&mut path, line), core::mem::replace(&mut origin, child.origin))
            };
        }
        let mut through = self.assemble(origin, path, scale, arena);
        if through.span() >= scale.heavy {
            let own = self.site;
            let mut second = self.assemble(loser_origin, loser, scale, arena);
            let second = core::mem::take(second.detailed(own, scale, arena));
            through.detailed(own, scale, arena).rival(&second, None);
            if let Some(mut rivals) = gather.rivals {
                let rivals = core::mem::take(rivals.detailed(own, scale, arena));
                through.detailed(own, scale, arena).rival(&rivals, None);
            }
        }
        self.cut = opened.cut;
        self.line = opened.line;
        self.line.append(through, self.site, scale, arena);
        // What is on the line again was kept before.
        let own = self.line.local();
        self.work -= own;
        self.local -= own;
        self.burdened -= own;
    }

    /// The path from the scope's start over the points to the end of `last`.
    fn assemble(&self, origin: Option<Arc<Point>>, last: Line, scale: Scale, arena: &mut Arena) -> Line {
        let mut chain = Vec::new();
        let mut at = origin;
        while let Some(point) = at {
            at = point.before.clone();
            chain.push(point);
        }
        let mut path = Line::default();
        while let Some(point) = chain.pop() {
            let (owner, body) = (point.owner, point.body);
            let mut piece = match Arc::try_unwrap(point) {
                Ok(mut free) => core::mem::take(&mut free.line),
                Err(shared) => shared.line.clone(),
            };
            if !body {
                piece.seal(owner, scale, arena);
            }
            path.append(piece, self.site, scale, arena);
        }
        path.append(last, self.site, scale, arena);
        path
    }
}

/// Where a task ended, for tasks that wait for it without being its parent.
#[derive(Debug, Clone)]
pub struct Finish {
    end: Cost,
    end_burdened: Cost,
    point: Arc<Point>,
}

impl Spawned {
    /// Its end. What led to it is copied: it may be on the longest path by itself as well.
    pub fn finish(&self, owner: Site) -> Finish {
        let line = Line::from(self.outcome.inside.clone());
        let point = Point { before: self.origin.clone(), line, owner, body: true };
        Finish { end: self.end, end_burdened: self.end_burdened, point: Arc::new(point) }
    }
}

impl Task {
    /// The task, which has not started, waits for others of its scope: it starts where the last of them ended, if that is
    /// later than where it was spawned.
    pub fn after<'a>(&mut self, others: impl Iterator<Item = &'a Finish>) {
        for other in others {
            self.start_burdened = self.start_burdened.max(other.end_burdened);
            if other.end > self.start {
                self.start = other.end;
                self.cut.get_or_insert_default().origin = Some(other.point.clone());
            }
        }
    }
}

impl Outcome {
    /// It owns nothing.
    #[inline]
    pub fn is_light(&self) -> bool {
        self.inside.is_light()
    }
}

impl From<Spawned> for Outcome {
    fn from(child: Spawned) -> Outcome {
        child.outcome
    }
}

impl Gather {
    /// A child of the scope that opened at `opened` ends. `burden` is what its fork costs.
    pub fn add(&mut self, child: Spawned, opened: Cost, scale: Scale, arena: &mut Arena) {
        self.work += child.outcome.work;
        self.burdened = self.burdened.max(child.end_burdened);
        let loser = match &mut self.longest {
            Some(longest) if child.end <= longest.end => Some(child),
            longest => longest.replace(child),
        };
        // A loser may be the longest if a site were faster. Its way to the spawn is not worth a copy: what
        // matters is its own part, after a start that no site's speed changes.
        if let Some(mut loser) = loser.filter(|l| l.outcome.inside.detail().is_some()) {
            let mut whole = Line::default();
            let before = (loser.end - opened).saturating_sub(loser.outcome.inside.span);
            whole.strand(before);
            whole.seal(ROOT, scale, arena);
            whole.append(core::mem::take(&mut loser.outcome.inside).into(), ROOT, scale, arena);
            self.rivals = Some(match self.rivals.take() {
                Some(rivals) => rivals.max(whole, ROOT, scale, arena),
                None => whole,
            });
        }
    }
}

/// Where the task of an opened scope stood.
impl Opened {
    /// On the longest path from the program's start.
    pub fn at(&self) -> Cost {
        self.start
    }

    /// The same, burdened.
    pub fn at_burdened(&self) -> Cost {
        self.burdened
    }
}

impl Outcome {
    /// The program's totals, if this is the root's outcome.
    pub fn totals(self, books: Books, sites: usize, arena: &mut Arena) -> crate::serial::Totals {
        let forks = books.halves / 2;
        let on_work = books.into_records(sites);
        let totals = crate::serial::Totals::new(self.work, self.burdened, self.inside.into(), on_work, arena);
        crate::serial::Totals { spawns: forks, syncs: forks, ..totals }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_take_their_part_of_a_strand() {
        for heavy in [0, 1_000_000] {
            let mut contexts = Contexts::default();
            let scale = Scale { sites: 3, heavy };
            let (mut arena, mut books) = (Arena::default(), Books::default());
            let mut root = Task::root(&mut contexts);
            root.on(&arena);
            let made = |n| Measure { count: n, work: 30, span: 30 };
            let call = Record { site: made(2), caller: made(2), local: made(2) };
            root.strand(100);
            root.called(2, &call, scale, &mut books);
            // A fork: the calls are in the longer task.
            let entry = contexts.enter(root.entry.context, 1, 0);
            let mut outcomes = [50, 40].map(|cost| {
                let mut child = root.child(1, entry);
                child.on(&arena);
                child.strand(cost);
                if cost == 50 {
                    child.called(2, &call, scale, &mut books);
                }
                child.finish_apart(&mut books, scale, &mut arena).into()
            });
            let [a, b] = &mut outcomes;
            root.join(a, b, 7, scale, &mut arena);
            root.strand(5);
            let spawned = root.finish_apart(&mut books, scale, &mut arena);
            let totals = Outcome::from(spawned).totals(books, 3, &mut arena);
            assert_eq!((totals.work, totals.span, totals.burdened), (195, 155, 162));
            let of = |records: &[Record]| {
                records.iter().map(|r| (r.local.count, r.local.span)).collect::<Vec<_>>()
            };
            assert_eq!(of(&totals.on_work), [(1, 75), (2, 60), (4, 60)]);
            assert_eq!(of(&totals.on_span), [(1, 75), (1, 20), (4, 60)]);
            // Twice as fast, the calls would leave the other task as the longer one, which only detail shows.
            let faster = if heavy == 0 { 85 + 40 + 5 } else { 85 + 35 + 5 };
            assert_eq!(totals.faster[2][0], faster);
        }
    }
}
