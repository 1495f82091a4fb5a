//! What the span mode needs around the program: the runtime's sources and how they get into a build, and how what the
//! program leaves behind becomes a profile.
//!
//! [`cargo`] is the side of `cargo`: a rustc wrapper that puts our `rayon-core` on top of the program's own.
//! [`cc`] is the side of C and C++: [`rewrite`] turns Cilk into calls of the runtime library.
//! [`openmp`] finds the OpenMP runtime that can report.
//! [`functions`] lists those whose calls are sites. [`collect`] reads records and gives addresses their names; [`sampled`]
//! divides time among calls that are known from samples. [`burden`] measures what a fork costs here.
//!
//! # Design constraints
//! - The program's sources, lock file and target folder are never written.
//! - What a compiler says goes to the user unchanged; what we add is said in one line.
#![forbid(unsafe_code)]

pub mod burden;
pub mod cargo;
pub mod cc;
pub mod collect;
pub mod functions;
pub mod openmp;
pub mod rewrite;
pub mod sampled;
pub mod sources;
