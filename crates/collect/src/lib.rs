//! Reads what runtimes wrote into shared memory, names the addresses in it, and builds profiles.
//!
//! # Design constraints
//! - Called after the program has ended, however it ended: what it left is read as it is. Numbers that cannot be are
//!   left out and said in `problems`.
//! - No `unsafe`, no conclusions: facts in, facts out.
#![forbid(unsafe_code)]

pub mod growth;
mod names;
