//! Finding the frames of a task's creator on another thread's stack.
//!
//! The creator is alive and cannot have left the frame in question, but it may be running. So:
//! 1. It is this very thread: walk on from here.
//! 2. It waits in a call that we interpose: its registers at that call were kept ([`Anchor`]); walk from there.
//! 3. It runs: its registers are unknown, but the frame that holds the task is on its stack, and the return
//!    address of whatever that frame has called lies right below it. Each word below the task, downwards, is
//!    taken for that return address until one leads, by the unwind tables, over the task and to the very start
//!    of the thread.
//!
//! A stale return address could lead to the start as well, in a wrong first frame: when the next frame's call
//! instruction names its target, the target must be the function that the candidate is in. A candidate that
//! fails only this test is taken if no better one is found (a tail call looks the same).
//!
//! A frame met in this way lacks the preserved registers that only frames further in have saved, and the next task
//! frame outwards needs one of them. So the scan goes on below the candidate for its callee, and for the callee's
//! callee, until all of them are known; and if already the way to the start of the thread needs one (Rust's start-up code
//! below `main` keeps frame pointers), that way is gone from there before a candidate is believed.
//!
//! What lies outside of the task on its creator's stack is mapped, since the creator cannot leave that frame while the
//! task runs; the pages further in, where the scan goes, are asked of the kernel first. So all walks here read without
//! asking. Nothing here waits.

use crate::Local;
use core::cell::UnsafeCell;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicU32, Ordering::*, fence};
use preload::{Hooks, Thread, sys, thread};
use sampler::regs::{PRESERVED, Regs};
use sampler::rule::Kind;
use sampler::stack::Stack;
use sampler::{Frame, Stop, ThreadSampler, cache, cfi, module};

/// How far below a task its creator's last return address is looked for.
const SCAN_BYTES: u64 = 8192;
/// Candidates whose chain is followed.
const TRIES_MAX: u32 = 48;
/// Callees that are looked for below a candidate, and the return addresses tried for them.
const CALLEES_MAX: u32 = 6;
const CALLEE_TRIES_MAX: u32 = 64;
const PAGE: u64 = 4096;

/// The registers of a thread that waits, for others to walk its stack.
#[derive(Debug)]
pub struct Anchor {
    /// Odd while the thread waits and `regs` can be used.
    version: AtomicU32,
    regs: UnsafeCell<Option<Regs>>,
}

// SAFETY: written by the owning thread while `version` is even, read by others while it is odd and the same
// before and after.
unsafe impl Sync for Anchor {}

impl Anchor {
    /// Nothing to walk from.
    pub const fn new() -> Self {
        Self { version: AtomicU32::new(0), regs: UnsafeCell::new(None) }
    }

    /// The thread is about to wait; its frames from `regs` outwards stay.
    pub fn set(&self, regs: Regs) {
        // SAFETY: the version is even, so that nobody reads.
        unsafe { *self.regs.get() = Some(regs) };
        self.version.store(self.version.load(Relaxed) | 1, Release);
    }

    /// It runs again.
    pub fn clear(&self) {
        let version = self.version.load(Relaxed);
        self.version.store(version.wrapping_add(version & 1), Release);
    }

    fn get(&self) -> Option<Regs> {
        let before = self.version.load(Acquire);
        if before & 1 == 0 {
            return None;
        }
        // SAFETY: plain data; a torn copy is discarded below.
        let regs = unsafe { core::ptr::read_volatile(self.regs.get()) };
        fence(Acquire);
        if self.version.load(Relaxed) == before { regs } else { None }
    }
}

impl Default for Anchor {
    fn default() -> Self {
        Self::new()
    }
}

/// The thread whose stack holds an address.
pub fn owner<H: Hooks>(address: u64) -> Option<&'static Thread<H::Local>> {
    let mut found = None;
    thread::for_each::<H>(|thread| {
        if thread.stack().contains(&(address as usize)) {
            found = Some(thread);
        }
    });
    found
}

/// Walks the stack of `owner` from the frame that holds `address` outwards. `here` are the registers to start
/// from if the owner is the calling thread, whose `sampler` does the walking.
pub fn walk(
    sampler: &ThreadSampler,
    owner: &Thread<Local>,
    here: Option<Regs>,
    address: u64,
    mut visit: impl FnMut(&Frame) -> ControlFlow<()>,
) -> bool {
    let start = match here {
        Some(regs) => regs,
        None => match owner.local().anchor.get() {
            Some(regs) if regs.sp() <= address => regs,
            _ => match scan(sampler, owner.stack(), address) {
                Some(regs) => regs,
                None => return false,
            },
        },
    };
    // A frame holds the address if it lies between its own stack pointer and its caller's.
    let mut held: Option<(Regs, sampler::unwind::Key)> = None;
    let mut broken = false;
    let stop = sampler.walk(start, owner.stack(), |frame| {
        if let Some((regs, key)) = held.take()
            && frame.regs.sp() > address
            && visit(&Frame { regs: &regs, key }).is_break()
        {
            broken = true;
            return ControlFlow::Break(());
        }
        held = Some((*frame.regs, frame.key));
        ControlFlow::Continue(())
    });
    if let Some((regs, key)) = held
        && !broken
    {
        let _ = visit(&Frame { regs: &regs, key });
    }
    broken || stop == Stop::Root
}

/// Registers of the innermost frame that surely holds `address` (see the module).
fn scan(sampler: &ThreadSampler, all: Range<usize>, address: u64) -> Option<Regs> {
    let low = mapped_from(address, (all.start as u64).max(address.saturating_sub(SCAN_BYTES)))?;
    let bounds = low as usize..all.end;
    let mut stack = Stack::new(low, bounds.clone());
    let mut second_best = None;
    let mut tries = 0;
    let mut slot = (address & !7).checked_sub(8)?;
    while slot >= low && tries < TRIES_MAX {
        let pc = stack.read(slot)?;
        if is_return_address(pc) {
            tries += 1;
            let candidate = Regs::new(pc, slot + 8, false);
            match judge(sampler, candidate, &bounds, address) {
                Verdict::Right => return Some(with_callees(sampler, candidate, &bounds)),
                Verdict::Short(doubtful) => {
                    let inner = with_callees(sampler, candidate, &bounds);
                    match leads_home(sampler, inner, candidate, &bounds) {
                        true if doubtful => second_best = second_best.or(Some(candidate)),
                        true => return Some(inner),
                        false => {}
                    }
                }
                Verdict::Doubtful => second_best = second_best.or(Some(candidate)),
                Verdict::Wrong => {}
            }
        }
        slot -= 8;
    }
    second_best.map(|candidate| with_callees(sampler, candidate, &bounds))
}

/// Down to where, but not below `low`, the pages of a stack can be read, from that of `address` on.
fn mapped_from(address: u64, low: u64) -> Option<u64> {
    let mut from = None;
    let mut page = address & !(PAGE - 1);
    while page + PAGE > low && sys::readable(page as usize) {
        from = Some(page.max(low));
        page -= PAGE;
    }
    from
}

/// Registers of a frame further in, from which the walk to `outer` finds all that it needs to know; `outer` itself if
/// there is none.
fn with_callees(sampler: &ThreadSampler, outer: Regs, bounds: &Range<usize>) -> Regs {
    let mut inner = outer;
    for _ in 0..CALLEES_MAX {
        let mut known = false;
        sampler.walk(inner, bounds.clone(), |frame| {
            if frame.regs.sp() < outer.sp() {
                return ControlFlow::Continue(());
            }
            known = PRESERVED.iter().all(|&register| frame.regs.get(register).is_some());
            ControlFlow::Break(())
        });
        if known {
            break;
        }
        match callee(sampler, inner, bounds) {
            Some(next) => inner = next,
            None => break,
        }
    }
    inner
}

/// The frame that `caller` has called: its walk's next frame is `caller`. One that is not the function that the call
/// names (a tail call in between) is taken if there is no better one.
fn callee(sampler: &ThreadSampler, caller: Regs, bounds: &Range<usize>) -> Option<Regs> {
    let low = bounds.start as u64;
    let mut stack = Stack::new(low, bounds.clone());
    let called = call_target(caller.pc());
    let mut second_best = None;
    // The word below the caller's frame is its own return address.
    let mut slot = caller.sp().checked_sub(16)?;
    let mut tries = 0;
    while slot >= low && tries < CALLEE_TRIES_MAX {
        let Some(pc) = stack.read(slot) else { break };
        if is_return_address(pc) {
            tries += 1;
            let candidate = Regs::new(pc, slot + 8, false);
            let (mut frames, mut met) = (0, false);
            sampler.walk(candidate, bounds.clone(), |frame| {
                frames += 1;
                met = frames == 2 && frame.regs.sp() == caller.sp() && frame.regs.pc() == caller.pc();
                if frames < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            if met && called.is_none_or(|target| cfi::function_at(candidate.lookup_pc()) == Some(target)) {
                return Some(candidate);
            }
            if met {
                second_best = second_best.or(Some(candidate));
            }
        }
        slot -= 8;
    }
    second_best
}

enum Verdict {
    Right,
    /// Over the task, but then a frame needs a register that only frames further in have saved (Rust's own start-up code
    /// keeps frame pointers). And whether it is doubtful, too.
    Short(bool),
    Doubtful,
    Wrong,
}

fn judge(sampler: &ThreadSampler, candidate: Regs, bounds: &Range<usize>, address: u64) -> Verdict {
    let mut frames = 0u32;
    let mut called = None;
    let mut over = true;
    let stop = sampler.walk(candidate, bounds.clone(), |frame| {
        frames += 1;
        if frames == 2 {
            over = frame.regs.sp() > address;
            called = call_target(frame.regs.pc());
        }
        if over { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if frames < 2 || !over {
        return Verdict::Wrong;
    }
    let agrees = called.map(|target| cfi::function_at(candidate.lookup_pc()) == Some(target));
    match (stop, agrees) {
        (Stop::Root, Some(false)) => Verdict::Doubtful,
        (Stop::Root, _) => Verdict::Right,
        (Stop::Lost, agrees) => Verdict::Short(agrees == Some(false)),
        _ => Verdict::Wrong,
    }
}

/// Whether the walk from `inner` goes through `outer` to the start of the thread.
fn leads_home(sampler: &ThreadSampler, inner: Regs, outer: Regs, bounds: &Range<usize>) -> bool {
    let mut met = false;
    let stop = sampler.walk(inner, bounds.clone(), |frame| {
        met |= frame.regs.sp() == outer.sp() && frame.regs.pc() == outer.pc();
        ControlFlow::Continue(())
    });
    met && stop == Stop::Root
}

/// Whether a word is an address behind a call instruction.
fn is_return_address(pc: u64) -> bool {
    // Most words of a stack are data: those are sorted out first.
    if !module::is_known(pc) {
        return false;
    }
    let Some(code) = code_before(pc) else { return false };
    let [a, b, c, _, e, f, _] = code;
    // call rel32 · call [reg], call reg · call [reg+disp8] · call [sib] · call [rip+disp32], [reg+disp32] · with sib
    let modrm = |byte: u8| byte & 0x38 == 0x10;
    code[2] == 0xe8
        || (code[5] == 0xff && modrm(code[6]))
        || (e == 0xff && modrm(f))
        || (code[3] == 0xff && modrm(e))
        || (b == 0xff && modrm(c))
        || (a == 0xff && modrm(b))
}

/// Where the call before a return address goes, if it says so.
fn call_target(pc: u64) -> Option<u64> {
    let [_, _, opcode, a, b, c, d] = code_before(pc)?;
    (opcode == 0xe8).then(|| pc.wrapping_add(i32::from_le_bytes([a, b, c, d]) as u64))
}

/// The seven bytes before a pc, if it is behind an instruction that has unwind information.
fn code_before(pc: u64) -> Option<[u8; 7]> {
    let (start, last) = (pc.checked_sub(8)?, pc.wrapping_sub(1));
    let is_code = match cache::get(last) {
        Some(cached) => cached.rule.kind() == Kind::Frame,
        None => cfi::function_at(last).is_some(),
    };
    if !is_code || ((start ^ last) & !(PAGE - 1) != 0 && !sys::readable(start as usize)) {
        return None;
    }
    // SAFETY: the last byte belongs to code of a loaded module, which is mapped, and so is what else of it lies in its
    // page; another page was found readable. Code is not unmapped while it is on a stack.
    let bytes = unsafe { core::ptr::read_unaligned(start as *const [u8; 8]) };
    let [_, rest @ ..] = bytes;
    Some(rest)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use core::arch::global_asm;
    use std::sync::Mutex;

    // keeps_fp    its frame is found by rbp
    //   holder    has the task in its frame, and leaves rbp alone
    //     inner   saves rbp, and uses it for something else
    //       look  the test
    global_asm!(
        ".type keeps_fp,@function",
        "keeps_fp:",
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, 32",
        "call holder",
        "leave",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        ".size keeps_fp, . - keeps_fp",
        ".type holder,@function",
        "holder:",
        ".cfi_startproc",
        "sub rsp, 72",
        ".cfi_def_cfa_offset 80",
        "mov qword ptr [rsp], 0",
        "mov qword ptr [rsp + 8], 0",
        "mov qword ptr [rsp + 16], 0",
        "lea rdi, [rsp + 24]",
        "call inner",
        "after_inner:",
        "add rsp, 72",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        ".size holder, . - holder",
        ".type inner,@function",
        "inner:",
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "xor ebp, ebp",
        "sub rsp, 16",
        ".cfi_def_cfa_offset 32",
        "call {look}",
        "add rsp, 16",
        ".cfi_def_cfa_offset 16",
        "pop rbp",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        ".size inner, . - inner",
        look = sym look,
    );
    unsafe extern "C" {
        fn keeps_fp();
        static after_inner: u8;
    }

    /// What was found, for the test to judge: nothing may unwind through the frames above.
    static FOUND: Mutex<Option<[bool; 5]>> = Mutex::new(None);

    extern "C" fn look(task: u64) {
        let sampler = ThreadSampler::new();
        // No signal is reserved here, so that its clock stays still.
        sampler.start();
        let stack = stack();
        let holder = Regs::new(&raw const after_inner as u64, task - 24, false);
        let short = matches!(judge(&sampler, holder, &stack, task), Verdict::Short(false));
        let alone = leads_home(&sampler, holder, holder, &stack);
        let start = scan(&sampler, stack.clone(), task);
        let further_in = start.is_some_and(|regs| regs.sp() < holder.sp());
        let home = start.is_some_and(|regs| leads_home(&sampler, regs, holder, &stack));
        let elsewhere = start.is_some_and(|regs| {
            let other = Regs::new(holder.pc(), holder.sp() + 8, false);
            leads_home(&sampler, regs, other, &stack)
        });
        *FOUND.lock().unwrap() = Some([short, alone, further_in, home, elsewhere]);
        sampler.stop();
    }

    /// The calling thread's stack.
    fn stack() -> Range<usize> {
        // SAFETY: plain data, filled by the calls; the thread asks for its own.
        unsafe {
            let mut attr: libc::pthread_attr_t = core::mem::zeroed();
            let (mut start, mut bytes) = (core::ptr::null_mut(), 0);
            assert_eq!(libc::pthread_getattr_np(libc::pthread_self(), &mut attr), 0);
            libc::pthread_attr_getstack(&attr, &mut start, &mut bytes);
            libc::pthread_attr_destroy(&mut attr);
            start as usize..start as usize + bytes
        }
    }

    #[test]
    fn registers_for_the_way_home_are_fetched_from_further_in() {
        assert!(module::start());
        // SAFETY: takes nothing, keeps the C convention.
        unsafe { keeps_fp() };
        let [short, alone, further_in, home, elsewhere] =
            FOUND.lock().unwrap().take().expect("it was called");
        assert!(short, "over the task, and then rbp is missing");
        assert!(!alone, "so it does not reach the start of the thread by itself");
        assert!(further_in, "the walk starts in a frame that has saved rbp");
        assert!(home, "and goes through the holder to the start of the thread");
        assert!(!elsewhere, "not through any frame");
    }
}
