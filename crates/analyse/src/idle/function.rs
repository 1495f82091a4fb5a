//! Sums by function; a loop's time is its function's. Inclusive values count a function once per path, however often it stands on it.

use profile::Idle;
use rustc_hash::FxHashMap;

use profile::idle::FrameKind;

use super::advice::{Advice, advise};
use super::project::{Projected, Values};

/// A function, or a loop, and its sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: FrameKind,
    /// Source file, empty when not known.
    pub file: String,
    /// Source line, 0 when not known.
    pub line: u32,
    /// Path of the executable or library.
    pub object: String,
    /// Of itself.
    pub own: Values,
    /// With what it called.
    pub all: Values,
    /// What to do.
    pub advice: Advice,
}

/// The functions of a tree, those that waste most first.
pub fn functions(idle: &Idle, tree: &Projected) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut numbers: FxHashMap<(*const u8, FrameKind), usize> = FxHashMap::default();
    let mut of_node = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        if node.kind == FrameKind::Loop
            && let Some(parent) = node.parent
        {
            let number: usize = of_node[parent as usize];
            of_node.push(number);
            found[number].own.add(&node.own);
            continue;
        }
        let number = *numbers.entry((node.name.as_ptr(), node.kind)).or_insert_with(|| {
            let frame = &idle.frames[node.frame as usize];
            let own = node.kind != FrameKind::Other;
            found.push(Function {
                name: node.name.to_string(),
                kind: node.kind,
                file: if own { frame.file.clone() } else { String::new() },
                line: if own { frame.line } else { 0 },
                object: if own { frame.object.clone() } else { String::new() },
                own: Values::default(),
                all: Values::default(),
                advice: Advice::default(),
            });
            found.len() - 1
        });
        of_node.push(number);
        found[number].own.add(&node.own);
    }
    for (i, node) in tree.nodes.iter().enumerate() {
        // Only where the function does not stand further out already.
        let mut above = node.parent;
        let outermost = loop {
            match above {
                None => break true,
                Some(p) if of_node[p as usize] == of_node[i] => break false,
                Some(p) => above = tree.nodes[p as usize].parent,
            }
        };
        if outermost {
            found[of_node[i]].all.add(&node.all);
        }
    }
    for function in &mut found {
        function.advice = advise(&function.all, &tree.total);
    }
    let wasted = |f: &Function| f.own.overhead_ns() as i64 + f.own.idle_ns;
    found.sort_by(|a, b| {
        (wasted(b), b.own.work_ns).cmp(&(wasted(a), a.own.work_ns)).then_with(|| a.name.cmp(&b.name))
    });
    found
}
