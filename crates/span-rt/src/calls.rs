//! Calls between forks, where instructions are counted: the engine adds them up by place, and they become call sites.
//!
//! The tool names the functions of the program that matter in a file ([`FUNCTIONS`]); the engine is given their addresses
//! once, and in each thread a log. When a strand ends, the calls that it made and that have returned are in the log: they
//! are taken off the task's own strand and become what they are, invocations of a call site. A call that has not returned
//! then, because the strand ended inside it, stays a part of the task: the forks in it are sites themselves.
//!
//! The layouts and numbers are those of the tool's `wire::running`.

use crate::sites::{self, Key};
use crate::{clock, libc};
use core::sync::atomic::{AtomicBool, Ordering};
use spandag::dump::{Kind, Place};
use spandag::{Entry, Measure, Record, Site};
use std::sync::OnceLock;

/// Names a file: `pie` or `fixed`, then a line for each function with start, end (hexadecimal, as linked) and name. A line
/// of a function that is the body of tasks, which ends chains of calls, starts with an exclamation mark.
pub const FUNCTIONS: &str = "FARSIGHT_SPAN_FUNCTIONS";

const CALLS_MAX: usize = 512;
/// `wire::strand::BODY`.
const BODY: u64 = 1 << 63;

/// `wire::running::CallLog`, and behind it a copy that the engine does not write to.
#[repr(C)]
pub struct CallLog {
    len: u64,
    calls: [Call; CALLS_MAX],
    copy: [Call; CALLS_MAX],
}

/// `wire::running::Call`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Call {
    function: u64,
    site: u64,
    frame: u64,
    begun: u64,
    inside: u64,
    count: u64,
    top: u64,
    own: u64,
    all: u64,
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

/// Where the executable lies.
fn base() -> Option<u64> {
    let exe = std::env::current_exe().ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|l| l.ends_with(exe.to_str().unwrap_or("\0")))?;
    u64::from_str_radix(line.split('-').next()?, 16).ok()
}

/// Asks for calls, if there is a list of functions. To be called once the clock is chosen, before the program starts.
pub fn start() {
    if !clock::is_counted() || crate::local::is_whole() {
        return;
    }
    if let Some(functions) = functions() {
        const NUMBER: i64 = 0xfa51;
        const TABLE: i64 = i64::from_le_bytes(*b"FSCALLED");
        let (table, len) = (functions.table.as_ptr() as i64, functions.table.len() as i64);
        // SAFETY: the kernel knows no such call; who answers keeps the address of what is never freed.
        unsafe { libc::syscall(NUMBER, TABLE, table, len) };
        ON.store(true, Ordering::Relaxed);
    }
}

impl CallLog {
    /// For a thread; never freed, because the engine keeps its address.
    pub fn leaked() -> *mut CallLog {
        Box::into_raw(Box::new(CallLog {
            len: 0,
            calls: [Call::default(); CALLS_MAX],
            copy: [Call::default(); CALLS_MAX],
        }))
    }

    /// Forgets what is in it.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Every place that was called from since it was cleared: its site, and what it adds to it. `enter` says what an
    /// invocation of the site means where the task is.
    pub fn drain(&mut self, mut enter: impl FnMut(Site) -> Entry, mut each: impl FnMut(Site, &Record)) {
        let len = (self.len as usize).min(CALLS_MAX);
        self.copy[..len].copy_from_slice(&self.calls[..len]);
        self.len = 0;
        for call in self.copy[..len].iter().filter(|c| c.frame == 0 && c.count > 0) {
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
}

fn site(call: &Call) -> Site {
    sites::site(Key::Number(call.site << 1 | 1), || Place {
        kind: Kind::Call,
        callee: name(call.function).unwrap_or_default(),
        stack: vec![call.site],
        ..Place::default()
    })
}
