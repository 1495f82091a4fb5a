//! What every runtime that is loaded into the profiled program stands on.
//!
//! A runtime (`causal-rt`, `idle-rt`) is a `cdylib` that the launcher puts into `LD_PRELOAD`. It implements
//! [`Hooks`] and says [`interpose!`] once; this crate then exports every libc function through which a thread
//! waits for or wakes another one ([`table`]), forwards each call to the real function ([`real`]) and tells the
//! hooks what happened. It also keeps the threads ([`thread`]), memory that may be taken in a signal handler
//! ([`arena`]), memory that the launcher sees ([`seat`]), and the life of the process: start, fork, exec and every ending ([`process`]).
//!
//! # Rules of the house (everything here runs inside somebody else's program)
//! - `no_std` and no `alloc`: the heap belongs to the program, and the compiler keeps us off it.
//! - No lock that a signal handler or a forked child could find taken; lock-free lists only.
//! - No panic: nothing is indexed, unwrapped or divided without a check.
//! - `errno` is the program's. System calls of ours are raw ([`sys`]) and never touch it.
//! - Wrappers are plain frames (`extern "C-unwind"`, no destructors), so that cancellation and C++ forced
//!   unwinding pass through them.
//! - A forked child goes on unprofiled unless the hooks ask for it; a program that is executed by the profiled
//!   one does not find our entry in its `LD_PRELOAD`.
//! - A failure of ours prints one line and disables us. The program runs on.
#![no_std]

pub mod abi;
pub mod arena;
pub mod dispatch;
mod env;
pub mod errno;
pub mod gomp;
pub mod hooks;
mod interpose;
pub mod ompt;
pub mod process;
pub mod real;
pub mod seat;
pub mod signal;
pub mod sys;
pub mod table;
pub mod thread;
mod tls;
pub mod wrap;

pub use hooks::{
    AfterFork, Ending, Executing, Hooks, Interest, Lock, LockKind, Origin, Outcome, Wait, WaitKind, Wake,
    WakeKind,
};
pub use thread::Thread;
