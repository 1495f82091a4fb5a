//! Tasks that nobody waits for, and the same task on every thread.

use crate::join::Unwound;
use crate::scope::run_task;
use crate::{real, site};
use core::any::type_name;
use core::panic::Location;
use span_rt::Local;
use span_rt::local::{self, Running};
use spandag::task::Seed;

/// Where a task starts that is spawned here and ends with the program.
pub(crate) fn seed(at: &'static Location<'static>, closure: &'static str) -> (*mut Running, Seed) {
    let here = Local::here();
    let current = here.pause();
    // SAFETY: it is this thread's current task, just paused.
    let running = unsafe { &mut *current };
    let site = site::find(here, running, at, closure, 0);
    let entry = here.enter(running.task.entry.context, site);
    let costs = (local::burden(), local::scale());
    here.count_forks(2);
    let body = local::is_root(current);
    let way = running.way_of_child(4);
    running.task.strands += 1;
    let mut seed = running.task.seed((site, entry), local::PROGRAM, 0, body, costs, here.arena());
    seed.way = way;
    (current, seed)
}

#[track_caller]
pub fn spawn<F: FnOnce() + Send + 'static>(f: F) {
    let (current, seed) = seed(Location::caller(), type_name::<F>());
    let _unwound = Unwound(current);
    let task = seed.task();
    real::spawn(move || run_task(task, f, local::gather));
}

#[track_caller]
pub fn spawn_fifo<F: FnOnce() + Send + 'static>(f: F) {
    let (current, seed) = seed(Location::caller(), type_name::<F>());
    let _unwound = Unwound(current);
    let task = seed.task();
    real::spawn_fifo(move || run_task(task, f, local::gather));
}

#[cfg(not(lacks_broadcast))]
#[track_caller]
pub fn broadcast<OP, R>(op: OP) -> Vec<R>
where
    OP: Fn(real::BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    broadcast_by(Location::caller(), type_name::<OP>(), |f| real::broadcast(f), op)
}

/// Broadcasts with the real crate's function for the global or for one pool.
#[cfg(not(lacks_broadcast))]
pub(crate) fn broadcast_by<OP, R>(
    at: &'static Location<'static>,
    closure: &'static str,
    real: impl FnOnce(&(dyn Fn(real::BroadcastContext<'_>) -> R + Sync)) -> Vec<R>,
    op: OP,
) -> Vec<R>
where
    OP: Fn(real::BroadcastContext<'_>) -> R + Sync,
    R: Send,
{
    crate::scope::gathered(at, closure, |run| {
        real(&|context| {
            let mut context = Some(context);
            let mut result = None;
            run(&mut || result = context.take().map(&op));
            match result {
                Some(result) => result,
                None => unreachable!("a task runs its closure once"),
            }
        })
    })
}

#[cfg(not(lacks_broadcast))]
#[track_caller]
pub fn spawn_broadcast<OP>(op: OP)
where
    OP: Fn(real::BroadcastContext<'_>) + Send + Sync + 'static,
{
    let (current, seed) = seed(Location::caller(), type_name::<OP>());
    let _unwound = Unwound(current);
    real::spawn_broadcast(move |context| run_task(seed.task(), || op(context), local::gather));
}
