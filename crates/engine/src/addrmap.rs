//! From a cache address back to the program's: what faults and signals need.
//!
//! Per block, one word for each cache address at which the program's state is known: the offset from the
//! block's entry, the length of the program's instruction there, and how far the state differs from the plain
//! one ([`Point`]). Words are kept in one pool; a block stores where its run starts.

use crate::prefault::Prefault;
use alloc::vec::Vec;

/// How the registers stand at a mapped address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Point {
    /// All registers are the program's; the instruction is about to be executed, nothing was added for it yet.
    Before = 0,
    /// All registers are the program's; what was added for the instruction has been executed.
    Copy = 1,
    /// r11 is in `spill_t`.
    Spilled = 2,
    /// r11 is being used for a far operand and is in `spill_x`; the register's number is in the length byte's
    /// upper half.
    Borrowed = 3,
    /// After a system call: the program is at the next instruction.
    After = 4,
    /// Inside the sequence before a system call: rcx and r11 are the kernel's to clobber.
    SyscallWindow = 5,
    /// Not a point: the next word holds the distance to the target of an inlined jump. It has no length if the jump's
    /// own points came before.
    Jump = 6,
}

const CONCLUDES: u32 = 1 << 27;
/// The block's borrowed registers are in their slots.
const BORROWED: u32 = 1 << 28;
/// The instruction's events have been noted: not a place for an asynchronous signal.
const NOTED: u32 = 1 << 29;

const POINTS: [Point; 7] = [
    Point::Before,
    Point::Copy,
    Point::Spilled,
    Point::Borrowed,
    Point::After,
    Point::SyscallWindow,
    Point::Jump,
];

/// A cache address that is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapped {
    /// The program's pc.
    pub pc: u64,
    /// Index of the instruction in its superblock.
    pub index: usize,
    /// State of the registers.
    pub point: Point,
    /// For [`Point::Borrowed`], the register.
    pub reg: u8,
    /// The block's borrowed registers are in their slots.
    pub borrowed: bool,
    /// The instruction's events have been noted.
    pub noted: bool,
}

impl Mapped {
    /// At the entry of a block of code at `pc`: nothing of it has been executed, and nothing counted.
    pub fn entry(pc: u64) -> Mapped {
        Mapped { pc, index: 0, point: Point::Before, reg: 0, borrowed: false, noted: false }
    }
}

/// Words that fit before the pool has to move: address space only, see `block.rs`.
const WORDS_RESERVED: usize = if cfg!(test) { 0 } else { 1 << 25 };

/// All maps.
pub struct AddressMaps {
    pool: Vec<u32>,
    marks: u32,
    prefault: Prefault,
}

impl Default for AddressMaps {
    fn default() -> Self {
        AddressMaps { pool: Vec::with_capacity(WORDS_RESERVED), marks: 0, prefault: Prefault::default() }
    }
}

impl AddressMaps {
    /// Before more is added: see `prefault.rs`.
    pub fn keep_ahead(&mut self) {
        self.prefault.keep_ahead(&self.pool);
    }

    /// Where the next block's run will start.
    pub fn next(&self) -> u32 {
        self.pool.len() as u32
    }

    /// Adds a point for an instruction of `len` bytes at `offset` from the block's entry; more follow for it.
    pub fn add(&mut self, offset: u64, len: usize, point: Point, reg: u8) {
        debug_assert!(offset < 1 << 16);
        let place = offset as u32 & 0xffff | (len as u32 & 15) << 16;
        self.pool.push(place | u32::from(reg & 15) << 20 | (point as u32) << 24 | self.marks);
    }

    /// The one point of an instruction that was copied with nothing added for it since the last one.
    #[inline]
    pub fn copied(&mut self, offset: u64, len: usize) {
        debug_assert!(offset < 1 << 16);
        let place = offset as u32 & 0xffff | (len as u32 & 15) << 16;
        self.pool.push(place | (Point::Copy as u32) << 24 | self.marks | CONCLUDES);
    }

    /// From now on, points are where the block's borrowed registers are in their slots (or no more).
    pub fn set_borrowed(&mut self, on: bool) {
        self.marks = if on { BORROWED } else { 0 };
    }

    /// From now on, points are behind the noting of their instruction's events, until the block's end.
    pub fn set_noted(&mut self) {
        self.marks |= NOTED;
    }

    /// The last point added is behind the noting of its instruction's events.
    pub fn noted(&mut self) {
        if let Some(w) = self.pool.last_mut() {
            *w |= NOTED;
        }
    }

    /// The last point added concludes its instruction: later words belong to the next.
    pub fn conclude(&mut self) {
        if let Some(w) = self.pool.last_mut() {
            *w |= CONCLUDES;
        }
    }

    /// Takes [`AddressMaps::conclude`] back.
    pub fn reopen(&mut self) {
        if let Some(w) = self.pool.last_mut() {
            *w &= !CONCLUDES;
        }
    }

    /// The next instruction is at `delta` from the end of this one.
    pub fn jump(&mut self, len: usize, delta: i64) {
        self.add(0, len, Point::Jump, 0);
        self.pool.push(delta as i32 as u32);
    }

    /// The next instruction is at `delta` from the end of the one that was concluded.
    pub fn go_on(&mut self, delta: i64) {
        self.jump(0, delta);
    }

    /// Ends a block's run.
    pub fn finish(&mut self) {
        self.marks = 0;
        self.pool.push(u32::MAX);
    }

    /// The program's instructions of a block: (address, length).
    pub fn instructions(&self, run: u32, pc: u64) -> impl Iterator<Item = (u64, usize)> {
        let mut words = self.pool[run as usize..].iter();
        let mut pc = pc;
        core::iter::from_fn(move || {
            loop {
                let w = *words.next()?;
                if w == u32::MAX {
                    return None;
                }
                let len = w >> 16 & 15;
                let at = pc;
                if POINTS[(w >> 24 & 7) as usize] == Point::Jump {
                    pc = pc.wrapping_add(len.into()).wrapping_add(*words.next()? as i32 as u64);
                    if len == 0 {
                        continue;
                    }
                    return Some((at, len as usize));
                }
                if w & CONCLUDES != 0 || *words.as_slice().first()? == u32::MAX {
                    pc = pc.wrapping_add(len.into());
                    return Some((at, len as usize));
                }
            }
        })
    }

    /// Has the run that starts at `run` no points?
    pub fn is_empty(&self, run: u32) -> bool {
        self.pool.get(run as usize).is_none_or(|w| *w == u32::MAX)
    }

    /// Walks the run that starts at `run`, for a block at `pc`.
    pub fn walk(&self, run: u32, pc: u64) -> Walk<'_> {
        Walk { words: &self.pool[run as usize..], pc, index: 0 }
    }
}

/// Iterates over the mapped addresses of a block: (offset, what is there), ascending.
pub struct Walk<'a> {
    words: &'a [u32],
    pc: u64,
    index: usize,
}

impl Iterator for Walk<'_> {
    type Item = (u64, Mapped);
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&w, rest) = self.words.split_first()?;
            if w == u32::MAX {
                return None;
            }
            self.words = rest;
            let len = u64::from(w >> 16 & 15);
            let point = POINTS[(w >> 24 & 7) as usize];
            if point == Point::Jump {
                let (&delta, rest) = self.words.split_first()?;
                self.words = rest;
                self.pc = self.pc.wrapping_add(len).wrapping_add(delta as i32 as u64);
                self.index += usize::from(len != 0);
                continue;
            }
            let pc = if point == Point::After { self.pc.wrapping_add(len) } else { self.pc };
            let mapped = Mapped {
                pc,
                index: self.index,
                point,
                reg: (w >> 20 & 15) as u8,
                borrowed: w & BORROWED != 0,
                noted: w & NOTED != 0,
            };
            if w & CONCLUDES != 0 {
                self.pc = self.pc.wrapping_add(len);
                self.index += 1;
            }
            return Some((u64::from(w & 0xffff), mapped));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_follows_lengths_and_jumps() {
        let mut m = AddressMaps::default();
        m.add(9, 1, Point::Copy, 0); // of another block
        m.conclude();
        m.finish();
        let run = m.next();
        m.add(0, 3, Point::Copy, 0);
        m.conclude();
        m.jump(2, 0x100);
        m.add(3, 4, Point::Before, 0);
        m.add(12, 4, Point::Copy, 0);
        m.conclude();
        m.finish();
        let got: Vec<_> = m.walk(run, 0x1000).map(|(o, m)| (o, m.pc, m.index, m.point)).collect();
        assert_eq!(
            got,
            [(0, 0x1000, 0, Point::Copy), (3, 0x1105, 2, Point::Before), (12, 0x1105, 2, Point::Copy)]
        );
    }

    #[test]
    fn a_walk_goes_through_a_loop_again() {
        let mut m = AddressMaps::default();
        let run = m.next();
        for iteration in 0..2 {
            m.add(iteration * 8, 3, Point::Copy, 0);
            m.conclude();
            m.add(iteration * 8 + 3, 2, Point::Copy, 0);
            m.conclude();
            m.go_on(-5);
        }
        m.finish();
        let got: Vec<_> = m.walk(run, 0x1000).map(|(o, m)| (o, m.pc, m.index)).collect();
        assert_eq!(got, [(0, 0x1000, 0), (3, 0x1003, 1), (8, 0x1000, 2), (11, 0x1003, 3)]);
        let got: Vec<_> = m.instructions(run, 0x1000).collect();
        assert_eq!(got, [(0x1000, 3), (0x1003, 2), (0x1000, 3), (0x1003, 2)]);
    }
}
