//! Checks the unwinder at every single instruction of a stretch of a program, against an oracle that knows
//! nothing of unwind information.
//!
//! The program calls `farsight_step_begin()`, does something, and calls `farsight_step_end()`. In between the
//! processor's trap flag is on, so a handler sees every instruction. It keeps a shadow stack: a call is
//! recognized by what it does (a return address appears on the stack, right behind the instruction), together
//! with the registers that the callee has to preserve; an entry dies when the stack pointer passes it. At
//! every instruction the unwinder must find exactly those return addresses, stack pointers and registers, and
//! below them the frames that were there at the beginning.
//!
//! One exception: to land in a handler the exception runtime (libgcc_s) overwrites its own saved registers and
//! return address with those of the frame that it jumps to. While it does, the stack is neither the old one nor
//! the new one; those instructions are counted apart (`farsight_landing()`).
//!
//! Walks that stop where the last one of their kind has been (`sampler::trail`) must find the same frames; there are
//! several kinds, each with more instructions in between, so that little or much has changed.
//!
//! `farsight_walk(pcs, max)` gives the unwinder's view from its caller on, to be compared with `backtrace()`.
//! `farsight_step_end()` gives the number of wrong instructions and describes the first ones on stderr;
//! `farsight_steps()` gives the number of instructions checked.

use core::cell::UnsafeCell;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use preload::{Hooks, Interest, Thread, real, thread};
use sampler::regs::PRESERVED;
use sampler::stack::Stack;
use sampler::trail::Trail;
use sampler::{Next, Regs, Stop, cfi, module, unwind};

struct Stepper;

impl Hooks for Stepper {
    type Local = ();
    const INTEREST: Interest = Interest::NONE;
    fn new_local() {}
    fn start() -> bool {
        module::start()
    }
    fn unloading(closed: bool) {
        if closed { module::closed() } else { module::closing() }
    }
}

const DEPTH_MAX: usize = 512;
const REPORTS_MAX: u64 = 12;
/// Instructions between two walks of each kind of trail.
const TRAIL_EVERY: [u64; 3] = [5, 61, 331];
const EXCEPTION_RUNTIME: &[u8] = b"libgcc_s";

#[derive(Clone, Copy, Default)]
struct Call {
    slot: u64,
    return_to: u64,
    preserved: [u64; 6],
}

struct State {
    shadow: [Call; DEPTH_MAX],
    depth: usize,
    /// Frames outside the stretch, as first found.
    outer: [Call; DEPTH_MAX],
    outer_len: usize,
    previous: Option<(u64, u64)>,
    scratch: Option<cfi::Scratch>,
    own: std::ops::Range<u64>,
    trails: [Remembered; TRAIL_EVERY.len()],
    walks: [Frames; 2],
}

/// Stack pointers and pcs of a walk, the innermost first.
#[derive(Clone, Copy)]
struct Frames {
    list: [(u64, u64); DEPTH_MAX],
    len: usize,
}

impl Frames {
    const NONE: Frames = Frames { list: [(0, 0); DEPTH_MAX], len: 0 };

    fn push(&mut self, regs: &Regs) -> ControlFlow<(), Next> {
        let Some(place) = self.list.get_mut(self.len) else { return ControlFlow::Break(()) };
        *place = (regs.sp(), regs.pc());
        self.len += 1;
        ControlFlow::Continue(Next::MayShare)
    }

    fn get(&self) -> &[(u64, u64)] {
        &self.list[..self.len]
    }
}

/// A trail, and the frames of its last walk.
struct Remembered {
    trail: Trail<DEPTH_MAX>,
    frames: Frames,
}

/// Touched by the stepping thread, and by its trap handler while that thread is stopped in it.
struct Shared(UnsafeCell<State>);
// SAFETY: one thread steps at a time (the test programs see to it).
unsafe impl Sync for Shared {}

static STATE: Shared = Shared(UnsafeCell::new(State {
    shadow: [Call { slot: 0, return_to: 0, preserved: [0; 6] }; DEPTH_MAX],
    depth: 0,
    outer: [Call { slot: 0, return_to: 0, preserved: [0; 6] }; DEPTH_MAX],
    outer_len: 0,
    previous: None,
    scratch: None,
    own: 0..0,
    trails: [const { Remembered { trail: Trail::new(), frames: Frames::NONE } }; TRAIL_EVERY.len()],
    walks: [Frames::NONE; 2],
}));
static STEPS: AtomicU64 = AtomicU64::new(0);
static LANDING: AtomicU64 = AtomicU64::new(0);
/// Frames that trails have spared.
static SHARED: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Begins to check every instruction of the calling thread.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_step_begin() {
    STEPS.store(0, Relaxed);
    WRONG.store(0, Relaxed);
    LANDING.store(0, Relaxed);
    SHARED.store(0, Relaxed);
    // SAFETY: no trap handler is active yet.
    let state = unsafe { &mut *STATE.0.get() };
    state.depth = 0;
    state.outer_len = 0;
    state.previous = None;
    state.scratch = Some(cfi::Scratch::new());
    if let Some(own) = module::find(farsight_step_begin as *const () as u64) {
        state.own = own.start as u64..own.end as u64;
    }
    // SAFETY: plain data; a three-argument handler with SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        real::sigaction(libc::SIGTRAP, &raw mut action as _, std::ptr::null_mut());
    }
    ACTIVE.store(true, SeqCst);
    // SAFETY: sets the trap flag; the handler above takes the traps.
    unsafe { core::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
}

/// Ends it; gives the number of instructions at which the unwinder was wrong.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_step_end() -> u64 {
    ACTIVE.store(false, SeqCst);
    // SAFETY: clears the trap flag.
    unsafe { core::arch::asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq") };
    if SHARED.load(Relaxed) < STEPS.load(Relaxed) / TRAIL_EVERY[0] {
        eprintln!("stepper: trails spared {} frames only", SHARED.load(Relaxed));
        WRONG.fetch_add(1, Relaxed);
    }
    WRONG.load(Relaxed)
}

/// Instructions checked.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_steps() -> u64 {
    STEPS.load(Relaxed)
}

/// Instructions of the exception runtime at which there was no right answer.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_landing() -> u64 {
    LANDING.load(Relaxed)
}

/// The pcs of the calling thread's frames, from the caller of this function outwards; gives their number.
///
/// # Safety
/// `pcs` must have room for `max` addresses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_walk(pcs: *mut u64, max: i32) -> i32 {
    let mut scratch = cfi::Scratch::new();
    let regs = Regs::here();
    let bounds = thread::known::<()>().map_or(0..0, Thread::stack);
    let mut n = -1; // our own frame does not count
    unwind::walk(regs, Stack::new(regs.sp(), bounds), &mut scratch, |frame| {
        if n >= max {
            return ControlFlow::Break(());
        }
        if n >= 0 {
            // SAFETY: `n < max`.
            unsafe { *pcs.add(n as usize) = frame.regs.pc() };
        }
        n += 1;
        ControlFlow::Continue(())
    });
    n.max(0)
}

extern "C" fn on_trap(_: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if !ACTIVE.load(SeqCst) {
        return;
    }
    // SAFETY: the thread that owns the state is stopped in this handler.
    let state = unsafe { &mut *STATE.0.get() };
    // SAFETY: the handler's third argument.
    let regs = unsafe { Regs::interrupted(context) };
    if state.own.contains(&regs.pc()) && state.depth == 0 {
        return; // on the way out of `begin` or into `end`
    }
    follow(state, &regs);
    if state.outer_len == 0 {
        outer_frames(state, &regs);
    }
    let steps = STEPS.fetch_add(1, Relaxed);
    if let Err(what) = check(state, &regs).and_then(|()| check_trails(state, &regs, steps)) {
        let landing = module::find(regs.pc()).is_some_and(|module| {
            module.path().windows(EXCEPTION_RUNTIME.len()).any(|part| part == EXCEPTION_RUNTIME)
        });
        if landing {
            LANDING.fetch_add(1, Relaxed);
        } else if WRONG.fetch_add(1, Relaxed) < REPORTS_MAX {
            report(&what, regs.pc(), state);
        }
    }
}

/// Keeps the shadow stack.
fn follow(state: &mut State, regs: &Regs) {
    let (pc, sp) = (regs.pc(), regs.sp());
    while state.depth > 0 && state.shadow[state.depth - 1].slot < sp {
        state.depth -= 1;
    }
    if let Some((last_pc, last_sp)) = state.previous
        && sp == last_sp.wrapping_sub(8)
        && state.depth < DEPTH_MAX
    {
        // SAFETY: the stack pointer of a running thread points to its stack.
        let top = unsafe { *(sp as *const u64) };
        // A call is two to seven bytes long (nine with prefixes), and goes elsewhere than behind itself.
        if top > last_pc + 1 && top <= last_pc + 9 && pc != top {
            state.shadow[state.depth] = Call { slot: sp, return_to: top, preserved: preserved(regs) };
            state.depth += 1;
        }
    }
    state.previous = Some((pc, sp));
}

fn preserved(regs: &Regs) -> [u64; 6] {
    PRESERVED.map(|register| regs.get(register).unwrap_or(0xdead_dead))
}

fn outer_frames(state: &mut State, regs: &Regs) {
    let bounds = thread::known::<()>().map_or(0..0, Thread::stack);
    let (mut n, outer) = (0, &mut state.outer);
    let Some(scratch) = &mut state.scratch else { return };
    unwind::walk(*regs, Stack::new(regs.sp(), bounds), scratch, |frame| {
        if frame.regs.is_exact() {
            return ControlFlow::Continue(());
        }
        let Some(place) = outer.get_mut(n) else { return ControlFlow::Break(()) };
        let slot = frame.regs.sp() - 8;
        *place = Call { slot, return_to: frame.regs.pc(), preserved: preserved(frame.regs) };
        n += 1;
        ControlFlow::Continue(())
    });
    state.outer_len = n;
}

/// Walks, and compares with the shadow stack and the outer frames.
fn check(state: &mut State, regs: &Regs) -> Result<(), String> {
    let bounds = thread::known::<()>().map_or(0..0, Thread::stack);
    // The function that began the stretch may itself have returned.
    let outer = state.outer[..state.outer_len].iter().filter(|call| call.slot >= regs.sp());
    let mut expected = state.shadow[..state.depth].iter().rev().chain(outer);
    let Some(scratch) = &mut state.scratch else { return Ok(()) };
    let mut wrong = None;
    let mut n = 0;
    let stop = unwind::walk(*regs, Stack::new(regs.sp(), bounds), scratch, |frame| {
        if frame.regs.is_exact() {
            return ControlFlow::Continue(());
        }
        n += 1;
        let found = Call {
            slot: frame.regs.sp().wrapping_sub(8),
            return_to: frame.regs.pc(),
            preserved: preserved(frame.regs),
        };
        match expected.next() {
            None => wrong = Some(format!("frame {n}: {:x} beyond the oracle's", found.return_to)),
            Some(call) if call.return_to != found.return_to || call.slot != found.slot => {
                wrong = Some(format!(
                    "frame {n}: returns to {:x} at {:x}, should be {:x} at {:x}",
                    found.return_to, found.slot, call.return_to, call.slot
                ));
            }
            Some(call) if call.preserved != found.preserved => {
                wrong = Some(format!(
                    "frame {n}: preserved registers {:x?}, should be {:x?}",
                    found.preserved, call.preserved
                ));
            }
            Some(_) => return ControlFlow::Continue(()),
        }
        ControlFlow::Break(())
    });
    match wrong {
        Some(wrong) => Err(wrong),
        None if stop != Stop::Root => Err(format!("stopped after {n} frames: {stop:?}")),
        None if expected.next().is_some() => Err(format!("ended after {n} frames, too early")),
        None => Ok(()),
    }
}

/// Walks again, and compares with a walk that remembers nothing. Without a heap: the traps are in `malloc`, too.
fn check_trails(state: &mut State, regs: &Regs, steps: u64) -> Result<(), String> {
    if !TRAIL_EVERY.iter().any(|every| steps.is_multiple_of(*every)) {
        return Ok(());
    }
    let bounds = thread::known::<()>().map_or(0..0, Thread::stack);
    let stack = Stack::new(regs.sp(), bounds);
    let Some(scratch) = &mut state.scratch else { return Ok(()) };
    let [whole, fresh] = &mut state.walks;
    whole.len = 0;
    unwind::walk(*regs, stack.clone(), scratch, |frame| whole.push(frame.regs).map_continue(|_| ()));
    for (Remembered { trail, frames }, every) in state.trails.iter_mut().zip(TRAIL_EVERY) {
        if !steps.is_multiple_of(every) {
            continue;
        }
        fresh.len = 0;
        let (stop, shared) =
            unwind::walk_again(*regs, stack.clone(), scratch, trail, |frame| fresh.push(frame.regs));
        // Innermost first: what was met now, then the outermost of last time.
        let kept = &frames.get()[frames.len.saturating_sub(shared)..];
        let right = fresh.get().iter().chain(kept).eq(whole.get());
        if stop != Stop::Root || !right {
            return Err(format!(
                "trail of every {every}: {shared} frames shared, {:x?} and {kept:x?}",
                fresh.get()
            ));
        }
        *frames = *whole;
        SHARED.fetch_add(shared as u64, Relaxed);
    }
    Ok(())
}

fn report(what: &str, pc: u64, state: &State) {
    let place = module::find(pc).map_or_else(String::new, |module| {
        let path = String::from_utf8_lossy(module.path()).into_owned();
        format!("{path}+{:x}", pc - module.bias as u64)
    });
    eprintln!("stepper: at {pc:x} ({place}), depth {}: {what}", state.depth);
}

preload::interpose!(Stepper);
