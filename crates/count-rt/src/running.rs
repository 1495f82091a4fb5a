//! Each thread's number of executed instructions, always up to date and readable by the program: the clock of
//! `farsight span --cost instructions`.
//!
//! Every path through a superblock adds its length to one word of the thread's slab. A runtime inside the program asks
//! where that word is, by a system call that does not exist ([`wire::running`]), and reads it when a strand starts or
//! ends. It reads in a function that is called, so that a superblock starts there, and what was executed before is
//! counted whole.
//!
//! A runtime may also name functions whose calls it wants to hear of (`calls.rs`); code that calls others pays nothing. And it
//! may name its own code (`own.rs`), whose instructions are nobody's.
//!
//! # Rules
//! As in `lib.rs`. The answer is written where the program asks for it: only a runtime of ours knows how to ask.

use crate::{Count, calls, own};
use engine::client::{Client, StringCounters};
use engine::events::{Emit, Events, Thread};
use engine::superblock::{Insn, Superblock};
use wire::boot::Boot;
use wire::count::{EXITS_MAX, ThreadTotals};
use wire::running;
use wire::slab::TOTALS_OFFSET;

/// Counts instructions, by thread.
pub struct Running {
    count: Count,
    /// The last instruction of the current superblock.
    last: u64,
}

/// Events, as they are told to `called`; a function's number is above them.
mod token {
    /// A call; its return address is on the stack.
    pub const CALLED: u32 = 0;
    pub const RETURN: u32 = 1;
    pub const BITS: u32 = 1;
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
        Running { count: unsafe { Count::with_counters(boot, EXITS_MAX) }, last: 0 }
    }
}

impl Client for Running {
    const EVENTS: Events = Events { syscalls: true, calls: true, scratch: 1, ..Events::NONE };

    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        let Some((function, true)) = calls::function_at(callee) else { return };
        emit(e, token::CALLED | function << token::BITS);
    }

    fn ret(&mut self, e: &mut Emit<'_>) {
        if calls::function_at(self.last).is_some() {
            emit(e, token::RETURN);
        }
    }

    fn tail(&mut self, _e: &mut Emit<'_>, _target: u64) {}

    fn called(t: &mut Thread<'_>, token: u32, _value: u64) {
        let log = t.area().cast::<*mut wire::running::CallLog>();
        let now = (t.slab() + WORD) as *const u64;
        // SAFETY: the client area is ours, and holds what this thread's runtime has given, or null; the word is the slab's.
        let (log, now) = unsafe { (*log, *now) };
        if log.is_null() {
            return;
        }
        let (kind, function, sp) = (token & ((1 << token::BITS) - 1), token >> token::BITS, t.sp());
        // SAFETY: the log is this thread's. At a routine's first instruction its return address is at the stack pointer.
        unsafe {
            match kind {
                token::CALLED => calls::starts(log, function, *(sp as *const u64), sp, now),
                _ => calls::returns(log, sp, now),
            }
        }
    }

    fn before_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6]) {
        if n == running::NUMBER && args[0] == running::MAGIC {
            // SAFETY: whoever knows the magic number asks with the address of a word of its own.
            unsafe { (args[1] as *mut u64).write_unaligned(t.slab() + WORD) };
            if args[2] != 0 {
                // SAFETY: the client area is ours.
                unsafe { *t.area().cast::<u64>() = args[2] };
            }
        }
        if n == running::NUMBER && args[0] == running::TABLE {
            calls::take_table(args[1], args[2]);
        }
        if n == running::NUMBER && args[0] == running::OWN {
            own::take_ranges(args[1], args[2]);
        }
    }

    fn block(&mut self, sb: &Superblock) {
        self.last = sb.insns.last().map_or(0, Insn::pc);
    }

    fn path_counter(&mut self, sb: &Superblock, count: usize) -> Option<i32> {
        (own::others(sb, count) > 0).then_some(WORD as i32)
    }

    fn path_amount(&mut self, sb: &Superblock, count: usize) -> u32 {
        own::others(sb, count) as u32
    }

    fn string_counters(&mut self, _insn: &Insn) -> Option<StringCounters> {
        None
    }

    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>) {
        let word = (slab + WORD) as *mut u64;
        let more = own::others(sb, count).wrapping_sub(own::others(sb, counted.unwrap_or(0)));
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

fn emit(e: &mut Emit<'_>, token: u32) {
    let r = e.scratch[0];
    e.call_out(token, r);
}
