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

use crate::chain::{Arena, NODES_MAX, Node};
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
    /// The same, as one of many that are handed out by halving: what that costs grows with the logarithm of their number.
    Iteration,
}

#[derive(Default)]
struct Fork {
    prefix: Line,
    longest: Line,
}

/// A frame takes a whole box from here and gives it back: what is in it is not moved.
type Spare = Vec<Box<Fork>>;

struct Frame {
    site: Site,
    entry: Entry,
    how: How,
    /// All its own strands; its work is these and that of what returned to it.
    own: Cost,
    returned: Cost,
    /// `c`: since the spawn of the longest child, or since the start.
    line: Line,
    fork: Option<Box<Fork>>,
    /// Burdened span along the continuation without `own`, and to the end of the latest child.
    burdened: Cost,
    burdened_child: Cost,
    /// Of these, iterations.
    iterations: u64,
    /// Nodes that were there when it started.
    floor: usize,
}

/// The shadow stack of one serial execution.
pub struct Stack {
    frames: Vec<Frame>,
    arena: Arena,
    /// Forks that are not in use.
    spare: Spare,
    contexts: Contexts,
    /// Invocations seen before: context and site, and what follows.
    seen: [(u64, Entry); SEEN],
    on_work: Vec<Record>,
    /// For few sites, and for those that there are.
    heavy: Cost,
    heavy_now: Cost,
    burden: Cost,
    spawns: u64,
    syncs: u64,
    /// Something was done that is not done every time.
    slow: bool,
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
    pub fn new(work: Cost, burdened: Cost, mut line: Line, on_work: Vec<Record>, arena: &mut Arena) -> Self {
        let sites = on_work.len();
        let scale = Scale { sites, heavy: 0 };
        let detail = core::mem::take(line.detailed(ROOT, scale, arena));
        let on_span = line.records(sites);
        let span = line.span();
        let faster = (0..sites as Site).map(|s| detail.faster(s)).collect();
        Self { work, span, burdened, on_work, on_span, faster, steps: detail.steps, spawns: 0, syncs: 0 }
    }
}

impl Totals {
    /// Forgets the call sites: the program is the only one.
    pub fn only_whole(&mut self) {
        let entry = Entry { context: 0, top_site: true, top_caller: true };
        let all = record(&entry, (self.work, self.span), (self.work, self.span));
        self.on_work = Vec::from([all]);
        self.on_span = Vec::from([all]);
        self.faster = Vec::from([[self.span; crate::FACTORS.len()]]);
        self.steps = Vec::new();
    }
}

impl Stack {
    /// A program that has just started. A fork costs `burden` in burdened spans; paths of length `heavy` are
    /// followed in detail.
    pub fn new(heavy: Cost, burden: Cost) -> Self {
        let mut stack = Stack {
            frames: Vec::new(),
            arena: Arena::default(),
            spare: Vec::new(),
            contexts: Contexts::default(),
            seen: [(u64::MAX, Entry { context: 0, top_site: false, top_caller: false }); SEEN],
            on_work: Vec::from([Record::default()]),
            heavy,
            heavy_now: heavy,
            burden,
            spawns: 0,
            syncs: 0,
            slow: false,
        };
        stack.push(ROOT, || Func::MAX, How::Called);
        stack
    }

    fn scale(&self) -> Scale {
        Scale { sites: self.on_work.len(), heavy: self.heavy_now }
    }

    fn push(&mut self, site: Site, func: impl FnOnce() -> Func, how: How) {
        let context: Context = self.frames.last().map_or(Contexts::EMPTY, |f| f.entry.context);
        let key = u64::from(context) << 32 | u64::from(site);
        let slot = (site as usize ^ (context as usize).wrapping_mul(7)) % SEEN;
        if self.seen[slot].0 != key {
            self.slow = true;
            self.seen[slot] = (key, self.contexts.enter(context, site, func()));
        }
        let entry = self.seen[slot].1;
        self.frames.push(Frame {
            site,
            entry,
            how,
            own: 0,
            returned: 0,
            line: Line::default(),
            fork: None,
            burdened: 0,
            burdened_child: 0,
            iterations: 0,
            floor: self.arena.len(),
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
            f.own += cost;
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
            self.heavy_now = self.heavy.saturating_mul(1 + self.on_work.len() as u64 / 16);
        }
        self.push(site, func, how);
    }

    /// The current invocation waits for the children that it spawned.
    #[inline]
    pub fn sync(&mut self) {
        let scale = self.scale();
        let arena = &mut self.arena;
        let Some(f) = self.frames.last_mut() else { return };
        if f.wait(self.burden, scale, arena, &mut self.spare) {
            self.syncs += 1;
            self.slow |= f.line.span() >= scale.heavy;
        }
    }

    /// The current invocation returns, its children having been waited for. The program itself never returns.
    #[inline]
    pub fn leave(&mut self) {
        if !self.leave_light() {
            self.leave_any();
        }
    }

    /// The same, if it is one of many that are short and have nothing that was added up: whether it was. What happens is what
    /// would happen in [`leave_any`](Self::leave_any), without asking at every step.
    #[inline]
    fn leave_light(&mut self) -> bool {
        let Some((g, callers)) = self.frames.split_last_mut() else { return false };
        let Some(f) = callers.last_mut() else { return false };
        let (work, span) = (g.returned + g.own, g.line.span());
        let through = f.line.span() + span;
        let light = g.line.is_light() & f.line.is_light() & g.fork.is_none() & (through < self.heavy_now);
        if !light {
            return false;
        }
        let (all, local) = ((work, span), (g.own, g.line.local()));
        let mut node = Node::new(g.site, g.entry, all, local);
        node.inside = g.line.tail();
        let burdened = g.burdened + g.own;
        let arena = &mut self.arena;
        match g.how {
            How::Called => {
                f.line.end_with(node, span, arena);
                f.burdened += burdened;
            }
            How::Spawned => {
                let fork = f.fork.get_or_insert_with(|| self.spare.pop().unwrap_or_default());
                if !fork.is_light() {
                    return false;
                }
                if through > fork.longest.span() {
                    fork.prefix.append_light(&mut f.line, arena);
                    fork.longest.be(node, span, arena);
                }
                self.spawns += 1;
                f.burdened_child = f.burdened_child.max(f.burdened + f.own + burdened + self.burden);
                f.burdened += self.burden;
            }
            How::Iteration => return false,
        }
        f.returned += work;
        add(&mut self.on_work[g.site as usize], &g.entry, all, local);
        if arena.len() > f.floor + NODES_MAX {
            f.fold(Scale { sites: self.on_work.len(), heavy: self.heavy_now }, arena);
            self.slow = true;
        }
        let len = self.frames.len() - 1;
        self.frames.truncate(len);
        true
    }

    #[inline(never)]
    fn leave_any(&mut self) {
        if self.frames.len() < 2 {
            return;
        }
        let scale = self.scale();
        let arena = &mut self.arena;
        // In place: a frame that is moved as a whole costs more than everything else here.
        let Some((g, callers)) = self.frames.split_last_mut() else { return };
        let Some(f) = callers.last_mut() else { return };
        self.syncs += u64::from(g.wait(self.burden, scale, arena, &mut self.spare));
        g.close(&mut self.on_work, scale, arena);
        let burden = self.burden;
        f.returned += g.returned + g.own;
        let burdened = g.burdened + g.own;
        match g.how {
            How::Called => {
                f.line.append_from(&mut g.line, f.site, scale, arena);
                f.burdened += burdened;
            }
            How::Spawned => {
                self.spawns += 1;
                f.burdened_child = f.burdened_child.max(f.burdened + f.own + burdened + burden);
                f.burdened += burden;
                f.child(&mut g.line, scale, arena, &mut self.spare);
            }
            How::Iteration => {
                self.spawns += 1;
                f.iterations += 1;
                f.burdened_child = f.burdened_child.max(f.burdened + f.own + burdened);
                f.child(&mut g.line, scale, arena, &mut self.spare);
            }
        }
        if arena.len() > f.floor + NODES_MAX {
            f.fold(scale, arena);
            self.slow = true;
        }
        self.slow |= f.line.span() >= scale.heavy;
        let len = self.frames.len() - 1;
        self.frames.truncate(len);
    }

    /// Whether something has taken longer than usual since the last time of asking.
    #[inline]
    pub fn took_long(&mut self) -> bool {
        core::mem::take(&mut self.slow)
    }

    /// Work of the program's own strands so far, and of what returned to it.
    pub fn work(&self) -> Cost {
        self.frames.first().map_or(0, |f| f.own + f.returned)
    }

    /// The end of the program.
    pub fn finish(mut self) -> Totals {
        while self.frames.len() > 1 {
            self.leave();
        }
        self.sync();
        let scale = self.scale();
        let Some(mut root) = self.frames.pop() else { return Totals::default() };
        root.close(&mut self.on_work, scale, &mut self.arena);
        Totals {
            spawns: self.spawns,
            syncs: self.syncs,
            ..Totals::new(
                root.returned + root.own,
                root.burdened + root.own,
                root.line,
                self.on_work,
                &mut self.arena,
            )
        }
    }
}

impl Fork {
    #[inline(always)]
    fn is_light(&self) -> bool {
        self.prefix.is_light() & self.longest.is_light()
    }
}

impl Frame {
    /// Waits for the children; whether there were any.
    #[inline]
    fn wait(&mut self, burden: Cost, scale: Scale, arena: &mut Arena, spare: &mut Spare) -> bool {
        let Some(mut fork) = self.fork.take() else { return false };
        let light = fork.is_light() & self.line.is_light();
        let Fork { prefix, longest } = &mut *fork;
        let (through, longer) = (self.line.span(), longest.span());
        if light & (through.max(longer) < scale.heavy) {
            if through > longer {
                prefix.append_light(&mut self.line, arena);
                longest.clear();
            } else {
                prefix.append_light(longest, arena);
                self.line.clear();
            }
            self.line.put(prefix);
            spare.push(fork);
            self.burden_children(burden);
            return true;
        }
        if self.line.span().max(longest.span()) >= scale.heavy {
            let longer =
                core::mem::take(longest).max(core::mem::take(&mut self.line), self.site, scale, arena);
            prefix.append(longer, self.site, scale, arena);
        } else {
            let longer = if self.line.span() > longest.span() { &mut self.line } else { &mut *longest };
            prefix.append_from(longer, self.site, scale, arena);
            longest.clear();
            self.line.clear();
        }
        self.line.put(prefix);
        spare.push(fork);
        self.burden_children(burden);
        true
    }

    /// The burdened span of children that were waited for.
    #[inline(always)]
    fn burden_children(&mut self, burden: Cost) {
        if self.iterations > 0 {
            let halvings = u64::from(self.iterations.next_power_of_two().trailing_zeros());
            self.burdened_child += burden.saturating_mul(halvings);
            self.iterations = 0;
        }
        self.burdened = self.burdened.max(self.burdened_child.saturating_sub(self.own));
        self.burdened_child = 0;
    }

    /// The invocation ends.
    #[inline]
    fn close(&mut self, on_work: &mut [Record], scale: Scale, arena: &mut Arena) {
        let (all, local) = ((self.returned + self.own, self.line.span()), (self.own, self.line.local()));
        add(&mut on_work[self.site as usize], &self.entry, all, local);
        self.line.close(self.site, Node::new(self.site, self.entry, all, local), scale, arena);
    }

    /// A spawned child ends with this path.
    #[inline]
    fn child(&mut self, child: &mut Line, scale: Scale, arena: &mut Arena, spare: &mut Spare) {
        let fork = self.fork.get_or_insert_with(|| spare.pop().unwrap_or_default());
        let through = self.line.span() + child.span();
        if through.max(fork.longest.span()) >= scale.heavy {
            return self.heavy_child(core::mem::take(child), scale, arena);
        }
        if through > fork.longest.span() {
            fork.prefix.append_from(&mut self.line, self.site, scale, arena);
            fork.longest.clear();
            fork.longest.put(child);
        }
    }

    /// The same where the loser is remembered, because it might win if a site were faster.
    fn heavy_child(&mut self, mut child: Line, scale: Scale, arena: &mut Arena) {
        let Some(fork) = &mut self.fork else { return };
        let own = self.site;
        if self.line.span() + child.span() > fork.longest.span() {
            if fork.longest.span() > 0 {
                let old = core::mem::take(fork.longest.detailed(own, scale, arena));
                let before = self.line.detailed(own, scale, arena);
                child.detailed(own, scale, arena).rival_after(&old, before);
            }
            fork.prefix.append(core::mem::take(&mut self.line), own, scale, arena);
            fork.longest = child;
        } else {
            let theirs = core::mem::take(child.detailed(own, scale, arena));
            let before = self.line.detailed(own, scale, arena);
            fork.longest.detailed(own, scale, arena).rival(&theirs, Some(before));
        }
    }

    /// Adds up what ended in this invocation, and forgets the nodes.
    #[cold]
    fn fold(&mut self, scale: Scale, arena: &mut Arena) {
        self.line.fold(self.site, scale, arena);
        if let Some(fork) = &mut self.fork {
            fork.prefix.fold(self.site, scale, arena);
            fork.longest.fold(self.site, scale, arena);
        }
        arena.truncate(self.floor);
    }
}

/// Adds an invocation to the records of its site.
#[inline]
pub(crate) fn add(
    to: &mut Record,
    entry: &Entry,
    (work, span): (Cost, Cost),
    (local_work, local_span): (Cost, Cost),
) {
    let all = Measure { count: 1, work, span };
    if entry.top_site {
        to.site += all;
    }
    if entry.top_caller {
        to.caller += all;
    }
    to.local += Measure { count: 1, work: local_work, span: local_span };
}

/// What an invocation adds to the records of its site.
pub(crate) fn record(entry: &Entry, all: (Cost, Cost), local: (Cost, Cost)) -> Record {
    let mut record = Record::default();
    add(&mut record, entry, all, local);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_handed_out_by_halving() {
        let mut stack = Stack::new(0, 100);
        stack.enter(1, 0, How::Called);
        for _ in 0..8 {
            stack.enter(2, 0, How::Iteration);
            stack.strand(10);
            stack.leave();
        }
        stack.leave();
        let totals = stack.finish();
        assert_eq!((totals.work, totals.span, totals.burdened, totals.spawns), (80, 10, 10 + 3 * 100, 8));
    }
}
