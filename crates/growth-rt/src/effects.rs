//! What system calls do to memory: external input, the caller's reads, and memory that loses its past.

use crate::activation::Local;
use engine::appmem;
use syscalls::{Access, Call, Loss, Memory, for_each_loss, for_each_range};

/// The program's memory, which may not be there.
struct Program;

impl Memory for Program {
    fn peek(&self, addr: u64, into: &mut [u8]) -> bool {
        // Word by word where possible: calls are short, and every read survives a bad address.
        let mut at = addr;
        for piece in into.chunks_mut(8) {
            if let Ok(word) = <&mut [u8; 8]>::try_from(&mut *piece) {
                match appmem::read::<[u8; 8]>(at) {
                    Some(bytes) => *word = bytes,
                    None => return false,
                }
            } else {
                for (i, byte) in piece.iter_mut().enumerate() {
                    match appmem::read::<u8>(at + i as u64) {
                        Some(read) => *byte = read,
                        None => return false,
                    }
                }
            }
            at += 8;
        }
        true
    }
}

/// A system call has returned.
pub fn after(local: &mut Local, number: u64, args: &[u64; 6], result: i64) {
    let call = Call { number, args: *args, result };
    let process = local.process;
    for_each_loss(&call, |end| process.swap_break(end), &mut |at, len, loss| match loss {
        Loss::Unmapped => process.unmapped(at, len),
        Loss::Emptied => process.map.reset(at, len),
    });
    if local.is_folded() {
        return;
    }
    // What the kernel read was there before what it wrote.
    for access in [Access::Read, Access::Write] {
        for_each_range(&call, &Program, &mut |range| {
            if range.access == access {
                match access {
                    Access::Read => local.read(range.addr, range.len),
                    Access::Write => local.kernel_write(range.addr, range.len),
                }
            }
        });
    }
}
