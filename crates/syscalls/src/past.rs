//! Memory that loses its past: what was mapped anew, unmapped or emptied by a system call.

use crate::Call;

const MMAP: u64 = 9;
const MUNMAP: u64 = 11;
const BRK: u64 = 12;
const MREMAP: u64 = 25;
const MADVISE: u64 = 28;

/// How memory lost its past.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It is gone, or something else lies there now.
    Unmapped,
    /// The mapping stays, its contents went.
    Emptied,
}

/// Calls `each` with (address, length, how) for memory that lost its past in a call. `swap_break` notes the end of the
/// heap and tells the one before.
pub fn for_each_loss(
    call: &Call,
    swap_break: impl FnOnce(u64) -> u64,
    each: &mut impl FnMut(u64, u64, Loss),
) {
    if call.failed() {
        return;
    }
    let (args, result) = (&call.args, call.result as u64);
    let page = |len: u64| len.next_multiple_of(4096);
    match call.number {
        MMAP => {
            const FIXED: u64 = 0x10;
            if args[3] & FIXED != 0 {
                each(result, page(args[1]), Loss::Unmapped);
            }
        }
        MUNMAP => each(args[0], page(args[1]), Loss::Unmapped),
        MREMAP => {
            let (old, old_len, new_len) = (args[0], page(args[1]), page(args[2]));
            if result != old {
                each(old, old_len, Loss::Unmapped);
                each(result, new_len, Loss::Unmapped);
            } else if new_len < old_len {
                each(old + new_len, old_len - new_len, Loss::Unmapped);
            }
        }
        BRK => {
            let old = swap_break(result);
            if result < old {
                each(result, old - result, Loss::Unmapped);
            }
        }
        MADVISE => {
            const DONTNEED: u64 = 4;
            const REMOVE: u64 = 9;
            if matches!(args[2], DONTNEED | REMOVE) {
                each(args[0], page(args[1]), Loss::Emptied);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::{Loss, for_each_loss};
    use crate::Call;

    fn losses(number: u64, args: [u64; 6], result: i64, old_break: u64) -> [Option<(u64, u64, Loss)>; 2] {
        let (mut found, mut n) = ([None; 2], 0);
        let call = Call { number, args, result };
        for_each_loss(&call, |_| old_break, &mut |at, len, loss| {
            found[n] = Some((at, len, loss));
            n += 1;
        });
        found
    }

    #[test]
    fn what_goes_away_or_comes_anew_loses_its_past() {
        let gone = |at, len| Some((at, len, Loss::Unmapped));
        assert_eq!(losses(11, [0x1000, 10, 0, 0, 0, 0], 0, 0), [gone(0x1000, 0x1000), None]);
        assert_eq!(losses(11, [0x1000, 10, 0, 0, 0, 0], -22, 0), [None; 2]);
        assert_eq!(losses(9, [0, 10, 3, 0x22, 0, 0], 0x7000, 0), [None; 2], "fresh memory has none");
        assert_eq!(losses(9, [0x7000, 10, 3, 0x32, 0, 0], 0x7000, 0), [gone(0x7000, 0x1000), None]);
        let moved = losses(25, [0x1000, 0x1000, 0x2000, 1, 0, 0], 0x9000, 0);
        assert_eq!(moved, [gone(0x1000, 0x1000), gone(0x9000, 0x2000)]);
        let shrunk = losses(25, [0x1000, 0x3000, 0x1000, 0, 0, 0], 0x1000, 0);
        assert_eq!(shrunk, [gone(0x2000, 0x2000), None]);
        assert_eq!(losses(12, [0x5000, 0, 0, 0, 0, 0], 0x5000, 0x8000), [gone(0x5000, 0x3000), None]);
        assert_eq!(losses(12, [0x9000, 0, 0, 0, 0, 0], 0x9000, 0x8000), [None; 2]);
        let emptied = losses(28, [0x1000, 0x1000, 4, 0, 0, 0], 0, 0);
        assert_eq!(emptied, [Some((0x1000, 0x1000, Loss::Emptied)), None]);
    }
}
