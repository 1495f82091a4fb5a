//! From cost points to a growth class, a formula, and how sure we are of them.
//!
//! Numbers in, verdicts out. Nothing here knows what a routine, a profile or a file is.
//!
//! # Design constraints
//! - No I/O, no `unsafe`, no randomness that is not seeded from the data: the same points always give the
//!   same verdict.
//! - Never panics: any finite or non-finite input gives a [`Fit`], if need be `unknown` with the reason.
#![forbid(unsafe_code)]

pub mod bound;
pub mod class;
pub mod formula;
pub mod growth;

mod exponent;
mod lanes;
mod law;
mod ln;
mod normal;
mod points;
mod regime;
mod scan;
mod select;
mod shifted;
mod solve;
pub mod speedup;
mod student;
mod verdict;

pub use bound::{Bounds, GuessRatio, Trend, bounds, guess_ratio};
pub use class::Class;
pub use growth::{Fit, Piece, Sample, Term, Verdict};
pub use verdict::fit;
