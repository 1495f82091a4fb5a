//! `rayon-core` with every fork and join reported to the span mode.
//!
//! The tool compiles the program's own `rayon-core` under the name `rayon_core_real` and this crate, under the
//! name `rayon_core`, on top of it; so `rayon` and the program see the interface that they know. Scheduling,
//! stealing, blocking and panics are the real ones: this crate only wraps closures, to know when tasks start and
//! end.
//!
//! # Rules
//! - The interface is that of `rayon-core` 1.8 to 1.13; what a version lacks is left out by `cfg(lacks_...)`,
//!   which the tool sets after looking at the source of the real one.
//! - Every call into the real crate is preceded by `pause` and followed by `resume`, also when it unwinds.
//! - Closures are wrapped, never boxed; nothing is allocated that the real crate does not allocate.
#![allow(deprecated)]
// The `lacks_...` are set by the tool, not by cargo.
#![allow(unexpected_cfgs)]
// Documented by the crate whose interface this is.
#![allow(missing_docs)]

use rayon_core_real as real;

mod detached;
mod join;
mod plain;
mod pool;
mod scope;
mod sides;
mod site;
mod start;
mod timed;

pub use detached::{spawn, spawn_fifo};
pub use join::{FnContext, join, join_context};
pub use pool::{Configuration, ThreadPool, ThreadPoolBuilder, current_num_threads, initialize};
pub use real::{ThreadBuilder, ThreadPoolBuildError, current_thread_has_pending_tasks, current_thread_index};
pub use scope::{Scope, ScopeFifo, scope, scope_fifo};

#[cfg(not(lacks_broadcast))]
pub use detached::{broadcast, spawn_broadcast};
#[cfg(not(lacks_yield))]
pub use pool::{yield_local, yield_now};
#[cfg(not(lacks_broadcast))]
pub use real::BroadcastContext;
#[cfg(not(lacks_yield))]
pub use real::Yield;
#[cfg(not(lacks_max_num_threads))]
pub use real::max_num_threads;
#[cfg(not(lacks_in_place_scope))]
pub use scope::{in_place_scope, in_place_scope_fifo};

/// Reports a cost when costs are reported by the program: for tests of the tool itself.
#[doc(hidden)]
pub fn farsight_spend(units: u64) {
    span_rt::clock::spend(units);
}
