//! The state of the main thread: its clock and shadow stack, from before `main` to exit.

use crate::repeat::Repeat;
use crate::straight::Straight;
use crate::{calibrate, lengths};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use span_rt::clock::{self, Clock};
use span_rt::env::{Cost, settings};
use span_rt::{end, libc};
use spandag::serial::Stack;
use spandag::whole::Whole;

/// The main thread's clock and shadow stack.
pub struct Main {
    pub clock: Clock,
    pub stack: Stack,
    pub begun: u64,
    /// The site that the next function to begin was called or spawned from.
    pub pending: Pending,
    /// The site was reached by straight code alone.
    pub near: bool,
    pub spawned: bool,
    pub straight: Straight,
    /// Instead of `stack`, where only the program as a whole is asked for.
    pub whole: Whole,
    pub is_whole: bool,
    /// Strands do not start where the one before ended: where runs are compared, and where instructions are counted.
    pub anew: bool,
    repeat: Option<Repeat>,
    /// How twins that go on have begun.
    pub twins: Vec<i8>,
}

/// How the next function comes to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pending {
    /// Not known: by its return address.
    Unknown,
    /// It was called at this site.
    Called(u32),
    /// It was spawned; its frame is there.
    Spawned,
}

struct Cellar(UnsafeCell<Option<Main>>);
// SAFETY: only the thread whose id is in `THREAD` opens it.
unsafe impl Sync for Cellar {}

static MAIN: Cellar = Cellar(UnsafeCell::new(None));
/// The thread pointer of the main thread; 0 before it is known and after the end.
static THREAD: AtomicUsize = AtomicUsize::new(0);

/// The thread pointer.
#[inline(always)]
pub fn thread() -> usize {
    let thread: usize;
    // SAFETY: the first word of the thread block holds its own address (x86-64 ABI for TLS).
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly, pure)) };
    thread
}

impl Main {
    /// The state, if this is the main thread.
    #[inline(always)]
    pub fn get() -> Option<&'static mut Main> {
        if thread() != THREAD.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: this is the main thread; no caller holds the reference across a call into the program. The state is
        // there as long as `THREAD` names a thread.
        Some(unsafe { (*MAIN.0.get()).as_mut().unwrap_unchecked() })
    }

    /// The strand ends. `straight`: nothing but straight code will pass until the next hook.
    #[inline(always)]
    pub fn pause(&mut self, straight: bool) {
        let cost = self.cost(straight);
        self.stack.strand(cost);
    }

    /// The cost of the strand that ends.
    #[inline(always)]
    pub fn cost(&mut self, straight: bool) -> u64 {
        match self.straight.charge() {
            Some(cost) => {
                if !straight {
                    self.straight.over();
                }
                cost
            }
            None => self.read(straight),
        }
    }

    /// Not inlined: what calls it needs few registers, and shares the reading with others where it can.
    #[inline(never)]
    fn read(&mut self, straight: bool) -> u64 {
        let cost = self.end_strand();
        self.straight.follows(straight);
        cost
    }

    /// The strand ends, and the clock is read: its cost.
    #[inline(always)]
    pub fn end_strand(&mut self) -> u64 {
        let (cost, now) = self.clock.end(self.begun);
        let mut cost = self.straight.read(cost);
        if let Some(repeat) = &mut self.repeat {
            cost = repeat.strand(cost);
        }
        self.begun = now;
        cost
    }

    /// The next strand starts. It started when the last one ended, and has what we did since in it, which is known and
    /// taken off; unless we did something that takes longer than usual.
    #[inline(always)]
    pub fn resume(&mut self) {
        if self.stack.took_long() | self.anew {
            self.restart();
        }
    }

    /// Takes what we do here, where no strand ends, out of the strand: when instructions are counted, where ours must not
    /// be among them. In time it is less than what the clock can tell.
    #[inline(always)]
    pub fn aside(&mut self, straight: bool, what: impl FnOnce(&mut Main)) {
        if !straight {
            self.straight.over();
        }
        if clock::is_counted() {
            self.pause(false);
            what(self);
            self.restart();
        } else {
            what(self);
        }
    }

    /// What the strand that goes on has cost so far, if instructions are counted.
    #[inline(always)]
    pub fn counted(&mut self) -> Option<u64> {
        clock::is_counted().then(|| self.clock.end(self.begun).0)
    }

    /// The next strand starts now.
    #[cold]
    pub fn restart(&mut self) {
        self.straight.forget();
        self.begun = self.clock.begin_late();
    }
}

/// Called by the C library before `main`, on the main thread.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    crate::counted::own_library();
    // OpenMP programs are followed by tasks, and their time counts from here as well.
    span_rt::local::start();
    let (heavy, burden) = (span_rt::local::heavy(), span_rt::local::burden());
    let main = Main {
        clock: Clock::new(),
        stack: Stack::new(heavy, burden),
        begun: 0,
        pending: Pending::Unknown,
        near: false,
        spawned: false,
        straight: Straight::default(),
        whole: Whole::new(burden),
        is_whole: settings().whole,
        anew: clock::is_counted(),
        repeat: settings().strands.as_deref().map(Repeat::new),
        twins: Vec::new(),
    };
    // SAFETY: nobody else runs yet.
    let main = unsafe { (*MAIN.0.get()).insert(main) };
    main.clock.settle();
    let repeat = main.repeat.take();
    THREAD.store(thread(), Ordering::Relaxed);
    // Where the program as a whole is asked for, in one run and not in instructions, the program computes itself.
    let itself = settings().whole && settings().cost != Cost::Instructions && repeat.is_none();
    if itself && settings().cost == Cost::Time {
        lengths::calibrate(main);
    } else if settings().cost != Cost::Units {
        calibrate::strand();
    }
    let Some(main) = Main::get() else { return };
    main.stack = Stack::new(heavy, burden);
    main.whole = Whole::new(burden);
    main.anew |= repeat.is_some();
    main.repeat = repeat;
    main.pending = Pending::Unknown;
    main.spawned = false;
    if itself {
        lengths::start(burden);
    }
    // From here on: what was prepared above is ours.
    main.restart();
    // SAFETY: the library is never unloaded: the program or the dynamic loader holds it.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    crate::ompt::write();
    if Main::get().is_none() {
        return;
    }
    THREAD.store(0, Ordering::Relaxed);
    // SAFETY: the main thread, at exit; nobody else opens it any more.
    let Some(mut main) = (unsafe { (*MAIN.0.get()).take() }) else { return };
    let itself = lengths::finish(&mut main);
    main.spawned |= itself.as_ref().is_some_and(|t| t.spawns > 0);
    let cost = main.end_strand();
    let depth = if main.is_whole { main.whole.depth() } else { main.stack.depth() };
    let mut problems: Vec<String> = Vec::new();
    problems.extend(main.repeat.take().filter(|_| main.spawned).and_then(Repeat::finish));
    if depth > 1 && main.spawned {
        problems
            .push("the program ended inside a function that spawns; its children count as waited for".into());
    }
    problems.extend(end::clock_problems(main.clock.sees_preemption(), main.clock.misses_engine()));
    let facts = [
        ("threads", "1".to_owned()),
        ("repaired", main.clock.repaired.get().to_string()),
        ("lost-ticks", main.clock.lost.get().to_string()),
    ];
    let model = if main.spawned { "cilk" } else { "serial" };
    let totals = if let Some(totals) = itself {
        totals
    } else if main.is_whole {
        main.whole.strand(cost);
        main.whole.finish()
    } else {
        main.stack.strand(cost);
        main.stack.finish()
    };
    end::write(model, totals, &facts, problems);
}
