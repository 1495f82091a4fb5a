//! What the user sees of a profile.
//!
//! # Design constraints
//! - Facts and conclusions in, text out: no I/O, no clock, no environment. Files that a report quotes are asked
//!   for through a closure.
//! - Knows nothing of how facts were measured, and concludes nothing that `analyse` did not.
//! - Every name is foreign text: it is escaped wherever it is shown.
#![forbid(unsafe_code)]

pub mod html;
