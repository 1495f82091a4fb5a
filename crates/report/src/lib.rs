//! What users see of a profile: terminal tables, JSON for scripts, the HTML page.
//!
//! # Design constraints
//! - Renders conclusions and facts as they are; concludes nothing itself and knows nothing of how facts were
//!   measured.
//! - No I/O: values in, text out. The command line decides where it goes.
//! - Foreign text (symbol names, paths) is shown, never interpreted: escaped for each medium.
#![forbid(unsafe_code)]

pub mod html;
pub mod json;
mod plot;
pub mod span;
mod table;
pub mod terminal;
mod units;
