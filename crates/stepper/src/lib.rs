//! An oracle for `farsight count`: the same numbers by another road.
//!
//! It shares no code with the engine: it stops the real program after every instruction, looks at the bytes that were
//! executed and adds up. About 100,000 instructions a second, so: small static programs. Test-only; no part of what
//! users run.

pub mod classify;
pub mod step;
pub mod trace;
