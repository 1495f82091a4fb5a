//! A client that logs every event, in the most obvious way: each by a clean call.
//!
//! Used by tests as an oracle: for the engine (against single-stepping) and for cleverer clients (its log, replayed
//! through a definition). `wire::log` says what is written.
//!
//! # Rules
//! Runs inside the program: see the engine's rules. Writes only to the shared mapping.
#![no_std]

mod shared;

use core::sync::atomic::{AtomicU64, Ordering};
use engine::access::{Access, Class, Kind};
use engine::appmem;
use engine::client::{Client, StringCounters};
use engine::events::{Emit, Events, Piece, SignalEntry, Thread};
use engine::modrm::{Mem, Size};
use engine::state::CLIENT_AREA_OFFSET;
use engine::superblock::{Insn, Superblock};
use shared::Shared;
use wire::boot::Boot;
use wire::log::{class, what};

/// Logs.
pub struct Log {
    shared: Shared,
}

impl Log {
    /// A client that writes to the mapping named in the boot block.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its mapping has the layout of `wire::log`.
    pub unsafe fn new(boot: &Boot) -> Log {
        // SAFETY: passed on.
        Log { shared: unsafe { Shared::new(boot) } }
    }

    /// Emits a call with what is known beforehand; `value` is in `scratch[0]`.
    fn emit(e: &mut Emit<'_>, pc: u64, token: u32) {
        let [value, other, _] = e.scratch;
        e.hot.mov_imm64(other, pc);
        e.hot.store(Size::Q, &Mem::gs(CLIENT_AREA_OFFSET as i32 + PC), other);
        e.call_out(token, value);
    }
}

/// Where in the thread's area the emitted code leaves the pc of the event.
const PC: i32 = 0;

/// The end of the heap, 0 while it is not known.
static BREAK: AtomicU64 = AtomicU64::new(0);

/// `what` and `class` of an event, and its length.
fn token(what: u8, class: u8, bytes: u32) -> u32 {
    u32::from(what) | u32::from(class) << 4 | bytes << 8
}

fn what_of(kind: Kind) -> u8 {
    match kind {
        Kind::Read => what::READ,
        Kind::Write => what::WRITE,
        Kind::ReadWrite => what::READ_WRITE,
    }
}

impl Client for Log {
    const EVENTS: Events =
        Events { data: true, stack: true, control: true, calls: true, syscalls: true, scratch: 2 };

    fn access(&mut self, e: &mut Emit<'_>, sb: &Superblock, a: &Access) {
        let class = match a.class {
            Class::Data => class::DATA,
            Class::Stack => class::STACK,
            Class::Control => class::CONTROL,
        };
        let value = e.scratch[0];
        e.lea(value, &a.operand);
        let pc = sb.insns[a.index].pc();
        Self::emit(e, pc, token(what_of(a.kind), class, a.bytes));
    }

    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        // The callee comes in place of the pc; the value is where the return address is.
        let value = e.scratch[0];
        e.hot.lea(value, &Mem::base(4, 0));
        Self::emit(e, callee, token(what::CALL, 0, 0));
    }

    fn ret(&mut self, e: &mut Emit<'_>) {
        let value = e.scratch[0];
        e.hot.lea(value, &Mem::base(4, 0));
        Self::emit(e, 0, token(what::RETURN, 0, 0));
    }

    fn tail(&mut self, e: &mut Emit<'_>, target: u64) {
        let value = e.scratch[0];
        e.hot.lea(value, &Mem::base(4, 0));
        Self::emit(e, target, token(what::TAIL, 0, 0));
    }

    fn called(t: &mut Thread<'_>, token: u32, value: u64) {
        let what = token as u8 & 15;
        let class = (token >> 4) as u8 & 15;
        // SAFETY: the area is this thread's and longer than that.
        let pc = unsafe { t.area().add(PC as usize).cast::<u64>().read() };
        let log = Shared::own();
        match what {
            what::CALL | what::TAIL => log.add(t.tid(), what, class, 0, pc, value),
            what::RETURN => log.add(t.tid(), what, class, 0, appmem::read(value).unwrap_or(0), value),
            _ => log.add(t.tid(), what, class, pc, value, (token >> 8).into()),
        }
    }

    fn range(t: &mut Thread<'_>, p: &Piece) {
        Shared::own().add(t.tid(), what_of(p.kind), class::COMPLEX, p.pc, p.addr, p.bytes);
    }

    fn before_syscall(t: &mut Thread<'_>, n: u64, _args: &[u64; 6]) {
        Shared::own().add(t.tid(), what::SYSCALL, 0, 0, n, 0);
    }

    fn after_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6], result: i64) {
        let log = Shared::own();
        log.add(t.tid(), what::SYSCALL_DONE, 0, 0, result as u64, n);
        let call = syscalls::Call { number: n, args: *args, result };
        let swap_break = |end| BREAK.swap(end, Ordering::Relaxed);
        syscalls::for_each_loss(&call, swap_break, &mut |at, len, _| {
            log.add(t.tid(), what::FORGOTTEN, 0, 0, at, len);
        });
        syscalls::for_each_range(&call, &Program, &mut |r| {
            let what = match r.access {
                syscalls::Access::Read => what::KERNEL_READ,
                syscalls::Access::Write => what::KERNEL_WRITE,
            };
            log.add(t.tid(), what, 0, 0, r.addr, r.len);
        });
    }

    fn signal_enter(t: &mut Thread<'_>, s: &SignalEntry) {
        Shared::own().add(t.tid(), what::SIGNAL, 0, s.interrupted, s.handler, s.signal.into());
    }

    fn signal_return(t: &mut Thread<'_>, pc: u64, _sp: u64) {
        Shared::own().add(t.tid(), what::SIGNAL_DONE, 0, 0, pc, 0);
    }

    fn block(&mut self, _sb: &Superblock) {}

    fn path_counter(&mut self, _sb: &Superblock, _count: usize) -> Option<i32> {
        None
    }

    fn string_counters(&mut self, _insn: &Insn) -> Option<StringCounters> {
        None
    }

    fn path_cut(&mut self, _slab: u64, _sb: &Superblock, _count: usize, _counted: Option<usize>) {}

    fn thread_start(&mut self, _slab: u64, tid: u32, counts: bool) {
        if counts {
            self.shared.add(tid, what::THREAD, 0, 0, 0, 0);
        }
    }

    fn thread_end(&mut self, _slab: u64, tid: u32) {
        if tid != 0 {
            self.shared.add(tid, what::THREAD_DONE, 0, 0, 0, 0);
        }
    }

    fn process_end(&mut self) {}
}

/// The program's memory, for the system call table.
struct Program;

impl syscalls::Memory for Program {
    fn peek(&self, addr: u64, into: &mut [u8]) -> bool {
        appmem::read_bytes(addr, into)
    }
}
