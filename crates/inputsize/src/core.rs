//! The algorithm that the instrumented program runs.
pub mod coherence;
pub mod replay;
pub mod shadow;
pub mod stack;
pub mod thread;
