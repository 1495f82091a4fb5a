//! The algorithm agrees with the oracle on random traces, activation by activation.

mod support;

use inputsize::CellSize;
use inputsize::trace::binary::{Reader, Writer};
use inputsize::trace::shape::{Limits, Op, OpKind, shape};
use inputsize::trace::{Event, Step};
use proptest::prelude::*;
use support::{COSTS, disagreement};

/// Mostly calls, returns and accesses; a little of everything else.
fn op() -> impl Strategy<Value = Op> {
    let cells = || (any::<u8>(), prop_oneof![8 => Just(1u8), 3 => Just(2u8), 1 => any::<u8>()]);
    let kind = prop_oneof![
        16 => any::<u8>().prop_map(|n| OpKind::Call(n, false)),
        1 => any::<u8>().prop_map(|n| OpKind::Call(n, true)),
        14 => Just(OpKind::Return),
        2 => any::<u8>().prop_map(|n| OpKind::Tail(n, false)),
        1 => any::<u8>().prop_map(|n| OpKind::Tail(n, true)),
        2 => (0u8..5).prop_map(OpKind::Unwind),
        1 => any::<u8>().prop_map(OpKind::Signal),
        1 => Just(OpKind::SigReturn),
        24 => cells().prop_map(|(cell, count)| OpKind::Read(cell, count)),
        14 => cells().prop_map(|(cell, count)| OpKind::Write(cell, count)),
        2 => cells().prop_map(|(cell, count)| OpKind::KernelRead(cell, count)),
        4 => cells().prop_map(|(cell, count)| OpKind::KernelWrite(cell, count)),
        1 => cells().prop_map(|(cell, count)| OpKind::Reset(cell, count)),
        4 => any::<(u8, u8)>().prop_map(|(which, amount)| OpKind::Cost(which, amount)),
        1 => Just(OpKind::Respawn),
    ];
    (0u8..12, kind).prop_map(|(thread, kind)| Op { thread, kind })
}

fn small(stride_bytes: u64) -> Limits {
    Limits { threads: 3, cells: 6, stride_bytes, depth: 6, routines: 4, costs: COSTS as u8 }
}

fn agree(steps: &[Step], bits: u32, batch: usize) -> Result<(), TestCaseError> {
    match disagreement(steps, CellSize::FOUR, bits, batch) {
        None => Ok(()),
        Some(difference) => Err(TestCaseError::fail(difference)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Stamps of three bits: a renumbering every few calls.
    #[test]
    fn with_the_narrowest_stamps(ops in prop::collection::vec(op(), 0..120), batch in 1usize..9) {
        agree(&shape(&ops, small(4)), 3, batch)?;
    }

    /// All widths, and cells on one page or on several.
    #[test]
    fn with_stamps_of_any_width(
        ops in prop::collection::vec(op(), 0..200), bits in 3u32..=32, spread in any::<bool>(),
    ) {
        agree(&shape(&ops, small(if spread { 4096 } else { 4 })), bits, 5)?;
    }

    /// One thread alone: the sequential metric of the first paper.
    #[test]
    fn with_one_thread(ops in prop::collection::vec(op(), 0..200), bits in 3u32..7) {
        agree(&shape(&ops, Limits { threads: 1, ..small(4) }), bits, 7)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// More of everything, with enough depth for long searches.
    #[test]
    fn on_larger_traces(ops in prop::collection::vec(op(), 500..1000), bits in 6u32..12) {
        let limits = Limits { threads: 9, cells: 40, stride_bytes: 256, depth: 30, routines: 12, costs: 2 };
        agree(&shape(&ops, limits), bits, 64)?;
    }

    /// More threads than a page's set of sharers can tell apart.
    #[test]
    fn with_many_threads(ops in prop::collection::vec(op(), 300..800), seats in prop::collection::vec(0u8..90, 1500)) {
        let ops: Vec<Op> = ops.iter().zip(seats).map(|(op, thread)| Op { thread, ..*op }).collect();
        let limits = Limits { threads: 90, cells: 4, stride_bytes: 4, depth: 4, routines: 3, costs: 2 };
        agree(&shape(&ops, limits), 3, 16)?;
    }

    /// Accesses that straddle cells, for all cell sizes.
    #[test]
    fn with_cells_of_any_size(
        accesses in prop::collection::vec((any::<bool>(), 0u64..64, 0u64..20, 0u8..4), 0..200),
        cell_bytes in prop::sample::select(vec![1u32, 2, 4, 8, 16]),
    ) {
        let mut steps = vec![];
        for thread in 0..2 {
            steps.push(Step { thread, event: Event::ThreadStart { routine: 0 } });
        }
        for (write, address, size, other) in accesses {
            let thread = u32::from(other & 1);
            if other & 2 != 0 {
                steps.push(Step { thread, event: Event::Call { routine: 1, sp: 1000 - address, folded: false } });
            }
            let event = if write { Event::Write { address, size } } else { Event::Read { address, size } };
            steps.push(Step { thread, event });
        }
        for thread in 0..2 {
            steps.push(Step { thread, event: Event::ThreadEnd });
        }
        let cell_size = CellSize::from_bytes(cell_bytes).unwrap();
        prop_assert_eq!(disagreement(&steps, cell_size, 12, 8), None);
    }

    /// The binary form loses nothing.
    #[test]
    fn binary_round_trip(ops in prop::collection::vec(op(), 0..400)) {
        let steps = shape(&ops, small(4096));
        let mut writer = Writer::default();
        steps.iter().for_each(|&step| writer.push(step));
        let bytes = writer.take();
        let read: Result<Vec<Step>, _> = Reader::new(&bytes).unwrap().collect();
        prop_assert_eq!(read.unwrap(), steps);
    }
}
