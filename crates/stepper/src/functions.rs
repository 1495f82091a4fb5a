//! Counts by function, by the plainest means: after every instruction each function that has an activation on the
//! thread's stack gets one more in total.
//!
//! An activation starts at a call, at a handler, or where the program starts; it ends at the return that finds its
//! return address. A jump to another function makes its activation that function's. Activations whose return address
//! lies below the stack pointer, when control arrives elsewhere, were left by longjmp or an exception. A jump through a
//! table of addresses (a PLT entry) is no function that is called.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl};
use nix::unistd::Pid;
use serde::Serialize;
use symbols::{Epoch, Options, ProcessAddr, ProcessMap, Symbolizer};

/// What one function did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCounts {
    /// Its name.
    pub name: String,
    /// Entered by a call, a handler's start, or a jump to its first instruction.
    pub calls: u64,
    /// Instructions of its own.
    pub instructions_self: u64,
    /// Instructions while it had an activation.
    pub instructions_total: u64,
}

/// A place in a function: number, and whether it is its first instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    function: usize,
    entry: bool,
}

/// One thread's activations: where the return address lies, and whose.
#[derive(Default)]
pub struct Stack(Vec<(u64, usize)>);

/// Whose an activation is while a table of addresses is jumped through.
const NOBODY: usize = usize::MAX;

/// The registers that matter, before or after an instruction.
#[derive(Clone, Copy)]
pub struct At {
    /// Where it is.
    pub pc: u64,
    /// The stack pointer.
    pub sp: u64,
}

/// Everything known of functions.
pub struct Functions {
    pid: Pid,
    symbolizer: Symbolizer,
    map: ProcessMap,
    places: BTreeMap<u64, Place>,
    numbers: BTreeMap<(String, u64), usize>,
    counts: Vec<FunctionCounts>,
}

impl Functions {
    /// Of a process that has not run yet.
    pub fn new(pid: Pid) -> Functions {
        let symbolizer = Symbolizer::new(Arc::new(symbols::fs::Disk), Options::default());
        Functions {
            pid,
            symbolizer,
            map: ProcessMap::default(),
            places: BTreeMap::new(),
            numbers: BTreeMap::new(),
            counts: Vec::new(),
        }
    }

    fn place(&mut self, pc: u64) -> Place {
        if let Some(place) = self.places.get(&pc) {
            return *place;
        }
        let addr = ProcessAddr(pc);
        if self.map.at(addr, Epoch::START).is_none() {
            let text = std::fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default();
            self.map = ProcessMap::from_maps_text(&text).0;
        }
        let object = self.map.at(addr, Epoch::START).map_or_else(String::new, Symbolizer::place_name);
        let located = self.symbolizer.locate(&self.map, addr, Epoch::START);
        let found = located.as_ref().and_then(|l| l.function());
        let (name, key) = match &found {
            Some(f) => (f.name.readable().to_owned(), f.entry.0),
            None => (format!("[{object}]"), u64::MAX),
        };
        let entry = found.is_some_and(|f| located.is_some_and(|l| l.addr == f.entry));
        let next = self.counts.len();
        let function = *self.numbers.entry((object, key)).or_insert(next);
        if function == next {
            self.counts.push(FunctionCounts { name, ..FunctionCounts::default() });
        }
        let place = Place { function, entry };
        self.places.insert(pc, place);
        place
    }

    /// The program starts here.
    pub fn start(&mut self, stack: &mut Stack, pc: u64) {
        self.enter(stack, pc, u64::MAX);
    }

    /// A handler starts here, with its return address at the stack pointer.
    pub fn handler(&mut self, stack: &mut Stack, at: At) {
        self.enter(stack, at.pc, at.sp);
    }

    fn enter(&mut self, stack: &mut Stack, pc: u64, slot: u64) {
        let function = self.place(pc).function;
        self.counts[function].calls += 1;
        stack.0.push((slot, function));
    }

    /// The instruction `bytes` was executed, from `before` to `after`; `after` is `None` when it ended the thread.
    /// `ahead` are the bytes at the new place.
    pub fn executed(&mut self, stack: &mut Stack, bytes: &[u8], before: At, after: Option<(At, &[u8])>) {
        let own = self.place(before.pc).function;
        self.counts[own].instructions_self += 1;
        let active: BTreeSet<usize> = stack.0.iter().map(|a| a.1).filter(|f| *f != NOBODY).collect();
        for f in active {
            self.counts[f].instructions_total += 1;
        }
        let Some((at, ahead)) = after else { return };
        let ins = Decoder::with_ip(64, bytes, before.pc, DecoderOptions::NONE).decode();
        match ins.flow_control() {
            FlowControl::Call | FlowControl::IndirectCall if ins.code() != Code::Syscall => {
                if is_forwarder(ahead) {
                    stack.0.push((at.sp, NOBODY)); // until its jump arrives
                } else {
                    self.enter(stack, at.pc, at.sp);
                }
            }
            FlowControl::Return => {
                leave(stack, before.sp);
                self.arrive(stack, at);
            }
            // The return from a handler goes anywhere.
            FlowControl::Call if ins.code() == Code::Syscall && at.pc != ins.next_ip() => {
                self.arrive(stack, at);
            }
            FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
                if ins.flow_control() != FlowControl::ConditionalBranch || at.pc != ins.next_ip() =>
            {
                let to = self.place(at.pc);
                let forwarding = stack.0.last() == Some(&(at.sp, NOBODY));
                let other = own != to.function || ins.flow_control() == FlowControl::IndirectBranch;
                if forwarding {
                    stack.0.pop();
                    self.enter(stack, at.pc, at.sp);
                } else if is_forwarder(ahead) {
                    leave(stack, at.sp);
                    stack.0.push((at.sp, NOBODY));
                } else if other {
                    self.arrive(stack, at);
                }
            }
            _ => {}
        }
    }

    /// Control is at a place that may be another function's than the activation's.
    fn arrive(&mut self, stack: &mut Stack, at: At) {
        let to = self.place(at.pc);
        if stack.0.last().is_some_and(|top| top.1 == to.function) {
            return;
        }
        drop_below(stack, at.sp);
        let slot = match stack.0.last() {
            Some(&(_, function)) if function == to.function => return,
            Some(&(slot, _)) => slot,
            None if to.entry => u64::MAX,
            None => return,
        };
        stack.0.pop();
        self.counts[to.function].calls += u64::from(to.entry);
        stack.0.push((slot, to.function));
    }

    /// All functions that did anything.
    pub fn report(&self) -> Vec<FunctionCounts> {
        let mut all: Vec<FunctionCounts> = self.counts.clone();
        for f in &mut all {
            // A function that is only ever run into has no activations of its own.
            f.instructions_total = f.instructions_total.max(f.instructions_self);
        }
        all.retain(|f| f.instructions_self > 0 || f.calls > 0);
        all
    }
}

fn drop_below(stack: &mut Stack, sp: u64) {
    while stack.0.last().is_some_and(|top| top.0 < sp) {
        stack.0.pop();
    }
}

fn leave(stack: &mut Stack, slot: u64) {
    if stack.0.last().is_none_or(|top| top.0 != slot) {
        drop_below(stack, slot);
    }
    if stack.0.last().is_some_and(|top| top.0 == slot) {
        stack.0.pop();
    }
}

/// Whether the code is nothing but a jump through a table of addresses.
fn is_forwarder(code: &[u8]) -> bool {
    let code = code.strip_prefix(&[0xf3, 0x0f, 0x1e, 0xfa]).unwrap_or(code);
    let code = code.strip_prefix(&[0xf2]).unwrap_or(code);
    code.starts_with(&[0xff, 0x25])
}
