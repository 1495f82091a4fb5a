//! The engine: runs a program from a code cache, and lets a client see and count what it does.
//!
//! It lives inside the program's process, entered before the program's first instruction. Program code is never
//! executed in place: superblocks of it are copied into a cache, control transfers replaced so that execution
//! stays there, and the client's instrumentation added. See `docs/engine.md` for the mechanisms.
//!
//! # Rules
//! - `no_std`; no libc, no thread-local storage but gs, no memory but its own mappings.
//! - Compiled for SSE2: it may clobber xmm0 to xmm15, which the trampolines save, and no other vector state.
//! - The program's memory is written only where a native run's would be: its stack by calls and signal frames.
//! - Nothing allocates or locks in a signal handler unless it interrupted code in the cache.
//! - A block that has run is never moved, and freed only when no thread can stand in it (`generation.rs`).
//! - Every address type is a `u64`; names say which space: `pc` is the program's, `at`, `entry`, `site` and
//!   `stub` are the cache's.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

pub mod access;
pub mod addrmap;
pub mod appmem;
pub mod block;
pub mod boot;
pub mod bug;
mod bump;
pub mod cache;
mod callret;
pub mod client;
mod complex;
mod counted;
mod edges;
pub mod emit;
pub mod engine;
mod entrance;
pub mod events;
pub mod facts;
mod follow;
mod generation;
#[cfg(test)]
mod golden;
pub mod handback;
pub mod heap;
mod instrument;
pub mod kernel;
mod link;
pub mod liveness;
pub mod lock;
pub mod lookup;
pub mod modrm;
pub mod pages;
mod prefault;
mod processor;
pub mod region;
mod respite;
mod returns;
mod shared_return;
mod sigcall;
pub mod signal;
pub mod state;
pub mod superblock;
pub mod sys;
mod syscall;
pub mod thread;
pub mod trampoline;
pub mod translate;
mod trust;
mod vsyscall;
