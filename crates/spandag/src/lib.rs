//! Work and span of a fork-join computation, whole and per call site, computed while it runs.
//!
//! The algorithm is that of "The Cilkprof Scalability Profiler" (Schardl, Kuszmaul, Lee, Leiserson, Leiserson;
//! SPAA 2015): every task carries its work and the longest path of dependencies through it, and every path
//! carries a profile of the call sites on it, so that the profile of the longest path is there when the program
//! ends. [`serial`] is the paper's own form, a shadow stack under serial execution (prefix, longest child,
//! continuation). [`task`] is a form for work stealing: tasks are values that move between threads, and
//! combine when they are joined, in whatever order they ran.
//!
//! What goes beyond the paper: burdened spans, the critical path as a list ([`detail::Step`]), and, for every
//! site, the span that the program would have if that site's own code were faster ([`detail::FACTORS`]).
//!
//! # Design constraints
//! - Compiled into profiled programs, also by a bare `rustc`: `no_std`, no dependencies, no `unsafe`.
//! - No clock: costs come in as numbers. No recursion: a program may be nested a million deep.
//! - Operations on profiles take constant amortized time, and space of the order of the number of sites.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod chain;
pub mod context;
pub mod detail;
pub mod dump;
pub mod line;
pub mod prof;
pub mod record;
pub mod serial;
pub mod task;
pub mod whole;

pub use chain::Arena;
pub use context::{Context, Contexts, Entry};
pub use detail::{FACTORS, Step};
pub use line::{Line, Scale};
pub use prof::Prof;
pub use record::{Measure, Record};

/// A call site: a place in the code that calls or spawns. Numbered from 0 in order of discovery.
pub type Site = u32;
/// A function that contains call sites.
pub type Func = u32;
/// Cost in whatever unit the caller measures: ticks, nanoseconds, instructions.
pub type Cost = u64;

/// The site that stands for the start of the program.
pub const ROOT: Site = 0;
