//! The walk from an interrupted instruction to the start of its thread.
//!
//! Each frame's rule comes from the cache or, once per pc, from the module's unwind tables. A walk ends with a
//! reason ([`Stop`]); anything but [`Stop::Root`] means that outer frames may be missing.

use crate::cache::{self, Cached};
use crate::cfi::{self, Scratch};
use crate::module::{self, NO_SERIAL};
use crate::regs::Regs;
use crate::rule::{self, Fault, FrameRule, Kind, Packed, Rule};
use crate::stack::Stack;
use crate::trail::Trail;
use core::ops::ControlFlow;

/// Why a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stop {
    /// At the outermost frame.
    Root,
    /// In code without unwind information: generated code, hand-written assembly.
    NoInfo,
    /// Where the stack could not be read.
    Unreadable,
    /// Where the unwind information led nowhere.
    Lost,
    /// In a library that another thread may be unloading.
    Unloading,
    /// By the visitor, or at its limit.
    Visitor,
}

/// One frame of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Its registers, all preserved ones included.
    pub regs: &'a Regs,
    /// Its key in a calling context tree.
    pub key: Key,
}

/// What tells one frame from another in a tree: address, module, and whether the address was interrupted.
///
/// ```text
/// bits 0..48 pc | 48..63 serial of the module | 63 interrupted, not a return address
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub u64);

impl Key {
    /// Bit that marks an interrupted instruction.
    pub const EXACT: u64 = 1 << 63;

    #[inline(always)]
    fn new(regs: &Regs, serial: u16) -> Self {
        let exact = if regs.is_exact() { Self::EXACT } else { 0 };
        Self(regs.pc() & ((1 << 48) - 1) | (serial as u64 & 0x7fff) << 48 | exact)
    }

    /// The address.
    pub fn pc(self) -> u64 {
        self.0 & ((1 << 48) - 1)
    }

    /// Serial of the module, [`NO_SERIAL`] when there is none.
    pub fn serial(self) -> u16 {
        (self.0 >> 48) as u16 & 0x7fff
    }

    /// Whether the address was interrupted; a return address otherwise.
    pub fn is_exact(self) -> bool {
        self.0 & Self::EXACT != 0
    }
}

/// What a visitor wants of later frames and walks (see `trail`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A later walk may leave this frame out.
    MayShare,
    /// This frame is to be visited every time.
    MustVisit,
    /// And in this walk all frames further out, whatever is known of them.
    VisitAll,
}

/// Remembers frames from one walk to the next (see `trail`).
pub(crate) trait Keeper {
    /// A walk begins.
    fn begin(&mut self) {}

    /// Whether this frame and all further out are known.
    fn knows(&mut self, _: &Regs, _: &mut Stack) -> bool {
        false
    }

    /// The walk has come to a frame that has this rule.
    fn met(&mut self, _: &Regs, _: Packed, _: Next) {}

    /// The walk ends. How many frames were left out.
    fn end(&mut self, _: Stop) -> usize {
        0
    }
}

/// Remembers nothing.
struct Nothing;
impl Keeper for Nothing {}

/// Walks from `regs` outwards, showing every frame to `visit`, the innermost first.
pub fn walk(
    regs: Regs,
    stack: Stack,
    scratch: &mut Scratch,
    mut visit: impl FnMut(&Frame) -> ControlFlow<()>,
) -> Stop {
    run(regs, stack, scratch, &mut Nothing, |frame| visit(frame).map_continue(|()| Next::MustVisit)).0
}

/// Likewise, but ends where a frame is met from which on everything is as it was in the last walk with this trail. How
/// many frames that were is the second result; the first says how that walk ended.
pub fn walk_again<const D: usize>(
    regs: Regs,
    stack: Stack,
    scratch: &mut Scratch,
    trail: &mut Trail<D>,
    visit: impl FnMut(&Frame) -> ControlFlow<(), Next>,
) -> (Stop, usize) {
    run(regs, stack, scratch, trail, visit)
}

#[inline(always)]
fn run(
    mut regs: Regs,
    mut stack: Stack,
    scratch: &mut Scratch,
    keeper: &mut impl Keeper,
    mut visit: impl FnMut(&Frame) -> ControlFlow<(), Next>,
) -> (Stop, usize) {
    keeper.begin();
    module::enter();
    let stop = loop {
        if keeper.knows(&regs, &mut stack) {
            break Stop::Root;
        }
        let found = rule_for(&regs, scratch);
        let (rule, serial) = found.map_or((None, NO_SERIAL), |c| (Some(c.rule), c.serial));
        let ControlFlow::Continue(next) = visit(&Frame { regs: &regs, key: Key::new(&regs, serial) }) else {
            break Stop::Visitor;
        };
        let Some(rule) = rule else { break Stop::Unloading };
        keeper.met(&regs, rule, next);
        let step = match rule.kind() {
            Kind::Frame => rule.apply(&mut regs, &mut stack),
            Kind::Signal => rule::interrupted(&mut regs, &mut stack),
            Kind::Root => break Stop::Root,
            // A call through a bad pointer: nothing was executed there, the return address is on top.
            Kind::Unknown if regs.is_exact() && regs.pc() < 4096 => {
                Rule::Frame(FrameRule::ENTRY).pack().apply(&mut regs, &mut stack)
            }
            Kind::Unknown if stack.is_first(regs.sp()) => break Stop::Root,
            Kind::Unknown => break Stop::NoInfo,
        };
        match step {
            Ok(()) if regs.pc() == 0 && !regs.is_exact() => break Stop::Root,
            Ok(()) => {}
            Err(Fault::Unreadable) => break Stop::Unreadable,
            Err(Fault::NoProgress | Fault::LostRegister) => break Stop::Lost,
        }
    };
    module::leave();
    (stop, keeper.end(stop))
}

#[inline(always)]
fn rule_for(regs: &Regs, scratch: &mut Scratch) -> Option<Cached> {
    let pc = regs.lookup_pc();
    match cache::get(pc) {
        Some(cached) => Some(cached),
        None => evaluate(pc, regs.is_exact(), scratch),
    }
}

#[cold]
#[inline(never)]
fn evaluate(pc: u64, exact: bool, scratch: &mut Scratch) -> Option<Cached> {
    let Some(module) = module::find(pc) else {
        // Not cached: code may be loaded there later.
        return Some(Cached { rule: Rule::Unknown.pack(), serial: NO_SERIAL });
    };
    let rule = cfi::rule_at(module, pc, exact, scratch)?.pack();
    let cached = Cached { rule, serial: module.serial() };
    cache::put(pc, cached);
    Some(cached)
}
