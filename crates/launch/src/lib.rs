//! Starts programs under a Farsight runtime, waits for them and hands their results over. The only place that
//! starts programs.
//!
//! For the engine's modes: the real program is exec'd and stopped at its first instruction; the engine's image is
//! mapped into it and pointed at; the launcher detaches and waits. The kernel has then built the process exactly
//! as natively, and nothing of the launcher is left in it but the engine's mappings.
//!
//! For the sampling modes: a library is preloaded and talked to through shared memory ([`preloaded`]).

pub mod answers;
mod blob;
pub mod breakpoint;
pub mod counts;
mod ended;
mod error;
mod follow;
mod inherited;
mod inject;
pub mod log;
mod own_file;
pub mod plain;
pub mod preloaded;
mod program;
mod relay;
mod results;
mod run;
pub mod seats;
mod start;
mod stranger;
mod tracee;
pub mod watch;

pub use ended::{Ended, Usage};
pub use error::LaunchError;
pub use follow::Followed;
pub use program::find;
pub use results::Results;
pub use run::{Answers, Outcome, Spec, run, run_in, run_with};
