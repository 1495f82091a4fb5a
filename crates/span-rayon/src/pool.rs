//! Thread pools and their builders: newtypes that pass everything on, so that pools give out our scopes and report
//! their tasks.

use crate::detached::seed;
use crate::join::Unwound;
use crate::scope::{moved, on_this_stack, paused, run_task};
use crate::{Scope, ScopeFifo, real, site};
use core::any::{Any, type_name};
use core::panic::Location;
use real::{ThreadBuilder, ThreadPoolBuildError};
use span_rt::env::settings;
use span_rt::{Local, local};
use std::error::Error;
use std::io;

/// As many threads as parallel iterators shall split for; the program itself is told the truth.
#[track_caller]
pub fn current_num_threads() -> usize {
    match settings().model_cores {
        Some(n) if asks_for_itself(Location::caller()) => n,
        _ => real::current_num_threads(),
    }
}

/// Whether a parallel iterator wants to know. To find out takes longer than what it does with the answer.
fn asks_for_itself(at: &'static Location<'static>) -> bool {
    Local::here().aside(|| site::is_rayon(at))
}

#[cfg(not(lacks_yield))]
pub fn yield_now() -> Option<real::Yield> {
    paused(real::yield_now)
}

#[cfg(not(lacks_yield))]
pub fn yield_local() -> Option<real::Yield> {
    paused(real::yield_local)
}

/// One pool. Has the layout of the real one, which `build_scoped` hands out by reference.
#[derive(Debug)]
#[repr(transparent)]
pub struct ThreadPool {
    inner: real::ThreadPool,
}

impl ThreadPool {
    pub fn new(configuration: Configuration) -> Result<ThreadPool, Box<dyn Error>> {
        real::ThreadPool::new(configuration.inner).map(|inner| ThreadPool { inner })
    }

    fn wrap(inner: &real::ThreadPool) -> &ThreadPool {
        // SAFETY: the layouts are the same.
        unsafe { &*core::ptr::from_ref(inner).cast() }
    }

    pub fn install<OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce() -> R + Send,
        R: Send,
    {
        moved(|task| self.inner.install(move || on_this_stack(task, op)))
    }

    #[cfg(not(lacks_broadcast))]
    #[track_caller]
    pub fn broadcast<OP, R>(&self, op: OP) -> Vec<R>
    where
        OP: Fn(real::BroadcastContext<'_>) -> R + Sync,
        R: Send,
    {
        let real = |f: &(dyn Fn(real::BroadcastContext<'_>) -> R + Sync)| self.inner.broadcast(f);
        crate::detached::broadcast_by(Location::caller(), type_name::<OP>(), real, op)
    }

    pub fn current_num_threads(&self) -> usize {
        self.inner.current_num_threads()
    }

    pub fn current_thread_index(&self) -> Option<usize> {
        self.inner.current_thread_index()
    }

    pub fn current_thread_has_pending_tasks(&self) -> Option<bool> {
        self.inner.current_thread_has_pending_tasks()
    }

    #[track_caller]
    pub fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        self.install(|| crate::join(a, b))
    }

    pub fn scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| crate::scope(op))
    }

    pub fn scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R + Send,
        R: Send,
    {
        self.install(|| crate::scope_fifo(op))
    }

    #[cfg(not(lacks_in_place_scope))]
    pub fn in_place_scope<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&Scope<'scope>) -> R,
    {
        crate::scope::in_place(|f| self.inner.in_place_scope(|s: &real::Scope<'scope>| f(s)), op)
    }

    #[cfg(not(lacks_in_place_scope))]
    pub fn in_place_scope_fifo<'scope, OP, R>(&self, op: OP) -> R
    where
        OP: FnOnce(&ScopeFifo<'scope>) -> R,
    {
        crate::scope::in_place(|f| self.inner.in_place_scope_fifo(|s: &real::ScopeFifo<'scope>| f(s)), op)
    }

    #[track_caller]
    pub fn spawn<OP: FnOnce() + Send + 'static>(&self, op: OP) {
        let (current, seed) = seed(Location::caller(), type_name::<OP>());
        let _unwound = Unwound(current);
        let task = seed.task();
        self.inner.spawn(move || run_task(task, op, local::gather));
    }

    #[track_caller]
    pub fn spawn_fifo<OP: FnOnce() + Send + 'static>(&self, op: OP) {
        let (current, seed) = seed(Location::caller(), type_name::<OP>());
        let _unwound = Unwound(current);
        let task = seed.task();
        self.inner.spawn_fifo(move || run_task(task, op, local::gather));
    }

    #[cfg(not(lacks_broadcast))]
    #[track_caller]
    pub fn spawn_broadcast<OP>(&self, op: OP)
    where
        OP: Fn(real::BroadcastContext<'_>) + Send + Sync + 'static,
    {
        let (current, seed) = seed(Location::caller(), type_name::<OP>());
        let _unwound = Unwound(current);
        self.inner.spawn_broadcast(move |context| run_task(seed.task(), || op(context), local::gather));
    }

    #[cfg(not(lacks_yield))]
    pub fn yield_now(&self) -> Option<real::Yield> {
        paused(|| self.inner.yield_now())
    }

    #[cfg(not(lacks_yield))]
    pub fn yield_local(&self) -> Option<real::Yield> {
        paused(|| self.inner.yield_local())
    }
}

/// How threads are started; cannot be named outside.
#[derive(Default)]
pub struct DefaultSpawn;
/// By the program's own function.
pub struct CustomSpawn<F>(F);

/// Builds with a way of starting threads; sealed.
pub trait ThreadSpawn {
    #[doc(hidden)]
    fn build(self, builder: real::ThreadPoolBuilder) -> Result<real::ThreadPool, ThreadPoolBuildError>;
    #[doc(hidden)]
    fn build_global(self, builder: real::ThreadPoolBuilder) -> Result<(), ThreadPoolBuildError>;
}

impl ThreadSpawn for DefaultSpawn {
    fn build(self, builder: real::ThreadPoolBuilder) -> Result<real::ThreadPool, ThreadPoolBuildError> {
        builder.build()
    }

    fn build_global(self, builder: real::ThreadPoolBuilder) -> Result<(), ThreadPoolBuildError> {
        builder.build_global()
    }
}

impl<F: FnMut(ThreadBuilder) -> io::Result<()>> ThreadSpawn for CustomSpawn<F> {
    fn build(self, builder: real::ThreadPoolBuilder) -> Result<real::ThreadPool, ThreadPoolBuildError> {
        builder.spawn_handler(self.0).build()
    }

    fn build_global(self, builder: real::ThreadPoolBuilder) -> Result<(), ThreadPoolBuildError> {
        builder.spawn_handler(self.0).build_global()
    }
}

pub struct ThreadPoolBuilder<S = DefaultSpawn> {
    inner: real::ThreadPoolBuilder,
    spawn: S,
}

impl<S> std::fmt::Debug for ThreadPoolBuilder<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Default for ThreadPoolBuilder {
    fn default() -> Self {
        Self { inner: real::ThreadPoolBuilder::default(), spawn: DefaultSpawn }
    }
}

impl ThreadPoolBuilder {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn build_scoped<W, F, R>(self, wrapper: W, with_pool: F) -> Result<R, ThreadPoolBuildError>
    where
        W: Fn(ThreadBuilder) + Sync,
        F: FnOnce(&ThreadPool) -> R,
    {
        self.inner.build_scoped(wrapper, |pool| with_pool(ThreadPool::wrap(pool)))
    }
}

impl<S: ThreadSpawn> ThreadPoolBuilder<S> {
    pub fn build(self) -> Result<ThreadPool, ThreadPoolBuildError> {
        self.spawn.build(self.inner).map(|inner| ThreadPool { inner })
    }

    pub fn build_global(self) -> Result<(), ThreadPoolBuildError> {
        self.spawn.build_global(self.inner)
    }
}

impl<S> ThreadPoolBuilder<S> {
    fn map(self, f: impl FnOnce(real::ThreadPoolBuilder) -> real::ThreadPoolBuilder) -> Self {
        Self { inner: f(self.inner), spawn: self.spawn }
    }

    pub fn spawn_handler<F>(self, spawn: F) -> ThreadPoolBuilder<CustomSpawn<F>>
    where
        F: FnMut(ThreadBuilder) -> io::Result<()>,
    {
        ThreadPoolBuilder { inner: self.inner, spawn: CustomSpawn(spawn) }
    }

    pub fn thread_name<F: FnMut(usize) -> String + 'static>(self, f: F) -> Self {
        self.map(|b| b.thread_name(f))
    }

    pub fn num_threads(self, n: usize) -> Self {
        self.map(|b| b.num_threads(n))
    }

    #[cfg(not(lacks_use_current_thread))]
    pub fn use_current_thread(self) -> Self {
        self.map(|b| b.use_current_thread())
    }

    pub fn panic_handler<H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static>(self, h: H) -> Self {
        self.map(|b| b.panic_handler(h))
    }

    /// Our frames make a nested join need three times the stack; so the program gets what it meant.
    pub fn stack_size(self, bytes: usize) -> Self {
        self.map(|b| b.stack_size(bytes.saturating_mul(3)))
    }

    pub fn breadth_first(self) -> Self {
        self.map(|b| b.breadth_first())
    }

    pub fn start_handler<H: Fn(usize) + Send + Sync + 'static>(self, h: H) -> Self {
        self.map(|b| b.start_handler(h))
    }

    pub fn exit_handler<H: Fn(usize) + Send + Sync + 'static>(self, h: H) -> Self {
        self.map(|b| b.exit_handler(h))
    }
}

#[derive(Default)]
pub struct Configuration {
    inner: real::Configuration,
}

impl std::fmt::Debug for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

impl Configuration {
    pub fn new() -> Self {
        Self { inner: real::Configuration::new() }
    }

    pub fn build(self) -> Result<ThreadPool, Box<dyn Error + 'static>> {
        self.inner.build().map(|inner| ThreadPool { inner })
    }

    pub fn thread_name<F: FnMut(usize) -> String + 'static>(self, f: F) -> Self {
        Self { inner: self.inner.thread_name(f) }
    }

    pub fn num_threads(self, n: usize) -> Self {
        Self { inner: self.inner.num_threads(n) }
    }

    pub fn panic_handler<H: Fn(Box<dyn Any + Send>) + Send + Sync + 'static>(self, h: H) -> Self {
        Self { inner: self.inner.panic_handler(h) }
    }

    pub fn stack_size(self, bytes: usize) -> Self {
        Self { inner: self.inner.stack_size(bytes.saturating_mul(3)) }
    }

    pub fn breadth_first(self) -> Self {
        Self { inner: self.inner.breadth_first() }
    }

    pub fn start_handler<H: Fn(usize) + Send + Sync + 'static>(self, h: H) -> Self {
        Self { inner: self.inner.start_handler(h) }
    }

    pub fn exit_handler<H: Fn(usize) + Send + Sync + 'static>(self, h: H) -> Self {
        Self { inner: self.inner.exit_handler(h) }
    }
}

pub fn initialize(configuration: Configuration) -> Result<(), Box<dyn Error>> {
    real::initialize(configuration.inner)
}
