//! Memory under observation, and the comparison.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use syscalls::{Access, Call, Memory, for_each_range};

pub const BYTES: usize = 16 * 1024;

/// A block of memory whose bytes are all the canary until somebody writes.
pub struct Arena {
    bytes: Box<[u8; BYTES]>,
    used: usize,
}

impl Arena {
    fn new(canary: u8) -> Arena {
        Arena { bytes: vec![canary; BYTES].try_into().unwrap(), used: 64 }
    }

    /// Room for `len` bytes of output; its address.
    pub fn room(&mut self, len: usize) -> u64 {
        let at = self.used.next_multiple_of(16);
        self.used = at + len + 32; // a gap, so that a write too far is seen
        assert!(self.used <= BYTES);
        self.bytes.as_ptr() as u64 + at as u64
    }

    /// Input bytes; their address.
    pub fn put(&mut self, data: &[u8]) -> u64 {
        let addr = self.room(data.len());
        let at = (addr - self.bytes.as_ptr() as u64) as usize;
        self.bytes[at..at + data.len()].copy_from_slice(data);
        addr
    }

    /// A NUL-terminated string.
    pub fn text(&mut self, text: &str) -> u64 {
        self.put(&[text.as_bytes(), &[0]].concat())
    }

    /// 64-bit words.
    pub fn words(&mut self, words: &[u64]) -> u64 {
        self.put(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
    }

    /// 32-bit words.
    pub fn ints(&mut self, words: &[u32]) -> u64 {
        self.put(&words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>())
    }
}

/// Reads this process's memory without ever faulting.
struct Own(File);

impl Memory for Own {
    fn peek(&self, addr: u64, into: &mut [u8]) -> bool {
        self.0.read_exact_at(into, addr).is_ok()
    }
}

/// How exactly the table must agree.
#[derive(Clone, Copy, PartialEq)]
pub enum Agree {
    Exactly,
    Covers,
}

/// Makes `number` twice with what `setup` prepares, and compares. Returns the second result.
pub fn check(number: i64, agree: Agree, setup: impl Fn(&mut Arena) -> [u64; 6]) -> i64 {
    let name = syscalls::name(number as u64).unwrap();
    let memory = Own(File::open("/proc/self/mem").unwrap());
    let mut changed = BTreeSet::new();
    let mut written = [BTreeSet::new(), BTreeSet::new()];
    let mut result = 0;
    for (turn, canary) in [0xa5u8, 0x5a].into_iter().enumerate() {
        let mut arena = Arena::new(canary);
        let args = setup(&mut arena);
        let before = arena.bytes.clone();
        let base = arena.bytes.as_ptr() as u64;
        // SAFETY:
        // - every pointer among the arguments was made by `setup` from the arena, which lives until after the call and is
        //   only looked at afterwards, or is null, or is deliberately bad (the kernel then answers EFAULT);
        // - the calls in this file neither unmap nor protect memory that the test uses.
        let raw = unsafe { libc::syscall(number, args[0], args[1], args[2], args[3], args[4], args[5]) };
        result =
            if raw == -1 { -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap()) } else { raw };
        let after = std::hint::black_box(&arena.bytes);
        changed.extend((0..BYTES).filter(|&i| before[i] != after[i]));
        let call = Call { number: number as u64, args, result };
        for_each_range(&call, &memory, &mut |range| {
            let inside = range.addr.wrapping_sub(base);
            if range.access == Access::Write {
                assert!(inside < BYTES as u64, "{name} claims a write outside of the arena: {range:x?}");
                written[turn].extend(inside as usize..(inside + range.len) as usize);
            }
        });
    }
    let claimed: BTreeSet<usize> = &written[0] | &written[1];
    let missed: Vec<_> = changed.difference(&claimed).collect();
    assert!(missed.is_empty(), "{name} = {result}: written but not in the table: offsets {missed:?}");
    if agree == Agree::Exactly {
        let extra: Vec<_> = claimed.difference(&changed).collect();
        assert!(extra.is_empty(), "{name} = {result}: in the table but not written: offsets {extra:?}");
    }
    result
}

/// The ranges that the table says were read, for calls whose inputs matter.
pub fn reads(call: &Call) -> Vec<(u64, u64)> {
    let memory = Own(File::open("/proc/self/mem").unwrap());
    let mut all = Vec::new();
    for_each_range(call, &memory, &mut |r| {
        if r.access == Access::Read {
            all.push((r.addr, r.len));
        }
    });
    all.sort_unstable();
    all
}
