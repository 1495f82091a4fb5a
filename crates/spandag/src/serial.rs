//! Work and span under serial execution: the shadow stack of the paper.
//!
//! Each frame F stands for an invocation and has four variables, here with their profiles:
//! ```text
//! w  work so far                          G called, returns to F     c += G.p
//! p  prefix: span from F's start to the   G spawned, returns to F    if c + G.p > l { l = G.p; p += c; c = 0 }
//!    spawn of the longest child           F syncs                    p += max(c, l); c = l = 0
//! l  that child's span                    F executes                 w += 1; c += 1
//! c  span since that spawn                and w += G.w at every return
//! ```
//! As long as F has no outstanding child, p and l are nothing, so a frame has only `c` and gets the other two
//! with its first spawn. A function that never spawns thus needs no more than the paper's optimized prefix.
//!
//! Frames live in a vector: depth costs memory, never stack.

use crate::context::{Contexts, Entry};
use crate::line::{Line, Scale};
use crate::record::{Measure, Record};
use crate::{Context, Cost, Func, ROOT, Site};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Invocations that are remembered.
const SEEN: usize = 64;

/// How an invocation relates to its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The caller waits.
    Called,
    /// It may run in parallel with what its caller does next.
    Spawned,
}

struct Fork {
    prefix: Line,
    longest: Line,
}

struct Frame {
    site: Site,
    entry: Entry,
    how: How,
    work: Cost,
    local_work: Cost,
    /// `c`: since the spawn of the longest child, or since the start.
    line: Line,
    fork: Option<Box<Fork>>,
    /// Burdened span along the continuation, and to the end of the latest child.
    burdened: Cost,
    burdened_child: Cost,
}

/// The shadow stack of one serial execution.
pub struct Stack {
    frames: Vec<Frame>,
    contexts: Contexts,
    /// Invocations seen before: context and site, and what follows.
    seen: [(u64, Entry); SEEN],
    on_work: Vec<Record>,
    heavy: Cost,
    burden: Cost,
    spawns: u64,
    syncs: u64,
}

/// Everything that is known at the end.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Cost of all strands.
    pub work: Cost,
    /// Cost of the longest path.
    pub span: Cost,
    /// The longest path when each fork costs a burden on both branches.
    pub burdened: Cost,
    /// All invocations, by site.
    pub on_work: Vec<Record>,
    /// The invocations on the longest path, by site.
    pub on_span: Vec<Record>,
    /// The span if a site were faster, by site and [`crate::FACTORS`].
    pub faster: Vec<[Cost; crate::FACTORS.len()]>,
    /// The longest path from start to end.
    pub steps: Vec<crate::Step>,
    /// Number of spawned tasks.
    pub spawns: u64,
    /// Number of times that a task waited for its children.
    pub syncs: u64,
}

impl Totals {
    /// From the closed line of the whole program.
    pub fn new(work: Cost, burdened: Cost, mut line: Line, on_work: Vec<Record>) -> Self {
        let sites = on_work.len();
        let scale = Scale { sites, heavy: 0 };
        let on_span = line.prof().records(sites);
        let span = line.span();
        let detail = core::mem::take(line.detailed(ROOT, scale));
        let faster = (0..sites as Site).map(|s| detail.faster(s)).collect();
        Self { work, span, burdened, on_work, on_span, faster, steps: detail.steps, spawns: 0, syncs: 0 }
    }
}

impl Stack {
    /// A program that has just started. A fork costs `burden` in burdened spans; paths of length `heavy` are
    /// followed in detail.
    pub fn new(heavy: Cost, burden: Cost) -> Self {
        let mut stack = Stack {
            frames: Vec::new(),
            contexts: Contexts::default(),
            seen: [(u64::MAX, Entry { context: 0, top_site: false, top_caller: false }); SEEN],
            on_work: Vec::from([Record::default()]),
            heavy,
            burden,
            spawns: 0,
            syncs: 0,
        };
        stack.push(ROOT, || Func::MAX, How::Called);
        stack
    }

    fn scale(&self) -> Scale {
        Scale {
            sites: self.on_work.len(),
            heavy: self.heavy.saturating_mul(1 + self.on_work.len() as u64 / 16),
        }
    }

    fn push(&mut self, site: Site, func: impl FnOnce() -> Func, how: How) {
        let context: Context = self.frames.last().map_or(Contexts::EMPTY, |f| f.entry.context);
        let key = u64::from(context) << 32 | u64::from(site);
        let slot = (site as usize ^ (context as usize).wrapping_mul(7)) % SEEN;
        if self.seen[slot].0 != key {
            self.seen[slot] = (key, self.contexts.enter(context, site, func()));
        }
        let entry = self.seen[slot].1;
        self.frames.push(Frame {
            site,
            entry,
            how,
            work: 0,
            local_work: 0,
            line: Line::default(),
            fork: None,
            burdened: 0,
            burdened_child: 0,
        });
    }

    /// How many invocations are active, the program itself included.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// The site that was invoked last and has not returned.
    pub fn current(&self) -> Site {
        self.frames.last().map_or(ROOT, |f| f.site)
    }

    /// The program executes.
    #[inline]
    pub fn strand(&mut self, cost: Cost) {
        if let Some(f) = self.frames.last_mut() {
            f.work += cost;
            f.local_work += cost;
            f.burdened += cost;
            f.line.strand(cost);
        }
    }

    /// `site`, which lies in `func`, is invoked.
    #[inline]
    pub fn enter(&mut self, site: Site, func: Func, how: How) {
        self.enter_by(site, || func, how);
    }

    /// As [`enter`](Self::enter); `func` is asked only if the invocation is new.
    #[inline]
    pub fn enter_by(&mut self, site: Site, func: impl FnOnce() -> Func, how: How) {
        if self.on_work.len() <= site as usize {
            self.on_work.resize(site as usize + 1, Record::default());
        }
        self.push(site, func, how);
    }

    /// The current invocation waits for the children that it spawned.
    pub fn sync(&mut self) {
        let scale = self.scale();
        let Some(f) = self.frames.last_mut() else { return };
        let Some(fork) = f.fork.take() else { return };
        self.syncs += 1;
        let Fork { mut prefix, longest } = *fork;
        let rest = core::mem::take(&mut f.line);
        prefix.append(longest.max(rest, f.site, scale), f.site, scale);
        f.line = prefix;
        f.burdened = f.burdened.max(f.burdened_child);
        f.burdened_child = 0;
    }

    /// The current invocation returns, its children having been waited for. The program itself never returns.
    pub fn leave(&mut self) {
        if self.frames.len() < 2 {
            return;
        }
        self.sync();
        let scale = self.scale();
        let Some(mut g) = self.frames.pop() else { return };
        let record = record(&g.entry, g.work, g.line.span(), (g.local_work, g.line.local()));
        self.on_work[g.site as usize] += &record;
        g.line.close(g.site, &record, scale);
        let burden = self.burden;
        let Some(f) = self.frames.last_mut() else { return };
        f.work += g.work;
        match g.how {
            How::Called => {
                f.line.append(g.line, f.site, scale);
                f.burdened += g.burdened;
            }
            How::Spawned => {
                self.spawns += 1;
                f.burdened_child = f.burdened_child.max(f.burdened + g.burdened + burden);
                f.burdened += burden;
                f.child(g.line, scale);
            }
        }
    }

    /// The end of the program.
    pub fn finish(mut self) -> Totals {
        while self.frames.len() > 1 {
            self.leave();
        }
        self.sync();
        let scale = self.scale();
        let Some(mut root) = self.frames.pop() else { return Totals::default() };
        let record = record(&root.entry, root.work, root.line.span(), (root.local_work, root.line.local()));
        self.on_work[ROOT as usize] += &record;
        root.line.close(ROOT, &record, scale);
        Totals {
            spawns: self.spawns,
            syncs: self.syncs,
            ..Totals::new(root.work, root.burdened, root.line, self.on_work)
        }
    }
}

impl Frame {
    /// A spawned child ends with this path.
    fn child(&mut self, mut child: Line, scale: Scale) {
        let fork = self
            .fork
            .get_or_insert_with(|| Box::new(Fork { prefix: Line::default(), longest: Line::default() }));
        let through = self.line.span() + child.span();
        let heavy = through.max(fork.longest.span()) >= scale.heavy;
        if through > fork.longest.span() {
            if heavy && fork.longest.span() > 0 {
                let old = core::mem::take(fork.longest.detailed(self.site, scale));
                child.detailed(self.site, scale).rival_after(&old, self.line.detailed(self.site, scale));
            }
            fork.prefix.append(core::mem::take(&mut self.line), self.site, scale);
            fork.longest = child;
        } else if heavy {
            let theirs = core::mem::take(child.detailed(self.site, scale));
            let before = self.line.detailed(self.site, scale);
            fork.longest.detailed(self.site, scale).rival(&theirs, Some(before));
        }
    }
}

/// What an invocation adds to the records of its site.
pub(crate) fn record(
    entry: &Entry,
    work: Cost,
    span: Cost,
    (local_work, local_span): (Cost, Cost),
) -> Record {
    let all = Measure { count: 1, work, span };
    let if_top = |top| if top { all } else { Measure::default() };
    Record {
        site: if_top(entry.top_site),
        caller: if_top(entry.top_caller),
        local: Measure { count: 1, work: local_work, span: local_span },
    }
}
