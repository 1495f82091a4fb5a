//! Causal experiments, run from outside: which target, how much faster, when, for how long; and what came of it.
//!
//! The runtime inside the program samples and delays; this crate decides and records. They share memory
//! (`wire::causal`). Deciding outside means that nothing of ours starts threads, reads debug information or
//! allocates in the program, that the program starts at once, and that whatever ends it leaves the data here.
//!
//! ```text
//! code       addresses that samples met -> targets: files, lines, inlined functions, scope
//! points     progress points of every kind, read at one instant
//! design     what to try next
//! children   processes that the program makes, where they are followed
//! session    one run of the program: experiments from start to end
//! random     a small generator: experiments must be random, runs repeatable
//! ```
//!
//! # Design constraints
//! - Concludes nothing: what experiments mean is `analyse`'s business. A session only asks whether enough is known.
//! - Selection is random and never depends on the outcome of the experiment that is running.
#![forbid(unsafe_code)]

mod children;
pub mod code;
mod design;
mod points;
mod random;
mod session;

pub use children::Child;
pub use design::{Fixed, LEVELS_PERMILLE};
pub use points::{PointSpec, SpecError};
pub use session::{Config, Finished, SessionError, run};
