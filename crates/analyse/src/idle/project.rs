//! One of the two trees, as people read it.
//!
//! *Logical*: tasks below their creators; frames of schedulers, of start-up code and of generic libraries are not
//! shown, and their time belongs to the context that they served; closures are part of their function, and a
//! function that calls itself directly is one context. *Physical*: everything that was on the stacks, as it was.

use std::collections::HashMap;
use std::sync::Arc;

use profile::idle::{Chord, FrameKind, Idle};
use profile::siblings::Siblings;

use super::classes::{Class, Classes};

/// Which tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// As the program is written.
    Logical,
    /// As it ran.
    Physical,
}

/// Times of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Samples of work and overhead.
    pub samples: u64,
    /// CPU time in the program's own code.
    pub work_ns: u64,
    /// CPU time spent on synchronization.
    pub sync_ns: u64,
    /// CPU time spent on scheduling.
    pub schedule_ns: u64,
    /// Idle core time for which the context answers.
    pub idle_ns: i64,
    /// Time waited.
    pub blocked_ns: u64,
}

impl Values {
    /// Synchronization and scheduling.
    pub fn overhead_ns(&self) -> u64 {
        self.sync_ns + self.schedule_ns
    }

    /// Work, overhead and idleness.
    pub fn effort_ns(&self) -> u64 {
        (self.work_ns + self.overhead_ns()).saturating_add_signed(self.idle_ns)
    }

    /// Adds.
    pub fn add(&mut self, other: &Values) {
        self.samples += other.samples;
        self.work_ns += other.work_ns;
        self.sync_ns += other.sync_ns;
        self.schedule_ns += other.schedule_ns;
        self.idle_ns += other.idle_ns;
        self.blocked_ns += other.blocked_ns;
    }

    /// Whether there is nothing.
    pub fn is_zero(&self) -> bool {
        *self == Values::default()
    }
}

/// A context of a projected tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Its parent, which stands before it.
    pub parent: Option<u32>,
    /// What is shown: a position in [`Idle::frames`].
    pub frame: u32,
    /// The name to show; equal names are one.
    pub name: Arc<str>,
    /// Its kind.
    pub kind: FrameKind,
    /// Its own class, for colours.
    pub class: Class,
    /// Of itself.
    pub own: Values,
    /// With all below.
    pub all: Values,
}

/// A tree.
#[derive(Debug)]
pub struct Projected {
    /// Parents before children.
    pub nodes: Vec<Node>,
    /// Sums over everything.
    pub total: Values,
    /// CPU time spent looking for work.
    pub spin_ns: u64,
    /// Which node each context of the run became a part of.
    pub of_context: Vec<Option<u32>>,
    /// Which contexts are those of a thread that looks for work.
    pub idling: Vec<bool>,
}

/// Frames that are entries of a program.
pub fn is_entry(name: &str) -> bool {
    name == "main" || name.ends_with("::main")
}

/// Position of a name among those of a tree.
type Name = u32;

/// A node's name and kind in one word.
fn key(name: Name, kind: FrameKind) -> u32 {
    name << 3 | kind as u32
}

/// The names of a tree: contexts are many more, and are told apart by number.
#[derive(Default)]
struct Names<'a> {
    numbers: HashMap<&'a str, Name>,
    texts: Vec<Arc<str>>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> Name {
        *self.numbers.entry(name).or_insert_with(|| {
            self.texts.push(name.into());
            self.texts.len() as Name - 1
        })
    }

    fn text(&self, name: Name) -> &Arc<str> {
        &self.texts[name as usize]
    }
}

/// The child of a node that is called so, made by `new` if there is none yet.
fn child(
    children: &mut Siblings,
    nodes: &mut Vec<Node>,
    parent: Option<u32>,
    key: u32,
    new: impl FnOnce() -> Node,
) -> u32 {
    let (id, made) = children.child(parent, key);
    if made {
        nodes.push(new());
    }
    id
}

/// Builds one of the trees.
pub fn project(idle: &Idle, classes: &Classes, which: Projection) -> Projected {
    let class_of: Vec<Class> = idle.frames.iter().map(|f| classes.of(f)).collect();
    let mut tree = Projected {
        nodes: Vec::with_capacity(idle.contexts.len()),
        total: Values::default(),
        spin_ns: 0,
        of_context: Vec::with_capacity(idle.contexts.len()),
        idling: Vec::with_capacity(idle.contexts.len()),
    };
    let mut names = Names::default();
    let name_of: Vec<Name> = idle
        .frames
        .iter()
        .map(|f| names.number(if which == Projection::Logical { logical_name(&f.name) } else { &f.name }))
        .collect();
    let (looking, runtime) = (names.number("<looking for work>"), names.number("<runtime>"));
    let mut children = Siblings::with_capacity(idle.contexts.len());
    // Per context: the class of its time, whether a thread that looks for work is being watched, and whether it is shown.
    let mut decided: Vec<(Class, bool, bool)> = Vec::with_capacity(idle.contexts.len());
    for context in &idle.contexts {
        let frame = &idle.frames[context.frame as usize];
        let class = class_of[context.frame as usize];
        let parent = context.parent.map(|p| p as usize);
        let (outer, outer_idle, outer_shown) = parent.map_or((Class::Work, false, true), |p| decided[p]);
        let effective = match class {
            Class::Neutral | Class::Glue if frame.kind == FrameKind::Thread => Class::Work,
            Class::Neutral | Class::Glue => outer,
            class => class,
        };
        // Below a frame that looks for work, a frame of the program is work again.
        let idling = match class {
            Class::Idle => true,
            Class::Work => false,
            _ => outer_idle,
        };
        // A loop belongs to the function that it is in.
        let shown = is_shown(which, context.chord, frame.kind, class)
            && (frame.kind != FrameKind::Loop || outer_shown);
        decided.push((effective, idling, shown));
        tree.idling.push(idling);
        let above = parent.and_then(|p| tree.of_context[p]);
        let own = values(context, frame.kind, effective, idling);
        if frame.kind == FrameKind::Spin {
            tree.spin_ns += context.cpu_ns;
        }
        let node = if shown {
            let name = name_of[context.frame as usize];
            let kind = shown_kind(which, frame.kind);
            let same = above.filter(|&a| {
                let a = &tree.nodes[a as usize];
                let own = &idle.frames[a.frame as usize];
                which == Projection::Logical
                    && (Arc::ptr_eq(&a.name, names.text(name)) && a.kind == kind || is_closure_of(frame, own))
            });
            Some(same.unwrap_or_else(|| {
                let new = || Node {
                    parent: above,
                    frame: context.frame,
                    name: names.text(name).clone(),
                    kind,
                    class,
                    own: Values::default(),
                    all: Values::default(),
                };
                child(&mut children, &mut tree.nodes, above, key(name, kind), new)
            }))
        } else {
            above
        };
        tree.of_context.push(node);
        if own.is_zero() {
            continue;
        }
        tree.total.add(&own);
        let node = node.unwrap_or_else(|| {
            let (name, class) = if idling { (looking, Class::Idle) } else { (runtime, Class::Schedule) };
            let new = || Node {
                parent: None,
                frame: context.frame,
                name: names.text(name).clone(),
                kind: FrameKind::Other,
                class,
                own: Values::default(),
                all: Values::default(),
            };
            child(&mut children, &mut tree.nodes, None, key(name, FrameKind::Other), new)
        });
        tree.nodes[node as usize].own.add(&own);
    }
    for i in (0..tree.nodes.len()).rev() {
        let own = tree.nodes[i].own;
        tree.nodes[i].all.add(&own);
        if let Some(parent) = tree.nodes[i].parent {
            let all = tree.nodes[i].all;
            tree.nodes[parent as usize].all.add(&all);
        }
    }
    tree
}

fn values(context: &profile::idle::Context, kind: FrameKind, class: Class, idling: bool) -> Values {
    let mut own = Values::default();
    if kind == FrameKind::Wait {
        // A worker that sleeps for lack of work is idle, not blocked.
        if !idling {
            own.blocked_ns = context.blocked_ns;
        }
        return own;
    }
    if kind == FrameKind::Spin {
        return own;
    }
    own.samples = context.samples;
    own.idle_ns = context.idle_ns;
    own.blocked_ns = context.blocked_ns;
    match class {
        Class::Sync => own.sync_ns = context.cpu_ns,
        Class::Schedule | Class::Idle => own.schedule_ns = context.cpu_ns,
        Class::Work | Class::Neutral | Class::Glue => own.work_ns = context.cpu_ns,
    }
    own
}

fn is_shown(which: Projection, chord: Chord, kind: FrameKind, class: Class) -> bool {
    match which {
        Projection::Physical => chord != Chord::Logical && kind != FrameKind::Wait && kind != FrameKind::Spin,
        Projection::Logical => {
            chord != Chord::Physical
                && match kind {
                    FrameKind::Call | FrameKind::Inline => matches!(class, Class::Work | Class::Neutral),
                    FrameKind::Loop | FrameKind::Thread | FrameKind::Other => true,
                    FrameKind::Task | FrameKind::Wait | FrameKind::Spin => false,
                }
        }
    }
}

/// In the logical tree it does not matter whether a function was inlined at one place.
fn shown_kind(which: Projection, kind: FrameKind) -> FrameKind {
    match (which, kind) {
        (Projection::Logical, FrameKind::Inline) => FrameKind::Call,
        (_, kind) => kind,
    }
}

/// A closure's time is its function's; one in a type argument says only what a function was made for.
fn logical_name(name: &str) -> &str {
    for end in ["._omp_fn", ".omp_outlined"] {
        match name.find(end) {
            Some(at) if at > 0 => return &name[..at],
            _ => {}
        }
    }
    let mut depth = 0u32;
    for (i, byte) in name.bytes().enumerate() {
        match byte {
            b'<' => depth += 1,
            // `->` in a type is no bracket.
            b'>' if i > 0 && name.as_bytes()[i - 1] != b'-' => depth = depth.saturating_sub(1),
            b':' if depth == 0
                && i > 0
                && (name[i..].starts_with("::{{closure}}") || name[i..].starts_with("::{closure")) =>
            {
                return &name[..i];
            }
            _ => {}
        }
    }
    name
}

/// Whether a frame is a closure of the function above it, by their places: where debug information is of lines only, it
/// has no other name.
fn is_closure_of(frame: &profile::idle::Frame, above: &profile::idle::Frame) -> bool {
    let after = frame.line == 0 || above.line <= frame.line;
    frame.name.starts_with("{closure} in ") && frame.file == above.file && after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_are_their_functions() {
        for (name, logical) in [
            ("a::b::{closure#0}", "a::b"),
            ("a::b::{{closure}}::h0", "a::b"),
            ("a::b<c::{closure#0}>", "a::b<c::{closure#0}>"),
            ("<a<fn() -> b> as c>::d::{closure#1}", "<a<fn() -> b> as c>::d"),
            ("factor._omp_fn.1", "factor"),
            ("{closure#0}", "{closure#0}"),
        ] {
            assert_eq!(logical_name(name), logical);
        }
    }
}
