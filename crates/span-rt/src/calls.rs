//! Calls between forks, where instructions are counted: the engine adds them up by place, and they become call sites.
//!
//! The tool names the functions of the program that matter in a file ([`FUNCTIONS`]); the engine is given their addresses
//! once, and in each thread a log. When a strand ends, the calls that it made and that have returned are in the log: they
//! are taken off the task's own strand and become what they are, invocations of a call site. A call that has not returned
//! then, because it forks, is a task of its own from there on, inside of the one that made it ([`Suspended`]): it gets
//! what the strand did inside of it, its forks are its children, and when it returns, in a later strand, its caller goes on.
//!
//! The layouts and numbers are those of the tool's `wire::running`.

use crate::sites::{self, Key};
use crate::{Local, clock};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use spandag::dump::{Kind, Place};
use spandag::task::Task;
use spandag::{Entry, Measure, Record, Site};
use std::sync::OnceLock;

/// Names a file: `pie` or `fixed`, then a line for each function with start, end (hexadecimal, as linked) and name. A line
/// of a function that is the body of tasks, which ends chains of calls, starts with an exclamation mark.
pub const FUNCTIONS: &str = "FARSIGHT_SPAN_FUNCTIONS";

/// `wire::running::CALLS_MAX`.
pub const CALLS_MAX: usize = 1 << 14;
/// `wire::strand::BODY`.
const BODY: u64 = 1 << 63;

/// `wire::running::CallLog`.
#[repr(C)]
pub struct CallLog {
    len: u64,
    open: u64,
    settled: u64,
    /// Calls that found no room.
    pub dropped: u64,
    calls: [Call; CALLS_MAX],
}

/// `wire::running::state`.
mod state {
    pub const OPEN: u64 = 0;
    pub const KEPT: u64 = 1;
    pub const RETURNED: u64 = 2;
    pub const ENDED: u64 = 3;
}

/// `wire::running::Call`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Call {
    function: u64,
    site: u64,
    /// Where its return address lies.
    pub frame: u64,
    state: u64,
    link: u64,
    begun: u64,
    inside: u64,
    count: u64,
    top: u64,
    own: u64,
    all: u64,
}

/// A task that waits for a call which it made, on the same stack.
pub struct Suspended {
    /// The task.
    pub task: Task,
    /// Where the call's return address lies, and on whose stack.
    pub frame: u64,
    /// See `frame`; only compared.
    pub home: *const Local,
}

/// What a strand of a task did, in order.
pub enum Event<'a> {
    /// This much of the strand was spent inside the innermost call, these calls included; then it returned.
    Returns(u64, &'a [Call]),
    /// This much was spent, these calls included; then this call was made, which goes on.
    Enters(u64, &'a [Call], &'a Call),
    /// The rest, these calls included.
    Rest(u64, &'a [Call]),
}

struct Functions {
    /// Start and end, in order. The engine reads it.
    table: Vec<[u64; 2]>,
    names: Vec<String>,
}

static ON: AtomicBool = AtomicBool::new(false);

/// Whether calls are told of.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn functions() -> Option<&'static Functions> {
    static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
    FOUND.get_or_init(read).as_ref()
}

fn read() -> Option<Functions> {
    let text = std::fs::read_to_string(std::env::var_os(FUNCTIONS)?).ok()?;
    let mut lines = text.lines();
    let base = if lines.next()? == "pie" { base()? } else { 0 };
    let mut found = Functions { table: Vec::new(), names: Vec::new() };
    for line in lines {
        let (line, mark) = line.strip_prefix('!').map_or((line, 0), |body| (body, BODY));
        let mut words = line.splitn(3, ' ');
        let mut address = || u64::from_str_radix(words.next()?, 16).ok();
        let (Some(start), Some(end)) = (address(), address()) else { continue };
        found.table.push([base + start, (base + end) | mark]);
        found.names.push(words.next().unwrap_or_default().to_owned());
    }
    (!found.table.is_empty()).then_some(found)
}

/// Start and end of the functions that matter, if there is a list.
pub fn table() -> Option<&'static [[u64; 2]]> {
    functions().map(|f| f.table.as_slice())
}

/// The name of a function, by its place in the table.
pub fn name(function: u64) -> Option<String> {
    functions()?.names.get(function as usize).cloned()
}

/// The function that an address lies in, by its place in the table, if it is one of the program's own.
pub fn function_of(address: u64) -> Option<u64> {
    let table = table()?;
    let at = table.partition_point(|f| f[0] <= address).checked_sub(1)?;
    // The body of a task is none, and its end is a large number.
    let end = table[at][1];
    (address < end && end & BODY == 0).then_some(at as u64)
}

/// Where the executable lies.
fn base() -> Option<u64> {
    Some(extent()?.start)
}

/// From the start of the executable to its end.
fn extent() -> Option<Range<u64>> {
    let exe = std::env::current_exe().ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let mut lines = maps.lines().filter(|l| l.ends_with(exe.to_str().unwrap_or("\0")));
    let range = |line: &str| {
        let (start, end) = line.split(' ').next()?.split_once('-')?;
        Some(u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?)
    };
    let first = range(lines.next()?)?;
    Some(first.start..lines.filter_map(range).next_back().map_or(first.end, |last| last.end))
}

/// Whether an address lies in the executable.
pub fn is_ours(address: u64) -> bool {
    static EXTENT: OnceLock<Option<Range<u64>>> = OnceLock::new();
    EXTENT.get_or_init(extent).as_ref().is_some_and(|e| e.contains(&address))
}

/// Asks for calls, if there is a list of functions. To be called once the clock is chosen, before the program starts; later
/// calls do nothing.
pub fn start() {
    if is_on() || !clock::is_counted() || crate::local::is_whole() {
        return;
    }
    if let Some(functions) = functions() {
        let (table, len) = (functions.table.as_ptr() as i64, functions.table.len() as i64);
        // SAFETY: who answers keeps the address of what is never freed.
        unsafe { clock::ask_engine(*b"FSCALLED", table, len) };
        ON.store(true, Ordering::Relaxed);
    }
}

impl CallLog {
    /// For a thread; never freed, because the engine keeps its address. Memory is taken as it is used.
    pub fn leaked() -> *mut CallLog {
        // SAFETY: the layout has a size; words that may all be zero.
        unsafe { std::alloc::alloc_zeroed(std::alloc::Layout::new::<CallLog>()).cast() }
    }

    /// A strand starts, at `now`, of a task whose calls lie below `base`, the innermost that goes on at `innermost`. What was
    /// called since the last strand ended was nobody's.
    pub fn begin(&mut self, base: u64, innermost: Option<u64>, now: u64) {
        let mut len = (self.len as usize).min(CALLS_MAX);
        let lowest = innermost.unwrap_or(base);
        while len > 0 && (self.calls[len - 1].state != state::KEPT || self.calls[len - 1].frame < lowest) {
            len -= 1;
        }
        for call in self.calls[..len].iter_mut().rev().take_while(|c| c.frame < base) {
            (call.begun, call.inside) = (now, 0);
        }
        (self.len, self.open, self.settled) = (len as u64, len as u64, len as u64);
    }

    /// The strand ends: copies what it did to `copy`, and keeps what goes on; where the copy was. `keep`: also the calls
    /// that it made itself.
    fn end(&mut self, base: u64, keep: bool, copy: &mut Vec<Call>) -> usize {
        let len = (self.len as usize).min(CALLS_MAX);
        let first = self.calls[..len].partition_point(|c| c.frame >= base);
        copy.clear();
        copy.extend_from_slice(&self.calls[first..len]);
        let mut kept = first;
        for call in &*copy {
            if call.state == state::KEPT || (keep && call.state == state::OPEN) {
                self.calls[kept] = Call { state: state::KEPT, link: kept as u64, ..*call };
                kept += 1;
            }
        }
        (self.len, self.open, self.settled) = (kept as u64, kept as u64, kept as u64);
        first
    }

    /// The strand of a task that lies below `base` ends at `now` and has cost `cost`: what it did, in order. The innermost
    /// call of the task that it knows is at `known`, which says so of the next when asked again; one that the log does not
    /// have any more has returned.
    pub fn take(
        &mut self,
        (base, cost, now): (u64, u64, u64),
        keep: bool,
        copy: &mut Vec<Call>,
        mut known: impl FnMut() -> Option<u64>,
        mut each: impl FnMut(Event<'_>),
    ) {
        let first = self.end(base, keep, copy);
        let before = copy.iter().take_while(|c| matches!(c.state, state::KEPT | state::ENDED)).count();
        let (mut at, mut left, mut inner) = (before, cost, before);
        // What lies further out is on this stack as well, where a scope goes on.
        while let Some(frame) = known().filter(|&f| f < base) {
            match inner.checked_sub(1).map(|n| &copy[n]) {
                Some(call) if call.frame < frame => inner -= 1, // somebody else's
                Some(call) if call.frame == frame && call.state == state::KEPT => break,
                Some(call) if call.frame == frame => {
                    inner -= 1;
                    let until = (call.link as usize).saturating_sub(first).clamp(at, copy.len());
                    let calls = &copy[at..until];
                    let part = left.min(call.own + own(calls));
                    each(Event::Returns(part, calls));
                    (at, left) = (until, left - part);
                }
                _ => each(Event::Returns(0, &[])),
            }
        }
        while let Some(next) = copy[at..].iter().position(|c| keep && c.state == state::OPEN) {
            let call = &copy[at + next];
            let part = left.saturating_sub(now.wrapping_sub(call.begun));
            each(Event::Enters(part, &copy[at..at + next], call));
            (at, left) = (at + next + 1, left - part);
        }
        each(Event::Rest(left, &copy[at..]));
    }
}

/// Their own costs.
fn own(calls: &[Call]) -> u64 {
    returned(calls).map(|c| c.own).sum()
}

fn returned(calls: &[Call]) -> impl Iterator<Item = &Call> {
    calls.iter().filter(|c| c.state == state::RETURNED && c.count > 0)
}

/// Every place that was called from: its site, and what it adds to it. `enter` says what an invocation of the site means
/// where the task is.
pub fn add_up(calls: &[Call], mut enter: impl FnMut(Site) -> Entry, mut each: impl FnMut(Site, &Record)) {
    for call in returned(calls) {
        let site = site(call);
        let entry = enter(site);
        let all = Measure { count: call.top, work: call.all, span: call.all };
        let nothing = Measure::default();
        each(
            site,
            &Record {
                site: if entry.top_site { all } else { nothing },
                caller: if entry.top_caller { all } else { nothing },
                local: Measure { count: call.count, work: call.own, span: call.own },
            },
        );
    }
}

/// The site of a call.
pub fn site(call: &Call) -> Site {
    site_of(call.function, call.site)
}

/// The site of a call of a function, by its place in the table, from that place.
pub fn site_of(function: u64, place: u64) -> Site {
    sites::site(Key::Number(place << 1 | 1), || Place {
        kind: Kind::Call,
        callee: name(function).unwrap_or_default(),
        stack: vec![place],
        ..Place::default()
    })
}
