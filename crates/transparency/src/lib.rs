//! Transparency: a program under a tool behaves as it does alone.
//!
//! Every case is run natively and under a wrapper command, with the same input, environment, arguments and working
//! directory; standard output, standard error, exit status or signal, and the files left behind must be equal. Where
//! the answer is known by construction the native run is checked against it too, so that a broken test program cannot
//! pass by being equally broken twice.
//!
//! ```text
//! test-programs/**          //@ header lines ──► spec ──► compile ──┐
//! real::CASES               a table of Debian programs ─────────────┤
//!                                                                   ▼
//!                                         case ──► judge ──► verdict, counted and named
//!                                                   │  run: native, then wrapped, N times
//!                                                   └► difference: what a user would see
//! ```
//!
//! The harness never ends a process that it did not start: each run is its own process group, and the time limit kills
//! that group alone. It never turns a failure into a skip: a skip has a reason that was known before the run.

#![forbid(unsafe_code)]

pub mod case;
pub mod compile;
pub mod difference;
pub mod judge;
pub mod limits;
pub mod real;
pub mod run;
pub mod spec;
