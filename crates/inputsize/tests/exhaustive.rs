//! The algorithm agrees with the oracle on *all* short traces over a small alphabet.

mod support;

use inputsize::CellSize;
use inputsize::trace::shape::{Limits, Op, OpKind, shape};
use support::disagreement;

/// Every sequence of `length` operations of `alphabet`, with 2-bit stamps: hardly a call without renumbering.
fn all(alphabet: &[Op], length: u32, limits: Limits) {
    let count = (alphabet.len() as u64).pow(length);
    for mut number in 0..count {
        let ops: Vec<Op> = (0..length)
            .map(|_| {
                let op = alphabet[(number % alphabet.len() as u64) as usize];
                number /= alphabet.len() as u64;
                op
            })
            .collect();
        let steps = shape(&ops, limits);
        if let Some(difference) = disagreement(&steps, CellSize::FOUR, 2, 2) {
            panic!("{ops:?}\n{difference}");
        }
    }
}

fn alphabet(threads: u8, kinds: &[OpKind]) -> Vec<Op> {
    (0..threads).flat_map(|thread| kinds.iter().map(move |&kind| Op { thread, kind })).collect()
}

#[test]
fn one_thread_two_cells() {
    let kinds = [
        OpKind::Call(1, false),
        OpKind::Return,
        OpKind::Read(0, 1),
        OpKind::Read(1, 1),
        OpKind::Write(0, 1),
        OpKind::Tail(2, false),
    ];
    let limits = Limits { threads: 1, cells: 2, stride_bytes: 4, depth: 5, routines: 3, costs: 2 };
    all(&alphabet(1, &kinds), 6, limits);
}

#[test]
fn two_threads_one_cell() {
    let kinds = [
        OpKind::Call(1, false),
        OpKind::Return,
        OpKind::Read(0, 1),
        OpKind::Write(0, 1),
        OpKind::KernelWrite(0, 1),
    ];
    let limits = Limits { threads: 2, cells: 1, stride_bytes: 4, depth: 4, routines: 2, costs: 2 };
    all(&alphabet(2, &kinds), 5, limits);
}

#[test]
fn three_threads_with_slots_used_again() {
    let kinds = [OpKind::Read(0, 1), OpKind::Write(0, 1), OpKind::Respawn];
    let limits = Limits { threads: 3, cells: 1, stride_bytes: 4, depth: 3, routines: 2, costs: 2 };
    all(&alphabet(3, &kinds), 5, limits);
}

#[test]
fn resets_and_folds() {
    let kinds = [
        OpKind::Call(1, false),
        OpKind::Call(2, true),
        OpKind::Return,
        OpKind::Read(0, 1),
        OpKind::Write(0, 1),
        OpKind::Reset(0, 1),
    ];
    let limits = Limits { threads: 2, cells: 1, stride_bytes: 4, depth: 4, routines: 3, costs: 2 };
    all(&alphabet(2, &kinds)[..10], 5, limits);
}
