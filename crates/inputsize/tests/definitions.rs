//! The oracle itself, against the definitions of the papers taken literally: by looking at the whole past for
//! every read and every pending activation.

mod support;

use inputsize::CellSize;
use inputsize::trace::shape::{Limits, Op, OpKind, shape};
use inputsize::trace::{Event, Step};
use proptest::prelude::*;
use support::{COSTS, oracle};

/// An access of one cell in the past: when, by whom, how, by which activations (ids of all pending ones).
struct Access {
    thread: Option<u32>,
    cell: u64,
    write: bool,
    pending: Vec<usize>,
}

/// (rms, trms) of all activations of each thread, in the order in which they end.
fn literal(steps: &[Step]) -> Vec<(u32, u64, u64)> {
    let mut past: Vec<Access> = Vec::new();
    let mut stacks: std::collections::BTreeMap<u32, Vec<usize>> = Default::default();
    let mut sizes: Vec<(u64, u64)> = Vec::new();
    let mut ended = Vec::new();
    for &Step { thread, event } in steps {
        let stack = stacks.entry(thread).or_default();
        match event {
            Event::ThreadStart { .. } | Event::Call { .. } => {
                stack.push(sizes.len());
                sizes.push((0, 0));
            }
            Event::Return => {
                let id = stack.pop().unwrap();
                ended.push((thread, sizes[id].0, sizes[id].1));
            }
            Event::ThreadEnd => {
                while let Some(id) = stack.pop() {
                    ended.push((thread, sizes[id].0, sizes[id].1));
                }
            }
            Event::Read { address, .. } => {
                let cell = address / 4;
                for &id in stack.iter() {
                    let accesses =
                        |from: usize| past[from..].iter().any(|a| a.cell == cell && a.pending.contains(&id));
                    // Definition 2: never accessed before by r or by any of its descendants.
                    let first = !accesses(0);
                    // The latest write by any other thread (or the kernel), if any, has not been followed by
                    // an access by r or by any of its descendants.
                    let foreign =
                        past.iter().rposition(|a| a.cell == cell && a.write && a.thread != Some(thread));
                    let induced = foreign.is_some_and(|at| !accesses(at + 1));
                    sizes[id].0 += u64::from(first);
                    sizes[id].1 += u64::from(first || induced);
                }
                past.push(Access { thread: Some(thread), cell, write: false, pending: stack.clone() });
            }
            Event::Write { address, .. } => {
                let cell = address / 4;
                past.push(Access { thread: Some(thread), cell, write: true, pending: stack.clone() });
            }
            Event::KernelWrite { address, .. } => {
                past.push(Access { thread: None, cell: address / 4, write: true, pending: Vec::new() });
            }
            _ => unreachable!("not generated here"),
        }
    }
    ended
}

fn op() -> impl Strategy<Value = Op> {
    let kind = prop_oneof![
        4 => any::<u8>().prop_map(|n| OpKind::Call(n, false)),
        3 => Just(OpKind::Return),
        6 => any::<u8>().prop_map(|cell| OpKind::Read(cell, 1)),
        3 => any::<u8>().prop_map(|cell| OpKind::Write(cell, 1)),
        1 => any::<u8>().prop_map(|cell| OpKind::KernelWrite(cell, 1)),
        1 => Just(OpKind::Respawn),
    ];
    (0u8..12, kind).prop_map(|(thread, kind)| Op { thread, kind })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn sizes_are_those_of_definitions_1_to_3(ops in prop::collection::vec(op(), 0..150)) {
        let limits =
            Limits { threads: 3, cells: 4, stride_bytes: 4, depth: 5, routines: 3, costs: COSTS as u8 };
        let steps = shape(&ops, limits);
        let mut expected = literal(&steps);
        expected.sort_by_key(|(thread, ..)| *thread);
        let found: Vec<(u32, u64, u64)> = oracle(&steps, CellSize::FOUR)
            .into_iter()
            .flat_map(|(thread, all)| all.into_iter().map(move |a| (thread, a.rms, a.trms)))
            .collect();
        prop_assert_eq!(found, expected);
    }
}
