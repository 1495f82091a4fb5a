//! Work and span of a serial execution as a whole: no call sites, so nothing but lengths is kept.
//!
//! The shadow stack of [`serial`](crate::serial) without profiles. Paths are measured from the start of the program, so a
//! call hands its position on and back, and needs no clock:
//! ```text
//! here    longest path to where the frame stands          G called    G.here = F.here; on return F.here = G.here
//! latest  longest path to the end of a spawned child      G spawned   on return F.latest = max(F.latest, G.here)
//!                                                         F syncs     F.here = max(F.here, F.latest)
//! ```

use crate::Cost;
use crate::serial::{How, Totals};
use alloc::vec::Vec;

/// The current invocation.
#[repr(C)]
struct Top {
    /// Longest path to where it stands, and what forks add to it where every fork costs a burden on both branches.
    here: Cost,
    extra: Cost,
    /// The longest path to the end of a spawned child, without burdens and with them.
    latest: Cost,
    burdened_latest: Cost,
    state: State,
}

/// One that waits for another one to return. In another order than in [`Top`], so that compilers copy word by word: a
/// wider copy of words that were just written would have to wait for them.
#[derive(Clone, Copy)]
#[repr(C)]
struct Frame {
    latest: Cost,
    here: Cost,
    burdened_latest: Cost,
    extra: Cost,
    state: State,
}

/// Outstanding children that are iterations of a loop, and below them how the invocation came about.
#[derive(Clone, Copy)]
struct State(u64);

impl State {
    /// Something was spawned and not waited for.
    const FORKED: u64 = 1;
    const SPAWNED: u64 = 2;
    const ITERATION: u64 = 4;
    const ONE: u64 = 8;

    #[inline(always)]
    fn of(how: How) -> State {
        State(match how {
            How::Called => 0,
            How::Spawned => Self::SPAWNED,
            How::Iteration => Self::ITERATION,
        })
    }

    #[inline(always)]
    fn is(self, what: u64) -> bool {
        self.0 & what != 0
    }

    #[inline(always)]
    fn iterations(self) -> u64 {
        self.0 / Self::ONE
    }
}

/// The shadow stack of one serial execution, without call sites.
pub struct Whole {
    top: Top,
    frames: Vec<Frame>,
    work: Cost,
    burden: Cost,
    spawns: u64,
    syncs: u64,
}

impl Whole {
    /// A program that has just started. A fork costs `burden` in burdened spans.
    pub fn new(burden: Cost) -> Self {
        let top = Top { here: 0, extra: 0, latest: 0, burdened_latest: 0, state: State(0) };
        Whole { top, frames: Vec::new(), work: 0, burden, spawns: 0, syncs: 0 }
    }

    /// Cost of all strands so far.
    pub fn work(&self) -> Cost {
        self.work
    }

    /// How many invocations are active, the program itself included.
    pub fn depth(&self) -> usize {
        self.frames.len() + 1
    }

    /// The program executes.
    #[inline(always)]
    pub fn strand(&mut self, cost: Cost) {
        self.work += cost;
        self.top.here += cost;
    }

    /// Something is invoked.
    #[inline(always)]
    pub fn enter(&mut self, how: How) {
        if self.frames.len() == self.frames.capacity() {
            return self.grow(how);
        }
        self.push(how);
    }

    /// Not inlined and last: what comes before then needs no register to survive a call.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, how: How) {
        self.frames.reserve(self.frames.len().max(64));
        self.push(how);
    }

    #[inline(always)]
    fn push(&mut self, how: How) {
        let Top { here, extra, latest, burdened_latest, state } = self.top;
        self.frames.push(Frame { latest, here, burdened_latest, extra, state });
        self.top.latest = 0;
        self.top.burdened_latest = 0;
        self.top.state = State::of(how);
    }

    /// Whether the current invocation has children that it has not waited for: then its end is a boundary of strands.
    #[inline(always)]
    pub fn has_children(&self) -> bool {
        self.top.state.is(State::FORKED)
    }

    /// The current invocation waits for the children that it spawned.
    #[inline(always)]
    pub fn sync(&mut self) {
        if self.has_children() {
            self.syncs += 1;
            self.top.wait(self.burden);
        }
    }

    /// The current invocation returns, its children having been waited for. The program itself never returns.
    #[inline(always)]
    pub fn leave(&mut self) {
        let Some(f) = self.frames.pop() else { return };
        self.sync();
        let Top { here, extra, state, .. } = self.top;
        self.top.latest = f.latest;
        self.top.burdened_latest = f.burdened_latest;
        self.top.state = f.state;
        if state.is(State::SPAWNED | State::ITERATION) {
            self.spawns += 1;
            // Iterations are handed out by halving, which is paid for when they are waited for.
            let (burden, more) = if state.is(State::SPAWNED) { (self.burden, 0) } else { (0, State::ONE) };
            self.top.latest = f.latest.max(here);
            self.top.burdened_latest = f.burdened_latest.max(here + extra + burden);
            self.top.state = State((f.state.0 | State::FORKED) + more);
            self.top.here = f.here;
            self.top.extra = f.extra + burden;
        }
    }

    /// The end of the program.
    pub fn finish(mut self) -> Totals {
        while !self.frames.is_empty() {
            self.leave();
        }
        self.sync();
        let (span, burdened) = (self.top.here, self.top.here + self.top.extra);
        let (spawns, syncs) = (self.spawns, self.syncs);
        let mut totals = Totals { work: self.work, span, burdened, spawns, syncs, ..Totals::default() };
        totals.only_whole();
        totals
    }
}

impl Top {
    /// Waits for the children.
    #[inline(always)]
    fn wait(&mut self, burden: Cost) {
        let iterations = self.state.iterations();
        if iterations > 0 {
            let halvings = u64::from(iterations.next_power_of_two().trailing_zeros());
            self.burdened_latest += burden.saturating_mul(halvings);
        }
        self.state.0 &= State::ONE - 1 - State::FORKED;
        let burdened = (self.here + self.extra).max(self.burdened_latest);
        self.here = self.here.max(self.latest);
        self.extra = burdened - self.here;
        self.latest = 0;
        self.burdened_latest = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::Stack;

    /// Random programs: the same work, span and burdened span as with call sites.
    #[test]
    fn it_agrees_with_the_profile_of_every_site() {
        let mut seed = 11_u64;
        let mut next = move |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let (mut stack, mut whole) = (Stack::new(0, 7), Whole::new(7));
            for _ in 0..300 {
                match next(6) {
                    0 | 1 => {
                        let cost = next(100);
                        stack.strand(cost);
                        whole.strand(cost);
                    }
                    2 => {
                        let how = [How::Called, How::Spawned, How::Iteration][next(3) as usize];
                        stack.enter(1 + next(5) as u32, 0, how);
                        whole.enter(how);
                    }
                    3 => {
                        stack.sync();
                        whole.sync();
                    }
                    _ => {
                        stack.leave();
                        whole.leave();
                    }
                }
                assert_eq!(stack.depth(), whole.depth());
            }
            let (a, b) = (stack.finish(), whole.finish());
            assert_eq!(
                (a.work, a.span, a.burdened, a.spawns, a.syncs),
                (b.work, b.span, b.burdened, b.spawns, b.syncs)
            );
        }
    }
}
