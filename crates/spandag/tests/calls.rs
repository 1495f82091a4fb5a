//! Calls that fork are invocations, unless they return before what they spawned was waited for: neither changes anything but
//! whose time it is. Random programs are evaluated with calls and without.

use spandag::serial::Totals;
use spandag::task::{Books, Gather, Opened, Outcome, ScopeId, Task};
use spandag::{Arena, Contexts, Cost, Record, Scale};

/// A task that works, spawns and waits, as random numbers say; sometimes in calls, which may return before what they
/// spawned is waited for.
struct Walk {
    state: u64,
    contexts: Contexts,
    books: Books,
    arena: Arena,
    scale: Scale,
    /// Calls are invocations until they return too soon. Else they are not looked at.
    calls: bool,
    made: u32,
}

impl Walk {
    fn next(&mut self, n: u64) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    fn run(&mut self, task: &mut Task, depth: u64, scope: ScopeId) {
        let mut opened: Option<Box<Opened>> = None;
        let mut gather = Gather::default();
        let mut callers: Vec<(Task, bool)> = Vec::new();
        for _ in 0..self.next(14) {
            let cost = self.next(50);
            task.strand(cost);
            match self.next(5) {
                // A call starts, if the task has nothing to wait for.
                0 if opened.is_none() => {
                    self.made += 1;
                    if self.calls {
                        let entry = self.contexts.enter(task.entry.context, 2, 1);
                        let call = task.child(2, entry);
                        callers.push((core::mem::replace(task, call), true));
                    } else {
                        callers.push((task.child(0, task.entry), false));
                    }
                }
                1 | 2 if depth > 0 => {
                    let open =
                        opened.get_or_insert_with(|| Box::new(task.open(scope, self.scale, &mut self.arena)));
                    let (at, entry) = (open.at(), self.contexts.enter(Contexts::EMPTY, 1, 0));
                    let costs = (3, self.scale);
                    let mut child = task.spawn((1, entry), scope, at, true, costs, &mut self.arena);
                    self.run(&mut child, depth - 1, 10 * scope);
                    let ended = child.finish_apart(&mut self.books, self.scale, &mut self.arena);
                    gather.add(ended, at, self.scale, &mut self.arena);
                }
                3 => {
                    if let Some(opened) = opened.take() {
                        let all = core::mem::take(&mut gather);
                        task.close(*opened, all, self.scale, &mut self.arena);
                    }
                }
                4 => self.returns(task, &mut callers, opened.as_deref_mut()),
                _ => {}
            }
        }
        // What is left returns before it is waited for.
        while !callers.is_empty() {
            self.returns(task, &mut callers, opened.as_deref_mut());
        }
        if let Some(opened) = opened {
            task.close(*opened, gather, self.scale, &mut self.arena);
        }
    }

    fn returns(&mut self, task: &mut Task, callers: &mut Vec<(Task, bool)>, opened: Option<&mut Opened>) {
        let Some((caller, true)) = callers.pop() else { return };
        let mut call = core::mem::replace(task, caller);
        if let Some(opened) = opened {
            task.take_over(call, opened, self.scale, &mut self.arena);
        } else {
            let ended = call.finish_apart(&mut self.books, self.scale, &mut self.arena);
            task.returned(ended.into(), self.scale, &mut self.arena);
        }
    }

    fn totals(seed: u64, heavy: Cost, calls: bool) -> (u32, Totals) {
        let (contexts, books) = (Contexts::default(), Books::default());
        let scale = Scale { sites: 3, heavy };
        let mut walk = Walk { state: seed, contexts, books, arena: Arena::default(), scale, calls, made: 0 };
        let mut root = Task::root(&mut walk.contexts);
        walk.run(&mut root, 3, 7);
        let ended = root.finish_apart(&mut walk.books, scale, &mut walk.arena);
        (walk.made, Outcome::from(ended).totals(walk.books, 3, &mut walk.arena))
    }
}

#[test]
fn calls_change_nothing_but_whose_time_it_is() {
    let (mut made, mut kept) = (0, 0);
    for seed in 0..400 {
        for heavy in [0, 120, 1_000_000] {
            let (calls, with) = Walk::totals(seed, heavy, true);
            let (_, without) = Walk::totals(seed, heavy, false);
            let whole = |t: &Totals| (t.work, t.span, t.burdened);
            assert_eq!(whole(&with), whole(&without), "seed {seed}, heavy {heavy}");
            let sum = |records: &[Record], f: fn(&Record) -> Cost| records.iter().map(f).sum::<Cost>();
            assert_eq!(sum(&with.on_work, |r| r.local.work), with.work, "seed {seed}, heavy {heavy}");
            assert_eq!(sum(&with.on_span, |r| r.local.span), with.span, "seed {seed}, heavy {heavy}");
            // Tasks that were spawned are the same ones, and calls that remain are some of those made.
            assert_eq!(with.on_work[1].local.count, without.on_work[1].local.count);
            let remain = with.on_work[2].local.count;
            assert!(remain <= u64::from(calls), "seed {seed}, heavy {heavy}");
            assert_eq!(without.on_work[2].local.count, 0);
            (made, kept) = (made + u64::from(calls), kept + remain);
        }
    }
    // Both happen.
    assert!(kept > 100 && made > kept + 100, "{kept} of {made}");
}
