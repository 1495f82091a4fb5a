//! The trees of all threads become one tree of contexts.
//!
//! A thread's tree holds lines of notes (`wire::idle`). They are followed node by node, each note becoming one or
//! more contexts (inlined functions, loops) below its parent's. Three marks move to another place:
//! ```text
//! THREAD, outermost     below the context that created the thread, then a context of its own;
//!                       but a thread's scheduler frames (PHYSICAL right below it) stand at the root
//! THREAD, further in    the creator's thread: the path that created *it* is put in front of the creator's frames
//! LOCK                  what follows is not time but blame
//! ```
//! What the program's end cut off is completed here: efforts that working threads had not claimed yet, the last
//! interval in which nobody worked, waits that never ended.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use profile::idle::{Chord, Context, FrameKind, Holder, Idle, Line, Lock};
use profile::siblings::Siblings;
use symbols::Object;
use wire::idle::{BLOCKED, COUNT, CPU, EFFORT_BITS, IDLE, Node, chord, ended, mark, problem, task};

use crate::names::Names;
use crate::records::{Executed, File, Head, RecordError, Tree};

/// What the launcher knows of the run.
pub struct Ran<'a> {
    /// Path of the executable.
    pub program: &'a str,
    /// Who it was.
    pub process: Process,
    /// Opens an executable or library.
    pub open: &'a dyn Fn(&str) -> Option<Arc<Object>>,
}

/// What the launcher knows of a process. Times are of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy)]
pub enum Process {
    /// The one that it started.
    First {
        /// When.
        started_ns: u64,
        /// Wall-clock time until it had ended.
        wall_ns: u64,
        /// User and system time. `None` where it would be that of other processes too, which have profiles of their own:
        /// the runtime says how much it was.
        cpu_ns: Option<u64>,
    },
    /// A followed one, or the first before it executed another program: begins where the runtime began in it, and ends
    /// where the runtime says it did.
    Followed {
        /// When it had certainly ended, or was looked at last.
        ended_ns: u64,
        /// Whether the program that it executed in its place has a profile of its own.
        replaced: bool,
    },
}

/// What became of it.
#[derive(Debug)]
pub struct Collected {
    /// The facts.
    pub idle: Idle,
    /// What is missing or doubtful, one sentence each.
    pub problems: Vec<String>,
    /// `CLOCK_MONOTONIC` when it began.
    pub started_ns: u64,
    /// CPU time of all threads.
    pub cpu_ns: u64,
    /// Programs that it executed, or meant to; of a process that was followed.
    pub executed: Vec<Executed>,
}

/// Time by which a process may be seen after it was said to have ended, by other threads than the one that ended it.
const AFTER_END_NS: u64 = 5_000_000;

/// Periods of CPU time from which on it is said that most had no sample.
const PERIODS_SAID: u64 = 100;

/// When a process began and ended, and what CPU time it had used.
struct Life {
    started_ns: u64,
    /// ns since the runtime began.
    end_ns: u64,
    /// As `Process::First` says it.
    cpu_ns: Option<u64>,
}

impl Life {
    /// Of a process as it is known to the launcher and to the runtime. The head is made to begin with the runtime if the
    /// process does.
    fn new(head: &mut Head, trees: &[Tree], process: Process) -> Life {
        let last_seen_ns = trees.iter().map(|t| t.claimed_ns).fold(head.now_ns, u64::max);
        let end_is_known = head.ended != ended::NO && last_seen_ns <= head.end_ns + AFTER_END_NS;
        let own_cpu_ns = end_is_known
            .then(|| head.start_cpu_ns + head.end_cpu_ns.saturating_sub(head.start_process_cpu_ns));
        match process {
            // What the program that it became does is not known.
            Process::First { started_ns, .. } if head.ended == ended::EXEC && end_is_known => {
                Life { started_ns, end_ns: head.end_ns.max(last_seen_ns), cpu_ns: own_cpu_ns }
            }
            Process::First { started_ns, wall_ns, cpu_ns } => Life {
                started_ns,
                end_ns: (started_ns + wall_ns).saturating_sub(head.start_ns).max(last_seen_ns),
                cpu_ns: cpu_ns.or(own_cpu_ns),
            },
            Process::Followed { ended_ns, .. } => {
                let cpu_ns = own_cpu_ns.map(|ns| ns - head.start_cpu_ns);
                head.start_cpu_ns = 0;
                let bound_ns = ended_ns.saturating_sub(head.start_ns);
                let end_ns = if end_is_known { head.end_ns } else { bound_ns };
                Life { started_ns: head.start_ns, end_ns: end_ns.max(last_seen_ns), cpu_ns }
            }
        }
    }
}

/// Reads the shared file of a run that has ended.
pub fn collect(bytes: &[u8], ran: &Ran<'_>) -> Result<Collected, RecordError> {
    let file = File::open(bytes)?;
    let mut head = file.head();
    let mut trees = file.trees();
    let Life { started_ns, end_ns, cpu_ns } = Life::new(&mut head, &trees, ran.process);
    let (nobody_ns, mut preempted_ns) = complete(&head, &mut trees, end_ns, cpu_ns.unwrap_or(0));
    // Most notes are a context of their own.
    let notes = trees.iter().map(|t| t.nodes.len()).sum();
    let mut builder = Builder {
        names: Names::new(ran.program, file.modules(), ran.open),
        contexts: Vec::with_capacity(notes),
        children: Siblings::with_capacity(notes),
        lines: FxHashMap::default(),
        places: trees.iter().map(|t| vec![None; t.nodes.len()]).collect(),
        slots: trees.iter().enumerate().map(|(i, t)| (t.index, i)).collect(),
        blame: FxHashMap::default(),
        trees: &trees,
    };
    preempted_ns += builder.start_up(&head, started_ns);
    for tree in 0..trees.len() {
        builder.tree(tree, end_ns);
    }
    let mut problems = problems(&head, &trees, ran.process);
    let mut locks = builder.locks(&file, end_ns);
    locks.sort_by_key(|l| std::cmp::Reverse(l.wait_ns));
    let sum = |f: fn(&Tree) -> u64| trees.iter().map(f).sum::<u64>();
    let samples = sum(|t| t.samples);
    let cpu = trees.iter().map(|t| t.cpu_ns).sum::<u64>();
    let mut lines: Vec<Line> = builder.lines.values().copied().collect();
    lines.sort_unstable();
    problems.extend(builder.names.problems());
    if !builder.names.executable_has_debug_info() {
        problems.push(
            "the executable has no debug information: no lines, inlined functions or loops; build with -g (Rust: \
             debug = \"line-tables-only\" or 1)"
                .into(),
        );
    }
    let idle = Idle {
        rules: String::new(),
        cores: head.cores as u32,
        period_ns: head.period_ns,
        backend: match head.backend {
            1 => "perf",
            2 => "timer",
            _ => "none",
        }
        .into(),
        span_ns: end_ns + head.start_ns.saturating_sub(started_ns),
        nobody_ns,
        preempted_ns,
        threads: head.threads,
        samples,
        lost: (cpu / head.period_ns.max(1)).saturating_sub(samples),
        stitched: sum(|t| t.stitched),
        orphans: sum(|t| t.orphans),
        frames: builder.names.frames,
        contexts: builder.contexts,
        lines,
        locks,
    };
    Ok(Collected { idle, problems, started_ns, cpu_ns: cpu + head.start_cpu_ns, executed: file.executed() })
}

/// Completes what the end cut off. The core time in which nobody worked, and that which others had.
fn complete(head: &Head, trees: &mut [Tree], end_ns: u64, cpu_ns: u64) -> (u64, i64) {
    let last = end_ns - head.now_ns;
    let mut nobody = head.nobody_ns * head.cores + (head.pool >> EFFORT_BITS);
    if head.working == 0 {
        nobody += last * head.cores;
    }
    let rate = match head.working {
        0 => 0,
        working => ((u128::from(last * head.cores) << EFFORT_BITS) / u128::from(working)) as u64,
    };
    let known: u64 = trees.iter().map(|t| t.cpu_ns).sum::<u64>() + head.start_cpu_ns;
    let alive = trees.iter().filter(|t| t.state != 0).count() as u64;
    let mut cpu_left = cpu_ns.saturating_sub(known);
    let mut alive_left = alive;
    for tree in trees.iter_mut().filter(|t| t.state != 0) {
        let (mut effort, mut ns) = (tree.pending, tree.pending_ns);
        if tree.state == 1 {
            effort = effort.wrapping_add(head.effort.wrapping_add(rate).wrapping_sub(tree.claimed));
            ns += end_ns.saturating_sub(tree.claimed_ns);
        }
        // CPU time since the last samples: the kernel tells the sum only.
        let share = cpu_left / alive_left.max(1);
        (cpu_left, alive_left) = (cpu_left - share, alive_left.saturating_sub(1));
        tree.cpu_ns += share;
        let used = wire::idle::used(effort, ns, share);
        tree.preempted += effort.wrapping_sub(used) as i64;
        let at = tree.last_node as usize;
        if tree.nodes.is_empty() {
            tree.nodes.push(Node::default());
        }
        if let Some(node) = tree.nodes.get_mut(at) {
            node.metrics[CPU] += share;
            node.metrics[IDLE] += used.saturating_sub(share << EFFORT_BITS);
        }
    }
    let preempted: i64 = trees.iter().map(|t| t.preempted).sum::<i64>() >> EFFORT_BITS;
    (nobody, preempted)
}

fn problems(head: &Head, trees: &[Tree], process: Process) -> Vec<String> {
    let mut found = Vec::new();
    let bits = head.problems;
    let refused: u64 = trees.iter().map(|t| t.refused).sum();
    if bits & problem::FULL != 0 || refused > 0 {
        found.push(format!("the memory for contexts was full: {refused} paths are cut"));
    }
    if bits & problem::FORKED != 0 {
        found.push("the program forked; its children are not part of this profile".into());
    }
    if bits & problem::THREADS != 0 {
        found.push("some threads found no place and are not part of this profile".into());
    }
    let replaced = matches!(process, Process::Followed { replaced: true, .. });
    if bits & problem::EXEC != 0 && !replaced {
        found.push(
            "the program executed another one in its place: only the time before is known; give --follow to profile \
             that one, too"
                .into(),
        );
    }
    if head.backend == 2 {
        found.push(
            "perf events are not permitted, so CPU-time timers sample the threads: at most 250 samples per second, \
             and calls that are never restarted may see EINTR; allow perf with: sysctl kernel.perf_event_paranoid=2"
                .into(),
        );
    }
    let (samples, cut): (u64, u64) = trees.iter().fold((0, 0), |(s, c), t| (s + t.samples, c + t.cut));
    if cut * 100 > samples {
        found.push(format!("{cut} of {samples} call paths end before the start of their thread"));
    }
    let cpu_ns: u64 = trees.iter().map(|t| t.cpu_ns).sum();
    let periods = cpu_ns / head.period_ns.max(1);
    if periods > 2 * samples && periods > PERIODS_SAID {
        found.push(format!(
            "{} of {periods} periods passed without a sample of their own (in the kernel, or at a rate that this machine \
             does not keep up with): their time is counted with the next sample of the same thread",
            periods - samples
        ));
    }
    let known = cpu_ns + head.start_cpu_ns;
    if let Process::First { cpu_ns: Some(cpu_ns), .. } = process
        && bits & problem::EXEC == 0
        && cpu_ns > 0
        && known.abs_diff(cpu_ns) * 20 > cpu_ns
        && known.abs_diff(cpu_ns) > 20_000_000
    {
        found.push(format!(
            "the threads seen used {} ms of CPU time, the process with its children {} ms",
            known / 1_000_000,
            cpu_ns / 1_000_000
        ));
    }
    found
}

/// Where a node's children hang.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At the root.
    Root,
    /// Below a context.
    At(u32),
    /// Below the mark of a thread: its own context, for frames that are not the scheduler's.
    Thread(u32),
}

struct Builder<'a> {
    names: Names<'a>,
    contexts: Vec<Context>,
    /// Of contexts, by frame and chord.
    children: Siblings,
    lines: FxHashMap<(u32, u32), Line>,
    places: Vec<Vec<Option<(Place, u32)>>>,
    slots: FxHashMap<u32, usize>,
    blame: FxHashMap<u32, FxHashMap<u32, Holder>>,
    trees: &'a [Tree],
}

fn pc_of(key: u64) -> (u32, u64, bool) {
    (((key >> 47) & 0x1fff) as u32, key & ((1 << 47) - 1), key >> 63 != 0)
}

fn chord_of(key: u64) -> u64 {
    key >> 60 & 7
}

/// A mark's kind and value.
fn mark_of(key: u64) -> Option<(u64, u64)> {
    (chord_of(key) == chord::MARK).then_some((key >> 48 & 0xfff, key & ((1 << 48) - 1)))
}

/// A node's parent, which was made before it; the root of what makes no sense.
fn parent_of(node: &Node, at: usize) -> usize {
    if (node.parent as usize) < at { node.parent as usize } else { 0 }
}

/// All nodes, each before those below it, and these before its siblings: what is near in this order is near in the tree
/// that is built by it.
fn depth_first(nodes: &[Node]) -> Vec<usize> {
    // Node 0 is the root, and nobody's child or sibling.
    let (mut first, mut next) = (vec![0u32; nodes.len()], vec![0u32; nodes.len()]);
    for at in (1..nodes.len()).rev() {
        let parent = parent_of(&nodes[at], at);
        (next[at], first[parent]) = (first[parent], at as u32);
    }
    let mut order = Vec::with_capacity(nodes.len());
    let mut at = 0;
    while order.len() < nodes.len() {
        order.push(at);
        if first[at] != 0 {
            at = first[at] as usize;
            continue;
        }
        while next[at] == 0 && at != 0 {
            at = parent_of(&nodes[at], at);
        }
        at = next[at] as usize;
    }
    order
}

impl Builder<'_> {
    fn child(&mut self, parent: Option<u32>, frame: u32, chord: Chord) -> u32 {
        let (id, made) = self.children.child(parent, frame << 2 | chord as u32);
        if made {
            self.contexts.push(Context { parent, frame, chord, ..Context::default() });
        }
        id
    }

    /// Time before the runtime began: the dynamic linker and other libraries' constructors. What of it others had.
    fn start_up(&mut self, head: &Head, started_ns: u64) -> i64 {
        let before = head.start_ns.saturating_sub(started_ns);
        if before == 0 {
            return 0;
        }
        let cpu = head.start_cpu_ns.min(before);
        let frame = self.names.mark(FrameKind::Other, "<start-up>");
        let context = self.child(None, frame, Chord::Both);
        self.contexts[context as usize].cpu_ns = cpu;
        self.contexts[context as usize].idle_ns = (cpu * (head.cores - 1)) as i64;
        ((before - cpu) * head.cores) as i64
    }

    fn tree(&mut self, tree: usize, end_ns: u64) {
        for node in depth_first(&self.trees[tree].nodes) {
            let metrics = self.trees[tree].nodes[node].metrics;
            if metrics == [0; 4] {
                continue;
            }
            let (place, lock) = self.place(tree, node);
            let context = match place {
                Place::At(context) | Place::Thread(context) => context,
                Place::Root => {
                    let frame = self.names.mark(FrameKind::Other, "<before the first sample>");
                    self.child(None, frame, Chord::Both)
                }
            };
            if lock != 0 {
                let holder = self.blame.entry(lock).or_default().entry(context).or_default();
                holder.context = context;
                holder.blame_ns += metrics[BLOCKED];
                holder.count += metrics[COUNT];
                continue;
            }
            let spin = mark_of(self.trees[tree].nodes[node].key).is_some_and(|(m, _)| m == mark::SPIN);
            let idle_ns = if spin { 0 } else { (metrics[IDLE] >> EFFORT_BITS) as i64 };
            let c = &mut self.contexts[context as usize];
            c.samples += metrics[COUNT];
            c.cpu_ns += metrics[CPU];
            c.idle_ns += idle_ns;
            c.blocked_ns += metrics[BLOCKED];
            let key = self.trees[tree].nodes[node].key;
            if mark_of(key).is_none() && metrics[CPU] > 0 {
                let (serial, pc, exact) = pc_of(key);
                if let Some((frame, number)) = self.names.place(serial, pc, exact).line {
                    let line = self.lines.entry((frame, number)).or_default();
                    (line.frame, line.line) = (frame, number);
                    line.cpu_ns += metrics[CPU];
                    line.idle_ns += idle_ns;
                }
            }
        }
        let waiting = self.trees[tree].waiting_since;
        if waiting > 0 && self.trees[tree].state == 2 {
            // Where it waits was to be found out when it ended.
            let frame = self.names.mark(FrameKind::Other, "<waiting at the end>");
            let context = self.child(None, frame, Chord::Both);
            self.contexts[context as usize].blocked_ns += end_ns.saturating_sub(waiting);
        }
    }

    /// Where the children of a node hang, and the lock that the path is blamed for.
    fn place(&mut self, tree: usize, node: usize) -> (Place, u32) {
        if let Some(known) = self.places[tree].get(node).copied().flatten() {
            return known;
        }
        let trees = self.trees;
        // Up to the first ancestor that is known, then down again: paths are too deep for recursion.
        let mut path = Vec::new();
        let mut at = node;
        let mut known = (Place::Root, 0);
        while at != 0 {
            if let Some(found) = self.places[tree].get(at).copied().flatten() {
                known = found;
                break;
            }
            let Some(n) = trees[tree].nodes.get(at) else { break };
            path.push(at);
            at = parent_of(n, at);
        }
        for at in path.into_iter().rev() {
            let n = trees[tree].nodes[at];
            known = self.step(known, n.key);
            if let Some(place) = self.places[tree].get_mut(at) {
                *place = Some(known);
            }
        }
        known
    }

    fn step(&mut self, (place, lock): (Place, u32), key: u64) -> (Place, u32) {
        let class = chord_of(key);
        let parent = match place {
            Place::Root => None,
            Place::At(context) => Some(context),
            Place::Thread(_) if class == chord::PHYSICAL => None,
            Place::Thread(context) => Some(context),
        };
        match mark_of(key) {
            Some((mark::LOCK, number)) => return (Place::Root, number as u32),
            Some((mark::THREAD, origin)) => {
                let outermost = place == Place::Root;
                let mut at = parent;
                for frame in self.origin(origin) {
                    at = Some(self.child(at, frame, Chord::Logical));
                }
                if origin != 0 && outermost {
                    let frame = self.names.mark(FrameKind::Thread, "thread");
                    return (Place::Thread(self.child(at, frame, Chord::Both)), lock);
                }
                return (at.map_or(Place::Root, Place::At), lock);
            }
            Some((kind, value)) => {
                let (kind, name) = match kind {
                    mark::WAIT => (FrameKind::Wait, wait_name(value)),
                    mark::SPIN => (FrameKind::Spin, "looking for work"),
                    mark::TASK => (FrameKind::Task, task_name(value)),
                    mark::ORPHAN => (FrameKind::Other, "<task of an unknown creator>"),
                    _ => (FrameKind::Other, "<unknown>"),
                };
                let frame = self.names.mark(kind, name);
                // An orphan's scheduler frames are not its callers; as a root of its own it is at least one.
                return (Place::At(self.child(parent, frame, Chord::Both)), lock);
            }
            None => {}
        }
        let chord = match class {
            chord::PHYSICAL => Chord::Physical,
            chord::LOGICAL => Chord::Logical,
            _ => Chord::Both,
        };
        let (serial, pc, exact) = pc_of(key);
        let mut at = parent;
        for &frame in &self.names.place(serial, pc, exact).frames {
            at = Some(self.child(at, frame, chord));
        }
        (at.map_or(Place::Root, Place::At), lock)
    }

    /// Frames of the logical path that created a thread, the outermost first.
    fn origin(&mut self, origin: u64) -> Vec<u32> {
        let Some(token) = origin.checked_sub(1) else { return Vec::new() };
        let (slot, node) = ((token >> 28) as u32, (token & ((1 << 28) - 1)) as usize);
        let Some(&tree) = self.slots.get(&slot) else { return Vec::new() };
        let (place, _) = self.place(tree, node);
        let mut frames = Vec::new();
        let mut at = match place {
            Place::At(context) | Place::Thread(context) => Some(context),
            Place::Root => None,
        };
        while let Some(context) = at {
            let c = self.contexts[context as usize];
            if c.chord != Chord::Physical {
                frames.push(c.frame);
            }
            at = c.parent;
        }
        frames.reverse();
        frames
    }

    fn locks(&mut self, file: &File<'_>, end_ns: u64) -> Vec<Lock> {
        let mut blame = std::mem::take(&mut self.blame);
        let mut locks = Vec::new();
        for record in file.locks() {
            let (waiting, since) = (record.waiting_now >> 48, record.waiting_now & ((1 << 48) - 1));
            let waiter = match record.longest_ns {
                0 => None,
                _ => self.slots.get(&((record.longest_at >> 32) as u32)).copied().and_then(|tree| match self
                    .place(tree, record.longest_at as u32 as usize)
                    .0
                {
                    Place::At(context) | Place::Thread(context) => Some(context),
                    Place::Root => None,
                }),
            };
            let mut holders: Vec<Holder> =
                blame.remove(&record.number).unwrap_or_default().into_values().collect();
            holders.sort_by_key(|h| (std::cmp::Reverse(h.blame_ns), h.context));
            locks.push(Lock {
                address: record.address,
                kind: wait_name(record.kind.into()).to_owned(),
                wait_ns: record.wait_ns + waiting * end_ns.saturating_sub(since),
                handed_over_ns: record.handed_over,
                contended: record.contended,
                acquisitions: record.acquisitions,
                waiter,
                holders,
            });
        }
        locks
    }
}

fn wait_name(kind: u64) -> &'static str {
    const NAMES: [&str; 18] = [
        "mutex",
        "read lock",
        "write lock",
        "spin lock",
        "condition",
        "barrier",
        "semaphore",
        "join",
        "futex",
        "futex lock",
        "signal",
        "sleep",
        "poll",
        "input",
        "output",
        "connection",
        "storage",
        "child process",
    ];
    usize::try_from(kind).ok().and_then(|k| NAMES.get(k).copied()).unwrap_or("wait")
}

fn task_name(kind: u64) -> &'static str {
    match kind {
        task::RAYON_STACK => "rayon job",
        task::RAYON_HEAP => "rayon spawned job",
        task::OMP_REGION => "OpenMP region",
        task::OMP_TASK => "OpenMP task",
        _ => "task",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_before_those_below_them_and_once() {
        let tree = |parents: &[u32]| -> Vec<Node> {
            parents.iter().map(|&parent| Node { parent, ..Node::default() }).collect()
        };
        assert_eq!(depth_first(&tree(&[])), [0; 0]);
        assert_eq!(depth_first(&tree(&[0])), [0]);
        assert_eq!(depth_first(&tree(&[0, 0, 0, 1, 2, 1, 3])), [0, 1, 3, 6, 5, 2, 4]);
        // Parents that come later, or are the node itself, make no sense.
        assert_eq!(depth_first(&tree(&[7, 2, 2, 9])), [0, 1, 2, 3]);
    }
}
