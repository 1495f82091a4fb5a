//! Coz profiles, in and out: the tab-separated `.coz` and the JSON lines of Coz 0.2.5 and later.
//!
//! ```text
//! startup          time=NS
//! experiment       selected=FILE:LINE  speedup=0.25  duration=NS  selected-samples=N
//! throughput-point name=NAME  delta=N                       \ belong to the experiment before
//! latency-point    name=NAME  arrivals=N  departures=N  difference=N /
//! runtime          time=NS
//! samples          location=FILE:LINE  count=N
//! ```
//! Durations have delays already taken out. A latency's `difference` is the mean number in flight. Files hold several
//! runs, each with a `startup`; they become one run of ours with experiments one after the other.
//!
//! Never: a panic on foreign bytes. A line that makes no sense is left out and mentioned.

mod export;
mod import;

pub use export::{Format, export};
pub use import::{ImportError, import};
