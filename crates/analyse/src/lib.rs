//! What the facts of a profile mean: from points to cost functions, from cost functions to what the user
//! should look at first and what tomorrow's input will cost.
//!
//! # Design constraints
//! - Pure: facts in, conclusions out; no I/O, no printing, no knowledge of how facts were measured.
//! - Deterministic: the same profile gives the same conclusions, bit for bit, on any number of cores.
//! - Never concludes more than the data allow: an unknown fit stays unknown in every conclusion drawn from it.
#![forbid(unsafe_code)]

pub mod causal;
pub mod count;
pub mod diff;
pub mod forecast;
pub mod growth;
pub mod idle;
mod rank;
pub mod rule;
pub mod span;

pub use forecast::{Overtake, overtakes};
pub use growth::{Fits, Forecast, GrowthAnalysis, RoutineAnalysis, Totals, analyse, analyse_fitted};
