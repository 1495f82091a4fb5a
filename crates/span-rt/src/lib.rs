//! The span mode inside the profiled program: a clock per thread, the table of call sites, the current task of
//! each thread, and the record that is written at the end.
//!
//! `span-rayon` and `span-c` say when tasks start, fork, join and end; [`spandag`] knows what that means.
//!
//! # Rules
//! - Compiled into programs by a bare `rustc`: no dependency but `spandag`, no build script, no features.
//! - Nothing is printed unless something failed; nothing fails the program. Without [`OUT`] in the environment
//!   everything is measured and nothing written.
//! - The clock is read first when a strand ends and last when one starts; everything between is ours.
//! - A thread touches only its own [`local::Local`]; tasks are handed over by whoever runs the closures.

pub mod calls;
pub mod clock;
pub mod end;
pub mod env;
pub mod libc;
pub mod local;
pub mod repeat;
pub mod samples;
pub mod share;
pub mod sites;
pub mod stack;
pub mod watch;

pub use env::OUT;
pub use local::Local;
