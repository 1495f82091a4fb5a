//! Random fork-join programs, and their work, span and profiles computed the slow and obvious way: every path
//! is a value with a full table of records, copied wherever it is needed.

use std::collections::BTreeMap;

use spandag::{Cost, FACTORS, Measure, Record, Site};

/// What a task does, one after the other.
#[derive(Debug, Clone)]
pub enum Op {
    Work(Cost),
    Call(Site, Vec<Op>),
    /// Cilk's: runs in parallel with what follows, up to the next sync.
    Spawn(Site, Vec<Op>),
    Sync,
    /// Both run in parallel, and the task waits for both.
    Join((Site, Vec<Op>), (Site, Vec<Op>)),
    /// Runs its operations; waits for all that they spawn into it.
    Scope(Vec<Op>),
    /// Spawns into the innermost scope.
    Into(Site, Vec<Op>),
}

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// The function that contains a site: three sites each.
pub fn func(site: Site) -> u32 {
    site / 3
}

/// A multiple of 20, so that a half and a tenth are whole, never nothing, and so rarely the same as another one
/// (or a sum of others) that no two paths are equally long.
fn cost(r: &mut Random) -> Cost {
    20 * (1 + r.below(1 << 44))
}

pub fn cilk(r: &mut Random, sites: u64, depth: u32) -> Vec<Op> {
    let mut ops = vec![Op::Work(cost(r))];
    for _ in 0..r.below(6) {
        let site = 1 + r.below(sites) as Site;
        ops.push(match r.below(5) {
            0 => Op::Sync,
            1 if depth > 0 => Op::Call(site, cilk(r, sites, depth - 1)),
            2 | 3 if depth > 0 => Op::Spawn(site, cilk(r, sites, depth - 1)),
            _ => Op::Work(cost(r)),
        });
    }
    ops
}

pub fn stealing(r: &mut Random, sites: u64, depth: u32, in_scope: bool) -> Vec<Op> {
    let mut ops = vec![Op::Work(cost(r))];
    for _ in 0..r.below(6) {
        let (a, b) = (1 + r.below(sites) as Site, 1 + r.below(sites) as Site);
        ops.push(match r.below(5) {
            0 if depth > 0 => {
                Op::Join((a, stealing(r, sites, depth - 1, false)), (b, stealing(r, sites, depth - 1, false)))
            }
            1 if depth > 0 => Op::Scope(stealing(r, sites, depth - 1, true)),
            2 if depth > 0 && in_scope => Op::Into(a, stealing(r, sites, depth - 1, true)),
            3 if depth > 0 => Op::Call(a, stealing(r, sites, depth - 1, false)),
            _ => Op::Work(cost(r)),
        });
    }
    ops
}

/// A path: its length, the strands on it by site, and the records of the invocations that end on it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Path {
    pub span: Cost,
    pub records: BTreeMap<Site, Record>,
}

impl Path {
    fn strand(&mut self, site: Site, cost: Cost, scaled: Cost) {
        self.span += scaled;
        self.records.entry(site).or_default().local.span += cost;
    }

    fn append(&mut self, other: &Path) {
        self.span += other.span;
        for (site, r) in &other.records {
            *self.records.entry(*site).or_default() += r;
        }
    }
}

/// The evaluation of one program, in which `faster.0` is faster by `FACTORS[faster.1]`.
pub struct Naive {
    pub on_work: BTreeMap<Site, Record>,
    pub faster: Option<(Site, usize)>,
    pub work: Cost,
    stack: Vec<Site>,
}

/// A scope that is open: where the current path started, and the best end so far.
struct Scope {
    best: Option<Path>,
}

impl Naive {
    pub fn run(ops: &[Op], faster: Option<(Site, usize)>) -> (Naive, Path) {
        let mut n = Naive { on_work: BTreeMap::new(), faster, work: 0, stack: Vec::new() };
        let path = n.invoke(0, ops, &Path::default(), &mut None);
        (n, path)
    }

    /// Invokes `site` after `before`; gives the path from its start to its end. What it spawns into `scope` ends
    /// there, with a path from the scope's start, of which `before` is the first part.
    fn invoke(&mut self, site: Site, ops: &[Op], before: &Path, scope: &mut Option<Scope>) -> Path {
        let top = !self.stack.contains(&site);
        let caller = |s: Site| if s == 0 { u32::MAX } else { func(s) };
        let top_caller = !self.stack.iter().any(|&s| caller(s) == caller(site));
        self.stack.push(site);
        let started = self.work;
        let (mut local_work, mut elsewhere) = (0, 0);
        let mut path = Path::default();
        let mut children: Vec<Path> = Vec::new();
        for op in ops {
            match op {
                Op::Work(cost) => {
                    self.work += cost;
                    local_work += cost;
                    let scaled = match self.faster {
                        Some((s, k)) if s == site => cost.checked_div(FACTORS[k]).unwrap_or(0),
                        _ => *cost,
                    };
                    path.strand(site, *cost, scaled);
                }
                Op::Call(s, ops) => {
                    let mut to_here = before.clone();
                    to_here.append(&path);
                    let inner = self.invoke(*s, ops, &to_here, &mut None);
                    path.append(&inner);
                }
                Op::Spawn(s, ops) => {
                    let inner = self.invoke(*s, ops, &Path::default(), &mut None);
                    let mut through = path.clone();
                    through.append(&inner);
                    children.push(through);
                }
                Op::Sync => sync(&mut path, &mut children),
                Op::Join((a, a_ops), (b, b_ops)) => {
                    let a = self.invoke(*a, a_ops, &Path::default(), &mut None);
                    let b = self.invoke(*b, b_ops, &Path::default(), &mut None);
                    path.append(if b.span > a.span { &b } else { &a });
                }
                Op::Scope(ops) => {
                    let mut inner = Some(Scope { best: None });
                    // The body belongs to this task; run it as a nameless continuation.
                    let (body, work) = self.body(site, ops, &mut inner);
                    local_work += work;
                    let best = inner.and_then(|s| s.best);
                    match best {
                        Some(best) if best.span > body.span => path.append(&best),
                        _ => path.append(&body),
                    }
                }
                Op::Into(s, ops) => {
                    let mut start = before.clone();
                    start.append(&path);
                    // Its work is the scope's, not this task's, which may end before it.
                    let before = self.work;
                    self.spawn_into(*s, ops, &start, scope);
                    elsewhere += self.work - before;
                }
            }
        }
        sync(&mut path, &mut children);
        self.stack.pop();
        let work = self.work - started - elsewhere;
        let all = Measure { count: 1, work, span: path.span };
        let pick = |top| if top { all } else { Measure::default() };
        let record = Record {
            site: pick(top),
            caller: pick(top_caller),
            local: Measure { count: 1, work: local_work, span: 0 },
        };
        *self.on_work.entry(site).or_default() += &record;
        *path.records.entry(site).or_default() += &record;
        path
    }

    fn spawn_into(&mut self, s: Site, ops: &[Op], start: &Path, scope: &mut Option<Scope>) {
        let mut end = start.clone();
        let inner = self.invoke(s, ops, start, scope);
        end.append(&inner);
        let scope = scope.as_mut().expect("programs spawn only inside scopes");
        if scope.best.as_ref().is_none_or(|b| end.span > b.span) {
            scope.best = Some(end);
        }
    }

    /// The operations of a scope's body, which are part of the task `site`.
    fn body(&mut self, site: Site, ops: &[Op], scope: &mut Option<Scope>) -> (Path, Cost) {
        let mut path = Path::default();
        let mut local = 0;
        for op in ops {
            match op {
                Op::Work(cost) => {
                    self.work += cost;
                    local += cost;
                    let scaled = match self.faster {
                        Some((s, k)) if s == site => cost.checked_div(FACTORS[k]).unwrap_or(0),
                        _ => *cost,
                    };
                    path.strand(site, *cost, scaled);
                }
                Op::Into(s, ops) => {
                    let start = path.clone();
                    self.spawn_into(*s, ops, &start, scope);
                }
                Op::Scope(ops) => {
                    let mut inner = Some(Scope { best: None });
                    let (body, work) = self.body(site, ops, &mut inner);
                    local += work;
                    match inner.and_then(|s| s.best) {
                        Some(best) if best.span > body.span => path.append(&best),
                        _ => path.append(&body),
                    }
                }
                Op::Join((a, a_ops), (b, b_ops)) => {
                    let a = self.invoke(*a, a_ops, &Path::default(), &mut None);
                    let b = self.invoke(*b, b_ops, &Path::default(), &mut None);
                    path.append(if b.span > a.span { &b } else { &a });
                }
                Op::Call(s, ops) => {
                    let inner = self.invoke(*s, ops, &Path::default(), &mut None);
                    path.append(&inner);
                }
                Op::Spawn(..) | Op::Sync => unreachable!("the two kinds of programs are not mixed"),
            }
        }
        (path, local)
    }
}

/// The first longest child wins; the continuation only when it is longer than all.
fn sync(path: &mut Path, children: &mut Vec<Path>) {
    let mut best: Option<Path> = None;
    for child in children.drain(..) {
        if best.as_ref().is_none_or(|b| child.span > b.span) {
            best = Some(child);
        }
    }
    if let Some(best) = best
        && best.span >= path.span
    {
        *path = best;
    }
}
