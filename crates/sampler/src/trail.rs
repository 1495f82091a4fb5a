//! What a thread's last walk met, so that the next one need not walk there again.
//!
//! Most of a stack stays as it is between two samples. A walk that comes to a frame of the last one, same stack pointer
//! and same pc, compares the return addresses further out with those of last time instead of looking rules up: one load
//! per frame, where a lookup touches a cache line, and mostly a page, of its own.
//!
//! ```text
//! kept    outermost first   | root .. match | what the last walk met further in |
//! fresh   innermost first   what this walk has met before the match; then moved, reversed, behind the match
//! ```
//! # Why that is exact
//! A frame's pc says its rule, as long as no library is unloaded (`cache::generation`). The rule says where the return
//! address is: at a constant distance from the stack pointer, or from rbp, whose value is compared too where a frame
//! further out counts on it. So if a frame has the same pc and stack pointer as last time, and the word where its return
//! address was is the same, then its caller has the same pc and stack pointer as well; and so on. A frame of any other
//! kind (realigned, interrupted by a signal, not of use to the caller) is opaque: matches are sought outside of it only.

use crate::cache;
use crate::regs::{RBP, Regs};
use crate::rule::{BpPlace, Kind, Packed};
use crate::stack::Stack;
use crate::unwind::{Keeper, Next, Stop};

/// The frames of a walk, for the next one. Large: lives in the thread's slot.
#[derive(Debug)]
pub struct Trail<const D: usize> {
    kept: [Step; D],
    len: usize,
    /// Frames of `kept`, from the outermost on, among which a match may be.
    clear: usize,
    generation: u32,
    /// Where to look next: all frames of `kept` from here on lie further in than the walk is.
    next: usize,
    matched: bool,
    fresh: [Step; D],
    fresh_len: usize,
}

/// A frame.
#[derive(Clone, Copy, Debug)]
struct Step {
    sp: u64,
    pc: u64,
    bp: u64,
    /// Where its rule finds the caller's rbp, in words from the caller's stack pointer, if `LOADS_BP`.
    bp_words: i32,
    flags: u32,
}

const OPAQUE: u32 = 1;
const USES_BP: u32 = 2;
const KEEPS_BP: u32 = 4;
const LOADS_BP: u32 = 8;
/// The frame, or one further out, counts on the rbp that it has.
const NEEDS_BP: u32 = 16;
const KNOWS_BP: u32 = 32;

impl Step {
    const NONE: Step = Step { sp: 0, pc: 0, bp: 0, bp_words: 0, flags: 0 };

    #[inline(always)]
    fn new(regs: &Regs, rule: Packed, next: Next) -> Step {
        let bp = regs.get(RBP);
        let mut flags = if bp.is_some() { KNOWS_BP } else { 0 };
        let mut bp_words = 0;
        match rule.kind() {
            Kind::Frame => {
                let (place, words) = rule.bp_place();
                flags |= match place {
                    BpPlace::Same => KEEPS_BP,
                    BpPlace::Framed => LOADS_BP,
                    BpPlace::Elsewhere => 0,
                };
                bp_words = words.into();
                match rule.cfa_from() {
                    Some(RBP) => flags |= USES_BP,
                    Some(_) => {}
                    None => flags |= OPAQUE,
                }
            }
            Kind::Root => {}
            Kind::Signal | Kind::Unknown => flags |= OPAQUE,
        }
        if next != Next::MayShare || regs.is_exact() {
            flags |= OPAQUE;
        }
        Step { sp: regs.sp(), pc: regs.pc(), bp: bp.unwrap_or(0), bp_words, flags }
    }

    fn is(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

impl<const D: usize> Trail<D> {
    /// Nothing met yet.
    pub const fn new() -> Self {
        Self {
            kept: [Step::NONE; D],
            len: 0,
            clear: 0,
            generation: 0,
            next: 0,
            matched: false,
            fresh: [Step::NONE; D],
            fresh_len: 0,
        }
    }

    /// The next walk goes all the way: another thread has the slot, or the caller has lost what belongs to the frames.
    pub fn forget(&mut self) {
        self.len = 0;
        self.clear = 0;
    }

    /// How many frames, the outermost ones, the next walk may leave out at most.
    pub fn shareable(&self) -> usize {
        self.clear
    }

    /// Whether the frames outside of `at` are where they were; if not, the first that is not.
    fn stands(&self, at: usize, stack: &mut Stack) -> Result<(), usize> {
        let Some((outer, [inner, ..])) = self.kept.split_at_checked(at) else { return Err(0) };
        let mut inner = inner;
        for (i, step) in outer.iter().enumerate().rev() {
            if stack.read(step.sp.wrapping_sub(8)) != Some(step.pc) {
                return Err(i);
            }
            if step.is(NEEDS_BP)
                && inner.is(LOADS_BP)
                && stack.read(step.sp.wrapping_add_signed(8 * i64::from(inner.bp_words))) != Some(step.bp)
            {
                return Err(i);
            }
            inner = step;
        }
        Ok(())
    }

    /// Adds the next inner frame.
    fn push(&mut self, mut step: Step) -> bool {
        let outer = self.len.checked_sub(1).and_then(|i| self.kept.get(i));
        let wanted = outer.is_some_and(|outer| outer.is(NEEDS_BP));
        if step.is(USES_BP) || (step.is(KEEPS_BP) && wanted) {
            step.flags |= NEEDS_BP;
        }
        let found = !wanted || step.is(KEEPS_BP | LOADS_BP);
        if !found || (step.is(NEEDS_BP) && !step.is(KNOWS_BP)) {
            step.flags |= OPAQUE;
        }
        let Some(place) = self.kept.get_mut(self.len) else { return false };
        if self.clear == self.len && !step.is(OPAQUE) {
            self.clear += 1;
        }
        *place = step;
        self.len += 1;
        true
    }
}

impl<const D: usize> Default for Trail<D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const D: usize> Keeper for Trail<D> {
    fn begin(&mut self) {
        let generation = cache::generation();
        if self.generation != generation {
            self.generation = generation;
            self.forget();
        }
        self.next = self.clear;
        self.fresh_len = 0;
        self.matched = false;
    }

    #[inline(always)]
    fn knows(&mut self, regs: &Regs, stack: &mut Stack) -> bool {
        if regs.is_exact() {
            return false;
        }
        while let Some(at) = self.next.checked_sub(1) {
            let Some(step) = self.kept.get(at) else { break };
            if step.sp > regs.sp() {
                break;
            }
            if step.sp < regs.sp() || step.pc != regs.pc() {
                self.next = at;
                continue;
            }
            if step.is(NEEDS_BP) && regs.get(RBP) != Some(step.bp) {
                self.next = at;
                break;
            }
            match self.stands(at, stack) {
                Ok(()) => {
                    self.matched = true;
                    return true;
                }
                Err(changed) => self.next = changed,
            }
        }
        false
    }

    #[inline(always)]
    fn met(&mut self, regs: &Regs, rule: Packed, next: Next) {
        if next == Next::VisitAll {
            self.next = 0;
        }
        if let Some(place) = self.fresh.get_mut(self.fresh_len) {
            *place = Step::new(regs, rule, next);
        }
        // Beyond `D` when there is no room, which `end` sees.
        self.fresh_len += 1;
    }

    /// How many of the outermost frames were not visited, being those of the last walk.
    fn end(&mut self, stop: Stop) -> usize {
        let shared = if self.matched { self.next } else { 0 };
        if !(self.matched || stop == Stop::Root) || self.fresh_len > D {
            self.forget();
            return shared;
        }
        self.len = shared;
        self.clear = self.clear.min(shared);
        for i in (0..self.fresh_len).rev() {
            let Some(&step) = self.fresh.get(i) else { break };
            if !self.push(step) {
                self.forget();
                break;
            }
        }
        shared
    }
}
