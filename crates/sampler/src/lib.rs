//! Time samples of every thread, with their call paths, taken inside the profiled program.
//!
//! ```text
//! clock     the kernel interrupts a thread after each period of its CPU time   (perf task-clock, or a timer)
//! phase     brings these interrupts together with the kernel's own
//! handler   the signal that carries it; reads the interrupted registers
//! own_stack what the rest of a sample runs on
//! unwind    registers -> caller's registers -> ... -> thread start
//!   rule      what one pc needs for that: 24 bytes, found in
//!   cache     a lock-free table shared by all threads, filled by
//!   cfi       evaluation of the module's .eh_frame at that pc
//!   module    which module a pc is in, and when it came and went
//!   trail     what the last walk met, for the next one to stop at
//!   stack     reads of the interrupted stack that cannot fault
//! path      the frames of a walk, on their way into
//! tree      the calling contexts seen, with their metrics
//! ```
//! A runtime embeds a [`ThreadSampler`] in its per-thread data and implements [`Sampled`].
//!
//! # Design constraints
//! - All of it runs in signal handlers: no allocation (`no_std`, no `alloc`), no locks, no panics, no libc
//!   function but `_dl_find_object`, which is lock-free and made for this. Memory comes from [`preload::arena`].
//! - At most one signal per thread is ever outstanding, so a program that blocks signals for long is not
//!   flooded, and a full signal queue never turns into a deadly `SIGIO`.
//! - Handlers fit a small alternate stack: they go on at once on one of their own ([`own_stack`]).
//! - Everything lost (periods missed, paths cut, nodes refused) is counted.
//! - `errno` and vector registers are as the program left them: the first because libc is not called, the
//!   second because the kernel saves and restores them around a handler.
#![no_std]

pub mod cache;
pub mod cfi;
pub mod clock;
pub mod handler;
pub mod module;
pub mod own_stack;
pub mod path;
pub mod phase;
pub mod regs;
pub mod rule;
pub mod stack;
pub mod trail;
pub mod tree;
pub mod unwind;

pub use clock::Backend;
pub use handler::{Config, Sample, Sampled, ThreadSampler, install};
pub use path::Path;
pub use regs::Regs;
pub use unwind::{Frame, Next, Stop};
