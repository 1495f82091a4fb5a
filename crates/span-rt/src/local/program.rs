//! The task of the whole program, and what all threads measured when it is over.

use super::{ALL, Local, Running, STOP, Shared, follow, is_whole, mode, scale};
use crate::env::{Cost, settings};
use crate::{calls, clock, repeat, sites};
use core::sync::atomic::{AtomicPtr, Ordering, fence};
use spandag::task::{Books, Gather, Opened, Outcome, Spawned};
use std::sync::{Mutex, Once, PoisonError};
static ROOT: AtomicPtr<Running> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that the program's task belongs to.
static ROOT_HOME: AtomicPtr<Local> = AtomicPtr::new(core::ptr::null_mut());
static ROOT_SCOPE: Mutex<Option<(Gather, Option<Opened>)>> = Mutex::new(None);

/// The scope that stands for the whole program: what is spawned and never waited for ends in it.
pub const PROGRAM: usize = 1;

/// Starts the clock and the task of the whole program, on the main thread. Later calls do nothing.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        clock::start();
        clock::choose();
        repeat::choose();
        mode::choose();
        if settings().cost == Cost::Time {
            mode::BURDEN.store(clock::ticks(settings().burden_ns), Ordering::Relaxed);
        } else {
            mode::BURDEN.store(settings().burden_ns, Ordering::Relaxed);
        }
        mode::rescale(1);
        crate::watch::start();
        calls::start();
        follow::start();
        let here = Local::here();
        let mut root = Box::new(Running::followed(sites::root(), here.stack_top));
        root.task.way = 1;
        root.task.on(here.arena());
        ROOT_HOME.store(core::ptr::from_ref(here).cast_mut(), Ordering::Release);
        let opened = root.task.open(PROGRAM, scale(), here.arena());
        *ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner) = Some((Gather::default(), Some(opened)));
        let root = Box::into_raw(root);
        ROOT.store(root, Ordering::Release);
        here.refresh();
        // From here on: what was prepared above is ours.
        here.resume(root);
    });
}

/// Whether this is the task of the whole program.
pub fn is_root(running: *const Running) -> bool {
    core::ptr::eq(running, ROOT.load(Ordering::Acquire))
}

/// A task ends that nobody waits for.
pub fn gather(outcome: Spawned) {
    if let Some((gather, _)) = &mut *ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner) {
        gather.add(outcome, 0, scale(), Local::here().arena());
    }
}

/// What all threads measured, once the program is over.
pub struct Collected {
    /// The totals.
    pub totals: spandag::serial::Totals,
    /// Threads that took part.
    pub threads: usize,
    /// Strands whose clock was repaired, and the ticks taken off.
    pub repaired: (u64, u64),
    /// Whether preemptions were seen.
    pub sees_preemption: bool,
    /// Instructions were to be counted, and nobody did.
    pub misses_engine: bool,
    /// The program ended while the main task was waiting.
    pub cut_short: bool,
    /// Samples of strands that found no room.
    pub samples_lost: u64,
    /// Calls that did.
    pub calls_dropped: u64,
    /// Some tasks forked, and the calls that they were in were not looked at.
    pub skipped: bool,
}

/// Ends the program's task and adds up. Nothing is recorded after it.
pub fn collect() -> Option<Collected> {
    const MEMBARRIER: i64 = 324;
    const REGISTER: i64 = 16;
    const EXPEDITED: i64 = 8;
    let here = Local::here();
    let root = ROOT.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if root.is_null() {
        return None;
    }
    let cut_short = here.current.get() != root;
    if !cut_short {
        here.pause();
        here.current.set(core::ptr::null_mut());
    }
    // SAFETY: made by `start`; taken out of `ROOT`, so only once. If the main task is waiting in a call that will
    // never return, nobody looks at it any more.
    let mut running = *unsafe { Box::from_raw(root) };
    let scale = scale();
    // SAFETY: locals are never freed. If this is another thread than the program's, that one is waiting or will never
    // come back.
    let home = unsafe { &*ROOT_HOME.load(Ordering::Acquire) };
    home.all_calls_return(&mut running);
    if let Some((gather, Some(opened))) = ROOT_SCOPE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        running.task.close(opened, gather, scale, home.arena());
    }
    let outcome = home.end_apart(&mut running.task);
    STOP.store(true, Ordering::SeqCst);
    fence(Ordering::SeqCst);
    // SAFETY: no memory is involved.
    unsafe {
        crate::libc::syscall(MEMBARRIER, REGISTER, 0i64, 0i64);
        crate::libc::syscall(MEMBARRIER, EXPEDITED, 0i64, 0i64);
    }
    let mut all = Books::default();
    let (mut repaired, mut lost, mut samples_lost, mut calls_dropped) = (0, 0, 0, 0);
    let mut skipped = false;
    let locals = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    for Shared(local) in &*locals {
        // SAFETY: locals are never freed.
        let local = unsafe { &**local };
        let mut patience = 1_000_000;
        while local.busy.load(Ordering::Acquire) && patience > 0 {
            core::hint::spin_loop();
            patience -= 1;
        }
        if patience > 0 {
            // SAFETY: its thread is not in its books, and will not open them again: it sees `STOP`.
            all.merge(unsafe { &*local.books.get() });
            let places = local.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.values().flat_map(|place| &place.sides).for_each(|tally| tally.settle(&mut all));
            all.halves += 2 * local.plain_forks.get();
        }
        skipped |= follow::is_on() && local.skipped.get();
        repaired += local.clock.repaired.get();
        lost += local.clock.lost.get();
        // SAFETY: logs are never freed; a word that is being written is as good before as after.
        samples_lost += unsafe { (&raw const (*local.samples.get()).lost).read_volatile() };
        // SAFETY: as above.
        calls_dropped += unsafe { local.calls.as_ref() }.map_or(0, |log| log.dropped);
    }
    let mut totals = Outcome::from(outcome).totals(all, sites::COUNT.load(Ordering::Relaxed), home.arena());
    if is_whole() {
        totals.only_whole();
    }
    Some(Collected {
        threads: locals.len(),
        totals,
        repaired: (repaired, lost),
        sees_preemption: here.clock.sees_preemption(),
        misses_engine: here.clock.misses_engine(),
        cut_short,
        samples_lost,
        calls_dropped,
        skipped,
    })
}
