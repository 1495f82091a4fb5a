//! Each thread's number of executed instructions, always up to date and readable by the program: the clock of
//! `farsight span --cost instructions`.
//!
//! Every path through a superblock adds its length to one word of the thread's slab. A runtime inside the program asks
//! where that word is, by a system call that does not exist ([`wire::running`]), and reads it when a strand starts or
//! ends. It reads in a function that is called, so that a superblock starts there, and what was executed before is
//! counted whole.
//!
//! # Rules
//! As in `lib.rs`. The answer is written where the program asks for it: only a runtime of ours knows how to ask.

use crate::Count;
use engine::client::{Client, StringCounters};
use engine::events::{Events, Thread};
use engine::superblock::{Insn, Superblock};
use wire::boot::Boot;
use wire::count::{EXITS_MAX, ThreadTotals};
use wire::running;
use wire::slab::TOTALS_OFFSET;

/// Counts instructions, by thread.
pub struct Running {
    count: Count,
}

/// Of the word, from the start of a slab.
const WORD: u64 = TOTALS_OFFSET + core::mem::offset_of!(ThreadTotals, running) as u64;

impl Running {
    /// A client that writes to the mapping named in the boot block.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its mapping has the layout of `wire::count`.
    pub unsafe fn new(boot: &Boot) -> Running {
        // SAFETY: passed on.
        Running { count: unsafe { Count::with_counters(boot, EXITS_MAX) } }
    }
}

impl Client for Running {
    const EVENTS: Events = Events { syscalls: true, ..Events::NONE };

    fn before_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6]) {
        if n == running::NUMBER && args[0] == running::MAGIC {
            // SAFETY: whoever knows the magic number asks with the address of a word of its own.
            unsafe { (args[1] as *mut u64).write_unaligned(t.slab() + WORD) };
        }
    }

    fn block(&mut self, _sb: &Superblock) {}

    fn path_counter(&mut self, _sb: &Superblock, _count: usize) -> Option<i32> {
        Some(WORD as i32)
    }

    fn path_amount(&mut self, _sb: &Superblock, count: usize) -> u32 {
        count as u32
    }

    fn string_counters(&mut self, _insn: &Insn) -> Option<StringCounters> {
        None
    }

    fn path_cut(&mut self, slab: u64, _sb: &Superblock, count: usize, counted: Option<usize>) {
        let word = (slab + WORD) as *mut u64;
        let more = (count as u64).wrapping_sub(counted.unwrap_or(0) as u64);
        // SAFETY: the word of this slab, whose thread is in the engine.
        unsafe { *word = (*word).wrapping_add(more) };
    }

    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool) {
        self.count.thread_start(slab, tid, counts);
    }

    fn thread_end(&mut self, slab: u64, tid: u32) {
        self.count.thread_end(slab, tid);
    }

    fn process_end(&mut self) {
        self.count.process_end();
    }
}
