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

struct Frame {
    how: How,
    /// Something was spawned and not waited for.
    forked: bool,
    here: Cost,
    latest: Cost,
    /// The same where every fork costs a burden on both branches.
    burdened: Cost,
    burdened_latest: Cost,
    /// Of the outstanding children, iterations of a loop.
    iterations: u64,
}

/// The shadow stack of one serial execution, without call sites.
pub struct Whole {
    frames: Vec<Frame>,
    work: Cost,
    burden: Cost,
    spawns: u64,
    syncs: u64,
}

impl Whole {
    /// A program that has just started. A fork costs `burden` in burdened spans.
    pub fn new(burden: Cost) -> Self {
        let mut whole = Whole { frames: Vec::new(), work: 0, burden, spawns: 0, syncs: 0 };
        whole.enter(How::Called);
        whole
    }

    /// Cost of all strands so far.
    pub fn work(&self) -> Cost {
        self.work
    }

    /// How many invocations are active, the program itself included.
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// The program executes.
    #[inline]
    pub fn strand(&mut self, cost: Cost) {
        self.work += cost;
        if let Some(f) = self.frames.last_mut() {
            f.here += cost;
            f.burdened += cost;
        }
    }

    /// Something is invoked.
    #[inline]
    pub fn enter(&mut self, how: How) {
        let (here, burdened) = self.frames.last().map_or((0, 0), |f| (f.here, f.burdened));
        self.frames.push(Frame {
            how,
            forked: false,
            here,
            latest: 0,
            burdened,
            burdened_latest: 0,
            iterations: 0,
        });
    }

    /// Whether the current invocation has children that it has not waited for: then its end is a boundary of strands.
    #[inline]
    pub fn has_children(&self) -> bool {
        self.frames.last().is_some_and(|f| f.forked)
    }

    /// The current invocation waits for the children that it spawned.
    #[inline]
    pub fn sync(&mut self) {
        if let Some(f) = self.frames.last_mut() {
            self.syncs += u64::from(f.wait(self.burden));
        }
    }

    /// The current invocation returns, its children having been waited for. The program itself never returns.
    #[inline]
    pub fn leave(&mut self) {
        let Some((g, callers)) = self.frames.split_last_mut() else { return };
        let Some(f) = callers.last_mut() else { return };
        self.syncs += u64::from(g.wait(self.burden));
        match g.how {
            How::Called => {
                f.here = g.here;
                f.burdened = g.burdened;
            }
            How::Spawned => {
                self.spawns += 1;
                f.forked = true;
                f.latest = f.latest.max(g.here);
                f.burdened_latest = f.burdened_latest.max(g.burdened + self.burden);
                f.burdened += self.burden;
            }
            How::Iteration => {
                self.spawns += 1;
                f.forked = true;
                f.iterations += 1;
                f.latest = f.latest.max(g.here);
                f.burdened_latest = f.burdened_latest.max(g.burdened);
            }
        }
        let len = self.frames.len() - 1;
        self.frames.truncate(len);
    }

    /// The end of the program.
    pub fn finish(mut self) -> Totals {
        while self.frames.len() > 1 {
            self.leave();
        }
        self.sync();
        let (span, burdened) = self.frames.first().map_or((0, 0), |f| (f.here, f.burdened));
        let (spawns, syncs) = (self.spawns, self.syncs);
        let mut totals = Totals { work: self.work, span, burdened, spawns, syncs, ..Totals::default() };
        totals.only_whole();
        totals
    }
}

impl Frame {
    /// Waits for the children; whether there were any.
    #[inline]
    fn wait(&mut self, burden: Cost) -> bool {
        if !core::mem::take(&mut self.forked) {
            return false;
        }
        if self.iterations > 0 {
            let halvings = u64::from(self.iterations.next_power_of_two().trailing_zeros());
            self.burdened_latest += burden.saturating_mul(halvings);
            self.iterations = 0;
        }
        self.here = self.here.max(self.latest);
        self.burdened = self.burdened.max(self.burdened_latest);
        self.latest = 0;
        self.burdened_latest = 0;
        true
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
