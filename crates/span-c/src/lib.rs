//! The span runtime as a library for C and C++.
//!
//! [`cilk`] is what rewritten Cilk programs call, [`ompt`] what LLVM's OpenMP runtime calls. A program that calls nothing of
//! it is one strand, whose work is its span; that is reported too.
//!
//! # Rules
//! - Cilk programs run as their serial elision, on the thread that called `main`; what other threads call is ignored.
//! - No panic leaves: every entry point is `extern "C"`, and none allocates but for shadow frames and new sites.

pub mod calibrate;
pub mod cilk;
pub mod counted;
pub mod lengths;
mod main_thread;
pub mod ompt;
mod repeat;
mod straight;
mod whole;
