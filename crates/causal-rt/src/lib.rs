//! Virtual speedups inside the profiled program, after Curtsinger and Berger, "Coz: Finding Code that Counts with
//! Causal Profiling" (SOSP 2015), section 4.4.
//!
//! The experimenter outside says which target is to be made faster and by how much ([`wire::causal`]). Here every
//! sample on that target makes all *other* threads pause in proportion. What is where:
//!
//! ```text
//! shared    the memory that the experimenter sees
//! attribute a sample to the target that it counts for
//! earning   running the selected target makes the others owe
//! habit     what threads usually do where
//! crowd     more threads than cores
//! ledger    what a thread owes, has paid, is excused from
//! woken     until when a woken thread is excused
//! pause     how it pays
//! runtime   the hooks: when accounts are settled
//! team      waits of OpenMP's threads
//! unseen    waits that no hook sees
//! points    progress points: the ABI of coz.h and of our own `annotate`
//! ```
//!
//! # Rules (besides those of `preload` and `sampler`)
//! - Chooses nothing: which target, how long, when is the experimenter's business.
//! - Never pauses a thread that has just been woken or has just been given a lock: it pays before it blocks, before
//!   it takes a lock or wakes others, and at samples.
//! - A baseline (speedup 0) runs exactly the same code as any other experiment, or the comparison would measure us.
//! - No allocation, no lock, no libc but `clock_gettime` (the vdso) and what `preload` looked up.
#![no_std]

mod attribute;
mod crowd;
mod earning;
mod habit;
mod ledger;
mod pause;
pub mod points;
mod runtime;
mod shared;
pub mod team;
mod unseen;
mod woken;

pub use runtime::Causal;
