//! Stretches of code that recur at thousands of places, made once and then copied.
//!
//! What a read does on its straight path depends on the scratch registers, on whether it is of one cell or of two, and
//! on how far these lie behind the one whose index is in S: a displacement of two or three instructions. Encoding its
//! some twenty instructions anew took a twentieth of the time of translation. So the first stretch of a kind is encoded
//! and kept; at all further places its bytes are copied, and the displacements filled in. It can lie anywhere: its
//! jumps stay inside, or lead to where they are told later.

use super::Straight;
use super::reads::likely;
use alloc::vec;
use alloc::vec::Vec;
use engine::emit::{Asm, PATTERN_BYTES, Pattern, Reg};

/// Displacements of one, at most.
const HOLES_MAX: usize = 3;
/// How many are kept.
const KEPT: usize = 256;

/// One stretch, for cells at the index in S.
#[derive(Clone)]
struct Stretch {
    kind: u64,
    code: Pattern,
    bytes: usize,
    /// Displacements that the cells' distance is added to: where they are, and what they are without it.
    holes: [(u8, i32); HOLES_MAX],
    hole_count: usize,
    /// If the stretch begins at 0.
    straight: Straight,
}

/// Those that were made.
pub(super) struct Stretches {
    /// By a hash of their kind.
    kept: Vec<Option<Stretch>>,
}

impl Stretches {
    pub(super) fn new() -> Stretches {
        Stretches { kept: vec![None; KEPT] }
    }

    /// Appends a stretch for `cells` cells, `offset` bytes behind the one whose index is in S.
    pub(super) fn append(&mut self, a: &mut Asm, scratch: [Reg; 3], cells: u8, offset: i32) -> Straight {
        let [s, x, r] = scratch;
        let kind = u64::from_le_bytes([s, x, r, cells, 0, 0, 0, 0]);
        let place = kind.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - KEPT.ilog2());
        let kept = &mut self.kept[place as usize % KEPT];
        let stretch = match kept {
            Some(stretch) if stretch.kind == kind => stretch,
            other => other.insert(Stretch::new(kind, scratch, cells)),
        };
        let start = a.here();
        let holes = &stretch.holes[..stretch.hole_count];
        a.copy(&stretch.code, stretch.bytes, holes.iter().map(|&(at, disp)| (at.into(), disp + offset)));
        stretch.straight.moved(start)
    }
}

impl Stretch {
    #[cold]
    fn new(kind: u64, scratch: [Reg; 3], cells: u8) -> Stretch {
        // In the code for a distance with these bytes all bytes of the displacements are other ones.
        const OTHER: i32 = 0x0101_0101;
        let mut code = [0; PATTERN_BYTES];
        let (bytes, straight) = encode(&mut code, scratch, cells, 0);
        let mut other = [0; PATTERN_BYTES];
        encode(&mut other, scratch, cells, OTHER);
        let (mut holes, mut hole_count, mut at) = ([(0, 0); HOLES_MAX], 0, 0);
        while at < bytes {
            if code[at] == other[at] {
                at += 1;
                continue;
            }
            let disp = |code: &Pattern| i32::from_le_bytes([0, 1, 2, 3].map(|i| code[at + i]));
            debug_assert_eq!(disp(&other).wrapping_sub(disp(&code)), OTHER);
            holes[hole_count] = (at as u8, disp(&code));
            hole_count += 1;
            at += 4;
        }
        Stretch { kind, code, bytes, holes, hole_count, straight }
    }
}

/// Encodes a stretch into a buffer. Returns its length, and its places as if it began at 0.
fn encode(to: &mut Pattern, scratch: [Reg; 3], cells: u8, offset: i32) -> (usize, Straight) {
    let start = to.as_mut_ptr() as u64;
    // SAFETY: the buffer is borrowed as long as the stream exists.
    let mut a = unsafe { Asm::new(start, start + PATTERN_BYTES as u64) };
    let straight = likely(&mut a, scratch, cells, offset);
    ((a.here() - start) as usize, straight.moved(start.wrapping_neg()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of one access at an odd place, and where it is left, by how it is made.
    fn code(make: impl FnOnce(&mut Asm) -> Straight) -> (Vec<u8>, Straight) {
        let mut buffer = vec![0u8; 256];
        let start = buffer.as_mut_ptr() as u64 + 3;
        // SAFETY: the buffer is ours and outlives the stream.
        let mut a = unsafe { Asm::new(start, start + 253) };
        let straight = make(&mut a).moved(start.wrapping_neg());
        let bytes = (a.here() - start) as usize;
        (buffer[3..3 + bytes].to_vec(), straight)
    }

    #[test]
    fn copies_are_what_would_be_encoded() {
        let mut stretches = Stretches::new();
        let registers = || (0..16u8).filter(|r| *r != 4);
        for s in registers() {
            for x in registers().filter(|x| *x != s) {
                for r in registers().filter(|r| *r != s && *r != x) {
                    for (cells, offset) in [(1, 0), (2, 0), (1, -512), (2, 508), (2, 8)] {
                        let got = code(|a| stretches.append(a, [s, x, r], cells, offset));
                        assert_eq!(got, code(|a| likely(a, [s, x, r], cells, offset)));
                    }
                }
            }
        }
    }
}
