//! Around a run of the idleness runtime, outside of the program.
//!
//! ```text
//! landmarks   before: which code of the executable the runtime must recognize
//! records     after: the shared file, read without trust
//! names       a note's address -> function, inlined functions, loops
//! collect     the trees of all threads -> one tree of contexts, and the totals
//! ```
//! # Design constraints
//! - No `unsafe`, no process: bytes in, facts out.
//! - The shared file was written by a program that may have gone wrong: every offset is checked, lists are
//!   bounded, and what makes no sense becomes a problem, not a panic.
#![forbid(unsafe_code)]

mod collect;
mod landmarks;
mod names;
mod records;

pub use collect::{Collected, Process, Ran, collect};
pub use landmarks::{Landmarks, Wanted, landmark_bytes, landmarks, prepare};
pub use records::{Executed, Introduced, RecordError, introduced};
