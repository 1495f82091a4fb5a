//! Calls between forks, where time is measured: samples inside strands say which calls the time went to.
//!
//! A library beside us takes them (`strand-rt`), if the tool has preloaded it: while a strand runs, its thread's word holds
//! the stack address above which frames belong to other tasks, and every period of CPU time one chain of calls is counted
//! in the thread's log. When a strand ends, its cost is divided among its samples, and what each sample was doing becomes
//! part of the profile under a site of its own: *this call, in this task's strands*. Most strands are too short to be
//! sampled at all, so the tool divides a task site's own time by all of its samples (`span-kit`'s `sampled.rs`); what is
//! given away here only says where on the paths the samples lie.
//!
//! What a sample takes from its strand is measured at the start, and taken off.
//!
//! The layouts are those of the tool's `wire::strand`.

use crate::env::{Cost, settings};
use crate::sites::{self, Key};
use crate::{calls, libc, local};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use spandag::dump::{Kind, Place};
use spandag::{Measure, Record, Site};

const VERSION: u64 = 2;
const ENTRIES_MAX: usize = 256;

/// `wire::strand::StrandLog`.
#[repr(C)]
pub struct StrandLog {
    /// Samples of the strand.
    pub taken: u64,
    len: u64,
    /// Samples that found no room.
    pub lost: u64,
    entries: [Entry; ENTRIES_MAX],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    chain: *const Chain,
    count: u64,
}

#[repr(C)]
struct Chain {
    hash: u64,
    len: u64,
    calls: [Call; 0],
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Call {
    function: u64,
    site: u64,
}

/// `wire::strand::INSIDE_MAX`.
pub const INSIDE_MAX: usize = 64;

/// `wire::strand::Inside`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Inside {
    /// What was called, by its place in the table.
    pub function: u64,
    /// Where it returns to.
    pub site: u64,
    /// Where that address lies.
    pub frame: u64,
}

/// `farsight_strand_inside`, if there are samples.
static WALK: AtomicPtr<core::ffi::c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The calls of the program's own functions that this thread is in below `base`, up to the body of a task, the innermost
/// first.
pub fn calls_around(base: usize, room: &mut [Inside; INSIDE_MAX]) -> &[Inside] {
    let walk = WALK.load(Ordering::Relaxed);
    if walk.is_null() {
        return &[];
    }
    // SAFETY: the function of that name has this type, and writes no more than there is room for.
    let len = unsafe {
        let walk: extern "C" fn(u64, *mut Inside) -> usize = core::mem::transmute(walk);
        walk(base as u64, room.as_mut_ptr())
    };
    &room[..len.min(INSIDE_MAX)]
}

struct Nobody(StrandLog);
// SAFETY: never written to.
unsafe impl Sync for Nobody {}

/// The log of threads that nobody samples.
static NOBODY: Nobody = Nobody(StrandLog {
    taken: 0,
    len: 0,
    lost: 0,
    entries: [Entry { chain: core::ptr::null(), count: 0 }; ENTRIES_MAX],
});

/// What a sample takes from its strand, in ticks; 0 if there are none.
static COST: AtomicU64 = AtomicU64::new(0);

/// What a sample takes from its strand, in ticks; 0 if there are none.
pub fn cost() -> u64 {
    COST.load(Ordering::Relaxed)
}

fn find(name: &core::ffi::CStr) -> *mut core::ffi::c_void {
    // SAFETY: a null handle asks all that is loaded.
    unsafe { libc::dlsym(core::ptr::null_mut(), name.as_ptr()) }
}

/// Asks for samples, if whoever takes them is there. To be called once, before the program's tasks start.
pub fn start() {
    if settings().cost != Cost::Time || settings().whole || settings().out.is_none() {
        return;
    }
    let ask = find(c"farsight_strand_ask");
    let Some(table) = (!ask.is_null()).then(calls::table).flatten() else { return };
    // SAFETY: the function of that name has this type, and the table is never freed.
    let cost = unsafe {
        let ask: extern "C" fn(u64, *const [u64; 2], usize) -> u64 = core::mem::transmute(ask);
        ask(VERSION, table.as_ptr(), table.len())
    };
    COST.store(cost, Ordering::Relaxed);
    if cost != 0 {
        WALK.store(find(c"farsight_strand_inside"), Ordering::Relaxed);
    }
    local::Local::here().be_sampled();
}

impl StrandLog {
    /// That of nobody.
    pub fn nobody() -> *mut StrandLog {
        (&raw const NOBODY.0).cast_mut()
    }

    /// That of the calling thread, whose word is `word`.
    pub fn of_thread(word: *const u64) -> *mut StrandLog {
        let thread = find(c"farsight_strand_thread");
        if cost() == 0 || thread.is_null() {
            return Self::nobody();
        }
        // SAFETY: the function of that name has this type; the word is part of what is never freed.
        let log = unsafe {
            let thread: extern "C" fn(*const u64) -> *mut StrandLog = core::mem::transmute(thread);
            thread(word)
        };
        if log.is_null() { Self::nobody() } else { log }
    }

    /// Empties it: every call that a sample of a strand of `task` was in, and what that adds to its site. `cost` is what
    /// the strand cost.
    pub fn drain(&mut self, task: Site, cost: u64, mut each: impl FnMut(Site, &Record)) {
        let entries = &self.entries[..(self.len as usize).min(ENTRIES_MAX)];
        let samples: u64 = entries.iter().map(|e| e.count).sum();
        for entry in entries {
            let share = (u128::from(cost) * u128::from(entry.count) / u128::from(samples.max(1))) as u64;
            // SAFETY: chains are never freed, and have room for as many calls as they say.
            let calls = unsafe {
                let chain = entry.chain;
                core::slice::from_raw_parts((&raw const (*chain).calls).cast::<Call>(), (*chain).len as usize)
            };
            if calls.is_empty() {
                // The task's own code: known by number, costs nothing.
                let local = Measure { count: entry.count, ..Measure::default() };
                each(site(task, None), &Record { local, ..Record::default() });
            }
            let all = Measure { count: entry.count, work: share, span: share };
            for (n, call) in calls.iter().enumerate() {
                // Recursion counts once, for the innermost call from a place.
                if !calls[..n].contains(call) {
                    let local = if n == 0 { all } else { Measure::default() };
                    each(site(task, Some(call)), &Record { site: all, caller: all, local });
                }
            }
        }
        self.len = 0;
        self.taken = 0;
    }
}

/// The site of a call in strands of `task`; without a call, of these strands' own code.
fn site(task: Site, call: Option<&Call>) -> Site {
    let key = call.map_or((0, 0), |c| (c.function + 1, c.site));
    sites::site(Key::Sampled(task, key), || Place {
        kind: Kind::Sampled(task),
        callee: call.and_then(|c| calls::name(c.function)).unwrap_or_default(),
        stack: call.map(|c| c.site).into_iter().collect(),
        ..Place::default()
    })
}
