//! What system calls do to memory: external input, the caller's reads, and memory that loses its past.

use crate::activation::Local;
use engine::appmem;
use engine::sys::{failed, nr};
use syscalls::{Access, Call, Memory, for_each_range};

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
    memory_map(local, number, args, result);
    if local.is_folded() {
        return;
    }
    let call = Call { number, args: *args, result };
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

/// Memory that went away or came anew has no past.
fn memory_map(local: &mut Local, number: u64, args: &[u64; 6], result: i64) {
    if failed(result) {
        return;
    }
    let page = |len: u64| len.next_multiple_of(4096);
    let process = local.process;
    match number {
        nr::MMAP => {
            const FIXED: u64 = 0x10;
            if args[3] & FIXED != 0 {
                process.unmapped(result as u64, page(args[1]));
            }
        }
        nr::MUNMAP => process.unmapped(args[0], page(args[1])),
        nr::MREMAP => {
            let (old, old_len, new, new_len) = (args[0], page(args[1]), result as u64, page(args[2]));
            if new != old {
                process.unmapped(old, old_len);
                process.unmapped(new, new_len);
            } else if new_len < old_len {
                process.unmapped(old + new_len, old_len - new_len);
            }
        }
        nr::BRK => {
            let old = process.swap_break(result as u64);
            if (result as u64) < old {
                process.unmapped(result as u64, old - result as u64);
            }
        }
        nr::MADVISE => {
            const DONTNEED: u64 = 4;
            const REMOVE: u64 = 9;
            if matches!(args[2], DONTNEED | REMOVE) {
                process.map.reset(args[0], page(args[1]));
            }
        }
        _ => {}
    }
}
