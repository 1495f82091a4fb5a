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

use crate::context::{Contexts, Entry};
use crate::line::{Line, Scale};
use crate::record::Record;
use crate::serial::record;
use crate::{Cost, ROOT, Site};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// An invocation that is running.
#[derive(Debug)]
pub struct Task {
    /// What was invoked.
    pub site: Site,
    /// In which context.
    pub entry: Entry,
    work: Cost,
    local_work: Cost,
    line: Line,
    burdened: Cost,
    /// When the task started and where it is now, on the program's longest path to here.
    start: Cost,
    start_burdened: Cost,
    /// What the line has been cut off from, and the scope that this belongs to.
    origin: Option<Arc<Point>>,
    scope: ScopeId,
    cut_span: Cost,
    cut_local: Cost,
    forks: u64,
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
}

impl Seed {
    /// A task that starts there.
    pub fn task(&self) -> Task {
        let mut task = Task::new(self.site, self.entry, self.at, self.at_burdened);
        task.origin = Some(self.point.clone());
        task.scope = self.scope;
        task
    }
}

/// A task that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its work, and that of its children.
    pub work: Cost,
    line: Line,
    span: Cost,
    burdened: Cost,
    origin: Option<Arc<Point>>,
    end: Cost,
    end_burdened: Cost,
    forks: u64,
}

impl Outcome {
    /// The task's own span.
    pub fn span(&self) -> Cost {
        self.span
    }
}

/// The on-work profile of one worker: all invocations that ended on it.
#[derive(Debug, Default)]
pub struct Books {
    records: Vec<Record>,
}

impl Books {
    /// Adds what an invocation measured.
    #[inline]
    fn add(&mut self, site: Site, record: &Record) {
        if self.records.len() <= site as usize {
            self.records.resize(site as usize + 1, Record::default());
        }
        self.records[site as usize] += record;
    }

    /// Adds those of another worker.
    pub fn merge(&mut self, other: &Books) {
        other.records.iter().zip(0..).for_each(|(r, site)| self.add(site, r));
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
    forks: u64,
    burdened: Cost,
    longest: Option<Outcome>,
    /// Details of heavy children that lost, relative to the scope's start.
    rivals: Option<Line>,
}

/// What a task looked like before it opened a scope.
#[derive(Debug)]
pub struct Opened {
    line: Line,
    origin: Option<Arc<Point>>,
    scope: ScopeId,
    start: Cost,
    burdened: Cost,
    cut_span: Cost,
    cut_local: Cost,
}

impl Task {
    /// The start of the program.
    pub fn root(contexts: &mut Contexts) -> Self {
        Self::new(ROOT, contexts.enter(Contexts::EMPTY, ROOT, crate::Func::MAX), 0, 0)
    }

    fn new(site: Site, entry: Entry, start: Cost, start_burdened: Cost) -> Self {
        Self {
            site,
            entry,
            work: 0,
            local_work: 0,
            line: Line::default(),
            burdened: 0,
            start,
            start_burdened,
            origin: None,
            scope: 0,
            cut_span: 0,
            cut_local: 0,
            forks: 0,
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
        self.work += cost;
        self.local_work += cost;
        self.burdened += cost;
        self.line.strand(cost);
    }

    /// Length of the longest path from the start of the program to here.
    #[inline]
    pub fn now(&self) -> Cost {
        self.start + self.cut_span + self.line.span()
    }

    fn now_burdened(&self) -> Cost {
        self.start_burdened + self.burdened
    }

    /// Work of this task so far.
    pub fn work(&self) -> Cost {
        self.work
    }

    /// The task ends.
    #[inline]
    pub fn finish(mut self, books: &mut Books, scale: Scale) -> Outcome {
        let span = self.cut_span + self.line.span();
        let local = self.cut_local + self.line.local();
        let mut record = record(&self.entry, self.work, span, (self.local_work, local));
        books.add(self.site, &record);
        // Strands before the last cut are in the points.
        record.local.span = self.line.local();
        record.local.work -= self.cut_local;
        let (end, end_burdened) = (self.now(), self.now_burdened());
        self.line.close(self.site, &record, scale);
        Outcome {
            work: self.work,
            line: self.line,
            span,
            burdened: self.burdened,
            origin: self.origin,
            end,
            end_burdened,
            forks: self.forks,
        }
    }

    /// Waits for two children that started here.
    #[inline]
    pub fn join(&mut self, a: Outcome, b: Outcome, burden: Cost, scale: Scale) {
        self.work += a.work + b.work;
        self.forks += a.forks + b.forks + 1;
        self.burdened += a.burdened.max(b.burdened) + burden;
        self.line.append(a.line.max(b.line, self.site, scale), self.site, scale);
    }

    /// Waits for one child that started here: a call.
    pub fn returned(&mut self, child: Outcome, scale: Scale) {
        self.work += child.work;
        self.forks += child.forks;
        self.burdened += child.burdened;
        self.line.append(child.line, self.site, scale);
    }

    /// Opens a scope.
    pub fn open(&mut self, scope: ScopeId) -> Opened {
        let opened = Opened {
            start: self.now(),
            burdened: self.now_burdened(),
            line: core::mem::take(&mut self.line),
            origin: self.origin.take(),
            scope: self.scope,
            cut_span: self.cut_span,
            cut_local: self.cut_local,
        };
        self.cut_span += opened.line.span();
        self.cut_local += opened.line.local();
        self.scope = scope;
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
    ) -> Task {
        self.seed(invocation, scope, opened, body, costs).task()
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
    ) -> Seed {
        let (at, at_burdened) = (self.now(), self.now_burdened());
        let point = if self.scope == scope {
            self.cut(body, scale)
        } else {
            let mut line = Line::default();
            line.strand(at.saturating_sub(opened));
            Arc::new(Point { before: None, line, owner: self.site, body: false })
        };
        self.burdened += burden;
        Seed { site, entry, scope, at, at_burdened: at_burdened + burden, point }
    }

    fn cut(&mut self, body: bool, scale: Scale) -> Arc<Point> {
        let mut line = core::mem::take(&mut self.line);
        self.cut_span += line.span();
        self.cut_local += line.local();
        if let Some(same) = self.origin.as_ref().filter(|_| line.is_empty()) {
            return same.clone(); // nothing happened since
        }
        let mut before = self.origin.take();
        // Points that nobody refers to any more become part of this one.
        while let Some(mut free) = before
            .take_if(|p| p.body == body && p.owner == self.site)
            .and_then(|p| Arc::try_unwrap(p).map_err(|shared| before = Some(shared)).ok())
        {
            before = free.before.take();
            let mut first = core::mem::take(&mut free.line);
            first.append(line, self.site, scale);
            line = first;
        }
        let point = Arc::new(Point { before, line, owner: self.site, body });
        self.origin = Some(point.clone());
        point
    }

    /// Closes a scope: waits for all its children.
    pub fn close(&mut self, opened: Opened, gather: Gather, scale: Scale) {
        self.work += gather.work;
        self.forks += gather.forks;
        let body_end = self.now();
        let end_burdened = self.now_burdened().max(gather.burdened);
        self.burdened += end_burdened - self.now_burdened();
        let mut path = core::mem::take(&mut self.line);
        let mut origin = self.origin.take();
        let body = gather.longest.as_ref().is_none_or(|c| c.end <= body_end);
        let (mut loser, mut loser_origin) = (Line::default(), None);
        if let Some(child) = gather.longest {
            (loser, loser_origin) = if body {
                (child.line, child.origin)
            } else {
                (core::mem::replace(&mut path, child.line), core::mem::replace(&mut origin, child.origin))
            };
        }
        let mut through = self.assemble(origin, path, scale);
        if through.span() >= scale.heavy {
            let mut second = self.assemble(loser_origin, loser, scale);
            let second = core::mem::take(second.detailed(self.site, scale));
            let own = self.site;
            through.detailed(own, scale).rival(&second, None);
            if let Some(mut rivals) = gather.rivals {
                let rivals = core::mem::take(rivals.detailed(own, scale));
                through.detailed(own, scale).rival(&rivals, None);
            }
        }
        self.line = opened.line;
        self.origin = opened.origin;
        self.scope = opened.scope;
        self.cut_span = opened.cut_span;
        self.cut_local = opened.cut_local;
        self.line.append(through, self.site, scale);
    }

    /// The path from the scope's start over the points to the end of `last`.
    fn assemble(&self, origin: Option<Arc<Point>>, last: Line, scale: Scale) -> Line {
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
                piece.seal(owner, scale);
            }
            path.append(piece, self.site, scale);
        }
        path.append(last, self.site, scale);
        path
    }
}

impl Gather {
    /// A child of the scope that opened at `opened` ends. `burden` is what its fork costs.
    pub fn add(&mut self, child: Outcome, opened: Cost, scale: Scale) {
        self.work += child.work;
        self.forks += child.forks + 1;
        self.burdened = self.burdened.max(child.end_burdened);
        let loser = match &mut self.longest {
            Some(longest) if child.end <= longest.end => Some(child),
            longest => longest.replace(child),
        };
        // A loser may be the longest if a site were faster. Its way to the spawn is not worth a copy: what
        // matters is its own part, after a start that no site's speed changes.
        if let Some(mut loser) = loser.filter(|l| l.line.detail().is_some()) {
            let mut whole = Line::default();
            let before = (loser.end - opened).saturating_sub(loser.line.span());
            whole.strand(before);
            whole.seal(ROOT, scale);
            whole.append(core::mem::take(&mut loser.line), ROOT, scale);
            self.rivals = Some(match self.rivals.take() {
                Some(rivals) => rivals.max(whole, ROOT, scale),
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
    pub fn totals(self, books: Books, sites: usize) -> crate::serial::Totals {
        let forks = self.forks;
        let totals =
            crate::serial::Totals::new(self.work, self.burdened, self.line, books.into_records(sites));
        crate::serial::Totals { spawns: forks, syncs: forks, ..totals }
    }
}
