//! Random programs: the on-line algorithms against a naive evaluation.

mod program;

use std::collections::BTreeMap;

use program::{Naive, Op, Path, Random, cilk, func, stealing};
use proptest::prelude::*;
use spandag::serial::{How, Stack, Totals};
use spandag::task::{Books, Gather, Light, Outcome, Spawned, Tally, Task};
use spandag::{Arena, Contexts, Cost, Record, Scale, Site};

fn nonzero(records: &[Record]) -> BTreeMap<Site, Record> {
    records.iter().zip(0..).filter(|(r, _)| !r.is_empty()).map(|(r, s)| (s, *r)).collect()
}

/// `exact` also demands the same of every what-if.
fn check(ops: &[Op], totals: &Totals, exact: bool) {
    let (naive, path) = Naive::run(ops, None);
    assert_eq!(totals.work, naive.work);
    assert_eq!(totals.span, path.span);
    let mut on_span = nonzero(&totals.on_span);
    let mut expected = path.records;
    if spawns_into_scopes(ops) {
        // Of a task that is on the path only up to a spawn, the reference does not know the local work.
        on_span.values_mut().chain(expected.values_mut()).for_each(|r| r.local.work = 0);
    }
    assert_eq!(on_span, expected);
    let mut on_work = naive.on_work.clone();
    for (site, r) in nonzero(&totals.on_work) {
        // The local span of all invocations is checked by hand elsewhere: the reference does not add it up.
        let mut r = r;
        r.local.span = 0;
        assert_eq!(on_work.remove(&site), Some(r), "site {site}");
    }
    assert!(on_work.is_empty());
    assert_eq!(totals.on_span.iter().map(|r| r.local.span).sum::<u64>(), path.span, "local spans add up");
    assert_eq!(totals.on_work.iter().map(|r| r.local.work).sum::<u64>(), naive.work);
    assert_eq!(
        totals.steps.iter().map(|s| s.span).sum::<u64>(),
        path.span,
        "the critical path has all strands"
    );
    if exact {
        for (site, spans) in totals.faster.iter().enumerate() {
            for (k, &span) in spans.iter().enumerate() {
                let (_, path): (_, Path) = Naive::run(ops, Some((site as Site, k)));
                assert_eq!(span, path.span, "site {site} faster by {}", spandag::FACTORS[k]);
            }
        }
    }
}

fn serial(stack: &mut Stack, ops: &[Op]) {
    for op in ops {
        match op {
            Op::Work(cost) => stack.strand(*cost),
            Op::Call(site, ops) => {
                stack.enter(*site, func(*site), How::Called);
                serial(stack, ops);
                stack.leave();
            }
            Op::Spawn(site, ops) => {
                stack.enter(*site, func(*site), How::Spawned);
                serial(stack, ops);
                stack.leave();
            }
            Op::Sync => stack.sync(),
            _ => unreachable!(),
        }
    }
}

/// Runs tasks in random order: either side of a join first, spawned tasks at once or when the scope closes.
struct Pool {
    contexts: Contexts,
    books: Vec<Books>,
    random: Random,
    sites: usize,
    heavy: Cost,
    scopes: usize,
    arena: Arena,
}

type Pending<'a> = Vec<(Task, &'a [Op])>;

impl Pool {
    fn scale(&self) -> Scale {
        Scale { sites: self.sites, heavy: self.heavy }
    }

    fn child(&mut self, parent: &Task, site: Site) -> Task {
        let entry = self.contexts.enter(parent.entry.context, site, func(site));
        parent.child(site, entry)
    }

    /// Either on the thread of its parent, or not.
    fn finish(&mut self, mut task: Task) -> Outcome {
        if self.random.below(2) == 0 {
            return self.finish_apart(task).into();
        }
        let (worker, scale) = (self.random.below(3) as usize, self.scale());
        let mut out = Outcome::default();
        task.finish(&mut self.books[worker], scale, &mut self.arena, &mut out);
        out
    }

    /// A side of a join whose sides are taken to be light, unless they are not.
    fn finish_light(&mut self, mut task: Task, tally: &Tally) -> Light {
        let light = (self.random.below(4) > 0).then(|| task.finish_light(0, tally, self.heavy)).flatten();
        light.unwrap_or_else(|| self.finish(task).into())
    }

    fn finish_apart(&mut self, mut task: Task) -> Spawned {
        let (worker, scale) = (self.random.below(3) as usize, self.scale());
        task.finish_apart(&mut self.books[worker], scale, &mut self.arena)
    }

    fn run<'a>(
        &mut self,
        task: &mut Task,
        ops: &'a [Op],
        scope: &mut Option<(usize, Cost, bool, Pending<'a>)>,
    ) {
        for op in ops {
            match op {
                Op::Work(cost) => task.strand(*cost),
                Op::Call(site, ops) => {
                    let mut child = self.child(task, *site);
                    child.on(&self.arena);
                    self.run(&mut child, ops, &mut None);
                    let outcome = self.finish(child);
                    task.returned(outcome, self.scale(), &mut self.arena);
                }
                Op::Join((a, a_ops), (b, b_ops)) => {
                    let first_a = self.random.below(2) == 0;
                    let (a, b) = (self.child(task, *a), self.child(task, *b));
                    if self.random.below(2) == 0 {
                        let tallies = [&a, &b].map(|t| Tally::new(t.site, t.entry));
                        let mut sides = [None, None];
                        let mut todo = vec![(0, a, a_ops), (1, b, b_ops)];
                        while let Some((n, mut child, ops)) =
                            if first_a && todo.len() > 1 { Some(todo.remove(0)) } else { todo.pop() }
                        {
                            child.on(&self.arena);
                            self.run(&mut child, ops, &mut None);
                            sides[n] = Some(self.finish_light(child, &tallies[n]));
                        }
                        let ([a, b], scale) =
                            (sides.each_mut().map(|s| s.as_mut().expect("both have run")), self.scale());
                        task.join_light((a, b), &tallies, 0, || scale, &mut self.arena);
                        tallies.iter().for_each(|t| t.settle(&mut self.books[1]));
                        continue;
                    }
                    let mut run = |mut child: Task, ops: &'a [Op]| {
                        child.on(&self.arena);
                        self.run(&mut child, ops, &mut None);
                        self.finish(child)
                    };
                    let (mut a, mut b) = if first_a {
                        let a = run(a, a_ops);
                        (a, run(b, b_ops))
                    } else {
                        let b = run(b, b_ops);
                        (run(a, a_ops), b)
                    };
                    task.join(&mut a, &mut b, 0, self.scale(), &mut self.arena);
                }
                Op::Scope(ops) => {
                    self.scopes += 1;
                    let id = self.scopes;
                    let scale = self.scale();
                    let opened = task.open(id, scale, &mut self.arena);
                    let mut inner = Some((id, opened.at(), true, Vec::new()));
                    self.run(task, ops, &mut inner);
                    let (_, at, _, mut pending) = inner.take().expect("still there");
                    let mut gather = Gather::default();
                    while !pending.is_empty() {
                        // In order of the spawns where ties decide; the order of execution is another matter,
                        // and children that spawn in turn come later.
                        let (mut child, ops) = pending.remove(0);
                        let mut deeper = Some((id, at, false, Vec::new()));
                        child.on(&self.arena);
                        self.run(&mut child, ops, &mut deeper);
                        let outcome = self.finish_apart(child);
                        let later = deeper.take().expect("still there").3;
                        pending.splice(0..0, later);
                        gather.add(outcome, at, scale, &mut self.arena);
                    }
                    task.close(opened, gather, scale, &mut self.arena);
                }
                Op::Into(site, ops) => {
                    let entry = self.contexts.enter(task.entry.context, *site, func(*site));
                    let (id, at, body, pending) = scope.as_mut().expect("inside a scope");
                    let child = task.spawn(
                        (*site, entry),
                        *id,
                        *at,
                        *body,
                        (0, Scale { sites: self.sites, heavy: self.heavy }),
                        &mut self.arena,
                    );
                    pending.push((child, ops));
                }
                Op::Spawn(..) | Op::Sync => unreachable!(),
            }
        }
    }
}

fn steal(ops: &[Op], seed: u64, heavy: Cost) -> Totals {
    let mut contexts = Contexts::default();
    let mut root = Task::root(&mut contexts);
    let books = (0..3).map(|_| Books::default()).collect();
    let mut pool = Pool {
        contexts,
        books,
        random: Random(seed | 1),
        sites: 40,
        heavy,
        scopes: 0,
        arena: Arena::default(),
    };
    root.on(&pool.arena);
    pool.run(&mut root, ops, &mut None);
    let outcome = pool.finish(root);
    let mut all = Books::default();
    pool.books.iter().for_each(|b| all.merge(b));
    outcome.totals(all, 40, &mut pool.arena)
}

/// What-ifs are exact for programs that do not spawn into scopes: of a scope's children that are not the longest,
/// only the parts after their spawns are followed.
fn spawns_into_scopes(ops: &[Op]) -> bool {
    ops.iter().any(|op| match op {
        Op::Into(..) => true,
        Op::Call(_, ops) | Op::Spawn(_, ops) | Op::Scope(ops) => spawns_into_scopes(ops),
        Op::Join((_, a), (_, b)) => spawns_into_scopes(a) || spawns_into_scopes(b),
        Op::Work(_) | Op::Sync => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn serial_execution(seed in 1_u64.., few in any::<bool>(), heavy in prop_oneof![Just(0), Just(300), Just(1 << 50)]) {
        let ops = cilk(&mut Random(seed), if few { 4 } else { 30 }, 5);
        let mut stack = Stack::new(heavy, 0);
        serial(&mut stack, &ops);
        check(&ops, &stack.finish(), heavy == 0);
    }

    #[test]
    fn work_stealing(seed in 1_u64.., few in any::<bool>(), heavy in prop_oneof![Just(0), Just(300), Just(1 << 50)]) {
        let ops = stealing(&mut Random(seed), if few { 4 } else { 30 }, 4, false);
        let totals = steal(&ops, seed.rotate_left(17), heavy);
        check(&ops, &totals, heavy == 0 && !spawns_into_scopes(&ops));
    }
}

#[test]
fn a_million_deep() {
    const DEPTH: u32 = 1_000_000;
    let mut stack = Stack::new(100_000, 10);
    for i in 0..DEPTH {
        stack.strand(1);
        stack.enter(1 + i % 2, 0, if i % 3 == 0 { How::Spawned } else { How::Called });
    }
    let totals = stack.finish();
    assert_eq!((totals.work, totals.span), (DEPTH.into(), DEPTH.into()));
    assert_eq!(totals.on_span[1].site.count, 1, "nested invocations of a site count once");
    assert_eq!(totals.on_span[1].local.count + totals.on_span[2].local.count, DEPTH.into());

    let mut contexts = Contexts::default();
    let scale = Scale { sites: 2, heavy: 1000 };
    let mut task = Task::root(&mut contexts);
    let mut arena = Arena::default();
    let opened = task.open(1, scale, &mut arena);
    let mut gather = Gather::default();
    let entry = contexts.enter(task.entry.context, 1, 0);
    let mut children = Vec::new();
    for _ in 0..DEPTH {
        task.strand(1);
        children.push(task.spawn((1, entry), 1, 0, true, (0, scale), &mut arena));
    }
    let mut books = Books::default();
    for mut child in children {
        child.strand(1);
        gather.add(child.finish_apart(&mut books, scale, &mut arena), 0, scale, &mut arena);
    }
    task.close(opened, gather, scale, &mut arena);
    let outcome = Outcome::from(task.finish_apart(&mut books, scale, &mut arena));
    let totals = outcome.totals(books, 2, &mut arena);
    assert_eq!((totals.work, totals.span), (2 * u64::from(DEPTH), u64::from(DEPTH) + 1));
}
