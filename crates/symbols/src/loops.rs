//! Loops of a function, from its machine code.
//!
//! Source loops leave no trace in debug information, so they are found where they are: instructions are
//! decoded into basic blocks, and an edge back to a block that dominates its source closes a natural loop.
//! ```text
//! blocks → dominators (Cooper, Harvey, Kennedy) → back edges u→h with h dom u → body = what reaches u without h
//! ```
//! A switch jumps through a table; tables of the usual shapes (`lea table; movslq; add; jmp`, and
//! `jmp *table(,i,8)`) are read, and where none is recognized the jump is taken to go to every block that
//! nothing else reaches. Cycles that can be entered in two places (computed goto, hand-written assembly) are
//! not natural loops and are not reported.
//!
//! Where a loop is in the source is a choice: the branches that close or leave it are where compilers put the
//! line of `for` and `while`; they are reduced to the innermost inlined function that they and the header all
//! share, and there the first line is taken.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

use crate::address::{AddrRange, ObjectAddr};
use crate::frames::{Frame, Location};
use crate::object::Object;

/// Larger functions get no loops: the work grows faster than the function, and such code is generated.
const FUNCTION_BYTES_MAX: u64 = 256 << 10;
/// Entries read from one jump table.
const TABLE_ENTRIES_MAX: u64 = 4096;
/// How many instructions before an indirect jump its table is looked for.
const TABLE_LOOKBACK: usize = 16;

/// A natural loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loop {
    /// Its first instruction, through which it is entered.
    pub header: ObjectAddr,
    /// Its code, sorted, inner loops included.
    pub code: Vec<AddrRange>,
    /// The loop around it, as a position in the list.
    pub parent: Option<usize>,
    /// Where in the source it is.
    pub location: Option<Location>,
}

impl Loop {
    /// Whether an address is in it.
    pub fn contains(&self, addr: ObjectAddr) -> bool {
        let after = self.code.partition_point(|range| range.start <= addr);
        self.code[..after].last().is_some_and(|range| range.contains(addr))
    }
}

impl Object {
    /// The loops of a function, outer ones before inner ones.
    pub fn loops(&self, function: AddrRange) -> Vec<Loop> {
        if function.size_bytes() > FUNCTION_BYTES_MAX {
            return Vec::new();
        }
        let graph = Graph::decode(self, function);
        let mut loops = graph.loops();
        for found in &mut loops {
            found.location = self.loop_location(&graph, found);
        }
        loops
    }

    /// The innermost loop of `loops` that holds an address.
    pub fn innermost_loop(loops: &[Loop], addr: ObjectAddr) -> Option<&Loop> {
        loops.iter().rev().find(|l| l.contains(addr))
    }

    fn loop_location(&self, graph: &Graph, found: &Loop) -> Option<Location> {
        let mut places = vec![found.header];
        let blocks = found.code.iter().flat_map(|r| graph.blocks.range(r.start.0..r.end.0));
        for (_, block) in blocks {
            let leaves = block.next.iter().any(|next| !found.contains(ObjectAddr(*next)));
            let closes = block.next.contains(&found.header.0);
            if leaves && block.next.len() > 1 || closes {
                places.push(ObjectAddr(block.last));
            }
        }
        let chains: Vec<Vec<Frame>> = places.iter().map(|p| self.resolve(*p).0).collect();
        let first = chains.first()?;
        let same = |depth: usize| {
            chains.iter().all(|c| {
                let alike = |d: usize| c[d].function == first[d].function;
                let called_alike = |d: usize| (&c[d].file, c[d].line) == (&first[d].file, first[d].line);
                c.len() > depth && alike(depth) && (depth == 0 || called_alike(depth - 1))
            })
        };
        let depth = (0..first.len()).take_while(|d| same(*d)).last()?;
        let file = first[depth].file.clone()?;
        let lines =
            chains.iter().filter(|c| c[depth].file.as_ref() == Some(&file)).filter_map(|c| c[depth].line);
        Some(Location { line: lines.min()?, file })
    }
}

#[derive(Debug, Default)]
struct Block {
    end: u64,
    /// Address of its last instruction.
    last: u64,
    next: Vec<u64>,
}

struct Graph {
    entry: u64,
    blocks: BTreeMap<u64, Block>,
}

impl Graph {
    fn decode(object: &Object, function: AddrRange) -> Graph {
        let bytes = object.bytes_of(function);
        let mut decoder = Decoder::with_ip(64, &bytes, function.start.0, DecoderOptions::NONE);
        let mut code: Vec<Instruction> = Vec::new();
        while decoder.can_decode() {
            code.push(decoder.decode());
        }
        let inside = |addr: u64| function.contains(ObjectAddr(addr));
        let at: BTreeMap<u64, usize> = code.iter().enumerate().map(|(i, c)| (c.ip(), i)).collect();
        let mut leaders = BTreeSet::from([function.start.0]);
        let mut edges: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        let mut unresolved = Vec::new();
        for (i, instruction) in code.iter().enumerate() {
            let near = Some(instruction.near_branch_target()).filter(|t| inside(*t) && at.contains_key(t));
            let after = Some(instruction.next_ip()).filter(|a| inside(*a));
            let next: Vec<u64> = match instruction.flow_control() {
                FlowControl::Next
                | FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::XbeginXabortXend => {
                    continue;
                }
                FlowControl::ConditionalBranch => near.into_iter().chain(after).collect(),
                FlowControl::UnconditionalBranch => near.into_iter().collect(),
                FlowControl::IndirectBranch => {
                    let targets = jump_table(object, &code[..=i]);
                    let targets: Vec<u64> =
                        targets.into_iter().take_while(|t| inside(*t) && at.contains_key(t)).collect();
                    if targets.is_empty() {
                        unresolved.push(i);
                    }
                    targets
                }
                FlowControl::Interrupt if instruction.code() == Code::Int3 => continue,
                FlowControl::Return | FlowControl::Interrupt | FlowControl::Exception => Vec::new(),
            };
            leaders.extend(next.iter().copied());
            leaders.extend(after);
            edges.insert(i, next);
        }
        let mut blocks: BTreeMap<u64, Block> = BTreeMap::new();
        let mut start = None;
        for (i, instruction) in code.iter().enumerate() {
            let begun = *start.get_or_insert(instruction.ip());
            let after = instruction.next_ip();
            if edges.contains_key(&i) || leaders.contains(&after) || i + 1 == code.len() {
                let next = edges.remove(&i).unwrap_or_else(|| vec![after]);
                let next = next.into_iter().filter(|n| at.contains_key(n)).collect();
                blocks.insert(begun, Block { end: after, last: instruction.ip(), next });
                start = None;
            }
        }
        let mut graph = Graph { entry: function.start.0, blocks };
        graph.join_orphans(unresolved.iter().map(|i| code[*i].ip()).collect());
        graph
    }

    /// Lets jumps of unknown target go to all blocks that nothing else reaches.
    fn join_orphans(&mut self, jumps: BTreeSet<u64>) {
        if jumps.is_empty() {
            return;
        }
        let reached: BTreeSet<u64> = self.blocks.values().flat_map(|b| b.next.iter().copied()).collect();
        let orphans: Vec<u64> =
            self.blocks.keys().copied().filter(|s| *s != self.entry && !reached.contains(s)).collect();
        for block in self.blocks.values_mut().filter(|b| jumps.contains(&b.last)) {
            block.next = orphans.clone();
        }
    }

    fn loops(&self) -> Vec<Loop> {
        let order = self.postorder();
        let number: BTreeMap<u64, usize> = order.iter().enumerate().map(|(i, s)| (*s, i)).collect();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        for (i, start) in order.iter().enumerate() {
            for next in &self.blocks[start].next {
                if let Some(n) = number.get(next) {
                    before[*n].push(i);
                }
            }
        }
        let dominator = dominators(&before);
        let dominates = |a: usize, mut b: usize| {
            while b < a {
                b = dominator[b];
            }
            a == b
        };
        // Bodies by header; several back edges to one header make one loop.
        let mut bodies: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for header in 0..order.len() {
            for source in before[header].iter().copied().filter(|s| dominates(header, *s)) {
                let body = bodies.entry(header).or_insert_with(|| BTreeSet::from([header]));
                let mut work = vec![source];
                while let Some(block) = work.pop() {
                    if body.insert(block) {
                        work.extend(&before[block]);
                    }
                }
            }
        }
        let mut bodies: Vec<(usize, BTreeSet<usize>)> = bodies.into_iter().collect();
        bodies.sort_by_key(|(header, body)| (std::cmp::Reverse(body.len()), order[*header]));
        let parent = |i: usize| (0..i).rev().find(|p| bodies[*p].1.contains(&bodies[i].0));
        bodies
            .iter()
            .enumerate()
            .map(|(i, (header, body))| Loop {
                header: ObjectAddr(order[*header]),
                code: merge(body.iter().map(|b| (order[*b], self.blocks[&order[*b]].end)).collect()),
                parent: parent(i),
                location: None,
            })
            .collect()
    }

    /// Blocks that the entry reaches, each after all that it leads to first.
    fn postorder(&self) -> Vec<u64> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::from([self.entry]);
        let mut stack: Vec<(u64, usize)> = Vec::new();
        if self.blocks.contains_key(&self.entry) {
            stack.push((self.entry, 0));
        }
        while let Some((start, child)) = stack.pop() {
            match self.blocks[&start].next.get(child) {
                Some(next) => {
                    stack.push((start, child + 1));
                    if self.blocks.contains_key(next) && seen.insert(*next) {
                        stack.push((*next, 0));
                    }
                }
                None => order.push(start),
            }
        }
        order
    }
}

/// Immediate dominators of blocks numbered in postorder; the last one is the entry.
fn dominators(before: &[Vec<usize>]) -> Vec<usize> {
    let count = before.len();
    let Some(entry) = count.checked_sub(1) else { return Vec::new() };
    let mut dominator = vec![usize::MAX; count];
    dominator[entry] = entry;
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..entry).rev() {
            let known = before[block].iter().copied().filter(|b| dominator[*b] != usize::MAX);
            let new = known.reduce(|mut a, mut b| {
                while a != b {
                    if a < b {
                        a = dominator[a];
                    } else {
                        b = dominator[b];
                    }
                }
                a
            });
            if let Some(new) = new.filter(|n| dominator[block] != *n) {
                dominator[block] = new;
                changed = true;
            }
        }
    }
    dominator
}

/// Targets of the indirect jump that `code` ends with, as its table lists them; the table's end is not known.
fn jump_table(object: &Object, code: &[Instruction]) -> Vec<u64> {
    let Some((jump, before)) = code.split_last() else { return Vec::new() };
    let entries = |at: u64, width: u64| {
        object.bytes_of(AddrRange::new(at, at.saturating_add(width * TABLE_ENTRIES_MAX)))
    };
    if jump.op0_kind() == OpKind::Memory
        && jump.memory_base() == Register::None
        && jump.memory_index_scale() == 8
    {
        let table = entries(jump.memory_displacement64(), 8);
        return table.chunks_exact(8).map(|e| u64::from_le_bytes(e.try_into().unwrap_or_default())).collect();
    }
    let lea = before.iter().rev().take(TABLE_LOOKBACK);
    let Some(base) = lea
        .filter(|i| i.code() == Code::Lea_r64_m && i.is_ip_rel_memory_operand())
        .map(|i| i.ip_rel_memory_address())
        .next()
    else {
        return Vec::new();
    };
    let table = entries(base, 4);
    let offsets = table.chunks_exact(4).map(|e| i32::from_le_bytes(e.try_into().unwrap_or_default()));
    offsets.map(|offset| base.wrapping_add_signed(offset.into())).collect()
}

fn merge(mut pieces: Vec<(u64, u64)>) -> Vec<AddrRange> {
    pieces.sort_unstable();
    let mut merged: Vec<AddrRange> = Vec::new();
    for (start, end) in pieces {
        match merged.last_mut() {
            Some(last) if last.end.0 == start => last.end = ObjectAddr(end),
            _ => merged.push(AddrRange::new(start, end)),
        }
    }
    merged
}
