//! Scopes: any number of tasks, all of which have ended when the scope returns.
//!
//! The program's scope object is ours and lives in the frame of the function that opened it, because tasks outlive
//! the body; it points to the real one.

use crate::join::{Unwound, Waiting};
use crate::{real, site};
use core::any::type_name;
use core::cell::Cell;
use core::fmt;
use core::marker::PhantomData;
use core::mem::forget;
use core::panic::Location;
use span_rt::Local;
use span_rt::local::{self, Running};
use spandag::Cost;
use spandag::task::{Gather, Seed, Task};
use std::sync::{Mutex, PoisonError};

/// The part of a scope that does not depend on its kind.
pub(crate) struct Open {
    opened: Cost,
    owner: *mut Running,
    gather: Mutex<Gather>,
}

impl Open {
    fn id(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Where tasks start that the current task spawns here.
    fn seed(
        &self,
        here: &Local,
        at: &'static Location<'static>,
        closure: &'static str,
    ) -> (*mut Running, Seed) {
        let current = here.pause();
        // SAFETY: it is this thread's current task, just paused.
        let running = unsafe { &mut *current };
        let site = site::find(here, running, at, closure, 0);
        let entry = here.enter(running.task.entry.context, site);
        here.count_forks(2);
        let body = core::ptr::eq(current, self.owner);
        let costs = (local::burden(), local::scale());
        let way = running.way_of_child(3);
        running.task.strands += 1;
        let mut seed = running.task.seed((site, entry), self.id(), self.opened, body, costs, here.arena());
        seed.way = way;
        (current, seed)
    }

    /// Runs a task of this scope.
    fn run(&self, task: Task, f: impl FnOnce()) {
        run_task(task, f, |outcome| {
            let mut gather = self.gather.lock().unwrap_or_else(PoisonError::into_inner);
            gather.add(outcome, self.opened, local::scale(), Local::here().arena());
        });
    }
}

/// Runs a task that nobody waits for directly, and hands its outcome over, also when it unwinds.
pub(crate) fn run_task(task: Task, f: impl FnOnce(), done: impl FnOnce(spandag::task::Spawned)) {
    struct Finish<D: FnOnce(spandag::task::Spawned)>(Option<(Box<Running>, D)>);
    impl<D: FnOnce(spandag::task::Spawned)> Drop for Finish<D> {
        fn drop(&mut self) {
            let here = Local::here();
            if let Some((mut running, done)) = self.0.take() {
                here.pause();
                done(here.end_apart(&mut running.task));
            }
        }
    }
    let mark = 0u64;
    let base = core::ptr::from_ref(&mark) as usize;
    let mut running = Box::new(Running::followed(task, base));
    let here = Local::here();
    running.task.on(here.arena());
    let current = &raw mut *running;
    let _finish = Finish(Some((running, done)));
    here.resume(current);
    f();
}

/// Opens a scope for the current task, lets `real` run it, and closes it.
fn open<R>(real: impl FnOnce(&Open) -> R) -> R {
    let here = Local::here();
    let owner = here.pause_to_fork();
    let mut open = Open { opened: 0, owner, gather: Mutex::default() };
    // SAFETY: the current task, just paused.
    let opened = unsafe { (*owner).task.open(open.id(), local::scale(), here.arena()) };
    open.opened = opened.at();
    struct Close<'a>(&'a Open, Option<spandag::task::Opened>);
    impl Drop for Close<'_> {
        fn drop(&mut self) {
            let gather = core::mem::take(&mut *self.0.gather.lock().unwrap_or_else(PoisonError::into_inner));
            if let Some(opened) = self.1.take() {
                // SAFETY: all tasks of the scope have ended, and its body as well: the owner is ours again.
                unsafe { (*self.0.owner).task.close(opened, gather, local::scale(), Local::here().arena()) };
            }
            Local::here().resume(self.0.owner);
        }
    }
    let _close = Close(&open, Some(opened));
    real(&open)
}

/// Goes on with a task that waits, on this thread and this stack, until `f` has returned.
pub(crate) fn on_this_stack<R>(waiting: Waiting, f: impl FnOnce() -> R) -> R {
    struct Back(Waiting, usize, usize);
    impl Drop for Back {
        fn drop(&mut self) {
            let here = Local::here();
            here.pause();
            here.leave();
            // SAFETY: as below.
            let running = unsafe { &mut *self.0.0 };
            running.base = self.1;
            running.task.moved(local::scale(), here.arena(), self.2);
        }
    }
    let mark = 0u64;
    // SAFETY: the frame that holds the task waits for us, so that it is ours until we return.
    let running = unsafe { &mut *waiting.0 };
    let here = Local::here();
    // Whoever waits has added up its nodes: see `moved`.
    let floor = running.task.on(here.arena());
    let _back =
        Back(waiting, core::mem::replace(&mut running.base, core::ptr::from_ref(&mark) as usize), floor);
    here.resume(waiting.0);
    f()
}

/// A pointer that tasks may take along.
struct Everywhere<T>(*const T);
// SAFETY: what is pointed to is a scope, which may be used from any thread and outlives its tasks.
unsafe impl<T> Send for Everywhere<T> {}
impl<T> Clone for Everywhere<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Everywhere<T> {}
impl<T> Everywhere<T> {
    /// # Safety
    /// The scope must not have returned.
    unsafe fn get<'a>(self) -> &'a T {
        // SAFETY: see above.
        unsafe { &*self.0 }
    }
}

macro_rules! scope_kind {
    ($Scope:ident, $spawn:ident, $scope:ident, $in_place:ident) => {
        pub struct $Scope<'scope> {
            inner: Cell<*const real::$Scope<'scope>>,
            open: Everywhere<Open>,
            marker: PhantomData<real::$Scope<'scope>>,
        }

        // SAFETY: `inner` is written before any task exists; the rest may be shared if the real one may.
        unsafe impl<'scope> Sync for $Scope<'scope> where real::$Scope<'scope>: Sync {}
        // SAFETY: as above.
        unsafe impl<'scope> Send for $Scope<'scope> where real::$Scope<'scope>: Send {}

        impl fmt::Debug for $Scope<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.real().fmt(f)
            }
        }

        impl<'scope> $Scope<'scope> {
            fn real(&self) -> &real::$Scope<'scope> {
                // SAFETY: set before the body started, and alive until the scope returns.
                unsafe { &*self.inner.get() }
            }

            #[track_caller]
            pub fn $spawn<BODY>(&self, body: BODY)
            where
                BODY: FnOnce(&$Scope<'scope>) + Send + 'scope,
            {
                let here = Local::here();
                // SAFETY: `self` is alive, so the scope has not returned.
                let open = unsafe { self.open.get() };
                let (current, seed) = open.seed(here, Location::caller(), type_name::<BODY>());
                let me = Everywhere(core::ptr::from_ref(self));
                let unwound = Unwound(current);
                let task = seed.task();
                self.real().$spawn(move |_| {
                    // SAFETY: the scope waits for this task.
                    let me = unsafe { { me }.get() };
                    // SAFETY: as above.
                    unsafe { me.open.get() }.run(task, || body(me));
                });
                drop(unwound);
            }

            #[cfg(not(lacks_broadcast))]
            #[track_caller]
            pub fn spawn_broadcast<BODY>(&self, body: BODY)
            where
                BODY: Fn(&$Scope<'scope>, real::BroadcastContext<'_>) + Send + Sync + 'scope,
            {
                let here = Local::here();
                // SAFETY: `self` is alive, so the scope has not returned.
                let open = unsafe { self.open.get() };
                let (current, seed) = open.seed(here, Location::caller(), type_name::<BODY>());
                let me = EverywhereSync(Everywhere(core::ptr::from_ref(self)));
                let unwound = Unwound(current);
                self.real().spawn_broadcast(move |_, context| {
                    // SAFETY: the scope waits for these tasks.
                    let me = unsafe { { &me }.0.get() };
                    // SAFETY: as above.
                    unsafe { me.open.get() }.run(seed.task(), || body(me, context));
                });
                drop(unwound);
            }
        }

        #[track_caller]
        pub fn $scope<'scope, OP, R>(op: OP) -> R
        where
            OP: FnOnce(&$Scope<'scope>) -> R + Send,
            R: Send,
        {
            open(|o| {
                let slot = $Scope {
                    inner: Cell::new(core::ptr::null()),
                    open: Everywhere(core::ptr::from_ref(o)),
                    marker: PhantomData,
                };
                let (at, owner) = (Everywhere(core::ptr::from_ref(&slot)), Waiting(o.owner));
                real::$scope(move |s: &real::$Scope<'scope>| {
                    // SAFETY: the slot lives until the real scope has returned.
                    let slot = unsafe { { at }.get() };
                    slot.inner.set(s);
                    on_this_stack({ owner }, || op(slot))
                })
            })
        }

        #[cfg(not(lacks_in_place_scope))]
        pub fn $in_place<'scope, OP, R>(op: OP) -> R
        where
            OP: FnOnce(&$Scope<'scope>) -> R,
        {
            in_place(|f| real::$in_place(|s: &real::$Scope<'scope>| f(s)), op)
        }

        #[cfg(not(lacks_in_place_scope))]
        impl<'scope> InPlace<'scope> for $Scope<'scope> {
            type Real = real::$Scope<'scope>;
            fn slot(o: &Open) -> Self {
                $Scope {
                    inner: Cell::new(core::ptr::null()),
                    open: Everywhere(core::ptr::from_ref(o)),
                    marker: PhantomData,
                }
            }
            fn point(&self, real: &Self::Real) {
                self.inner.set(real);
            }
        }
    };
}

/// What the two kinds of scopes have in common when their body stays on this thread.
#[cfg(not(lacks_in_place_scope))]
pub(crate) trait InPlace<'scope>: Sized {
    type Real;
    fn slot(open: &Open) -> Self;
    fn point(&self, real: &Self::Real);
}

/// Opens a scope whose body stays on this thread; `real` calls the real function.
#[cfg(not(lacks_in_place_scope))]
pub(crate) fn in_place<'scope, S: InPlace<'scope>, OP, R>(
    real: impl FnOnce(&mut dyn FnMut(&S::Real)),
    op: OP,
) -> R
where
    OP: FnOnce(&S) -> R,
{
    open(|o| {
        let slot = S::slot(o);
        let mut op = Some(op);
        let mut result = None;
        real(&mut |s| {
            slot.point(s);
            let op = op.take();
            result = op.map(|op| on_this_stack(Waiting(o.owner), || op(&slot)));
        });
        match result {
            Some(result) => result,
            None => unreachable!("a scope runs its body once"),
        }
    })
}

scope_kind!(Scope, spawn, scope, in_place_scope);
scope_kind!(ScopeFifo, spawn_fifo, scope_fifo, in_place_scope_fifo);

/// The same for closures that run on several threads at once.
#[cfg(not(lacks_broadcast))]
struct EverywhereSync<T>(Everywhere<T>);
// SAFETY: as for `Everywhere`.
#[cfg(not(lacks_broadcast))]
unsafe impl<T> Send for EverywhereSync<T> {}
// SAFETY: as for `Everywhere`.
#[cfg(not(lacks_broadcast))]
unsafe impl<T> Sync for EverywhereSync<T> {}

/// Runs `real`, which calls its argument any number of times on any threads and waits for all: a scope whose tasks
/// all start where the current task stands.
#[cfg(not(lacks_broadcast))]
pub(crate) fn gathered<R>(
    at: &'static Location<'static>,
    closure: &'static str,
    real: impl FnOnce(&(dyn Fn(&mut dyn FnMut()) + Sync)) -> R,
) -> R {
    open(|o| {
        let here = Local::here();
        let owner = Waiting(o.owner);
        // SAFETY: `open` paused it, and it waits until `real` has returned.
        let running = unsafe { owner.task() };
        let site = site::find(here, running, at, closure, 0);
        let entry = here.enter(running.task.entry.context, site);
        let open = EverywhereSync(Everywhere(core::ptr::from_ref(o)));
        real(&move |f| {
            // SAFETY: the owner waits.
            let task = unsafe { { owner }.task() }.task.child(site, entry);
            Local::here().count_forks(2);
            // SAFETY: as above.
            unsafe { { &open }.0.get() }.run(task, f);
        })
    })
}

/// Keeps the state of the current task over a call that may run foreign tasks.
pub(crate) fn paused<R>(f: impl FnOnce() -> R) -> R {
    let unwound = Unwound(Local::here().pause());
    let result = f();
    drop(unwound);
    result
}

/// As [`paused`], with the task going on elsewhere meanwhile.
pub(crate) fn moved<R>(f: impl FnOnce(Waiting) -> R) -> R {
    let here = Local::here();
    let current = here.pause();
    // SAFETY: it was just paused, and is this thread's until `f` is called.
    unsafe { (*current).task.settle(local::scale(), here.arena()) };
    let unwound = Unwound(current);
    let result = f(Waiting(current));
    forget(unwound);
    Local::here().resume(current);
    result
}
