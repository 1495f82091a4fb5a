//! What a client of the engine may see and add.
//!
//! A client is compiled into the same image as the engine (calls to it are static). It runs inside the program: no
//! panics by design, no blocking, no memory but the engine's.
//!
//! Methods with `self` run under the engine lock, while code is made or a thread comes or goes. The associated
//! functions without `self` ([`Client::called`], `range`, `before_syscall`, ...) run in the thread that they are
//! about, in parallel with others and without any lock: what they share they must synchronise themselves.
//!
//! Events and what a client may emit for them: `events.rs`. A client that wants none of them (`EVENTS` left as it is)
//! pays for none.

use crate::access::Access;
use crate::events::{Emit, Events, Masked, Piece, SignalEntry, Thread};
use crate::superblock::{Insn, Superblock};
use wire::boot::Boot;

/// Where the threads' slabs lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlabLayout {
    /// The first one.
    pub base: u64,
    /// Their number.
    pub count: u64,
    /// From one to the next, at least `wire::slab::PRIVATE_BYTES`.
    pub stride: u64,
}

/// Displacements from gs of two counters, for the iterations of a string instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringCounters {
    /// Loads, if each iteration does one.
    pub loads: Option<i32>,
    /// Stores, if each iteration does one.
    pub stores: Option<i32>,
    /// Loads of one iteration: 2 for `cmps`.
    pub loads_each: u16,
}

impl StringCounters {
    /// The counters that grow with each iteration, one mention for each access.
    pub fn each(&self) -> impl Iterator<Item = i32> + use<> {
        let loads = core::iter::repeat_n(self.loads, self.loads_each.into());
        loads.chain(core::iter::once(self.stores)).flatten()
    }
}

/// The child of a fork that is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forked {
    /// Memory to share with the launcher from now on, as large as what was shared before and empty.
    pub fd: u64,
    /// The slab of the only thread.
    pub slab: u64,
    /// Its kernel thread id.
    pub tid: u32,
    /// Slabs that were ever taken: their private parts must stay.
    pub slabs_taken: u64,
}

/// A client.
pub trait Client: Sized + 'static {
    /// What it wants to see.
    const EVENTS: Events = Events::NONE;

    /// Can it go on in the child of a fork ([`Client::forked`])? Otherwise such children run natively.
    const FOLLOWS_FORKS: bool = false;

    /// Does it name paths that leave by side exits ([`Client::side_path`]), instead of giving them counters at once?
    const SIDE_PATHS: bool = false;

    /// Does what it emits at a return depend on nothing but the registers that it is given? Then it is made once for each
    /// choice of them, and all returns jump there: code that every call comes to stays in the caches.
    const SHARED_RETURNS: bool = false;

    /// Where slabs lie: behind the fixed part of the shared memory, unless the client has reserved another range (its
    /// own mapping, none of the program's). The engine maps the private part of each slab itself.
    fn slabs(&self, boot: &Boot) -> SlabLayout {
        SlabLayout {
            base: boot.shared_base + boot.shared_fixed_bytes,
            count: boot.slab_count,
            stride: wire::slab::STRIDE,
        }
    }

    /// Are accesses events in the superblock that begins at `pc`?
    fn sees_accesses(&mut self, pc: u64) -> bool {
        let _ = pc;
        true
    }

    /// An access of `sb.insns[a.index]` is about to be made: emit what notes it. Called in program order, and within
    /// an instruction in the order of its operands.
    fn access(&mut self, e: &mut Emit<'_>, sb: &Superblock, a: &Access) {
        let _ = (e, sb, a);
    }

    /// The routine at `callee` has been called and its first instruction is next: emit what notes it. The return address
    /// is at rsp.
    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        let _ = (e, callee);
    }

    /// A return is about to be made, with its return address at rsp: emit what notes it. The activation that
    /// ends is the one whose return address lay there; those above it on the client's stack were left by longjmp or
    /// an exception.
    fn ret(&mut self, e: &mut Emit<'_>) {
        let _ = e;
    }

    /// A jump to `target` is about to be made that [`Client::is_tail`] calls a tail call, with the return address at
    /// rsp: emit what notes it.
    fn tail(&mut self, e: &mut Emit<'_>, target: u64) {
        self.ret(e);
        self.call(e, target);
    }

    /// Is a jump from the instruction at `from` (`None` for an indirect one, whose origin is unknown) to `target` a
    /// call of another routine that returns to this one's caller?
    fn is_tail(&mut self, from: Option<u64>, target: u64) -> bool {
        let _ = (from, target);
        false
    }

    /// A clean call that [`Emit::call_out`] emitted.
    fn called(t: &mut Thread<'_>, token: u32, value: u64) {
        let _ = (t, token, value);
    }

    /// Emits what notes an access whose elements a mask register names. False, with nothing emitted, if it should come
    /// to [`Client::range`] as others do that show only at run time.
    fn masked(&mut self, e: &mut Emit<'_>, access: &Masked) -> bool {
        let _ = (e, access);
        false
    }

    /// Memory is about to be (or, for `repe cmps` and `repne scas`, was) accessed by an instruction whose accesses show
    /// only at run time: a string instruction's range, the elements of a masked or gathered vector, an `xsave` area.
    fn range(t: &mut Thread<'_>, piece: &Piece) {
        let _ = (t, piece);
    }

    /// System call `n` is about to be made with these arguments.
    fn before_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6]) {
        let _ = (t, n, args);
    }

    /// A system call has returned `result`. `syscalls::for_each_range` tells which memory it read and wrote. Not
    /// called for those that do not return.
    fn after_syscall(t: &mut Thread<'_>, n: u64, args: &[u64; 6], result: i64) {
        let _ = (t, n, args, result);
    }

    /// A signal handler is about to run.
    fn signal_enter(t: &mut Thread<'_>, entry: &SignalEntry) {
        let _ = (t, entry);
    }

    /// A signal handler returned; the program goes on with this pc and stack pointer. (One that is left by longjmp
    /// does not come here.)
    fn signal_return(t: &mut Thread<'_>, pc: u64, sp: u64) {
        let _ = (t, pc, sp);
    }

    /// A superblock was decoded and is about to be translated.
    fn block(&mut self, sb: &Superblock);

    /// The counter (a displacement from gs) that is to grow by one each time control passes along
    /// `sb.insns[..count]` from the start; `None` for no counting.
    fn path_counter(&mut self, sb: &Superblock, count: usize) -> Option<i32>;

    /// A name for the path along `sb.insns[..count]`, which leaves by a side exit that may never be taken: its counter is
    /// asked for ([`Client::counter_of`]) when it is. `None` for no counting. For clients with `SIDE_PATHS`.
    fn side_path(&mut self, sb: &Superblock, count: usize) -> Option<u32> {
        let _ = (sb, count);
        None
    }

    /// The counter of a path that [`Client::side_path`] has named; the same one each time.
    fn counter_of(&mut self, path: u32) -> i32 {
        unreachable!("path {path} was never named")
    }

    /// What the counter of a path that [`Client::side_path`] has named grows by.
    fn amount_of(&self, path: u32) -> u32 {
        let _ = path;
        1
    }

    /// What the counter that [`Client::path_counter`] named grows by.
    fn path_amount(&mut self, sb: &Superblock, count: usize) -> u32 {
        let _ = (sb, count);
        1
    }

    /// A second counter for the same path, and what it grows by: both are bumped in one place, before the events of
    /// the path's last instruction.
    fn path_cost(&mut self, sb: &Superblock, count: usize) -> Option<(i32, u32)> {
        let _ = (sb, count);
        None
    }

    /// Program addresses `start..end` have got other contents, or none: what was known of code there is void.
    fn remapped(&mut self, start: u64, end: u64) {
        let _ = (start, end);
    }

    /// A new, empty cache is begun: code that the client had emitted for several sites to share must be emitted again.
    fn cache_begun(&mut self) {}

    /// Counters for the iterations of a repeated string instruction; the repeat count is added to each.
    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters>;

    /// Control left `sb` before instruction `count` (a fault or a signal); `counted` says how many
    /// instructions of the path its counter has already been credited with.
    fn path_cut(&mut self, slab: u64, sb: &Superblock, count: usize, counted: Option<usize>);

    /// A thread starts to use the slab at this address. `counts` is false for a vfork child.
    fn thread_start(&mut self, slab: u64, tid: u32, counts: bool);

    /// A thread ends and leaves its slab.
    fn thread_end(&mut self, slab: u64, tid: u32);

    /// This process is the child of a fork and goes on under the engine: what is shared with the launcher must become
    /// its own, with nothing counted yet. Translated code stays in use.
    fn forked(&mut self, boot: &Boot, child: &Forked) {
        let _ = (boot, child);
    }

    /// The program goes on natively from here, unseen: what was gathered is partial.
    fn handed_back(&mut self) {}

    /// The process ends (or is about to be replaced by `exec`).
    fn process_end(&mut self);
}
